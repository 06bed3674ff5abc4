"""Linear scores of many nodes, and the gradient of their weights, from dense or sparse features.

Work is cut into blocks whose borders do not depend on the number of threads; no two of them write to the same place,
and their sums are added in order: the result is the same for any number of threads.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from nashlearn.kernels.nodes import Compressed, Pattern
from nashlearn.solvers.threads import Run, add_in_order

__all__ = ["DenseFeatures", "SparseFeatures"]

_ROWS = 1024  # of scores that one thread makes at a time
_PARTS = 8  # sums of a gradient over rows, each as large as the weights
_DENSE = 0.3  # share of entries that are not 0 above which a matrix product is faster
_CACHED = 1 << 15  # weights that are, beside the entries of sparse rows
_WIDE = 3  # a feature with weights for more than one label in so many is read as if it had them for all
_DENSE_PARTS = 16  # the same where features are dense, and their weights few beside the features


def _blocks(n: int, size: int) -> list[tuple[int, int]]:
    return [(start, min(start + size, n)) for start in range(0, n, size)]


def _arrays(X: Any, width: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Data, indices and bounds of a compressed matrix as kernels want them."""
    indices, bounds = (np.ascontiguousarray(x, dtype=width) for x in (X.indices, X.indptr))
    return np.ascontiguousarray(X.data, dtype=np.float64), indices, bounds


class _NodeFeatures:
    """Features ``X`` (N, d) of all nodes with weights for ``k`` labels: subclasses say how these are laid out."""

    def __init__(self, X: Any, k: int):
        self.X, self.k = X, k

    def totals(self, share: np.ndarray) -> np.ndarray:
        """Weighted sum of each feature (d,) over all nodes."""
        return self.X.T @ share

    def signed(self) -> np.ndarray:
        """Which features (d,) are negative somewhere."""
        return np.asarray((self.X < 0).sum(axis=0)).ravel() > 0

    def present(self, rows: np.ndarray) -> np.ndarray:
        """Which features (d,) are not 0 somewhere in these rows, a mask (N,)."""
        return np.asarray((self.X[rows] != 0).sum(axis=0)).ravel() > 0


class DenseFeatures(_NodeFeatures):
    """A matrix with a weight for each feature and label, features first.

    Where most entries are 0, as of images in black and white, only the others are worked on.
    """

    def __init__(self, X: np.ndarray, k: int):
        super().__init__(X, k)
        self.n_weights = X.shape[1] * k

    @cached_property
    def _rows(self) -> Compressed | None:
        """The entries that are not 0, where they are few and weights stay in a processor's cache."""
        some = self.X[:: len(self.X) // _ROWS + 1]  # enough to judge all by
        if self.n_weights > _CACHED or np.count_nonzero(some) > _DENSE * some.size:
            return None
        rows = sparse.csr_matrix(self.X)
        return Compressed(*_arrays(rows, rows.indices.dtype), self.X.shape[1])

    def scores(self, w: np.ndarray, out: np.ndarray, run: Run) -> None:
        """Write the scores (N, k): one matrix product for each block of rows."""
        W, rows = np.ascontiguousarray(w).reshape(self.X.shape[1], self.k), self._rows

        def block(a: int, b: int) -> None:
            if rows is None:
                np.matmul(self.X[a:b], W, out=out[a:b])
            else:
                rows.times(W, out, a, b)

        run(block, _blocks(self.X.shape[0], _ROWS))

    def gradient(self, q: np.ndarray, out: np.ndarray, run: Run) -> None:
        """Write ``Phi' q``, the moments under labels ``q`` (N, k): a product for each block of rows, added in order."""
        (n, d), rows, q = self.X.shape, self._rows, np.ascontiguousarray(q)
        G = out.reshape(d, self.k)
        G[:] = 0.0

        def moments(a: int, b: int) -> np.ndarray:
            if rows is None:
                return np.asarray(self.X[a:b].T @ q[a:b])
            part = np.zeros((d, self.k))
            rows.add_products(q, part, a, b)
            return part

        add_in_order(run, moments, _blocks(n, max(_ROWS, -(-n // _DENSE_PARTS))), G.__iadd__)

    def squares(self, share: np.ndarray) -> np.ndarray:
        """Weighted sum of the squares of what each weight is multiplied with: of each feature, for every label."""
        total = np.zeros(self.X.shape[1])
        for a, b in _blocks(self.X.shape[0], _ROWS):
            total += share[a:b] @ self.X[a:b] ** 2
        return np.repeat(total, self.k)

    def matrix(self) -> sparse.csr_matrix:
        """``Phi`` (N k, n_weights): row ``i k + a`` makes the score of label ``a`` at node ``i``."""
        return sparse.csr_matrix(sparse.kron(self.X, sparse.eye(self.k), format="csr"))


class _Parts(NamedTuple):
    """A sparse matrix by rows in two parts: features with weights for many labels, and those with a few.

    The former have whole rows of a table, 0 where a label has no weight: reading them takes less than looking labels
    up. Its ``entries`` are the weights ``at``. The latter are put in order of how many labels they have and how often
    they occur, so that a processor foresees the number of labels and finds the common ones close together; their
    weights are the weights ``few``.
    """

    wide: Compressed
    shape: tuple[int, int]  # of the table
    narrow: Pattern
    at: np.ndarray
    entries: np.ndarray
    few: np.ndarray


class SparseFeatures(_NodeFeatures):
    """A CSR matrix with weights for some labels of each feature.

    Parameters
    ----------
    X : csr_matrix (N, d)
    k : int
        Number of labels.
    start, label : ndarray (d + 1,), (n_weights,)
        Feature ``j`` has weights for the labels ``label[start[j] : start[j + 1]]``.
    """

    def __init__(self, X: sparse.csr_matrix, k: int, start: np.ndarray, label: np.ndarray):
        super().__init__(X, k)
        self.start, self.label = start, label
        self.n_weights = label.size

    @cached_property
    def _whole(self) -> bool:
        """Whether every feature has a weight for every label."""
        return self.n_weights == self.X.shape[1] * self.k

    @cached_property
    def _rows(self) -> Compressed:
        """The matrix by rows, for kernels."""
        return Compressed(*_arrays(self.X, self.X.indices.dtype), self.X.shape[1])

    @cached_property
    def _parts(self) -> _Parts:
        """The matrix by rows where features have weights for some labels only."""
        X, widths = self.X, np.diff(self.start)
        is_wide = _WIDE * widths >= self.k
        place, wide = np.cumsum(is_wide) - 1, is_wide[X.indices]
        at = np.flatnonzero(np.repeat(is_wide, widths))
        entries = np.repeat(place, widths)[at] * self.k + self.label[at]
        # As narrow as can be: indices are looked up for each nonzero, and where its weights begin.
        width = np.int32 if X.indices.dtype == np.int32 and self.n_weights < 2**31 else np.intp
        bounds = np.concatenate([[0], np.cumsum(wide)])[X.indptr]
        whole = sparse.csr_matrix((X.data[wide], place[X.indices[wide]], bounds), (X.shape[0], int(is_wide.sum())))
        own = X.indices[~wide]
        order = np.lexsort((-np.bincount(own, minlength=X.shape[1]), widths))
        order = order[~is_wide[order]]
        place[order] = np.arange(order.size)
        rest = sparse.csr_matrix((X.data[~wide], place[own], X.indptr - bounds), (X.shape[0], order.size))
        rest.sort_indices()
        start = np.concatenate([[0], np.cumsum(widths[order])])
        few = np.repeat(self.start[order] - start[:-1], widths[order]) + np.arange(start[-1])
        label = np.ascontiguousarray(self.label[few], np.int32)
        return _Parts(
            Compressed(*_arrays(whole, whole.indices.dtype), whole.shape[1]),
            (whole.shape[1], self.k),
            Pattern(*_arrays(rest, width), order.size, self.k, np.ascontiguousarray(start, width), label),
            at,
            entries,
            few,
        )

    @cached_property
    def _columns(self) -> Compressed:
        """The matrix by columns, for kernels."""
        C = self.X.tocsc()
        return Compressed(*_arrays(C, C.indices.dtype), C.shape[0])

    @staticmethod
    def all_pairs(d: int, k: int) -> tuple[np.ndarray, np.ndarray]:
        """``start`` and ``label`` with a weight for each label of each feature."""
        return np.arange(d + 1, dtype=np.int64) * k, np.tile(np.arange(k, dtype=np.int32), d)

    @staticmethod
    def seen_pairs(X: sparse.csr_matrix, y: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """``start`` and ``label`` with a weight for the labels that each feature occurs with; -1 is no label."""
        rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        of = y[rows] >= 0
        pairs = np.unique(X.indices[of].astype(np.int64) * k + y[rows[of]])
        feature, label = np.divmod(pairs, k)
        start = np.concatenate([[0], np.cumsum(np.bincount(feature, minlength=X.shape[1]))]).astype(np.int64)
        return start, label.astype(np.int32)

    def scores(self, w: np.ndarray, out: np.ndarray, run: Run) -> None:
        """Write the scores (N, k): one pass over the nonzeros, in blocks of rows."""
        w = np.ascontiguousarray(w)
        if self._whole:
            rows, table = self._rows, w.reshape(-1, self.k)
            run(lambda a, b: rows.times(table, out, a, b), _blocks(self.X.shape[0], _ROWS))
            return
        parts = self._parts
        table = np.zeros(parts.shape)
        table.ravel()[parts.entries] = w[parts.at]
        few = w[parts.few]

        def block(a: int, b: int) -> None:
            parts.wide.times(table, out, a, b)
            parts.narrow.add_scores(few, out, a, b)

        run(block, _blocks(self.X.shape[0], _ROWS))

    def gradient(self, q: np.ndarray, out: np.ndarray, run: Run) -> None:
        """Write ``Phi' q``: one pass over the nonzeros, in blocks of columns, or of rows where weights are few."""
        (n, d), q = self.X.shape, np.ascontiguousarray(q)
        if self._whole:
            columns, table = self._columns, out.reshape(d, self.k)
            run(lambda a, b: columns.times(q, table, a, b), _blocks(d, max(1, d // 64)))
            return
        parts = self._parts

        few, whole = np.zeros(parts.few.size), np.zeros(parts.shape)

        def moments(a: int, b: int) -> tuple[np.ndarray, np.ndarray]:
            part, table = np.zeros_like(few), np.zeros_like(whole)
            parts.wide.add_products(q, table, a, b)
            parts.narrow.add_moments(q, part, a, b)
            return part, table

        def add(found: tuple[np.ndarray, np.ndarray]) -> None:
            for total, part in zip((few, whole), found, strict=True):
                total += part

        add_in_order(run, moments, _blocks(n, max(1, -(-n // _PARTS))), add)
        out[parts.few], out[parts.at] = few, whole.ravel()[parts.entries]

    def squares(self, share: np.ndarray) -> np.ndarray:
        """Weighted sum of each feature's squares, for the labels that it has weights for."""
        X = self.X
        counts = np.repeat(share, np.diff(X.indptr)) * X.data**2
        return np.repeat(np.bincount(X.indices, counts, minlength=X.shape[1]), np.diff(self.start))

    def matrix(self) -> sparse.csr_matrix:
        """``Phi``, an entry for each nonzero and label of its feature."""
        X = self.X.tocoo()
        widths = np.diff(self.start)[X.col]
        column = np.repeat(self.start[X.col] - np.cumsum(widths) + widths, widths) + np.arange(widths.sum())
        row = np.repeat(X.row.astype(np.int64) * self.k, widths) + self.label[column]
        shape = X.shape[0] * self.k, self.n_weights
        return sparse.csr_matrix((np.repeat(X.data, widths), (row, column)), shape=shape)
