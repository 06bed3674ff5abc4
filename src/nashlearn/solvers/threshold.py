"""The threshold of a projection onto the simplex, inside compiled solvers."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["shifted_threshold"]

_FAST = {"reassoc", "contract", "nsz"}  # lets LLVM vectorise sums; NaN and inf keep their meaning


@njit(cache=True, nogil=True, fastmath=_FAST)
def _above(scores, m, top, t):
    """Sum and number of the first ``m`` entries of ``scores - top`` that exceed ``t``."""
    total, count = 0.0, 0
    for j in range(m):
        excess = np.float64(scores[j]) - top
        count += 1 if excess > t else 0
        total += excess if excess > t else 0.0
    return total, count


@njit(cache=True, nogil=True)
def shifted_threshold(scores, m, top, mass):
    """The ``t`` with ``sum_{j < m} [scores_j - top - t]_+ = mass``, where ``top`` is the largest score.

    Newton's iteration from ``t = -mass``: the sum is convex and falling in ``t``, so the iterates rise
    to the root and stop, exactly, once the support no longer shrinks. Working relative to ``top`` keeps
    full precision for scores of any size. Cost: O(k) for each of the few iterations.
    """
    t = -mass
    support = m + 1
    while True:
        total, count = _above(scores, m, top, t)
        if count >= support or count == 0:  # count 0: a NaN, or mass lost to rounding
            return t
        t = (total - mass) / count
        support = count
