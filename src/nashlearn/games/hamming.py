"""The weighted Hamming loss of any polytope whose vertices select the same amount of parts, as a linear operator."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Hamming"]


class Hamming:
    """``<p, L q> = <weights, q> - <p, weights * q>``: what the parts of ``q`` that ``p`` misses weigh.

    The first term does not depend on ``p``. It is bilinear where a vector ``unit`` is known with ``<unit, p> = 1`` for
    every option ``p``, and then ``L = unit weights' - diag(weights)``. Permutations of n elements have
    ``unit = 1/n`` everywhere, subsets of k out of n items ``unit = 1/k``. Cost of a product: O(dim) per column.

    Parameters
    ----------
    weights : array-like
        What it costs to miss each part; of any shape, read in C order.
    unit : array-like
        Numbers, as many as ``weights`` or one for all, whose inner product with every option is 1.
    """

    def __init__(self, weights: np.ndarray, unit: np.ndarray | float):
        self.weights = np.array(weights, dtype=np.float64).ravel()
        if np.size(unit) not in (1, self.weights.size):
            raise ValueError(f"unit must be one number or as many as weights, {self.weights.size}; got {np.size(unit)}")
        self.unit = np.array(np.broadcast_to(np.asarray(unit, dtype=np.float64), np.shape(weights))).ravel()

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the matrix that the operator stands for."""
        return self.weights.size, self.weights.size

    @property
    def T(self) -> _Transposed:
        """The operator ``L.T @ p = weights <unit, p> - weights * p``."""
        return _Transposed(self)

    def bounds(self, labels: Any) -> tuple[float, float] | None:
        """0, and what the heaviest vertex of ``labels`` weighs: as much is lost where all of its parts are missed.

        None where some weight is negative.
        """
        if (self.weights < 0).any():
            return None
        weights = self.weights.reshape(1, *getattr(labels, "shape", self.weights.shape))
        return 0.0, float((weights * np.asarray(labels.vertex(labels.argmax(weights)))).sum())

    def __matmul__(self, q: np.ndarray) -> np.ndarray:
        """``L @ q`` for a point (dim,) or points as columns (dim, n)."""
        return _minus(np.multiply.outer(self.unit, self.weights @ q), self.weights, q)


class _Transposed:
    """The transpose of a :class:`Hamming` loss."""

    def __init__(self, loss: Hamming):
        self.T = loss
        self.shape = loss.shape

    def __matmul__(self, p: np.ndarray) -> np.ndarray:
        return _minus(np.multiply.outer(self.T.weights, self.T.unit @ p), self.T.weights, p)


def _minus(common: np.ndarray, weights: np.ndarray, x: np.ndarray) -> np.ndarray:
    """``common - weights * x``, row by row, into ``common``."""
    common -= (weights * np.asarray(x).T).T
    return common
