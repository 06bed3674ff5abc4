"""What training knows so far: the best weights, the best bound, and the gap between them."""

from __future__ import annotations

import time

import numpy as np

__all__ = ["Progress"]

_TINY = np.finfo(np.float64).tiny


class Progress:
    """Best iterates of a run. ``w`` attains ``primal``; some dual point attained ``dual``.

    Parameters
    ----------
    tol : float
        Relative gap at which training may stop.
    max_iter : int
        Sweeps and Newton steps allowed, together.
    verbose : int
        Print a line for each certificate where positive.
    """

    def __init__(self, tol: float, max_iter: int, verbose: int = 0):
        self.tol, self.max_iter, self.verbose = tol, max_iter, verbose
        self.primal, self.dual = np.inf, -np.inf
        self.w = np.zeros(0)
        self.n_iter = 0
        self._began = time.perf_counter()

    @property
    def gap(self) -> float:
        """``(P - D) / |P|``, never negative; corrected losses of missing labels may make ``P`` itself negative."""
        if not np.isfinite(self.primal):
            return np.inf
        return max(self.primal - self.dual, 0.0) / max(abs(self.primal), _TINY)

    @property
    def done(self) -> bool:
        """Whether the certificate or the iterations are exhausted."""
        return self.gap <= self.tol or self.n_iter >= self.max_iter

    def offer(self, w: np.ndarray, primal: float, dual: float) -> None:
        """Keep weights that lower the primal, and a dual bound that is higher than the last."""
        if primal < self.primal:
            self.primal, self.w = primal, w.copy()
        self.dual = max(self.dual, dual)
        if self.verbose:
            print(
                f"[nashlearn] {time.perf_counter() - self._began:8.2f} s  iteration {self.n_iter:5d}  "
                f"objective {self.primal:.8g}  dual {self.dual:.8g}  gap {self.gap:.2e}",
                flush=True,
            )
