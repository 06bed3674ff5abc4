"""Training of structured games: L-BFGS on the smoothed objective, certified by the planes seen on the way.

    P(w) = alpha/2 |w|^2 + mean F_mu(Phi_i w) - <Phi_i w, y_i>,
    F_mu(theta) = max_q <theta, q> + min_p <p, L q> - mu Omega(q).

At ``mu = 0`` this is the game itself; a positive ``mu`` makes the loss differentiable, and is part of the model or
driven towards 0 by a schedule. ``Omega`` is convex and 0 at the vertices (minus an entropy, or half the squared norm
less its value at a vertex), so that losses are never negative and smoothing never lowers the bound on the risk.
Each evaluation yields a lower bound of the objective as well as a gradient (:mod:`nashlearn.training.methods.planes`),
so the duality gap costs nothing. Reference: [nocedal1980]_.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import scipy.linalg as sl

from nashlearn.training.driver import Method, Offer, Run
from nashlearn.training.methods.planes import Planes
from nashlearn.training.methods.search import first_descent
from nashlearn.training.objective import Evaluation
from nashlearn.training.progress import relative_gap

__all__ = ["Curvature", "Descent"]

_MEMORY = 20
_SHORTEST = 2.0**-30
_LEAST = 1e-12  # relative fall that a step must promise
_STILL = 1e-6  # relative fall below which replies have arrived
_LOOKS = 20  # at the same weights, while they are on their way
_BEHIND = 0.25  # drift, relative to the gradient, above which replies are renewed before the next step,
_WAITS = 5  # so often at most
_FINAL_LOOKS = 50  # at the weights that are returned, until the objective falls by less than these:
_EXACT, _NEGLIGIBLE = 1e-11, 1e-4  # relative to the objective, and to the gap
_WORTH = 0.5  # gap, relative to what smoothing may add to the objective, below which a stage may be left early


@dataclass
class Curvature:
    """The last steps and changes of the gradient: an approximation of the inverse Hessian.

    ``metric`` is proportional to a first guess of it: its diagonal (m,), or a matrix (m, m), that all parts of ``m``
    weights have in common, or a matrix for each part, (parts, m, m), of either precision. Where it is ``factored`` it
    is the lower Cholesky factor of a guess of the Hessian.
    """

    metric: np.ndarray
    steps: list[np.ndarray] = field(default_factory=list)
    changes: list[np.ndarray] = field(default_factory=list)
    factored: bool = False

    def add(self, step: np.ndarray, change: np.ndarray) -> None:
        """Remember a step, unless rounding has made its curvature."""
        if float(step @ change) > 1e-12 * np.linalg.norm(step) * np.linalg.norm(change):
            self.steps, self.changes = [*self.steps[1 - _MEMORY :], step], [*self.changes[1 - _MEMORY :], change]

    def scaled(self, v: np.ndarray) -> np.ndarray:
        """The first guess times ``v``. Cost: O(size), or O(m size) for a matrix, O(size^2) for a factor."""
        if self.factored:
            return sl.cho_solve((self.metric, True), v, check_finite=False)
        parts = v.reshape(-1, self.metric.shape[-1])
        if self.metric.ndim == 1:
            return (parts * self.metric).ravel()
        if self.metric.ndim == 2:
            return (parts @ self.metric).ravel()
        return (parts[:, None].astype(self.metric.dtype) @ self.metric).ravel().astype(np.float64)

    def direction(self, gradient: np.ndarray) -> np.ndarray:
        """Minus the approximate inverse Hessian times ``gradient``, by the two-loop recursion."""
        d = -gradient
        pairs = [(step, change, float(step @ change)) for step, change in zip(self.steps, self.changes, strict=True)]
        shares = []
        for step, change, product in reversed(pairs):
            shares.append(float(step @ d) / product)
            d = sl.blas.daxpy(change, d, a=-shares[-1])  # in one pass, and in place
        if pairs:
            _, change, product = pairs[-1]
            d = product / float(change @ self.scaled(change)) * self.scaled(d)
        else:
            d = self.scaled(d)
            d /= max(np.sqrt(-float(gradient @ d)), 1.0)
        for (step, change, product), share in zip(pairs, reversed(shares), strict=True):
            d = sl.blas.daxpy(step, d, a=share - float(change @ d) / product)
        return d


@dataclass
class DescentState:
    """Where a run through games of falling smoothing stands.

    Attributes
    ----------
    w, gradient : ndarray (n_weights,)
        Weights, and the gradient of the smoothed objective there.
    curvature : Curvature
    planes : Planes
    stage : int
        Which smoothing of the schedule is in use.
    begun : bool
        Whether the weights were evaluated at it.
    value, dual : float
        The smoothed objective at ``w``, and its best lower bound in this stage.
    excess : float
        What smoothing may have added to that objective, beyond that at the target.
    drift : float
        Size of what labels lacked at the last look, see :class:`nashlearn.training.objective.Evaluation`.
    still : bool
        Whether no step of this stage helps any more.
    """

    phase: ClassVar[str] = "descent"
    w: np.ndarray
    gradient: np.ndarray
    curvature: Curvature
    planes: Planes
    stage: int = 0
    begun: bool = False
    value: float = np.inf
    dual: float = -np.inf
    excess: float = 0.0
    drift: float = 0.0
    still: bool = False
    over: bool = False


class Descent(Method):
    """L-BFGS through games of falling smoothing, whose planes certify the one at ``target``.

    ``Omega`` is never positive, so the objective at a larger smoothing is an upper bound of that at ``target``: every
    step on the way has a certificate. A stage ends at half of ``tol``; or, where another smooth stage follows and its
    share of ``max_iter`` is spent, once its gap is small beside what its own smoothing adds: otherwise a small ``tol``
    would spend all on games that are smoother than what is asked for. After each stage the weights are evaluated at
    ``target``, and the schedule is left as soon as that certificate is within ``tol``.
    The objective returned is that at the weights returned: replies are renewed there until they no longer lower it by
    more than a small part of the gap.

    Parameters
    ----------
    schedule : iterable of float
        Smoothings, one after another.
    target : float
        The smoothing whose objective is to be minimised.
    metric : ndarray (n_weights,), optional
        A guess, up to a factor, of the diagonal of the inverse Hessian: it makes up for features of very different
        sizes. By default it follows from the curvature that the problem guesses.
    """

    needs: ClassVar[tuple[str, ...]] = ("evaluate", "n_weights", "complete", "curvature")
    states: ClassVar[tuple[type, ...]] = (DescentState,)

    def __init__(self, schedule: Iterable[float], target: float = 0.0, metric: np.ndarray | None = None):
        self.schedule, self.target, self.metric = list(schedule), target, metric

    def init(self, run: Run) -> tuple[DescentState, Offer | None]:
        """The weights to start from, before their first evaluation."""
        size = run.problem.n_weights
        w = np.zeros(size) if run.start is None else run.start.w
        metric = self._guess(run) if self.metric is None else self.metric
        return DescentState(w, np.zeros(size), Curvature(metric), Planes.none(size)), None

    def _guess(self, run: Run) -> np.ndarray:
        """The metric for the problem's curvature: its root, as curvatures fall during training and leave it behind."""
        curvature = run.problem.curvature
        if curvature is None or not np.isfinite(curvature).all():
            return np.ones(run.problem.n_weights)
        return (run.alpha + curvature) ** -0.5

    def update(self, run: Run, state: DescentState) -> tuple[DescentState, Offer | None]:
        """A step of the stage, or on to the next one."""
        smoothing = self.schedule[state.stage]
        if not state.begun:
            state.value, state.gradient = self._objective(run, state, state.w, smoothing)
            state.begun, state.dual = True, -np.inf
            return state, self._offer(run, state)
        if self._leaves(run, state):
            offer = None if smoothing == self.target else self._certified(run, state)
            state.over = state.stage + 1 == len(self.schedule)
            if not state.over:
                state.stage, state.begun, state.still = state.stage + 1, False, False
                state.curvature = Curvature(state.curvature.metric)
            return state, offer
        run.progress.n_iter += 1
        d, slope = self._direction(run, state)
        found = self._searched(run, state, d, slope, smoothing) if slope < 0 else None
        if found is None:
            self._look_again(run, state, smoothing)
        else:
            self._take(run, state, state.w + found[0] * d, found[1], smoothing)
        return state, self._offer(run, state)

    def _direction(self, run: Run, state: DescentState) -> tuple[np.ndarray, float]:
        """Where to go from ``w``, and the slope of the objective on that way."""
        d = state.curvature.direction(state.gradient)
        return d, float(state.gradient @ d)

    def _searched(
        self, run: Run, state: DescentState, d: np.ndarray, slope: float, smoothing: float
    ) -> tuple[float, tuple[float, np.ndarray]] | None:
        """A step along ``d`` that helps, with the objective and its gradient there; None where none does."""
        return first_descent(
            lambda step: self._objective(run, state, state.w + step * d, smoothing),
            state.value,
            slope,
            shortest=max(_SHORTEST, _LEAST * abs(state.value) / -slope),
            least=0.1,
            slack=0.0,
        )

    def _leaves(self, run: Run, state: DescentState) -> bool:
        """Whether the stage has led as far as it should."""
        stage, tol, max_iter = state.stage, run.progress.tol, run.progress.max_iter
        goal = tol if self.schedule[stage] == self.target else 0.5 * tol
        share = max_iter * (stage + 1) // len(self.schedule) if any(self.schedule[stage + 1 :]) else max_iter
        early = run.progress.n_iter >= share and state.value - state.dual <= _WORTH * state.excess
        return state.still or early or relative_gap(state.value, state.dual) <= goal

    def _take(
        self, run: Run, state: DescentState, w: np.ndarray, found: tuple[float, np.ndarray], smoothing: float
    ) -> None:
        """Go to ``w``. Neither gradient nor bound is worth much while replies lag: they are renewed there first."""
        value, gradient = found
        for _ in range(_WAITS):
            if not state.drift > _BEHIND * float(np.linalg.norm(gradient)):
                break
            value, gradient = self._objective(run, state, w, smoothing)
        state.curvature.add(w - state.w, gradient - state.gradient)
        state.w, state.value, state.gradient = w, value, gradient

    def _look_again(self, run: Run, state: DescentState, smoothing: float) -> None:
        """Look at the same weights where no step helps.

        An approximation that points uphill is forgotten before giving up. Replies that are still on their way make the
        objective itself fall: as long as they do, another look helps.
        """
        before = state.value
        for _ in range(_LOOKS):
            last = state.value
            state.value, state.gradient = self._objective(run, state, state.w, smoothing)
            if not state.value < last - _STILL * abs(last):
                break
        state.still = not state.curvature.steps and not state.value < before - _STILL * abs(before)
        state.curvature = Curvature(state.curvature.metric)

    def resumed(self, run: Run, state: DescentState) -> None:
        """Let replies that are kept between evaluations, but in no checkpoint, come back to where they were."""
        loss = state.value - self.penalised(run, state.w)
        for _ in range(_LOOKS if state.begun else 0):
            if run.problem.evaluate(state.w, self.schedule[state.stage]).loss <= loss + _STILL * abs(loss):
                break

    def finish(self, run: Run, state: DescentState) -> None:
        """Look at the best weights until the objective there is known: replies that lag behind make it too large."""
        best = run.progress
        if state.begun and not state.over and self.schedule[state.stage] != self.target:
            best.keep(*self._certified(run, state))
        for _ in range(0 if best.late else _FINAL_LOOKS):
            before = best.primal
            value, _ = self._objective(run, state, best.w, self.target)
            best.settle(value)
            if not before - value > max(_EXACT * abs(value), _NEGLIGIBLE * (value - best.dual)):
                break

    def rescue(self, run: Run, state: DescentState | None) -> Offer | None:
        """The last weights, evaluated at the target."""
        return self._certified(run, self.init(run)[0] if state is None else state)

    def advice(self, run: Run, scaling: Callable[[], str]) -> str:
        """What could be done about a gap above ``tol``."""
        return f"Raise {run.progress.longer(run.tol, self.unit) or 'tol'}, or alpha or smoothing, or {scaling()}."

    def _objective(self, run: Run, state: DescentState, w: np.ndarray, smoothing: float) -> tuple[float, np.ndarray]:
        """``P(w)`` and its gradient; keeps the plane."""
        seen = run.problem.evaluate(w, smoothing)
        omega = seen.penalty / smoothing if smoothing else np.inf  # unknown: such a plane bounds the game alone
        self._remember(run, state, w, seen, smoothing, omega)
        state.excess = -omega * (smoothing - self.target) if smoothing else 0.0
        state.drift = float(np.linalg.norm(seen.drift))
        gradient = self.penalty.slope(run.alpha, w) + seen.gradient + seen.drift
        return self.penalised(run, w) + seen.loss, gradient

    def _remember(
        self, run: Run, state: DescentState, w: np.ndarray, seen: Evaluation, smoothing: float, omega: float
    ) -> None:
        """Keep the plane of an evaluation."""
        state.planes.add(seen.gradient, seen.entropy, omega)

    def _certified(self, run: Run, state: DescentState) -> Offer:
        """What an evaluation of the weights at the target says of them."""
        value, _ = self._objective(run, state, state.w, self.target)
        return Offer(state.w, value, state.planes.bound(run.alpha, self.target))

    def _offer(self, run: Run, state: DescentState) -> Offer:
        """The weights with a certificate for the target; keeps the best bound of this stage."""
        smoothing = self.schedule[state.stage]
        state.dual = max(state.dual, state.planes.bound(run.alpha, smoothing))
        dual = state.dual if smoothing == self.target else state.planes.mixed(run.alpha, self.target)
        return Offer(state.w, state.value, dual)
