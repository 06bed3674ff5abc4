"""How training reads one example: dense rows, CSR rows, never a copy of either.

The weights have one entry per feature and a last one for the intercept, which sees the constant feature
``bias`` (1, or 0 where there is no intercept). Compiled code dispatches on the class of the rows, and reads
or moves the weights of the classes it is given only.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numba import njit
from numba.extending import overload

__all__ = [
    "Csr",
    "Dense",
    "SharedSquare",
    "Square",
    "csr_moments",
    "csr_scores",
    "row_scores",
    "row_step",
    "rows_of",
    "squared_norms",
]

_FAST = {"reassoc", "contract", "nsz"}  # lets LLVM vectorise sums; NaN and inf keep their meaning


class Dense(NamedTuple):
    """C-contiguous examples (n, d); weights are kept as (k, d + 1)."""

    X: np.ndarray
    bias: float


class Csr(NamedTuple):
    """Compressed sparse rows; weights are kept as (d + 1, k), so that a feature's weights are adjacent."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    bias: float


class Square(NamedTuple):
    """A square Gram matrix; "weights" are the scores themselves, (k, n)."""

    K: np.ndarray


class SharedSquare(NamedTuple):
    """A square Gram matrix for one direction with offsets; "weights" are its n scores, then the offsets, (1, n + m)."""

    K: np.ndarray


def rows_of(X: Any, bias: float) -> Dense | Csr:
    """Wrap a dense array or CSR matrix for compiled code, without copying it."""
    if sp.issparse(X):
        return Csr(X.data, X.indices, X.indptr, bias)
    return Dense(X, bias)


def row_scores(rows, i, W, classes, first, m, f):  # pragma: no cover - compiled
    """Write the scores ``W_c x_i`` of the ``m`` classes from ``classes[first]`` on into ``f``."""
    raise NotImplementedError


def row_step(rows, i, W, classes, m, delta):  # pragma: no cover - compiled
    """Add ``delta_c x_i`` to the weights of the first ``m`` classes listed."""
    raise NotImplementedError


@njit(cache=True, nogil=True, fastmath=_FAST)
def _dense_scores(X, i, bias, W, classes, first, m, f):
    d = X.shape[1]
    c = 0
    while c + 4 <= m:  # four classes share each load of x
        r0, r1 = classes[first + c], classes[first + c + 1]
        r2, r3 = classes[first + c + 2], classes[first + c + 3]
        s0, s1, s2, s3 = bias * W[r0, d], bias * W[r1, d], bias * W[r2, d], bias * W[r3, d]
        for j in range(d):
            x = np.float64(X[i, j])
            s0 += x * W[r0, j]
            s1 += x * W[r1, j]
            s2 += x * W[r2, j]
            s3 += x * W[r3, j]
        f[c], f[c + 1], f[c + 2], f[c + 3] = s0, s1, s2, s3
        c += 4
    while c + 2 <= m:
        r0, r1 = classes[first + c], classes[first + c + 1]
        s0, s1 = bias * W[r0, d], bias * W[r1, d]
        for j in range(d):
            x = np.float64(X[i, j])
            s0 += x * W[r0, j]
            s1 += x * W[r1, j]
        f[c], f[c + 1] = s0, s1
        c += 2
    if c < m:
        r0 = classes[first + c]
        s0 = bias * W[r0, d]
        for j in range(d):
            s0 += X[i, j] * W[r0, j]
        f[c] = s0


@njit(cache=True, nogil=True)
def _sparse_scores(rows, i, W, classes, first, m, f):
    last = W.shape[0] - 1
    for c in range(m):
        f[c] = rows.bias * W[last, classes[first + c]]
    for e in range(rows.indptr[i], rows.indptr[i + 1]):
        j, x = rows.indices[e], np.float64(rows.data[e])
        for c in range(m):
            f[c] += x * W[j, classes[first + c]]


@njit(cache=True, nogil=True)
def _all_sparse_scores(rows, i, W, f):
    k, e, end = W.shape[1], rows.indptr[i], rows.indptr[i + 1]
    last = W.shape[0] - 1
    for c in range(k):
        f[c] = rows.bias * W[last, c]
    while e + 4 <= end:  # four features share each load and store of f
        j0, j1, j2, j3 = rows.indices[e], rows.indices[e + 1], rows.indices[e + 2], rows.indices[e + 3]
        x0, x1 = np.float64(rows.data[e]), np.float64(rows.data[e + 1])
        x2, x3 = np.float64(rows.data[e + 2]), np.float64(rows.data[e + 3])
        for c in range(k):
            f[c] += x0 * W[j0, c] + x1 * W[j1, c] + x2 * W[j2, c] + x3 * W[j3, c]
        e += 4
    while e < end:
        j, x = rows.indices[e], np.float64(rows.data[e])
        for c in range(k):
            f[c] += x * W[j, c]
        e += 1


@overload(row_scores)
def _row_scores(rows, i, W, classes, first, m, f):
    if rows.instance_class is Square:

        def square(rows, i, W, classes, first, m, f):
            for c in range(m):
                f[c] = W[classes[first + c], i]

        return square
    if rows.instance_class is SharedSquare:

        def shared(rows, i, W, classes, first, m, f):
            for c in range(m):
                f[c] = W[0, i] + W[0, rows.K.shape[0] + classes[first + c]]

        return shared
    if rows.instance_class is Dense:

        def dense(rows, i, W, classes, first, m, f):
            _dense_scores(rows.X, i, rows.bias, W, classes, first, m, f)

        return dense

    def sparse(rows, i, W, classes, first, m, f):
        k = W.shape[1]
        if 6 * m < k:
            _sparse_scores(rows, i, W, classes, first, m, f)
        else:  # adjacent weights are read six times as fast as scattered ones: read all, then keep those asked for
            _all_sparse_scores(rows, i, W, f)
            if m < k:
                for c in range(m):
                    f[c] = f[classes[first + c]]

    return sparse


@overload(row_step)
def _row_step(rows, i, W, classes, m, delta):
    if rows.instance_class is Square:

        def square(rows, i, W, classes, m, delta):
            for c in range(m):
                r, step = classes[c], delta[c]
                for j in range(rows.K.shape[0]):
                    W[r, j] += step * rows.K[i, j]

        return square
    if rows.instance_class is SharedSquare:

        def shared(rows, i, W, classes, m, delta):
            n, total = rows.K.shape[0], 0.0
            for c in range(m):
                W[0, n + classes[c]] += delta[c]
                total += delta[c]
            for j in range(n):
                W[0, j] += total * rows.K[i, j]

        return shared
    if rows.instance_class is Dense:

        def dense(rows, i, W, classes, m, delta):
            d = rows.X.shape[1]
            for c in range(m):
                r, step = classes[c], delta[c]
                for j in range(d):
                    W[r, j] += step * rows.X[i, j]
                W[r, d] += step * rows.bias

        return dense

    def sparse(rows, i, W, classes, m, delta):
        last = W.shape[0] - 1
        for c in range(m):
            W[last, classes[c]] += rows.bias * delta[c]
        for e in range(rows.indptr[i], rows.indptr[i + 1]):
            j, x = rows.indices[e], np.float64(rows.data[e])
            for c in range(m):
                W[j, classes[c]] += x * delta[c]

    return sparse


@njit(cache=True, nogil=True)
def csr_scores(data, indices, indptr, W, out):
    """Scores (rows, k) of compressed rows; ``W`` is (d + 1, k) and its last row is added to each."""
    rows = Csr(data, indices, indptr, 1.0)
    for i in range(out.shape[0]):
        _all_sparse_scores(rows, i, W, out[i])


@njit(cache=True, nogil=True)
def csr_moments(data, indices, indptr, residual, G):
    """Add ``x_i residual_i`` to ``G`` (d, k) for all compressed rows; most residuals are mostly zeros."""
    k = residual.shape[1]
    classes = np.empty(k, np.int64)
    for i in range(residual.shape[0]):
        m = 0
        for c in range(k):
            if residual[i, c] != 0.0:
                classes[m] = c
                m += 1
        for e in range(indptr[i], indptr[i + 1]):
            for c in range(m):
                G[indices[e], classes[c]] += data[e] * residual[i, classes[c]]


@njit(cache=True, nogil=True)
def _csr_squared_norms(data, indptr, out):
    for i in range(out.size):
        out[i] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            out[i] += np.float64(data[e]) * data[e]


def squared_norms(X: Any) -> np.ndarray:
    """``|x_i|^2`` of every example, in float64."""
    if sp.issparse(X):
        norms = np.empty(X.shape[0])
        _csr_squared_norms(X.data, X.indptr, norms)
        return norms
    return np.einsum("ij,ij->i", X, X, dtype=np.float64)
