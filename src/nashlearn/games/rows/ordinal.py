"""The games of ordered labels at real positions ``t_1 < ... < t_k``, each solved in one pass, O(k).

Absolute loss ``|t_i - t_j|`` and squared loss ``(t_i - t_j)^2``, by ``nashlearn.kernels.ordinal`` and ``.squared``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import nashlearn.kernels.ordinal as absolute_kernel
import nashlearn.kernels.squared as squared_kernel

__all__ = ["Absolute", "Squared"]


class Absolute(NamedTuple):
    """Positions of the labels, increasing and centred, and the cost matrix ``|t_i - t_j|``."""

    t: np.ndarray
    L: np.ndarray

    def compiled(self) -> Any:
        """The loss as compiled code knows it."""
        return absolute_kernel.Absolute(*self)


class Squared(NamedTuple):
    """Positions of the labels, increasing and centred, and the cost matrix ``(t_i - t_j)^2``."""

    t: np.ndarray
    L: np.ndarray

    def compiled(self) -> Any:
        """The loss as compiled code knows it."""
        return squared_kernel.Squared(*self)
