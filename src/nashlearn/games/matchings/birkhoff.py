"""Euclidean projection onto the matchings' polytope, by a semismooth Newton method on its columns' potentials.

The projection of ``r`` is ``x = (r - u_i - v_j)_+`` with potentials for which rows and columns sum to 1. Given
``v``, each ``u_i`` is a simplex threshold; what remains is the smooth convex function of ``v``

.. math:: \\min_u \\tfrac12 |(r - u - v)_+|^2 + \\sum u + \\sum v,

whose gradient is ``1 - (sums of the columns)`` and whose generalised Hessian, with ``S`` the support of ``x``, is
``diag(S'1) - S' diag(1 / S1) S``. The potentials of the best assignment are where it starts: they are right in the
limit of large scores. A matrix may have a last row and a last column that need not sum to 1 (entering, leaving).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from nashlearn.solvers.dense import cholesky, cholesky_solve
from nashlearn.solvers.threshold import shifted_threshold

__all__ = ["newton_step", "project_matching"]

_DIRECT = 100  # columns up to which Newton's system is factored; above, conjugate gradients on the sparse support
_STEPS = 200


@njit(cache=True, nogil=True)
def _primal(scores, rows, columns, v, x, miss):
    """Fill ``x`` and what columns ``miss`` of 1 at potentials ``v``; answer the dual value and the largest miss."""
    value = 0.0
    for j in range(columns):
        miss[j] = 1.0
        value += v[j]
    for i in range(scores.shape[0]):
        top = -np.inf
        for j in range(scores.shape[1]):
            x[i, j] = scores[i, j] - (v[j] if j < columns else 0.0)
            top = max(top, x[i, j])
        u = 0.0
        if i < rows:
            u = shifted_threshold(x[i], scores.shape[1], top, 1.0)
            value += top + u
        else:
            top = 0.0
        for j in range(scores.shape[1]):
            x[i, j] = max(x[i, j] - top - u, 0.0)
            value += 0.5 * x[i, j] * x[i, j]
            if j < columns:
                miss[j] -= x[i, j]
    worst = 0.0
    for j in range(columns):
        worst = max(worst, abs(miss[j]))
    return value, worst


@njit(cache=True, nogil=True)
def _newton_direct(x, rows, columns, ridge, d):
    """By a Cholesky factorisation."""
    H = np.zeros((columns, columns))
    support = np.empty(x.shape[1], np.int64)
    for j in range(columns):
        H[j, j] = ridge
    for i in range(x.shape[0]):
        size = 0
        for j in range(x.shape[1]):
            if x[i, j] > 0.0:
                support[size] = j
                size += 1
        share = 1.0 / size if i < rows and size else 0.0
        for a in range(size):
            if support[a] < columns:
                H[support[a], support[a]] += 1.0
                for b in range(a + 1):
                    H[support[a], support[b]] -= share
    if cholesky(H, H, 0, columns, 0.0) < columns:
        return False
    cholesky_solve(H, columns, d)
    return True


@njit(cache=True, nogil=True)
def _hessian_product(first, member, share, columns, ridge, d, out):
    for j in range(columns):
        out[j] = ridge * d[j]
    for i in range(share.size):
        mean = 0.0
        for t in range(first[i], first[i + 1]):
            mean += d[member[t]] if member[t] < columns else 0.0
        mean *= share[i]
        for t in range(first[i], first[i + 1]):
            if member[t] < columns:
                out[member[t]] += d[member[t]] - mean


@njit(cache=True, nogil=True)
def _newton_iterative(x, rows, columns, ridge, d):
    """By conjugate gradients, scaled by the diagonal, on the sparse support."""
    first, share = np.zeros(x.shape[0] + 1, np.int64), np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        first[i + 1] = first[i]
        for j in range(x.shape[1]):
            first[i + 1] += x[i, j] > 0.0
    member = np.empty(first[-1], np.int64)
    diagonal = np.full(columns, ridge)
    for i in range(x.shape[0]):
        t = first[i]
        if i < rows and first[i + 1] > t:
            share[i] = 1.0 / (first[i + 1] - t)
        for j in range(x.shape[1]):
            if x[i, j] > 0.0:
                member[t] = j
                t += 1
                if j < columns:
                    diagonal[j] += 1.0 - share[i]
    scale = 1.0 / np.maximum(diagonal, 1e-300)
    residual, product, solution = d.copy(), np.empty(columns), np.zeros(columns)
    preconditioned = scale * residual
    direction = preconditioned.copy()
    energy = np.dot(residual, preconditioned)
    target = 1e-20 * energy
    for _ in range(4 * columns):
        if not energy > target:
            break
        _hessian_product(first, member, share, columns, ridge, direction, product)
        step = energy / np.dot(direction, product)
        solution += step * direction
        residual -= step * product
        preconditioned = scale * residual
        new_energy = np.dot(residual, preconditioned)
        direction = preconditioned + (new_energy / energy) * direction
        energy = new_energy
    d[:] = solution


@njit(cache=True, nogil=True)
def newton_step(x, rows, columns, ridge, d):
    """Overwrite ``d`` with ``(Hessian + ridge)^-1 d`` at the support of ``x``; False where that fails."""
    if columns <= _DIRECT:
        return _newton_direct(x, rows, columns, ridge, d)
    _newton_iterative(x, rows, columns, ridge, d)
    return True


@njit(cache=True, nogil=True)
def project_matching(scores, rows, columns, tol, v, x):
    """Write the projection of ``scores`` into ``x``; answer how far its columns are from summing to 1.

    Parameters
    ----------
    scores : ndarray (N1, N2)
        ``-inf`` forbids a pair; some matching must remain.
    rows, columns : int
        How many, from the first, must sum to 1.
    tol : float
        Ends where no column misses 1 by more; rows sum to 1 always.
    v : ndarray (columns,)
        Potentials to start from, overwritten by the last.
    x : ndarray (N1, N2)
        The projection.

    Cost: O(N1 · N2) and one linear system a step; about ten steps.
    """
    miss, trial_miss = np.empty(columns), np.empty(columns)
    trial_x, trial_v, d = np.empty_like(x), np.empty(columns), np.empty(columns)
    value, worst = _primal(scores, rows, columns, v, x, miss)
    for _ in range(_STEPS):
        if not worst > tol:
            break
        ridge = 1e-12 + 1e-3 * min(worst, 0.01)
        d[:] = -miss
        if not newton_step(x, rows, columns, ridge, d):
            break
        slope, length, moved = np.dot(miss, d), 1.0, False
        for _ in range(40):
            for j in range(columns):
                trial_v[j] = v[j] + length * d[j]
            trial, trial_worst = _primal(scores, rows, columns, trial_v, trial_x, trial_miss)
            if trial <= value + 1e-4 * length * slope or trial_worst <= 0.5 * worst:
                moved = True
                break
            length *= 0.5
        if not moved:
            break
        v[:], x[:], miss[:] = trial_v, trial_x, trial_miss
        value, worst = trial, trial_worst
    return worst
