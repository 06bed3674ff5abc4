"""Games between arborescences: every token gets a head, another token or the root, without cycles [li2022]_.

Scores are ``scores[d, h]`` for token ``d = 0..n-1`` and head ``h = 0..n``, 0 being the root and ``h`` token ``h - 1``;
``scores[d, d + 1]`` is ignored and ``-inf`` forbids an arc. The loss counts tokens with a wrong head (with labelled
arcs: a wrong head or label), each with its weight:

    F(theta) = max_q min_p <theta, q> + sum_d c_d - <p, C q> - mu/2 |q|^2.

Best trees are found in :mod:`nashlearn.games.trees.best`, nearest points in :mod:`nashlearn.games.trees.projection`,
equilibria in :mod:`nashlearn.games.trees.equilibrium`, and Gibbs marginals in :mod:`nashlearn.games.trees.gibbs`. The
nearest point is an excellent guess of the predictor's strategy but, from three tokens on, not always an equilibrium.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from scipy import sparse

from nashlearn.game import Equilibrium, Game, inner
from nashlearn.games._check import not_negative
from nashlearn.games.trees.best import best_trees, is_tree, workspace
from nashlearn.games.trees.cuts import flow_scratch
from nashlearn.games.trees.entries import tree_scratch
from nashlearn.games.trees.equilibrium import solve_trees
from nashlearn.games.trees.gibbs import gibbs_trees
from nashlearn.games.trees.projection import cut_scratch, project_labelled, project_trees
from nashlearn.solvers.threads import in_threads

__all__ = ["ArborescenceGame", "Arborescences", "Projection"]


class Projection(NamedTuple):
    """Nearest points and their certificate: ``gap`` bounds ``(|point - scores|^2 - least)/2``, never negative."""

    point: np.ndarray
    gap: np.ndarray


class Arborescences:
    """The polytope of trees over ``n`` tokens and a root.

    A label is an array of heads (n,), or of heads and arc labels (n, 2) where arcs are labelled. Its vertex is a 0/1
    array of ``shape``: (n, n + 1), or (n, n + 1, n_labels).

    Parameters
    ----------
    n : int
        Number of tokens.
    single_root : bool
        Whether exactly one token has the root as its head.
    n_labels : int, optional
        Number of labels of an arc; None where arcs have none.
    """

    def __init__(self, n: int, single_root: bool, n_labels: int | None = None):
        self.n, self.single_root, self.n_labels = n, single_root, n_labels
        self.shape: tuple[int, ...] = (n, n + 1) if n_labels is None else (n, n + 1, n_labels)

    def argmax(self, scores: np.ndarray) -> np.ndarray:
        """Heads (b, n), or heads and labels (b, n, 2), of the best tree for each of ``scores``. O(n²) each."""
        scores = self.checked(scores)
        _refuse_nan(scores, "the best tree")
        arcs = scores if self.n_labels is None else scores.max(axis=3)
        heads = np.empty(arcs.shape[:2], np.int64)
        feasible = np.empty(len(arcs), np.bool_)
        best_trees(arcs, self.single_root, heads, feasible, workspace(self.n))
        _refuse_infeasible(~feasible, self.single_root)
        if self.n_labels is None:
            return heads
        chosen = np.take_along_axis(scores, heads[:, :, None, None], axis=2)[:, :, 0]
        return np.stack([heads, chosen.argmax(axis=2)], axis=2)

    def vertex(self, labels: np.ndarray) -> np.ndarray:
        """Arrays (b, \\*shape) of trees ``labels``."""
        labels = self.checked_labels(labels)
        vertices = np.zeros((len(labels), *self.shape))
        b, d = np.arange(len(labels))[:, None], np.arange(self.n)
        if self.n_labels is None:
            vertices[b, d, labels] = 1.0
        else:
            vertices[b, d, labels[..., 0], labels[..., 1]] = 1.0
        return vertices

    def project(self, scores: np.ndarray) -> Projection:
        """The nearest points (b, \\*shape) of the polytope, with their Frank-Wolfe gaps.

        Forbidden arcs get 0. About 0.1 ms for 20 tokens; with labelled arcs Wolfe's method alone, which is slower.
        """
        scores = self.checked(scores)
        _refuse_nan(scores, "the nearest point")
        x, gap, shifted = np.empty(scores.shape), np.empty(len(scores)), scores.astype(np.float64)
        if self.n_labels is None:
            arrays = workspace(self.n), cut_scratch(self.n), flow_scratch(self.n)
            project_trees(shifted, self.single_root, x, gap, *arrays)
        else:
            project_labelled(shifted, self.single_root, x, gap, workspace(self.n))
        _refuse_infeasible(gap < 0, self.single_root)
        _warn(gap > 1e-8 * (1.0 + _size(scores)), gap, "projections", 1e-8)
        return Projection(x.astype(scores.dtype), gap.astype(scores.dtype))

    def marginals(self, scores: np.ndarray) -> np.ndarray:
        """Arc marginals (b, \\*shape) of the Gibbs distribution ``P(y) ~ exp(<scores, y>)``. O(n³) each."""
        return self._gibbs(scores)[1]

    def log_partition(self, scores: np.ndarray) -> np.ndarray:
        """``log sum_y exp(<scores, y>)`` over all trees ``y``, for each of ``scores``; ``-inf`` without a tree."""
        return self._gibbs(scores, needs_tree=False)[0]

    def _gibbs(self, scores: np.ndarray, needs_tree: bool = True) -> tuple[np.ndarray, np.ndarray]:
        scores = self.checked(scores).astype(np.float64)
        _refuse_nan(scores, "the Gibbs distribution")
        arcs = scores if self.n_labels is None else np.logaddexp.reduce(scores, axis=3)
        log_z, marginal = np.empty(len(arcs)), np.zeros(arcs.shape)
        gibbs_trees(np.ascontiguousarray(arcs), self.single_root, log_z, marginal)
        if needs_tree:
            _refuse_infeasible(np.isneginf(log_z), self.single_root)
        if self.n_labels is not None:
            share = np.exp(scores - np.where(np.isneginf(arcs), 0.0, arcs)[..., None])
            marginal = marginal[..., None] * share
        return log_z, marginal

    def checked(self, scores: np.ndarray) -> np.ndarray:
        """Scores as C-ordered float32 or float64 of shape (b, \\*shape)."""
        scores = np.asarray(scores)
        if scores.dtype.kind not in "biuf":
            raise ValueError(f"scores must be real numbers; got dtype {scores.dtype}")
        if scores.ndim != 1 + len(self.shape) or scores.shape[1:] != self.shape:
            hint = "; use scores[None] for a single sentence" if scores.shape == self.shape else ""
            raise ValueError(f"scores must have shape (b, {', '.join(map(str, self.shape))}); got {scores.shape}{hint}")
        scores = np.array(scores, dtype=np.float32 if scores.dtype == np.float32 else np.float64, order="C")
        scores[:, np.arange(self.n), np.arange(1, self.n + 1)] = -np.inf
        if np.isposinf(scores).any():
            b = np.isposinf(scores).reshape(len(scores), -1).any(axis=1).argmax()
            raise ValueError(f"scores must be finite, or -inf for a forbidden arc; scores[{b}] holds +inf")
        return scores

    def checked_labels(self, y: np.ndarray) -> np.ndarray:
        """Labels as integers, each a tree."""
        y = np.asarray(y)
        shape = (self.n,) if self.n_labels is None else (self.n, 2)
        if y.shape[1:] != shape or y.ndim != 1 + len(shape):
            what = "heads" if self.n_labels is None else "heads and labels"
            raise ValueError(f"y must have shape (b, {', '.join(map(str, shape))}), the {what}; got {y.shape}")
        if y.dtype.kind not in "iu" and y.size:
            raise ValueError(f"y must hold integers; got dtype {y.dtype}")
        y = y.astype(np.int64)
        heads = y if self.n_labels is None else y[..., 0]
        if self.n_labels is not None and ((y[..., 1] < 0) | (y[..., 1] >= self.n_labels)).any():
            raise ValueError(f"y must hold arc labels 0..{self.n_labels - 1}")
        for b, tree in enumerate(heads):
            check_heads(tree, self.single_root, f"y[{b}]")
        return y


def check_heads(heads: np.ndarray, single_root: bool, name: str) -> None:
    """Refuse heads (n,) that do not make a tree, saying why."""
    n = heads.size
    if ((heads < 0) | (heads > n)).any():
        raise ValueError(f"{name} must hold heads 0 (the root) to {n}; got {heads[(heads < 0) | (heads > n)][0]}")
    own = heads == np.arange(1, n + 1)
    if own.any():
        raise ValueError(f"{name} makes token {own.argmax() + 1} its own head")
    if not is_tree(heads, n, np.empty(max(n, 1), np.int64)):
        raise ValueError(f"{name} has a cycle: not every token reaches the root")
    roots = np.count_nonzero(heads == 0)
    if single_root and roots != 1:
        raise ValueError(f"{name} has {roots} tokens at the root where single_root=True allows exactly one")


def _refuse_nan(scores: np.ndarray, what: str) -> None:
    if np.isnan(scores).any():
        raise ValueError(f"scores must not be NaN where {what} is asked for")


def _refuse_infeasible(infeasible: np.ndarray, single_root: bool) -> None:
    if infeasible.any():
        rule = " with a single root" if single_root else ""
        raise ValueError(f"scores must leave a tree{rule} possible; scores[{infeasible.argmax()}] forbids every one")


def _size(scores: np.ndarray) -> np.ndarray:
    """The largest finite score of each sentence."""
    return np.where(np.isfinite(scores), np.abs(scores), 0.0).reshape(len(scores), -1).max(axis=1, initial=0.0)


def _warn(missed: np.ndarray, gap: np.ndarray, what: str, tol: float) -> None:
    if missed.any():
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(
            f"{missed.sum()} of {missed.size} {what} stopped at a gap of {gap[missed].max():.1e}, above tol={tol:g}",
            ConvergenceWarning,
            stacklevel=3,
        )


class _Flat:
    """A polytope of arrays, less the arcs that are ``forbidden``, seen as one of vectors for the double oracle."""

    def __init__(self, polytope: Arborescences, forbidden: np.ndarray | None = None):
        self.polytope, self.forbidden = polytope, forbidden

    def argmax(self, scores: np.ndarray) -> np.ndarray:
        if self.forbidden is not None:
            scores = np.where(self.forbidden, -np.inf, scores)
        return self.polytope.argmax(scores.reshape(len(scores), *self.polytope.shape))

    def vertex(self, labels: np.ndarray) -> np.ndarray:
        return self.polytope.vertex(labels).reshape(len(labels), -1)


class ArborescenceGame(Game):
    """The Hamming loss of heads, or of heads and labels, between two trees of the same tokens.

    Parameters
    ----------
    polytope : Arborescences
        Where both players choose.
    weights : ndarray (n,)
        What a wrong head costs.
    """

    labels: Arborescences

    def __init__(self, polytope: Arborescences, weights: np.ndarray):
        self.labels = self.options = polytope
        self.weights = weights

    def argmax(self, scores: np.ndarray) -> np.ndarray:
        """See :meth:`Arborescences.argmax`."""
        return self.labels.argmax(scores)

    def vertex(self, labels: np.ndarray) -> np.ndarray:
        """See :meth:`Arborescences.vertex`."""
        return self.labels.vertex(labels)

    def project(self, scores: np.ndarray) -> Projection:
        """See :meth:`Arborescences.project`."""
        return self.labels.project(scores)

    def marginals(self, scores: np.ndarray) -> np.ndarray:
        """See :meth:`Arborescences.marginals`."""
        return self.labels.marginals(scores)

    def log_partition(self, scores: np.ndarray) -> np.ndarray:
        """See :meth:`Arborescences.log_partition`."""
        return self.labels.log_partition(scores)

    def solve(  # type: ignore[override]  # smoothing and threads instead of iterations
        self, scores: np.ndarray, *, smoothing: float = 0.0, tol: float = 1e-10, n_jobs: int = 1
    ) -> Equilibrium:
        """Equilibrium of every sentence of ``scores`` (b, \\*shape), in their precision.

        A score of ``-inf`` forbids its arc to both players. A sentence with NaN gives NaN.

        Parameters
        ----------
        scores : array (b, \\*shape)
        smoothing : float
            ``mu`` in ``- mu/2 |q|²``: makes ``F`` differentiable, at most ``mu n / 2`` below the exact game.
        tol : float
            Accuracy of the interior point method; gaps end within about a hundred times of it.
        n_jobs : int
            Threads, each for a part of the batch.

        Returns
        -------
        Equilibrium
            ``value`` is what ``q`` secures, ``value + gap`` what ``p`` may lose at most.
        """
        scores = self.labels.checked(scores)
        smoothing = not_negative("smoothing", smoothing)
        b, n = scores.shape[:2]
        theta = scores.astype(np.float64).reshape(b, n, n + 1, -1)
        value, gap, q, p = np.empty(b), np.empty(b), np.empty(theta.shape), np.empty(theta.shape)
        broken = np.isnan(theta).any(axis=(1, 2, 3))
        theta[broken] = 0.0

        def work(start: int, stop: int) -> None:
            part = slice(start, stop)
            arrays = value[part], p[part], q[part], gap[part], tree_scratch(n)
            solve_trees(theta[part], self.weights, float(smoothing), self.labels.single_root, tol, *arrays)

        in_threads(work, b, n_jobs)
        _refuse_infeasible(np.isnan(value), self.labels.single_root)
        size = 1.0 + self.weights.sum() + n * smoothing
        if smoothing == 0.0:
            no_interior = (gap > 1e3 * tol * size) & (np.isneginf(scores).reshape(b, -1).sum(axis=1) > n)
            self._replay(np.flatnonzero(no_interior), theta, value, q, p, gap)
        _warn(gap > 1e3 * tol * size, gap, "games", 1e3 * tol)
        value[broken] = gap[broken] = q[broken] = p[broken] = np.nan
        dtype, shape = scores.dtype, scores.shape
        return Equilibrium(
            value.astype(dtype), q.reshape(shape).astype(dtype), p.reshape(shape).astype(dtype), gap.astype(dtype)
        )

    def flat(self, forbidden: np.ndarray | None = None) -> Game:
        """The same game on vectors, for the generic double oracle: scores (b, n (n + 1) labels).

        A score of ``-inf`` binds the adversary; ``forbidden``, a mask of that length, binds the predictor.
        """
        width = int(np.prod(self.labels.shape[1:]))
        loss = sparse.kron(sparse.diags_array(self.weights), np.ones((width, width)) - np.eye(width), format="csr")
        return Game(_Flat(self.labels), _Flat(self.labels, forbidden), loss)

    def _replay(self, rows: np.ndarray, theta: np.ndarray, *found: np.ndarray) -> None:
        """By the double oracle, games whose polytope has no interior because of the arcs that are forbidden."""
        from nashlearn.solvers.double_oracle import solve

        value, q, p, gap = found
        for row in rows:
            again = solve(self.flat(np.isneginf(theta[row]).ravel()), theta[row].reshape(1, -1))
            if again.gap[0] < gap[row]:
                value[row], gap[row] = again.value[0], again.gap[0]
                q[row], p[row] = again.q.reshape(q[row].shape), again.p.reshape(p[row].shape)

    def loss_value(self, scores: np.ndarray, y: np.ndarray, smoothing: float = 0.0) -> np.ndarray:
        """The surrogate loss ``F(scores) - <scores, y>`` of each sentence, for trees ``y``."""
        scores = self.labels.checked(scores)
        vertices = self.vertex(y)
        if len(vertices) != len(scores):
            raise ValueError(f"y must hold one tree for each of the {len(scores)} sentences; got {len(vertices)}")
        return self.solve(scores, smoothing=smoothing).value - _inner(scores, vertices)

    def upper(self, scores: np.ndarray, p: np.ndarray) -> np.ndarray:
        """What the best adversary gets against ``p``, without smoothing."""
        reward = self.labels.checked(scores) + self._costs() * (1.0 - p)
        return _inner(reward, self.vertex(self.argmax(reward)))

    def lower(self, scores: np.ndarray, q: np.ndarray) -> np.ndarray:
        """What ``q`` secures against every predictor that avoids the forbidden arcs, without smoothing."""
        scores, costs = self.labels.checked(scores), self._costs()
        hits = np.where(np.isneginf(scores), -np.inf, costs * q)
        return _inner(scores + costs, q) - _inner(hits, self.vertex(self.argmax(hits)))

    def _costs(self) -> np.ndarray:
        return self.weights.reshape(-1, *(1,) * (len(self.labels.shape) - 1))


def _inner(scores: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Inner products of arrays; a forbidden arc counts 0 where ``x`` is 0."""
    return inner(scores.reshape(len(scores), -1), x.reshape(len(x), -1))
