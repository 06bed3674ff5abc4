"""The game of cost matrices that differ from row to row, solved by ``nashlearn.kernels.row_costs``.

Row ``i`` has the loss ``w_i L_i``: a matrix for each row, or one for all with a factor for each. The latter are the
weighted losses of [fathony2019]_ (sec. 2.4.4): they weigh the loss and leave the moments ``<theta, y>`` as they are.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

import nashlearn.kernels.row_costs as kernel
from nashlearn.games.rows.simplex import SimplexGame

__all__ = ["RowCostGame", "RowCosts", "row_cost_params"]


class RowCosts(NamedTuple):
    """Matrices (n, options, labels) or one (1, options, labels), factors (n,), and the largest entry of all."""

    costs: np.ndarray
    factors: np.ndarray
    largest: float

    def compiled(self) -> Any:
        """The loss as compiled code knows it."""
        return kernel.RowCosts(*self)

    def part(self, rows: Any) -> RowCosts:
        """The parameters of some rows; a slice copies nothing."""
        costs = self.costs if len(self.costs) == 1 < self.factors.size else self.costs[rows]
        return RowCosts(np.ascontiguousarray(costs), np.ascontiguousarray(self.factors[rows]), self.largest)


def row_cost_params(costs: np.ndarray, factors: np.ndarray) -> RowCosts:
    """Parameters for finite costs of any sign, C-ordered float64, one matrix or as many as there are factors."""
    return RowCosts(costs, factors, float(row_sizes(costs, factors).max(initial=0.0)) or 1.0)


def row_sizes(costs: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """The largest absolute cost of each row, without a copy of all."""
    return factors * np.maximum(costs.max(axis=(1, 2)), -costs.min(axis=(1, 2)))


class RowMatrices:
    """The matrices of all rows as one operator: ``loss @ q`` for columns ``q`` (labels, n), each with its own."""

    def __init__(self, costs: np.ndarray, factors: np.ndarray):
        self.costs, self.factors = costs, factors
        self.shape = costs.shape[1:]

    @property
    def T(self) -> RowMatrices:
        """The operator of the transposed matrices."""
        return RowMatrices(self.costs.swapaxes(1, 2), self.factors)

    def __matmul__(self, columns: np.ndarray) -> np.ndarray:
        """A product (rows of a matrix, n); O(n options labels)."""
        columns = np.asarray(columns)
        if columns.shape != (self.shape[1], self.factors.size):
            raise ValueError(f"{self.factors.size} rows have costs of their own; got {columns.shape[1:]} columns")
        return np.einsum(
            "iab,bi->ai", np.broadcast_to(self.costs, (self.factors.size, *self.shape)), columns * self.factors
        )


class RowCostGame(SimplexGame):
    """A cost matrix for each row. It has ``n_rows`` of them and takes scores of as many."""

    def __init__(self, params: RowCosts):
        super().__init__(params, params.costs.shape[2], params.costs.shape[1])

    @property
    def n_rows(self) -> int:
        """Rows that have costs."""
        return self.params.factors.size

    def part(self, rows: Any) -> RowCostGame:
        """The game of some rows, a slice or their indices."""
        return RowCostGame(self.params.part(rows))

    @property
    def loss(self) -> RowMatrices:
        """All matrices as one operator."""
        return RowMatrices(self.params.costs, self.params.factors)

    @property
    def costs(self) -> np.ndarray:
        """The cost matrices (n, options, labels), each with its factor."""
        return self.params.factors[:, None, None] * self.params.costs

    @cached_property
    def scale(self) -> float:
        """The mean risk of the rows without scores; 1 where nothing costs."""
        value = self.equilibria(np.zeros((self.n_rows, self.n_labels))).value
        return float(value.mean()) if value.any() else 1.0

    @cached_property
    def largest(self) -> float:
        """The largest cost of all rows, 1 where nothing costs."""
        return self.params.largest

    def typical(self, omega: np.ndarray) -> float:
        """The mean, with shares ``omega`` (n,), of the rows' largest costs, relative to the largest of all."""
        return float(omega @ row_sizes(self.params.costs, self.params.factors)) / self.params.largest or 1.0

    @property
    def unit(self) -> float:
        """The largest cost of all rows, to which their values are exact."""
        return self.params.largest

    @property
    def answers_by_scores(self) -> bool:
        """False, since which option has the largest ``p`` depends on the costs of the row."""
        return False

    def _checked(self, scores: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        scores = super()._checked(scores, n_jobs)
        if len(scores) != self.n_rows:
            raise ValueError(f"scores must have one row for each of the {self.n_rows} rows of costs; got {len(scores)}")
        return scores
