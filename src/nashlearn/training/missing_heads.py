"""Heads that are missing (-1): what the known ones say of all, by inverse propensity.

A token's head is known with probability ``pi``, whatever it is. Dividing what known arcs contribute to the moments by
``pi``, here the share of tokens whose head is known, gives moments with the right expectation [franc2022]_; the game of
a sentence is still that over its whole trees. The corrected loss ``F(theta) - <theta, y / pi>`` stays convex but may be
negative, and without regularisation unbounded below.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nashlearn.kernels.tree_map import best_trees

__all__ = ["completed", "known_arcs", "known_share", "known_weights"]


def known_weights(heads: Sequence[np.ndarray], omega: np.ndarray) -> np.ndarray:
    """Weight of the tokens whose head is known, and of all; ``omega`` are those of a token of each sentence."""
    counts = np.array([(np.count_nonzero(y >= 0), len(y)) for y in heads], dtype=np.float64)
    return np.array([float(omega @ column) for column in counts.T])  # alike: 1 where none is missing


def known_share(weights: np.ndarray) -> float:
    """The share of tokens whose head is known, from the weights of both."""
    known, every = weights.tolist()
    if not known > 0:
        raise ValueError("y holds no heads: all are missing, or weigh nothing.")
    return known / every


def known_arcs(heads: Sequence[np.ndarray]) -> np.ndarray:
    """The known arcs of all sentences as entries 0 and 1 that lie as scores do; none where one is missing."""
    sizes = np.array([len(y) for y in heads], dtype=np.int64)
    every, widths = np.concatenate(heads), np.repeat(sizes + 1, sizes)  # a row of entries for each token
    found, first, known = np.zeros(widths.sum()), np.cumsum(widths) - widths, every >= 0
    found[first[known] + every[known]] = 1.0
    return found


def completed(heads: np.ndarray, single_root: bool) -> np.ndarray | None:
    """A tree with all known heads, or None where there is none."""
    n = heads.size
    allowed = np.zeros((1, n, n + 1))
    known = np.flatnonzero(heads >= 0)
    allowed[0, known] = -np.inf
    allowed[0, known, heads[known]] = 0.0
    allowed[0, np.arange(n), np.arange(n) + 1] = -np.inf
    tree, feasible = np.empty((1, n), np.intp), np.empty(1, np.bool_)
    best_trees(allowed, single_root, tree, feasible)
    return tree[0] if feasible[0] else None
