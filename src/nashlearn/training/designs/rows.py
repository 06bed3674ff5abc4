"""How weights become scores: a weight vector per class, or one direction with thresholds.

A design is linear, ``scores = Phi(x) w``. Training needs it, its adjoint (the moments of a residual) and the
curvature ``sum_i Phi(x_i)' J_i Phi(x_i)``; everything else about a design is private to this file.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp

from nashlearn.training.designs.row_products import rows_of

__all__ = ["Cumulative", "PerClass", "Shared", "diagonals"]


def _dense(block: Any) -> np.ndarray:
    return block.toarray() if sp.issparse(block) else block


def _squares(block: Any) -> Any:
    return block.multiply(block).tocsr() if sp.issparse(block) else block * block


def diagonals(J: np.ndarray, k: int) -> np.ndarray:
    """The diagonals (k, rows) of matrices (k, k) whose lower triangles are packed in ``J``."""
    return J[[c * (c + 3) // 2 for c in range(k)]]


def _mirrored(H: np.ndarray) -> np.ndarray:
    """The symmetric matrix of this lower triangle."""
    lower = np.tril(H)
    return lower + np.tril(H, -1).T


def _ridge_factor(A: np.ndarray, ridge: float) -> Any:
    """Factor a positive semidefinite matrix (overwritten); collinear features get the ridge and a trace of jitter."""
    diagonal = np.einsum("jj->j", A)
    diagonal += ridge + 1e-10 * diagonal.mean()
    return sl.cho_factor(A, lower=True, overwrite_a=True, check_finite=False)


_AFFORDABLE = 16  # operations for a matrix of second moments, in those of a product of the data with the weights
_CACHED = 2000  # weights that stay in the first cache
_SPARSE = 0.4  # share of residuals that are not 0 below which they are faster by far
_FEW = 16  # classes: BLAS would copy every row to meet them
_WIDE, _SEEN = 200, 1000  # features from which on it is asked whether they are related, and rows to see that in
_UNRELATED = 0.3  # variance of the eigenvalues up to which the diagonal is as good
_GATHERED = 4096  # rows that are copied at a time
_ROWS, _FEWEST = 8, 2  # rows per weight that estimate second moments well enough to scale by, and at least


def _eigenvalue_variance(X: Any) -> float:
    """Roughly the variance of the eigenvalues of the features' correlations, about 0 and not about their means.

    That is the number of features times the mean square of a correlation, seen in some rows and features, less what
    unrelated features would show by chance.
    """
    some = np.random.default_rng(0).choice(X.shape[1], min(X.shape[1], _WIDE), replace=False)
    rows = X[:: max(1, X.shape[0] // _SEEN)]
    part = np.column_stack([_dense(rows[:, some]).astype(np.float64), np.ones(rows.shape[0])])
    part /= np.sqrt(np.maximum(np.square(part).sum(axis=0), np.finfo(np.float64).tiny))
    between = np.square(part.T @ part)
    np.einsum("jj->j", between)[:] = 0.0
    return X.shape[1] * float(between.sum() / (between.size - len(between)) - 1.0 / len(part))


class RowDesign:
    """What designs share that say how they add second moments, ``add_gram``.

    Attributes
    ----------
    shape, size
        Of the weights.
    common : int
        Weights in each of the parts that have the same second moments.
    """

    shape: tuple[int, ...]
    size: int
    common: int

    @property
    def parts(self) -> int:
        """How many such parts there are."""
        return self.size // self.common

    def passable(self, block: Any) -> Any:
        """Rows for :mod:`nashlearn.kernels.passes`, which sees them in place of the methods below; None where not."""
        return None

    def add_gram(self, block: Any, share: np.ndarray, A: np.ndarray) -> None:
        """Add the second moments (common, common) of a block to ``A``, at least their lower triangle."""
        raise NotImplementedError

    def add_diagonal(self, block: Any, diagonal: np.ndarray, out: np.ndarray) -> None:
        """Add the diagonal of a block's curvature to ``out``, shaped as the weights."""
        raise NotImplementedError

    def add_curvature(self, block: Any, J: np.ndarray, H: np.ndarray) -> None:
        """Add the lower triangle of a block's curvature to ``H``; ``J`` holds those of its rows' Jacobians, packed."""
        raise NotImplementedError

    def curvature_among(self, chosen: np.ndarray, blocks: Iterable[tuple[Any, np.ndarray]]) -> np.ndarray:
        """The curvature (m, m) of pairs (block, Jacobians) for some of the flat weights, in rising order."""
        H = np.zeros((self.size, self.size))
        for block, J in blocks:
            self.add_curvature(block, J, H)
        return _mirrored(H[np.ix_(chosen, chosen)])

    def least_squares(self, problem: Any, moments: np.ndarray) -> np.ndarray:
        """Weights whose scores best fit, in mean square, the residual that ``moments`` came from."""
        A = np.zeros((self.common, self.common))
        for part, block in problem.blocks():
            self.add_gram(block, problem.omega[part], A)
        found = sl.cho_solve(_ridge_factor(A, problem.alpha), moments.reshape(-1, self.common).T, check_finite=False)
        return found.T.reshape(self.shape)

    def metric(self, problem: Any, ridge: float) -> np.ndarray:
        """The inverse (common, common) of the second moments with a ridge, or (common,) of their diagonal.

        A matrix where that costs no more than a few evaluations, from no more rows than that needs, unless features are
        many and all but unrelated. Moments of some rows are drawn towards their diagonal, as they err the more.
        """
        m, n, X = self.common, problem.n, problem.X
        affordable = _AFFORDABLE * problem.k * (X.nnz if sp.issparse(X) else X.size) // m**2
        if affordable < min(_FEWEST * m, n) or (m > _WIDE and _eigenvalue_variance(X) < _UNRELATED):
            out = np.zeros(self.shape)
            for part, block in problem.blocks():
                self.add_diagonal(block, np.broadcast_to(problem.omega[part], (problem.k, block.shape[0])), out)
            diagonal = out.reshape(-1, m)[0]
            return 1.0 / (ridge + diagonal + 1e-10 * diagonal.mean())
        A, stride = np.zeros((m, m)), max(1, n // max(min(_ROWS * m, affordable), 1000))
        step = 4096 * stride
        for start in range(0, n, step):
            part = slice(start, start + step, stride)
            self.add_gram(X[part].astype(np.float64, copy=False), stride * problem.omega[part], A)
        if stride > 1:
            diagonal, share = A.diagonal().copy(), m / (m + n // stride)
            A *= 1.0 - share
            np.einsum("jj->j", A)[:] += share * diagonal
        inverse, _ = sl.lapack.dpotri(_ridge_factor(A, ridge)[0], lower=True, overwrite_c=True)
        return _mirrored(inverse)


class PerClass(RowDesign):
    """Weights (k, d + 1), one row per class; the last column multiplies the constant feature ``bias``."""

    sweepable = True

    def __init__(self, k: int, d: int, bias: float):
        self.k, self.d, self.bias = k, d, bias
        self.shape, self.common = (k, d + 1), d + 1
        self.size = k * (d + 1)

    def passable(self, block: Any) -> Any:
        """Dense rows for compiled code, where that is faster than BLAS."""
        return rows_of(block, self.bias) if self._compiled(block) and not sp.issparse(block) else None

    def scores(self, block: Any, W: np.ndarray) -> np.ndarray:
        """``W x`` of every row of a block, (rows, k)."""
        if self._compiled(block):
            scores = np.empty((block.shape[0], self.k))
            rows_of(block, self.bias).all_scores(np.ascontiguousarray(W.T if sp.issparse(block) else W), scores)
            return scores
        scores = block @ W[:, : self.d].T
        scores += self.bias * W[:, self.d]
        return scores

    def add_moments(self, block: Any, residual: np.ndarray, G: np.ndarray) -> None:
        """Add ``sum_i residual_i x_i'`` to ``G``. Where training is all but done, most residuals are 0."""
        if self._compiled(block) or np.count_nonzero(residual) < _SPARSE * residual.size:
            found = np.zeros((self.d + 1, self.k) if sp.issparse(block) else self.shape)
            rows_of(block, self.bias).add_moments(np.ascontiguousarray(residual), found)
            G += found.T if sp.issparse(block) else found
            return
        G[:, : self.d] += residual.T @ block
        G[:, self.d] += self.bias * residual.sum(axis=0)

    def _compiled(self, block: Any) -> bool:
        """Whether own loops are faster than BLAS: for sparse rows, few weights, and few classes."""
        return sp.issparse(block) or self.size <= _CACHED or self.k <= _FEW

    def add_curvature(self, block: Any, J: np.ndarray, H: np.ndarray) -> None:
        """Add the curvature of a block to ``H``; ``J`` holds the lower triangles of its rows' Jacobians, packed."""
        block = _dense(block)
        rows = np.empty((block.shape[0], self.d + 1))
        rows[:, : self.d] = block
        rows[:, self.d] = self.bias
        blocks = H.reshape(self.k, self.d + 1, self.k, self.d + 1)
        for c in range(self.k):
            for e in range(c + 1):
                weight = J[c * (c + 1) // 2 + e]
                some = np.flatnonzero(weight)
                if some.size == 0:
                    continue
                part, scale = (rows[some], weight[some]) if some.size < 0.7 * weight.size else (rows, weight)
                blocks[c, :, e, :] += (part * scale[:, None]).T @ part

    def class_curvature(self, X: Any, rows: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """The curvature (d + 1, d + 1) of one class's weights among themselves, from these rows and their weight.

        In single precision: not finite where features are too large for that.
        """
        A, root = np.zeros((self.d + 1, self.d + 1), np.float32), np.sqrt(weight).astype(np.float32)[:, None]
        for start in range(0, rows.size, _GATHERED):
            part = slice(start, start + _GATHERED)
            scaled = np.empty((rows[part].size, self.d + 1), np.float32)
            scaled[:, self.d] = self.bias * root[part, 0]
            with np.errstate(over="ignore", invalid="ignore"):
                np.multiply(_dense(X[rows[part]]), root[part], out=scaled[:, : self.d], casting="same_kind")
                A += scaled.T @ scaled
        return A

    def curvature_among(self, chosen: np.ndarray, blocks: Iterable[tuple[Any, np.ndarray]]) -> np.ndarray:
        """As :meth:`RowDesign.curvature_among`, in O(rows m^2)."""
        classes, features = np.divmod(chosen, self.d + 1)
        used, place = np.unique(features, return_inverse=True)
        of_class = np.searchsorted(classes, np.arange(self.k + 1))
        own = [slice(a, b) for a, b in pairwise(of_class.tolist())]
        data = used[used < self.d]
        H = np.zeros((chosen.size, chosen.size))
        for block, J in blocks:
            rows = np.full((block.shape[0], used.size), self.bias)
            rows[:, : data.size] = _dense(block[:, data])
            parts = [rows[:, place[one]] for one in own]
            for c in range(self.k):
                for e in range(c + 1):
                    weighted = parts[c] * J[c * (c + 1) // 2 + e][:, None]
                    H[own[c], own[e]] += weighted.T @ parts[e]
        return _mirrored(H)

    def add_diagonal(self, block: Any, diagonal: np.ndarray, out: np.ndarray) -> None:
        """Add the diagonal of a block's curvature to ``out``, shaped as the weights; that of Jacobians is (k, rows)."""
        out[:, : self.d] += (_squares(block).T @ diagonal.T).T
        out[:, self.d] += self.bias**2 * diagonal.sum(axis=1)

    def reach(self, sizes: np.ndarray, W: np.ndarray) -> float:
        """A bound of the mean of ``max_c |W_c| |x|``, where ``sizes`` are the means of ``|x|``."""
        size = np.abs(W).max(axis=0)
        return float(sizes @ size[: self.d] + self.bias * size[self.d])

    def tidied(self, W: np.ndarray) -> np.ndarray:
        """``W``."""
        return W

    def squared_diameters(self, sqnorms: np.ndarray) -> np.ndarray:
        """``|(e_a - e_b) x'|^2`` for examples of these squared norms."""
        return 2.0 * (sqnorms + self.bias**2)

    def add_gram(self, block: Any, share: np.ndarray, A: np.ndarray) -> None:
        """Add the second moments of the rows and the constant feature to ``A``."""
        weighted = block.multiply(share[:, None]).tocsr() if sp.issparse(block) else block * share[:, None]
        A[: self.d, : self.d] += _dense(weighted.T @ block)
        means = self.bias * np.asarray(weighted.sum(axis=0)).ravel()
        A[self.d, : self.d] += means
        A[: self.d, self.d] += means
        A[self.d, self.d] += self.bias**2 * share.sum()


class Shared(RowDesign):
    """Weights ``(w, b)`` of size d + m: the m scores are ``w x + c b_l``, one direction cut by m thresholds ``-c b``.

    They see the constant feature ``c = constant``, which is positive.
    """

    sweepable = False

    def __init__(self, m: int, d: int, constant: float = 1.0):
        self.m, self.d, self.constant = m, d, constant
        self.shape = (d + m,)
        self.size = self.common = d + m

    def scores(self, block: Any, w: np.ndarray) -> np.ndarray:
        """``w x + c b`` of every row of a block, (rows, m)."""
        return np.asarray(block @ w[: self.d])[:, None] + self.constant * w[self.d :]

    def add_moments(self, block: Any, residual: np.ndarray, G: np.ndarray) -> None:
        """Add the adjoint of the scores at ``residual`` to ``G``."""
        G[: self.d] += block.T @ residual.sum(axis=1)
        G[self.d :] += self.constant * residual.sum(axis=0)

    def add_curvature(self, block: Any, J: np.ndarray, H: np.ndarray) -> None:
        """Add the curvature of a block to ``H``."""
        J, block = diagonals(J, self.m), _dense(block)  # thresholds are independent: Jacobians are diagonal
        H[: self.d, : self.d] += (block * J.sum(axis=0)[:, None]).T @ block
        H[self.d :, : self.d] += self.constant * (J @ block)
        np.einsum("jj->j", H)[self.d :] += self.constant**2 * J.sum(axis=1)

    def add_diagonal(self, block: Any, diagonal: np.ndarray, out: np.ndarray) -> None:
        """Add the diagonal of a block's curvature to ``out``; that of Jacobians is (m, rows)."""
        out[: self.d] += _squares(block).T @ diagonal.sum(axis=0)
        out[self.d :] += self.constant**2 * diagonal.sum(axis=1)

    def reach(self, sizes: np.ndarray, w: np.ndarray) -> float:
        """The mean of ``sum_l |w| |x| + c |b_l|``, where ``sizes`` are the means of ``|x|``."""
        return float(self.m * (sizes @ np.abs(w[: self.d])) + self.constant * np.abs(w[self.d :]).sum())

    def tidied(self, w: np.ndarray) -> np.ndarray:
        """The same weights with sorted thresholds, which never raises the objective.

        The sum of the thresholds' values does not see their order, and the score of the true label, the sum over the
        thresholds below it, is largest if these are the lowest. Sorted, they make the absolute game.
        """
        b = w[self.d :]
        return w if (np.diff(b) <= 0.0).all() else np.concatenate([w[: self.d], -np.sort(-b)])

    def squared_diameters(self, sqnorms: np.ndarray) -> np.ndarray:
        """Squared distance between the moments of the lowest and the highest label."""
        return self.m**2 * sqnorms + self.constant**2 * self.m

    def add_gram(self, block: Any, share: np.ndarray, A: np.ndarray) -> None:
        """Add the second moments of the thresholds' features to ``A``, its lower triangle."""
        self.add_curvature(block, np.broadcast_to(share, (self.m * (self.m + 1) // 2, share.size)), A)


class Cumulative(Shared):
    """The weights ``(w, b)`` of :class:`Shared`, which score the ``m + 1`` ordered labels themselves.

    Label ``j`` lies above ``j`` thresholds and collects what these are worth, ``f_j = sum_{l < j} (w x + c b_l)``: the
    lowest one scores 0. Whatever the order of ``b``, that is a game of labels with its certificate; training leaves the
    order as it is, since sorting raises the score of every label but the two outer ones, and may raise the objective.
    """

    def __init__(self, m: int, d: int, constant: float = 1.0):
        super().__init__(m, d, constant)
        self.places = np.arange(m + 1.0)

    def scores(self, block: Any, w: np.ndarray) -> np.ndarray:
        """Scores (rows, m + 1) of every row of a block."""
        return np.outer(block @ w[: self.d], self.places) + np.append(0.0, np.cumsum(self.constant * w[self.d :]))

    def add_moments(self, block: Any, residual: np.ndarray, G: np.ndarray) -> None:
        """Add the adjoint of the scores at ``residual`` to ``G``."""
        G[: self.d] += block.T @ (residual @ self.places)
        G[self.d :] += self.constant * _sums_above(residual.sum(axis=0))

    def add_curvature(self, block: Any, J: np.ndarray, H: np.ndarray) -> None:
        """Add the curvature of a block to ``H``; ``J`` holds the lower triangles of its rows' Jacobians, packed."""
        block, k = _dense(block), self.m + 1
        full = np.empty((k, k, J.shape[1]))
        below = np.tril_indices(k)
        full[below] = full[below[::-1]] = J
        full = _sums_above(_sums_above(full).swapaxes(0, 1))  # of thresholds
        each = full.sum(axis=1)
        H[: self.d, : self.d] += (block * each.sum(axis=0)[:, None]).T @ block
        H[self.d :, : self.d] += self.constant * (each @ block)
        H[self.d :, self.d :] += self.constant**2 * full.sum(axis=2)

    def add_diagonal(self, block: Any, diagonal: np.ndarray, out: np.ndarray) -> None:
        """Add roughly the diagonal of a block's curvature: as if labels, ranked from the middle, moved alone."""
        out[: self.d] += _squares(block).T @ (np.square(self.places - 0.5 * self.m) @ diagonal)
        out[self.d :] += 0.25 * self.constant**2 * diagonal.sum()

    def tidied(self, w: np.ndarray) -> np.ndarray:
        """``w``."""
        return w

    def add_gram(self, block: Any, share: np.ndarray, A: np.ndarray) -> None:
        """Add the second moments of the labels' features, less their mean over labels, to ``A``."""
        k = self.m + 1
        centred = (np.eye(k) - 1.0 / k)[np.tril_indices(k)]
        self.add_curvature(block, np.outer(centred, share), A)


def _sums_above(x: np.ndarray) -> np.ndarray:
    """``sum_{j > l} x_j`` along the first axis, for all ``l`` but the last."""
    return np.cumsum(x[:0:-1], axis=0)[::-1]
