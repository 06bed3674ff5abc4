"""Training of structured games: L-BFGS on the smoothed objective, certified by the planes seen on the way.

    P(w) = alpha/2 |w|^2 + mean F_mu(Phi_i w) - <Phi_i w, y_i>,
    F_mu(theta) = max_q <theta, q> + min_p <p, L q> - mu Omega(q).

At ``mu = 0`` this is the game itself; a positive ``mu`` makes the loss differentiable, and is part of the model or
driven towards 0 (:func:`anneal`). ``Omega`` is convex and 0 at the vertices (minus an entropy, or half the squared norm
less its value at a vertex), so that losses are never negative and smoothing never lowers the bound on the risk.
Each evaluation yields a lower bound of the objective as well as a gradient (:mod:`nashlearn.training.methods.planes`),
so the duality gap costs nothing. Reference: [nocedal1980]_.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from nashlearn.training.checkpoint import Checkpoint
from nashlearn.training.methods.planes import Planes
from nashlearn.training.objective import Evaluation
from nashlearn.training.progress import Progress, Round, relative_gap, scaling_advice

__all__ = ["Minimised", "StructuredProblem", "anneal", "minimise"]

_MEMORY = 20
_SUFFICIENT = 1e-4
_HALVINGS = 30
_LEAST = 1e-12  # relative fall that a step must promise
_STILL = 1e-6  # relative fall below which replies have arrived
_LOOKS = 20  # at the same weights, while they are on their way
_BEHIND = 0.25  # drift, relative to the gradient, above which replies are renewed before the next step,
_WAITS = 5  # so often at most
_FINAL_LOOKS = 50  # at the weights that are returned, until the objective falls by less than these:
_EXACT, _NEGLIGIBLE = 1e-11, 1e-4  # relative to the objective, and to the gap
_WORTH = 0.5  # gap, relative to what smoothing may add to the objective, below which a stage may be left early


class StructuredProblem(Protocol):
    """A labelled data set with a game for each example.

    ``complete`` says that no label is missing, so that no loss can be negative.
    """

    n_weights: int
    complete: bool

    def evaluate(self, w: np.ndarray, smoothing: float) -> Evaluation:
        """Loss, gradient and plane at ``w``."""
        ...

    def curvature(self) -> np.ndarray | None:
        """A guess of the diagonal of the Hessian (n_weights,), where features of different kinds meet."""
        ...


class Programme(Protocol):
    """A training problem at smoothing 0 that is small enough to be solved as one programme."""

    def run(self, progress: Progress) -> None:
        """Offer certified weights until they are good enough or the means are exhausted."""
        ...


@dataclass(frozen=True)
class Minimised:
    """Weights with their certificate; ``loss`` is the mean loss at ``w`` without the regulariser."""

    w: np.ndarray
    loss: float
    objective: float
    dual_gap: float
    n_iter: int
    rounds: list[Round] = field(default_factory=list)


class _Curvature:
    """The last steps and changes of the gradient: an approximation of the inverse Hessian.

    ``metric`` is proportional to a first guess of its diagonal.
    """

    def __init__(
        self, metric: np.ndarray, steps: Iterable[np.ndarray] = (), changes: Iterable[np.ndarray] = ()
    ) -> None:
        self.metric = metric
        self.pairs: list[tuple[np.ndarray, np.ndarray, float]] = []
        for step, change in zip(steps, changes, strict=True):
            self.add(step, change)

    def add(self, step: np.ndarray, change: np.ndarray) -> None:
        product = float(step @ change)
        if product > 1e-12 * np.linalg.norm(step) * np.linalg.norm(change):
            self.pairs = [*self.pairs[1 - _MEMORY :], (step, change, product)]

    def direction(self, gradient: np.ndarray) -> np.ndarray:
        """Minus the approximate inverse Hessian times ``gradient``, by the two-loop recursion."""
        d = -gradient
        shares = []
        for step, change, product in reversed(self.pairs):
            shares.append(float(step @ d) / product)
            d -= shares[-1] * change
        if self.pairs:
            _, change, product = self.pairs[-1]
            d *= product / float(change @ (self.metric * change)) * self.metric
        else:
            d *= self.metric / max(np.sqrt(float(gradient @ (self.metric * gradient))), 1.0)
        for (step, change, product), share in zip(self.pairs, reversed(shares), strict=True):
            d += (share - float(change @ d) / product) * step
        return d


class _Descent:
    """A run of L-BFGS through games of falling smoothing, whose planes certify the one at ``target``.

    ``Omega`` is never positive, so the objective at a larger smoothing is an upper bound of that at ``target``: every
    step on the way has a certificate.
    """

    def __init__(
        self,
        problem: StructuredProblem,
        alpha: float,
        target: float,
        w: np.ndarray,
        progress: Progress,
        metric: np.ndarray | None,
    ):
        self.problem, self.alpha, self.target, self.w, self.progress = problem, alpha, target, w, progress
        self.metric = self._guess() if metric is None else metric
        self.planes = Planes(problem.n_weights)
        self.drift = 0.0  # size of what labels lacked at the last look, see Evaluation
        self.excess = 0.0  # what smoothing may have added to the last objective, beyond that at ``target``

    def _guess(self) -> np.ndarray:
        """The metric for the problem's curvature: its root, as curvatures fall during training and leave it behind."""
        curvature = self.problem.curvature()
        if curvature is None or not np.isfinite(curvature).all():
            return np.ones(self.problem.n_weights)
        return (self.alpha + curvature) ** -0.5

    def objective(self, w: np.ndarray, smoothing: float) -> tuple[float, np.ndarray]:
        """``P(w)`` and its gradient; keeps the plane."""
        seen = self.problem.evaluate(w, smoothing)
        omega = seen.penalty / smoothing if smoothing else np.inf  # unknown: such a plane bounds the game alone
        self.planes.add(seen.gradient, seen.entropy, omega)
        self.excess = -omega * (smoothing - self.target) if smoothing else 0.0
        self.drift = float(np.linalg.norm(seen.drift))
        return 0.5 * self.alpha * float(w @ w) + seen.loss, self.alpha * w + seen.gradient + seen.drift

    def certify(self) -> None:
        """Evaluate the weights at ``target`` and keep what that says, unheard."""
        value, _ = self.objective(self.w, self.target)
        self.progress.keep(self.w, value, self.planes.bound(self.alpha, self.target))

    def run(self, stage: int, smoothing: float, tol: float, share: int, saved: Mapping[str, np.ndarray] | None) -> None:
        """Descend to a relative gap of ``tol`` at this smoothing, until there is no time, or until no step helps.

        From iteration ``share`` on, a gap that is small beside what smoothing adds to the objective ends it too.
        """
        progress = self.progress
        if saved is None:
            value, gradient = self.objective(self.w, smoothing)
            curvature, dual = _Curvature(self.metric), self._offer(value, smoothing, -np.inf)
        else:
            self.w, gradient, (_, value, dual, self.excess) = saved["w"], saved["gradient"], saved["counts"].tolist()
            curvature = _Curvature(self.metric, saved["steps"], saved["changes"])
            self.planes.restore(saved)
            self._catch_up(value - 0.5 * self.alpha * float(self.w @ self.w), smoothing)
        while relative_gap(value, dual) > tol and not progress.done:
            if progress.n_iter >= share and value - dual <= _WORTH * self.excess:
                break
            progress.n_iter += 1
            found = self._search(curvature.direction(gradient), value, gradient, smoothing)
            if found is None:
                # An approximation that points uphill is forgotten before giving up. Replies that are still on their way
                # make the objective itself fall: as long as they do, another look at the same weights helps.
                before = value
                for _ in range(_LOOKS):
                    last, (value, gradient) = value, self.objective(self.w, smoothing)
                    if not value < last - _STILL * abs(last):
                        break
                dual = self._offer(value, smoothing, dual)
                if not curvature.pairs and not value < before - _STILL * abs(before):
                    break
                curvature = _Curvature(self.metric)
                continue
            w, value, new = found
            # Neither the gradient nor the bound is worth much while replies lag: renew them at these weights first.
            for _ in range(_WAITS):
                if not self.drift > _BEHIND * float(np.linalg.norm(new)):
                    break
                value, new = self.objective(w, smoothing)
            curvature.add(w - self.w, new - gradient)
            self.w, gradient = w, new
            dual = self._offer(value, smoothing, dual)
            if progress.saves():
                steps = [step for step, _, _ in curvature.pairs]
                changes = [change for _, change, _ in curvature.pairs]
                counts = stage, value, dual, self.excess
                progress.save(
                    "descent", w=w, gradient=gradient, counts=counts, steps=steps, changes=changes, **self.planes.state
                )

    def _catch_up(self, loss: float, smoothing: float) -> None:
        """Let replies that are kept between evaluations, but in no checkpoint, come back to where they were."""
        for _ in range(_LOOKS):
            if self.problem.evaluate(self.w, smoothing).loss <= loss + _STILL * abs(loss):
                break

    def _offer(self, value: float, smoothing: float, dual: float) -> float:
        """Offer the weights with a certificate for ``target``; the best bound of this stage."""
        dual = max(dual, self.planes.bound(self.alpha, smoothing))
        self.progress.offer(
            self.w, value, dual if smoothing == self.target else self.planes.mixed(self.alpha, self.target)
        )
        return dual

    def settle(self) -> None:
        """Look at the best weights until the objective there is known: replies that lag behind make it too large."""
        best, w = self.progress, self.progress.w
        for _ in range(0 if best.late else _FINAL_LOOKS):
            before = best.primal
            value, _ = self.objective(w, self.target)
            best.settle(value)
            if not before - value > max(_EXACT * abs(value), _NEGLIGIBLE * (value - best.dual)):
                break

    def _search(
        self, d: np.ndarray, value: float, gradient: np.ndarray, smoothing: float
    ) -> tuple[np.ndarray, float, np.ndarray] | None:
        """The first of a shrinking series of steps along ``d`` that lowers the objective enough."""
        slope = float(gradient @ d)
        if not slope < 0:
            return None
        step = 1.0
        for _ in range(_HALVINGS):
            w = self.w + step * d
            new, gradient = self.objective(w, smoothing)
            if new <= value + _SUFFICIENT * step * slope:
                return w, new, gradient
            # The parabola through both values and the slope, kept within sensible bounds; NaN halves.
            curve = new - value - step * slope
            factor = -0.5 * step * slope / curve if np.isfinite(curve) and curve > 0 else 0.5
            step *= min(max(factor, 0.1), 0.5)
            if -step * slope <= _LEAST * abs(value):
                break
        return None


def minimise(problem: StructuredProblem, alpha: float, *, smoothing: float, **options: Any) -> Minimised:
    """Minimise ``P`` at a fixed smoothing to a relative duality gap of ``tol``, or warn; see :func:`anneal`."""
    return anneal(problem, alpha, schedule=(smoothing,), target=smoothing, **options)


def anneal(
    problem: StructuredProblem,
    alpha: float,
    *,
    schedule: Iterable[float],
    tol: float,
    max_iter: int,
    target: float = 0.0,
    start: np.ndarray | None = None,
    metric: np.ndarray | None = None,
    verbose: int = 0,
    max_time: float | None = None,
    callback: Callable[[Round], object] | None = None,
    checkpoint: Checkpoint | None = None,
    programme: Programme | None = None,
    advice: Callable[[], str] = scaling_advice,
) -> Minimised:
    """Minimise the objective at smoothing ``target`` through the smoother ones of ``schedule``, or warn.

    A stage ends at half of ``tol``; or, where another smooth stage follows and its share of ``max_iter`` is spent, once
    its gap is small beside what its own smoothing adds: otherwise a small ``tol`` would spend all on games that are
    smoother than what is asked for. After each stage the weights are evaluated at ``target``, and the schedule is left
    as soon as that certificate is within ``tol``.
    ``metric`` is a guess, up to a factor, of the diagonal of the inverse Hessian: it makes up for features of very
    different sizes. By default it follows from the curvature that the problem guesses.
    ``programme`` solves the problem at once, where it is small enough to be written down as one.
    The objective returned is that at the weights returned: replies are renewed there until they no longer lower it by
    more than a small part of the gap, and a programme plays every game to its end.
    """
    best = Progress(
        tol,
        max_iter,
        verbose,
        max_time=max_time,
        callback=callback,
        checkpoint=checkpoint,
        bound=0.0 if problem.complete else -np.inf,
    )
    w = np.zeros(problem.n_weights) if start is None else start.astype(np.float64)
    descent = _Descent(problem, alpha, target, w, best, metric)
    try:
        if programme is None:
            _descend(descent, best, list(schedule), tol)
            descent.settle()
        else:
            programme.run(best)
    except KeyboardInterrupt:
        if programme is None or not best.w.size:
            descent.certify()
        best.interrupted()
    spent = "max_iter, alpha or smoothing" if best.n_iter >= max_iter else "alpha, smoothing or tol"
    best.warn_unless(tol, lambda: f"Raise {spent}, or {advice()}.")
    loss = best.primal - 0.5 * alpha * float(best.w @ best.w)
    return Minimised(best.w, loss, best.primal, best.gap, best.n_iter, best.rounds)


def _descend(descent: _Descent, best: Progress, stages: list[float], tol: float) -> None:
    """Go through the stages from the one that a checkpoint was left in."""
    saved = best.resume("descent")
    first = 0 if saved is None else int(saved["counts"][0])
    for stage, smoothing in enumerate(stages[first:], start=first):
        another = any(stages[stage + 1 :])
        share = best.max_iter * (stage + 1) // len(stages) if another else best.max_iter
        descent.run(stage, smoothing, tol if smoothing == descent.target else 0.5 * tol, share, saved)
        saved = None
        if smoothing != descent.target:
            descent.certify()
        if best.done:
            break
