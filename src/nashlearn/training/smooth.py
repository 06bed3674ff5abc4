"""Training of structured games: L-BFGS on the smoothed objective, certified by the planes seen on the way.

    P(w) = alpha/2 |w|^2 + mean F_mu(Phi_i w) - <Phi_i w, y_i>,
    F_mu(theta) = max_q <theta, q> + min_p <p, L q> - mu Omega(q).

At ``mu = 0`` this is the game itself; a positive ``mu`` makes the loss differentiable, and is part of the model or
driven towards 0 (:func:`anneal`). ``Omega`` is convex and 0 at the vertices (minus an entropy, or half the squared norm
less its value at a vertex), so that losses are never negative and smoothing never lowers the bound on the risk.
Each evaluation yields a lower bound of the objective as well as a gradient (:mod:`nashlearn.training.planes`), so the
duality gap costs nothing. Reference: [nocedal1980]_.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from nashlearn.training.planes import Planes
from nashlearn.training.progress import Progress

__all__ = ["Evaluation", "Minimised", "StructuredProblem", "anneal", "minimise"]

_MEMORY = 20
_SUFFICIENT = 1e-4
_HALVINGS = 30


class Evaluation(NamedTuple):
    """What a pass over the data says at weights ``w``; means are over predicted variables.

    Attributes
    ----------
    loss : float
        Mean smoothed loss, or an upper bound on it where the predictor's reply is not exact.
    gradient : ndarray
        ``mean Phi'(q - y)``, without the regulariser.
    entropy : float
        ``mean min_p <p, L q>``: what the adversary's labels secure, without smoothing.
    penalty : float
        ``mean mu Omega(q)``, never positive; 0 without smoothing.
    """

    loss: float
    gradient: np.ndarray
    entropy: float
    penalty: float


class StructuredProblem(Protocol):
    """A labelled data set with a game for each example."""

    n_weights: int

    def evaluate(self, w: np.ndarray, smoothing: float) -> Evaluation:
        """Loss, gradient and plane at ``w``."""
        ...


@dataclass(frozen=True)
class Minimised:
    """Weights with their certificate; ``loss`` is the mean loss at ``w`` without the regulariser."""

    w: np.ndarray
    loss: float
    objective: float
    dual_gap: float
    n_iter: int


class _Curvature:
    """The last steps and changes of the gradient: an approximation of the inverse Hessian."""

    def __init__(self) -> None:
        self.pairs: list[tuple[np.ndarray, np.ndarray, float]] = []

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
            d *= product / float(change @ change)
        else:
            d /= max(np.linalg.norm(gradient), 1.0)
        for (step, change, product), share in zip(self.pairs, reversed(shares), strict=True):
            d += (share - float(change @ d) / product) * step
        return d


class _Descent:
    """A run of L-BFGS with its planes, which later runs at other smoothing may reuse."""

    def __init__(self, problem: StructuredProblem, alpha: float, w: np.ndarray):
        self.problem, self.alpha, self.w = problem, alpha, w
        self.planes = Planes(problem.n_weights)

    def objective(self, w: np.ndarray, smoothing: float) -> tuple[float, np.ndarray]:
        """``P(w)`` and its gradient; keeps the plane."""
        seen = self.problem.evaluate(w, smoothing)
        omega = seen.penalty / smoothing if smoothing else np.inf  # unknown: such a plane bounds the game alone
        self.planes.add(seen.gradient, seen.entropy, omega)
        return 0.5 * self.alpha * float(w @ w) + seen.loss, self.alpha * w + seen.gradient

    def run(self, smoothing: float, progress: Progress) -> None:
        """Descend until ``progress`` is done or no step along the gradient helps any more."""
        value, gradient = self.objective(self.w, smoothing)
        progress.offer(self.w, value, self.planes.bound(self.alpha, smoothing))
        curvature = _Curvature()
        while not progress.done:
            progress.n_iter += 1
            found = self._search(curvature.direction(gradient), value, gradient, smoothing)
            if found is None:
                if not curvature.pairs:
                    break
                curvature = _Curvature()  # an approximation that points uphill is forgotten before giving up
                continue
            w, value, new = found
            curvature.add(w - self.w, new - gradient)
            self.w, gradient = w, new
            progress.offer(w, value, self.planes.bound(self.alpha, smoothing))

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
        return None


def minimise(
    problem: StructuredProblem,
    alpha: float,
    *,
    smoothing: float,
    tol: float,
    max_iter: int,
    start: np.ndarray | None = None,
    verbose: int = 0,
) -> Minimised:
    """Minimise ``P`` at a fixed smoothing to a relative duality gap of ``tol``, or warn."""
    return anneal(
        problem,
        alpha,
        schedule=(smoothing,),
        target=smoothing,
        tol=tol,
        max_iter=max_iter,
        start=start,
        verbose=verbose,
    )


def anneal(
    problem: StructuredProblem,
    alpha: float,
    *,
    schedule: Iterable[float],
    tol: float,
    max_iter: int,
    target: float = 0.0,
    start: np.ndarray | None = None,
    verbose: int = 0,
) -> Minimised:
    """Minimise the objective at smoothing ``target`` through the smoother ones of ``schedule``, or warn.

    A stage ends at half of ``tol``; after each the weights are evaluated at ``target``, and the schedule is left as
    soon as that certificate is within ``tol``.
    """
    descent = _Descent(problem, alpha, np.zeros(problem.n_weights) if start is None else start.astype(np.float64))
    best = Progress(tol, max_iter, verbose)
    try:
        for smoothing in schedule:
            stage = best if smoothing == target else Progress(0.5 * tol, max_iter - best.n_iter, verbose)
            descent.run(smoothing, stage)
            descent.w = stage.w
            if stage is not best:
                best.n_iter += stage.n_iter
                value, _ = descent.objective(stage.w, target)
                best.offer(stage.w, value, descent.planes.bound(alpha, target))
            if best.done:
                break
    except KeyboardInterrupt:
        if not best.w.size:
            best.offer(descent.w, descent.objective(descent.w, target)[0], descent.planes.bound(alpha, target))
        warnings.warn("Training was interrupted; the best weights so far are kept.", UserWarning, stacklevel=3)
    if best.gap > tol:
        warnings.warn(
            f"Training stopped after {best.n_iter} iterations at a relative duality gap of {best.gap:.2e}, "
            f"above tol={tol:.2e}. Raise max_iter, alpha or smoothing, or scale the features.",
            ConvergenceWarning,
            stacklevel=3,
        )
    loss = best.primal - 0.5 * alpha * float(best.w @ best.w)
    return Minimised(best.w, loss, best.primal, best.gap, best.n_iter)
