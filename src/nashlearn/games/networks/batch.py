"""Many networks at once: chains and trees as one forest, trees of cliques together, relaxed networks one by one.

Every pass is cut into blocks that do not depend on the number of threads, and their sums are added in order: results
are the same for any number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import joblib
import numpy as np

import nashlearn.kernels.messages as messages
from nashlearn.game import Equilibrium
from nashlearn.games.networks import settling, sweeps
from nashlearn.games.networks.cliques import CliqueArrays
from nashlearn.games.networks.forest import Forest
from nashlearn.games.networks.game import MarkovGame, compiled_loss, loss_of
from nashlearn.games.networks.joined import Joined, Merged, merged
from nashlearn.games.networks.layout import chains, forests
from nashlearn.games.networks.outcome import warn_of_time
from nashlearn.games.networks.sweeps import State
from nashlearn.solvers.threads import Run, threads

__all__ = ["Networks"]

_BLOCK = 512  # nodes of a forest that one thread plays at a time
_COLD = 0.01  # smoothing, relative to the largest loss, at which replies are sought before any is asked for
_COLD_ROUNDS = 3
_CYCLE_ROUNDS = 5  # of the sweep for one evaluation where networks have cycles: replies run further behind there


class _Other(NamedTuple):
    """A network that is relaxed to the local polytope: its number, its solver and its rows."""

    number: int
    solver: Any
    rows: slice


class Networks:
    """The games of graphs of nodes with ``k`` states each.

    Scores are a pair: those of nodes (n, k), and those of edges (m, k, k), or one table (1, k, k) that all edges share.
    Rows of nodes are in the order of :attr:`order`: row ``i`` is node ``order[i]`` of all networks' nodes one after
    another. Forests come first, in preorder, then other networks that are played exactly.

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
    weight : ndarray (n_networks,), optional
        What each network weighs where edges share a table: the adjoint of sharing is a sum over all edges, so that the
        edge marginals of the networks are added up, each times this. 1 by default.
    """

    def __init__(
        self,
        sizes: Sequence[int] | np.ndarray,
        edges: Sequence[np.ndarray] | None,
        k: int,
        loss: Any,
        exact: Any,
        counts: np.ndarray | None = None,
        weight: np.ndarray | None = None,
    ):
        self.k, self.sizes = k, np.asarray(sizes, dtype=np.int64)
        self._edges, self._loss_given = edges, loss
        self.n = int(self.sizes.sum())
        self.starts = starts = np.concatenate([[0], np.cumsum(self.sizes)])
        chained = np.maximum(self.sizes - 1, 0)
        self.edge_counts = chained if edges is None else np.array([len(e) for e in edges], dtype=np.int64)
        self._edge_starts = np.concatenate([[0], np.cumsum(self.edge_counts)])
        loopy: list[int] = []
        if edges is None:
            self.forest, order = chains(self.sizes), np.arange(self.n)
        else:
            self.forest, order, loopy = forests(self.sizes, edges, starts, self._edge_starts)
        self.n_forest = order.size
        self._solvers: dict[tuple[bytes, bytes], Any] = {}
        given = np.ones(self.n) if counts is None else counts
        solvers = {i: self._made(i, given[starts[i] : starts[i + 1]], exact) for i in loopy}
        joined = [i for i in loopy if solvers[i].is_exact]
        loopy = joined + [i for i in loopy if not solvers[i].is_exact]
        self.order = np.concatenate([order, *(np.arange(starts[i], starts[i + 1]) for i in loopy)])
        self.moved = not np.array_equal(self.order, np.arange(self.n))  # whether rows are not in the nodes' order
        self._row = np.empty(self.n, dtype=np.int64)
        self._row[self.order] = np.arange(self.n)
        self.owner = np.repeat(np.arange(self.sizes.size), self.sizes)[self.order]  # the network of each row
        self.counts = given[self.order]
        rows = ((i, self.rows_of(i)) for i in loopy[len(joined) :])
        self.others = [_Other(i, solvers[i], slice(own[0], own[-1] + 1)) for i, own in rows]
        self.numbers = np.array(joined, dtype=np.int64)  # of the networks in :attr:`joined`
        self.joined = self._join([solvers[i] for i in joined])
        self.n_swept = self.n_forest + int(self.sizes[self.numbers].sum())  # rows that are not relaxed
        self.n_entries = self.n_forest * k * k + sum(int(one.n_entries) for one in solvers.values())
        self.loss = compiled_loss(loss, np.full(self.n, k), self.counts)
        self.costs = loss_of(loss, np.array([k]), np.ones(1))[1][0]
        self.weight = np.ones(self.sizes.size) if weight is None else weight
        self.roots = np.flatnonzero(self.forest.parent < 0)
        self.blocks = self._cut()
        self.room, self.sums = np.empty((self.n, k)), np.empty((self.n_forest, 4))  # of sweeps

    @property
    def scale(self) -> float:
        """The largest loss of a node; 1 where no answer costs anything."""
        return float(self.costs.max() * self.counts.max(initial=0.0)) or 1.0

    def edges_of(self, i: int) -> np.ndarray:
        """The edges (m, 2) of network ``i`` between its own nodes."""
        if self._edges is not None:
            return np.asarray(self._edges[i], dtype=np.int64).reshape(-1, 2)
        first = np.arange(max(int(self.sizes[i]) - 1, 0))
        return np.column_stack([first, first + 1])

    def solver_of(self, i: int) -> Any:
        """What plays network ``i`` by itself, its nodes in their own order."""
        return self._made(i, self.counts[self.rows_of(i)])

    def _made(self, i: int, counts: np.ndarray, exact: Any = "auto") -> Any:
        """The solver of network ``i``, made once for all that are alike.

        Networks with cycles have theirs from the start, so that ``exact`` then plays no part.
        """
        edges = self.edges_of(i)
        key = edges.tobytes(), counts.tobytes()
        if key not in self._solvers:
            states = np.full(counts.size, self.k)
            self._solvers[key] = MarkovGame(edges, states, self._loss_given, counts, exact).solver
        return self._solvers[key]

    def _join(self, solvers: list[Any]) -> Joined:
        """The networks of these solvers together; those of :attr:`numbers`."""
        place: dict[bytes, int] = {}
        graphs: list[tuple[list[Merged], np.ndarray]] = []
        graph = []
        for i, solver in zip(self.numbers.tolist(), solvers, strict=True):
            edges = self.edges_of(i)
            key = edges.tobytes() + bytes(int(self.sizes[i]))
            if key not in place:
                place[key] = len(graphs)
                graphs.append((merged(solver.cliques.order), edges))
            graph.append(place[key])
        return Joined(self.k, graphs, graph, self._row[self.starts[self.numbers]], self._edge_starts[self.numbers])

    def rows_of(self, i: int) -> np.ndarray:
        """The rows of the nodes of network ``i``, in their own order."""
        return self._row[self.starts[i] : self.starts[i + 1]]

    @property
    def is_exact(self) -> bool:
        """Whether no network had to be relaxed to the local polytope."""
        return not self.others

    def _cut(self) -> list[tuple[int, int]]:
        """Blocks of whole components with about equally many nodes."""
        if not self.n_forest:
            return []
        starts = self.roots[np.flatnonzero(np.diff(self.roots // _BLOCK, prepend=-1))]
        return list(zip(starts.tolist(), np.append(starts[1:], self.n_forest).tolist(), strict=True))

    @cached_property
    def sharing(self) -> tuple[Forest, np.ndarray]:
        """The forest with one table for all edges, and what rows weigh in the sum of their marginals."""
        return self.forest._replace(table=np.zeros_like(self.forest.table)), self.weight[self.owner]

    @cached_property
    def _owners(self) -> np.ndarray | None:
        """The network of each component of the forests, None where these are the networks one by one."""
        own = self.owner[self.roots]
        return None if np.array_equal(own, np.arange(self.sizes.size)) else own

    def totals(self, rows: np.ndarray) -> np.ndarray:
        """What components have at their roots (n_forest, m), added up for each network (m, n_networks)."""
        each = np.ascontiguousarray(rows[self.roots].T)
        if self._owners is None:
            return each
        return np.array([np.bincount(self._owners, one, self.sizes.size) for one in each], dtype=np.float64)

    @cached_property
    def _cliques(self) -> CliqueArrays:
        """The forest for max-product and for ranges of scores beyond probabilities; tables as :meth:`tables`."""
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

    def tables(self, T: np.ndarray) -> tuple[CliqueArrays, np.ndarray]:
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

    def start(self) -> State:
        """Replies that favour no option, with what relaxed networks start from."""
        options = self.costs.shape[0]
        p = np.full((self.n_swept, options), 1.0 / options)
        return State(p, [other.solver.start() for other in self.others], _COLD * self.scale)

    def solve(
        self,
        scores: tuple[np.ndarray, np.ndarray],
        *,
        smoothing: float = 0.0,
        tol: float = np.inf,
        n_jobs: int | None = None,
        start: Equilibrium | None = None,
    ) -> Equilibrium:
        """The equilibrium of each network: values, gaps, entropies and risks (n_networks,).

        Parameters
        ----------
        scores : (ndarray (n, k), ndarray (m, k, k) or (1, k, k))
            Of nodes, in the order of rows, and of edges.
        smoothing : float
            Weight of the entropy of the distributions over labellings, in units of the loss.
        tol : float
            Gap for each node of a network at which it is settled. ``inf``, for training, is one round of sweeps (a few
            where there are cycles) from the replies of ``start``: the objective is convex in weights and replies
            together, and what p may lose is reported at the replies found. Without smoothing these are then sought at
            the last smoothing that was asked for, so that they come nearer while it falls.
        n_jobs : int, optional
            Threads.
        start : Equilibrium, optional
            The last one of these networks. Its replies are overwritten, and so are its marginals.

        Returns
        -------
        Equilibrium
            ``p`` (n, options) and the nodes' marginals are in the order of rows. ``q`` and ``reply`` are pairs (nodes
            (n, k), edges (m, k, k)); (1, k, k) where edges share a table, the weighted sum over them at the last round.
        """
        state: State = self.start() if start is None else start.state
        run = threads(joblib.effective_n_jobs(n_jobs))
        if tol < np.inf:
            method = settling.swept if smoothing else settling.played
            return method(self, *scores, smoothing, tol, state, run)
        state = state._replace(smoothing=smoothing or state.smoothing)
        rounds = _CYCLE_ROUNDS if self.others or self.joined.n else 1 if smoothing else _COLD_ROUNDS
        found = sweeps.sweep(self, *scores, state, rounds, run)
        if smoothing:
            return found
        upper, value = sweeps.ceilings(self, *scores, state, run), found.value - found.entropy + found.risk
        return replace(found, value=value, gap=np.maximum(upper - value, 0.0), entropy=found.risk, reply=None)

    def argmax(self, S: np.ndarray, T: np.ndarray, run: Run, **options: Any) -> np.ndarray:
        """The best labelling (n,), in the order of rows; ``options`` as those of ``MarkovGame.maximise``."""
        if options:
            from nashlearn.games.networks.labellings import check_options

            check_options(**options)
        labels = np.zeros(self.n, dtype=np.int64)
        if self.n_forest:
            t, E = self.tables(T)
            inside = np.zeros((self.n_forest, self.k))
            f = np.ascontiguousarray(S[: self.n_forest])
            messages.inward(t, f, np.zeros_like(f), E, 0.0, inside)
            messages.decode(t, f, E, inside, labels)
        self.joined.argmax(np.ascontiguousarray(S), np.ascontiguousarray(T), labels, run)
        found = run(
            lambda one: one.solver.maximise(S[one.rows], self.edge_tables(T, one.number), **options),
            [(one,) for one in self.others],
        )
        for one, labelling in zip(self.others, found, strict=True):
            labels[one.rows] = labelling.labels
        warn_of_time(sum(labelling.status == "time limit" for labelling in found), stacklevel=5)
        return labels

    def replies(self, state: State) -> np.ndarray:
        """All replies (n, options), in the order of rows."""
        if not self.others:
            return state.p
        width = self.costs.shape[0]
        return np.concatenate([state.p, *(own[0][:, :width] for own in state.others)])

    def between(self, i: int) -> slice:
        """The edges of network ``i`` among all."""
        return slice(self._edge_starts[i], self._edge_starts[i + 1])

    def edge_tables(self, T: np.ndarray, i: int) -> np.ndarray:
        """The edge scores of network ``i``."""
        return np.broadcast_to(T, (self.edge_counts[i], self.k, self.k)) if len(T) == 1 else T[self.between(i)]
