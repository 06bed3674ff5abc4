"""Sparse weights of linear models of one label per row: proximal L-BFGS, then Newton's method where that is slow.

Among a working set of some hundred weights the Hessian of the tempered loss, ``mean Phi_i' J_i Phi_i``, is cheap to
form, from some of the rows far from the solution, and the minimum of the model is that of a lasso [lee2014]_. The
exact game, at smoothing 0, is approached through tempered ones: their labels are a point of its dual, their weights
have an exact objective, and what lies between the two falls with the smoothing.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nashlearn.training.blas import one_thread
from nashlearn.training.driver import Offer, Run
from nashlearn.training.methods.box import BoxPlanes
from nashlearn.training.methods.hessian import DENSE_LIMIT
from nashlearn.training.methods.lasso import lasso_step
from nashlearn.training.methods.search import first_descent
from nashlearn.training.methods.sparse import SparseDescent, SparseState, violation
from nashlearn.training.methods.tempered import Turns, drawn_rows, evaluation_cost
from nashlearn.training.objective import Evaluation
from nashlearn.training.problem import Problem
from nashlearn.training.progress import relative_gap
from nashlearn.training.rounding import UNIT

__all__ = ["SparseRowState", "SparseRows"]

_SMOOTH, _SHARPER = 0.1, 0.25  # smoothing to begin with, in units of the game's scale, and by which it falls
_SHARPEST = 1e-10  # at which the exact game is given up
_FIRST = 8  # steps of L-BFGS before Newton's method, which finds the working set
_CHEAP = 12.0  # evaluations that a step of Newton's method may cost in any case
_WATCHED = 12  # steps over which the pace of L-BFGS is judged
_NEWTON_STEPS = 8  # in which Newton's method ends, roughly
_SAMPLE = 6.0  # rows per weight that make a Hessian good enough far from the solution
_DAMPING, _WEAKEST, _STRONGEST = 1e-4, 1e-9, 1e6  # relative to curvatures of labels that are all but uniform
_INEXACT = 0.01  # how exactly the minimum of a model is sought
_GOOD, _BAD = 0.3, 0.1  # shares of what a model promises that a step wins
_NEARER = 0.7  # ratio of distances of the moments by which a step is taken where rounding hides what it wins
_SHORTEST = 1e-6
_ROUNDED = 1e-27  # relative fall beyond which there is nothing to win
_SUMMED = 48  # roundings on the way of a term into a sum
_POLISHED, _POLISHED_EXACT = 1e-13, 1e-9  # relative gaps that small problems are solved to, at smoothing 0


@dataclass
class SparseRowState(SparseState):
    """Where training stands.

    Attributes
    ----------
    newton : bool
        Whether Newton's method has begun.
    sample : float
        Rows per weight that its Hessian is made of.
    damping : float
        What is added to its diagonal.
    promised, violated : float
        What the last model promised to win, and how far moments were from where they should be.
    steps : int
        Taken since the pace was last judged.
    before : float
        The relative gap then.
    """

    phase: ClassVar[str] = "sparse rows"
    newton: bool = False
    sample: float = _SAMPLE
    damping: float = _DAMPING
    promised: float = 0.0
    violated: float = np.inf
    steps: int = 0
    before: float = np.inf


class SparseRows(SparseDescent):
    """Through games of falling smoothing to the one of the smoothing ``target``, in units of the loss."""

    needs = ("X", "design", "loss", "omega", "evaluate", "tempered", "error", "moment_error", "game")
    states = (SparseRowState,)

    def __init__(self, target: float, scale: float):
        least = max(target, _SHARPEST * scale)
        schedule: list[float] = []
        while not schedule or schedule[-1] > least:
            schedule.append(max(least, _SHARPER * schedule[-1] if schedule else _SMOOTH * scale))
        super().__init__(schedule, target)

    def shape(self, problem: Any) -> tuple[int, ...]:
        """Shape of the weights."""
        return problem.shape

    def goal(self, problem: Any, tol: float) -> float:
        """Small problems are solved far beyond ``tol``."""
        return min(tol, _POLISHED if self.target else _POLISHED_EXACT) if problem.small else tol

    def threads(self, problem: Any) -> AbstractContextManager[None]:
        """One thread of linear algebra for each of our own."""
        return one_thread() if problem.shared else nullcontext()

    def init(self, run: Run) -> tuple[SparseRowState, Offer | None]:
        """The weights to start from, those of an earlier run at the smoothing asked for."""
        state, offer = super().init(run)
        last = len(self.schedule) - 1 if run.start is not None and self.target else 0
        return SparseRowState(state.w, state.gradient, state.curvature, state.planes, stage=last), offer

    def _planes(self, run: Run) -> BoxPlanes:
        """What answers pay that know the labels is more than 0 where being right has its price."""
        problem = run.problem
        truth = sum(
            problem.omega[part] @ problem.game.part(part).risk(problem.truth(part)) for part, _ in problem.blocks()
        )
        return BoxPlanes.none(problem.n_weights, float(truth), problem.moment_error)

    def _remember(self, run: Run, state: Any, w: np.ndarray, seen: Evaluation, smoothing: float, omega: float) -> None:
        """Keep the plane of a tempered game; labels of the exact one miss the simplex by nobody knows how much."""
        if smoothing:
            error = run.problem.error(w.reshape(run.problem.shape), smoothing=smoothing)
            state.planes.add(seen.gradient, seen.entropy, omega, error)

    def _guess(self, run: Run) -> np.ndarray:
        """That of uniform labels."""
        problem = run.problem
        out = np.zeros(problem.shape)
        for part, block in problem.blocks():
            problem.design.add_diagonal(block, np.broadcast_to(problem.omega[part], (problem.k, block.shape[0])), out)
        curvature = out.ravel()
        return self.schedule[0] * problem.k / (curvature + 1e-10 * curvature.mean() + np.finfo(np.float64).tiny)

    def update(self, run: Run, state: Any) -> tuple[SparseRowState, Offer | None]:
        """A step, after which the model is trusted more or less."""
        value, stage, begun = state.value, state.stage, state.begun
        state, offer = super().update(run, state)
        if begun and stage == state.stage and state.promised > 0.0:
            better = violation(state.gradient, state.w, run.alpha) <= _GOOD * state.violated
            won = (value - state.value) / state.promised
            if won > _GOOD or better:
                state.damping = max(0.1 * state.damping, _WEAKEST)
            elif won < _BAD:
                state.damping = max(10.0 * state.damping, _DAMPING)
            if state.newton and not better:
                state.sample *= 2.0
        return state, offer

    def _direction(self, run: Run, state: Any) -> tuple[np.ndarray, float]:
        state.violated = violation(state.gradient, state.w, run.alpha)
        d, slope = super()._direction(run, state)
        state.promised = -slope if -slope > _ROUNDED * abs(state.value) else 0.0
        return d, -state.promised

    def _modelled(self, run: Run, state: Any, working: np.ndarray, g: np.ndarray, w: np.ndarray) -> np.ndarray:
        """The step of the working set by the model of L-BFGS, or by the Hessian."""
        state.newton = state.newton or self._hastened(run, state, working.size)
        if not state.newton or working.size > DENSE_LIMIT:
            return super()._modelled(run, state, working, g, w)
        problem, mu = run.problem, self.schedule[state.stage]
        Q, P = np.empty((problem.n, problem.k)), np.full((problem.n, problem.n_options), np.nan)
        problem.tempered(state.w, mu, Q, P)
        rows, share = drawn_rows(problem, state.sample * working.size, Q, run.rng)
        turns = Turns(problem, mu, Q, P, rows, share)
        H = problem.design.curvature_among(working, turns.blocks())
        np.einsum("jj->j", H)[:] += state.damping * max(H.diagonal().mean(), turns.typical)
        return lasso_step(H, g, w, run.alpha, _INEXACT * state.violated)

    def _searched(
        self, run: Run, state: Any, d: np.ndarray, slope: float, smoothing: float
    ) -> tuple[float, tuple[float, np.ndarray]] | None:
        """A step that lowers the objective, or, where rounding hides that, brings moments nearer to the box.

        The gap falls with the distance of the moments, and what is left to win with its square.
        """
        before, error = state.value, run.problem.error(state.w.reshape(run.problem.shape), smoothing=smoothing)

        def trial(step: float) -> tuple[float, tuple[float, np.ndarray]]:
            w = state.w + step * d
            seen = value, gradient = self._objective(run, state, w, smoothing)
            nearer = value <= before + error and violation(gradient, w, run.alpha) <= _NEARER * state.violated
            return before + step * slope if nearer else value, seen

        found = first_descent(trial, before, slope, shortest=_SHORTEST, slack=0.0)
        return None if found is None else (found[0], found[1][1])

    def _hastened(self, run: Run, state: SparseRowState, size: int) -> bool:
        """Whether Newton's method is cheap, or L-BFGS, at its pace of late, would take longer."""
        state.steps += 1
        if size > DENSE_LIMIT or state.steps < _FIRST:
            return False
        cost = _newton_cost(run.problem, size, state.sample * size) / evaluation_cost(run.problem)
        if cost <= _CHEAP:
            return True
        if state.steps < _WATCHED:
            return False
        gap = relative_gap(state.value, state.dual)
        pace = np.log(max(state.before / gap, 1.0 + 1e-9)) / state.steps
        state.steps, state.before = 0, gap
        return bool(np.log(max(gap / run.progress.tol, 1.0)) / pace > _NEWTON_STEPS * cost)

    def _look_again(self, run: Run, state: Any, smoothing: float) -> None:
        """Trust the model less where no step helps; give up where there is nothing to win or no trust left."""
        if not state.promised:
            state.still = True
        elif state.newton:
            state.still = state.damping >= _STRONGEST
        else:
            state.newton, state.steps = state.curvature.steps == [], 0
            super()._look_again(run, state, smoothing)
            state.still = False

    def _offer(self, run: Run, state: Any) -> Offer:
        return self._surely(run, state, super()._offer(run, state))

    def _certified(self, run: Run, state: Any) -> Offer:
        return self._surely(run, state, super()._certified(run, state))

    def _surely(self, run: Run, state: Any, offer: Offer) -> Offer:
        """The weights in their shape, what the planes prove, and what rounding may do to either side."""
        w, planes = offer.w.reshape(run.problem.shape), state.planes
        dual, sure = planes.bound(run.alpha, self.target), planes.sure(run.alpha, self.target)
        lost = dual - sure if np.isfinite(sure) else 0.0
        return Offer(w.copy(), offer.primal, dual, self._error(run, w, self.schedule[state.stage]), lost)

    def _error(self, run: Run, w: np.ndarray, smoothing: float) -> float:
        """How wrong rounding may make the objective: the mean loss, and a sum in pairs of absolute values."""
        return run.problem.error(w, smoothing=smoothing) + _SUMMED * UNIT * self.penalised(run, w)

    def finish(self, run: Run, state: Any) -> None:
        """Look at the best weights again, and exchange them for the last, or for those that the design prefers.

        Of weights whose objectives rounding cannot tell apart the last are the best: their moments are nearest to where
        they should be, and repeated rows lead to the same weights as weighted ones.
        """
        super().finish(run, state)
        best, problem = run.progress, run.problem
        at_target = state.begun and self.schedule[state.stage] == self.target
        if at_target and best.rounds and state.value <= best.primal + best.primal_error:
            w = state.w.reshape(problem.shape).copy()
            best.exchange(w, state.value, self._error(run, w, self.target))
        if (w := problem.tidied(best.w)) is not best.w:
            best.exchange(w, self.penalised(run, w) + problem.evaluate(w.ravel(), self.target).loss, best.primal_error)


def _newton_cost(problem: Problem, size: int, sample: float) -> float:
    """Cost of a Newton step, in operations of a matrix product."""
    rows = min(sample, problem.n)
    return 2.0 * evaluation_cost(problem) + rows * (size**2 + 10.0 * problem.k**2) + 200.0 * size**2
