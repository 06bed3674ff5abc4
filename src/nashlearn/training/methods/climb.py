"""Exact training in the span of a kernel: block dual ascent on working sets of Gram rows.

Each round ranks all examples by ``a/2 |change of q|^2``, a lower bound of what a visit would gain (the gain itself
cancels near the solution), and sweeps over the best of them together with the support vectors, on their square part of
the Gram matrix; where sweeps crawl, Newton's method takes over (:mod:`nashlearn.training.methods.working_set`). What
changed is then pushed to the scores of all. Only rows that were once in a working set are ever computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from nashlearn.kernels.ascent import inner_sweeps, rank
from nashlearn.training.designs.span import KernelProblem
from nashlearn.training.driver import Offer, Run
from nashlearn.training.methods.ray import Ray
from nashlearn.training.methods.rows import RowMethod
from nashlearn.training.methods.working_set import WorkingSet, newton_on_set
from nashlearn.training.progress import relative_gap

__all__ = ["Climb"]

_FRESH = 600  # examples that may enter a working set in a round
_FIRST = 8  # the first working set is a random part of the data: one in so many
_ENOUGH = 0.01  # part of a working set's first gain below which a sweep is not worth another
_SWEEPS = 30  # sweeps over a working set before Newton's method takes over
_SCALE = 3.0  # first smoothing of Newton's method, in units of the game's scale
_NATURAL = 0.3  # and in units of the mean curvature of an example's own term in the dual, where that is more
_RAY = 6  # lengths of the weights that are tried in a certificate
_NEWTON_LIMIT = 6000  # examples in a working set up to which it may


@dataclass
class ClimbState:
    """A dual point and what its coefficients give.

    Attributes
    ----------
    Q : ndarray (n, k)
        The dual point.
    KC : ndarray (functions, n)
        The Gram matrix times its coefficients, transposed.
    mu : float
        Smoothing at which Newton's method takes good steps.
    error : float
        How wrong rounding may have made ``KC``.
    """

    phase: ClassVar[str] = "climb"
    Q: np.ndarray
    KC: np.ndarray
    mu: float
    error: float
    over: bool = False


class Candidate(NamedTuple):
    """Coefficients, their scores, and how wrong those may be."""

    C: np.ndarray
    scores: np.ndarray
    error: float


class Climb(RowMethod):
    """Dual ascent on working sets of a kernel problem."""

    needs = ("gram", "span", "game", "omega", "truth", "products", "push", "dual", "error_at")
    states = (ClimbState,)

    def init(self, run: Run) -> tuple[ClimbState, Offer | None]:
        """The dual point to start from, after sweeps over a random part of the data."""
        problem, Q = run.problem, self.starting_point(run)
        gram, k = problem.gram, problem.span.k
        Q[gram.diagonal + problem.span.offset <= 0.0] = problem.game.uncertain  # no weights move their scores
        C = _coefficients(run, Q)
        KC, error = problem.products(C)
        state = ClimbState(Q, KC, _SCALE * problem.game.scale, error)
        some = np.sort(
            run.rng.choice(gram.n, min(max(min(gram.n, 2 * k), gram.n // _FIRST), gram.capacity), replace=False)
        )
        other = _sweep_set(run, state, C, some, np.ones((gram.n, k), np.bool_), np.inf)
        return state, _certified(run, state, C, other)

    def update(self, run: Run, state: ClimbState) -> tuple[ClimbState, Offer | None]:
        """A round on the working set of the examples that promise most."""
        problem, progress = run.problem, run.progress
        C = _coefficients(run, state.Q)
        progress.n_iter += 1
        near, promise = np.ones(C.shape, np.bool_), np.empty(len(C))
        scores = np.ascontiguousarray(problem.span.scores(state.KC.T, C))
        diagonal = problem.gram.diagonal + problem.span.offset
        shares = problem.omega / run.alpha
        rank(problem.game.params.compiled(), scores, state.Q, shares, diagonal, near, promise)
        chosen = _working_set(C, promise, problem.gram.capacity)
        if not chosen.size:  # no visit would move anything: rounding has the last word
            state.over = True
            return state, None
        enough = max(0.3 * progress.tol, 0.03 * progress.apparent_gap) * progress.primal
        other = _sweep_set(run, state, C, chosen, near, enough)
        return state, _certified(run, state, C, other)


def _coefficients(run: Run, Q: np.ndarray) -> np.ndarray:
    """The coefficients of a dual point."""
    return (run.problem.omega / run.alpha)[:, None] * (run.problem.truth() - Q)


def _certified(run: Run, state: ClimbState, C: np.ndarray, other: Candidate | None) -> Offer:
    """The certificate; once more from scores computed anew, where what rounding adds up to may be to blame."""
    progress, first = run.progress, _certificate(run, state, C, other)
    primal, dual = min(progress.primal, first.primal), max(progress.dual, first.dual)
    error = first.primal_error + first.dual_error
    if not relative_gap(primal, dual) <= progress.tol < relative_gap(primal, dual - error):
        return first
    state.KC, state.error = run.problem.products(C)
    both = first, _certificate(run, state, C, None)
    best = min(both, key=lambda one: one.primal + one.primal_error)
    bound = max(both, key=lambda one: one.dual - one.dual_error)
    return Offer(best.w, best.primal, bound.dual, best.primal_error, bound.dual_error)


def _certificate(run: Run, state: ClimbState, C: np.ndarray, other: Candidate | None) -> Offer:
    """The better of the dual's own weights and those that Newton's method left, each at its best length."""
    problem = run.problem
    scores = np.ascontiguousarray(problem.span.scores(state.KC.T, C))
    best, best_C, error = np.inf, C, 0.0
    for one in (Candidate(C, scores, state.error), *([other] if other else [])):
        half = 0.5 * run.alpha * float(np.vdot(one.C, one.scores))
        value, s = Ray(problem.game, one.scores, problem.truth(), problem.omega, half).best(1.0, _RAY)
        if value < best:
            best, best_C = value, s * one.C
            error = problem.error_at(best_C, s * one.scores, s * one.error)
    dual_error = problem.error_at(C, scores, state.error, state.Q)
    return Offer(best_C, best, problem.dual(state.Q, C, scores), error, dual_error)


def _working_set(C: np.ndarray, promise: np.ndarray, capacity: int) -> np.ndarray:
    """The examples that promise most, and the support vectors, as far as their rows can be kept."""
    fresh = np.argpartition(-promise, min(_FRESH, promise.size) - 1)[:_FRESH]
    fresh = fresh[promise[fresh] > 0.0]
    chosen = np.union1d(fresh, np.flatnonzero(C.any(axis=1)))
    if chosen.size > capacity:
        chosen = chosen[np.argsort(-promise[chosen], kind="stable")[:capacity]]
    return chosen


def _sweep_set(
    run: Run, state: ClimbState, C: np.ndarray, chosen: np.ndarray, near: np.ndarray, enough: float
) -> Candidate | None:
    """Dual ascent over the chosen examples, to a gap of their own of ``enough``; push what changed to all scores.

    Overwrites their rows of the coefficients ``C``. Returns other coefficients, where Newton's method has left some.
    """
    problem, span, other = run.problem, run.problem.span, None
    slots, shares = problem.gram.rows(chosen), problem.omega[chosen] / run.alpha
    K, before, Q = problem.gram.square(chosen, slots), C[chosen], state.Q[chosen]
    truth = problem.truth()[chosen]
    exact = chosen.size > _NEWTON_LIMIT or not np.isfinite(enough)
    # Sweeps wait for memory: half the bytes are half the time, and Newton's method mends what rounding spoils.
    rows, W = span.square(K if exact else K.astype(np.float32), state.KC[:, chosen], C)
    active, first, classes = span.lists(near[chosen])
    budget = float(_SWEEPS * active.size)
    game = problem.game.part(chosen)
    work = inner_sweeps(
        game.params.compiled(), rows, W, Q, shares, problem.gram.diagonal[chosen] + span.offset, active, first,
        classes, 0.0, _ENOUGH, budget, 0.0,
    )  # fmt: skip
    if chosen.size and work >= budget and not exact:
        outside = span.scores(state.KC[:, chosen].T - K @ span.reduce(before), C) - span.scores(0.0, before)
        part = WorkingSet(game, span, run.alpha, K, truth, problem.omega[chosen], np.ascontiguousarray(outside))
        curvature = float(shares @ np.diagonal(K)) / chosen.size
        found = newton_on_set(part, Q, enough, max(state.mu, _NATURAL * curvature))
        Q, state.mu = found.Q, max(state.mu, found.mu)
        other = _with(problem, state, C, chosen, slots, found.C)
    state.Q[chosen] = Q
    C[chosen] = shares[:, None] * (truth - Q)
    change = span.reduce(C[chosen] - before)
    moved = np.flatnonzero(change.any(axis=1))
    if moved.size:
        state.error += problem.push(chosen[moved], slots[moved], change[moved], state.KC)
    return other


def _with(
    problem: KernelProblem, state: ClimbState, C: np.ndarray, chosen: np.ndarray, slots: np.ndarray, new: np.ndarray
) -> Candidate:
    """The coefficients ``C`` with others for the chosen examples."""
    mixed, KC = C.copy(), state.KC.copy()
    mixed[chosen] = new
    error = problem.push(chosen, slots, problem.span.reduce(new - C[chosen]), KC)
    return Candidate(mixed, problem.span.scores(KC.T, mixed), state.error + error)
