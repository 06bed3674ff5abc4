"""Linear scores of the nodes and edges of many networks."""

from __future__ import annotations

from typing import Any

import joblib
import numpy as np
from scipy import sparse

from nashlearn.games.networks.batch import Networks
from nashlearn.solvers.threads import threads
from nashlearn.training.blas import one_thread
from nashlearn.training.designs.nodes import DenseFeatures, SparseFeatures

__all__ = ["NetworkDesign"]


class NetworkDesign:
    """How the scores of networks depend on the weights: those of node features first, then those of edges.

    Products are made by one thread of linear algebra each, so that they are the same for any number of threads.

    Parameters
    ----------
    nodes : DenseFeatures or SparseFeatures
        Features of the nodes, in the order of the networks' rows.
    edges : ndarray (m, d) or None
        Features of the edges; None for one table of weights (k, k), which all edges share.
    networks : Networks
        The graphs.
    n_jobs : int, optional
        Threads.
    """

    def __init__(
        self,
        nodes: DenseFeatures | SparseFeatures,
        edges: np.ndarray | None,
        networks: Networks,
        n_jobs: int | None = None,
    ):
        self.nodes, self.edges, self.networks = nodes, edges, networks
        self.width = 1 if edges is None else edges.shape[1]
        self.n_weights = nodes.n_weights + self.width * networks.k**2
        self._run = threads(joblib.effective_n_jobs(n_jobs))
        self._scores = np.empty((networks.n, networks.k))
        self._weighted: np.ndarray | None = None  # marginals times what their networks weigh, where they differ

    @one_thread()
    def scores(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Those of nodes (n, k), overwritten by the next call, and of edges (m, k, k), or (1, k, k) for all alike."""
        split, k = self.nodes.n_weights, self.networks.k
        self.nodes.scores(w[:split], self._scores, self._run)
        T = w[split:].reshape(self.width, k * k)
        return self._scores, (T if self.edges is None else self.edges @ T).reshape(-1, k, k)

    @one_thread()
    def moments(self, q: Any, omega: np.ndarray) -> np.ndarray:
        """``sum_i omega_i Phi_i' q_i`` for marginals of nodes and edges.

        Where edges share a table their marginals come as a sum, weighted as :class:`Networks` was told: by ``omega``.
        """
        (nodes, pairs), split = q, self.nodes.n_weights
        moments, alike = np.empty(self.n_weights), np.ptp(omega) == 0
        if not alike:
            if self._weighted is None:
                self._weighted = np.empty_like(nodes)
            nodes = np.multiply(nodes, omega[self.networks.owner, None], out=self._weighted)
        self.nodes.gradient(nodes, moments[:split], self._run)
        if self.edges is not None:
            each = self.edges if alike else np.repeat(omega, self.networks.edge_counts)[:, None] * self.edges
            moments[split:] = (each.T @ pairs.reshape(-1, self.networks.k**2)).ravel()
        if alike:
            moments *= omega[0]
        if self.edges is None:
            moments[split:] = pairs.ravel()
        return moments

    @one_thread()
    def curvature(self, omega: np.ndarray) -> np.ndarray:
        """A guess of the Hessian's diagonal: that of random fields at half of the largest loss, all labels alike."""
        networks, k = self.networks, self.networks.k
        with np.errstate(over="ignore", invalid="ignore"):  # values beyond 1e154 leave no guess
            nodes = self.nodes.squares(omega[networks.owner]) * (1.0 - 1.0 / k) / k
            share = np.repeat(omega, networks.edge_counts)
            squares = share.sum(keepdims=True) if self.edges is None else share @ self.edges**2
            pairs = squares * (1.0 - 1.0 / k**2) / k**2
            return np.concatenate([nodes, np.repeat(pairs, k * k)]) / (0.5 * networks.scale)

    def matrices(self) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
        """``Phi`` of all scores of nodes (n k, n_weights), in the order of rows, and of edges (m k k, n_weights)."""
        pairs, split, m = self.networks.k**2, self.nodes.n_weights, int(self.networks.edge_counts.sum())
        nothing = sparse.csr_matrix((self.networks.n * self.networks.k, self.n_weights - split))
        given = np.ones((m, 1)) if self.edges is None else self.edges
        tables = sparse.kron(given, sparse.eye(pairs), format="csr")
        return (
            sparse.hstack([self.nodes.matrix(), nothing], format="csr"),
            sparse.hstack([sparse.csr_matrix((m * pairs, split)), tables], format="csr"),
        )
