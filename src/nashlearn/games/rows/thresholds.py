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

from nashlearn.games.rows import kernels
from nashlearn.games.rows.game import RowGame
from nashlearn.games.rows.kernels import implements

__all__ = ["Cube", "ThresholdGame", "Thresholds"]


class Thresholds(NamedTuple):
    """Parameters of the threshold game: the number of thresholds."""

    m: int

    @property
    def separate(self) -> bool:
        """Each threshold is a game of its own: scores have nothing in common."""
        return True


class Cube:
    """[0, 1]^m. A label is a boolean vector, the vertex itself, or an integer: how many leading entries are 1."""

    def __init__(self, m: int):
        self.m = m
        self.shape = (m,)

    def argmax(self, scores: np.ndarray) -> np.ndarray:
        """Which scores are positive, (n, m)."""
        return np.asarray(scores) > 0

    def vertex(self, labels: np.ndarray) -> np.ndarray:
        """Rows (n, m) of zeros and ones."""
        labels = np.asarray(labels)
        if labels.shape[1:] == (self.m,) and labels.dtype == bool:
            return labels.astype(np.float64)
        if labels.ndim != 1 or labels.dtype.kind not in "iu" or ((labels < 0) | (labels > self.m)).any():
            raise ValueError(f"y must hold integers 0..{self.m}, or boolean rows of length {self.m}; got {labels!r}")
        return (labels[:, None] > np.arange(self.m)).astype(np.float64)

    def outside(self, points: np.ndarray) -> float:
        """How far rows lie outside at most, as sums of absolute values."""
        return self.m * float(max(-points.min(initial=0.0), points.max(initial=1.0) - 1.0, 0.0))


class ThresholdGame(RowGame):
    """``m`` independent binary games, for ``m + 1`` ordered labels. O(m) a row.

    The loss ``sum_l p_l + q_l - 2 p_l q_l`` has terms that are not bilinear: its matrix has one row and one column
    more than there are thresholds, for a last coordinate 1 of either strategy.
    """

    def __init__(self, m: int):
        loss = np.zeros((m + 1, m + 1))
        loss[:m, :m] = -2.0 * np.eye(m)
        loss[:m, m] = loss[m, :m] = 1.0
        super().__init__(Cube(m), Cube(m), loss)
        self.params = Thresholds(m)
        self.n_labels = self.n_options = m
        self.uncertain = np.full(m, 0.5)
        self.scale = self.unit = 1.0


@implements(kernels.equilibrium, Thresholds)
def _equilibrium(loss, scores, q, p):
    value = 0.0
    for c in range(scores.size):
        f = np.float64(scores[c])
        if np.isnan(f):
            q[:], p[:] = np.nan, np.nan
            return np.nan
        p[c] = min(max(0.5 * (1.0 + f), 0.0), 1.0)
        q[c] = 0.0 if f < -1.0 else (1.0 if f > 1.0 else 0.5)
        value += max(0.0, f, 0.5 * (1.0 + f))
    return value


@implements(kernels.common, Thresholds)
def _common(loss, scores):
    return 0.0


@implements(kernels.gain, Thresholds)
def _gain(loss, p, reward):
    total = 0.0
    for c in range(p.size):
        reward[c] += 1.0 - 2.0 * p[c]
        total += p[c]
    return total


@implements(kernels.reply, Thresholds)
def _reply(loss, reward, a):
    total = 0.0
    for c in range(reward.size):
        if reward[c] > 0.0:
            q = 1.0 if reward[c] >= a else reward[c] / a
            total += q * (reward[c] - 0.5 * a * q)
    return total


@implements(kernels.risk, Thresholds)
def _risk(loss, q):
    total = 0.0
    for c in range(q.size):
        total += min(np.float64(q[c]), 1.0 - q[c])
    return total


@implements(kernels.prox, Thresholds)
def _prox(loss, m, g, a, q, p):
    for c in range(m):
        left, right = (g[c] + 1.0) / a, (g[c] - 1.0) / a  # optima of the two pieces, below and above 1/2
        q[c] = max(left, 0.0) if left < 0.5 else (min(right, 1.0) if right > 0.5 else 0.5)
        p[c] = min(max(0.5 * (1.0 + g[c] - 0.5 * a), 0.0), 1.0)  # between 0 and 1 at the kink alone


@implements(kernels.tangent, Thresholds)
def _tangent(loss, a, q, p, jacobian):
    free = 0
    jacobian[:] = 0.0
    for c in range(q.size):
        if 0.0 < q[c] < 1.0 and q[c] != 0.5:  # at the kink q stands still
            jacobian[c, c] = 1.0 / a
            free += 1
    return free
