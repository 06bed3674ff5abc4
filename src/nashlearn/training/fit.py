"""Which method trains what, and the certificate of the result."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from nashlearn.training.ascent import ascend
from nashlearn.training.newton import DENSE_LIMIT, least_squares_start, newton, step_cost
from nashlearn.training.problem import Problem
from nashlearn.training.progress import Progress

__all__ = ["Trained", "train"]

_CROWDED = 6  # examples per weight from which the Newton method wins from the start
_NEWTON_STEPS = 8  # steps in which Newton ends what ascent has begun, roughly
_SMALL = 20_000  # scores and weights up to which a fit is polished far beyond tol
_POLISHED = 1e-14


@dataclass(frozen=True)
class Trained:
    """Weights with their certificate; ``Q`` is the dual point at which training stopped."""

    w: np.ndarray
    Q: np.ndarray
    alpha: float
    objective: float
    dual_gap: float
    n_iter: int


def train(
    problem: Problem,
    *,
    tol: float,
    max_iter: int,
    random_state: np.random.Generator,
    start: Trained | None = None,
    verbose: int = 0,
) -> Trained:
    """Minimise ``P`` to a relative gap of ``tol``, or warn.

    Where there are few examples per weight, dual ascent comes first: its rounds are cheap and the optimum is
    sharp. Where there are many, or ascent has cost as much as a Newton run would, semismooth Newton.
    Small problems go on to the limit of the arithmetic.
    """
    polish = problem.n * problem.k + problem.design.size**2 <= _SMALL
    progress = Progress(min(tol, _POLISHED) if polish else tol, max_iter, verbose)
    Q = _starting_point(problem, start)
    try:
        _run(problem, Q, progress, random_state, start)
    except KeyboardInterrupt:
        if not progress.w.size:
            raise
        warnings.warn("Training was interrupted; the best weights so far are kept.", UserWarning, stacklevel=2)
    if progress.gap > tol:
        warnings.warn(
            f"Training stopped after {progress.n_iter} iterations at a relative duality gap of {progress.gap:.2e}, "
            f"above tol={tol:.2e}. Raise max_iter or alpha, or scale the features.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return Trained(progress.w, Q, problem.alpha, progress.primal, progress.gap, progress.n_iter)


def _starting_point(problem: Problem, start: Trained | None) -> np.ndarray:
    """The last dual point where it fits, drawn towards the truth so that its weights are no longer than they were."""
    Q = problem.truth()
    if start is not None and start.Q.shape == Q.shape:
        Q += min(1.0, problem.alpha / start.alpha) * (start.Q - Q)
    return Q


def _run(problem: Problem, Q: np.ndarray, progress: Progress, rng: np.random.Generator, start: Trained | None) -> None:
    design = problem.design
    newton_first = not design.sweepable or (design.size <= DENSE_LIMIT and problem.n >= _CROWDED * design.size)
    if newton_first:
        w = least_squares_start(problem) if start is None else start.w
        if start is None:
            Q += problem.game.uncertain
            Q *= 0.5
        newton(problem, w, Q, progress, rng, 0.25 * problem.game.scale)
        return
    ascend(problem, Q, progress, rng, _NEWTON_STEPS * step_cost(problem))
    if not progress.done:
        newton(problem, progress.w, Q, progress, rng, 3.0 * problem.game.scale)
