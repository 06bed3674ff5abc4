"""Games between matchings: each element of a left set gets a partner of the right set, or none.

The polytope of complete matchings is that of doubly stochastic matrices (Birkhoff), and the Hamming loss of two
matchings is ``n - <p, q>``, so that the game over all ``n!`` permutations is one over matrices ([fathony2019]_,
ch. 4):

.. math:: F(\\theta) = \\max_{q} \\min_{p} \\; \\langle\\theta, q\\rangle + \\langle w, q\\rangle
          - \\langle p, w \\circ q\\rangle - \\tfrac{\\mu}{2} |q|^2 .

``w`` is what missing a pair costs, 1 unless told otherwise, and ``mu`` the smoothing; 0 gives the published game.
It is solved by :mod:`nashlearn.solvers.interior` in about ten to thirty iterations of O(n³). In a partial matching
elements of either side may stay alone; they pair with a last column (leaving) and a last row (entering) of the
scores, which the polytope lets sum to anything, so that no node is doubled.
"""

from __future__ import annotations

import warnings

import numpy as np

from nashlearn.game import Equilibrium, Game, inner
from nashlearn.games._check import not_negative
from nashlearn.games.matchings.kernels import argmax_each, project_each, solve_each
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
        column = np.empty((scores.shape[0], self.n1), np.int64)
        if np.isnan(scores).any():
            raise ValueError("scores must not be NaN where the best matching is asked for")
        _refuse(argmax_each(scores.astype(np.float64), self.partial, column))
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

        Cost: one assignment and about ten sparse linear systems of size n (:mod:`nashlearn.games.matchings.birkhoff`).
        """
        scores = self.checked(scores)
        x, residual = np.empty(scores.shape), np.empty(scores.shape[0])
        if np.isnan(scores).any():
            raise ValueError("scores must not be NaN to be projected")
        _refuse(project_each(scores.astype(np.float64), self.partial, 1e-12, x, residual))
        _warn(residual > 1e-10 * np.maximum(1.0, _size(scores)), residual, "projections", 1e-10)
        return x.astype(scores.dtype)

    def checked(self, scores: np.ndarray) -> np.ndarray:
        """Scores as float32 or float64 of shape (b, \\*shape); the corner of a partial matching is made 0."""
        scores = np.asarray(scores)
        if scores.dtype.kind not in "biuf":
            raise ValueError(f"scores must be real numbers; got dtype {scores.dtype}")
        if scores.ndim != 3 or scores.shape[1:] != self.shape:
            hint = "; use scores[None] for a single matrix" if scores.ndim == 2 else ""
            raise ValueError(f"scores must have shape (b, {self.shape[0]}, {self.shape[1]}); got {scores.shape}{hint}")
        scores = np.array(scores, dtype=np.float32 if scores.dtype == np.float32 else np.float64, order="C")
        if self.partial:
            scores[:, -1, -1] = 0.0
        if np.isposinf(scores).any():
            b = np.isposinf(scores).any(axis=(1, 2)).argmax()
            raise ValueError(f"scores must be finite, or -inf for a forbidden pair; scores[{b}] holds +inf")
        return scores

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


def _inner(scores: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Inner products of matrices; a forbidden pair counts 0 where ``x`` is 0."""
    return inner(scores.reshape(len(scores), -1), x.reshape(len(x), -1))


def _size(scores: np.ndarray) -> np.ndarray:
    """The largest finite score of each matrix."""
    return np.where(np.isfinite(scores), np.abs(scores), 0.0).max(axis=(1, 2), initial=0.0)


def _refuse(infeasible: int) -> None:
    if infeasible >= 0:
        raise ValueError(f"scores must leave a matching possible; scores[{infeasible}] forbids every one")


def _warn(missed: np.ndarray, distance: np.ndarray, what: str, tol: float) -> None:
    if missed.any():
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(
            f"{missed.sum()} of {missed.size} {what} stopped at {distance[missed].max():.1e}, above tol={tol:g}",
            ConvergenceWarning,
            stacklevel=3,
        )


class MatchingGame(Game):
    """The Hamming loss, weighted or not, between two matchings of the same elements.

    Parameters
    ----------
    polytope : Matchings
        Where both players choose.
    weights : ndarray of its shape
        What missing each pair of the true matching costs.
    """

    def __init__(self, polytope: Matchings, weights: np.ndarray):
        self.labels = self.options = self.polytope = polytope
        self.weights = weights

    def argmax(self, scores: np.ndarray) -> np.ndarray:
        """See :meth:`Matchings.argmax`."""
        return self.polytope.argmax(scores)

    def vertex(self, labels: np.ndarray) -> np.ndarray:
        """See :meth:`Matchings.vertex`."""
        return self.polytope.vertex(labels)

    def project(self, scores: np.ndarray) -> np.ndarray:
        """See :meth:`Matchings.project`."""
        return self.polytope.project(scores)

    def solve(  # type: ignore[override]  # smoothing and threads instead of iterations
        self, scores: np.ndarray, *, smoothing: float = 0.0, tol: float = 1e-9, n_jobs: int = 1
    ) -> Equilibrium:
        """Equilibrium of every matrix of ``scores`` (b, \\*shape), in their precision.

        A score of ``-inf`` forbids its pair to both players. A matrix with NaN gives NaN.

        Parameters
        ----------
        scores : array (b, \\*shape)
        smoothing : float
            ``mu`` in ``- mu/2 |q|²``: makes ``F`` differentiable, at most ``mu n / 2`` below the exact game.
        tol : float
            Gap to aim at, relative to the number of elements; a looser one saves iterations. Rows and columns of both
            strategies sum to 1 up to about a tenth of it, and their gap is known to as much.
        n_jobs : int
            Threads, each for a part of the batch.

        Returns
        -------
        Equilibrium
            ``value`` is what ``q`` secures, ``value + gap`` what ``p`` may lose at most.
        """
        scores = self.polytope.checked(scores)
        smoothing, tol = not_negative("smoothing", smoothing), not_negative("tol", tol)
        b, dtype = scores.shape[0], scores.dtype
        value, entropy, gap, q, p = *np.empty((3, b)), *np.empty((2, scores.size))
        flat, weights = scores.astype(np.float64).ravel(), np.tile(self.weights.ravel(), b)
        sizes = np.tile(np.array(self.polytope.shape), (b, 1))
        offset = np.arange(b + 1) * self.weights.size
        in_threads(
            lambda start, stop: solve_each(
                *(flat, weights, sizes, offset, self.polytope.partial, smoothing, tol),
                *(start, stop, value, entropy, q, p, gap),
            ),
            b,
            n_jobs,
        )
        _refuse(int(np.isposinf(gap).argmax()) if np.isposinf(gap).any() else -1)
        _warn(gap > 10.0 * tol * (1.0 + self.weights.sum(axis=1).max()), gap, "games", tol)
        return Equilibrium(
            value.astype(dtype),
            q.reshape(scores.shape).astype(dtype),
            p.reshape(scores.shape).astype(dtype),
            gap.astype(dtype),
        )

    def loss_value(self, scores: np.ndarray, y: np.ndarray, smoothing: float = 0.0) -> np.ndarray:
        """The surrogate loss ``F(scores) - <scores, y>`` of each matrix, for matchings ``y`` (b, n1)."""
        scores = self.polytope.checked(scores)
        vertices = self.vertex(y)
        if vertices.shape[0] != scores.shape[0]:
            raise ValueError(
                f"y must hold one matching for each of the {scores.shape[0]} matrices; got {len(vertices)}"
            )
        return self.solve(scores, smoothing=smoothing).value - _inner(scores, vertices)

    def upper(self, scores: np.ndarray, p: np.ndarray) -> np.ndarray:
        """What the best adversary gets against ``p``, without smoothing."""
        scores = self.polytope.checked(scores)
        reward = scores + self.weights * (1.0 - p)
        return _inner(reward, self.vertex(self.argmax(reward)))

    def lower(self, scores: np.ndarray, q: np.ndarray) -> np.ndarray:
        """What ``q`` secures against every predictor that avoids the forbidden pairs, without smoothing."""
        scores = self.polytope.checked(scores)
        hits = np.where(np.isneginf(scores), -np.inf, self.weights * q)
        return _inner(scores + self.weights, q) - _inner(hits, self.vertex(self.argmax(hits)))
