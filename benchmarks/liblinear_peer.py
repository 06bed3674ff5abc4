"""LIBLINEAR's Crammer-Singer solver (``-s 4 -B 1``) through its C interface, the problem built beforehand."""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks import crammer_singer, measure

__all__ = ["Problem", "Run", "available", "ladder"]

STEPS = [m * 10.0**-e for e in range(10) for m in (1.0, 0.3)]


def available() -> bool:
    """Whether liblinear-official is installed; it ships as source and needs a C++ compiler."""
    return importlib.util.find_spec("liblinear") is not None


@dataclass(frozen=True)
class Run:
    """One trained model: its ``-e``, CPU seconds (None: over the cap), objective and weights."""

    eps: float
    seconds: float | None
    objective: float
    W: np.ndarray | None


class Problem:
    """A training set in LIBLINEAR's own memory layout."""

    def __init__(self, X: Any, y: np.ndarray, C: float):
        from liblinear.liblinear import problem

        self.X = crammer_singer.with_bias(X)
        self.y = y
        self.C = C
        self._problem = problem(y.astype(float), sp.csr_matrix(X), bias=1.0)

    def _train(self, eps: float) -> Any:
        from liblinear.liblinear import liblinear, parameter

        return liblinear.train(self._problem, parameter(f"-s 4 -B 1 -q -c {self.C!r} -e {eps!r}"))

    def _weights(self, pointer: Any) -> np.ndarray:
        model = pointer.contents
        k, d = model.nr_class, self.X.shape[1]
        raw = np.ctypeslib.as_array(ctypes.cast(model.w, ctypes.POINTER(ctypes.c_double)), (d, k))
        W = np.zeros((d, int(self.y.max()) + 1))
        # LIBLINEAR numbers classes by first appearance.
        W[:, model.label[:k]] = raw
        return W

    def seconds(self, eps: float | None, cap: float) -> float | None:
        """CPU seconds of training alone, or None where over ``cap`` or where no ``eps`` will do."""
        if eps is None:
            return None
        answer = measure.capped(lambda: self._train(eps), cap)
        return None if answer is None else answer[0]

    def run(self, eps: float, cap: float) -> Run:
        """Train once and evaluate the model on its own objective."""
        answer = measure.capped(lambda: self._train(eps), cap, then=self._weights)
        if answer is None:
            return Run(eps, None, np.inf, None)
        took, W = answer
        return Run(eps, took, crammer_singer.primal(self.X, self.y, W, self.C), W)


def ladder(problem: Problem, cap: float) -> Iterator[Run]:
    """Runs from the loosest ``-e`` to the tightest, until one is over ``cap`` or no longer changes.

    An objective that repeats itself has met LIBLINEAR's fixed limit of iterations.
    """
    last = np.inf
    for eps in STEPS:
        run = problem.run(eps, cap)
        yield run
        if run.seconds is None or run.objective == last:
            return
        last = run.objective
