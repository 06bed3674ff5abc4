"""Many networks at once: all their chains and trees as one forest, the graphs with cycles one by one.

Every pass is cut into blocks that do not depend on the number of threads, and their sums are added in order: results
are the same for any number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from nashlearn.games.networks import messages
from nashlearn.games.networks.cliques import CliqueArrays
from nashlearn.games.networks.forest import play
from nashlearn.games.networks.game import MarkovGame, compiled_loss, loss_of
from nashlearn.games.networks.layout import chains, components, join, preorder
from nashlearn.games.networks.outcome import warn_of_time
from nashlearn.solvers.threads import Run

__all__ = ["Networks", "Played"]

_BLOCK = 2048  # nodes of a forest that one thread plays at a time


class Played(NamedTuple):
    """Weighted sums over all networks, and the adversary's marginals, weighted.

    ``nodes`` is overwritten by the next round; ``pairs`` is (k, k), the sum over edges, where these share a table, else
    (m, k, k). ``drift`` is what the edges' own beliefs, for which bounds of relaxed networks are attained, have more
    than ``pairs``.
    """

    value: float  # of the smoothed games at the replies, or a bound on it where networks were relaxed
    expected: float  # <p, L q>
    entropy: float  # min_p <p, L q>
    nodes: np.ndarray
    pairs: np.ndarray
    slacks: np.ndarray  # by how much the bound of each network with cycles exceeds what its marginals get
    drift: np.ndarray

    @property
    def slack(self) -> float:
        """The sum of ``slacks``."""
        return float(self.slacks.sum())


class _Other(NamedTuple):
    """A network with cycles: its solver, its rows and its edges, and what sweeps start from."""

    solver: Any
    rows: slice
    edges: slice
    state: tuple[np.ndarray, ...]


class Networks:
    """Graphs of nodes with ``k`` states each, and the replies that were last found for them.

    Rows of nodes are in the order of :attr:`order`: row ``i`` is node ``order[i]`` of all networks' nodes one after
    another. Forests come first, in preorder.

    Parameters
    ----------
    sizes : sequence of int
        Numbers of nodes.
    edges : sequence of int arrays (m_i, 2), or None
        None: all networks are chains.
    k : int
        Number of states.
    loss, exact
        As those of :func:`nashlearn.games.markov`.
    counts : ndarray (n,), optional
        What a mistake at each node counts, times the loss; in the order of the nodes of all networks. 1 by default.
    """

    def __init__(
        self,
        sizes: Sequence[int] | np.ndarray,
        edges: Sequence[np.ndarray] | None,
        k: int,
        loss: Any,
        exact: Any,
        counts: np.ndarray | None = None,
    ):
        self.k, self.sizes = k, np.asarray(sizes, dtype=np.int64)
        self._edges, self._loss_given = edges, loss
        self.n = int(self.sizes.sum())
        self.starts = starts = np.concatenate([[0], np.cumsum(self.sizes)])
        self.others: list[_Other] = []
        self._solvers: dict[tuple[bytes, bytes], Any] = {}
        self.loopy: dict[int, int] = {}  # networks with cycles, and their places among the others
        if edges is None:
            self.order = np.arange(self.n)
            self.edge_counts = np.maximum(self.sizes - 1, 0)
            self.forest = chains(self.sizes)
            n_forest = self.n
        else:
            self.edge_counts = np.array([len(e) for e in edges], dtype=np.int64)
            edge_starts = np.concatenate([[0], np.cumsum(self.edge_counts)])
            trees = [preorder(int(n), e) for n, e in zip(self.sizes, edges, strict=True)]
            self.forest, order = join(trees, starts, edge_starts)
            n_forest = order.size
            loopy = [i for i, tree in enumerate(trees) if tree is None]
            self.order = np.concatenate([order, *(np.arange(starts[i], starts[i + 1]) for i in loopy)])
            at = n_forest
            for i in loopy:
                own = np.ones(int(self.sizes[i])) if counts is None else counts[starts[i] : starts[i + 1]]
                solver, rows = self._solver(edges[i], own, exact), slice(at, at + own.size)
                self.loopy[i] = len(self.others)
                self.others.append(_Other(solver, rows, slice(edge_starts[i], edge_starts[i + 1]), solver.start()))
                at = rows.stop
        self.n_forest = n_forest
        self._row = np.empty(self.n, dtype=np.int64)
        self._row[self.order] = np.arange(self.n)
        self.counts = np.ones(self.n) if counts is None else counts[self.order]
        self.loss = compiled_loss(loss, np.full(self.n, k), self.counts)
        self.costs = loss_of(loss, np.array([k]), np.ones(1))[1][0]
        self.p = np.full((n_forest, self.costs.shape[0]), 1.0 / self.costs.shape[0])
        self._roots = np.flatnonzero(self.forest.parent < 0)
        self._ends = np.append(self._roots[1:], n_forest)
        self._blocks = self._cut()
        self._cliques = self._as_cliques()
        self._q = np.empty((self.n, k))

    @property
    def scale(self) -> float:
        """The largest loss of a node; 1 where no answer costs anything."""
        return float(self.costs.max() * self.counts.max(initial=0.0)) or 1.0

    @property
    def answers_by_scores(self) -> bool:
        """Whether a node by itself has its largest reply where its score is largest: if all mistakes cost the same."""
        wrong = self.costs[~np.eye(*self.costs.shape, dtype=np.bool_)]
        return bool((self.costs.diagonal() == 0).all() and (wrong == wrong[:1]).all())

    @property
    def owner(self) -> np.ndarray:
        """The network that each row belongs to."""
        return np.repeat(np.arange(self.sizes.size), self.sizes)[self.order]

    def edges_of(self, i: int) -> np.ndarray:
        """The edges (m, 2) of network ``i`` between its own nodes."""
        if self._edges is not None:
            return np.asarray(self._edges[i], dtype=np.int64).reshape(-1, 2)
        first = np.arange(max(int(self.sizes[i]) - 1, 0))
        return np.column_stack([first, first + 1])

    def solver_of(self, i: int) -> Any:
        """What plays network ``i`` by itself, its nodes in their own order; forests are always played exactly."""
        if i in self.loopy:
            return self.others[self.loopy[i]].solver
        return self._solver(self.edges_of(i), self.counts[self.rows_of(i)], "auto")

    def _solver(self, edges: np.ndarray, counts: np.ndarray, exact: Any) -> Any:
        """What plays a graph with these counts at its nodes; made once for all that are alike."""
        key = edges.tobytes(), counts.tobytes()
        if key not in self._solvers:
            states = np.full(counts.size, self.k)
            self._solvers[key] = MarkovGame(edges, states, self._loss_given, counts, exact).solver
        return self._solvers[key]

    def rows_of(self, i: int) -> np.ndarray:
        """The rows of the nodes of network ``i``, in their own order."""
        return self._row[self.starts[i] : self.starts[i + 1]]

    def of_edges(self, weight: np.ndarray) -> np.ndarray:
        """Each edge's weight, that of its network, from the nodes' (n,) in the order of rows."""
        first = np.empty(self.n + 1)
        first[self.order] = weight
        return np.repeat(first[np.cumsum(self.sizes) - self.sizes], self.edge_counts)

    @property
    def is_exact(self) -> bool:
        """Whether no network had to be relaxed to the local polytope."""
        return all(other.solver.is_exact for other in self.others)

    def _cut(self) -> list[tuple[int, int]]:
        """Blocks of whole components with about equally many nodes."""
        if not self.n_forest:
            return []
        starts = self._roots[np.flatnonzero(np.diff(self._roots // _BLOCK, prepend=-1))]
        return list(zip(starts.tolist(), np.append(starts[1:], self.n_forest).tolist(), strict=True))

    def _as_cliques(self) -> CliqueArrays:
        """The forest for max-product and for ranges of scores beyond probabilities; tables as :meth:`_flat`."""
        t, k = self.forest, self.k
        inner = t.parent >= 0
        above = np.where(inner, t.parent, 0)
        columns = np.where(inner, k, 1)
        return CliqueArrays(
            np.arange(self.n_forest),
            np.full(self.n_forest, k),
            columns,
            t.parent,
            t.child,
            t.sibling,
            np.where(inner, k + t.table * k * k, 0),
            np.where(columns[above] == 1, 0, k) if self.n_forest else above,
            np.concatenate([np.arange(k), np.repeat(np.arange(k), k)]).astype(np.int32),
        )

    def _flat(self, T: np.ndarray) -> tuple[CliqueArrays, np.ndarray]:
        """Tables as cliques read them, child by parent; a row of zeros for roots."""
        t, k = self.forest, self.k
        if len(T) == 1:
            parts = [np.zeros(k), T[0].T.ravel(), T[0].ravel()]
            offset = np.where(t.parent >= 0, k + t.flipped * k * k, 0)
            return self._cliques._replace(table=offset), np.concatenate(parts)
        turned = T.swapaxes(1, 2).copy()
        own = t.table[t.flipped]
        turned[own] = T[own]
        return self._cliques, np.concatenate([np.zeros(k), turned.ravel()])

    def play(self, S: np.ndarray, T: np.ndarray, eps: float, weight: np.ndarray, run: Run, rounds: int = 1) -> Played:
        """Renew all replies ``rounds`` times at ``eps > 0`` and report.

        ``S`` (n, k) scores nodes, ``T`` (m, k, k) edges, or (1, k, k) all of them alike; ``weight`` (n,) holds each
        network's weight at its nodes.
        """
        k, shared = self.k, len(T) == 1
        q = self._q
        tops = T.max(axis=(1, 2)) if len(T) else np.zeros(0)
        W = np.exp((T - tops[:, None, None]) / eps)
        direct = np.zeros_like(T)
        if shared:
            tables = np.zeros((len(self._blocks), 1, k, k))
        else:
            tables = np.broadcast_to(np.zeros_like(T), (len(self._blocks), *T.shape))
            tables.flags.writeable = True
        forest = self.forest if not shared else self.forest._replace(table=np.zeros_like(self.forest.table))
        lost = np.zeros(self.n_forest, dtype=np.bool_)

        def block(i: int) -> tuple[float, float, float]:
            first, last = self._blocks[i]
            return play(self.loss, forest, S, tops, W, eps, rounds, self.p, q, tables[i], weight, first, last, lost)

        sums = run(block, [(i,) for i in range(len(self._blocks))])
        edges = (tables.sum(axis=0) if shared else tables[0] if len(self._blocks) else direct) * W
        if lost.any():
            flat = self._flat(T)
            beyond = [rows for rows in (self._lost(lost, *cut) for cut in self._blocks) if rows.size]
            for rows, (part, pairs) in zip(
                beyond,
                run(lambda rows: self._any_range(rows, flat, S, eps, weight, rounds, q), [(r,) for r in beyond]),
                strict=True,
            ):
                sums.append(part)
                inner = rows[self.forest.parent[rows] >= 0]
                np.add.at(direct, np.zeros_like(inner) if shared else self.forest.table[inner], pairs)

        def other(one: _Other) -> tuple[float, float, float, np.ndarray, np.ndarray, float]:
            tables = np.broadcast_to(T, (one.edges.stop - one.edges.start, k, k)) if shared else T[one.edges]
            value, nodes, pairs, own, slack, _ = one.solver.improve(S[one.rows], tables, eps, one.state, rounds)
            w, cost = weight[one.rows.start], nodes @ self.costs.T * self.counts[one.rows, None]
            q[one.rows] = w * nodes
            p = one.state[0][:, : self.costs.shape[0]]
            expected, entropy = w * float((p * cost).sum()), w * float(cost.min(axis=1).sum())
            return w * value, expected, entropy, w * pairs, w * own, w * slack

        slacks, drift = np.zeros(len(self.others)), np.zeros_like(T)
        for i, (one, (value, expected, entropy, pairs, own, slack)) in enumerate(
            zip(self.others, run(other, [(one,) for one in self.others]), strict=True)
        ):
            sums.append((value, expected, entropy))
            slacks[i] = slack
            if shared:
                direct[0] += pairs.sum(axis=0)
                drift[0] += (own - pairs).sum(axis=0)
            else:
                direct[one.edges] = pairs
                drift[one.edges] = own - pairs
        total = np.sum(sums, axis=0) if sums else np.zeros(3)
        edges = edges + direct
        value, expected, entropy = (float(part) for part in total)
        return Played(value, expected, entropy, q, edges[0] if shared else edges, slacks, drift)

    def _lost(self, lost: np.ndarray, first: int, last: int) -> np.ndarray:
        """The rows between two of the components that are marked as lost at their roots."""
        a, b = np.searchsorted(self._roots, (first, last))
        ranges = [np.arange(r, e) for r, e in zip(self._roots[a:b], self._ends[a:b], strict=True) if lost[r]]
        return np.concatenate(ranges) if ranges else np.zeros(0, dtype=np.int64)

    def _any_range(
        self,
        rows: np.ndarray,
        flat: tuple[CliqueArrays, np.ndarray],
        S: np.ndarray,
        eps: float,
        weight: np.ndarray,
        rounds: int,
        q: np.ndarray,
    ) -> tuple[tuple[float, float, float], np.ndarray]:
        """Play whole components in the log domain: their sums, and weighted marginals of the edges to parents."""
        t, E, k = components(flat[0], rows), flat[1], self.k
        f, p, w = S[rows], self.p[rows], weight[rows]
        lift = p @ self.costs * self.counts[rows, None]
        inside, outside = np.zeros((rows.size, k)), np.zeros((rows.size, k))
        messages.inward(t, f, lift, E, eps, inside)
        loss = self.loss._replace(weights=self.loss.weights[rows])
        for _ in range(rounds):
            messages.sweep(loss, t, f, lift, E, eps, p, inside, outside)
        self.p[rows] = p
        # Cliques share tables, but each needs a place of its own for its marginals.
        B = np.empty((rows.size, k * k))
        messages.beliefs(t, np.arange(0, B.size, k * k), f, lift, E, eps, inside, outside, B.ravel())
        inner = t.parent >= 0
        B[~inner, k:] = -np.inf
        joint = np.exp((B - B.max(axis=1, keepdims=True)) / eps)
        joint *= (w / joint.sum(axis=1))[:, None]
        tables = joint[inner].reshape(-1, k, k)
        q[rows[inner]] = tables.sum(axis=2)
        q[rows[~inner]] = joint[~inner, :k]
        cost = q[rows] @ self.costs.T * self.counts[rows, None]
        value = float(w[~inner] @ inside[~inner, 0])
        turned = np.where(self.forest.flipped[rows[inner], None, None], tables, tables.swapaxes(1, 2))
        return (value, float((p * cost).sum()), float(cost.min(axis=1).sum())), turned

    def ceiling(self, S: np.ndarray, T: np.ndarray, weight: np.ndarray) -> float:
        """Weighted sum of what the best adversaries get against the replies, without smoothing."""
        total = 0.0
        if self.n_forest:
            t, E = self._flat(T)
            inside = np.zeros((self.n_forest, self.k))
            lift = self.p @ self.costs * self.counts[: self.n_forest, None]
            messages.inward(t, S[: self.n_forest], lift, E, 0.0, inside)
            total += float(weight[self._roots] @ inside[self._roots, 0])
        for one in self.others:
            tables = self._tables(T, one)
            total += weight[one.rows.start] * one.solver.ceiling(S[one.rows], tables, one.state)
        return total

    def argmax(self, S: np.ndarray, T: np.ndarray, run: Run, **options: Any) -> np.ndarray:
        """The best labeling (n,), in the order of rows; ``options`` as those of ``MarkovGame.maximise``."""
        if options:
            from nashlearn.games.networks.labelings import check_options

            check_options(**options)
        labels = np.zeros(self.n, dtype=np.int64)
        if self.n_forest:
            t, E = self._flat(T)
            inside = np.zeros((self.n_forest, self.k))
            f = S[: self.n_forest]
            messages.inward(t, f, np.zeros_like(f), E, 0.0, inside)
            messages.decode(t, f, E, inside, labels)
        found = run(
            lambda one: one.solver.maximise(S[one.rows], self._tables(T, one), **options),
            [(one,) for one in self.others],
        )
        for one, labeling in zip(self.others, found, strict=True):
            labels[one.rows] = labeling.labels
        warn_of_time(sum(labeling.status == "time limit" for labeling in found), stacklevel=5)
        return labels

    def replies(self) -> np.ndarray:
        """The last replies (n, options), in the order of rows."""
        width = self.costs.shape[0]
        return np.concatenate([self.p, *(one.state[0][:, :width] for one in self.others)])

    def _tables(self, T: np.ndarray, one: _Other) -> np.ndarray:
        """A network's edge scores."""
        shape = (one.edges.stop - one.edges.start, self.k, self.k)
        return np.broadcast_to(T, shape) if len(T) == 1 else T[one.edges]
