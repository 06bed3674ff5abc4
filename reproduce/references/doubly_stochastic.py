"""Projection onto the doubly stochastic matrices by alternating directions ([fathony2019]_, eq. 4.16-4.23), compiled.

    P <- rows((R + rho (S - W)) / (1 + rho)),  S <- columns((R + rho (P + W)) / (1 + rho)),  W <- W + P - S,

where ``rows`` and ``columns`` project each row, or column, onto the simplex. It ends on the primal and dual residuals.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from nashlearn.solvers.threshold import shifted_threshold

__all__ = ["admm", "admm_each"]


@njit(cache=True, nogil=True)
def _project_row(x, out):
    top = x[0]
    for j in range(1, x.size):
        top = max(top, x[j])
    t = shifted_threshold(x, x.size, top, 1.0)
    for j in range(x.size):
        out[j] = max(x[j] - top - t, 0.0)


@njit(cache=True, nogil=True)
def admm(R, rho, tol, max_iter, P):
    """Write the projection of ``R`` (n, n) into ``P``; answer the iterations taken.

    Ends where the root mean squares of ``P - S`` and of the change of ``rho S`` are below ``tol``.
    """
    n = R.shape[0]
    T = np.empty((n, n))  # the transpose of S: columns are then rows in memory
    W = np.zeros((n, n))
    row, projected = np.empty(n), np.empty(n)
    for i in range(n):
        _project_row(R[i], P[i])
    for j in range(n):
        for i in range(n):
            T[j, i] = P[i, j]
    for iteration in range(1, max_iter + 1):
        for i in range(n):
            for j in range(n):
                row[j] = (R[i, j] + rho * (T[j, i] - W[i, j])) / (1.0 + rho)
            _project_row(row, P[i])
        primal = dual = 0.0
        for j in range(n):
            for i in range(n):
                row[i] = (R[i, j] + rho * (P[i, j] + W[i, j])) / (1.0 + rho)
            _project_row(row, projected)
            for i in range(n):
                change, apart = rho * (projected[i] - T[j, i]), P[i, j] - projected[i]
                dual += change * change
                primal += apart * apart
                T[j, i] = projected[i]
                W[i, j] += apart
        if max(primal, dual) <= (tol * n) ** 2:
            return iteration
    return max_iter


@njit(cache=True, nogil=True)
def admm_each(R, rho, tol, max_iter, P):
    """The projections of all matrices of ``R`` (b, n, n)."""
    for b in range(R.shape[0]):
        admm(R[b], rho, tol, max_iter, P[b])
