"""Projection of labelled arcs onto trees as published: Frank-Wolfe, and ADMM on Martin's polytope ([li2022]_, sec. 4).

A point is an array ``x`` (n, n + 1, labels) over tokens and their heads. Martin's formulation keeps, for every node
``k``, a tree directed away from ``k`` on the same undirected edges; ADMM asks the copies ``u_k`` to agree. Both exist
for trees with any number of root arcs and for trees with one, so that they can be compared on the same polytope.
"""

from __future__ import annotations

import numpy as np

from reproduce.compiled import load

__all__ = ["admm_path", "frank_wolfe_path"]


def admm_path(scores: np.ndarray, steps: int, single_root: bool) -> np.ndarray:
    """The iterates (steps, n, n + 1, labels) of ADMM: one head a token each, mixtures of trees in the limit."""
    path = np.empty((steps, scores.size))
    load("tree_loops").admm(_own_arcs_out(scores), single_root, path)
    return path.reshape(steps, *scores.shape)


def frank_wolfe_path(scores: np.ndarray, steps: int, single_root: bool) -> np.ndarray:
    """The iterates of Frank-Wolfe with the published steps ``2 / (t + 2)``, each a mixture of trees."""
    path = np.empty((steps, scores.size))
    load("tree_loops").frank_wolfe_path(_own_arcs_out(scores), single_root, path)
    return path.reshape(steps, *scores.shape)


def _own_arcs_out(scores: np.ndarray) -> np.ndarray:
    w = scores.copy()
    w[np.arange(len(w)), np.arange(len(w)) + 1] = 0.0
    return w
