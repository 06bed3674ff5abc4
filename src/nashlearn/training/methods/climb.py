"""Exact training in the span of a kernel: block dual ascent on working sets of Gram rows.

Each round ranks all examples by ``a/2 |change of q|^2``, a lower bound of what a visit would gain (the gain itself
cancels near the solution). On the square part of the Gram matrix of the best of them, together with the support
vectors, greedy visits (:mod:`nashlearn.kernels.greedy`) hold the intercept and the kernel's mean apart; where they
crawl, or see nothing to gain while there is a gap, Newton's method takes over
(:mod:`nashlearn.training.methods.working_set`). What changed is then pushed to the scores of all. Only rows of examples
that once moved are ever computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from nashlearn.kernels.ascent import rank
from nashlearn.kernels.greedy import greedy_passes
from nashlearn.training.designs.span import KernelProblem
from nashlearn.training.driver import Offer, Run
from nashlearn.training.methods.rows import RowMethod
from nashlearn.training.methods.working_set import WorkingSet, newton_on_set
from nashlearn.training.progress import relative_gap
from nashlearn.training.rounding import UNIT, largest

__all__ = ["Climb"]

_FRESH = 1000  # examples that may enter a working set in a round, or as many as there are support vectors
_FIRST = 8  # the first working set is a random part of the data: one in so many
_ENOUGH = 3e-3  # part of the most promising gain of a working set below which none is worth a visit,
_LATER, _FAR = 3e-4, 0.5  # and once the relative gap is not that large: then few sets are still to come
_LEFT = 0.02  # part of the gap that gains of that size may leave, were all examples to promise them
_FINE = 2.0  # or this times the relative gap that is wanted, where that is less: the last digits ask for more
_VISITS = 1e-3  # relative gap for which visits are made where more is allowed: Newton's method costs more than they do
_LIGHT = 1e-4  # relative gap from which visits keep scores in single precision
_HUGE = 1e30  # scores, and values of the kernel, that it can hold
_LOOKS = 500  # looks at each example of a working set before Newton's method takes over
_OWN = 0.03  # part of the kernel's own diagonal that what examples have in common may add to it in visits
_SPREAD = 64  # examples that share what an intercept is corrected by
_IDLE = 10  # and where there are fewer, since none promises enough,
_BARELY = 0.01  # and they won no more than this part of the gap
_FINER, _FINEST = 0.1, 1e-4  # what is enough falls by such factors, to this part of it at the least, before it does
_STALLED = 0.5  # part of the last round's gap that such visits must get below, or it takes over too,
_STILL = 0.8  # and other visits of a set that is settled
_SCALE = 0.3  # first smoothing of Newton's method, in units of the game's scale
_NATURAL = 0.003  # and in units of the mean curvature of an example's own term in the dual, where that is more
_FEW = 0.05  # part of a working set: with fewer new examples it is worth solving
_RAY = 6  # lengths of the weights that are tried in a certificate
_NEAR = 20.0  # times tol: gaps below which it is worth while
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
    held : ndarray (k,)
        What the intercept should be, less what the coefficients make of it.
    fine : float
        Factor on the gain below which visits stop. It falls when a round finds next to nothing to visit.
    gap : float
        Before the last round.
    """

    phase: ClassVar[str] = "climb"
    Q: np.ndarray
    KC: np.ndarray
    mu: float
    error: float
    held: np.ndarray
    over: bool = False
    fine: float = 1.0
    gap: float = np.inf


class Candidate(NamedTuple):
    """Coefficients, their scores, and how wrong those may be."""

    C: np.ndarray
    scores: np.ndarray
    error: float
    instead: bool = False  # of those of the dual point


class Part(NamedTuple):
    """The diagonal of ``K - free e e'`` for the Gram matrix ``K`` of a working set and its mean ``e``, 1 on average.

    ``own`` is how much of ``e e'`` is left in it; where ``free`` is 0, all.
    """

    diagonal: np.ndarray
    common: np.ndarray
    free: float
    own: float


class Climb(RowMethod):
    """Dual ascent on working sets of a kernel problem."""

    needs = ("gram", "span", "game", "omega", "truth", "products", "push", "dual", "error_at", "keep")
    states = (ClimbState,)

    def init(self, run: Run) -> tuple[ClimbState, Offer | None]:
        """The dual point to start from, after sweeps over a random part of the data."""
        problem, Q = run.problem, self.starting_point(run)
        gram, k = problem.gram, problem.span.k
        Q[gram.diagonal + problem.span.offset <= 0.0] = problem.game.uncertain  # no weights move their scores
        C = _coefficients(run, Q)
        KC, error = problem.products(C)
        state = ClimbState(Q, KC, _SCALE * problem.game.scale, error, np.zeros(k))
        some = np.sort(
            run.rng.choice(gram.n, min(max(min(gram.n, 2 * k), gram.n // _FIRST), gram.capacity), replace=False)
        )
        other = _sweep_set(run, state, C, some, np.ones((gram.n, k), np.bool_), np.inf, np.inf)
        # What a part of the data knows of all is not worth a certificate, unless it was all or there is a better start.
        certain = some.size == gram.n or run.start is not None
        return state, _certified(run, state, C, other) if certain else None

    def update(self, run: Run, state: ClimbState) -> tuple[ClimbState, Offer | None]:
        """A round on the working set of the examples that promise most."""
        problem, progress = run.problem, run.progress
        C = _coefficients(run, state.Q)
        progress.n_iter += 1
        near, promise = np.ones(C.shape, np.bool_), np.empty(len(C))
        scores = np.ascontiguousarray(problem.span.scores(state.KC.T, C) + state.held)
        diagonal = problem.gram.diagonal + problem.span.offset
        shares = problem.omega / run.alpha
        rank(problem.game.params.compiled(), scores, state.Q, shares, diagonal, near, promise)
        support = _support(C)
        chosen = _working_set(support, promise, problem.gram.capacity)
        if not chosen.size:  # no visit would move anything: rounding has the last word
            state.over = True
            return state, None if progress.w.size else _certified(run, state, C, None)
        new = chosen.size - np.count_nonzero(support[chosen])
        settled = state.fine < 1.0 or bool(new <= _FEW * chosen.size)
        rest = 0.03 * progress.apparent_gap if new > _FEW * chosen.size else 0.0
        enough, visits = (max(0.3 * tol, rest) * progress.primal for tol in (progress.tol, min(progress.tol, _VISITS)))
        other = _sweep_set(run, state, C, chosen, near, enough, visits, settled)
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
    """The better of the dual's own weights and others, near the goal each at its best length."""
    problem, tol = run.problem, run.progress.tol
    scores = np.ascontiguousarray(problem.span.scores(state.KC.T, C))
    dual = problem.dual(state.Q, C, scores)
    best, best_C, best_scores, error = np.inf, C, scores, 0.0
    own = Candidate(C, scores, state.error)

    def will_do(value: float, least: float) -> bool:
        """Whether no other length is worth a try: this one is what is wanted, or far from it, or none is."""
        return not tol < relative_gap(value, dual) < _NEAR * tol or relative_gap(least, dual) > tol

    for one in (own,) if other is None else (other,) if other.instead else (own, other):
        half = 0.5 * run.alpha * float(np.vdot(one.C, one.scores))
        value, s = problem.ray(one.scores, half).best(1.0, _RAY, will_do)
        if value < best:
            best, best_C, best_scores = value, s * one.C, s * one.scores
            error = problem.error_at(best_C, best_scores, s * one.error)
    dual_error = problem.error_at(C, scores, state.error, state.Q)
    if best < run.progress.primal:
        problem.keep(best_C, best_scores)
    return Offer(best_C, best, dual, error, dual_error)


def _working_set(support: np.ndarray, promise: np.ndarray, capacity: int) -> np.ndarray:
    """The examples that promise most, and the support vectors, as far as their rows can be kept."""
    most = min(max(_FRESH, int(np.count_nonzero(support))), promise.size)
    fresh = np.argpartition(-promise, most - 1)[:most]
    marks = support.copy()
    marks[fresh[promise[fresh] > 0.0]] = True
    chosen = np.flatnonzero(marks)
    if chosen.size > capacity:
        chosen = chosen[np.argsort(-promise[chosen], kind="stable")[:capacity]]
    return chosen


def _support(C: np.ndarray) -> np.ndarray:
    """Which examples have coefficients other than 0."""
    return np.abs(C) @ np.ones(C.shape[1]) > 0.0


def _sweep_set(
    run: Run, state: ClimbState, C: np.ndarray, chosen: np.ndarray, near: np.ndarray, enough: float,
    visits: float, settled: bool = False,
) -> Candidate | None:  # fmt: skip
    """Dual ascent over the chosen examples, to a gap of their own of ``enough``; push what changed to all scores.

    Visits go on until they promise no more than is a part of ``visits``. Few are new in a set that is ``settled``.

    Overwrites their rows of the coefficients ``C``. Returns other coefficients, where there are better ones.
    """
    problem, span, other = run.problem, run.problem.span, None
    shares = problem.omega[chosen] / run.alpha
    before, Q = C[chosen], state.Q[chosen]
    truth = problem.truth()[chosen]
    exact = chosen.size > _NEWTON_LIMIT or not np.isfinite(enough)
    enough_gained = _passes(run, state, C, chosen, Q, near, visits, settled)
    if chosen.size and not exact and not enough_gained:
        K = problem.gram.square(chosen)
        outside = span.scores(state.KC[:, chosen].T - K @ span.reduce(before), C) - span.scores(0.0, before)
        game = problem.game.part(chosen)
        part = WorkingSet(game, span, run.alpha, K, truth, problem.omega[chosen], np.ascontiguousarray(outside))
        curvature = float(shares @ np.diagonal(K)) / chosen.size
        mean = float(K.mean())
        alike = mean > _OWN * float(np.diagonal(K).mean())  # else no equal change moves all scores alike
        shift = state.held / (chosen.size * mean) if alike else np.zeros_like(state.held)
        found = newton_on_set(part, Q, shift, enough, max(state.mu, _NATURAL * curvature))
        Q, state.mu = found.Q, max(state.mu, found.mu)
        other = _with(problem, state, C, chosen, found.C)
        state.held[:] = 0.0
    state.Q[chosen] = Q
    C[chosen] = shares[:, None] * (truth - Q)
    change = span.reduce(C[chosen] - before)
    moved = np.flatnonzero(change.any(axis=1))
    if moved.size:
        state.error += problem.push(chosen[moved], change[moved], state.KC)
    return _shifted(problem, state, C) if other is None and state.held.any() else other


def _passes(
    run: Run, state: ClimbState, C: np.ndarray, chosen: np.ndarray, Q: np.ndarray, near: np.ndarray, enough: float,
    settled: bool,
) -> bool:  # fmt: skip
    """Greedy visits of the chosen examples, which overwrite ``Q`` and what is held apart; whether they are worth while.

    They are not where they crawl, see next to nothing to gain, or did not lower the gap in the round before; nor are
    there any for values of the kernel that single precision cannot hold.
    """
    problem, span, gap = run.problem, run.problem.span, run.progress.apparent_gap
    stalled = settled and gap > (_STALLED if state.fine < 1.0 else _STILL) * state.gap
    state.gap = gap
    if largest(problem.gram.diagonal) > _HUGE:
        return False
    places = problem.corner.places(chosen)
    members = problem.corner.members
    part, sums, moving = _part(problem, chosen), np.zeros((2, span.k)), state.Q[members]
    light = run.progress.tol >= _LIGHT and state.fine == 1.0 and largest(state.KC) < _HUGE
    rows, W = span.square(problem.corner.K, state.KC[:, members], C, light=light)
    order = np.argsort(places)
    which, first, classes = span.lists(near[chosen[order]])
    active = places[order][which]
    most = 0.0
    if np.isfinite(enough):
        most = min(_LEFT, _FINE * enough / run.progress.primal) * enough / (run.alpha * max(active.size, 1))
    arrays = rows, W, moving, problem.omega[members] / run.alpha, part.diagonal + span.offset, active, first, classes
    apart = part.common, state.held, sums, problem.gram.bias, part.free, part.own
    loss, budget = problem.game.part(members).params.compiled(), float(_LOOKS * active.size)
    worth = _ENOUGH if gap > _FAR else _LATER
    looks, won = greedy_passes(loss, *arrays, *apart, state.fine * most, worth, budget, problem.gram.run)
    little = _BARELY * gap * run.progress.primal / run.alpha
    while most > 0.0 and not stalled and looks <= _IDLE * active.size and won <= little and state.fine > 1.5 * _FINEST:
        state.fine *= _FINER
        more, won = greedy_passes(loss, *arrays, *apart, state.fine * most, worth, budget, problem.gram.run)
        looks += more
    idle = looks <= _IDLE * active.size and won <= little
    Q[:] = moving[places]
    state.held -= part.free * sums[1]
    return not (stalled or idle or looks >= budget)


def _part(problem: KernelProblem, chosen: np.ndarray) -> Part:
    """What the chosen examples have in common, at all members of the corner."""
    gram, corner = problem.gram, problem.corner
    members, places = corner.members, corner.places(chosen)
    means, diagonal = corner.means(places), gram.diagonal[members] - gram.bias
    mean = float(np.mean(means[places]))
    if np.abs(means[places] - mean).max(initial=0.0) > mean + gram.bias:  # only the intercept is all but constant
        means[:], mean = 0.0, 0.0
    own = _OWN * float(np.mean(diagonal[places]))
    whole = mean + gram.bias
    if not (problem.span.apart and whole > own > 0.0):
        return Part(diagonal + gram.bias, np.ones(members.size), 0.0, 0.0)
    free, beyond = whole - own, (means - mean) / whole
    return Part(diagonal - (mean - own) - free * beyond * (2.0 + beyond), 1.0 + beyond, free, own)


def _shifted(problem: KernelProblem, state: ClimbState, C: np.ndarray) -> Candidate | None:
    """The coefficients ``C`` with the intercept that visits hold, by equal changes to some support vectors.

    What the kernel makes of these differs little between examples. Without them a large constant feature would multiply
    what rounds leave of the sum of coefficients.
    """
    gram, support = problem.gram, np.flatnonzero(_support(C))
    some = support[:: max(1, support.size // _SPREAD)]
    if not 0 < some.size <= gram.capacity:
        return None
    mean = np.zeros((1, gram.n))
    error = problem.push(some, np.full((some.size, 1), 1.0 / some.size), mean)
    size = max(float(mean.mean()), gram.bias)
    if not size > _OWN * float(gram.diagonal.mean()):
        return None
    step = state.held / size
    mixed = C.copy()
    mixed[some] += step / some.size
    KC = step[:, None] * mean
    KC += state.KC
    wrong = state.error + float(np.abs(step).max()) * error + 2.0 * UNIT * largest(KC)
    return Candidate(mixed, problem.span.scores(KC.T, mixed), wrong, instead=True)


def _with(problem: KernelProblem, state: ClimbState, C: np.ndarray, chosen: np.ndarray, new: np.ndarray) -> Candidate:
    """The coefficients ``C`` with others for the chosen examples."""
    mixed, KC = C.copy(), state.KC.copy()
    mixed[chosen] = new
    error = problem.push(chosen, problem.span.reduce(new - C[chosen]), KC)
    return Candidate(mixed, problem.span.scores(KC.T, mixed), state.error + error)
