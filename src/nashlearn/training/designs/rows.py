"""How weights become scores: a weight vector per class, or one direction with thresholds.

A design is linear, ``scores = Phi(x) w``. Training needs it, its adjoint (the moments of a residual) and the
curvature ``sum_i Phi(x_i)' J_i Phi(x_i)``; everything else about a design is private to this file.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp

from nashlearn.training.designs.row_products import compressed

__all__ = ["PerClass", "Shared", "diagonals"]


def _dense(block: Any) -> np.ndarray:
    return block.toarray() if sp.issparse(block) else block


def _squares(block: Any) -> Any:
    return block.multiply(block).tocsr() if sp.issparse(block) else block * block


def diagonals(J: np.ndarray, k: int) -> np.ndarray:
    """The diagonals (k, rows) of matrices (k, k) whose lower triangles are packed in ``J``."""
    return J[[c * (c + 3) // 2 for c in range(k)]]


def _ridge_solve(A: np.ndarray, b: np.ndarray, ridge: float) -> np.ndarray:
    """Solve a positive semidefinite system; collinear features get the ridge and a trace of jitter."""
    diagonal = np.einsum("jj->j", A)
    diagonal += ridge + 1e-10 * diagonal.mean()
    return sl.cho_solve(sl.cho_factor(A, lower=True, overwrite_a=True, check_finite=False), b, check_finite=False)


class PerClass:
    """Weights (k, d + 1), one row per class; the last column multiplies the constant feature ``bias``."""

    sweepable = True

    def __init__(self, k: int, d: int, bias: float):
        self.k, self.d, self.bias = k, d, bias
        self.shape = (k, d + 1)
        self.size = k * (d + 1)

    def scores(self, block: Any, W: np.ndarray) -> np.ndarray:
        """``W x`` of every row of a block, (rows, k)."""
        if sp.issparse(block):
            scores = np.empty((block.shape[0], self.k))
            compressed(block, self.bias).all_scores(np.ascontiguousarray(W.T), scores)
            return scores
        scores = block @ W[:, : self.d].T
        scores += self.bias * W[:, self.d]
        return scores

    def add_moments(self, block: Any, residual: np.ndarray, G: np.ndarray) -> None:
        """Add ``sum_i residual_i x_i'`` to ``G``."""
        if sp.issparse(block):
            across = np.zeros((self.d + 1, self.k))
            compressed(block, 0.0).add_moments(np.ascontiguousarray(residual), across)
            G[:, : self.d] += across[: self.d].T
        else:
            G[:, : self.d] += residual.T @ block
        G[:, self.d] += self.bias * residual.sum(axis=0)

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

    def least_squares(self, problem: Any, moments: np.ndarray) -> np.ndarray:
        """Weights whose scores best fit, in mean square, the residual that ``moments`` came from."""
        gram = np.zeros((self.d + 1, self.d + 1))
        for part, block in problem.blocks():
            share = problem.omega[part, None]
            weighted = block.multiply(share) if sp.issparse(block) else block * share
            gram[: self.d, : self.d] += _dense(weighted.T @ block)
            gram[self.d, : self.d] += self.bias * np.asarray(weighted.sum(axis=0)).ravel()
        gram[: self.d, self.d] = gram[self.d, : self.d]
        gram[self.d, self.d] = self.bias**2
        return _ridge_solve(gram, moments.T, problem.alpha).T


class Shared:
    """Weights ``(w, b)`` of size d + m: the m scores are ``w x + b_l``, one direction cut by m thresholds ``-b``."""

    sweepable = False

    def __init__(self, m: int, d: int):
        self.m, self.d = m, d
        self.shape = (d + m,)
        self.size = d + m

    def scores(self, block: Any, w: np.ndarray) -> np.ndarray:
        """``w x + b`` of every row of a block, (rows, m)."""
        return np.asarray(block @ w[: self.d])[:, None] + w[self.d :]

    def add_moments(self, block: Any, residual: np.ndarray, G: np.ndarray) -> None:
        """Add the adjoint of the scores at ``residual`` to ``G``."""
        G[: self.d] += block.T @ residual.sum(axis=1)
        G[self.d :] += residual.sum(axis=0)

    def add_curvature(self, block: Any, J: np.ndarray, H: np.ndarray) -> None:
        """Add the curvature of a block to ``H``."""
        J, block = diagonals(J, self.m), _dense(block)  # thresholds are independent: Jacobians are diagonal
        H[: self.d, : self.d] += (block * J.sum(axis=0)[:, None]).T @ block
        H[self.d :, : self.d] += J @ block
        np.einsum("jj->j", H)[self.d :] += J.sum(axis=1)

    def add_diagonal(self, block: Any, diagonal: np.ndarray, out: np.ndarray) -> None:
        """Add the diagonal of a block's curvature to ``out``; that of Jacobians is (m, rows)."""
        out[: self.d] += _squares(block).T @ diagonal.sum(axis=0)
        out[self.d :] += diagonal.sum(axis=1)

    def reach(self, sizes: np.ndarray, w: np.ndarray) -> float:
        """The mean of ``sum_l |w| |x| + |b_l|``, where ``sizes`` are the means of ``|x|``."""
        return float(self.m * (sizes @ np.abs(w[: self.d])) + np.abs(w[self.d :]).sum())

    def tidied(self, w: np.ndarray) -> np.ndarray:
        """The same weights with sorted thresholds, which never raises the objective.

        The sum of the thresholds' values does not see their order, and the score of the true label, the sum over the
        thresholds below it, is largest if these are the lowest. Sorted, they make the absolute game.
        """
        b = w[self.d :]
        return w if (np.diff(b) <= 0.0).all() else np.concatenate([w[: self.d], -np.sort(-b)])

    def squared_diameters(self, sqnorms: np.ndarray) -> np.ndarray:
        """Squared distance between the moments of the lowest and the highest label."""
        return self.m**2 * sqnorms + self.m

    def least_squares(self, problem: Any, moments: np.ndarray) -> np.ndarray:
        """Weights whose scores best fit, in mean square, the residual that ``moments`` came from."""
        H = np.zeros((self.size, self.size))
        packed = np.ones((self.m * (self.m + 1) // 2, 1))
        for part, block in problem.blocks():
            self.add_curvature(block, packed * problem.omega[part], H)
        H = np.tril(H) + np.tril(H, -1).T
        return _ridge_solve(H, moments, problem.alpha)
