"""Examples of networks, one after another: features of nodes and edges, and which nodes the edges join."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Graphs"]


@dataclass
class Graphs:
    """Examples one after another: features of nodes (N, d), sizes, edges (None: chains) and their features.

    Dense ``nodes`` may be the first columns of a ``wider`` matrix, whose others are free.
    """

    nodes: Any
    sizes: np.ndarray
    edges: list[np.ndarray] | None
    edge_features: np.ndarray | None
    wider: np.ndarray | None = None

    def beside(self, extra: np.ndarray) -> np.ndarray:
        """Dense features of nodes with ``extra`` columns at their end: no copy where there is room for these."""
        if self.wider is None or self.wider.shape[1] != self.nodes.shape[1] + extra.shape[1]:
            return np.hstack([self.nodes, extra])
        self.wider[:, self.nodes.shape[1] :] = extra
        return self.wider

    @property
    def offsets(self) -> np.ndarray:
        """Where each example's nodes start, and the total."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    def all_edges(self) -> np.ndarray:
        """Edges (m, 2) of all examples between the nodes of all examples."""
        starts = self.offsets
        if self.edges is None:
            first = np.delete(np.arange(starts[-1]), starts[1:] - 1)
            return np.column_stack([first, first + 1])
        parts = [np.zeros((0, 2), np.int64), *(e + s for e, s in zip(self.edges, starts[:-1], strict=True))]
        return np.concatenate(parts)

    @property
    def edge_counts(self) -> np.ndarray:
        """Number of edges of each example."""
        return self.sizes - 1 if self.edges is None else np.array([len(e) for e in self.edges], dtype=np.int64)
