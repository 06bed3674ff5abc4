"""The metric of L-BFGS where each class has weights of its own: what the Hessian has to say of one class at a time.

The generalised Hessian has a block ``alpha I + sum_i omega_i (J_i)_cc x_i x_i'`` for each class ``c``, made of the rows
where that class is in play, and no larger than the second moments of the features. Where every class meets many others,
what lies between the blocks averages out: in this metric L-BFGS takes about half of the steps that it takes in that of
the second moments of all rows, most of which are out of play in the end.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as sl

from nashlearn.kernels.tangents import tangent_diagonals
from nashlearn.training.methods.hessian import DENSE_LIMIT
from nashlearn.training.methods.tangents import PROBE, kinked_rows
from nashlearn.training.problem import Problem

__all__ = ["class_metric", "evaluations_between"]

_ENOUGH = 5.0  # examples at a kink per weight, of which the blocks are made
_RIDGE = 0.3  # of the mean of all diagonals is added to each: rows come into play, and few of them make a block
_ROUNDED = 1e-9  # of the largest entry of a Jacobian is nothing but rounding
_TANGENT = 4.0  # what an entry of the Jacobian of a row costs, in products
_SOONEST, _PATIENCE = 7.0, 2.0  # evaluations between two metrics, at least, and in those that the second one costs


def evaluations_between(problem: Problem) -> float:
    """Evaluations after which a new metric is worth its price; inf where it never is."""
    design = problem.design
    m = design.common
    if design.parts == 1 or design.size * m > DENSE_LIMIT**2:  # Newton's method has no more to do; or too much memory
        return np.inf
    rows = min(float(problem.n), _ENOUGH * design.size)
    cost = 0.5 * m * m * (rows + design.size) + _TANGENT * problem.k**2 * (rows + min(PROBE, problem.n))
    cost /= 2.0 * problem.n * problem.products
    return max(_SOONEST, _PATIENCE * cost)


def class_metric(
    problem: Problem, mu: float, Q: np.ndarray, tight: np.ndarray, alpha: float, rng: np.random.Generator
) -> np.ndarray | None:
    """The inverses (k, m, m) of each class's block of the Hessian, with a ridge; None where no row is at a kink.

    In single precision: a metric says which way to go, and the ridge keeps blocks far from singular.
    """
    rows = kinked_rows(problem, mu, Q, tight, _ENOUGH * problem.design.size, rng)
    diagonals = np.empty((problem.k, rows.size))
    tangent_diagonals(problem.loss, mu, problem.omega, Q, tight, rows, diagonals)
    largest = diagonals.max(initial=0.0)
    if not largest > 0.0:
        return None
    weights = np.where(diagonals > _ROUNDED * largest, problem.n / rows.size * diagonals, 0.0)

    def block(weight: np.ndarray) -> np.ndarray:
        some = np.flatnonzero(weight)
        return problem.design.class_curvature(problem.X, rows[some], weight[some])

    blocks = problem.run(block, ((weight,) for weight in weights))
    ridge = alpha + _RIDGE * float(np.mean([A.trace(dtype=np.float64) for A in blocks])) / problem.design.common
    found = problem.run(_inverse, ((A, ridge) for A in blocks))
    return np.stack(found) if all(one is not None for one in found) else None


def _inverse(A: np.ndarray, ridge: float) -> np.ndarray | None:
    """The inverse of ``A`` (overwritten) with a ridge; None where rounding or huge features leave it none."""
    A.flat[:: len(A) + 1] += ridge
    finite = np.isfinite(A.trace())
    factor, failed = sl.lapack.spotrf(A, lower=True, clean=True, overwrite_a=True)
    if failed or not finite:
        return None
    lower, _ = sl.lapack.spotri(factor, lower=True, overwrite_c=True)
    diagonal = lower.diagonal().copy()
    lower = lower + lower.T
    lower.flat[:: len(A) + 1] = diagonal
    return lower
