"""Training of tempered games in the span of a kernel: truncated Newton, first on parts of the data, then on all.

Steps are those of :mod:`nashlearn.training.methods.span_newton`. The labels ``q`` of any point have coefficients
``omega (y - q) / alpha`` of their own, and so bound the optimum from below; with the gradient ``r`` at ``c``,

    P(c) - D(q) = <r, A r> / (2 alpha) + sum_i omega_i gap_i.

All examples are support vectors. Cost: O(n^2 k) a product with the Gram matrix; a dozen or two make a gap of 1e-3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nashlearn.training.driver import Offer, Run
from nashlearn.training.methods.rows import RowMethod
from nashlearn.training.methods.span_newton import ROUNDED, Part, Tempered
from nashlearn.training.progress import relative_gap

__all__ = ["TemperedSpan"]

_PARTS = (64, 16, 4)  # training begins on random parts of the data: one in so many,
_LEAST = 100  # of so many examples at least,
_ENOUGH = 0.02  # and to this relative gap
_STEPS = 30
_FALLS = 0.5  # ratio of gaps by which a step is worth another where rounding hides what it gains
_NEAR = 8  # one example in so many knows enough of the curvature of all
_INEXACT = 0.1  # of the gradient's size may be left by conjugate gradients
_SPARE = 0.3  # of the gap that is wanted may be left of it in any case


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
    some : ndarray
        Examples that stand for the curvature of all; none where they are too few.
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
    some: np.ndarray
    primal: float
    dual: float
    over: bool = False


class TemperedSpan(RowMethod):
    """Truncated Newton on a kernel problem whose game is smoothed by ``smoothing``, in units of its costs."""

    needs = ("gram", "span", "game", "omega", "truth", "products", "scores", "error_at")
    states = (TemperedSpanState,)

    def __init__(self, smoothing: float):
        if not smoothing > 0.0:
            raise ValueError(f"smoothing must be positive; got {smoothing!r}.")
        self.smoothing = smoothing

    def _objective(self, run: Run) -> Tempered:
        problem = run.problem
        return Tempered(problem.game, self.smoothing, run.alpha, problem.omega, problem.truth(), problem.scores)

    def init(self, run: Run) -> tuple[TemperedSpanState, Offer | None]:
        """The coefficients of the last run, or those that parts of the data lead to."""
        order, problem = run.rng.permutation(run.problem.gram.n), run.problem
        C = self._from_parts(run, order) if run.start is None else run.start.w
        size = min(order.size // _NEAR, problem.gram.capacity)
        return self._arrived(run, C, np.sort(order[: size if size >= _LEAST else 0]))

    def update(self, run: Run, state: TemperedSpanState) -> tuple[TemperedSpanState, Offer | None]:
        """A Newton step."""
        run.progress.n_iter += 1
        objective = self._objective(run)
        here = objective.at(state.C, state.scores)
        gap = max(state.primal - state.dual, np.finfo(np.float64).tiny)
        left = max(_INEXACT**2, _SPARE * run.progress.tol * state.primal / gap)
        r, Ar = run.alpha * (state.C - state.own), run.alpha * (state.scores - state.spread)
        part = self._part(run, state.some) if state.some.size else None
        there = objective.stepped(here, r, Ar, left, part)
        if there is None:
            state.over = True
            return state, None
        arrived, offer = self._arrived(run, there.C, state.some)
        still = there.value >= here.value - ROUNDED * abs(here.value)
        arrived.over = still and arrived.primal - arrived.dual >= _FALLS * gap
        return arrived, offer

    def rescue(self, run: Run, state: TemperedSpanState | None) -> Offer | None:
        """The coefficients to start from, where there are no others."""
        if run.progress.w.size:
            return None
        C = np.zeros(run.problem.shape) if run.start is None else run.start.w
        return Offer(C, run.problem.primal(C, self.smoothing), 0.0)

    def _arrived(self, run: Run, C: np.ndarray, some: np.ndarray) -> tuple[TemperedSpanState, Offer]:
        """The state at ``C`` and its certificate; once more, where rounding of matrix products may be to blame."""
        tol = run.progress.tol
        for exact in (False, True):
            state, offer = self._certified(run, C, some, exact)
            errors = offer.primal_error + offer.dual_error
            if not relative_gap(offer.primal, offer.dual) <= tol < relative_gap(offer.primal, offer.dual - errors):
                break
        return state, offer

    def _certified(self, run: Run, C: np.ndarray, some: np.ndarray, exact: bool) -> tuple[TemperedSpanState, Offer]:
        problem, objective = run.problem, self._objective(run)

        def scores(C: np.ndarray) -> tuple[np.ndarray, float]:
            if not exact:
                return problem.scores(C), problem.scores_error(C)
            KC, wrong = problem.products(C)
            return problem.span.scores(KC.T, C), wrong

        seen, wrong = scores(C)
        here = objective.at(C, seen)
        own = objective.own(here.found.q)
        spread, own_wrong = scores(own)
        dual = float(problem.omega @ here.found.entropy - 0.5 * run.alpha * np.vdot(own, spread))
        state = TemperedSpanState(C, seen, here.found.q, here.found.p, own, spread, some, here.value, dual)
        errors = (
            problem.error_at(C, seen, wrong, smoothing=self.smoothing),
            problem.error_at(own, spread, own_wrong, here.found.q, smoothing=self.smoothing),
        )
        return state, Offer(C, here.value, dual, *errors)

    def _part(self, run: Run, some: np.ndarray) -> Part:
        """Some examples, as if there were no others."""
        problem, gram, span = run.problem, run.problem.gram, run.problem.span
        K = gram.square(some)
        omega = problem.omega[some] / problem.omega[some].sum()
        own = Tempered(
            problem.game.part(some), self.smoothing, run.alpha, omega, problem.truth()[some],
            lambda V: span.scores(K @ span.reduce(V), V),
        )  # fmt: skip
        curvature = float(omega @ problem.squared_diameters()[some]) / self.smoothing
        return Part(some, own, lambda V: span.scores(gram.columns(some, span.reduce(V)), V), curvature)

    def _from_parts(self, run: Run, order: np.ndarray) -> np.ndarray:
        """Coefficients that are optimal for a part of the data, as nearly as a start needs to be."""
        problem, C = run.problem, np.zeros(run.problem.shape)
        for share in _PARTS:
            some = np.sort(order[: order.size // share])
            if _LEAST <= some.size <= problem.gram.capacity and problem.omega[some].any():
                C[some] = self._trained_on(self._part(run, some).own, C[some])
        return C

    def _trained_on(self, part: Tempered, C: np.ndarray) -> np.ndarray:
        """Coefficients that are best for a part alone."""
        here = part.at(C, part.spread(C))
        for _ in range(_STEPS):
            r = part.alpha * (here.C - part.own(here.found.q))
            Ar = part.spread(r)
            gap = float(np.vdot(r, Ar)) / (2.0 * part.alpha)
            if gap <= _ENOUGH * here.value:
                break
            there = part.stepped(here, r, Ar, max(_INEXACT**2, _SPARE * _ENOUGH * here.value / gap))
            if there is None:
                break
            here = there
        return here.C
