"""The game of a matrix: one player chooses among its columns, which have scores, the other among its rows.

    max_q <scores, q> + min_i (L q)_i   over the simplex,

by the simplex method of ``nashlearn.kernels.core_simplex``, in about a microsecond for ten columns.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import nashlearn.kernels.cost as kernel
from nashlearn.kernels.loss import equilibria

__all__ = ["Cost", "cost_params", "solve"]


class Cost(NamedTuple):
    """A cost matrix and what the simplex method reads of it."""

    L: np.ndarray
    floor: np.ndarray  # smallest entry of each column
    lowest: np.ndarray  # and where it is, at ties where the tilt is least
    tilt: np.ndarray  # one number for each row, generic
    scale: float  # largest entry of L - floor
    rows: np.ndarray  # (L - floor) / scale
    columns: np.ndarray  # its transpose, contiguous

    def compiled(self) -> Any:
        """The loss as compiled code knows it."""
        return kernel.Cost(*self)


def cost_params(L: np.ndarray) -> Cost:
    """Parameters of the game of ``L``, a finite float64 matrix (options, labels) of any sign."""
    floor = L.min(axis=0)
    tilt = np.arange(1, L.shape[0] + 1) * (0.5 * np.sqrt(5.0) - 0.5) % 1.0
    lowest = np.where(np.equal(L, floor), tilt[:, None], np.inf).argmin(axis=0)
    scale = float((L - floor).max()) or 1.0
    rows = np.ascontiguousarray((L - floor) / scale)
    return Cost(np.ascontiguousarray(L), floor, lowest, tilt, scale, rows, np.ascontiguousarray(rows.T))


def solve(L: np.ndarray, scores: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Value and both strategies ``q``, ``p`` of the game of ``L``, which may have any sign."""
    value, q, p = np.empty(1), np.empty((1, L.shape[1])), np.empty((1, L.shape[0]))
    row = np.ascontiguousarray(scores, dtype=np.float64).reshape(1, -1)
    equilibria(cost_params(L).compiled(), row, value, q, p)
    return float(value[0]), q[0], p[0]
