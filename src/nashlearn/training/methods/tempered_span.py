"""Training of tempered games in the span of a kernel, first on parts of the data, then on all.

Steps are those of :mod:`nashlearn.training.methods.span_newton`. The labels ``q`` of any point have coefficients
``omega (y - q) / alpha`` of their own, and so bound the optimum from below; with the gradient ``r`` at ``c``,

    P(c) - D(q) = <r, A r> / (2 alpha) + sum_i omega_i gap_i.

All examples are support vectors. Cost: O(n^2 k) a product with the Gram matrix; a dozen make a gap of 1e-3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nashlearn.game import Equilibrium
from nashlearn.training.driver import Offer, Run
from nashlearn.training.methods.rows import RowMethod
from nashlearn.training.methods.span_newton import ROUNDED, Known, Tempered, drawing_chances
from nashlearn.training.progress import relative_gap

__all__ = ["TemperedSpan"]

_PARTS = (16, 6, 3)  # training begins on parts of the data: one in so many,
_LEAST = 100  # of so many examples at least,
_ROOM = 0.125  # of the room for the Gram matrix at most,
_FLOOR = 0.1  # of the mean error is added to all when examples are drawn by theirs,
_ENOUGH = 0.1  # and to this relative gap
_STEPS = 30
_FALLS = 0.5  # ratio of gaps by which a step is worth another where rounding hides what it gains
_SPARE = 0.9  # of the gap that is wanted may be left of it in any case


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
    """Steps near Newton's on a kernel problem whose game is smoothed by ``smoothing``, in units of its costs."""

    needs = ("gram", "span", "game", "omega", "truth", "part", "scores", "all_scores", "exact_scores", "error_at")
    states = (TemperedSpanState,)

    def __init__(self, smoothing: float):
        if not smoothing > 0.0:
            raise ValueError(f"smoothing must be positive; got {smoothing!r}.")
        self.smoothing = smoothing

    def init(self, run: Run) -> tuple[TemperedSpanState, Offer | None]:
        """The coefficients of the last run, or those that parts of the data lead to."""
        run.problem.gram.fill()
        C = self._from_parts(run) if run.start is None else run.start.w
        objective = Tempered(run.problem, self.smoothing)
        begun = objective.at(C, run.problem.scores(C)) if C.any() else objective.begun()
        here = objective.levelled(begun)
        if run.start is not None:
            return self._arrived(run, here.C, here.scores)
        # Parts do not lead to the goal: what is known of the point will do without a certificate.
        own = objective.own(here.found.q)
        spread, found = run.problem.scores(own), here.found
        dual = _bound(run, found, own, spread)
        return TemperedSpanState(here.C, here.scores, found.q, found.p, own, spread, here.value, dual), None

    def update(self, run: Run, state: TemperedSpanState) -> tuple[TemperedSpanState, Offer | None]:
        """A round of steps."""
        run.progress.n_iter += 1
        objective = Tempered(run.problem, self.smoothing)
        here = objective.at(state.C, state.scores)
        gap = max(state.primal - state.dual, np.finfo(np.float64).tiny)
        r = run.alpha * (state.C - state.own), run.alpha * (state.scores - state.spread)
        there, known = objective.round(here, r, _SPARE * run.progress.tol * state.primal, run.rng, certify=True)
        if there is here and run.progress.w.size:
            state.over = True
            return state, None
        arrived, offer = self._arrived(run, there.C, there.scores, known)
        still = there.value >= here.value - ROUNDED * abs(here.value)
        arrived.over = still and arrived.primal - arrived.dual >= _FALLS * gap
        return arrived, offer

    def rescue(self, run: Run, state: TemperedSpanState | None) -> Offer | None:
        """The coefficients of the state, or those to start from, where there are no others."""
        if run.progress.w.size:
            return None
        C = np.zeros(run.problem.shape) if run.start is None else run.start.w
        C = C if state is None else state.C
        return Offer(C, run.problem.primal(C, self.smoothing), 0.0)

    def _arrived(
        self, run: Run, C: np.ndarray, scores: np.ndarray, known: Known | None = None
    ) -> tuple[TemperedSpanState, Offer]:
        """The state at ``C``, whose scores are about these, and its certificate from scores that are made anew.

        They are not where they are ``known``; but once more, where rounding of matrix products may be to blame.
        """
        problem, objective, tol = run.problem, Tempered(run.problem, self.smoothing), run.progress.tol
        for exactly in (False, True):
            found = objective.at(C, scores).found  # any labels bound the optimum; these need no product of their own
            own = objective.own(found.q)
            if exactly or known is None:
                known = problem.exact_scores(C, own) if exactly else problem.all_scores(C, own)
            (seen, wrong), (spread, own_wrong) = known
            here = objective.at(C, seen, found)
            dual = _bound(run, found, own, spread)
            state = TemperedSpanState(C, seen, found.q, found.p, own, spread, here.value, dual)
            errors = (
                problem.error_at(C, seen, wrong, smoothing=self.smoothing),
                problem.error_at(own, spread, own_wrong, found.q, smoothing=self.smoothing),
            )
            offer, scores = Offer(C, here.value, dual, *errors), seen
            if not relative_gap(offer.primal, dual) <= tol < relative_gap(offer.primal, dual - sum(errors)):
                break
        return state, offer

    def _from_parts(self, run: Run) -> np.ndarray:
        """Coefficients that are nearly optimal for a part of the data: first a random one, then what that gets wrong.

        Examples of a part that stand for others like them have a larger share of its loss.
        """
        problem, C = run.problem, np.zeros(run.problem.shape)
        n, truth = problem.gram.n, problem.truth()
        most = int(np.sqrt(_ROOM * n * problem.gram.capacity))
        wrong, chances = problem.omega, np.zeros(n)
        for share in _PARTS:
            size = min(n // share, most)
            if size < _LEAST:
                continue
            chances = np.where(chances == 1.0, 1.0, drawing_chances(wrong, size, chances == 1.0))
            some = np.flatnonzero(run.rng.random(n) < chances)
            C[some] = self._trained_on(run, problem.part(some, problem.omega[some] / chances[some]), C[some])
            chances = np.zeros(n)
            chances[some] = 1.0
            if share != _PARTS[-1]:
                q = problem.game.equilibria(problem.scores(C), self.smoothing).q
                wrong = problem.omega * np.abs(truth - q).sum(axis=1)
                wrong += _FLOOR * wrong.mean()
        return C

    def _trained_on(self, run: Run, problem: Any, C: np.ndarray) -> np.ndarray:
        """Coefficients that are best for a part alone."""
        part = Tempered(problem, self.smoothing)
        here = part.at(C, problem.scores(C)) if C.any() else part.begun()
        for _ in range(_STEPS):
            r = problem.alpha * (here.C - part.own(here.found.q))
            Ar = problem.scores(r)
            if float(np.vdot(r, Ar)) <= 2.0 * problem.alpha * _ENOUGH * here.value:
                break
            there = part.round(here, (r, Ar), _ENOUGH * here.value, run.rng)[0]
            if there is here:
                break
            here = there
        return here.C


def _bound(run: Run, found: Equilibrium, own: np.ndarray, spread: np.ndarray) -> float:
    """The dual at the labels of these equilibria, whose coefficients are ``own`` and the scores of those ``spread``."""
    return float(run.problem.omega @ found.entropy - 0.5 * run.alpha * np.vdot(own, spread))
