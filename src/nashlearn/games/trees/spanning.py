"""Undirected spanning trees: the graphic matroid's bases, with Kruskal's algorithm as the oracle.

All trees have ``n - 1`` edges, so the number of edges of a true tree that a predicted one misses is
``n - 1 - <p, q> = <p, L q>`` with the Hamming loss ``L = 1 1'/(n - 1) - I`` (:mod:`nashlearn.games.hamming`). The game
is solved by the double oracle (:mod:`nashlearn.solvers.double_oracle`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from nashlearn.game import Equilibrium, Game
from nashlearn.games.hamming import Hamming
from nashlearn.kernels.spanning import kruskal

__all__ = ["SpanningTreeGame", "SpanningTrees"]


class SpanningTrees:
    """The polytope of spanning trees of a graph. A label is a boolean array (m,), the edges of the tree.

    Parameters
    ----------
    edges : array-like of shape (m, 2)
        Pairs of distinct nodes 0..n-1; the graph must be connected.
    """

    def __init__(self, edges: Any):
        pairs = np.array(edges)
        if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu" or (pairs < 0).any():
            raise ValueError(f"edges must be pairs of nodes, integers from 0 on, of shape (m, 2); got {edges!r}")
        if (pairs[:, 0] == pairs[:, 1]).any():
            raise ValueError(f"edges must join distinct nodes; got {pairs[pairs[:, 0] == pairs[:, 1]][0]}")
        self.edges = np.ascontiguousarray(pairs, dtype=np.intp)
        self.n = int(pairs.max()) + 1
        self.argmax(np.zeros((1, len(pairs))))

    def argmax(self, scores: np.ndarray) -> np.ndarray:
        """Edges (b, m) of the best tree for each row of ``scores``; ``-inf`` forbids an edge. O(m log m) each."""
        scores = np.asarray(scores, dtype=np.float64)
        chosen = np.empty(scores.shape, np.bool_)
        for i, row in enumerate(scores):
            order = np.argsort(-row, kind="stable")
            if kruskal(order, ~np.isneginf(row), self.edges, self.n, chosen[i]) < self.n - 1:
                raise ValueError(f"the edges must connect all {self.n} nodes; row {i} of the scores leaves them apart")
        return chosen

    def vertex(self, labels: np.ndarray) -> np.ndarray:
        """0/1 rows (b, m)."""
        return np.asarray(labels, dtype=np.float64)


class SpanningTreeGame(Game):
    """The number of edges of the true tree that the predicted one lacks, by the double oracle.

    Parameters
    ----------
    trees : SpanningTrees
        Where both players choose.
    """

    labels: SpanningTrees

    def __init__(self, trees: SpanningTrees):
        super().__init__(trees, trees, Hamming(np.ones(len(trees.edges)), 1.0 / max(trees.n - 1, 1)))

    def solve(
        self,
        scores: np.ndarray,
        *,
        smoothing: float = 0.0,
        tol: float = 1e-9,
        n_jobs: int | None = None,
        start: Equilibrium | None = None,
    ) -> Equilibrium:
        """See :meth:`nashlearn.game.Game.solve`. What all edges have in common is set aside: all trees share it."""
        scores = np.asarray(scores)
        scores = scores.astype(np.result_type(scores, np.float32), copy=False)
        top = scores.max(axis=1, keepdims=True)
        common = np.where(np.isneginf(top), np.zeros_like(top), top)  # a row that forbids every edge is refused below
        found = super().solve(scores - common, smoothing=smoothing, tol=tol, n_jobs=n_jobs, start=start)
        return replace(found, value=found.value + (self.labels.n - 1) * common[:, 0])
