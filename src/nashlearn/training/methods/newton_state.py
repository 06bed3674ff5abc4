"""Where the proximal-point method stands, and what its strategies certify.

Any strategies make a dual point, whose bound is only as good as their moments are near to ``-alpha w``. The best one
between them and the labels themselves, or among the mixtures of all strategies seen on the way, certifies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nashlearn.training.driver import Run
from nashlearn.training.methods.descent import Curvature
from nashlearn.training.methods.planes import Planes

__all__ = ["NewtonState", "best_dual", "drawn_to_truth", "look_at_some", "plane_of_labels", "residual"]

_LOOKED, _CROWD = 10_000, 5  # rows that stand for all where there are so many times as many
_BLUR = 1e-10  # of the objective is taken from the bound of a mixture, far more than its sums are wrong by


@dataclass
class NewtonState:
    """A point of the smoothed problem and how it is reached.

    Attributes
    ----------
    w, G : ndarray
        Weights, and the moments of ``Q``.
    Q, centre : ndarray (n, k)
        The proximal steps at these weights, and the points that they start from.
    tight : ndarray (n, options)
        The predictor's support.
    curvature : Curvature
        What L-BFGS knows.
    planes : Planes
        Moments and risks of the strategies that it has seen, at any centre, and of the labels themselves.
    mu, floor : float
        The smoothing, and that at which there is nothing left to gain.
    sample : float
        Examples at a kink that the Hessian is made of.
    damping : float
        What is added to its diagonal.
    centres : int
        How often the centre has moved.
    last : float
        The squared gradient at the last step, over ``2 alpha``; inf where the centre has moved since.
    fresh, full : bool
        Whether that step had a Hessian of its own, and whether it was taken at its full length.
    smooth, primal, dual : float
        The smoothed objective at ``w``, a bound of the objective, and the dual one at ``Q``.
    exact, part : float
        The objective where it was last evaluated, and which part of the way from ``smooth`` to ``primal`` it was then;
        0 where that is unknown at this centre.
    newton : bool
        Whether L-BFGS has given way to Newton's method.
    evaluations, seen, measured : int
        Made so far, when the pace of L-BFGS was last judged, and when it was last given a metric.
    gap, before : float
        The smallest relative gap so far, and until the pace was last judged.
    outside : float
        By how much strategies have missed the simplex at most.
    stuck : bool
        Whether the last step gained nothing but rounding.
    """

    phase: ClassVar[str] = "newton"
    w: np.ndarray
    G: np.ndarray
    Q: np.ndarray
    centre: np.ndarray
    tight: np.ndarray
    curvature: Curvature
    planes: Planes
    mu: float
    floor: float
    sample: float
    smooth: float = 0.0
    primal: float = 0.0
    dual: float = 0.0
    exact: float = np.inf
    part: float = 0.0
    newton: bool = False
    evaluations: int = 0
    seen: int = 0
    measured: int = 0
    gap: float = np.inf
    before: float = np.inf
    damping: float = 0.0
    centres: int = 0
    last: float = np.inf
    fresh: bool = False
    full: bool = False
    outside: float = 0.0
    stuck: bool = False
    over: bool = False


def residual(run: Run, state: NewtonState) -> tuple[np.ndarray, float]:
    """The gradient of the smoothed objective, and its square over ``2 alpha``: what the dual lacks at this centre."""
    gradient = run.alpha * state.w + state.G
    return gradient, float(np.vdot(gradient, gradient)) / (2.0 * run.alpha)


def plane_of_labels(w: np.ndarray) -> Planes:
    """The plane of the labels themselves, whose moments and risks are 0."""
    planes = Planes.none(w.size)
    planes.add(np.zeros(w.size), 0.0, 0.0)
    return planes


def drawn_to_truth(run: Run, state: NewtonState) -> tuple[float, float]:
    """The share ``t`` of ``q`` in ``t q + (1 - t) y`` that makes the best dual point, and the dual there at least.

    Moments are ``t G`` and risks, which are concave and not negative, at least ``t risk(q)``. Far from the solution,
    and with little regularisation, the dual at ``q`` itself says nothing.
    """
    square = float(np.vdot(state.G, state.G)) / run.alpha
    risk = state.dual + 0.5 * square
    if risk >= square or square == 0.0:  # rounding may make no risk at all negative
        return 1.0, state.dual
    share = max(risk, 0.0) / square
    return share, share * risk - 0.5 * share**2 * square


def look_at_some(run: Run, state: NewtonState) -> float | None:
    """Estimate by a random part of the rows which ``part`` of the way the objective is; None where rows are too few.

    Cost: a proximal step and a game for each row of that part.
    """
    problem = run.problem
    if problem.n < _CROWD * _LOOKED:
        return None
    rows = np.sort(run.rng.choice(problem.n, _LOOKED, replace=False))
    if not problem.omega[rows].any():
        return None
    some = problem.some(rows)
    at = state.centre[rows], state.Q[rows], state.tight[rows]
    smooth, upper = some.smoothed(state.w, state.mu, *at)[:2]
    if upper > smooth:
        state.part = min(max((some.primal(state.w) - smooth) / (upper - smooth), 0.0), 1.0)
    return state.part


def best_dual(run: Run, state: NewtonState) -> tuple[np.ndarray, float]:
    """Weights of a mixture of the strategies seen so far, and the dual there at least: risks are concave.

    L-BFGS comes to moments that are ``-alpha w`` late, a mixture of its strategies much earlier.
    """
    share, dual = drawn_to_truth(run, state)
    own = share / -run.alpha * state.G
    state.outside = max(state.outside, run.problem.game.labels.outside(state.Q))
    if state.newton:
        return own, dual
    risk = state.dual + 0.5 * float(np.vdot(state.G, state.G)) / run.alpha
    state.planes.add(state.G.ravel(), risk, 0.0)
    mixed = state.planes.bound(run.alpha, 0.0) - _BLUR * state.primal
    return (own, dual) if dual >= mixed else (state.planes.weights(run.alpha).reshape(own.shape), mixed)
