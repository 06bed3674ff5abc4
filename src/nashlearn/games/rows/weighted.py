"""The zero-one game with one weight for each true label: ``L_ij = w_j`` off the diagonal, in O(k).

Solved by ``nashlearn.kernels.weighted``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import nashlearn.kernels.weighted as kernel

__all__ = ["WeightedZeroOne"]


class WeightedZeroOne(NamedTuple):
    """Weights of the labels, their inverses, and the cost matrix that they make."""

    weights: np.ndarray
    inverse: np.ndarray
    L: np.ndarray

    def compiled(self) -> Any:
        """The loss as compiled code knows it."""
        return kernel.WeightedZeroOne(*self)
