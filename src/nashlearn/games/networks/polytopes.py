"""Polytopes of a graph's labellings, exact and relaxed, and of the predictor's replies, on packed points.

A packed point holds what each node has for each of ``k`` states, then what each edge has for each pair of states:
``n k + m k k`` numbers. States that a node lacks have their place, and are 0 at every vertex.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

__all__ = ["NONE_LEFT", "Labellings", "LocalPolytope", "Replies", "node_loss", "packed"]

NONE_LEFT = "scores leave no labelling possible: the forbidden labels and pairs rule all of them out"


def packed(nodes: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Nodes (n, k) and edges (m, k, k) as one packed point."""
    return np.concatenate([nodes.ravel(), pairs.ravel()])


class Labellings:
    """The labellings (n,) of a graph, by its solver: the marginal polytope.

    Parameters
    ----------
    solver : CliqueSolver or LocalSolver
    """

    def __init__(self, solver: Any):
        self._solver, self._edges, self._states = solver, solver.edges, solver.n_states
        self.n, self.m, self.k = solver.n_states.size, len(solver.edges), int(solver.n_states.max())
        self.shape = (self.n * self.k + self.m * self.k**2,)

    def parts(self, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A packed point: nodes (n, k) and edges (m, k, k), both contiguous."""
        split, point = self.n * self.k, np.require(point, requirements=("C", "A"))
        return point[:split].reshape(self.n, self.k), point[split:].reshape(self.m, self.k, self.k)

    def argmax(self, scores: np.ndarray) -> np.ndarray:
        """The best labelling (b, n) for each row of packed ``scores``. Cost: one max-product pass a row."""
        found = [self._solver.maximise(*self.parts(row)) for row in np.asarray(scores, dtype=np.float64)]
        if any(one.score == -np.inf for one in found):
            raise ValueError(NONE_LEFT)
        return np.array([one.labels for one in found], dtype=np.int64).reshape(-1, self.n)

    def vertex(self, labels: np.ndarray) -> np.ndarray:
        """The packed vertices of labellings (b, n)."""
        y, k = self._checked(labels), self.k
        found = np.zeros((len(y), *self.shape))
        row = np.arange(len(y))[:, None]
        found[row, np.arange(self.n) * k + y] = 1.0
        u, v = self._edges.T
        found[row, self.n * k + (np.arange(self.m) * k + y[:, u]) * k + y[:, v]] = 1.0
        return found

    def _checked(self, labels: Any) -> np.ndarray:
        y = np.asarray(labels)
        if y.shape[1:] != (self.n,) or not np.issubdtype(y.dtype, np.integer):
            raise ValueError(f"y must hold one integer label for each of the {self.n} nodes; got {labels!r:.60}")
        wrong = (y < 0) | (y >= self._states)
        if wrong.any():
            i, v = np.argwhere(wrong)[0]
            raise ValueError(f"y must hold labels below each node's number of states; node {v} has {y[i, v]}")
        return y


class LocalPolytope(Labellings):
    """Marginals of nodes and edges that agree where they meet: a polytope around that of the labellings.

    Some of its vertices are fractional on graphs with cycles, so the label of a vertex is either a labelling (n,) of
    integers or the packed vertex itself, floating-point numbers; ``argmax`` returns the latter.
    """

    @cached_property
    def _agreement(self) -> tuple[sparse.csr_matrix, np.ndarray, np.ndarray]:
        """``A x = b`` for nodes that sum to 1 and edges that agree with their ends, and which states exist."""
        n, m, k = self.n, self.m, self.k
        sums = sparse.hstack([sparse.kron(sparse.eye(n), np.ones((1, k))), sparse.csr_matrix((n, m * k * k))])
        rows = [sums]
        over = np.kron(np.eye(k), np.ones(k)), np.kron(np.ones(k), np.eye(k))  # the other end's states
        for end, summed in zip(self._edges.T, over, strict=True):
            at = sparse.csr_matrix((np.ones(m), (np.arange(m), end)), shape=(m, n))
            rows.append(sparse.hstack([-sparse.kron(at, sparse.eye(k)), sparse.kron(sparse.eye(m), summed)]))
        A = sparse.csr_matrix(sparse.vstack(rows) if m else sums)
        exists = (np.arange(k) < self._states[:, None]).ravel()
        return A, np.r_[np.ones(n), np.zeros(A.shape[0] - n)], np.r_[exists, np.ones(m * k * k, dtype=np.bool_)]

    def argmax(self, scores: np.ndarray) -> np.ndarray:
        """A best vertex (b, dim) for each row of packed ``scores``. Cost: one linear programme a row."""
        return np.array([self._best(row) for row in np.asarray(scores, dtype=np.float64)]).reshape(-1, *self.shape)

    def _best(self, scores: np.ndarray) -> np.ndarray:
        A, b, exists = self._agreement
        allowed = exists & (scores > -np.inf)
        found = linprog(
            -np.where(allowed, scores, 0.0),
            A_eq=A,
            b_eq=b,
            bounds=np.column_stack([np.zeros(scores.size), allowed.astype(np.float64)]),
            method="highs-ds",
        )
        if found.x is None:
            raise ValueError(NONE_LEFT)
        return np.where(allowed, found.x.clip(0.0, 1.0), 0.0)

    def vertex(self, labels: np.ndarray) -> np.ndarray:
        """The packed vertices of labellings (b, n) of integers, or of vertices (b, dim): these themselves."""
        given = np.asarray(labels)
        return given if np.issubdtype(given.dtype, np.floating) else super().vertex(given)


class Replies:
    """One option at each node: a product of simplices, node ``v`` having ``counts[v]`` of the ``width`` options."""

    def __init__(self, counts: np.ndarray):
        width = int(counts.max())
        self.shape = (counts.size, width)
        self._beyond = np.arange(width) >= counts[:, None]

    def argmax(self, scores: np.ndarray) -> np.ndarray:
        """The best options (b, n) for rewards (b, n, width)."""
        return np.where(self._beyond, -np.inf, scores).argmax(axis=2)

    def vertex(self, labels: np.ndarray) -> np.ndarray:
        """Vertices (b, n, width) of options (b, n)."""
        return np.eye(self.shape[1])[np.asarray(labels)]


def node_loss(costs: list[np.ndarray], m: int, k: int) -> sparse.csr_matrix:
    """``L`` (n width, n k + m k k) on packed points: a block for each node, and nothing for edges."""
    width = max(L.shape[0] for L in costs)
    blocks = np.zeros((len(costs), width, k))
    for block, L in zip(blocks, costs, strict=True):
        block[: L.shape[0], : L.shape[1]] = L
    v, i, a = np.nonzero(blocks)
    shape = len(costs) * width, len(costs) * k + m * k * k
    return sparse.csr_matrix((blocks[v, i, a], (v * width + i, v * k + a)), shape=shape)
