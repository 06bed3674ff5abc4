"""Heads that are missing (-1): what the known ones say of all, by inverse propensity.

A token's head is known with probability ``pi``, whatever it is. Dividing what known arcs contribute to the moments by
``pi``, here the share of tokens whose head is known, gives moments with the right expectation [franc2022]_; the game of
a sentence is still that over its whole trees. The corrected loss ``F(theta) - <theta, y / pi>`` stays convex but may be
negative, and without regularisation unbounded below.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nashlearn.games.tree_map import best_trees, workspace

__all__ = ["completed", "known_share"]


def known_share(heads: Sequence[np.ndarray], omega: np.ndarray) -> float:
    """The weighted share of tokens whose head is known; ``omega`` are the weights of a token of each sentence."""
    known, every = (np.array([float(count) for count in counts]) for counts in _counts(heads))
    return float(omega @ known) / float(omega @ every)


def _counts(heads: Sequence[np.ndarray]) -> tuple[list[int], list[int]]:
    return [int(np.count_nonzero(y >= 0)) for y in heads], [len(y) for y in heads]


def completed(heads: np.ndarray, single_root: bool) -> np.ndarray | None:
    """A tree with all known heads, or None where there is none."""
    n = heads.size
    allowed = np.zeros((1, n, n + 1))
    known = np.flatnonzero(heads >= 0)
    allowed[0, known] = -np.inf
    allowed[0, known, heads[known]] = 0.0
    allowed[0, np.arange(n), np.arange(n) + 1] = -np.inf
    tree, feasible = np.empty((1, n), np.int64), np.empty(1, np.bool_)
    best_trees(allowed, single_root, tree, feasible, workspace(n))
    return tree[0] if feasible[0] else None
