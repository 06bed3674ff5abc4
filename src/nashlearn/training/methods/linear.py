"""Training of linear models of one label per row: dual ascent, Newton's method, or the one after the other."""

from __future__ import annotations

from typing import Any

from nashlearn.training.driver import Offer, Run
from nashlearn.training.methods.ascent import Ascent, AscentState, work_left
from nashlearn.training.methods.newton import Newton, step_cost
from nashlearn.training.methods.newton_state import NewtonState
from nashlearn.training.methods.rows import RowMethod
from nashlearn.training.methods.support import support_cost, support_step
from nashlearn.training.problem import Problem

__all__ = ["Linear"]

_CROWDED = 2  # examples per weight from which the Newton method wins from the start
_GLANCES, _SHARP = 6, 0.05  # evaluations after which the objective, over the risk without weights, is that small
_PAID = 1.5  # cost of a step on the support that ascent has come to before the first
_NEWTON_STEPS = 8  # steps in which Newton ends what ascent has begun, roughly


class Linear(RowMethod):
    """Where there are few examples per weight, dual ascent first: its rounds are cheap and the optimum is sharp.

    Where there are many, L-BFGS and semismooth Newton, unless a few evaluations show that the optimum is sharp all the
    same; and Newton where ascent would cost more than that from where it is.
    """

    needs = Newton.needs  # and those of Ascent, where the design can be swept over
    states = (AscentState, NewtonState)

    def init(self, run: Run) -> tuple[Any, Offer | None]:
        """The first state of the method that suits the problem."""
        problem = run.problem
        size = problem.design.size
        newton_first = not problem.design.sweepable or problem.n >= _CROWDED * size
        return Newton().init(run) if newton_first else self._ascent(problem).init(run)

    def update(self, run: Run, state: Any) -> tuple[Any, Offer | None]:
        """A step of the method that the state belongs to."""
        if state.phase == NewtonState.phase:
            return self._ascent(run.problem).init(run) if self._sharp(run, state) else Newton().update(run, state)
        if self._few(run, state):
            return support_step(run, state)
        state, offer = self._ascent(run.problem).update(run, state)
        if state.over:
            return Newton().begin(run, run.progress.w, state.Q, 3.0 * run.problem.game.scale, newton=True)
        return state, offer

    def _sharp(self, run: Run, state: NewtonState) -> bool:
        """Whether the first evaluations of a fresh run show labels that weights can all but tell apart."""
        problem = run.problem
        fresh = state.evaluations >= _GLANCES and not state.newton and run.start is None
        return fresh and problem.design.sweepable and run.progress.primal < _SHARP * problem.game.scale

    def _few(self, run: Run, state: AscentState) -> bool:
        """Whether so few examples have weight that to solve for their strategies is worth what ascent has cost."""
        if state.solved or state.settled or state.work == 0.0:
            return False
        cost = support_cost(run.problem, state)
        left = work_left(state.works, state.gaps, run.progress.tol)
        soon = 0.0 < left < cost  # at its rate ascent is there before
        return not soon and _PAID * cost <= state.work and cost < _NEWTON_STEPS * step_cost(run.problem)

    def finish(self, run: Run, state: Any) -> None:
        """What the method of the last state does in the end."""
        (Newton() if state.phase == NewtonState.phase else self._ascent(run.problem)).finish(run, state)

    def _ascent(self, problem: Problem) -> Ascent:
        return Ascent(_NEWTON_STEPS * step_cost(problem))
