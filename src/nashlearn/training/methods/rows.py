"""What all methods for one label per row share: their weights have the problem's shape, their state a dual point."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from nashlearn.training.blas import one_thread
from nashlearn.training.driver import Method, Offer, Run

__all__ = ["RowMethod"]

_POLISHED = 1e-14


class RowMethod(Method):
    """A method whose states hold the label distributions ``Q`` (n, k) of all rows."""

    def shape(self, problem: Any) -> tuple[int, ...]:
        """Shape of the weights."""
        return problem.shape

    def norm(self, problem: Any, w: np.ndarray) -> float:
        """``|w|``, of the function where the weights are coefficients."""
        return problem.norm(w)

    def dual_point(self, state: Any) -> np.ndarray:
        """``Q``."""
        return np.empty((0, 0)) if state is None else state.Q

    def goal(self, problem: Any, tol: float) -> float:
        """Small problems go on to the limit of the arithmetic."""
        return min(tol, _POLISHED) if problem.small else tol

    def threads(self, problem: Any) -> AbstractContextManager[None]:
        """One thread of linear algebra for each of our own."""
        return one_thread() if problem.shared else nullcontext()

    def starting_point(self, run: Run) -> np.ndarray:
        """The last dual point where it fits, drawn towards the truth so that its weights are no longer than before."""
        Q, start = run.problem.truth().copy(), run.start
        if start is not None and start.Q.shape == Q.shape:
            Q += min(1.0, run.alpha / start.alpha) * (start.Q - Q)
        return Q

    def finish(self, run: Run, state: Any) -> None:
        """Exchange the best weights for those that the design prefers."""
        problem, progress = run.problem, run.progress
        if (w := problem.tidied(progress.w)) is not progress.w:
            progress.exchange(w, problem.primal(w), problem.error(w))

    def rescue(self, run: Run, state: Any) -> Offer | None:
        """The weights to start from, where there are no others."""
        if run.progress.w.size:
            return None
        w = np.zeros(run.problem.shape) if run.start is None else run.start.w
        return Offer(w, run.problem.primal(w), 0.0)
