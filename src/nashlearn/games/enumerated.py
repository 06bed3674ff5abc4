"""The polytope of a list of vertices: for small sets, and to check every other polytope against."""

from __future__ import annotations

import numpy as np

__all__ = ["Enumerated"]


class Enumerated:
    """The convex hull of the rows of a matrix. A label is the number of a row.

    Parameters
    ----------
    vertices : array-like of shape (vertices, dim)
        Finite, at least one row.
    """

    def __init__(self, vertices: np.ndarray):
        self.vertices = np.array(vertices, dtype=np.float64)
        if self.vertices.ndim != 2 or self.vertices.size == 0 or not np.isfinite(self.vertices).all():
            raise ValueError(
                "vertices must be a finite matrix with one vertex in each row, at least one; "
                f"got an array of shape {self.vertices.shape}"
                + ("" if np.isfinite(self.vertices).all() else " with entries that are not finite")
            )

    def argmax(self, scores: np.ndarray) -> np.ndarray:
        """Number of the best vertex for each row of ``scores`` (n, dim). Cost: O(vertices dim).

        A score of ``-inf`` rules out the vertices that are not zero there.
        """
        ruled_out = np.isneginf(scores)
        total = np.where(ruled_out, 0.0, scores) @ self.vertices.T
        if ruled_out.any():
            total[ruled_out.astype(np.float64) @ (self.vertices != 0).T > 0] = -np.inf
        return np.argmax(total, axis=1)

    def vertex(self, labels: np.ndarray) -> np.ndarray:
        """The vertices (n, dim) with these numbers."""
        return self.vertices[np.asarray(labels)]
