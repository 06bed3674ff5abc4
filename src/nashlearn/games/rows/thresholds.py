"""The product of binary games, one per threshold between ordered labels: the thresholded ordinal loss.

The predictor and the adversary choose, for each threshold ``l``, the probability that the label lies above it.
With scores ``s - eta_l`` for sorted thresholds ``eta`` this game has the value of the absolute-loss game with
scores ``f_j = sum_{l < j} (s - eta_l)``, the AL^ord-th of [fathony2019]_ (eq. 2.34): both maxima of the closed
form are attained where a prefix of the thresholds lies below ``s + 1`` and ``s - 1``. Each threshold is worth

    F(f) = max_{0 <= q <= 1} f q + min(q, 1 - q) = max(0, f, (1 + f) / 2).

Training may treat the thresholds as independent: a pair in the wrong order never lowers the objective, since
averaging it leaves both maxima as they are, raises the true label's score and shortens the weights.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.extending import overload

from nashlearn.game import Equilibrium, Game
from nashlearn.games.rows import kernels

__all__ = ["ThresholdGame", "Thresholds"]


class Thresholds(NamedTuple):
    """Parameters of the threshold game: the number of thresholds."""

    m: int

    @property
    def own_common(self) -> bool:
        """Each threshold is a game of its own: scores have nothing in common."""
        return True


class _Cube:
    """[0, 1]^m, whose label ``y`` stands for the vertex with ``y`` leading ones."""

    def __init__(self, m: int):
        self.m = m

    def argmax(self, scores: np.ndarray) -> np.ndarray:
        """How many scores are positive: the best label where the thresholds are sorted."""
        return (np.asarray(scores) > 0).sum(axis=1)

    def vertex(self, labels: np.ndarray) -> np.ndarray:
        """1 for each threshold below the label."""
        return (np.asarray(labels)[:, None] > np.arange(self.m)).astype(np.float64)

    def outside(self, points: np.ndarray) -> float:
        """How far rows lie outside at most, as sums of absolute values."""
        return self.m * float(max(-points.min(initial=0.0), points.max(initial=1.0) - 1.0, 0.0))


class ThresholdGame(Game):
    """``m`` independent binary games, for ``m + 1`` ordered labels."""

    def __init__(self, m: int):
        self.params = Thresholds(m)
        self.n_labels = self.n_options = m
        self.labels = self.options = _Cube(m)
        self.uncertain = np.full(m, 0.5)
        self.scale = self.unit = 1.0

    def solve(self, scores: np.ndarray) -> Equilibrium:  # type: ignore[override]  # exact
        """Equilibrium of every row of ``scores`` (n, m); O(m) a row."""
        scores = np.ascontiguousarray(scores, dtype=np.float64)
        n = scores.shape[0]
        value, gap, q, p = np.empty(n), np.empty(n), np.empty_like(scores), np.empty_like(scores)
        kernels.solve_rows(self.params, scores, value, q, p, gap)
        return Equilibrium(value, q, p, gap)


@overload(kernels.equilibrium)
def _equilibrium(loss, scores, q, p):
    if loss.instance_class is not Thresholds:
        return None

    def solve(loss, scores, q, p):
        value = 0.0
        for c in range(scores.size):
            f = np.float64(scores[c])
            p[c] = min(max(0.5 * (1.0 + f), 0.0), 1.0)
            q[c] = 0.0 if f < -1.0 else (1.0 if f > 1.0 else 0.5)
            value += max(0.0, f, 0.5 * (1.0 + f))
        return value

    return solve


@overload(kernels.common)
def _common(loss, scores):
    if loss.instance_class is not Thresholds:
        return None

    def nothing(loss, scores):
        return 0.0

    return nothing


@overload(kernels.best_reply)
def _best_reply(loss, scores, p):
    if loss.instance_class is not Thresholds:
        return None

    def reply(loss, scores, p):
        value = 0.0
        for c in range(p.size):
            value += max(np.float64(p[c]), np.float64(scores[c]) + 1.0 - p[c])
        return value

    return reply


@overload(kernels.risk)
def _risk(loss, q):
    if loss.instance_class is not Thresholds:
        return None

    def bayes(loss, q):
        total = 0.0
        for c in range(q.size):
            total += min(np.float64(q[c]), 1.0 - q[c])
        return total

    return bayes


@overload(kernels.prox)
def _prox(loss, m, g, a, q, p):
    if loss.instance_class is not Thresholds:
        return None

    def step(loss, m, g, a, q, p):
        for c in range(m):
            left, right = (g[c] + 1.0) / a, (g[c] - 1.0) / a  # optima of the two pieces, below and above 1/2
            q[c] = max(left, 0.0) if left < 0.5 else (min(right, 1.0) if right > 0.5 else 0.5)
            p[c] = 1.0 if q[c] == 0.5 else 0.0  # marks the kink: there q stands still

    return step


@overload(kernels.tangent)
def _tangent(loss, a, q, p, jacobian):
    if loss.instance_class is not Thresholds:
        return None

    def derivative(loss, a, q, p, jacobian):
        free = 0
        jacobian[:] = 0.0
        for c in range(q.size):
            if 0.0 < q[c] < 1.0 and p[c] == 0.0:
                jacobian[c, c] = 1.0 / a
                free += 1
        return free

    return derivative
