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

_GLANCES, _SHARP = 6, 0.05  # evaluations after which the objective, over the risk without weights, is that small
_GLIMPSES, _CROWDED = 3, 2.8  # those after which larger ones promise the same, where examples per weight are fewer
_PAID = 1.5  # cost of a step on the support that ascent has come to before the first
_NEWTON_STEPS = 8  # steps in which Newton ends what ascent has begun, roughly


class Linear(RowMethod):
    """Where there are very few examples per weight, dual ascent first: its rounds are cheap and the optimum is sharp.

    Elsewhere L-BFGS and semismooth Newton, unless a few evaluations show an optimum that is sharp all the same, as the
    fewer examples there are the more often it is; and Newton where ascent would cost more than that from where it is.
    """

    needs = Newton.needs  # and those of Ascent, where the design can be swept over
    states = (AscentState, NewtonState)

    def init(self, run: Run) -> tuple[Any, Offer | None]:
        """The first state of the method that suits the problem."""
        problem = run.problem
        newton_first = not problem.design.sweepable or _promising(problem) < 1.0
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
        if state.evaluations < _GLIMPSES or state.newton or run.start is not None or not problem.design.sweepable:
            return False
        bar = _promising(problem) if state.evaluations < _GLANCES else _SHARP
        return run.progress.primal < bar * problem.game.scale

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


def _promising(problem: Problem) -> float:
    """The first objectives, over the risk without weights, below which the optimum will be sharp."""
    return _SHARP * max(1.0, (_CROWDED * problem.design.size / problem.n) ** 2)
