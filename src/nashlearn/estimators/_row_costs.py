"""Costs of each row: the argument ``costs`` of ``fit`` and of predictions.

``costs`` are factors (n,) on the estimator's own loss or, where its options allow, a cost matrix (n, options, labels)
for each row. They weigh the loss alone ([fathony2019]_, sec. 2.4.4): the moments ``<theta, y>`` stay as they are, where
``sample_weight`` weighs both, and how many rows there are is not changed.

The largest cost of all training rows is the unit ``s`` of :mod:`nashlearn.estimators._tempering`. A model keeps that
unit, not the costs: predictions are told those of their own rows, or else play the estimator's own loss.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from nashlearn.dask.collections import is_collection
from nashlearn.games._check import cost_matrices, row_factors
from nashlearn.games.rows.row_costs import RowCostGame, row_cost_params

__all__ = ["RowCostNash", "matrices_for"]


class RowCostNash:
    """Estimators of one label per row that take ``costs``."""

    _game: Any
    _largest: float

    def _given_costs(self, costs: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Matrices, or the one of the estimator's own loss, and the factors (n,) of ``n`` rows, checked."""
        if is_collection(costs):
            raise ValueError("costs must be an array: Dask collections of costs are not supported.")
        if np.ndim(costs) != 1:
            return self._given_matrices(costs, n), np.ones(n)
        return self._game.costs[None], row_factors(costs, n, "costs")

    def _given_matrices(self, costs: Any, n: int) -> np.ndarray:
        raise ValueError(
            f"costs must have shape ({n},) for {type(self).__name__}, factors on its own loss; got {np.shape(costs)}. "
            "A cost matrix for each row is for NashClassifier."
        )

    def _game_of(self, costs: Any, n: int) -> Any:
        """The game that ``n`` rows play: the estimator's own where no costs are given."""
        return self._game if costs is None else RowCostGame(row_cost_params(*self._given_costs(costs, n)))

    def _with_costs(self, setting: Any, costs: Any, n: int, kept: np.ndarray) -> Any:
        """The setting of training with the costs of those of ``n`` rows that are ``kept``; their unit is kept here."""
        matrices, factors = self._given_costs(costs, n)
        if kept.size < n:
            matrices, factors = matrices if len(matrices) < n else matrices[kept], factors[kept]
        game = RowCostGame(row_cost_params(matrices, factors))
        estimator: Any = self
        # The unit of own losses need not be their largest cost: it is one grade where labels are grades.
        estimator._temper(game.largest * (self._largest / self._game.largest))
        return setting._replace(game=game, mu=estimator._mu, unit=estimator._unit)

    def _of_typical_costs(self, game: Any, omega: np.ndarray) -> float:
        """What ``alpha="auto"`` is multiplied by where most rows have less at stake than the largest cost ``s``.

        With ``r`` the mean of the rows' largest costs over ``s``, losses are of the size of ``(r + m) / (1 + m)``, and
        those of equal rows are of the size of 1. Regularisation is relative to that, so that it is still what
        LogisticRegression's ``C = 1`` would be.
        """
        m: float = cast(Any, self).smoothing_
        return (1.0 + m) / (game.typical(omega) + m)

    def _charged(self, paid: np.ndarray, costs: Any) -> np.ndarray:
        """What rows pay by their ``costs`` (n,), where they would pay these by the estimator's own loss."""
        return paid if costs is None else paid * self._given_costs(costs, paid.size)[1]


def matrices_for(costs: Any, n: int, options: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Checked costs (n, options, labels)."""
    matrices = cost_matrices(costs)
    if len(matrices) != n:
        raise ValueError(f"costs must have one matrix for each of the {n} rows; got shape {matrices.shape}")
    if matrices.shape[1] != options.size:
        raise ValueError(
            f"costs must have {options.size} options, those of the loss, {options.tolist()}; got shape "
            f"{matrices.shape}. For others, give the estimator a loss with these options: a matrix, such as the mean "
            "of the costs over rows, a data frame or a dictionary that names them."
        )
    if matrices.shape[2] != classes.size:
        raise ValueError(
            f"costs must have {classes.size} labels, those of y in the order {classes.tolist()}; got shape "
            f"{matrices.shape}"
        )
    return matrices
