"""Small dense systems inside compiled solvers.

LAPACK's factors cannot be kept between two solves from within Numba, and its calls cost more than a small system.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["cholesky", "cholesky_solve", "lu_factor", "lu_solve"]

_FAST = {"reassoc", "contract", "nsz"}  # lets LLVM vectorise sums; NaN and inf keep their meaning


@njit(cache=True, nogil=True)
def _bring_up(A, k, pivot):
    """Swap the row with the largest entry of column ``k`` into place; False where there is none."""
    n = A.shape[0]
    best, i = abs(A[k, k]), k
    for r in range(k + 1, n):
        if abs(A[r, k]) > best:
            best, i = abs(A[r, k]), r
    pivot[k] = i
    if i != k:
        for c in range(n):
            A[k, c], A[i, c] = A[i, c], A[k, c]
    return best > 0.0  # not for NaN either


@njit(cache=True, nogil=True)
def _divide_below(A, k):
    scale = 1.0 / A[k, k]
    for r in range(k + 1, A.shape[0]):
        A[r, k] *= scale


@njit(cache=True, nogil=True)
def lu_factor(A, pivot):
    """Overwrite ``A`` (n, n) with its factors, rows pivoted; False where it is singular. Cost: 2/3 n³.

    Two columns at a time: the rest of the matrix is read and written half as often.
    """
    n = A.shape[0]
    for k in range(0, n, 2):
        if not _bring_up(A, k, pivot):
            return False
        _divide_below(A, k)
        if k + 1 == n:
            break
        for r in range(k + 1, n):
            A[r, k + 1] -= A[r, k] * A[k, k + 1]
        if not _bring_up(A, k + 1, pivot):
            return False
        _divide_below(A, k + 1)
        for c in range(k + 2, n):
            A[k + 1, c] -= A[k + 1, k] * A[k, c]
        for r in range(k + 2, n):
            first, second = A[r, k], A[r, k + 1]
            for c in range(k + 2, n):
                A[r, c] -= first * A[k, c] + second * A[k + 1, c]
    return True


@njit(cache=True, nogil=True)
def lu_solve(A, pivot, b):
    """Overwrite ``b`` with the solution of the system whose factors ``A`` holds."""
    n = b.size
    for k in range(n):
        b[k], b[pivot[k]] = b[pivot[k]], b[k]
    for i in range(n):
        b[i] -= _dot(A[i], b, 0, i)
    for i in range(n - 1, -1, -1):
        b[i] = (b[i] - _dot(A[i], b, i + 1, n)) / A[i, i]


@njit(cache=True, nogil=True, fastmath=_FAST)
def _dot(a, b, start, stop):
    total = 0.0
    for c in range(start, stop):
        total += a[c] * b[c]
    return total


@njit(cache=True, nogil=True)
def cholesky(A, L, start, n, least):
    """Rows ``start`` to ``n`` of the factor of ``A`` into ``L``, which may be ``A``; the first whose pivot fails, or n.

    A pivot must exceed ``least``. Only the lower triangles are used. Cost: n³ / 3.
    """
    for i in range(start, n):
        for j in range(i):
            L[i, j] = (A[i, j] - _dot(L[i], L[j], 0, j)) / L[j, j]
        left = A[i, i] - _dot(L[i], L[i], 0, i)
        if not left > least:
            return i
        L[i, i] = np.sqrt(left)
    return n


@njit(cache=True, nogil=True)
def cholesky_solve(L, n, b):
    """Overwrite the first ``n`` of ``b`` with the solution of the system whose factor is ``L``."""
    for i in range(n):
        b[i] = (b[i] - _dot(L[i], b, 0, i)) / L[i, i]
    for i in range(n - 1, -1, -1):
        b[i] /= L[i, i]
        for j in range(i):
            b[j] -= L[i, j] * b[i]
