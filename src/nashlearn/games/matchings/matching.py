"""Games between matchings: each element of a left set gets a partner of the right set, or none.

The polytope of complete matchings is that of doubly stochastic matrices (Birkhoff), and the Hamming loss of two
matchings is ``n - <p, q>``, so that the game over all ``n!`` permutations is one over matrices ([fathony2019]_,
ch. 4):

.. math:: F(\\theta) = \\max_{q} \\min_{p} \\; \\langle\\theta, q\\rangle + \\langle w, q\\rangle
          - \\langle p, w \\circ q\\rangle - \\tfrac{\\mu}{2} (|q|^2 - \\langle 1, q\\rangle) .

``w`` is what missing a pair costs, 1 unless told otherwise. The smoothing ``mu`` takes off what is 0 at every matching;
``mu = 0`` gives the published game.
It is solved by the interior point method of ``nashlearn.kernels.interior`` in about ten to thirty iterations of O(n³).
In a partial matching elements of either side may stay alone; they pair with a last column (leaving) and a last row
(entering) of the scores, which the polytope lets sum to anything, so that no node is doubled.
"""

from __future__ import annotations

import numpy as np

from nashlearn.game import Equilibrium, Game
from nashlearn.games._check import not_negative, refuse_nan, score_size, structured_scores, warn_missed
from nashlearn.games.hamming import Hamming
from nashlearn.kernels.assignment import argmax_each
from nashlearn.kernels.birkhoff import project_each
from nashlearn.kernels.matchings import solve_matchings
from nashlearn.solvers.threads import in_threads

__all__ = ["MatchingGame", "Matchings"]


class Matchings:
    """The polytope of complete matchings of ``n`` with ``n`` elements, or of partial ones of ``n1`` with ``n2``.

    A label is an array of the partners of the left elements, -1 for none. Its vertex is a 0/1 matrix of ``shape``:
    (n, n), or (n1 + 1, n2 + 1) with leaving in the last column, entering in the last row and 0 in the corner.
    """

    def __init__(self, n1: int, n2: int, partial: bool):
        self.n1, self.n2, self.partial = n1, n2, partial
        self.shape = (n1 + partial, n2 + partial)

    def argmax(self, scores: np.ndarray) -> np.ndarray:
        """Partners (b, n1) of the best matching for each matrix of ``scores``, any of them at a tie. O(n³)."""
        scores = self.checked(scores)
        refuse_nan(scores, "the best matching")
        column = np.empty((scores.shape[0], self.n1), np.intp)
        _refuse(argmax_each(np.ascontiguousarray(scores, np.float64), self.partial, column))
        return column

    def vertex(self, labels: np.ndarray) -> np.ndarray:
        """Matrices (b, \\*shape) of matchings ``labels`` (b, n1)."""
        labels = self.checked_labels(labels)
        b, left = np.nonzero(labels >= 0)
        vertices = np.zeros((labels.shape[0], *self.shape))
        vertices[b, left, labels[b, left]] = 1.0
        if self.partial:
            vertices[:, : self.n1, self.n2] = labels < 0
            vertices[:, self.n1, : self.n2] = 1.0 - vertices[:, : self.n1, : self.n2].sum(axis=1)
        return vertices

    def project(self, scores: np.ndarray) -> np.ndarray:
        """The nearest points (b, \\*shape) of the polytope; rows and columns sum to 1 up to 1e-10 or better.

        Cost: one assignment and about ten sparse linear systems of size n (``nashlearn.kernels.birkhoff``).
        """
        scores = self.checked(scores)
        refuse_nan(scores, "the nearest point")
        x, residual = np.empty(scores.shape), np.empty(scores.shape[0])
        _refuse(project_each(np.ascontiguousarray(scores, np.float64), self.partial, 1e-12, x, residual))
        warn_missed(residual > 1e-10 * np.maximum(1.0, score_size(scores)), residual, "projections", 1e-10)
        return x.astype(scores.dtype)

    def checked(self, scores: np.ndarray) -> np.ndarray:
        """Scores as float32 or float64 of shape (b, \\*shape); the corner of a partial matching is made 0."""
        void = (-1, -1) if self.partial else (slice(0), slice(0))
        return structured_scores(scores, self.shape, void, 0.0, "matrix", "pair")

    def checked_labels(self, y: np.ndarray) -> np.ndarray:
        """Labels as integers (b, n1), each a matching."""
        y = np.asarray(y)
        if y.ndim != 2 or y.shape[1] != self.n1:
            raise ValueError(f"y must have shape (b, {self.n1}), the partner of each left element; got {y.shape}")
        if y.dtype.kind not in "iu" and y.size:
            raise ValueError(f"y must hold integers; got dtype {y.dtype}")
        y = y.astype(np.int64)
        least = -1 if self.partial else 0
        if ((y < least) | (y >= self.n2)).any():
            wrong = y[(y < least) | (y >= self.n2)][0]
            alone = " or -1 for none" if self.partial else ""
            raise ValueError(f"y must hold partners 0..{self.n2 - 1}{alone}; got {wrong}")
        ordered = np.sort(y, axis=1)
        twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
        if twice.any():
            b = twice.any(axis=1).argmax()
            raise ValueError(
                f"y must match each right element at most once; y[{b}] has {ordered[b, 1:][twice[b]][0]} twice"
            )
        return y


def _refuse(infeasible: int) -> None:
    if infeasible >= 0:
        raise ValueError(f"scores must leave a matching possible; scores[{infeasible}] forbids every one")


class MatchingGame(Game):
    """The Hamming loss, weighted or not, between two matchings of the same elements.

    Parameters
    ----------
    polytope : Matchings
        Where both players choose.
    weights : ndarray of its shape
        What missing each pair of the true matching costs.
    """

    smooths = True
    labels: Matchings

    def __init__(self, polytope: Matchings, weights: np.ndarray):
        super().__init__(polytope, polytope, Hamming(weights, _unit(polytope)))
        self.weights = weights
        self._scale = 10.0 * (1.0 + weights.sum(axis=1).max())

    def project(self, scores: np.ndarray) -> np.ndarray:
        """See :meth:`Matchings.project`."""
        return self.labels.project(scores)

    def solve(
        self,
        scores: np.ndarray,
        *,
        smoothing: float = 0.0,
        tol: float = 1e-9,
        n_jobs: int | None = None,
        start: Equilibrium | None = None,
    ) -> Equilibrium:
        """Equilibrium of every matrix of ``scores`` (b, \\*shape), in their precision.

        A score of ``-inf`` forbids its pair to both players. A matrix with NaN gives NaN.

        Parameters
        ----------
        scores : array (b, \\*shape)
        smoothing : float
            ``mu`` in ``- mu/2 (|q|² - <1, q>)``: makes ``F`` differentiable, at most ``mu (n1 + n2) / 2`` above the
            exact game and never below it.
        tol : float
            Gap to aim at, relative to the number of elements; a looser one saves iterations. Rows and columns of both
            strategies sum to 1 up to about a tenth of it, and their gap is known to as much.
        n_jobs : int, optional
            Threads, each for a part of the batch.
        start : Equilibrium, optional
            Not used: the solver begins at a projection of the scores.
        """
        scores = self.labels.checked(scores)
        smoothing, tol = not_negative("smoothing", smoothing), not_negative("tol", tol)
        b, dtype = len(scores), scores.dtype
        theta = np.ascontiguousarray(scores, np.float64)
        (value, gap, entropy, risk), (q, p) = np.empty((4, b)), np.empty((2, *scores.shape))
        found = value, q, p, gap, entropy, risk
        weights = np.ascontiguousarray(self.weights, np.float64)
        arguments = theta, weights, self.labels.partial, smoothing, tol
        in_threads(lambda first, last: solve_matchings(*arguments, first, last, *found), b, n_jobs)
        if not gap.max(initial=0.0) <= tol * self._scale:
            _refuse(int((gap == np.inf).argmax()) if np.isposinf(gap).any() else -1)
            warn_missed(gap > tol * self._scale, gap, "games", tol)
        return Equilibrium(*(x.astype(dtype, copy=False) for x in found))

    def _forbidden(self, reward: np.ndarray, scores: np.ndarray | None) -> np.ndarray:
        return reward if scores is None else np.where(np.isneginf(scores), -np.inf, reward)


def _unit(polytope: Matchings) -> np.ndarray:
    """Entries whose inner product with every matching is 1: those of left elements or, where none are, of right ones.

    Nothing is matched with nothing by a matrix of 0, for which there are no such entries; it loses nothing either.
    """
    unit = np.zeros(polytope.shape)
    if polytope.n1:
        unit[: polytope.n1] = 1.0 / polytope.n1
    elif polytope.n2:
        unit[:, : polytope.n2] = 1.0 / polytope.n2
    return unit
