"""Kernels as a source of Gram rows: computed by blocks when first needed, kept within a budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel

__all__ = ["Gram", "Kernel"]

_NAMED = ("rbf", "poly", "laplacian")
_INDEFINITE = 1e-8  # an eigenvalue below minus this share of the largest is no rounding
_PROBE = 500


@njit(cache=True, nogil=True)
def _push(rows, slots, coefficients, KC):
    for s in range(slots.size):
        for c in range(coefficients.shape[1]):  # few classes of an example change: the others cost nothing
            step = coefficients[s, c]
            if step != 0.0:
                for j in range(KC.shape[1]):
                    KC[c, j] += step * rows[slots[s], j]


class Kernel:
    """A positive semidefinite kernel by name or callable, with its parameters bound to the training data."""

    def __init__(self, kernel: Any, gamma: Any, degree: float, coef0: float, X: Any):
        self.precomputed = isinstance(kernel, str) and kernel == "precomputed"
        if not (callable(kernel) or self.precomputed or (isinstance(kernel, str) and kernel in _NAMED)):
            raise ValueError(f"kernel must be None, one of {_NAMED}, 'precomputed' or a callable; got {kernel!r}.")
        width = 1.0 if self.precomputed else _width(gamma, X)
        if kernel == "poly" and not (coef0 >= 0 and degree >= 1 and degree == int(degree)):
            raise ValueError(
                f"kernel 'poly' is positive semidefinite for an integer degree >= 1 and coef0 >= 0; "
                f"got degree={degree!r}, coef0={coef0!r}."
            )
        named: dict[str, Callable[[Any, Any], np.ndarray]] = {
            "rbf": lambda A, B: rbf_kernel(A, B, gamma=width),
            "poly": lambda A, B: polynomial_kernel(A, B, degree=degree, gamma=width, coef0=coef0),
            "laplacian": lambda A, B: laplacian_kernel(A, B, gamma=width),
        }
        self._pairs = kernel if callable(kernel) else named.get(kernel, lambda A, B: A)

    def __call__(self, A: Any, B: Any) -> np.ndarray:
        """Values of the kernel between all rows of ``A`` and all rows of ``B``, as a dense float64 array."""
        values = np.asarray(self._pairs(A, B), dtype=np.float64)
        if values.shape != (A.shape[0], B.shape[0]):
            raise ValueError(f"kernel returned shape {values.shape} for {A.shape[0]} and {B.shape[0]} rows.")
        return values


def _width(gamma: Any, X: Any) -> float:
    """``gamma`` as scikit-learn's SVC reads it: "scale" is 1 / (d var(X)), "auto" 1 / d."""
    if isinstance(gamma, str):
        if gamma not in ("scale", "auto"):
            raise ValueError(f"gamma must be 'scale', 'auto' or a positive number; got {gamma!r}.")
        if gamma == "auto":
            return 1.0 / X.shape[1]
        mean_square = (X.multiply(X) if hasattr(X, "multiply") else np.square(X)).mean()
        variance = float(mean_square - X.mean() ** 2)
        return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
    if not 0 < gamma < np.inf:
        raise ValueError(f"gamma must be 'scale', 'auto' or a positive number; got {gamma!r}.")
    return float(gamma)


class Gram:
    """The Gram matrix of the training data plus ``bias``, by rows. At most ``cache_size`` megabytes are kept."""

    def __init__(self, kernel: Kernel, X: Any, bias: float, cache_size: float):
        self.kernel, self.X, self.bias = kernel, X, bias
        self.n = X.shape[0]
        self.capacity = int(min(self.n, max(64, cache_size * 2**20 // (8 * self.n))))
        self._slot = np.full(self.n, -1)  # where a row is kept
        self._owner = np.full(self.capacity, -1)
        self._used = np.zeros(self.capacity, np.int64)  # round of the last use
        self._rows = np.empty((0, self.n))
        self._round = 0
        self.diagonal = self._diagonal()

    def _values(self, rows: np.ndarray) -> np.ndarray:
        return self.X[rows] if self.kernel.precomputed else self.kernel(self.X[rows], self.X)

    def _diagonal(self) -> np.ndarray:
        if self.kernel.precomputed:
            diagonal = np.diagonal(self.X).astype(np.float64)
        else:
            step = 256  # small square blocks: a fraction of the work of the rows
            diagonal = np.concatenate(
                [np.diagonal(self.kernel(self.X[i : i + step], self.X[i : i + step])) for i in range(0, self.n, step)]
            )
        return diagonal + self.bias

    def refuse_indefinite(self, rng: np.random.Generator) -> None:
        """Raise where a principal part of the matrix has a negative eigenvalue, or is not symmetric."""
        some = np.sort(rng.choice(self.n, min(_PROBE, self.n), replace=False))
        part = self.X[some][:, some] if self.kernel.precomputed else self.kernel(self.X[some], self.X[some])
        if not np.isfinite(part).all():
            raise ValueError("kernel must be finite; it has NaN or infinite values on the training data.")
        if not np.allclose(part, part.T, rtol=1e-6, atol=1e-8 * np.abs(part).max()):
            raise ValueError("kernel must be symmetric; its values on the training data are not.")
        values = np.linalg.eigvalsh(0.5 * (part + part.T))
        if values[0] < -_INDEFINITE * max(values[-1], 1e-300):
            raise ValueError(
                f"kernel must be positive semidefinite; on the training data it has the eigenvalue {values[0]:.2e} "
                f"(the largest is {values[-1]:.2e})."
            )

    def rows(self, wanted: np.ndarray) -> np.ndarray:
        """Slots of the given rows, at most ``capacity`` of them, computing in one block those that are missing."""
        self._round += 1
        self._used[self._slot[wanted][self._slot[wanted] >= 0]] = self._round
        missing = wanted[self._slot[wanted] < 0]
        if missing.size:
            slots = self._free(missing.size)
            block = self._values(missing)
            self._rows[slots] = block
            self._rows[slots] += self.bias
            self._slot[missing], self._owner[slots], self._used[slots] = slots, missing, self._round
        return self._slot[wanted]

    def _free(self, count: int) -> np.ndarray:
        """Slots for new rows: unused ones, then those used longest ago."""
        order = np.argsort(self._used, kind="stable")[:count]
        evicted = self._owner[order]
        self._slot[evicted[evicted >= 0]] = -1
        highest = int(order.max()) + 1
        if highest > self._rows.shape[0]:  # grow in steps: memory that is never needed is never touched
            grown = np.empty((min(self.capacity, max(highest, 2 * self._rows.shape[0])), self.n))
            grown[: self._rows.shape[0]] = self._rows
            self._rows = grown
        return order

    def square(self, wanted: np.ndarray, slots: np.ndarray) -> np.ndarray:
        """The principal submatrix of rows that ``rows`` has just returned the slots of."""
        return np.ascontiguousarray(self._rows[np.ix_(slots, wanted)])

    def push(self, slots: np.ndarray, coefficients: np.ndarray, KC: np.ndarray) -> None:
        """Add the kept rows times their coefficients (rows, m) to ``KC`` (m, n)."""
        _push(self._rows, slots, coefficients, KC)
