"""Newton's directions for linear models of one label per row: the Hessian of a mean loss, formed or applied.

Up to ``DENSE_LIMIT`` weights the matrix is formed and factored; beyond, conjugate gradients take products with it, two
passes over its rows each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.linalg as sl
from scipy.sparse.linalg import LinearOperator, cg

from nashlearn.kernels.newton import apply_packed
from nashlearn.training.designs.rows import diagonals
from nashlearn.training.methods.factor import shifted_factor
from nashlearn.training.problem import Problem

__all__ = ["CONJUGATE_STEPS", "DENSE_LIMIT", "Hessian", "by_cholesky", "by_conjugate_gradients", "cholesky_factor"]

DENSE_LIMIT = 2500  # weights up to which the Hessian is formed: 50 MB, a fifth of a second to factorise
CONJUGATE_STEPS = 50


class Hessian:
    """The Hessian of the mean loss at a point, read block by block, from all or some rows.

    Subclasses say how blocks of Jacobians are made.

    Attributes
    ----------
    scale : float
        What the rows count for.
    typical : float
        A size of its diagonal, to which damping is relative; 0 where that at hand will do.
    """

    scale = 1.0
    typical = 0.0

    def __init__(self, problem: Problem, rows: np.ndarray):
        self.problem, self.rows = problem, rows

    def packed(self, rows: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Write the rows' Jacobians, packed, into the first columns of ``out``; the rows that have one."""
        raise NotImplementedError

    def blocks(self) -> Iterator[tuple[Any, np.ndarray]]:
        """Pairs (data, packed Jacobians) of the rows that have any."""
        problem = self.problem
        k = problem.k
        step = max(64, min(4096, (1 << 22) // (4 * k * (k + 1) + 8 * problem.d)))
        out = np.empty((k * (k + 1) // 2, step))
        for start in range(0, self.rows.size, step):
            active = self.packed(self.rows[start : start + step], out)
            if active.size:
                yield problem.X[active].astype(np.float64, copy=False), out[:, : active.size]

    def matrix(self) -> np.ndarray:
        """Lower triangle of the Hessian."""
        size = self.problem.design.size
        H = np.zeros((size, size))
        for block, packed in self.blocks():
            self.problem.design.add_curvature(block, packed, H)
        H *= self.scale
        return H

    def diagonal(self) -> np.ndarray:
        """Diagonal of the Hessian, shaped as the weights."""
        out = np.zeros(self.problem.design.shape)
        for block, packed in self.blocks():
            self.problem.design.add_diagonal(block, diagonals(packed, self.problem.k), out)
        return self.scale * out

    def product(self, v: np.ndarray) -> np.ndarray:
        """The Hessian times ``v``, shaped as the weights."""
        design = self.problem.design
        out = np.zeros(design.shape)
        for block, packed in self.blocks():
            scores = design.scores(block, v.reshape(design.shape))
            apply_packed(packed, scores)
            design.add_moments(block, scores, out)
        return self.scale * out


def cholesky_factor(curvature: Hessian, alpha: float, damping: float) -> np.ndarray:
    """The lower factor of the damped Hessian, more damped where rounding has made it indefinite."""
    return shifted_factor(curvature.matrix, alpha, damping, curvature.typical)


def by_cholesky(curvature: Hessian, gradient: np.ndarray, alpha: float, damping: float) -> np.ndarray:
    factor = cholesky_factor(curvature, alpha, damping)
    return -sl.cho_solve((factor, True), gradient.ravel(), check_finite=False).reshape(gradient.shape)


def by_conjugate_gradients(curvature: Hessian, gradient: np.ndarray, alpha: float, damping: float) -> np.ndarray:
    diagonal = curvature.diagonal().ravel()
    shift = alpha + damping * max(diagonal.mean(), curvature.typical)
    size = (gradient.size, gradient.size)
    H = LinearOperator(size, matvec=lambda v: curvature.product(v).ravel() + shift * v, dtype=np.float64)
    M = LinearOperator(size, matvec=lambda v: v / (diagonal + shift), dtype=np.float64)
    step, _ = cg(H, -gradient.ravel(), rtol=0.05, maxiter=CONJUGATE_STEPS, M=M)
    return step.reshape(gradient.shape)
