"""How training reads one example: dense rows, CSR rows, never a copy of either.

The weights have one entry per feature and a last one for the intercept, which sees the constant feature
``bias`` (1, or 0 where there is no intercept). What visits of examples do with them is in
``nashlearn.kernels.dense_rows`` and ``nashlearn.kernels.csr``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from nashlearn.kernels.csr import Csr
from nashlearn.kernels.dense_rows import Dense

__all__ = ["adjacent_rows", "compressed", "rows_of", "squared_norms"]


def compressed(X: Any, bias: float) -> Any:
    """A CSR matrix for compiled code, without a copy of its data; O(entries) for the check of its indices."""
    indptr = X.indptr if X.indptr.dtype == X.indices.dtype else X.indptr.astype(X.indices.dtype)
    entries = int(indptr[-1])  # there may be room for more
    return Csr(X.data[:entries], X.indices[:entries], indptr, X.shape[1], bias)


def adjacent_rows(X: Any, part: slice) -> Any:
    """Rows ``part`` of an array or a CSR matrix, without a copy of its data."""
    if not sp.issparse(X):
        return X[part]
    indptr = X.indptr[part.start : part.stop + 1]
    entries = slice(indptr[0], indptr[-1])
    shape = part.stop - part.start, X.shape[1]
    return type(X)((X.data[entries], X.indices[entries], indptr - indptr[0]), shape=shape, copy=False)


def rows_of(X: Any, bias: float) -> Any:
    """Wrap a dense array or CSR matrix for compiled code, without copying it."""
    return compressed(X, bias) if sp.issparse(X) else Dense(np.ascontiguousarray(X), bias)


def squared_norms(X: Any) -> np.ndarray:
    """``|x_i|^2`` of every example, in float64."""
    if sp.issparse(X):
        norms = np.empty(X.shape[0])
        compressed(X, 0.0).squared_norms(norms)
        return norms
    return np.einsum("ij,ij->i", X, X, dtype=np.float64)
