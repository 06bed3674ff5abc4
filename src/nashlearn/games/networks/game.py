"""The game of a Markov network with an additive loss.

The adversary chooses a distribution over labellings, the predictor one for each node; scores and losses add up over
nodes and edges, so only node and edge marginals matter [fathony2018]_, [franc2022]_. On trees, and on any graph whose
clique tree is small enough, both players' polytopes are exact. On other graphs the marginals are only asked to agree
locally: that game's value is an *upper bound*, equal to the exact one on forests and often above it where there are
cycles, whatever the number of states.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import joblib
import numpy as np

from nashlearn.game import Equilibrium, Game, inner
from nashlearn.games._check import cost_matrix
from nashlearn.games.catalogue import LOSSES, named_costs, suggested_name
from nashlearn.games.networks.cliques import TooWideError, clique_tree
from nashlearn.games.networks.junction import CliqueSolver
from nashlearn.games.networks.outcome import Labeling, warn_of_time
from nashlearn.games.networks.polytopes import NONE_LEFT, Labellings, LocalPolytope, Replies, node_loss, packed
from nashlearn.games.networks.replies import Hamming, NodeCosts
from nashlearn.solvers.threads import threads

__all__ = ["MarkovGame", "check_edges", "compiled_loss", "decided_by_scores", "loss_of"]

_AUTO_LIMIT = 1 << 20  # entries of all tables up to which "auto" is exact
_EXACT_LIMIT = 1 << 25  # and up to which exact=True tries
_KEPT = 8  # games of other numbers of nodes that a game keeps


def check_edges(edges: Any, n: int | None = None) -> np.ndarray:
    """``edges`` as an int64 array (m, 2) without loops, repetitions or nodes beyond ``n``."""
    array = np.asarray(edges)
    if array.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != 2:
        raise ValueError(f"edges must have shape (m, 2): two nodes for each edge; got {array.shape}")
    if not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"edges must hold node numbers, integers; got dtype {array.dtype}")
    array = array.astype(np.int64)
    if array.min() < 0 or (n is not None and array.max() >= n):
        bad = array[(array < 0).any(axis=1) | (array >= (np.inf if n is None else n)).any(axis=1)][0]
        raise ValueError(f"edges must join nodes 0..{'' if n is None else n - 1}; got {tuple(bad.tolist())}")
    loops = array[:, 0] == array[:, 1]
    if loops.any():
        raise ValueError(f"edges must join two different nodes; got {tuple(array[loops][0].tolist())}")
    ordered = np.sort(array, axis=1)
    distinct, counts = np.unique(ordered, axis=0, return_counts=True)
    if (counts > 1).any():
        raise ValueError(f"edges must be distinct; {tuple(distinct[counts > 1][0].tolist())} occurs more than once")
    return array


def compiled_loss(loss: Any, n_states: np.ndarray, weights: np.ndarray) -> Any:
    """The loss of nodes with these numbers of states and weights, for compiled code."""
    if isinstance(loss, str):
        if loss not in LOSSES:
            raise ValueError(f"loss must be one of {LOSSES} or a cost matrix; got {loss!r}.{suggested_name(loss)}")
        return (
            Hamming(weights)
            if loss == "zero_one"
            else NodeCosts(weights, named_costs(loss, int(n_states.max())), n_states)
        )
    L = cost_matrix(loss, "loss")
    if (n_states != L.shape[1]).any():
        raise ValueError(
            f"a cost matrix needs a column for each state: loss has {L.shape[1]}, n_states is {n_states.tolist()}"
        )
    return NodeCosts(weights, L, np.full(n_states.size, L.shape[0]))


def loss_of(loss: Any, n_states: np.ndarray, weights: np.ndarray) -> tuple[Any, list[np.ndarray]]:
    """The loss for compiled code, and as one matrix for each node."""
    made = compiled_loss(loss, n_states, weights)
    matrices = {k: named_costs(loss, k) if isinstance(loss, str) else made.L for k in np.unique(n_states).tolist()}
    return made, [w * matrices[k] for k, w in zip(n_states.tolist(), weights.tolist(), strict=True)]


def decided_by_scores(costs: np.ndarray) -> bool:
    """Whether a node by itself has its largest reply where its score is largest: if all mistakes cost the same."""
    wrong = costs[~np.eye(*costs.shape, dtype=np.bool_)]
    return bool((costs.diagonal() == 0).all() and (wrong == wrong[:1]).all())


class MarkovGame(Game):
    """The game of one graph; see :func:`nashlearn.games.markov`.

    Scores are a pair, node scores (n, k) and edge scores (m, k, k) of one instance, ``k`` the largest number of states;
    or one packed array (b, n k + m k k) of several, each row the node scores and then the edge scores, flat.
    ``edge_scores[e, a, b]`` is for state ``a`` of the edge's first node and ``b`` of its second. Scores of states that
    a node lacks are ignored; ``-inf`` forbids a label or a pair. Where neither ``n_states`` nor ``weights`` say how
    many nodes there are, the scores do: those beyond the edges are isolated.

    Polytopes, ``loss`` and ``shape`` are those of packed points, for the nodes that ``edges``, ``n_states`` and
    ``weights`` name. Where ``is_exact`` is false, ``labels`` is the local polytope: its best vertex may be fractional,
    and is then its own label, see ``nashlearn.games.networks.polytopes.LocalPolytope``.
    """

    labels: Labellings
    smooths = True

    def __init__(self, edges: Any, n_states: Any, loss: Any, weights: Any, exact: Any):
        states = np.asarray(n_states)
        if states.ndim > 1 or not np.issubdtype(states.dtype, np.integer) or states.size == 0 or (states < 1).any():
            raise ValueError(f"n_states must be a positive integer, or one for each node; got {n_states!r}")
        if not (isinstance(exact, (bool, np.bool_)) or (isinstance(exact, str) and exact == "auto")):
            raise ValueError(f'exact must be True, False or "auto"; got {exact!r}')
        self._states, self._given = states.astype(np.int64), loss
        self._exact = exact if isinstance(exact, str) else bool(exact)
        self.edges = check_edges(edges, states.size if states.ndim else None)
        self._weights = np.ones(()) if weights is None else np.array(weights, dtype=np.float64)
        if not (np.isfinite(self._weights).all() and (self._weights >= 0).all()):
            raise ValueError(f"weights must be finite and not negative; got {weights!r}")
        if self._weights.ndim > 1:
            raise ValueError(f"weights must be one number for each node; got shape {self._weights.shape}")
        sizes = [a.size for a in (self._states, self._weights) if a.ndim == 1]
        if len(set(sizes)) > 1:
            raise ValueError(f"n_states and weights must agree on the nodes; got {sizes[0]} and {sizes[1]} of them")
        least = int(self.edges.max(initial=0)) + 1
        if sizes and least > sizes[0]:
            raise ValueError(f"edges must join nodes 0..{sizes[0] - 1}; got node {least - 1}")
        self._fixed = bool(sizes)
        self._others: dict[int, MarkovGame] = {}
        self.n = sizes[0] if sizes else least
        self.solver = solver = self._choose()
        polytope = Labellings if solver.is_exact else LocalPolytope
        options = Replies(np.array([L.shape[0] for L in solver.costs]))
        m, k = len(self.edges), int(self._states.max())
        super().__init__(polytope(solver), options, node_loss(solver.costs, m, k))

    @property
    def is_exact(self) -> bool:
        """Whether values are the game's own, not the upper bound of the local polytope."""
        return bool(self.solver.is_exact)

    def sized(self, n: int) -> MarkovGame:
        """The same game with ``n`` nodes; those beyond the edges are isolated."""
        if n == self.n or self._fixed:
            return self
        game = self._others.get(n)
        if game is None:
            game = MarkovGame(
                self.edges,
                np.broadcast_to(self._states, n),
                self._given,
                np.broadcast_to(self._weights, n),
                self._exact,
            )
            for oldest in list(self._others)[: max(len(self._others) - _KEPT + 1, 0)]:
                self._others.pop(oldest, None)
            self._others[n] = game
        return game

    def _choose(self) -> Any:
        """What plays on the graph: a tree of cliques, or the local polytope."""
        from nashlearn.games.networks.local import LocalSolver

        states, weights = np.broadcast_to(self._states, self.n).copy(), np.broadcast_to(self._weights, self.n).copy()
        loss, costs = loss_of(self._given, states, weights)
        if self._exact is not False:
            try:
                limit = _AUTO_LIMIT if self._exact == "auto" else _EXACT_LIMIT
                return CliqueSolver(clique_tree(self.n, self.edges, states, limit), self.edges, states, loss, costs)
            except TooWideError as refusal:
                if self._exact is True:
                    raise ValueError(f'exact=True: {refusal}; use exact="auto" for an upper bound') from None
        return LocalSolver(self.edges, states, loss, costs)

    def solve(
        self,
        scores: Any,
        *,
        smoothing: float = 0.0,
        tol: float = 1e-7,
        n_jobs: int | None = None,
        start: Equilibrium | None = None,
    ) -> Equilibrium:
        """The equilibrium of one instance, or of each row of packed scores.

        Parameters
        ----------
        scores : (node_scores (n, k), edge_scores (m, k, k)), or array (b, n k + m k k)
        smoothing : float, default=0.0
            Weight of the entropy of the distribution over labellings, in the units of the loss; over the local
            polytope that of nodes, and a tenth of that of edges. 0 is the game itself.
        tol : float
            Gap at which sweeps of a smoothed game end. Without smoothing all is solved to the limit of the arithmetic.
        n_jobs : int, optional
            Threads, each of which solves rows.
        start : Equilibrium, optional
            That of scores nearby with smoothing, whose replies sweeps go on from.

        Returns
        -------
        Equilibrium
            For a pair ``value``, ``gap``, ``entropy`` and ``risk`` are numbers, ``q`` is (node marginals (n, k), edge
            marginals (m, k, k)) and ``p`` the predictor's strategy (n, options) at each node; for packed scores each
            has an axis for rows in front, and ``q`` is packed as they are. Where ``is_exact`` is false they are those
            of the local polytope: ``value`` is an upper bound, up to ``gap``.
        """
        game, rows, alone = self._rows(scores)
        if not (np.isfinite(smoothing) and smoothing >= 0):
            raise ValueError(f"smoothing must be finite and not negative; got {smoothing!r}")

        def play(i: int) -> Equilibrium:
            before = None if start is None else start.state[i]
            return game.solver.solve(*game.labels.parts(rows[i]), float(smoothing), tol, before)

        found = threads(joblib.effective_n_jobs(n_jobs))(play, [(i,) for i in range(len(rows))])
        state = [one.state for one in found]
        if alone:
            (one,) = found
            return replace(one, state=state)
        numbers = np.array([(one.value, one.gap, one.entropy, one.risk) for one in found]).reshape(-1, 4)
        dtype = np.float32 if getattr(scores, "dtype", None) == np.float32 else np.float64
        value, gap, entropy, risk = numbers.T.astype(dtype)
        q = np.array([packed(*one.q) for one in found], dtype=dtype).reshape(rows.shape)
        p = np.array([one.p for one in found], dtype=dtype).reshape(-1, *game.option_shape)
        return Equilibrium(value, q, p, gap, entropy, risk, state=state)

    def argmax(self, scores: Any) -> np.ndarray:
        """The best labelling (n,), or (b, n): exact where ``is_exact``, else the best that :meth:`maximise` finds.

        Warns where that is not proved to be the best.
        """
        game, rows, alone = self._rows(scores)
        found = [game.solver.maximise(*game.labels.parts(row)) for row in rows]
        for one in found:
            if one.score == -np.inf:
                unfound = "no labelling that is allowed was found in time; give maximise a larger time_limit"
                raise ValueError(NONE_LEFT if one.status == "infeasible" else unfound)
        warn_of_time(sum(one.status == "time limit" for one in found), stacklevel=3)
        labels = np.array([one.labels for one in found]).reshape(-1, game.n)
        return labels[0] if alone else labels

    def vertex(self, labels: np.ndarray) -> np.ndarray:
        """Packed vertices of labellings (b, n)."""
        labels = np.asarray(labels)
        return self.sized(labels.shape[1]).labels.vertex(labels)

    def maximise(self, scores: Any, **options: Any) -> Labeling:
        """The best labelling with its score, a bound on every other's, and how the search ended; for a pair of scores.

        Where ``is_exact`` is false: ``method="exact"`` (the default) ends with an integer programme, and proves its
        result best unless ``time_limit`` seconds (60) are not enough; ``method="ascent"`` is the fast search alone.
        Two states with nothing forbidden are decided by a minimum cut in either case where neighbours attract each
        other, or repel, or do either without contradiction, and mostly where there is one; a flow that is under way
        when the time is up is not broken off. "optimal" is meant up to 1e-9 of the
        scores' spread, or of the labelling's score if that is larger. A score of -inf: no labelling that is allowed was
        found; with the status "infeasible" there is none.
        """
        from nashlearn.games.networks.labellings import check_options

        check_options(**options)
        game, rows, _ = self._rows(scores)
        return game.solver.maximise(*game.labels.parts(rows[0]), **options)

    def score(self, scores: Any, y: Any) -> Any:
        """The score of the labelling ``y`` (n,), or those of (b, n)."""
        game, rows, alone = self._rows(scores)
        y = np.asarray(y)[None] if alone else np.asarray(y)
        if len(y) != len(rows):
            raise ValueError(f"y must hold one label for each of the {len(rows)} instances; got {len(y)}")
        found = inner(rows, game.labels.vertex(y))
        return found[0] if alone else found

    def loss_value(self, scores: Any, y: Any, smoothing: float = 0.0) -> Any:
        """The surrogate loss ``F(scores) - <scores, y>`` of a labelling ``y`` (n,), or those of (b, n)."""
        truth = self.score(scores, y)
        value = self.solve(scores, smoothing=smoothing).value
        return (value - truth).astype(value.dtype)

    def _rows(self, scores: Any) -> tuple[MarkovGame, np.ndarray, bool]:
        """The game of as many nodes as scores have, these packed and checked, and whether they came as a pair."""
        m, k = self.labels.m, self.labels.k
        alone = isinstance(scores, (tuple, list)) and len(scores) == 2
        if alone:
            f, T = (np.asarray(part, dtype=np.float64) for part in scores)
            if f.ndim != 2 or f.shape[1] != k or f.shape[0] < self.n or (self._fixed and f.shape[0] != self.n):
                least = "n" if not self._fixed else self.n
                raise ValueError(f"node_scores must have shape ({least}, {k}), n >= {self.n}; got {f.shape}")
            if m == 0 and T.size == 0:
                T = T.reshape(0, k, k)
            if T.shape != (m, k, k):
                raise ValueError(f"edge_scores must have shape ({m}, {k}, {k}), one table for each edge; got {T.shape}")
            rows = packed(f, T)[None]
        else:
            rows = np.array(scores, dtype=np.float64)
            width = rows.shape[1] if rows.ndim == 2 else -1
            n, rest = divmod(width - m * k * k, k)
            if rest or n < self.n or (self._fixed and n != self.n):
                raise ValueError(
                    f"scores must be a pair, node_scores (n, {k}) and edge_scores ({m}, {k}, {k}), or packed rows "
                    f"(b, n * {k} + {m * k * k}), n >= {self.n}; got shape {rows.shape}"
                )
        game = self.sized((rows.shape[1] - m * k * k) // k)
        for row in rows:
            game._check(*game.labels.parts(row))
        return game, rows, alone

    def _check(self, f: np.ndarray, T: np.ndarray) -> None:
        """Rule out states that nodes lack, in place; refuse scores that are no numbers or that allow nothing."""
        beyond = np.arange(f.shape[1]) >= self.solver.n_states[:, None]
        f[beyond] = -np.inf
        T[beyond[self.edges[:, 0]]] = -np.inf
        T.swapaxes(1, 2)[beyond[self.edges[:, 1]]] = -np.inf
        for name, part in (("node_scores", f), ("edge_scores", T)):
            if np.isnan(part).any() or np.isposinf(part).any():
                raise ValueError(f"{name} must be finite or -inf; it holds NaN or +inf")
        if (np.isneginf(f).all(axis=1)).any():
            v = int(np.isneginf(f).all(axis=1).argmax())
            raise ValueError(f"scores leave no labelling possible: all labels of node {v} are forbidden")
        if not self.solver.feasible(f, T):
            raise ValueError(NONE_LEFT)
