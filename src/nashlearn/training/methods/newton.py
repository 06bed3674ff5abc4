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

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.linalg as sl
from scipy.sparse.linalg import LinearOperator, cg

from nashlearn.kernels.newton import apply_packed, distance, packed_tangents
from nashlearn.training.designs.rows import diagonals
from nashlearn.training.driver import Offer, Run
from nashlearn.training.methods.rows import RowMethod
from nashlearn.training.methods.search import first_descent
from nashlearn.training.problem import Problem

__all__ = [
    "DENSE_LIMIT",
    "Hessian",
    "Newton",
    "NewtonState",
    "by_cholesky",
    "by_conjugate_gradients",
    "least_squares_start",
    "step_cost",
]

DENSE_LIMIT = 2500  # weights up to which the Hessian is formed: 50 MB, a fifth of a second to factorise
_SAMPLE = 4  # examples at a kink per weight that make a Hessian good enough far from the solution
_CONJUGATE_STEPS = 50
_SHORTEST = 1e-10


def step_cost(problem: Problem) -> float:
    """Cost of a Newton step, in visits of an example by dual ascent."""
    size = problem.design.size
    if size > DENSE_LIMIT:
        return problem.n * (2.0 + 4.0 * _CONJUGATE_STEPS)
    kinks = min(_SAMPLE * size, problem.n) * size * (problem.d + 1.0)
    return 2.0 * problem.n + (size**3 / 3.0 + kinks) / (8.0 * size)


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


class _Tangents(Hessian):
    """The generalised Hessian of the proximal-point smoothing; rows stand for all."""

    def __init__(self, problem: Problem, mu: float, Q: np.ndarray, tight: np.ndarray, rows: np.ndarray):
        super().__init__(problem, rows)
        self.mu, self.Q, self.tight = mu, Q, tight
        self.scale = problem.n / max(rows.size, 1)

    def packed(self, rows: np.ndarray, out: np.ndarray) -> np.ndarray:
        """The Jacobians of those rows that are at a kink."""
        active = np.empty(rows.size, np.intp)
        m = packed_tangents(self.problem.loss, self.mu, self.problem.omega, self.Q, self.tight, rows, out, active)
        return active[:m]


def by_cholesky(curvature: Hessian, gradient: np.ndarray, alpha: float, damping: float) -> np.ndarray:
    H = curvature.matrix()
    diagonal = np.einsum("jj->j", H)
    diagonal += alpha + max(damping, 1e-14) * max(diagonal.mean(), curvature.typical)
    try:
        factor = sl.cho_factor(H, lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:  # rounding has made it indefinite: features of very different sizes
        if damping > 1.0:
            return -gradient / diagonal.max()
        return by_cholesky(curvature, gradient, alpha, max(100.0 * damping, 1e-12))
    return -sl.cho_solve(factor, gradient.ravel(), check_finite=False).reshape(gradient.shape)


def by_conjugate_gradients(curvature: Hessian, gradient: np.ndarray, alpha: float, damping: float) -> np.ndarray:
    diagonal = curvature.diagonal().ravel()
    shift = alpha + damping * max(diagonal.mean(), curvature.typical)
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


@dataclass
class NewtonState:
    """A point of the smoothed problem and how it is reached.

    Attributes
    ----------
    w, G : ndarray
        Weights, and the moments of ``Q``.
    Q, centre : ndarray (n, k)
        The proximal steps at these weights, and the points that they start from.
    tight : ndarray (n, options)
        The predictor's support.
    mu, floor : float
        The smoothing, and that at which there is nothing left to gain.
    sample : float
        Examples at a kink that the Hessian is made of.
    damping : float
        What is added to its diagonal.
    last : float
        The squared gradient at the last step, over ``2 alpha``; inf where the centre has moved since.
    smooth, primal : float
        The smoothed objective at ``w``, and the objective.
    stuck : bool
        Whether the last step gained nothing but rounding.
    """

    phase: ClassVar[str] = "newton"
    w: np.ndarray
    G: np.ndarray
    Q: np.ndarray
    centre: np.ndarray
    tight: np.ndarray
    mu: float
    floor: float
    sample: float
    smooth: float
    primal: float
    damping: float = 0.0
    last: float = np.inf
    stuck: bool = False
    over: bool = False


class Newton(RowMethod):
    """Semismooth Newton steps, until the certificate is good enough or they stand still."""

    needs = ("X", "design", "loss", "omega", "smoothed", "dual", "error")
    states = (NewtonState,)

    def init(self, run: Run) -> tuple[NewtonState, Offer | None]:
        """Weights of least squares, or those of an earlier run."""
        problem, Q = run.problem, self.starting_point(run)
        if problem.primal(np.zeros(problem.shape)) == 0:  # options without cost: no relative gap
            w, tight = np.zeros(problem.shape), np.empty((0, problem.n_options), np.bool_)
            free = NewtonState(w, w, Q, Q, tight, 0.0, 0.0, 0.0, 0.0, 0.0, over=True)
            return free, Offer(w, 0.0, 0.0)
        if run.start is None:
            Q += problem.game.uncertain
            Q *= 0.5
        w = least_squares_start(problem) if run.start is None else run.start.w
        return self.begin(run, w, Q, 0.25 * problem.game.scale)

    def begin(self, run: Run, w: np.ndarray, Q: np.ndarray, mu: float) -> tuple[NewtonState, Offer]:
        """The state at weights ``w`` and dual point ``Q`` (overwritten)."""
        problem, centre = run.problem, Q.copy()
        tight = np.empty((problem.n, problem.n_options), np.bool_)
        smooth, primal, G = problem.smoothed(w, mu, centre, Q, tight)
        state = NewtonState(w, G, Q, centre, tight, mu, 1e-9 * mu, _SAMPLE * problem.design.size, smooth, primal)
        return state, self._offer(run, state)

    def update(self, run: Run, state: NewtonState) -> tuple[NewtonState, Offer | None]:
        """A step, or a new centre with less smoothing where steps would gain little at this one."""
        problem, mu, primal = run.problem, state.mu, state.primal
        gradient = run.alpha * state.w + state.G
        residual = float(np.vdot(gradient, gradient)) / (2.0 * run.alpha)
        moved = 0.5 * mu * distance(problem.omega, state.Q, state.centre)
        # A row that moved by delta leaves a gap of up to sqrt(2) mu delta, the root of what it moved by in the mean.
        if mu < state.floor or residual + 2.0 * np.sqrt(mu * moved) <= 1e-16 * primal:
            state.over = True
            return state, None
        # A step that gains nothing is rounding.
        rounded = residual <= (1e-15 if residual < state.last else 1e-12) * primal
        if residual <= 0.5 * moved or rounded or state.stuck:
            state.centre[:] = state.Q
            state.damping, state.stuck, state.last = 0.0 if state.stuck else state.damping, False, np.inf
            state.mu *= 0.2 if run.progress.apparent_gap > 1e-2 else 0.5
            self._move(problem, state, state.w)
        else:
            state.sample *= 2 if residual > 0.25 * state.last else 1
            state.last = residual
            stuck = self._step(run, state, gradient)
            run.progress.n_iter += 1
            if stuck and residual > 1e-6 * primal:
                state.over = True
                return state, None
        return state, self._offer(run, state)

    def _step(self, run: Run, state: NewtonState, gradient: np.ndarray) -> bool:
        """A step along Newton's direction, damped as the last steps have taught; whether it gained but rounding."""
        problem, w, before = run.problem, state.w, state.smooth
        solve = by_cholesky if problem.design.size <= DENSE_LIMIT else by_conjugate_gradients
        few = state.sample < problem.n
        rows = _sample_rows(problem, state, run.rng) if few else np.arange(problem.n)
        direction = solve(_Tangents(problem, state.mu, state.Q, state.tight, rows), gradient, run.alpha, state.damping)
        found = first_descent(
            lambda step: self._move(problem, state, w + step * direction),
            before,
            float(np.vdot(gradient, direction)),
            shortest=_SHORTEST,
        )
        if found is None:
            self._move(problem, state, w)
        step = 0.0 if found is None else found[0]
        state.stuck = state.damping >= 1.0 and before - state.smooth <= 1e-15 * abs(before)  # all is rounding
        if step < 0.2:
            state.damping = min(max(10.0 * state.damping, 1e-5), 1e6)
        elif step == 1.0:
            state.damping = 0.1 * state.damping if state.damping > 1e-7 else 0.0
        return state.stuck

    def _move(self, problem: Problem, state: NewtonState, w: np.ndarray) -> tuple[float]:
        """Go to ``w``; the smoothed objective there."""
        state.w = w
        state.smooth, state.primal, state.G = problem.smoothed(w, state.mu, state.centre, state.Q, state.tight)
        return (state.smooth,)

    def _offer(self, run: Run, state: NewtonState) -> Offer:
        problem, own = run.problem, state.G / -run.alpha
        dual = problem.dual(state.Q, own)
        return Offer(state.w, state.primal, dual, problem.error(state.w), problem.error(own, state.Q))


def _sample_rows(problem: Problem, state: NewtonState, rng: np.random.Generator) -> np.ndarray:
    """Rows among which enough are at a kink, judged by 500 of them; all rows where few would be spared."""
    probe = rng.choice(problem.n, min(500, problem.n), replace=False)
    packed = np.empty((problem.k * (problem.k + 1) // 2, probe.size))
    args = problem.loss, state.mu, problem.omega, state.Q, state.tight, probe, packed, probe.copy()
    need = state.sample / max(packed_tangents(*args) / probe.size, 0.02)
    if need > 0.7 * problem.n:
        return np.arange(problem.n)
    return np.sort(rng.choice(problem.n, int(need), replace=False))
