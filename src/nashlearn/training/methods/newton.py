"""The proximal-point method, for problems where dual ascent crawls: L-BFGS, then semismooth Newton.

Each outer step maximises the dual minus ``mu/2 sum_i omega_i |q_i - centre_i|^2``. Its own dual is a smooth,
strongly convex problem in the weights, whose generalised Hessian

    alpha I + sum_i omega_i Phi(x_i)' J_i Phi(x_i),        J_i the tangent of the proximal step,

only sees the examples at a kink, about as many as there are weights when ``mu`` is small. The centre then moves to
``q``, so the method is exact in the limit, whatever ``alpha`` and ``mu`` are.

Where there are many examples, the kinks of all make a function that is all but smooth even at the end: L-BFGS in the
metric of the features' second moments, or of each class's own curvature
(:mod:`nashlearn.training.methods.class_metric`) [nocedal1980]_, comes to a gap of 1e-3 in a dozen or two evaluations,
two passes over the data each, with one ``mu`` unless that makes up nearly all of the gap. Most of them only bring the
moments of ``q`` to ``-alpha w``: the weights settle long before, so that centres need not wait for the moments: a
mixture of all strategies seen on the way (:mod:`nashlearn.training.methods.planes`) has better ones, and certifies.

Once L-BFGS is slower than Newton's method would be, that takes over with a ``mu`` that falls. Far from the solution a
random part of the examples at a kink is curvature enough. A Hessian, one Cholesky factorisation, then serves L-BFGS as
its metric for as long as steps, two passes over the data each, make good progress with it, also at the next centre.
Beyond ``DENSE_LIMIT`` weights each step takes a few dozen passes of conjugate gradients instead.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nashlearn.kernels.newton import distance
from nashlearn.training.driver import Offer, Run
from nashlearn.training.methods.class_metric import class_metric, evaluations_between
from nashlearn.training.methods.descent import Curvature
from nashlearn.training.methods.hessian import (
    CONJUGATE_STEPS,
    DENSE_LIMIT,
    by_conjugate_gradients,
    cholesky_factor,
)
from nashlearn.training.methods.newton_state import NewtonState, best_dual, look_at_some, plane_of_labels, residual
from nashlearn.training.methods.rows import RowMethod
from nashlearn.training.methods.search import first_descent
from nashlearn.training.methods.tangents import Tangents, kinked_rows
from nashlearn.training.problem import Problem
from nashlearn.training.progress import Progress

__all__ = ["Newton", "NewtonState", "step_cost"]

_SAMPLE = 4  # examples at a kink per weight that make a Hessian good enough far from the solution
_SHORTEST = 1e-10
_SMOOTH = 0.25  # smoothing to begin with, in units of the game's scale
_FEW, _CROWD = 40, 4  # rows per weight that make a good start, where there are so many times as many
_ROUGH, _MOST = 1e-2, 50  # gap of that start, and iterations
_SETTLED = 0.5  # part of what moved that the gap at this centre comes to before the centre moves
_HASTY, _WON = 2, 0.02  # centres that move once no more than that part is left to win by other weights, at any dual
_STALE = 0.3  # residual, relative to that before, up to which a Hessian serves for another step
_SLIGHT = 1e-6  # damping up to which it does
_WATCHED = 7  # evaluations over which the pace of L-BFGS is judged
_BLURRED, _SHARPER = 10.0, 0.7  # what smoothing adds to the gap, over the rest of it, that lets it fall, and to what
_NEWTON_STEPS = 8  # in which Newton's method ends, roughly, in Hessians


def step_cost(problem: Problem) -> float:
    """Cost of a Newton step, in visits of an example by dual ascent."""
    size = problem.design.size
    if size > DENSE_LIMIT:
        return problem.n * (2.0 + 4.0 * CONJUGATE_STEPS)
    kinks = min(_SAMPLE * size, problem.n) * size * (problem.d + 1.0)
    return 2.0 * problem.n + (size**3 / 3.0 + kinks) / (8.0 * size)


class Newton(RowMethod):
    """Steps of L-BFGS, then of semismooth Newton, until the certificate is good enough or they stand still."""

    needs = ("X", "design", "loss", "omega", "smoothed", "error", "dual_error")
    states = (NewtonState,)

    def init(self, run: Run) -> tuple[NewtonState, Offer | None]:
        """No weights and the most uncertain strategies, or those of an earlier run."""
        problem = run.problem
        w = np.zeros(problem.shape)
        if not problem.costly():  # no relative gap
            Q, tight = self.starting_point(run), np.empty((0, problem.n_options), np.bool_)
            free = NewtonState(w, w, Q, Q, tight, Curvature(np.ones(1)), plane_of_labels(w), 0.0, 0.0, 0.0, over=True)
            return free, Offer(w, 0.0, 0.0)
        mu = _SMOOTH * problem.game.scale
        if run.start is not None:
            return self.begin(run, run.start.w, self.starting_point(run), mu)
        Q = np.tile(problem.game.uncertain, (problem.n, 1))
        few = int(_FEW * problem.design.size)
        if problem.n < _CROWD * few:
            return self.begin(run, w, Q, mu)
        w, curvature = self._of_few(run, few)

        # From labels that are all alike, the first centre would lead far away from weights that are all but good.
        def play(part: slice, scores: np.ndarray) -> None:
            Q[part] = problem.game.part(part).equilibria(scores).q

        problem.sum_scores(w, play, lambda _: None)
        return self.begin(run, w, Q, mu, curvature=curvature)

    def _of_few(self, run: Run, few: int) -> tuple[np.ndarray, Curvature | None]:
        """Weights that suit a random part of the rows, and what L-BFGS has learnt on the way, unless it gave up."""
        rows = np.sort(run.rng.choice(run.problem.n, few, replace=False))
        part = run.problem.some(rows) if run.problem.omega[rows].any() else run.problem
        progress = Progress(_ROUGH, _MOST, bound=0.0, max_time=run.progress.max_time)
        own = replace(run, problem=part, tol=_ROUGH, progress=progress)
        state: NewtonState
        offer: Offer | None
        state, offer = self.begin(
            own, np.zeros(part.shape), np.tile(part.game.uncertain, (part.n, 1)), _SMOOTH * run.problem.game.scale
        )
        while not (progress.done or state.over or state.newton):
            if offer is not None:
                progress.keep(*offer)
            state, offer = self.update(own, state)
        return state.w, None if state.newton else state.curvature

    def begin(
        self,
        run: Run,
        w: np.ndarray,
        Q: np.ndarray,
        mu: float,
        *,
        newton: bool = False,
        curvature: Curvature | None = None,
    ) -> tuple[NewtonState, Offer]:
        """The state at weights ``w`` and dual point ``Q`` (overwritten), before the first step of either method."""
        problem, centre, spread = run.problem, Q.copy(), mu * run.problem.k
        if curvature is None:
            metric = np.ones(1) if newton else spread * problem.design.metric(problem, 10.0 * run.alpha * spread)
            curvature = Curvature(metric)
        tight = np.zeros((problem.n, problem.n_options), np.bool_)
        sample = float(_SAMPLE * problem.design.size)
        state = NewtonState(w, w, Q, centre, tight, curvature, plane_of_labels(w), mu, 1e-9 * mu, sample, newton=newton)
        self._move(problem, state, w)
        return state, self._offer(run, state)

    def update(self, run: Run, state: NewtonState) -> tuple[NewtonState, Offer | None]:
        """A step, or a new centre where steps would gain little at this one."""
        problem, mu, primal = run.problem, state.mu, state.primal
        gradient, missing = residual(run, state)
        moved = 0.5 * mu * distance(problem.omega, state.Q, state.centre)
        # A row that moved by delta leaves a gap of up to sqrt(2) mu delta, the root of what it moved by in the mean.
        if mu < state.floor or missing + 2.0 * np.sqrt(mu * moved) <= 1e-16 * primal:
            state.over = True
            return state, None
        # A step that gains nothing is rounding.
        rounded = missing <= (1e-15 if missing < state.last else 1e-12) * primal
        state.newton = state.newton or rounded or self._slow(run, state)
        if missing <= _SETTLED * moved or rounded or state.stuck or self._won(run, state, gradient, moved):
            self._recentre(run, state)
            return state, self._offer(run, state)
        run.progress.n_iter += 1
        if not state.newton:
            self._look_around(run, state)
            state.newton = not self._descend(problem, state, gradient)
        elif not self._again(problem, state, gradient, missing):
            state.sample *= 2 if state.fresh and missing > 0.25 * state.last else 1
            state.last, state.fresh = missing, True
            stuck = self._step(run, state, gradient)
            if stuck and missing > 1e-6 * primal:
                state.over = True
                return state, None
        return state, self._offer(run, state)

    def _won(self, run: Run, state: NewtonState, gradient: np.ndarray, moved: float) -> bool:
        """Whether other weights would gain little at this centre, by the model of L-BFGS.

        After the first centres a mixture of strategies must be nearly as good as this centre's problem allows, too.
        """
        if state.newton:
            return False
        if state.centres >= _HASTY:
            if _blurred(run, state):
                return True
            if run.progress.dual + moved < state.smooth:
                return False
        flat = gradient.ravel()
        return -0.5 * float(flat @ _direction(state.curvature, flat)) <= _WON * moved

    def _recentre(self, run: Run, state: NewtonState) -> None:
        """Let the next steps begin at the strategies at hand."""
        state.centre[:] = state.Q
        state.centres += 1
        state.damping, state.stuck, state.last = 0.0 if state.stuck else state.damping, False, np.inf
        state.part = 0.0
        if not state.newton and state.centres > _HASTY and _blurred(run, state):
            state.mu *= _SHARPER
        if state.newton:
            sharper = 0.2 if run.progress.apparent_gap > 1e-2 else 0.5
            state.mu *= sharper
            if state.curvature.factored:  # the Hessian is all but proportional to 1 / mu
                state.curvature = Curvature(state.curvature.metric / np.sqrt(sharper), factored=True)
        self._move(run.problem, state, state.w)

    def _slow(self, run: Run, state: NewtonState) -> bool:
        """Whether L-BFGS, at its pace of late, will take longer than Newton's method."""
        state.gap = min(state.gap, run.progress.apparent_gap)
        made = state.evaluations - state.seen
        if made < _WATCHED:
            return False
        pace = np.log(max(state.before / state.gap, 1.0 + 1e-9)) / made
        left = np.log(max(state.gap / run.progress.tol, 1.0)) / pace
        state.seen, state.before = state.evaluations, state.gap
        # The first evaluations say little of the pace; nor do they cost much beside what Newton's method would.
        spared = _NEWTON_STEPS * step_cost(run.problem) / (2.0 * run.problem.n)
        return bool(min(state.evaluations, left) > spared)

    def _look_around(self, run: Run, state: NewtonState) -> None:
        """Give L-BFGS the metric of the rows that are in play, where it has gone far enough to pay for that."""
        if state.evaluations - state.measured >= evaluations_between(run.problem):
            metric = class_metric(run.problem, state.mu, state.Q, state.tight, run.alpha, run.rng)
            state.measured = state.evaluations
            if metric is not None:
                state.curvature = replace(state.curvature, metric=metric)

    def _descend(self, problem: Problem, state: NewtonState, gradient: np.ndarray) -> bool:
        """A step of L-BFGS; whether it helped."""
        w, flat, before = state.w, gradient.ravel(), state.smooth
        while True:
            direction = _direction(state.curvature, flat)
            found = first_descent(
                lambda step: self._move(problem, state, w + step * direction.reshape(w.shape)),  # noqa: B023 - used at once
                before,
                float(flat @ direction),
                shortest=_SHORTEST,
            )
            if found is not None:
                state.full = found[0] == 1.0
                _learn(problem, state, w, gradient)
                return True
            self._move(problem, state, w)
            if not state.curvature.steps:
                return False
            state.curvature = replace(state.curvature, steps=[], changes=[])

    def _again(self, problem: Problem, state: NewtonState, gradient: np.ndarray, missing: float) -> bool:
        """A step with the last Hessian where it has served well; whether it helped."""
        # Where steps were damped or cut short, the curvature changes from one to the next.
        trusted = state.curvature.factored and state.full and state.damping <= _SLIGHT
        if not (trusted and missing <= _STALE * state.last) or not self._descend(problem, state, gradient):
            return False
        state.last, state.fresh = missing, False
        return True

    def _step(self, run: Run, state: NewtonState, gradient: np.ndarray) -> bool:
        """A step along Newton's direction, damped as the last steps have taught; whether it gained but rounding."""
        problem, w, before = run.problem, state.w, state.smooth
        at, rows = (problem, state.mu, state.Q, state.tight), np.arange(problem.n)
        tangents = Tangents(*at, kinked_rows(*at, state.sample, run.rng) if state.sample < problem.n else rows)
        if problem.design.size <= DENSE_LIMIT:
            state.curvature = Curvature(cholesky_factor(tangents, run.alpha, state.damping), factored=True)
            direction = _direction(state.curvature, gradient.ravel()).reshape(w.shape)
        else:
            direction = by_conjugate_gradients(tangents, gradient, run.alpha, state.damping)
        found = first_descent(
            lambda step: self._move(problem, state, w + step * direction),
            before,
            float(np.vdot(gradient, direction)),
            shortest=_SHORTEST,
        )
        if found is None:
            self._move(problem, state, w)
        elif state.curvature.factored:
            _learn(problem, state, w, gradient)
        step = 0.0 if found is None else found[0]
        state.full = step == 1.0
        state.stuck = state.damping >= 1.0 and before - state.smooth <= 1e-15 * abs(before)  # all is rounding
        if step < 0.2:
            state.damping = min(max(10.0 * state.damping, 1e-5), 1e6)
        elif step == 1.0:
            state.damping = 0.1 * state.damping if state.damping > 1e-7 else 0.0
        return state.stuck

    def _move(self, problem: Problem, state: NewtonState, w: np.ndarray) -> tuple[float]:
        """Go to ``w``; the smoothed objective there."""
        state.w = w
        found = problem.smoothed(w, state.mu, state.centre, state.Q, state.tight)
        state.smooth, state.primal, state.dual, state.G = found
        state.evaluations += 1
        return (state.smooth,)

    def _offer(self, run: Run, state: NewtonState) -> Offer:
        """The weights with their certificate; games are solved where the gap may then be as small as is wanted.

        The objective lies between the smoothed one and its bound, at one centre always at about the same part of the
        way.
        """
        problem, primal = run.problem, state.primal
        wanted, way = run.progress.tol * primal, primal - state.smooth
        own, dual = best_dual(run, state)
        best = max(dual, run.progress.dual)

        def near() -> bool:
            expected = state.smooth + state.part * way - best
            return expected <= wanted or (not state.part and residual(run, state)[1] <= wanted)

        if near() and (look_at_some(run, state) is None or near()):
            state.exact = problem.primal(state.w)
            if way > 0.0:
                state.part = min(max((state.exact - state.smooth) / way, 0.0), 1.0)
            primal = state.exact
        return Offer(state.w, primal, dual, problem.error(state.w), problem.dual_error(own, state.outside))

    def finish(self, run: Run, state: NewtonState) -> None:
        """Solve the games at the best weights where that was not done, and tidy them."""
        problem, progress = run.problem, run.progress
        if progress.primal != state.exact:
            progress.exchange(progress.w, problem.primal(progress.w), progress.primal_error)
        super().finish(run, state)


def _blurred(run: Run, state: NewtonState) -> bool:
    """Whether nearly all of the gap is due to the smoothing, and little to what L-BFGS has left to do at it."""
    return state.primal - state.smooth > _BLURRED * (state.smooth - run.progress.dual)


def _direction(curvature: Curvature, flat: np.ndarray) -> np.ndarray:
    """Where L-BFGS goes; the first step trusts the size of the metric."""
    return curvature.direction(flat) if curvature.steps else -curvature.scaled(flat)


def _learn(problem: Problem, state: NewtonState, before: np.ndarray, gradient: np.ndarray) -> None:
    """Take note of the step from the weights ``before``, where that was the gradient, to those at hand."""
    step = state.w - before
    change = state.G - (gradient - problem.alpha * before) + problem.alpha * step
    state.curvature.add(step.ravel(), change.ravel())
