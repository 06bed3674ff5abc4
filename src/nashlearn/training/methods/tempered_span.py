"""Training of tempered games in the span of a kernel: truncated Newton, first on parts of the data, then on all.

With scores ``A c``, ``A`` the Gram matrix as the span has it, the objective over coefficients ``c`` and its gradient in
the space of functions, again by coefficients, are

    P(c) = alpha/2 <c, A c> + sum_i omega_i (F_mu((A c)_i) - <(A c)_i, y_i>),        r = alpha c + omega (q - y),

and a Newton step solves ``(alpha I + omega J A) d = -r`` by conjugate gradients in the functions' own inner product
``<a, A b>``: one product with ``A`` each, as ``A d`` is a sum of products that were made. Labels ``q`` of any point have
coefficients ``omega (y - q) / alpha`` of their own, and so bound the optimum from below:

    P(c) - D(q) = <r, A r> / (2 alpha) + sum_i omega_i gap_i.

All examples are support vectors. Cost: O(n^2 k) a product, of which a few dozen are needed as a rule.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from nashlearn.game import Equilibrium
from nashlearn.kernels.tempered import turn_rows
from nashlearn.training.driver import Offer, Run
from nashlearn.training.methods.rows import RowMethod
from nashlearn.training.methods.search import first_descent
from nashlearn.training.progress import relative_gap

__all__ = ["TemperedSpan"]

_PARTS = (64, 16, 4)  # training begins on random parts of the data: one in so many,
_LEAST = 100  # of so many examples at least,
_ENOUGH = 0.02  # and to this relative gap
_PART_STEPS = 30
_INEXACT = 0.1  # of the gradient's size may be left by conjugate gradients
_SPARE = 0.3  # of the gap that is wanted may be left of it in any case
_CG_STEPS = 200
_SHORTEST = 1e-8


class Point(NamedTuple):
    """Coefficients, their scores, the objective there and its equilibria."""

    C: np.ndarray
    scores: np.ndarray
    value: float
    found: Equilibrium


@dataclass(frozen=True)
class Tempered:
    """The tempered objective of some examples. ``spread`` maps coefficients (n, k) to scores."""

    game: Any
    mu: float
    alpha: float
    omega: np.ndarray
    truth: np.ndarray
    spread: Callable[[np.ndarray], np.ndarray]

    def at(self, C: np.ndarray, scores: np.ndarray, start: Equilibrium | None = None) -> Point:
        """The point at coefficients ``C``, whose scores are these."""
        found = self.game.equilibria(scores, self.mu, start=start)
        loss = float(self.omega @ (found.value + found.gap - np.einsum("ij,ij->i", scores, self.truth)))
        return Point(C, scores, 0.5 * self.alpha * float(np.vdot(C, scores)) + loss, found)

    def own(self, q: np.ndarray) -> np.ndarray:
        """The coefficients of labels ``q``."""
        return (self.omega / self.alpha)[:, None] * (self.truth - q)

    def bound(self, here: Point, own: np.ndarray, spread: np.ndarray) -> float:
        """The dual at the labels of a point, of these coefficients and their scores."""
        return float(self.omega @ here.found.entropy - 0.5 * self.alpha * np.vdot(own, spread))

    def stepped(self, here: Point, r: np.ndarray, Ar: np.ndarray, left: float) -> Point | None:
        """The point after a Newton step from one of gradient ``r``; None where no step helps.

        Conjugate gradients leave at most the share ``left`` of ``<r, A r>``.
        """
        step, spread = self._direction(here, r, Ar, left)
        found = first_descent(
            lambda t: _by_value(self.at(here.C + t * step, here.scores + t * spread, here.found)),
            here.value,
            float(np.vdot(r, spread)),
            shortest=_SHORTEST,
        )
        return None if found is None else found[1][1]

    def _direction(self, here: Point, r: np.ndarray, Ar: np.ndarray, left: float) -> tuple[np.ndarray, np.ndarray]:
        """Newton's direction ``d`` and ``A d``."""
        loss, q, p = self.game.params.compiled(), here.found.q, here.found.p
        step, spread = np.zeros_like(r), np.zeros_like(r)
        r, Ar = -r, -Ar
        d, Ad = r.copy(), Ar.copy()
        size = first = float(np.vdot(r, Ar))
        turned = np.empty_like(r)
        for _ in range(_CG_STEPS):
            turned[:] = Ad
            turn_rows(loss, self.mu, q, p, turned)
            turned *= self.omega[:, None]
            bent, Abent = self.alpha * d + turned, self.alpha * Ad + self.spread(turned)
            length = size / float(np.vdot(Ad, bent))
            step += length * d
            spread += length * Ad
            r -= length * bent
            Ar -= length * Abent
            last, size = size, float(np.vdot(r, Ar))
            if not size > left * first:
                break
            d *= size / last
            d += r
            Ad *= size / last
            Ad += Ar
        return step, spread


def _by_value(point: Point) -> tuple[float, Point]:
    return point.value, point


@dataclass
class TemperedSpanState:
    """A point of the tempered objective.

    Attributes
    ----------
    C, scores : ndarray (n, k)
        Coefficients and their scores.
    Q, p : ndarray (n, k) and (n, options)
        The equilibria there.
    own, spread : ndarray (n, k)
        The coefficients of ``Q`` and their scores.
    primal, dual : float
        The objective at ``C``, and the bound by ``Q``.
    """

    phase: ClassVar[str] = "tempered_span"
    C: np.ndarray
    scores: np.ndarray
    Q: np.ndarray
    p: np.ndarray
    own: np.ndarray
    spread: np.ndarray
    primal: float
    dual: float
    over: bool = False


class TemperedSpan(RowMethod):
    """Truncated Newton on a kernel problem whose game is smoothed by ``smoothing``, in units of its costs."""

    needs = ("gram", "span", "game", "omega", "truth", "products", "spread", "error_at")
    states = (TemperedSpanState,)

    def __init__(self, smoothing: float):
        if not smoothing > 0.0:
            raise ValueError(f"smoothing must be positive; got {smoothing!r}.")
        self.smoothing = smoothing

    def _objective(self, run: Run) -> Tempered:
        problem = run.problem
        return Tempered(problem.game, self.smoothing, run.alpha, problem.omega, problem.truth(), problem.spread)

    def init(self, run: Run) -> tuple[TemperedSpanState, Offer | None]:
        """The coefficients of the last run, or those that parts of the data lead to."""
        C = self._from_parts(run) if run.start is None else run.start.w
        return self._arrived(run, C)

    def update(self, run: Run, state: TemperedSpanState) -> tuple[TemperedSpanState, Offer | None]:
        """A Newton step."""
        run.progress.n_iter += 1
        objective = self._objective(run)
        here = objective.at(state.C, state.scores)
        gap = state.primal - state.dual
        left = max(_INEXACT**2, _SPARE * run.progress.tol * state.primal / gap)
        r, Ar = run.alpha * (state.C - state.own), run.alpha * (state.scores - state.spread)
        there = objective.stepped(here, r, Ar, left)
        if there is None:
            state.over = True
            return state, None
        return self._arrived(run, there.C)

    def rescue(self, run: Run, state: TemperedSpanState | None) -> Offer | None:
        """The coefficients to start from, where there are no others."""
        if run.progress.w.size:
            return None
        C = np.zeros(run.problem.shape) if run.start is None else run.start.w
        return Offer(C, run.problem.primal(C, self.smoothing), 0.0)

    def _arrived(self, run: Run, C: np.ndarray) -> tuple[TemperedSpanState, Offer]:
        """The state at ``C`` and its certificate; once more, where rounding of matrix products may be to blame."""
        problem, tol = run.problem, run.progress.tol
        for exact in (False, True):
            state, offer = self._certified(run, C, exact)
            errors = offer.primal_error + offer.dual_error
            if not relative_gap(offer.primal, offer.dual) <= tol < relative_gap(offer.primal, offer.dual - errors):
                break
        return state, offer

    def _certified(self, run: Run, C: np.ndarray, exact: bool) -> tuple[TemperedSpanState, Offer]:
        problem, objective = run.problem, self._objective(run)

        def scores(C: np.ndarray) -> tuple[np.ndarray, float]:
            if not exact:
                return problem.spread(C), problem.spread_error(C)
            KC, wrong = problem.products(C)
            return problem.span.scores(KC.T, C), wrong

        seen, wrong = scores(C)
        here = objective.at(C, seen)
        own = objective.own(here.found.q)
        spread, own_wrong = scores(own)
        dual = objective.bound(here, own, spread)
        state = TemperedSpanState(C, seen, here.found.q, here.found.p, own, spread, here.value, dual)
        errors = (
            problem.error_at(C, seen, wrong, smoothing=self.smoothing),
            problem.error_at(own, spread, own_wrong, here.found.q, smoothing=self.smoothing),
        )
        return state, Offer(C, here.value, dual, *errors)

    def _from_parts(self, run: Run) -> np.ndarray:
        """Coefficients that are optimal for a part of the data, as nearly as a start needs to be."""
        problem, gram = run.problem, run.problem.gram
        order, C = run.rng.permutation(gram.n), np.zeros(problem.shape)
        for share in _PARTS:
            size = gram.n // share
            if _LEAST <= size <= gram.capacity and problem.omega[order[:size]].any():
                self._trained_on(run, np.sort(order[:size]), C)
        return C

    def _trained_on(self, run: Run, some: np.ndarray, C: np.ndarray) -> None:
        """Overwrite the coefficients of some examples by those that are best for them alone; those of others are 0."""
        problem, span = run.problem, run.problem.span
        K = problem.gram.square(some, problem.gram.rows(some))
        omega = problem.omega[some] / problem.omega[some].sum()
        part = Tempered(
            problem.game, self.smoothing, run.alpha, omega, problem.truth()[some],
            lambda V: span.scores(K @ span.reduce(V), V),
        )  # fmt: skip
        here: Point | None = part.at(C[some], part.spread(C[some]))
        for _ in range(_PART_STEPS):
            r = run.alpha * (here.C - part.own(here.found.q))
            Ar = part.spread(r)
            gap = float(np.vdot(r, Ar)) / (2.0 * run.alpha)
            if gap <= _ENOUGH * here.value:
                break
            there = part.stepped(here, r, Ar, max(_INEXACT**2, _SPARE * _ENOUGH * here.value / gap))
            if there is None:
                break
            here = there
        C[some] = here.C
