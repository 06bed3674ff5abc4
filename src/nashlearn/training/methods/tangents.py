"""The generalised Hessian of the proximal-point smoothing: tangents of the proximal steps of rows at a kink."""

from __future__ import annotations

import numpy as np

from nashlearn.kernels.tangents import packed_tangents
from nashlearn.training.methods.hessian import Hessian
from nashlearn.training.problem import Problem

__all__ = ["PROBE", "Tangents", "kinked_rows"]

PROBE = 500  # rows by which the share at a kink is judged,
_ROOM, _FEWEST = 1 << 23, 16  # fewer where their Jacobians would have more entries than this, but so many at least


class Tangents(Hessian):
    """That Hessian at strategies ``Q``, from some rows, which stand for all."""

    def __init__(self, problem: Problem, mu: float, Q: np.ndarray, tight: np.ndarray, rows: np.ndarray):
        super().__init__(problem, rows)
        self.mu, self.Q, self.tight = mu, Q, tight
        self.scale = problem.n / max(rows.size, 1)

    def packed(self, rows: np.ndarray, out: np.ndarray) -> np.ndarray:
        """The Jacobians of those rows that are at a kink."""
        active = np.empty(rows.size, np.intp)
        m = packed_tangents(self.problem.loss, self.mu, self.problem.omega, self.Q, self.tight, rows, out, active)
        return active[:m]


def kinked_rows(
    problem: Problem, mu: float, Q: np.ndarray, tight: np.ndarray, enough: float, rng: np.random.Generator
) -> np.ndarray:
    """Rows among which ``enough`` are at a kink, judged by some of them; all rows where few would be spared."""
    entries = problem.k * (problem.k + 1) // 2
    probe = rng.choice(problem.n, min(PROBE, problem.n, max(_FEWEST, _ROOM // entries)), replace=False)
    packed = np.empty((entries, probe.size))
    args = problem.loss, mu, problem.omega, Q, tight, probe, packed, probe.copy()
    need = enough / max(packed_tangents(*args) / probe.size, 0.02)
    if need > 0.7 * problem.n:
        return np.arange(problem.n)
    return np.sort(rng.choice(problem.n, int(need), replace=False))
