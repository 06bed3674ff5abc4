"""The game of any cost matrix, solved by the simplex method of :mod:`nashlearn.solvers.core_simplex`.

Each row of scores starts from the basis of the row before where that is better than a pure strategy: about a
microsecond for ten labels, and less where neighbouring rows are alike.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from numba import njit
from numba.extending import overload

from nashlearn.game import Equilibrium
from nashlearn.games.rows import kernels
from nashlearn.games.rows.simplex import SimplexGame
from nashlearn.solvers.core_simplex import new_core, optimise

__all__ = ["Cost", "CostGame", "cost_params"]


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

    def matrix(self) -> np.ndarray:
        """The cost matrix."""
        return self.L


def cost_params(L: np.ndarray) -> Cost:
    """Parameters of the game of ``L``, a finite float64 matrix (options, labels) of any sign."""
    floor = L.min(axis=0)
    tilt = np.arange(1, L.shape[0] + 1) * (0.5 * np.sqrt(5.0) - 0.5) % 1.0
    lowest = np.where(np.equal(L, floor), tilt[:, None], np.inf).argmin(axis=0)
    scale = float((L - floor).max()) or 1.0
    rows = np.ascontiguousarray((L - floor) / scale)
    return Cost(np.ascontiguousarray(L), floor, lowest, tilt, scale, rows, np.ascontiguousarray(rows.T))


class CostGame(SimplexGame):
    """The game of a cost matrix: as exact as the others, but by iteration, so it checks where it ended."""

    @property
    def unit(self) -> float:
        """The largest entry of ``L`` beyond its column's smallest, or the value without scores."""
        return max(self.scale, self.params.scale)

    def solve(self, scores: np.ndarray) -> Equilibrium:  # type: ignore[override]  # exact
        """Equilibrium of every row of ``scores`` (n, labels), in their precision."""
        eq = super().solve(scores)
        limit = 100.0 * np.sqrt(np.finfo(eq.gap.dtype).eps) * self.params.scale
        if (eq.gap > limit).any():
            from sklearn.exceptions import ConvergenceWarning

            warnings.warn(
                f"the simplex method left a gap of {eq.gap.max():.1e}: L may mix costs too far apart in size",
                ConvergenceWarning,
                stacklevel=2,
            )
        return eq


@njit(cache=True, nogil=True)
def core_equilibrium(loss, scores, q, p, core):
    """Equilibrium of one row of scores from the basis that ``core`` holds, which becomes the row's own."""
    top = -np.inf
    for j in range(scores.size):
        if scores[j] > top or np.isnan(scores[j]):
            top = np.float64(scores[j])
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


@overload(kernels.equilibrium)
def _equilibrium(loss, scores, q, p):
    if loss.instance_class is not Cost:
        return None

    def solve(loss, scores, q, p):
        return core_equilibrium(loss, scores, q, p, new_core(loss.L.shape[0], loss.L.shape[1]))

    return solve


@overload(kernels.equilibria)
def _equilibria(loss, scores, value, q, p):
    if loss.instance_class is not Cost:
        return None

    def solve(loss, scores, value, q, p):
        core = new_core(loss.L.shape[0], loss.L.shape[1])
        for i in range(scores.shape[0]):
            value[i] = core_equilibrium(loss, scores[i], q[i], p[i], core)

    return solve


@overload(kernels.best_reply)
def _best_reply(loss, scores, p):
    if loss.instance_class is not Cost:
        return None

    def reply(loss, scores, p):
        reward = scores.astype(np.float64)
        for i in range(p.size):
            if p[i] > 0.0:
                for j in range(reward.size):
                    reward[j] += p[i] * loss.L[i, j]
        return reward.max()

    return reply


@overload(kernels.risk)
def _risk(loss, q):
    if loss.instance_class is not Cost:
        return None

    def bayes(loss, q):
        cost, floor = np.zeros(loss.L.shape[0]), 0.0
        for j in range(q.size):
            if q[j] > 0.0:
                floor += q[j] * loss.floor[j]
                column = loss.columns[j]
                for i in range(cost.size):
                    cost[i] += q[j] * column[i]
        return floor + loss.scale * cost.min()

    return bayes
