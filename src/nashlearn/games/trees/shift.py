"""Offsets of scores that all trees share: every token has one head, and a single root has one arc.

Adding ``a_d`` to all scores of token ``d`` adds ``a_d`` to the score of every tree, and so does adding a number to all
arcs from a single root. Games are solved without such offsets: beside large ones the losses would drown in rounding.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["shifted"]


@njit(cache=True, nogil=True)
def shifted(theta: np.ndarray, n: int, single_root: bool, out: np.ndarray) -> float:
    """Scores (n, n + 1, labels) less the offsets that all trees share, into ``out``; what a tree loses by that. O(n²).

    The best head of a token gets 0 (the best token where the root is single); then the best arc from a single root.
    """
    offset = 0.0
    for d in range(n):
        top = -np.inf
        for h in range(1 if single_root else 0, n + 1):
            if h != d + 1:
                top = max(top, theta[d, h].max())
        if top == -np.inf:
            top = theta[d, 0].max()
        if top == -np.inf:
            top = 0.0
        offset += top
        for h in range(n + 1):
            out[d, h] = theta[d, h] - top
        out[d, d + 1] = -np.inf
    if single_root:
        top = out[:n, 0].max()
        if top > -np.inf:
            out[:n, 0] -= top
            offset += top
    return offset
