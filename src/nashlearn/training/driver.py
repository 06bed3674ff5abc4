"""Which method trains what, and the certificate of the result."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nashlearn.training.blas import one_thread
from nashlearn.training.checkpoint import Checkpoint
from nashlearn.training.methods.ascent import ascend
from nashlearn.training.methods.newton import DENSE_LIMIT, least_squares_start, newton, step_cost
from nashlearn.training.problem import Problem
from nashlearn.training.progress import Progress, Round, scaling_advice

__all__ = ["Trained", "linear", "train"]

_CROWDED = 6  # examples per weight from which the Newton method wins from the start
_NEWTON_STEPS = 8  # steps in which Newton ends what ascent has begun, roughly
_POLISHED = 1e-14


@dataclass(frozen=True)
class Trained:
    """Weights with their certificate; ``Q`` is the dual point at which training stopped.

    ``error`` is how wrong rounding may have made ``objective``.
    """

    w: np.ndarray
    Q: np.ndarray
    alpha: float
    norm: float
    objective: float
    dual_gap: float
    n_iter: int
    rounds: list[Round] = field(default_factory=list)
    error: float = 0.0


def linear(
    problem: Problem, Q: np.ndarray, progress: Progress, rng: np.random.Generator, start: Trained | None
) -> None:
    """Where there are few examples per weight, dual ascent first: its rounds are cheap and the optimum is sharp.

    Where there are many, or where ascent would cost more than a Newton run from where it is, semismooth Newton.
    """
    design = problem.design
    if progress.resumes == "newton":
        newton(problem, progress.w, Q, progress, rng, problem.game.scale)  # which takes all but the data from there
        return
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
    max_time: float | None = None,
    callback: Callable[[Round], object] | None = None,
    checkpoint: Checkpoint | None = None,
    advice: Callable[[], str] = scaling_advice,
) -> Trained:
    """Minimise ``P`` to a relative gap of ``tol`` by the given method, or warn.

    Small problems go on to the limit of the arithmetic.
    """
    if start is not None and start.w.shape != problem.shape:  # other features, or a kernel with other rows
        start = None
    progress = Progress(
        min(tol, _POLISHED) if problem.small else tol,
        max_iter,
        verbose,
        max_time=max_time,
        callback=callback,
        checkpoint=checkpoint,
        bound=0.0,  # costs are not negative, and so is no loss
    )
    Q = _starting_point(problem, start)
    try:
        with one_thread() if problem.narrow else nullcontext():
            method(problem, Q, progress, random_state, start)
    except KeyboardInterrupt:
        if not progress.w.size:
            w = np.zeros(problem.shape) if start is None else start.w
            progress.keep(w, problem.primal(w), 0.0)
        progress.interrupted()
    if (w := problem.tidied(progress.w)) is not progress.w:
        progress.exchange(w, problem.primal(w), problem.error(w))
    progress.warn_unless(tol, lambda: f"Raise max_iter or alpha, or {advice()}.")
    norm, error = problem.norm(w), progress.primal_error
    return Trained(w, Q, problem.alpha, norm, progress.primal, progress.gap, progress.n_iter, progress.rounds, error)


def _starting_point(problem: Any, start: Trained | None) -> np.ndarray:
    """The last dual point where it fits, drawn towards the truth so that its weights are no longer than they were."""
    Q = problem.truth()
    if start is not None and start.Q.shape == Q.shape:
        Q += min(1.0, problem.alpha / start.alpha) * (start.Q - Q)
    return Q
