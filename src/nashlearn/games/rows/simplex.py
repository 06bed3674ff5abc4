"""Games over the probability simplex: one label out of ``k`` against one option out of several."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from nashlearn.game import Equilibrium, Game
from nashlearn.games._check import label_count
from nashlearn.games.rows import kernels

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
        one_hot = np.zeros((labels.shape[0], self.k))
        one_hot[np.arange(labels.shape[0]), labels] = 1.0
        return one_hot

    def outside(self, points: np.ndarray) -> float:
        """How far rows lie outside at most, as sums of absolute values: what normalising them would change."""
        if not points.size:
            return 0.0
        return float(np.abs(points.sum(axis=1) - 1.0).max() + 2.0 * self.k * max(-points.min(), 0.0))


class SimplexGame(Game):
    """A loss between options and labels, solved exactly, row by row, in compiled code.

    Parameters
    ----------
    params : NamedTuple
        The loss, as :mod:`nashlearn.games.rows.kernels` wants it.
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

    @property
    def unit(self) -> float:
        """The size of the numbers that values are computed from, to which they are exact."""
        return self.scale

    @cached_property
    def costs(self) -> np.ndarray:
        """The cost matrix ``L`` (options, labels): row ``i`` is what option ``i`` costs for each label."""
        return np.array(self.params.matrix())

    @cached_property
    def answers_by_scores(self) -> bool:
        """Whether the largest score always has the largest ``p``: any mistake costs the same, and more than none."""
        k = self.n_labels
        if self.n_options != k:
            return False
        right, wrong = np.diagonal(self.costs), self.costs[~np.eye(k, dtype=bool)]
        return bool((right == right[0]).all() and (wrong == wrong[:1]).all() and (wrong[:1] > right[0]).all())

    @property
    def loss(self) -> np.ndarray:
        """The same matrix, under the name that every game has."""
        return self.costs

    def solve(self, scores: np.ndarray) -> Equilibrium:  # type: ignore[override]  # exact
        """Equilibrium of every row of ``scores`` (n, labels), in their precision; cost as its loss says.

        A score of ``-inf`` rules its label out. A row with NaN gives NaN.
        """
        scores = self._checked(scores)
        n, dtype = scores.shape[0], scores.dtype
        value, gap = np.empty(n, dtype), np.empty(n, dtype)
        q, p = np.empty((n, self.n_labels), dtype), np.empty((n, self.n_options), dtype)
        kernels.solve_rows(self.params, scores, value, q, p, gap)
        return Equilibrium(value, q, p, gap)

    def loss_value(self, scores: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The surrogate loss ``F(scores) - scores_y`` of each row, for integer labels ``y`` (n,)."""
        scores = self._checked(scores)
        y = np.asarray(y)
        if y.ndim != 1 or y.shape[0] != scores.shape[0]:
            raise ValueError(
                f"y must hold one label for each of the {scores.shape[0]} rows of scores; got shape {y.shape}"
            )
        if not np.issubdtype(y.dtype, np.integer) and y.size:
            raise ValueError(f"y must hold integer labels 0..{self.n_labels - 1}; got dtype {y.dtype}")
        wrong = (y < 0) | (y >= self.n_labels)
        if wrong.any():
            raise ValueError(f"y must hold labels 0..{self.n_labels - 1}; got {y[wrong][0]}")
        return self.solve(scores).value - scores[np.arange(y.size), y.astype(np.intp)]

    def _checked(self, scores: np.ndarray) -> np.ndarray:
        scores = np.asarray(scores)
        if scores.dtype not in (np.float32, np.float64):
            if scores.dtype.kind not in "biuf":
                raise ValueError(f"scores must be real numbers; got dtype {scores.dtype}")
            scores = scores.astype(np.float64)
        if scores.ndim != 2 or scores.shape[1] != self.n_labels:
            hint = "; use scores[None, :] for a single row" if scores.ndim == 1 else ""
            raise ValueError(f"scores must have shape (n, {self.n_labels}); got {scores.shape}{hint}")
        if scores.size:
            top = scores.max(axis=1)
            if np.isposinf(top).any():
                raise ValueError(f"scores must be finite or -inf; row {np.isposinf(top).argmax()} holds +inf")
            if np.isneginf(top).any():
                raise ValueError(
                    f"scores must leave a label possible; row {np.isneginf(top).argmax()} is -inf throughout"
                )
        return np.ascontiguousarray(scores)
