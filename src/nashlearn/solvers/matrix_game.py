"""The game of a matrix: one player chooses among its columns, which have scores, the other among its rows.

    max_q <scores, q> + min_i (L q)_i   over the simplex,

by the simplex method of :mod:`nashlearn.solvers.core_simplex`, in about a microsecond for ten columns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from nashlearn.solvers.core_simplex import new_core, optimise

__all__ = ["Cost", "core_equilibrium", "cost_params", "largest", "solve"]


class Cost(NamedTuple):
    """A cost matrix and what the simplex method reads of it."""

    L: np.ndarray
    floor: np.ndarray  # smallest entry of each column
    lowest: np.ndarray  # and where it is, at ties where the tilt is least
    tilt: np.ndarray  # one number for each row, generic
    scale: float  # largest entry of L - floor
    rows: np.ndarray  # (L - floor) / scale
    columns: np.ndarray  # its transpose, contiguous

    @property
    def warm_rows(self) -> bool:
        """Rows are solved together, each from the basis of the one before."""
        return True


def cost_params(L: np.ndarray) -> Cost:
    """Parameters of the game of ``L``, a finite float64 matrix (options, labels) of any sign."""
    floor = L.min(axis=0)
    tilt = np.arange(1, L.shape[0] + 1) * (0.5 * np.sqrt(5.0) - 0.5) % 1.0
    lowest = np.where(np.equal(L, floor), tilt[:, None], np.inf).argmin(axis=0)
    scale = float((L - floor).max()) or 1.0
    rows = np.ascontiguousarray((L - floor) / scale)
    return Cost(np.ascontiguousarray(L), floor, lowest, tilt, scale, rows, np.ascontiguousarray(rows.T))


@njit(cache=True, nogil=True)
def largest(scores):
    """The largest score, or a NaN among them."""
    top, missing = -np.inf, False
    for j in range(scores.size):
        top = max(top, np.float64(scores[j]))
        missing |= np.isnan(scores[j])
    return np.nan if missing else top


@njit(cache=True, nogil=True)
def core_equilibrium(loss, scores, q, p, core):
    """Equilibrium of one row of scores from the basis that ``core`` holds, which becomes the row's own."""
    top = largest(scores)
    if np.isnan(top):
        q[:] = np.nan
        p[:] = np.nan
        return np.nan
    best = -np.inf
    for j in range(scores.size):
        core.f[j] = (np.float64(scores[j]) - top) + loss.floor[j]
        best = max(best, core.f[j])
    for j in range(scores.size):  # below -2 no label can gain; the clip admits -inf to an old basis
        core.f[j] = max((core.f[j] - best) / loss.scale, -2.0)
    optimise(loss, core)
    q[:] = 0.0
    p[:] = 0.0
    for m in range(core.state[0]):
        q[core.R[m]] = max(core.N[m + 1, 0], 0.0)
        p[core.S[m]] = max(-core.y[m + 1], 0.0)
    return top + (best + loss.scale * core.y[0])


@njit(cache=True, nogil=True)
def _solve(loss, scores, q, p):
    return core_equilibrium(loss, scores, q, p, new_core(loss.L.shape[0], loss.L.shape[1]))


def solve(L: np.ndarray, scores: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Value and both strategies ``q``, ``p`` of the game of ``L``, which may have any sign."""
    q, p = np.empty(L.shape[1]), np.empty(L.shape[0])
    return float(_solve(cost_params(L), scores, q, p)), q, p
