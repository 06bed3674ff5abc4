"""The minimum of a quadratic model with absolute values, where its matrix is stored.

    min_d  <g, d> + d' B d / 2 + alpha |w + d|_1.

Coordinate descent finds which weights are zero and the signs of the others; where features are correlated it then
crawls. With these signs held the rest is linear equations, solved by Cholesky's factors as far as no sign changes.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as sl

from nashlearn.kernels.lasso import stored_step

__all__ = ["lasso_step"]

_ROUNDS, _PASSES = 40, 3  # of both in turn, and passes of coordinate descent in each
_FIRST = 10  # passes before the first equations


def lasso_step(B: np.ndarray, g: np.ndarray, w: np.ndarray, alpha: float, tol: float) -> np.ndarray:
    """The step ``d`` (m,), for a positive definite ``B``, to violations of ``tol``, or about.

    Cost: O(m^2) a pass, and O(s^3) where equations for ``s`` weights that are not zero are solved.
    """
    d = np.zeros(g.size)
    for each in range(_ROUNDS):
        if stored_step(B, g, w, alpha, d, tol, _PASSES if each else _FIRST) <= tol:
            break
        x = w + d
        own = np.flatnonzero(x)
        sign, now = np.sign(x[own]), x[own]
        try:
            factor = sl.cho_factor(B[np.ix_(own, own)], lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:  # damped too little for the arithmetic: passes alone will do
            continue
        slope = g + B @ d
        goal = now - sl.cho_solve(factor, slope[own] + alpha * sign, check_finite=False)
        d[own] = _kept_signs(B[np.ix_(own, own)], slope[own] + alpha * sign, now, goal, sign) - w[own]
    return d


def _kept_signs(B: np.ndarray, slope: np.ndarray, now: np.ndarray, goal: np.ndarray, sign: np.ndarray) -> np.ndarray:
    """The goal, or the better of two points on the way to it where signs change.

    The one has zeros in place of the weights that would change theirs, the other lies where the first of them would.
    """
    crossed = goal * sign < 0.0
    if not crossed.any():
        return goal
    cut = np.where(crossed, 0.0, goal)
    times = now[crossed] / (now[crossed] - goal[crossed])
    there = now + times.min() * (goal - now)
    there[np.flatnonzero(crossed)[times == times.min()]] = 0.0
    worth = [float(slope @ (x - now)) + 0.5 * float((x - now) @ B @ (x - now)) for x in (cut, there)]
    return cut if worth[0] < worth[1] else there
