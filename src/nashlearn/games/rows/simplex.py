"""Games over the probability simplex: one label out of ``k`` against one option out of several."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from nashlearn.games._check import label_count
from nashlearn.games.rows.game import RowGame

__all__ = ["Simplex", "SimplexGame"]


class Simplex:
    """The probability simplex with ``k`` vertices. A label is an integer 0..k-1, its vertex one-hot."""

    def __init__(self, k: int):
        self.k = label_count(k)

    def argmax(self, scores: np.ndarray) -> np.ndarray:
        """The label of the largest score of each row, the first of them at a tie."""
        return np.argmax(scores, axis=1)

    def vertex(self, labels: np.ndarray) -> np.ndarray:
        """One-hot rows (n, k)."""
        labels = np.asarray(labels)
        if labels.ndim != 1:
            raise ValueError(f"y must hold one label for each row; got shape {labels.shape}")
        if labels.size and labels.dtype.kind not in "iu":
            raise ValueError(f"y must hold integer labels 0..{self.k - 1}; got dtype {labels.dtype}")
        wrong = (labels < 0) | (labels >= self.k)
        if wrong.any():
            raise ValueError(f"y must hold labels 0..{self.k - 1}; got {labels[wrong][0]}")
        labels = labels.astype(np.intp)
        one_hot = np.zeros((labels.shape[0], self.k))
        one_hot[np.arange(labels.shape[0]), labels] = 1.0
        return one_hot

    def outside(self, points: np.ndarray) -> float:
        """How far rows lie outside at most, as sums of absolute values: what normalising them would change."""
        if not points.size:
            return 0.0
        return float(np.abs(points @ np.ones(self.k) - 1.0).max() + 2.0 * self.k * max(-points.min(), 0.0))


class SimplexGame(RowGame):
    """A loss between options and labels, solved exactly, row by row, in compiled code.

    Parameters
    ----------
    params : NamedTuple
        The parameters of the loss, which make it for compiled code.
    n_labels, n_options : int
        Columns and rows of its cost matrix.
    """

    def __init__(self, params: Any, n_labels: int, n_options: int):
        self.params = params
        self.n_labels = n_labels
        self.n_options = n_options
        self.labels = Simplex(n_labels)
        self.options = Simplex(n_options)

    @property
    def uncertain(self) -> np.ndarray:
        """The uniform strategy, where training starts from."""
        return np.full(self.n_labels, 1.0 / self.n_labels)

    @cached_property
    def scale(self) -> float:
        """The risk of a game without scores, ``F(0)``: the unit of its scores; 1 where nothing costs."""
        return float(self.solve(np.zeros((1, self.n_labels))).value[0]) or 1.0

    @cached_property
    def largest(self) -> float:
        """The largest entry of the cost matrix, the unit of smoothing; 1 where nothing costs."""
        return getattr(self.params, "largest", 0.0) or float(self.costs.max()) or 1.0

    @property
    def unit(self) -> float:
        """The size of the numbers that values are computed from, to which they are exact."""
        return self.scale

    @cached_property
    def costs(self) -> np.ndarray:
        """The cost matrix ``L`` (options, labels): row ``i`` is what option ``i`` costs for each label."""
        return np.array(self.params.L)

    def loss_bounds(self) -> tuple[float, float]:
        """The least and the largest cost."""
        return float(self.costs.min()), float(self.costs.max())

    @cached_property
    def answers_by_scores(self) -> bool:
        """Whether the largest score always has the largest ``p``: any mistake costs the same, and more than none."""
        k = self.n_labels
        if self.n_options != k:
            return False
        right, wrong = np.diagonal(self.costs), self.costs[~np.eye(k, dtype=bool)]
        return bool((right == right[0]).all() and (wrong == wrong[:1]).all() and (wrong[:1] > right[0]).all())

    @property
    def loss(self) -> Any:
        """The same matrix, under the name that every game has."""
        return self.costs

    def _possible(self, top: np.ndarray) -> None:
        if np.isneginf(top).any():
            raise ValueError(f"scores must leave a label possible; row {np.isneginf(top).argmax()} is -inf throughout")
