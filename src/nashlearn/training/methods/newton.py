"""Semismooth Newton on the proximal-point smoothing of the game: for problems where dual ascent crawls.

Each outer step maximises the dual minus ``mu/2 sum_i omega_i |q_i - centre_i|^2``. Its own dual is a smooth,
strongly convex problem in the weights, whose generalised Hessian

    alpha I + sum_i omega_i Phi(x_i)' J_i Phi(x_i),        J_i the tangent of the proximal step,

only sees the examples at a kink, about as many as there are weights when ``mu`` is small. Far from the
solution a random part of these examples is curvature enough. The centre then moves to ``q`` and ``mu`` falls,
so the method is exact in the limit, whatever ``alpha`` is. A step costs two passes over the data and one
Cholesky factorisation, or, beyond ``DENSE_LIMIT`` weights, a few dozen passes of conjugate gradients.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg as sl
from numba import njit
from scipy.sparse.linalg import LinearOperator, cg

from nashlearn.games.rows.kernels import tangent
from nashlearn.training.checkpoint import pack_generator, unpack_generator
from nashlearn.training.problem import Problem
from nashlearn.training.progress import Progress

__all__ = ["DENSE_LIMIT", "newton", "step_cost"]

DENSE_LIMIT = 2500  # weights up to which the Hessian is formed: 50 MB, a fifth of a second to factorise
_SAMPLE = 4  # examples at a kink per weight that make a Hessian good enough far from the solution
_CONJUGATE_STEPS = 50


def step_cost(problem: Problem) -> float:
    """Cost of a Newton step, in visits of an example by dual ascent."""
    size = problem.design.size
    if size > DENSE_LIMIT:
        return problem.n * (2.0 + 4.0 * _CONJUGATE_STEPS)
    kinks = min(_SAMPLE * size, problem.n) * size * (problem.d + 1.0)
    return 2.0 * problem.n + (size**3 / 3.0 + kinks) / (8.0 * size)


@njit(cache=True, nogil=True)
def _packed_tangents(loss, mu, omega, Q, tight, rows, packed, active):
    """Lower triangles of ``omega_i J_i`` of the rows that have a tangent; returns how many do."""
    k = Q.shape[1]
    J = np.zeros((k, k))
    m = 0
    for i in rows:
        if tangent(loss, mu, Q[i], tight[i], J) > 0:
            for c in range(k):
                for e in range(c + 1):
                    packed[c * (c + 1) // 2 + e, m] = omega[i] * J[c, e]
            active[m] = i
            m += 1
    return m


@njit(cache=True, nogil=True)
def _distance(omega, Q, centre):
    """``sum_i omega_i |q_i - centre_i|^2``, without a copy of either."""
    total = 0.0
    for i in range(Q.shape[0]):
        for c in range(Q.shape[1]):
            total += omega[i] * (Q[i, c] - centre[i, c]) ** 2
    return total


@njit(cache=True, nogil=True)
def _apply_packed(packed, scores):
    """``scores_i <- omega_i J_i scores_i`` in place."""
    k = scores.shape[1]
    z = np.empty(k)
    for i in range(scores.shape[0]):
        z[:] = 0.0
        for c in range(k):
            for e in range(c):
                z[c] += packed[c * (c + 1) // 2 + e, i] * scores[i, e]
                z[e] += packed[c * (c + 1) // 2 + e, i] * scores[i, c]
            z[c] += packed[c * (c + 3) // 2, i] * scores[i, c]
        scores[i] = z


class _Curvature:
    """The generalised Hessian at a point, less ``alpha``: read block by block, from all or some rows."""

    def __init__(self, problem: Problem, mu: float, Q: np.ndarray, tight: np.ndarray, rows: np.ndarray):
        self.problem, self.mu, self.Q, self.tight, self.rows = problem, mu, Q, tight, rows
        self.scale = problem.n / max(rows.size, 1)

    def blocks(self):
        """Pairs (data, packed Jacobians) of the rows at a kink."""
        problem = self.problem
        k = problem.k
        step = max(64, min(4096, (1 << 22) // (4 * k * (k + 1) + 8 * problem.d)))
        packed = np.empty((k * (k + 1) // 2, step))
        active = np.empty(step, np.int64)
        for start in range(0, self.rows.size, step):
            m = _packed_tangents(
                problem.loss, self.mu, problem.omega, self.Q, self.tight, self.rows[start : start + step], packed,
                active,
            )  # fmt: skip
            if m:
                yield problem.X[active[:m]].astype(np.float64, copy=False), packed[:, :m]

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
            self.problem.design.add_diagonal(block, packed, out)
        return self.scale * out

    def product(self, v: np.ndarray) -> np.ndarray:
        """The Hessian times ``v``, shaped as the weights."""
        design = self.problem.design
        out = np.zeros(design.shape)
        for block, packed in self.blocks():
            scores = design.scores(block, v.reshape(design.shape))
            _apply_packed(packed, scores)
            design.add_moments(block, scores, out)
        return self.scale * out


def _by_cholesky(curvature: _Curvature, gradient: np.ndarray, alpha: float, damping: float) -> np.ndarray:
    H = curvature.matrix()
    diagonal = np.einsum("jj->j", H)
    diagonal += alpha + max(damping, 1e-14) * diagonal.mean()
    try:
        factor = sl.cho_factor(H, lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:  # rounding has made it indefinite: features of very different sizes
        if damping > 1.0:
            return -gradient / diagonal.max()
        return _by_cholesky(curvature, gradient, alpha, max(100.0 * damping, 1e-12))
    return -sl.cho_solve(factor, gradient.ravel(), check_finite=False).reshape(gradient.shape)


def _by_conjugate_gradients(curvature: _Curvature, gradient: np.ndarray, alpha: float, damping: float) -> np.ndarray:
    diagonal = curvature.diagonal().ravel()
    shift = alpha + damping * diagonal.mean()
    size = (gradient.size, gradient.size)
    H = LinearOperator(size, matvec=lambda v: curvature.product(v).ravel() + shift * v, dtype=np.float64)
    M = LinearOperator(size, matvec=lambda v: v / (diagonal + shift), dtype=np.float64)
    step, _ = cg(H, -gradient.ravel(), rtol=0.05, maxiter=_CONJUGATE_STEPS, M=M)
    return step.reshape(gradient.shape)


def least_squares_start(problem: Problem) -> np.ndarray:
    """Weights that fit the labels' deviation from the most uncertain strategy, scaled to the best objective."""
    Q = np.broadcast_to(problem.game.uncertain, (problem.n, problem.k))
    w = problem.design.least_squares(problem, -problem.moments(Q))
    best, scale = problem.primal(w), 1.0
    while scale < 1e3 and (value := problem.primal(2.0 * scale * w)) < best:
        best, scale = value, 2.0 * scale
    return scale * w


def newton(
    problem: Problem, w: np.ndarray, Q: np.ndarray, progress: Progress, rng: np.random.Generator, mu: float
) -> None:
    """Train from weights ``w`` and dual point ``Q`` (overwritten) until ``progress`` is done or stands still."""
    alpha, size = problem.alpha, problem.design.size
    solve: Callable[..., np.ndarray] = _by_cholesky if size <= DENSE_LIMIT else _by_conjugate_gradients
    centre, tight = Q.copy(), np.empty((problem.n, problem.n_options), np.bool_)
    sample, damping, last, floor = _SAMPLE * size, 0.0, np.inf, mu * 1e-9
    everything, stuck = np.arange(problem.n), False
    saved = progress.resume("newton")
    if saved is None:
        smooth, primal, G = problem.smoothed(w, mu, centre, Q, tight)
    else:
        w, G, centre, Q[:], tight[:] = (saved[name] for name in ("w", "G", "centre", "Q", "tight"))
        mu, floor, sample, damping, last, stuck, smooth, primal = saved["counts"].tolist()
        unpack_generator(rng, saved["rng"])
    while True:
        gradient = alpha * w + G
        if saved is None:
            own = G / -alpha
            progress.offer(w, primal, problem.dual(Q, own), problem.error(w), problem.error(own, Q))
            if progress.saves():
                counts = mu, floor, sample, damping, last, stuck, smooth, primal
                arrays = {"w": w, "G": G, "centre": centre, "Q": Q, "tight": tight, "counts": counts}
                progress.save("newton", **arrays, rng=pack_generator(rng))
        saved = None
        residual = float(np.vdot(gradient, gradient)) / (2.0 * alpha)
        moved = 0.5 * mu * _distance(problem.omega, Q, centre)
        # A row that moved by delta leaves a gap of up to sqrt(2) mu delta, the root of what it moved by in the mean.
        if progress.done or mu < floor or residual + 2.0 * np.sqrt(mu * moved) <= 1e-16 * primal:
            return
        rounded = residual <= (1e-15 if residual < last else 1e-12) * primal  # a step that gains nothing is rounding
        if residual <= 0.5 * moved or rounded or stuck:
            centre[:] = Q
            damping, stuck = 0.0 if stuck else damping, False
            mu *= 0.2 if progress.apparent_gap > 1e-2 else 0.5
            smooth, primal, G = problem.smoothed(w, mu, centre, Q, tight)
            last = np.inf
            continue
        sample *= 2 if residual > 0.25 * last else 1
        last = residual
        rows = everything if sample >= problem.n else _sample_rows(problem, mu, Q, tight, sample, rng)
        direction = solve(_Curvature(problem, mu, Q, tight, rows), gradient, alpha, damping)
        before = smooth
        w, step, smooth, primal, G = _line_search(problem, w, direction, gradient, smooth, mu, centre, Q, tight)
        progress.n_iter += 1
        stuck = damping >= 1.0 and before - smooth <= 1e-15 * abs(before)  # what is left to gain is rounding
        if stuck and residual > 1e-6 * primal:
            return
        if step < 0.2:
            damping = min(max(10.0 * damping, 1e-5), 1e6)
        elif step == 1.0:
            damping = 0.1 * damping if damping > 1e-7 else 0.0


def _sample_rows(
    problem: Problem, mu: float, Q: np.ndarray, tight: np.ndarray, wanted: float, rng: np.random.Generator
) -> np.ndarray:
    """Rows among which about ``wanted`` are at a kink, judged by 500 of them; all rows where few would be spared."""
    probe = rng.choice(problem.n, min(500, problem.n), replace=False)
    packed = np.empty((problem.k * (problem.k + 1) // 2, probe.size))
    share = _packed_tangents(problem.loss, mu, problem.omega, Q, tight, probe, packed, probe.copy()) / probe.size
    need = wanted / max(share, 0.02)
    if need > 0.7 * problem.n:
        return np.arange(problem.n)
    return np.sort(rng.choice(problem.n, int(need), replace=False))


def _line_search(problem, w, direction, gradient, smooth, mu, centre, Q, tight):
    """Armijo steps along ``direction`` by safeguarded interpolation; step 0 where none descends."""
    slope = float(np.vdot(gradient, direction))
    step = 1.0
    while True:
        trial = w + step * direction
        value, primal, G = problem.smoothed(trial, mu, centre, Q, tight)
        excess = value - smooth - step * slope
        if value <= smooth + 1e-4 * step * slope + 1e-15 * abs(smooth):
            return trial, step, value, primal, G
        if step < 1e-10:
            value, primal, G = problem.smoothed(w, mu, centre, Q, tight)
            return w, 0.0, value, primal, G
        step = min(max(-slope * step * step / (2.0 * excess), 0.05 * step), 0.5 * step)
