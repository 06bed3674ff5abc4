"""The zero-one game with one more option: to abstain, at a cost ``c`` whatever the label. O(k).

The Bayes risk is ``min(c, 1 - max q)``. Solved by ``nashlearn.kernels.abstain``, for every cost.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import nashlearn.kernels.abstain as kernel

__all__ = ["Abstain", "abstain_params"]


class Abstain(NamedTuple):
    """Cost of abstaining, the integer ``s`` that it sets, and the cost matrix."""

    cost: float
    s: int
    L: np.ndarray

    def compiled(self) -> Any:
        """The loss as compiled code knows it."""
        return kernel.Abstain(*self)


def abstain_params(L: np.ndarray, cost: float) -> Abstain:
    """Parameters for a finite ``cost >= 0`` and the matrix ``L`` (k + 1, k) that it makes."""
    k = L.shape[1]
    s = k if cost >= 1.0 else min(k, int(np.ceil(1.0 / (1.0 - cost))) - 1)
    return Abstain(cost, s, L)
