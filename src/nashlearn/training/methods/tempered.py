"""Training of linear models of one label per row on the tempered game: a smooth loss, certified at every step.

    P(w) = alpha/2 |w|^2 + mean F_mu(Phi_i w) - <Phi_i w, y_i>,      mu > 0.

First L-BFGS in the metric of the features' second moments, which takes their correlations away [nocedal1980]_; then,
where that is slow, Newton's method with the Hessian ``alpha I + mean Phi_i' J_i Phi_i``, ``J_i`` the Jacobian of the
adversary's labels ``q_i`` in the scores. Every evaluation is a certificate: its labels ``q`` are a point of the dual,

    D(q) = mean [min(L q_i) + mu H(q_i)] - |mean Phi_i'(q_i - y_i)|^2 / (2 alpha),
    P(w) - D(q(w)) = |grad P(w)|^2 / (2 alpha) + mean gap of the rows,

and so is every mixture of the points seen so far (:mod:`nashlearn.training.methods.planes`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from nashlearn.kernels.newton import packed_turns
from nashlearn.kernels.tempered import turn_rows
from nashlearn.training.driver import Offer, Run
from nashlearn.training.methods.descent import Curvature
from nashlearn.training.methods.hessian import DENSE_LIMIT, Hessian, by_cholesky, by_conjugate_gradients
from nashlearn.training.methods.planes import Planes
from nashlearn.training.methods.rows import RowMethod
from nashlearn.training.methods.search import first_descent
from nashlearn.training.objective import Evaluation
from nashlearn.training.problem import Problem

__all__ = ["Tempered", "TemperedState", "Turns", "drawn_rows", "evaluation_cost"]

_FIRST = 20  # evaluations of L-BFGS before Newton's method is thought of
_WATCHED = 10  # evaluations over which the pace of L-BFGS is judged
_FALLING = 0.1  # relative fall of the objective over these that is fast enough
_NEWTON_STEPS = 6  # in which Newton's method ends, roughly
_SAMPLE = 6  # rows per weight that make a Hessian good enough far from the solution
_CONFIDENT = 10.0  # how much less than that of uniform labels the curvature will be, roughly
_SMOOTH = 0.1  # smoothing to begin with, in units of the game's scale, where less is asked for:
_SHARPER, _ENOUGH = 0.25, 0.1  # it falls by this factor whenever the relative gap has come to that
_SHORTEST = 1e-10
_HALVED = 0.25  # ratio of squared gradients by which a step is taken where rounding hides what it gains
_POLISH = 5  # last steps on small problems at most
_VANISHED = 0.01  # gap of an evaluation alone, relative to that asked for, at which there is no more to gain
_DAMPING = 1e-3  # to begin with: relative to curvatures of labels that are all but uniform
_STRONGEST = 1e6  # damping beyond which no step helps


@dataclass
class TemperedState:
    """Where training stands.

    Attributes
    ----------
    w, gradient : ndarray (n_weights,)
        Weights, and the gradient of the objective there.
    mu : float
        The smoothing in use, no less than that asked for.
    value : float
        The objective at ``w`` and this smoothing.
    curvature : Curvature
    planes : Planes
    error : float
        How wrong rounding may have made a plane.
    evaluations : int
        Made so far.
    gap : float
        The smallest relative gap that an evaluation alone has certified.
    seen, before, higher : float
        How many evaluations there were when the pace was last judged, that gap and the objective then.
    newton : bool
        Whether Newton's method has begun.
    sample : float
        Rows that its Hessian is made of.
    damping : float
        What is added to its diagonal.
    still : bool
        Whether no step helps any more at this smoothing.
    """

    phase: ClassVar[str] = "tempered"
    w: np.ndarray
    gradient: np.ndarray
    curvature: Curvature
    planes: Planes
    mu: float
    value: float = np.inf
    error: float = 0.0
    evaluations: int = 0
    gap: float = np.inf
    seen: int = 0
    before: float = np.inf
    higher: float = np.inf
    newton: bool = False
    sample: float = 0.0
    damping: float = _DAMPING
    still: bool = False
    over: bool = False


class Turns(Hessian):
    """The Hessian of the mean tempered loss; a row that stands for others has a larger share."""

    def __init__(self, problem: Problem, mu: float, Q: np.ndarray, P: np.ndarray, rows: np.ndarray, share: np.ndarray):
        super().__init__(problem, rows)
        self.mu, self.Q, self.P, self.share = mu, Q, P, share
        self.typical = float(problem.omega @ problem.squared_diameters()) / (2.0 * mu * problem.n_weights)

    def packed(self, rows: np.ndarray, out: np.ndarray) -> np.ndarray:
        """The Jacobians of all rows."""
        packed_turns(self.problem.loss, self.mu, self.share, self.Q, self.P, rows, out)
        return rows

    def product(self, v: np.ndarray) -> np.ndarray:
        """The Hessian of all rows times ``v``: no Jacobian is made."""
        problem, design = self.problem, self.problem.design
        out = np.zeros(design.shape)
        for part, block in problem.blocks():
            scores = np.ascontiguousarray(design.scores(block, v.reshape(design.shape)))
            loss = problem.game.part(part).params.compiled()
            turn_rows(loss, self.mu, self.Q[part], self.P[part], scores)
            scores *= self.share[part, None]
            design.add_moments(block, scores, out)
        return out


class Tempered(RowMethod):
    """L-BFGS, then Newton's method where it promises to be faster, at a smoothing ``mu > 0`` in units of the loss."""

    needs = ("X", "design", "loss", "omega", "evaluate", "tempered", "error")
    states = (TemperedState,)

    def __init__(self, smoothing: float):
        if not 0.0 < smoothing < np.inf:
            raise ValueError(f"smoothing must be positive and finite; got {smoothing!r}")
        self.smoothing = float(smoothing)

    def init(self, run: Run) -> tuple[TemperedState, Offer | None]:
        """The weights to start from: those of an earlier run, or 0."""
        problem, mu = run.problem, self.smoothing
        w = np.zeros(problem.n_weights) if run.start is None else run.start.w.astype(np.float64).ravel()
        spread = mu * problem.k
        metric = spread * problem.design.metric(problem, _CONFIDENT * run.alpha * spread)
        mu = max(mu, _SMOOTH * problem.game.scale) if run.start is None else mu
        state = TemperedState(w, w, Curvature(metric), Planes.none(w.size), mu, sample=float(_SAMPLE * w.size))
        self._stand(run, state, w, *self._look(run, state, w))
        return state, self._offer(run, state)

    def update(self, run: Run, state: TemperedState) -> tuple[TemperedState, Offer | None]:
        """A step of the method that the state has come to."""
        run.progress.n_iter += 1
        if state.mu > self.smoothing and (self._own_gap(run, state) <= _ENOUGH or state.still):
            return self._sharpen(run, state)
        if not state.newton and self._slow(run, state):
            state.newton = True
        moved = self._newton(run, state) if state.newton else self._descend(run, state)
        if not moved and not state.newton:
            state.newton = moved = True  # where L-BFGS finds nothing, the Hessian may
        # What is left of the gap once gradients vanish is rounding.
        state.still = not moved or self._own_gap(run, state) <= _VANISHED * run.progress.tol
        state.over = state.still and state.mu == self.smoothing
        return state, self._offer(run, state)

    def _sharpen(self, run: Run, state: TemperedState) -> tuple[TemperedState, Offer | None]:
        """On to a smaller smoothing."""
        state.mu = max(self.smoothing, _SHARPER * state.mu)
        state.curvature = Curvature(state.curvature.metric)
        state.gap = state.before = state.higher = np.inf
        state.seen, state.damping, state.still = state.evaluations, _DAMPING, False
        self._stand(run, state, state.w, *self._look(run, state, state.w))
        return state, self._offer(run, state)

    def _own_gap(self, run: Run, state: TemperedState) -> float:
        """The relative gap that the evaluation at ``w`` alone certifies, but for the gaps of rows."""
        return float(state.gradient @ state.gradient) / (2.0 * run.alpha * abs(state.value))

    def dual_point(self, state: Any) -> np.ndarray:
        """None is kept: weights are enough to start from."""
        return np.empty((0, 0))

    def rescue(self, run: Run, state: TemperedState | None) -> Offer | None:
        """The weights to start from, where there are no others."""
        if run.progress.w.size:
            return None
        w = np.zeros(run.problem.shape) if run.start is None else run.start.w
        return Offer(w, self._primal(run, w.ravel()), 0.0)

    def finish(self, run: Run, state: TemperedState) -> None:
        """Evaluate the best weights at the smoothing asked for, polish those of small problems, and tidy them."""
        problem, progress = run.problem, run.progress
        if state.mu != self.smoothing:
            progress.exchange(progress.w, self._primal(run, progress.w.ravel()), progress.primal_error)
        elif problem.small and not progress.exhausted:
            self._polish(run, state)
        if (w := problem.tidied(progress.w)) is not progress.w:
            progress.exchange(w, self._primal(run, w.ravel()), self._error(run, state, w))

    def _polish(self, run: Run, state: TemperedState) -> None:
        """Newton steps until the gradient no longer falls: the gap is then rounding, and so is the error of weights."""
        progress = run.progress
        for _ in range(_POLISH):
            w, value, gradient = state.w, state.value, state.gradient
            moved = self._newton(run, state)
            if not moved or float(state.gradient @ state.gradient) > _HALVED * float(gradient @ gradient):
                if np.linalg.norm(state.gradient) > np.linalg.norm(gradient):
                    state.w, state.value, state.gradient = w, value, gradient
                break
        error = self._error(run, state, state.w)
        if state.value <= progress.primal + progress.primal_error + error:
            progress.exchange(state.w.reshape(run.problem.shape), state.value, error)

    def _primal(self, run: Run, w: np.ndarray) -> float:
        return 0.5 * run.alpha * float(np.square(w).sum()) + run.problem.evaluate(w, self.smoothing).loss

    def _look(self, run: Run, state: TemperedState, w: np.ndarray) -> tuple[float, np.ndarray, Evaluation]:
        """``P(w)``, its gradient, and what they come from."""
        seen = run.problem.evaluate(w, state.mu)
        state.evaluations += 1
        return 0.5 * run.alpha * float(np.square(w).sum()) + seen.loss, run.alpha * w + seen.gradient, seen

    def _stand(
        self, run: Run, state: TemperedState, w: np.ndarray, value: float, gradient: np.ndarray, seen: Evaluation
    ) -> None:
        """Go to ``w``, and keep the plane there; those of steps that were too long are all but worthless."""
        state.w, state.value, state.gradient = w, value, gradient
        state.planes.add(seen.gradient, seen.entropy, seen.penalty / state.mu)
        state.error = max(state.error, self._error(run, state, w))

    def _offer(self, run: Run, state: TemperedState) -> Offer:
        """The weights with their certificate: an objective at a larger smoothing is no less than at that asked for.

        The bound is that of the last plane or of the best mixture, whichever is the higher for sure.
        """
        problem, alpha, planes, last = run.problem, run.alpha, state.planes, state.planes.count - 1
        error, slope = self._error(run, state, state.w), planes.slopes[last]
        own = planes.entropy[last] - self.smoothing * planes.omega[last] - 0.5 * float(slope @ slope) / alpha
        mixed = planes.bound(alpha, self.smoothing)
        bounds = ((own, error, slope / -alpha), (mixed, state.error, planes.weights(alpha)))
        sure = [
            (dual, of_planes + problem.dual_error(v.reshape(problem.shape), smoothing=state.mu))
            for dual, of_planes, v in bounds
        ]
        dual, dual_error = max(sure, key=lambda one: one[0] - one[1])
        return Offer(state.w.reshape(problem.shape), state.value, float(dual), error, float(dual_error))

    def _error(self, run: Run, state: TemperedState, w: np.ndarray) -> float:
        """How wrong rounding may make the objective at ``w``."""
        return run.problem.error(w.reshape(run.problem.shape), smoothing=state.mu)

    def _go(self, run: Run, state: TemperedState, direction: np.ndarray) -> float:
        """Search along a direction and go to what was found; the step, 0 where none helps.

        Where rounding hides what a step gains, one that shortens the gradient is taken.
        """
        w, before, square = state.w, state.value, float(state.gradient @ state.gradient)
        slope = float(state.gradient @ direction)
        error = self._error(run, state, w)

        def trial(step: float) -> tuple[float, tuple[float, np.ndarray, Evaluation]]:
            seen = value, gradient, _ = self._look(run, state, w + step * direction)
            falls = value <= before + error and float(gradient @ gradient) <= _HALVED * square
            return before + step * slope if falls else value, seen

        found = first_descent(trial, before, slope, shortest=_SHORTEST, slack=0.0) if slope < 0.0 else None
        if found is None:
            return 0.0
        step, (_, seen) = found
        state.curvature.add(step * direction, seen[1] - state.gradient)
        self._stand(run, state, w + step * direction, *seen)
        return step

    def _descend(self, run: Run, state: TemperedState) -> bool:
        """A step of L-BFGS; whether it helped."""
        curvature = state.curvature
        if curvature.steps and self._go(run, state, curvature.direction(state.gradient)):
            return True
        state.curvature = Curvature(curvature.metric)
        return self._go(run, state, -curvature.scaled(state.gradient)) > 0.0

    def _slow(self, run: Run, state: TemperedState) -> bool:
        """Whether L-BFGS, at its pace of late, will take longer than Newton's method."""
        state.gap = min(self._own_gap(run, state), state.gap)
        made = state.evaluations - state.seen
        if made < (_WATCHED if state.seen else _FIRST):
            return False
        pace = np.log(max(state.before / state.gap, 1.0 + 1e-9)) / made
        falling = state.value < (1.0 - _FALLING) * state.higher  # gradients say little as long as it does
        state.seen, state.before, state.higher = state.evaluations, state.gap, state.value
        if falling:
            return False
        left = np.log(max(state.gap / run.progress.tol, 1.0)) / pace
        return left * evaluation_cost(run.problem) > _NEWTON_STEPS * _newton_cost(run.problem, state.sample)

    def _newton(self, run: Run, state: TemperedState) -> bool:
        """A step of Newton's method, damped as the last steps have taught; whether another may help."""
        problem, mu = run.problem, state.mu
        Q, P = np.empty((problem.n, problem.k)), np.full((problem.n, problem.n_options), np.nan)
        problem.tempered(state.w, mu, Q, P)
        dense = problem.design.size <= DENSE_LIMIT
        rows, share = drawn_rows(problem, state.sample, Q, run.rng) if dense else (np.arange(problem.n), problem.omega)
        solve = by_cholesky if dense else by_conjugate_gradients
        square = float(state.gradient @ state.gradient)
        gradient = state.gradient.reshape(problem.shape)
        direction = solve(Turns(problem, mu, Q, P, rows, share), gradient, run.alpha, state.damping).ravel()
        step = self._go(run, state, direction)
        if float(state.gradient @ state.gradient) > 0.1 * square:
            state.sample = min(2.0 * state.sample, float(problem.n))
        if step < 0.2:
            state.damping = max(10.0 * state.damping, _DAMPING)
        elif step == 1.0:
            state.damping = 0.1 * state.damping if state.damping > 1e-7 else 0.0
        return state.damping <= _STRONGEST


def drawn_rows(
    problem: Problem, sample: float, Q: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Rows for the Hessian, drawn by their part of its trace, and their shares: all where few would be spared."""
    if sample >= problem.n:
        return np.arange(problem.n), problem.omega
    size = problem.omega * (1.0 - Q.max(axis=1)) * problem.squared_diameters()
    if not size.sum() > 0.0:  # every label is certain: there is no curvature
        return np.arange(problem.n), problem.omega
    chance = np.minimum(sample * (size + 0.1 * size.mean()) / (1.1 * size.sum()), 1.0)
    rows = np.flatnonzero(rng.random(problem.n) < chance)
    return rows, problem.omega / chance


def evaluation_cost(problem: Problem) -> float:
    """Cost of an evaluation, in operations of a matrix product."""
    entries = problem.X.nnz if sp.issparse(problem.X) else problem.X.size
    return 8.0 * entries * problem.k + 200.0 * problem.n * problem.k


def _newton_cost(problem: Problem, sample: float) -> float:
    """Cost of a Newton step, in the same operations; conjugate gradients take dozens of passes."""
    size = problem.design.size
    if size > DENSE_LIMIT:
        return 60.0 * evaluation_cost(problem)
    rows = min(sample, problem.n)
    return 3.0 * evaluation_cost(problem) + rows * size * (problem.d + 1.0) * (problem.k + 1.0) + size**3 / 3.0
