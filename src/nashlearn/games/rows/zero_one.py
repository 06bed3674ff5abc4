"""The zero-one game: ``L = 1 - I`` on the simplex, solved in O(k) without sorting by ``nashlearn.kernels.zero_one``."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import nashlearn.kernels.zero_one as kernel

__all__ = ["ZeroOne"]


class ZeroOne(NamedTuple):
    """Parameters of the zero-one loss: the number of labels."""

    k: int

    @property
    def largest(self) -> float:
        """The largest cost, without the matrix, which may be large."""
        return 1.0

    @property
    def L(self) -> np.ndarray:
        """The cost matrix ``1 - I``."""
        return 1.0 - np.eye(self.k)

    def compiled(self) -> Any:
        """The loss as compiled code knows it."""
        return kernel.ZeroOne(self.k)
