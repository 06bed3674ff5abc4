"""Small dense loops that LLVM should vectorise: sums may be reordered, and no entry is NaN.

Rows are named by an array and an index: making a view of a row costs about as much as working on it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = [
    "add_outer",
    "add_outers",
    "dot",
    "exponentials",
    "flush",
    "largest",
    "product",
    "rows_dot",
    "rows_sum",
    "scale_by",
    "total",
]

_FAST = {"contract", "nsz", "nnan", "reassoc"}


@njit(cache=True, nogil=True, fastmath=_FAST, forceinline=True)
def largest(X, i, k):
    """The largest entry of a row."""
    top = X[i, 0]
    for a in range(k):
        top = X[i, a] if X[i, a] > top else top
    return top


@njit(cache=True, nogil=True, fastmath=_FAST, forceinline=True)
def total(X, i, k):
    """The sum of a row."""
    s = 0.0
    for a in range(k):
        s += X[i, a]
    return s


@njit(cache=True, nogil=True, fastmath=_FAST, forceinline=True)
def dot(X, i, Y, j, k):
    """The inner product of two rows."""
    s = 0.0
    for a in range(k):
        s += X[i, a] * Y[j, a]
    return s


@njit(cache=True, nogil=True, fastmath=_FAST, forceinline=True)
def product(X, i, Y, j, k, Z, row):
    """A row as the product of two others, entry by entry."""
    for a in range(k):
        Z[row, a] = X[i, a] * Y[j, a]


@njit(cache=True, nogil=True, fastmath=_FAST, forceinline=True)
def scale_by(X, i, r, k):
    """A row times ``r``."""
    for a in range(k):
        X[i, a] *= r


@njit(cache=True, nogil=True, fastmath=_FAST, forceinline=True)
def rows_dot(W, t, X, i, k, Z, j):
    """Row ``j`` of ``Z`` as ``W[t]`` times row ``i`` of ``X``, four rows of ``W`` at a time."""
    a = 0
    while a + 3 < k:
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for b in range(k):
            x = X[i, b]
            s0 += W[t, a, b] * x
            s1 += W[t, a + 1, b] * x
            s2 += W[t, a + 2, b] * x
            s3 += W[t, a + 3, b] * x
        Z[j, a], Z[j, a + 1], Z[j, a + 2], Z[j, a + 3] = s0, s1, s2, s3
        a += 4
    while a < k:
        s = 0.0
        for b in range(k):
            s += W[t, a, b] * X[i, b]
        Z[j, a] = s
        a += 1


@njit(cache=True, nogil=True, fastmath=_FAST, forceinline=True)
def rows_sum(W, t, X, i, k, Z, j):
    """Row ``j`` of ``Z`` as the transpose of ``W[t]`` times row ``i`` of ``X``, four rows of ``W`` at a time."""
    for b in range(k):
        Z[j, b] = 0.0
    a = 0
    while a + 3 < k:
        x0, x1, x2, x3 = X[i, a], X[i, a + 1], X[i, a + 2], X[i, a + 3]
        for b in range(k):
            Z[j, b] += x0 * W[t, a, b] + x1 * W[t, a + 1, b] + x2 * W[t, a + 2, b] + x3 * W[t, a + 3, b]
        a += 4
    while a < k:
        x0 = X[i, a]
        for b in range(k):
            Z[j, b] += x0 * W[t, a, b]
        a += 1


@njit(cache=True, nogil=True, fastmath=_FAST, forceinline=True)
def add_outer(E, t, X, i, Y, j, scale, k):
    """``E[t] += scale x y'`` for two rows, leaving out zeros of the first."""
    for a in range(k):
        s = scale * X[i, a]
        if s > 0.0:
            for b in range(k):
                E[t, a, b] += s * Y[j, b]


@njit(cache=True, nogil=True, fastmath=_FAST, forceinline=True)
def add_outers(E, t, X, i, Y, j, k):
    """``E[t] += sum x y'`` over four rows each from ``X[i]`` and ``Y[j]`` on."""
    for a in range(k):
        s0, s1, s2, s3 = X[i, a], X[i + 1, a], X[i + 2, a], X[i + 3, a]
        for b in range(k):
            E[t, a, b] += s0 * Y[j, b] + s1 * Y[j + 1, b] + s2 * Y[j + 2, b] + s3 * Y[j + 3, b]


@njit(cache=True, nogil=True, fastmath=_FAST, forceinline=True)
def flush(own, T, W, E, t, scale, k):
    """Add ``scale`` times the table in ``own`` to ``E[t]`` and clear it; its inner product with ``T[t] W[t]``."""
    s = 0.0
    for a in range(k):
        for b in range(k):
            s += own[0, a, b] * W[t, a, b] * T[t, a, b]
        for b in range(k):
            E[t, a, b] += scale * own[0, a, b]
        for b in range(k):
            own[0, a, b] = 0.0
    return s


@njit(cache=True, nogil=True, fastmath=_FAST, forceinline=True)
def exponentials(X, i, top, eps, k, Z, j, powers):
    """Row ``j`` of ``Z`` as ``exp((x - top) / eps)`` of a row, ``top`` its largest entry, to rounding of the exponent.

    ``2^n 2^r`` with ``|r| <= 1/2``: the Taylor series of the second, and the first by writing ``n`` into the bits of
    the exponent. The library's exponential takes one number at a time. ``powers`` is scratch (1, k).
    """
    scale = 1.4426950408889634 / eps
    for a in range(k):
        y = (X[i, a] - top) * scale
        y = y if y > -1022.0 else -1022.0
        n = np.floor(y + 0.5)
        Z[j, a] = (y - n) * 0.6931471805599453
        powers[0, a] = n + (1023.0 + 4503599627370496.0)  # 2^52: the sum's last bits are n + 1023 as an integer
    bits = powers.view(np.int64)
    for a in range(k):
        bits[0, a] = bits[0, a] << 52
    for a in range(k):
        r = Z[j, a]
        s = 1.0 + r * (1.0 / 13.0)
        s = 1.0 + r * (1.0 / 12.0) * s
        s = 1.0 + r * (1.0 / 11.0) * s
        s = 1.0 + r * (1.0 / 10.0) * s
        s = 1.0 + r * (1.0 / 9.0) * s
        s = 1.0 + r * (1.0 / 8.0) * s
        s = 1.0 + r * (1.0 / 7.0) * s
        s = 1.0 + r * (1.0 / 6.0) * s
        s = 1.0 + r * (1.0 / 5.0) * s
        s = 1.0 + r * (1.0 / 4.0) * s
        s = 1.0 + r * (1.0 / 3.0) * s
        s = 1.0 + r * (1.0 / 2.0) * s
        s = 1.0 + r * s
        Z[j, a] = s * powers[0, a] if powers[0, a] > 3e-308 else 0.0
