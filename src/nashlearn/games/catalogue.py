"""The losses between an option and a label, and the one table of their names."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence

import numpy as np

from nashlearn.games._check import cost_matrices, cost_matrix, label_count, label_values, label_weights, row_factors
from nashlearn.games.rows.abstain import abstain_params
from nashlearn.games.rows.cost import CostGame, cost_params
from nashlearn.games.rows.ordinal import Absolute, Squared
from nashlearn.games.rows.row_costs import RowCostGame, row_cost_params
from nashlearn.games.rows.simplex import SimplexGame
from nashlearn.games.rows.weighted import WeightedZeroOne
from nashlearn.games.rows.zero_one import ZeroOne

__all__ = [
    "LOSSES",
    "NAMED",
    "absolute",
    "abstain",
    "cost",
    "named_costs",
    "row_costs",
    "squared",
    "suggested_name",
    "zero_one",
]


def zero_one(k: int, weights: Sequence[float] | np.ndarray | None = None) -> SimplexGame:
    """The zero-one loss of ``k`` labels: 1 for a wrong one, or the weight of the true label. O(k) a row.

    Parameters
    ----------
    k : int
        Number of labels.
    weights : array-like of shape (k,), optional
        What a mistake costs for each true label; positive. 1 by default.
    """
    k = label_count(k)
    if weights is None:
        return SimplexGame(ZeroOne(k), k, k)
    weights = label_weights(weights, k)
    return SimplexGame(WeightedZeroOne(weights, 1.0 / weights, (1.0 - np.eye(k)) * weights), k, k)


def absolute(
    k: int,
    values: Sequence[float] | np.ndarray | None = None,
    weights: Sequence[float] | np.ndarray | None = None,
) -> SimplexGame:
    """The absolute loss ``|t_i - t_j|`` of ``k`` ordered labels. O(k) a row, without weights.

    Parameters
    ----------
    k : int
        Number of labels.
    values : array-like of shape (k,), optional
        Positions of the labels, strictly increasing; 0..k-1 by default.
    weights : array-like of shape (k,), optional
        What multiplies the loss for each true label; positive. 1 by default.
    """
    t = label_values(values, label_count(k))
    L = np.abs(t[:, None] - t)
    if weights is not None:
        return cost(L * label_weights(weights, t.size))
    return SimplexGame(Absolute(t, L), t.size, t.size)


def squared(
    k: int,
    values: Sequence[float] | np.ndarray | None = None,
    weights: Sequence[float] | np.ndarray | None = None,
) -> SimplexGame:
    """The squared loss ``(t_i - t_j)^2`` of ``k`` ordered labels.

    Arguments and cost are those of :func:`nashlearn.games.absolute`.
    """
    t = label_values(values, label_count(k))
    L = (t[:, None] - t) ** 2
    if weights is not None:
        return cost(L * label_weights(weights, t.size))
    return SimplexGame(Squared(t, L), t.size, t.size)


def abstain(k: int, cost: float | Sequence[float] | np.ndarray = 0.5) -> SimplexGame:
    """The zero-one loss of ``k`` labels with a last option, to abstain. O(k) a row for a single cost.

    Parameters
    ----------
    k : int
        Number of labels.
    cost : float or array-like of shape (k,)
        What abstaining costs, whatever the label or for each; not negative.
    """
    k = label_count(k)
    try:
        price = np.asarray(cost, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"cost must be a number or one number for each label; got {cost!r}") from None
    if price.ndim > 1 or (price.ndim == 1 and price.size != k):
        raise ValueError(f"cost must be a number or one for each of the {k} labels; got shape {price.shape}")
    if not (np.isfinite(price).all() and (price >= 0).all()):
        raise ValueError(f"cost must be finite and not negative; got {cost!r}")
    L = np.vstack([1.0 - np.eye(k), np.broadcast_to(price, (1, k))])
    if price.ndim == 0:
        return SimplexGame(abstain_params(L, float(price)), k, k + 1)
    return CostGame(cost_params(L), k, k + 1)


def cost(L: Sequence[Sequence[float]] | np.ndarray) -> SimplexGame:
    """Any loss: ``L[i, j]`` is what option ``i`` costs when the label is ``j``. About a microsecond a row.

    Parameters
    ----------
    L : array-like of shape (options, labels)
        Finite and not negative.
    """
    L = cost_matrix(L)
    return CostGame(cost_params(L), L.shape[1], L.shape[0])


def row_costs(costs: np.ndarray, factors: Sequence[float] | np.ndarray | None = None) -> RowCostGame:
    """A loss for each row: ``costs[i, a, j]`` is what option ``a`` costs in row ``i`` when the label is ``j``.

    The game has as many rows as there are matrices, and takes scores of as many. About a microsecond a row for a few
    labels; nothing of the size of ``costs`` is made.

    Parameters
    ----------
    costs : array-like of shape (n, options, labels), or (options, labels) with ``factors``
        Finite and not negative. Float64 is read in place.
    factors : array-like of shape (n,), optional
        What multiplies the matrix of each row, or the one for all; finite and not negative.

    Examples
    --------
    >>> import numpy as np
    >>> from nashlearn import games
    >>> games.row_costs(1 - np.eye(2), factors=[1.0, 10.0]).solve(np.zeros((2, 2))).value
    array([0.5, 5. ])
    """
    if np.ndim(costs) == 2 and factors is not None:
        return RowCostGame(row_cost_params(cost_matrix(costs)[None], row_factors(factors)))
    matrices = cost_matrices(costs)
    weights = np.ones(len(matrices)) if factors is None else row_factors(factors, len(matrices))
    return RowCostGame(row_cost_params(matrices, weights))


# Names of losses, wherever one is named: the game of k labels, further arguments by keyword.
NAMED: dict[str, Callable[..., SimplexGame]] = {
    "zero_one": zero_one,
    "absolute": absolute,
    "squared": squared,
    "abstain": abstain,
}

# The names of losses between labels: those with no other options.
LOSSES = ("zero_one", "absolute", "squared")

# What others call them.
_ELSEWHERE = {
    **dict.fromkeys(("0-1", "01", "0/1", "accuracy", "error", "hamming"), "zero_one"),
    **dict.fromkeys(("mae", "l1", "mean_absolute_error", "ordinal"), "absolute"),
    **dict.fromkeys(("mse", "l2", "mean_squared_error", "quadratic"), "squared"),
}


def suggested_name(name: str) -> str:
    """A sentence that suggests the loss which ``name`` may have been meant for; empty where none is near."""
    plain = name.lower().replace("-", "_").replace(" ", "_")
    near = [_ELSEWHERE[name.lower()]] if name.lower() in _ELSEWHERE else difflib.get_close_matches(plain, NAMED, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def named_costs(name: str, k: int) -> np.ndarray:
    """The cost matrix (k, k) of a named loss between ``k`` labels."""
    if name not in LOSSES:
        raise ValueError(f"loss must be one of {', '.join(LOSSES)}; got {name!r}.{suggested_name(name)}")
    return NAMED[name](k).costs
