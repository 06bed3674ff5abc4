"""The game of a Markov network with an additive loss.

The adversary chooses a distribution over labelings, the predictor one for each node; scores and losses add up over
nodes and edges, so only node and edge marginals matter [fathony2018]_, [franc2022]_. On trees, and on any graph whose
clique tree is small enough, both players' polytopes are exact. On other graphs the marginals are only asked to agree
locally: that game's value is an *upper bound*, equal to the exact one on forests and often above it where there are
cycles, whatever the number of states.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nashlearn.game import Equilibrium
from nashlearn.games._check import cost_matrix
from nashlearn.games.networks.cliques import TooWideError, clique_tree
from nashlearn.games.networks.junction import CliqueSolver
from nashlearn.games.networks.outcome import Labeling, warn_of_gap, warn_of_time
from nashlearn.games.networks.replies import Hamming, NodeCosts

__all__ = ["MarkovGame", "check_edges", "compiled_loss", "loss_of"]

_AUTO_LIMIT = 1 << 20  # entries of all tables up to which "auto" is exact
_EXACT_LIMIT = 1 << 25  # and up to which exact=True tries
_PLAY_TOL = 1e-7
_KEPT = 8  # solvers for different numbers of nodes that a game keeps


def _absolute(k: int) -> np.ndarray:
    return np.abs(np.arange(k)[:, None] - np.arange(k)).astype(np.float64)


_NONE_LEFT = "scores leave no labeling possible: the forbidden labels and pairs rule all of them out"
_NAMED: dict[str, Callable[[int], np.ndarray]] = {
    "zero_one": lambda k: 1.0 - np.eye(k),
    "absolute": _absolute,
    "squared": lambda k: _absolute(k) ** 2,
}


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
        if loss not in _NAMED:
            raise ValueError(f"loss must be one of {tuple(_NAMED)} or a cost matrix; got {loss!r}")
        return Hamming(weights) if loss == "zero_one" else NodeCosts(weights, _NAMED[loss](n_states.max()), n_states)
    L = cost_matrix(loss)
    if (n_states != L.shape[1]).any():
        raise ValueError(
            f"a cost matrix needs a column for each state: loss has {L.shape[1]}, n_states is {n_states.tolist()}"
        )
    return NodeCosts(weights, L, np.full(n_states.size, L.shape[0]))


def loss_of(loss: Any, n_states: np.ndarray, weights: np.ndarray) -> tuple[Any, list[np.ndarray]]:
    """The loss for compiled code, and as one matrix for each node."""
    made = compiled_loss(loss, n_states, weights)
    matrices = {k: _NAMED[loss](k) if isinstance(loss, str) else made.L for k in np.unique(n_states).tolist()}
    return made, [w * matrices[k] for k, w in zip(n_states.tolist(), weights.tolist(), strict=True)]


class MarkovGame:
    """The game of one graph; see :func:`nashlearn.games.markov`."""

    def __init__(self, edges: Any, n_states: Any, loss: Any, weights: Any, exact: Any):
        states = np.asarray(n_states)
        if states.ndim > 1 or not np.issubdtype(states.dtype, np.integer) or states.size == 0 or (states < 1).any():
            raise ValueError(f"n_states must be a positive integer, or one for each node; got {n_states!r}")
        if not (isinstance(exact, (bool, np.bool_)) or (isinstance(exact, str) and exact == "auto")):
            raise ValueError(f'exact must be True, False or "auto"; got {exact!r}')
        self._states, self._loss = states.astype(np.int64), loss
        self._exact = exact if isinstance(exact, str) else bool(exact)
        self.edges = check_edges(edges, states.size if states.ndim else None)
        self._weights = None if weights is None else np.array(weights, dtype=np.float64)
        if self._weights is not None and not (np.isfinite(self._weights).all() and (self._weights >= 0).all()):
            raise ValueError(f"weights must be finite and not negative; got {weights!r}")
        if self._weights is not None and self._weights.ndim > 1:
            raise ValueError(f"weights must be one number for each node; got shape {self._weights.shape}")
        sizes = [a.size for a in (self._states, self._weights) if a is not None and a.ndim == 1]
        if len(set(sizes)) > 1:
            raise ValueError(f"n_states and weights must agree on the nodes; got {sizes[0]} and {sizes[1]} of them")
        least = int(self.edges.max(initial=0)) + 1
        if sizes and least > sizes[0]:
            raise ValueError(f"edges must join nodes 0..{sizes[0] - 1}; got node {least - 1}")
        self._fixed = sizes[0] if sizes else None
        self._solvers: dict[int, Any] = {}
        self._smallest = self._solver(self._fixed or least)

    @property
    def is_exact(self) -> bool:
        """Whether values are the game's own, not the upper bound of the local polytope."""
        return bool(self._smallest.is_exact)

    @property
    def solver(self) -> Any:
        """What plays on the graph itself, for callers with checked scores."""
        return self._smallest

    def _solver(self, n: int) -> Any:
        """The solver for ``n`` nodes; those beyond the edges are isolated."""
        solver = self._solvers.get(n)
        if solver is None:
            states = np.broadcast_to(self._states, n).copy()
            weights = np.ones(n) if self._weights is None else np.broadcast_to(self._weights, n).copy()
            solver = self._choose(n, states, *loss_of(self._loss, states, weights))
            for oldest in list(self._solvers)[: max(len(self._solvers) - _KEPT + 1, 0)]:
                self._solvers.pop(oldest, None)
            self._solvers[n] = solver
        return solver

    def _choose(self, n: int, states: np.ndarray, loss: Any, costs: list[np.ndarray]) -> Any:
        from nashlearn.games.networks.local import LocalSolver

        if self._exact is not False:
            try:
                limit = _AUTO_LIMIT if self._exact == "auto" else _EXACT_LIMIT
                return CliqueSolver(clique_tree(n, self.edges, states, limit), self.edges, states, loss, costs)
            except TooWideError as refusal:
                if self._exact is True:
                    raise ValueError(f'exact=True: {refusal}; use exact="auto" for an upper bound') from None
        return LocalSolver(self.edges, states, loss, costs)

    def solve(self, scores: Any, smoothing: float = 0.0, *, tol: float = 1e-7, max_iter: int = 10_000) -> Equilibrium:
        """The equilibrium of one instance.

        Parameters
        ----------
        scores : (node_scores, edge_scores)
            Of shapes (n, k) and (m, k, k), ``k`` the largest number of states; ``edge_scores[e, a, b]`` is for state
            ``a`` of the edge's first node and ``b`` of its second. Scores of states that a node lacks are ignored;
            ``-inf`` forbids a label or a pair.
        smoothing : float, default=0.0
            Weight of the entropy of the distribution over labelings, in the units of the loss. 0 is the game itself.
        tol, max_iter : float and int
            Gap and number of sweeps at which a smoothed game ends.

        Returns
        -------
        Equilibrium
            ``value`` and ``gap`` are numbers, ``q`` is (node marginals (n, k), edge marginals (m, k, k)), ``p`` the
            predictor's strategy (n, options) at each node. Where ``is_exact`` is false they are those of the local
            polytope: ``value`` is an upper bound.
        """
        solver, f, T = self._checked(scores)
        if not (np.isfinite(smoothing) and smoothing >= 0):
            raise ValueError(f"smoothing must be finite and not negative; got {smoothing!r}")
        if not max_iter >= 1:
            raise ValueError(f"max_iter must be a positive integer; got {max_iter!r}")
        if smoothing > 0:
            found = solver.play_smoothed(f, T, float(smoothing), tol, max_iter)
        else:
            found = solver.play(f, T)
            scale = 1.0 + max(float(L.max()) for L in solver.costs) * f.shape[0]
            if found.gap > _PLAY_TOL * scale:
                warn_of_gap(found.gap, _PLAY_TOL * scale)
        return Equilibrium(np.float64(found.value), (found.nodes, found.pairs), found.p, np.float64(found.gap))  # type: ignore[arg-type]

    def argmax(self, scores: Any) -> np.ndarray:
        """The best labeling (n,): exact where ``is_exact``, else the best that :meth:`maximise` finds.

        Warns where that is not proved to be the best.
        """
        found = self.maximise(scores)
        if found.score == -np.inf:
            unfound = "no labeling that is allowed was found in time; give maximise a larger time_limit"
            raise ValueError(_NONE_LEFT if found.status == "infeasible" else unfound)
        warn_of_time(found.status == "time limit", stacklevel=3)
        return found.labels

    def maximise(self, scores: Any, **options: Any) -> Labeling:
        """The best labeling with its score, a bound on every other's, and how the search ended.

        Where ``is_exact`` is false: ``method="exact"`` (the default) ends with an integer programme, and proves its
        answer best unless ``time_limit`` seconds (60) are not enough; ``method="ascent"`` is the fast search alone.
        Two states whose neighbours attract each other, with nothing forbidden, are decided by a minimum cut in either
        case; a flow that is under way when the time is up is not broken off. "optimal" is meant up to 1e-9 of the
        scores' spread, or of the labeling's score if that is larger. A score of -inf: no labeling that is allowed was
        found; with the status "infeasible" there is none.
        """
        from nashlearn.games.networks.labelings import check_options

        check_options(**options)
        solver, f, T = self._checked(scores)
        return solver.maximise(f, T, **options)

    def score(self, scores: Any, y: Any) -> float:
        """The score of the labeling ``y`` (n,)."""
        solver, f, T = self._checked(scores)
        y = self._labels(y, solver.n_states)
        edges = self.edges
        return float(f[np.arange(y.size), y].sum() + T[np.arange(len(edges)), y[edges[:, 0]], y[edges[:, 1]]].sum())

    def loss_value(self, scores: Any, y: Any, smoothing: float = 0.0) -> float:
        """The surrogate loss ``F(scores) - <scores, y>`` of a labeling ``y`` (n,)."""
        truth = self.score(scores, y)
        return float(self.solve(scores, smoothing).value) - truth

    @staticmethod
    def _labels(y: Any, states: np.ndarray) -> np.ndarray:
        y = np.asarray(y)
        if y.shape != states.shape or not np.issubdtype(y.dtype, np.integer):
            raise ValueError(f"y must hold one integer label for each of the {states.size} nodes; got {y!r}")
        wrong = (y < 0) | (y >= states)
        if wrong.any():
            v = int(wrong.argmax())
            raise ValueError(f"y must hold labels below each node's number of states; node {v} has {y[v]}")
        return y

    def _checked(self, scores: Any) -> tuple[Any, np.ndarray, np.ndarray]:
        if not isinstance(scores, (tuple, list)) or len(scores) != 2:
            raise ValueError("scores must be a pair: node_scores (n, k) and edge_scores (m, k, k)")
        f, T = (np.array(part, dtype=np.float64) for part in scores)
        m, k = len(self.edges), int(self._states.max())
        least = self._fixed or int(self.edges.max(initial=0)) + 1
        if f.ndim != 2 or f.shape[1] != k or f.shape[0] < least or (self._fixed and f.shape[0] != self._fixed):
            raise ValueError(f"node_scores must have shape ({self._fixed or 'n'}, {k}), n >= {least}; got {f.shape}")
        if m == 0 and T.size == 0:
            T = T.reshape(0, k, k)
        if T.shape != (m, k, k):
            raise ValueError(f"edge_scores must have shape ({m}, {k}, {k}), one table for each edge; got {T.shape}")
        solver = self._solver(f.shape[0])
        beyond = np.arange(k) >= solver.n_states[:, None]
        f[beyond] = -np.inf
        T[beyond[self.edges[:, 0]]] = -np.inf
        T.swapaxes(1, 2)[beyond[self.edges[:, 1]]] = -np.inf
        for name, part in (("node_scores", f), ("edge_scores", T)):
            if np.isnan(part).any() or np.isposinf(part).any():
                raise ValueError(f"{name} must be finite or -inf; it holds NaN or +inf")
        if (np.isneginf(f).all(axis=1)).any():
            v = int(np.isneginf(f).all(axis=1).argmax())
            raise ValueError(f"scores leave no labeling possible: all labels of node {v} are forbidden")
        if not solver.feasible(f, T):
            raise ValueError(_NONE_LEFT)
        return solver, f, T
