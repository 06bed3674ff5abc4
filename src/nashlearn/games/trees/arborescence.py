"""Games between arborescences: every token gets a head, another token or the root, without cycles [li2022]_.

Scores are ``scores[d, h]`` for token ``d = 0..n-1`` and head ``h = 0..n``, 0 being the root and ``h`` token ``h - 1``;
``scores[d, d + 1]`` is ignored and ``-inf`` forbids an arc. The loss counts tokens with a wrong head (with labelled
arcs: a wrong head or label), each with its weight:

    F(theta) = max_q min_p <theta, q> + sum_d c_d - <p, C q> - mu/2 (|q|^2 - <1, q>).

Best trees are found in ``nashlearn.kernels.tree_map``, nearest points in ``nashlearn.kernels.tree_projection``,
equilibria in ``nashlearn.kernels.tree_game``, and Gibbs marginals in ``nashlearn.kernels.tree_gibbs``. The nearest
point is an excellent guess of the predictor's strategy but, from three tokens on, not always an equilibrium.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nashlearn.game import Equilibrium, Game
from nashlearn.games._check import not_negative, refuse_nan, score_size, structured_scores, warn_missed
from nashlearn.games.hamming import Hamming
from nashlearn.kernels.tree_game import solve_trees
from nashlearn.kernels.tree_gibbs import gibbs_trees
from nashlearn.kernels.tree_map import best_trees, is_tree
from nashlearn.kernels.tree_nearest import project_labelled
from nashlearn.kernels.tree_projection import project_trees
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
        refuse_nan(scores, "the best tree")
        arcs = scores if self.n_labels is None else scores.max(axis=3)
        heads = np.empty(arcs.shape[:2], np.intp)
        feasible = np.empty(len(arcs), np.bool_)
        best_trees(arcs, self.single_root, heads, feasible)
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
        refuse_nan(scores, "the nearest point")
        x, gap, shifted = np.empty(scores.shape), np.empty(len(scores)), scores.astype(np.float64)
        if self.n_labels is None:
            project_trees(shifted, self.single_root, x, gap)
        else:
            arcs = len(scores), self.n * (self.n + 1), self.n_labels
            project_labelled(shifted.reshape(arcs), self.n, self.single_root, x.reshape(arcs), gap)
        _refuse_infeasible(gap < 0, self.single_root)
        warn_missed(gap > 1e-8 * (1.0 + score_size(scores)), gap, "projections", 1e-8)
        return Projection(x.astype(scores.dtype), gap.astype(scores.dtype))

    def marginals(self, scores: np.ndarray) -> np.ndarray:
        """Arc marginals (b, \\*shape) of the Gibbs distribution ``P(y) ~ exp(<scores, y>)``. O(n³) each."""
        return self._gibbs(scores)[1]

    def log_partition(self, scores: np.ndarray) -> np.ndarray:
        """``log sum_y exp(<scores, y>)`` over all trees ``y``, for each of ``scores``; ``-inf`` without a tree."""
        return self._gibbs(scores, needs_tree=False)[0]

    def _gibbs(self, scores: np.ndarray, needs_tree: bool = True) -> tuple[np.ndarray, np.ndarray]:
        scores = self.checked(scores).astype(np.float64)
        refuse_nan(scores, "the Gibbs distribution")
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
        own = np.arange(self.n), np.arange(1, self.n + 1)
        return structured_scores(scores, self.shape, own, -np.inf, "sentence", "arc")

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
        wrong = ~_are_trees(heads, self.single_root)
        if wrong.any():
            b = int(wrong.argmax())
            check_heads(heads[b], self.single_root, f"y[{b}]")
        return y


def _are_trees(heads: np.ndarray, single_root: bool) -> np.ndarray:
    """Which of ``heads`` (b, n) make trees: going up 1, 2, 4, ... arcs at once ends at the root."""
    b, n = heads.shape
    right = ((heads >= 0) & (heads <= n)).all(axis=1)
    up = np.zeros((b, n + 1), np.int64)
    up[:, 1:] = np.where(right[:, None], heads, 0)
    roots = np.count_nonzero(up[:, 1:] == 0, axis=1)
    for _ in range(n.bit_length()):
        up = np.take_along_axis(up, up, axis=1)
    return right & (up == 0).all(axis=1) & ((roots == 1) if single_root else True)


def check_heads(heads: np.ndarray, single_root: bool, name: str) -> None:
    """Refuse heads (n,) that do not make a tree, saying why."""
    n = heads.size
    if ((heads < 0) | (heads > n)).any():
        raise ValueError(f"{name} must hold heads 0 (the root) to {n}; got {heads[(heads < 0) | (heads > n)][0]}")
    own = heads == np.arange(1, n + 1)
    if own.any():
        raise ValueError(f"{name} makes token {own.argmax() + 1} its own head")
    if not is_tree(np.ascontiguousarray(heads, dtype=np.intp)):
        raise ValueError(f"{name} has a cycle: not every token reaches the root")
    roots = np.count_nonzero(heads == 0)
    if single_root and roots != 1:
        raise ValueError(f"{name} has {roots} tokens at the root where single_root=True allows exactly one")


def _refuse_infeasible(infeasible: np.ndarray, single_root: bool) -> None:
    if infeasible.any():
        rule = " with a single root" if single_root else ""
        raise ValueError(f"scores must leave a tree{rule} possible; scores[{infeasible.argmax()}] forbids every one")


class ArborescenceGame(Game):
    """The Hamming loss of heads, or of heads and labels, between two trees of the same tokens.

    Parameters
    ----------
    polytope : Arborescences
        Where both players choose.
    weights : ndarray (n,)
        What a wrong head costs.
    """

    smooths = True
    labels: Arborescences

    def __init__(self, polytope: Arborescences, weights: np.ndarray):
        costs = np.broadcast_to(weights.reshape(-1, *(1,) * (len(polytope.shape) - 1)), polytope.shape)
        super().__init__(polytope, polytope, Hamming(costs, 1.0 / polytope.n))
        self.weights = weights

    def project(self, scores: np.ndarray) -> Projection:
        """See :meth:`Arborescences.project`."""
        return self.labels.project(scores)

    def marginals(self, scores: np.ndarray) -> np.ndarray:
        """See :meth:`Arborescences.marginals`."""
        return self.labels.marginals(scores)

    def log_partition(self, scores: np.ndarray) -> np.ndarray:
        """See :meth:`Arborescences.log_partition`."""
        return self.labels.log_partition(scores)

    def solve(
        self,
        scores: np.ndarray,
        *,
        smoothing: float = 0.0,
        tol: float = 1e-10,
        n_jobs: int | None = None,
        start: Equilibrium | None = None,
    ) -> Equilibrium:
        """Equilibrium of every sentence of ``scores`` (b, \\*shape), in their precision.

        A score of ``-inf`` forbids its arc to both players. A sentence with NaN gives NaN. Where arcs have no labels
        and none is forbidden, ``q`` lies in the polytope up to rounding, else up to about ``tol``.

        Parameters
        ----------
        scores : array (b, \\*shape)
        smoothing : float
            ``mu`` in ``- mu/2 (|q|² - <1, q>)``: makes ``F`` differentiable, at most ``mu n / 2`` above the exact game
            and never below it.
        tol : float
            Accuracy of the interior point method; gaps end within about a hundred times of it. Most games without
            labels and smoothing whose wrong heads cost the same are solved by pivots, up to rounding.
        n_jobs : int, optional
            Threads, each for a part of the batch.
        start : Equilibrium, optional
            Not used: the solver begins at a projection of the scores.
        """
        scores = self.labels.checked(scores)
        smoothing, tol = not_negative("smoothing", smoothing), not_negative("tol", tol)
        (b, n), dtype, single_root = scores.shape[:2], scores.dtype, self.labels.single_root
        theta = scores.astype(np.float64, copy=False).reshape(b, n * (n + 1), self.labels.n_labels or 1)
        (value, gap, entropy, risk), (q, p) = np.empty((4, b)), np.empty((2, *theta.shape))
        price = np.ascontiguousarray(self.weights, dtype=np.float64)
        arguments, found = (theta, price, smoothing, single_root, tol), (value, q, p, gap, entropy, risk)
        in_threads(lambda first, last: solve_trees(*arguments, first, last, *found), b, n_jobs)
        aim = tol * (1.0 + self.weights.sum() + n * smoothing)
        if not gap.max(initial=0.0) <= 20.0 * aim:  # twice what the interior point method ends with
            _refuse_infeasible(gap == np.inf, single_root)
            for i in np.flatnonzero(gap > 20.0 * aim).tolist() if smoothing == 0.0 else ():
                if np.isneginf(scores[i]).sum() > n * (self.labels.n_labels or 1):
                    self._replay(i, scores, found)
            warn_missed(gap > 1e3 * aim, gap, "games", 1e3 * tol)
        value, q, p, gap, entropy, risk = (x.astype(dtype, copy=False) for x in found)
        return Equilibrium(value, q.reshape(scores.shape), p.reshape(scores.shape), gap, entropy, risk)

    def _replay(self, i: int, scores: np.ndarray, found: tuple[np.ndarray, ...]) -> None:
        """By the double oracle, a game whose polytope has no interior because of the arcs that are forbidden."""
        again = super().solve(scores[i : i + 1])
        if again.gap[0] < found[3][i]:
            new = again.value, again.q, again.p, again.gap, again.entropy, again.risk
            for x, one in zip(found, new, strict=True):
                x[i] = one.reshape(x[i].shape)

    def _forbidden(self, reward: np.ndarray, scores: np.ndarray | None) -> np.ndarray:
        return reward if scores is None else np.where(np.isneginf(scores), -np.inf, reward)
