"""Training with absolute values for a penalty, certified: sparse weights.

    P(w) = alpha |w|_1 + mean F_mu(Phi_i w) - <Phi_i w, y_i>.

Proximal quasi-Newton steps [scheinberg2016]_: the smooth part is replaced by a quadratic model, whose minimum with the
penalty is sought by coordinate descent among the *working set*, the weights that are not zero and those whose moments
lie outside the box; then a search along the step. The model is that of L-BFGS, a diagonal less a matrix of low rank.
The labels that answer any weights are a point of the dual (:mod:`nashlearn.training.methods.box`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nashlearn.kernels.lasso import thin_step
from nashlearn.training.driver import Offer, Run
from nashlearn.training.methods.box import BoxPlanes
from nashlearn.training.methods.descent import Curvature, Descent, DescentState
from nashlearn.training.penalties import ABSOLUTE
from nashlearn.training.progress import relative_gap

__all__ = ["SparseDescent", "SparseState", "violation"]

_INEXACT, _PASSES = 0.1, 20  # how exactly the minimum of a model is sought, and passes over it
_SHARE = 0.25  # gap of a stage, relative to what its smoothing may add to the objective, at which it has done its work
_FLAT = 1e-3  # curvature of a weight at least, relative to the mean


@dataclass
class SparseState(DescentState):
    """As :class:`DescentState`; ``gradient`` is that of the loss alone."""

    phase: ClassVar[str] = "sparse"
    planes: BoxPlanes  # type: ignore[assignment]


def violation(gradient: np.ndarray, w: np.ndarray, alpha: float) -> float:
    """How far the moments are from what would let the weights stay."""
    still = np.where(w != 0.0, np.abs(gradient + alpha * np.sign(w)), np.maximum(np.abs(gradient) - alpha, 0.0))
    return float(still.max(initial=0.0))


def promise(gradient: np.ndarray, w: np.ndarray, alpha: float, d: np.ndarray) -> float:
    """``<g, d> + alpha (|w + d|_1 - |w|_1)``: negative for a step that helps.

    Where a weight keeps its sign ``s`` its part is ``d (g + alpha s)``: near the optimum that is a product of two small
    numbers, where the terms of the formula above cancel and leave rounding.
    """
    sign = np.sign(np.where(w != 0.0, w, d))
    kept = sign * (w + d) >= 0.0
    return float(
        np.where(kept, d * (gradient + alpha * sign), gradient * d + alpha * (np.abs(w + d) - np.abs(w))).sum()
    )


class SparseDescent(Descent):
    """Proximal L-BFGS through games of falling smoothing, which certify the one at ``target``."""

    states = (SparseState,)
    penalty = ABSOLUTE

    def init(self, run: Run) -> tuple[SparseState, Offer | None]:
        """The weights to start from, before their first evaluation."""
        if not run.problem.complete:
            raise ValueError(
                "penalty='l1' needs the labels of all examples: where some are missing, moments within a box need not "
                "exist, and the objective may have no minimum. Use penalty='l2'."
            )
        size = run.problem.n_weights
        w = np.zeros(size) if run.start is None else run.start.w.astype(np.float64).ravel()
        metric = self._guess(run) if self.metric is None else self.metric
        return SparseState(w, np.zeros(size), Curvature(metric), self._planes(run)), None

    def _planes(self, run: Run) -> BoxPlanes:
        return BoxPlanes.none(run.problem.n_weights)

    def _guess(self, run: Run) -> np.ndarray:
        """The inverse of the curvature along each weight, as far as the problem can tell."""
        curvature = run.problem.curvature
        if curvature is None or not (np.isfinite(curvature).all() and curvature.any()):
            return np.ones(run.problem.n_weights)
        return 1.0 / (curvature + _FLAT * curvature.mean())

    def _leaves(self, run: Run, state: Any) -> bool:
        """Whether the stage has led as far as it should."""
        tol, target = run.progress.tol, self.schedule[state.stage] == self.target
        worked = not target and state.value - state.dual <= _SHARE * state.excess
        return state.still or worked or relative_gap(state.value, state.dual) <= (tol if target else 0.5 * tol)

    def advice(self, run: Run, scaling: Callable[[], str]) -> str:
        """What could be done about a gap above ``tol``: the exact game takes several times as many steps."""
        spent = run.progress.n_iter >= run.progress.max_iter
        if self.target or not spent:
            return super().advice(run, scaling)
        return (
            "The exact game, at smoothing 0, is slow with penalty='l1': raise "
            f"{run.progress.longer(run.tol, self.unit)}, or smoothing, say to 0.1, or alpha, or {scaling()}."
        )

    def _direction(self, run: Run, state: Any) -> tuple[np.ndarray, float]:
        """The step to the minimum of the model, and what it promises per unit."""
        w, gradient, alpha = state.w, state.gradient, run.alpha
        working = np.flatnonzero((w != 0.0) | (np.abs(gradient) > alpha))
        d = np.zeros(w.size)
        if working.size:
            d[working] = self._modelled(run, state, working, gradient[working].copy(), w[working].copy())
        return d, promise(gradient, w, alpha, d)

    def _modelled(self, run: Run, state: Any, working: np.ndarray, g: np.ndarray, w: np.ndarray) -> np.ndarray:
        """The step of the working set, to about the minimum of the model of L-BFGS."""
        d = np.zeros(working.size)
        tol = _INEXACT * violation(g, w, run.alpha)
        thin_step(*thin_model(state.curvature, working), g, w, run.alpha, d, tol, _PASSES)
        return d


def thin_model(curvature: Curvature, working: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The approximate Hessian among some weights: ``diag(a) - V U'`` as ``(a, V, U)``. Cost: O(size memory^2).

    With steps ``S``, changes ``Y`` and a first guess ``B``, ``V = (B S, Y)`` and ``U = V K^-1`` for
    ``K = (S'BS, L; L', -D)``, where ``L`` and ``D`` are the strict lower triangle and the diagonal of ``S'Y``
    [byrd1994]_.
    """
    parts = len(curvature.metric)
    metric = curvature.metric[working % parts]
    if not curvature.steps:
        return 1.0 / metric, np.zeros((working.size, 0)), np.zeros((working.size, 0))
    S, Y = np.array(curvature.steps), np.array(curvature.changes)
    SY = S @ Y.T
    scale = float(Y[-1] @ curvature.scaled(Y[-1])) / SY[-1, -1]
    BS = S * (scale / np.tile(curvature.metric, S.shape[1] // parts))
    L = np.tril(SY, -1)
    K = np.block([[BS @ S.T, L], [L.T, -np.diag(SY.diagonal())]])
    V = np.concatenate([BS[:, working], Y[:, working]])
    size = np.sqrt(np.abs(K.diagonal()))
    U = np.linalg.solve(K / np.outer(size, size), V / size[:, None]) / size[:, None]
    return scale / metric, np.ascontiguousarray(V.T), np.ascontiguousarray(U.T)
