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

from typing import Any, NamedTuple

import numpy as np

import nashlearn.kernels.thresholds as kernel
from nashlearn.games.rows.game import RowGame

__all__ = ["Cube", "ThresholdGame", "Thresholds"]


class Thresholds(NamedTuple):
    """Parameters of the threshold game: the number of thresholds."""

    m: int

    def compiled(self) -> Any:
        """The loss as compiled code knows it."""
        return kernel.Thresholds(self.m)


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
        self.scale = self.unit = self.largest = 1.0
