"""Which method trains what, and the certificate of the result."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from nashlearn.training.ascent import ascend
from nashlearn.training.newton import DENSE_LIMIT, least_squares_start, newton, step_cost
from nashlearn.training.problem import Problem
from nashlearn.training.progress import Progress

__all__ = ["Trained", "linear", "train"]

_CROWDED = 6  # examples per weight from which the Newton method wins from the start
_NEWTON_STEPS = 8  # steps in which Newton ends what ascent has begun, roughly
_POLISHED = 1e-14


@dataclass(frozen=True)
class Trained:
    """Weights with their certificate; ``Q`` is the dual point at which training stopped."""

    w: np.ndarray
    Q: np.ndarray
    alpha: float
    norm: float
    objective: float
    dual_gap: float
    n_iter: int


def linear(
    problem: Problem, Q: np.ndarray, progress: Progress, rng: np.random.Generator, start: Trained | None
) -> None:
    """Where there are few examples per weight, dual ascent first: its rounds are cheap and the optimum is sharp.

    Where there are many, or where ascent would cost more than a Newton run from where it is, semismooth Newton.
    """
    design = problem.design
    newton_first = not design.sweepable or (design.size <= DENSE_LIMIT and problem.n >= _CROWDED * design.size)
    if newton_first:
        if problem.game.solve(np.zeros((1, problem.k))).value[0] == 0:  # an option without cost: no relative gap
            progress.offer(np.zeros(design.shape), 0.0, 0.0)
            return
        w = least_squares_start(problem) if start is None else start.w
        if start is None:
            Q += problem.game.uncertain
            Q *= 0.5
        newton(problem, w, Q, progress, rng, 0.25 * problem.game.scale)
        return
    ascend(problem, Q, progress, rng, _NEWTON_STEPS * step_cost(problem))
    if not progress.done:
        newton(problem, progress.w, Q, progress, rng, 3.0 * problem.game.scale)


def train(
    problem: Any,
    *,
    tol: float,
    max_iter: int,
    random_state: np.random.Generator,
    start: Trained | None = None,
    method: Callable[..., None] = linear,
    verbose: int = 0,
) -> Trained:
    """Minimise ``P`` to a relative gap of ``tol`` by the given method, or warn.

    Small problems go on to the limit of the arithmetic.
    """
    if start is not None and start.w.shape != problem.shape:  # other features, or a kernel with other rows
        start = None
    progress = Progress(min(tol, _POLISHED) if problem.small else tol, max_iter, verbose)
    Q = _starting_point(problem, start)
    try:
        method(problem, Q, progress, random_state, start)
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
    w = progress.w
    return Trained(w, Q, problem.alpha, problem.norm(w), progress.primal, progress.gap, progress.n_iter)


def _starting_point(problem: Any, start: Trained | None) -> np.ndarray:
    """The last dual point where it fits, drawn towards the truth so that its weights are no longer than they were."""
    Q = problem.truth()
    if start is not None and start.Q.shape == Q.shape:
        Q += min(1.0, problem.alpha / start.alpha) * (start.Q - Q)
    return Q
