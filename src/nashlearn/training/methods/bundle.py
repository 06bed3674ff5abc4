"""Cutting planes, for games that cannot smooth: polytopes that are known by their best vertices alone.

Every evaluation supports the loss from below by a plane (:mod:`nashlearn.training.methods.planes`), so the objective is
never less than the regularised maximum of these planes. A step goes to the minimum of that model [teo2010]_, whose
value is the lower bound of the certificate. Where the objective there is no better than the best so far, the step is
shortened to where the tangents of both points meet, and the planes of that point cut off what misled the model
[franc2009]_. Cost: one or two evaluations a step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nashlearn.training.driver import Method, Offer, Run
from nashlearn.training.methods.planes import Planes

__all__ = ["Bundle"]

_NUMBERS = 1 << 24  # that planes may take: 128 MiB
_PLANES = 256  # at most; bundles of a few times the weights are as good as complete
_LEAST = 25
_NEAR = 0.1  # share of the way between two points that a point between them keeps from either


@dataclass
class BundleState:
    """The best weights, the objective and a subgradient there, and all planes."""

    phase: ClassVar[str] = "bundle"
    w: np.ndarray
    value: float
    gradient: np.ndarray
    planes: Planes
    over: bool = False


class Bundle(Method):
    """Training at smoothing 0 from values, subgradients and entropies."""

    needs = ("evaluate", "n_weights", "complete")
    states = (BundleState,)

    def init(self, run: Run) -> tuple[BundleState, Offer | None]:
        """The weights to start from, with their plane."""
        size = run.problem.n_weights
        planes = Planes.none(size, max(min(_NUMBERS // max(size, 1), _PLANES), _LEAST))
        w = np.zeros(size) if run.start is None else run.start.w
        return self._seen(run, BundleState(w, np.inf, np.zeros(size), planes), w)

    def update(self, run: Run, state: BundleState) -> tuple[BundleState, Offer | None]:
        """A step to the minimum of the model, or towards it."""
        run.progress.n_iter += 1
        trial = state.planes.weights(run.alpha)
        before, here = state.value, float(state.gradient @ (trial - state.w))
        value, gradient = self._evaluated(run, state, trial)
        if not value < before:
            way = trial - state.w
            there = float(gradient @ way)
            meet = (value - before - there) / (here - there) if there > here else 0.5
            middle = state.w + min(max(meet, _NEAR), 1.0 - _NEAR) * way
            return self._seen(run, state, middle)
        state.w, state.value, state.gradient = trial, value, gradient
        return state, self._offer(run, state)

    def _evaluated(self, run: Run, state: BundleState, w: np.ndarray) -> tuple[float, np.ndarray]:
        """``P(w)`` and a subgradient; keeps the plane."""
        seen = run.problem.evaluate(w, 0.0)
        state.planes.add(seen.gradient, seen.entropy, np.inf)
        return 0.5 * run.alpha * float(w @ w) + seen.loss, run.alpha * w + seen.gradient + seen.drift

    def _seen(self, run: Run, state: BundleState, w: np.ndarray) -> tuple[BundleState, Offer | None]:
        """The state after a look at ``w``."""
        value, gradient = self._evaluated(run, state, w)
        if value < state.value:
            state.w, state.value, state.gradient = w, value, gradient
        return state, self._offer(run, state)

    def _offer(self, run: Run, state: BundleState) -> Offer:
        return Offer(state.w, state.value, state.planes.bound(run.alpha, 0.0))
