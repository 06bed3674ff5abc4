"""Projection onto the arborescence polytope by Frank-Wolfe with line search, as published ([li2022]_, sec. 4.1).

Twice the same steps: as the released code takes them, NumPy around a compiled oracle, and compiled as a whole.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from nashlearn.games.trees.best import best_tree, best_trees, workspace

__all__ = ["frank_wolfe", "frank_wolfe_compiled"]


def frank_wolfe(scores: np.ndarray, steps: int, single_root: bool) -> np.ndarray:
    """The point after ``steps`` steps from the best tree of ``scores`` (n, n + 1), finite off the diagonal."""
    n = len(scores)
    work, heads, feasible = workspace(n), np.empty((1, n), np.int64), np.empty(1, np.bool_)
    tokens = np.arange(n)
    w = scores.copy()
    w[tokens, tokens + 1] = 0.0
    best_trees(w[None], single_root, heads, feasible, work)
    x = np.zeros_like(w)
    x[tokens, heads[0]] = 1.0
    for _ in range(steps):
        slope = w - x
        best_trees(slope[None], single_root, heads, feasible, work)
        direction = -x
        direction[tokens, heads[0]] += 1.0
        gap, length = np.sum(slope * direction), np.sum(direction**2)
        if gap <= 0.0 or length == 0.0:
            break
        x += min(gap / length, 1.0) * direction
    return x


@njit(cache=True, nogil=True)
def _compiled(w, steps, single_root, x, slope, heads, work):
    n = len(w)
    best_tree(w, n, single_root, heads, work)
    for d in range(n):
        x[d, heads[d]] = 1.0
    for _ in range(steps):
        for d in range(n):
            for h in range(n + 1):
                slope[d, h] = w[d, h] - x[d, h]
        best_tree(slope, n, single_root, heads, work)
        gap, length = 0.0, 0.0
        for d in range(n):
            for h in range(n + 1):
                move = (1.0 if h == heads[d] else 0.0) - x[d, h]
                gap += slope[d, h] * move
                length += move * move
        if gap <= 0.0 or length == 0.0:
            return
        step = min(gap / length, 1.0)
        for d in range(n):
            for h in range(n + 1):
                x[d, h] += step * ((1.0 if h == heads[d] else 0.0) - x[d, h])


def frank_wolfe_compiled(scores: np.ndarray, steps: int, single_root: bool) -> np.ndarray:
    """The same steps in one compiled loop."""
    n = len(scores)
    w, x = scores.copy(), np.zeros_like(scores)
    w[np.arange(n), np.arange(n) + 1] = 0.0
    _compiled(w, steps, single_root, x, np.empty_like(w), np.empty(n, np.int64), workspace(n))
    return x
