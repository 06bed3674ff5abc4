"""The data sets of the package ``empulse`` that have costs of their own in every row: churn, upsell, credit.

They are read from the installed package, and nothing of them is kept here. Rows of the costs are answers (0 or 1),
columns labels: ``costs[i, a, y]`` is what answer ``a`` costs in row ``i`` whose label is ``y``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

__all__ = ["SETS", "RowCostSet", "load"]

_INTEREST, _DEPOSIT, _CALL = 0.02463333, 0.25, 1.0  # of a term deposit, share of the balance, cost of a call
_LOST = 0.75  # share of a credit line that is lost by default


class RowCostSet(NamedTuple):
    """Features (a data frame), labels 0 and 1, and costs (n, 2, 2)."""

    name: str
    X: Any
    y: np.ndarray
    costs: np.ndarray


def _matrices(hit: Any, false_alarm: Any, miss: Any) -> np.ndarray:
    """Costs of the answer 1 for the label 1 and for 0, and of the answer 0 for the label 1."""
    hit, false_alarm, miss = np.broadcast_arrays(*(np.asarray(x, dtype=np.float64) for x in (hit, false_alarm, miss)))
    costs = np.zeros((miss.size, 2, 2))
    costs[:, 1, 1], costs[:, 1, 0], costs[:, 0, 1] = hit, false_alarm, miss
    return costs


def _churn(given: dict[str, np.ndarray]) -> np.ndarray:
    return _matrices(given["tp_cost"], given["fp_cost"], given["fn_cost"])


def _upsell(given: dict[str, np.ndarray]) -> np.ndarray:
    return _matrices(_CALL, _CALL, np.maximum(_INTEREST * _DEPOSIT * np.asarray(given["balance"]), _CALL))


def _credit(given: dict[str, np.ndarray]) -> np.ndarray:
    return _matrices(0.0, given["fp_cost"], _LOST * np.asarray(given["cl"]))


SETS = {
    "TV churn": ("load_churn_tv_subscriptions", _churn),
    "bank upsell": ("load_upsell_bank_telemarketing", _upsell),
    "PAKDD credit": ("load_credit_scoring_pakdd", _credit),
    "VUB credit": ("load_vub_credit_scoring", _credit),
}


def load(names: Any = SETS) -> Iterator[RowCostSet]:
    """The sets of these names, one after another."""
    try:
        import pandas
        from empulse import datasets
    except ImportError as error:
        raise ImportError(
            f"The sets with costs of each row are in the package empulse: pip install empulse pandas ({error})."
        ) from error
    for name in names:
        loader, costs_of = SETS[name]
        found = getattr(datasets, loader)(backend=pandas)
        yield RowCostSet(name, found.data, np.asarray(found.target).astype(int), costs_of(found.instance_costs))
