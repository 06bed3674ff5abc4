"""Values of a Gaussian kernel of dense rows, by tiles that threads share and that suit matrix products."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from nashlearn.solvers.threads import Run, threads

__all__ = ["Gaussian"]

_HIGH, _BROAD = 128, 4096  # rows and columns of a tile at most
_FAR = 64.0  # exponents up to which single precision loses no more than 1e-4 of a value


class Gaussian:
    """``exp(-gamma |a - b|^2)``, the exponent in one matrix product of the rows with their norms appended.

    Where ``roughly``, in single precision if that makes sense.
    """

    def __init__(self, B: np.ndarray, gamma: float, run: Run | None = None, *, roughly: bool = False):
        self.gamma, self.run = gamma, run or threads(1)
        norms = np.einsum("ij,ij->i", B, B, dtype=np.float64)
        single = roughly and gamma * float(norms.max(initial=0.0)) <= _FAR
        self.right = np.empty((B.shape[0], B.shape[1] + 2), np.float32 if single else np.float64)
        self.right[:, :-2] = B
        self.right[:, -2], self.right[:, -1] = 1.0, norms

    def __call__(self, A: np.ndarray, out: np.ndarray | None = None, first: int = 0) -> np.ndarray:
        """The values for all rows of ``A`` and those of ``B`` from the first on, into ``out``."""
        kind, width = self.right.dtype, self.right.shape[0] - first
        left = np.empty((A.shape[0], A.shape[1] + 2), kind)
        np.multiply(A, 2.0 * self.gamma, out=left[:, :-2], dtype=kind)  # predictions must find the same values
        left[:, -2], left[:, -1] = -self.gamma * np.einsum("ij,ij->i", A, A, dtype=np.float64), -self.gamma
        values = np.empty((A.shape[0], width), kind) if out is None else out

        def fill(rows: slice, columns: slice) -> None:
            tile, right = values[rows, columns], self.right[first:][columns].T
            made: Any = tile if tile.dtype == kind else np.empty(tile.shape, kind)
            np.matmul(left[rows], right, out=made)
            np.minimum(made, 0.0, out=made)
            np.exp(made, out=tile, casting="same_kind")

        self.run(fill, itertools.product(_cuts(A.shape[0], _HIGH), _cuts(width, _BROAD)))
        return values


def _cuts(size: int, most: int) -> list[slice]:
    """Parts of ``range(size)`` that are as equal as can be, none larger than ``most``."""
    count = -(-size // most)
    return [slice(size * i // count, size * (i + 1) // count) for i in range(count)]
