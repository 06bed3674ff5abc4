"""Semismooth Newton on a working set of a kernel problem, where sweeps crawl.

As in :mod:`nashlearn.training.methods.newton`, the dual is maximised less ``mu/2 sum_i omega_i |q_i - centre_i|^2``.
Weights are known by coefficients ``c`` only, so the Newton equation is solved where its right-hand side lives: with
``J_i = sum_a u_a u_a'`` and ``U`` the rows ``sqrt(omega_i) u_a``, ``A c`` the scores, ``r = alpha c + omega (q - y)``,

    (alpha I + U A U') z = -U A r,        step of c = -(r + U' z) / alpha,

a system with one unknown per direction in which an example at a kink can move. Cost: O(m^3 / 3) for m of them, or
the products with ``A`` that conjugate gradients need.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as sl
from scipy.sparse.linalg import LinearOperator, cg

from nashlearn.kernels.newton import smoothed_rows
from nashlearn.kernels.tangents import combine, directions
from nashlearn.training.methods.factor import shifted_factor
from nashlearn.training.methods.ray import Ray
from nashlearn.training.methods.search import first_descent

__all__ = ["WorkingSet", "newton_on_set"]

_STEPS = 80
_SHORT, _SHORT_STEPS = 0.1, 3  # so many steps below this length, and the problem is made smoother
_SMOOTHER = 4.0
_FACTOR_LIMIT = 4000  # directions up to which the equation is factored, 128 MB: steps that are inexact become short
_CG_STEPS = 200
_INEXACT = 0.1
_SHORTEST = 1e-8
_RAY = 2  # lengths of the weights that are tried at each step


@dataclass
class WorkingSet:
    """The part of a kernel problem that concerns some examples, the others' label distributions being fixed.

        P(c) = alpha/2 <c, A c> + sum_i omega_i loss_i(outside + A c)
        D(q) = sum_i omega_i risk(q_i) - alpha <c(q), outside> - alpha/2 <c(q), A c(q)>

    ``outside`` are the scores that the other examples contribute.
    """

    game: Any
    span: Any
    alpha: float
    K: np.ndarray
    truth: np.ndarray
    omega: np.ndarray
    outside: np.ndarray

    def spread(self, C: np.ndarray) -> np.ndarray:
        """Scores ``A c`` that coefficients on this set add."""
        return self.span.scores(self.K @ self.span.reduce(C), C)

    def ray(self, C: np.ndarray, AC: np.ndarray) -> Ray:
        """``P(s c)`` as a function of ``s``."""
        half = 0.5 * self.alpha * float(np.vdot(C, AC))
        return Ray(self.game, AC, self.truth, self.omega, half, self.outside)

    def dual(self, Q: np.ndarray, C: np.ndarray, AC: np.ndarray) -> float:
        """``D(q)``, where ``C`` is ``c(q)``."""
        norm = self.alpha * (np.vdot(C, self.outside) + 0.5 * np.vdot(C, AC))
        return float(self.omega @ self.game.risk(Q) - norm)

    def smoothed(
        self, C: np.ndarray, AC: np.ndarray, mu: float, centre: np.ndarray, q: np.ndarray, tight: np.ndarray
    ) -> float:
        """The smoothed primal; writes the proximal steps into ``q``."""
        scores, loss = np.ascontiguousarray(self.outside + AC), self.game.params.compiled()
        total = smoothed_rows(loss, scores, self.truth, self.omega, mu, centre, q, tight)
        return float(total + 0.5 * self.alpha * np.vdot(C, AC))


class Found(NamedTuple):
    """Label distributions ``Q`` of a set, coefficients ``C`` with a primal to match, and the last smoothing."""

    Q: np.ndarray
    C: np.ndarray
    mu: float


def newton_on_set(part: WorkingSet, Q: np.ndarray, shift: np.ndarray, enough: float, mu: float) -> Found:
    """Raise the dual from ``Q`` to a gap of the set's own of ``enough``, or as far as the steps reach.

    Steps begin at the coefficients of ``Q`` plus ``shift``, which may be 0.
    """
    alpha, omega, truth = part.alpha, part.omega, part.truth
    centre, q, tight = Q.copy(), Q.copy(), np.zeros((Q.shape[0], part.game.n_options), np.bool_)
    C = omega[:, None] * (truth - Q) / alpha
    AC = part.spread(C)
    best, best_Q = part.dual(Q, C, AC), Q
    C = C + shift
    AC = part.spread(C)
    upper, best_C, s = np.inf, C, 1.0
    smooth, short = part.smoothed(C, AC, mu, centre, q, tight), 0
    for _ in range(_STEPS):
        r = alpha * C + omega[:, None] * (q - truth)
        Ar = part.spread(r)
        dual = part.dual(q, C - r / alpha, AC - Ar / alpha)
        if dual > best:
            best, best_Q = dual, q.copy()
        value, s = part.ray(C, AC).best(s, _RAY)
        if value < upper:
            upper, best_C = value, s * C
        if upper - best <= enough:
            break
        residual = float(np.vdot(r, Ar)) / (2.0 * alpha)
        moved = 0.5 * mu * float(omega @ np.einsum("ij,ij->i", q - centre, q - centre))
        if residual <= max(0.5 * moved, 1e-3 * enough):
            centre[:] = q
            mu *= 0.3
            smooth = part.smoothed(C, AC, mu, centre, q, tight)
            continue
        step = _newton_step(part, mu, q, tight, r, Ar)
        spread = part.spread(step)
        found = first_descent(
            lambda t: (part.smoothed(C + t * step, AC + t * spread, mu, centre, q, tight),),  # noqa: B023 - used at once
            smooth,
            float(np.vdot(r, spread)),
            shortest=_SHORTEST,
        )
        length = 0.0 if found is None else found[0]
        C, AC = C + length * step, AC + length * spread
        smooth = part.smoothed(C, AC, mu, centre, q, tight) if found is None else found[1][0]
        short = short + 1 if length < _SHORT else 0
        if short == _SHORT_STEPS:  # too many kinks in the way: a smoother problem, around the best point so far
            mu, short = _SMOOTHER * mu, 0
            centre[:] = best_Q
            smooth = part.smoothed(C, AC, mu, centre, q, tight)
    return Found(best_Q, best_C, mu)


def _newton_step(
    part: WorkingSet, mu: float, q: np.ndarray, tight: np.ndarray, r: np.ndarray, Ar: np.ndarray
) -> np.ndarray:
    n, k = q.shape
    U, owner = np.empty((n * k, k)), np.empty(n * k, np.intp)
    m = directions(part.game.params.compiled(), mu, part.omega, q, tight, U, owner)
    U, owner = U[:m], owner[:m]
    step = np.zeros((n, k))
    if m:
        solve = _by_factor if m <= _FACTOR_LIMIT else _by_conjugate_gradients
        combine(U, owner, solve(part, U, owner, np.einsum("ac,ac->a", U, Ar[owner])), step)
    step -= r
    step /= part.alpha
    return step


def _by_factor(part: WorkingSet, U: np.ndarray, owner: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``(alpha I + U A U')^-1 b`` by Cholesky's factors."""
    factor = shifted_factor(lambda: part.span.covariance(part.K, U, owner).T, part.alpha)
    return sl.cho_solve((factor, True), b, check_finite=False)


def _by_conjugate_gradients(part: WorkingSet, U: np.ndarray, owner: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The same to a tenth of its right-hand side, scaled by the diagonal."""
    scale = part.alpha + part.span.covariance_diagonal(part.K, U, owner)
    spread = np.empty(part.truth.shape)

    def product(z: np.ndarray) -> np.ndarray:
        combine(U, owner, z, spread)
        return part.alpha * z + np.einsum("ac,ac->a", U, part.spread(spread)[owner])

    size = (b.size, b.size)
    M = LinearOperator(size, matvec=lambda z: z / scale, dtype=np.float64)
    A = LinearOperator(size, matvec=product, dtype=np.float64)
    return cg(A, b, rtol=_INEXACT, maxiter=_CG_STEPS, M=M)[0]
