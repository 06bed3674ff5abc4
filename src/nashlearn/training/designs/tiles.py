"""Gaussian and polynomial kernels of dense rows, by tiles that threads share and that suit matrix products."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from nashlearn.solvers.threads import Run, threads

__all__ = ["Gaussian", "Polynomial", "Tiles", "squared_distances"]

_HIGH, _BROAD = 128, 4096  # rows and columns of a tile at most
_AT_ONCE = 1024  # rows of which a copy is made
_FAR = 64.0  # exponents up to which single precision loses no more than 1e-4 of a value
_HUGE = 1e30  # and numbers that it can hold


class Tiles:
    """A function of one matrix product of rows, with something appended, between any rows and those of ``B``.

    The product is that of rows less the ``centre``. Where ``roughly``, in single precision if that makes sense.
    """

    gamma: float
    centre: Any = 0.0

    def __init__(self, B: np.ndarray, run: Run | None = None, *, roughly: bool = False):
        self.run = run or threads(1)
        norms = squared_distances(B, self.centre)
        self.moderate = self._moderate(float(norms.max(initial=0.0)))
        single = roughly and self.moderate and 1.0 / _HUGE < self.gamma < _HUGE
        self.right = np.empty((B.shape[0], B.shape[1] + 2), np.float32 if single else np.float64)
        self._enter(B, self.right[:, :-2])
        self.right[:, -2], self.right[:, -1] = 1.0, norms

    def __call__(
        self, A: np.ndarray, out: np.ndarray | None = None, first: int = 0, places: np.ndarray | None = None
    ) -> np.ndarray:
        """The values for all rows of ``A`` and those of ``B`` from the first on, into ``out``, or these rows of it."""
        kind, width = self.right.dtype, self.right.shape[0] - first
        left = np.empty((A.shape[0], A.shape[1] + 2), kind)
        self._appended(A, left)
        values = np.empty((A.shape[0], width), kind) if out is None else out

        def fill(rows: slice, columns: slice) -> None:
            height, right = rows.stop - rows.start, self.right[first:][columns].T
            inside = places is None and values.dtype == kind
            made: Any = values[rows, columns] if inside else np.empty((height, right.shape[1]), kind)
            np.matmul(left[rows], right, out=made)
            self._finish(made)
            if not inside:
                values[rows if places is None else places[rows], columns] = made

        self.run(fill, itertools.product(_cuts(A.shape[0], _HIGH), _cuts(width, _BROAD)))
        return values

    def _enter(self, rows: np.ndarray, out: np.ndarray) -> None:
        """Write rows less the centre."""
        np.subtract(rows, self.centre, out=out, dtype=np.float64, casting="same_kind")

    def _moderate(self, norm: float) -> bool:
        """Whether single precision will do for rows whose squared norms are no more than this."""
        raise NotImplementedError

    def _appended(self, A: np.ndarray, left: np.ndarray) -> None:
        """Write rows, and what of them meets 1 and the squared norms of the others."""
        raise NotImplementedError

    def _finish(self, made: np.ndarray) -> None:
        """Make values of products, in their place."""
        raise NotImplementedError


class Gaussian(Tiles):
    """``exp(-gamma |a - b|^2)``; ``centre`` is amid the rows: products of rows far from the origin lose differences."""

    def __init__(
        self, B: np.ndarray, gamma: float, centre: Any = 0.0, run: Run | None = None, *, roughly: bool = False
    ):
        self.gamma, self.centre = gamma, centre
        super().__init__(B, run, roughly=roughly)

    def _moderate(self, norm: float) -> bool:
        return self.gamma * norm <= _FAR

    def _appended(self, A: np.ndarray, left: np.ndarray) -> None:
        rows = left[:, :-2]
        self._enter(A, rows)
        norms = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
        rows *= 2.0 * self.gamma
        left[:, -2], left[:, -1] = -self.gamma * norms, -self.gamma

    def _finish(self, made: np.ndarray) -> None:
        if not self.moderate:  # or else rounding makes no exponent positive that would count
            np.minimum(made, 0.0, out=made)
        np.exp(made, out=made)


class Polynomial(Tiles):
    """``(gamma <a, b> + coef0)^degree``."""

    def __init__(
        self, B: np.ndarray, gamma: float, degree: float, coef0: float, run: Run | None = None, *, roughly: bool = False
    ):
        self.gamma, self.degree, self.coef0 = gamma, int(degree), coef0
        super().__init__(B, run, roughly=roughly)

    def _moderate(self, norm: float) -> bool:
        return self.degree * np.log(max(self.gamma * norm + self.coef0, 1.0)) <= np.log(_HUGE)

    def _appended(self, A: np.ndarray, left: np.ndarray) -> None:
        np.multiply(A, self.gamma, out=left[:, :-2], dtype=left.dtype)
        left[:, -2], left[:, -1] = self.coef0, 0.0

    def _finish(self, made: np.ndarray) -> None:
        """By multiplications: powers take ten times as long."""
        power, left = None, self.degree
        while left > 1:
            if left % 2:
                power = made.copy() if power is None else np.multiply(power, made, out=power)
            left //= 2
            np.multiply(made, made, out=made)
        if power is not None:
            np.multiply(power, made, out=made)


def squared_distances(rows: np.ndarray, centre: Any) -> np.ndarray:
    """``|row - centre|^2`` of each row, in double precision."""
    found = np.empty(len(rows))
    for start in range(0, len(rows), _AT_ONCE):
        apart = np.subtract(rows[start : start + _AT_ONCE], centre, dtype=np.float64)
        np.einsum("ij,ij->i", apart, apart, out=found[start : start + _AT_ONCE])
    return found


def _cuts(size: int, most: int) -> list[slice]:
    """Parts of ``range(size)`` that are as equal as can be, none larger than ``most``."""
    count = -(-size // most)
    return [slice(size * i // count, size * (i + 1) // count) for i in range(count)]
