"""Projection onto the arborescence polytope by Frank-Wolfe with line search, as published ([li2022]_, sec. 4.1).

Twice the same steps: as the released code takes them, NumPy around a compiled oracle, and compiled as a whole.
"""

from __future__ import annotations

import numpy as np

from nashlearn.kernels.tree_map import best_trees
from reproduce.compiled import load

__all__ = ["frank_wolfe", "frank_wolfe_compiled"]


def frank_wolfe(scores: np.ndarray, steps: int, single_root: bool) -> np.ndarray:
    """The point after ``steps`` steps from the best tree of ``scores`` (n, n + 1), finite off the diagonal."""
    n = len(scores)
    heads, feasible = np.empty((1, n), np.intp), np.empty(1, np.bool_)
    tokens = np.arange(n)
    w = scores.copy()
    w[tokens, tokens + 1] = 0.0
    best_trees(w[None], single_root, heads, feasible)
    x = np.zeros_like(w)
    x[tokens, heads[0]] = 1.0
    for _ in range(steps):
        slope = w - x
        best_trees(slope[None], single_root, heads, feasible)
        direction = -x
        direction[tokens, heads[0]] += 1.0
        gap, length = np.sum(slope * direction), np.sum(direction**2)
        if gap <= 0.0 or length == 0.0:
            break
        x += min(gap / length, 1.0) * direction
    return x


def frank_wolfe_compiled(scores: np.ndarray, steps: int, single_root: bool) -> np.ndarray:
    """The same steps in one compiled loop."""
    n = len(scores)
    w, x = scores.copy(), np.empty_like(scores)
    w[np.arange(n), np.arange(n) + 1] = 0.0
    load("tree_loops").frank_wolfe(w, steps, single_root, x)
    return x
