"""The losses of a network's nodes, as estimators keep them; see :mod:`nashlearn.kernels.replies` for what they do."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import nashlearn.kernels.replies as kernel

__all__ = ["Hamming", "NodeCosts"]


class Hamming(NamedTuple):
    """The zero-one loss with a weight for each node."""

    weights: np.ndarray

    def compiled(self) -> Any:
        """The loss as compiled code knows it."""
        return kernel.Hamming(np.ascontiguousarray(self.weights, dtype=np.float64))

    def of(self, nodes: np.ndarray) -> Hamming:
        """The loss of some nodes."""
        return Hamming(self.weights[nodes])


class NodeCosts(NamedTuple):
    """Any cost matrix, options by labels, times a weight for each node, of which it may use the leading options."""

    weights: np.ndarray
    L: np.ndarray
    n_options: np.ndarray

    def compiled(self) -> Any:
        """The loss as compiled code knows it."""
        return kernel.NodeCosts(
            np.ascontiguousarray(self.weights, dtype=np.float64),
            np.ascontiguousarray(self.L, dtype=np.float64),
            np.ascontiguousarray(self.n_options, dtype=np.intp),
        )

    def of(self, nodes: np.ndarray) -> NodeCosts:
        """The loss of some nodes."""
        return NodeCosts(self.weights[nodes], self.L, self.n_options[nodes])
