"""Equilibria and best labellings on a clique tree."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from nashlearn.game import Equilibrium
from nashlearn.games.networks import exact, messages, stars
from nashlearn.games.networks.cliques import Cliques, table_of
from nashlearn.games.networks.outcome import Labeling
from nashlearn.games.networks.solver import Solver

__all__ = ["CliqueSolver"]


class CliqueSolver(Solver):
    """Solves one graph's games exactly.

    Parameters
    ----------
    cliques : Cliques
        The graph's clique tree.
    edges, n_states, loss, costs
        See :class:`Solver`.
    """

    is_exact = True

    def __init__(self, cliques: Cliques, edges: np.ndarray, n_states: np.ndarray, loss: Any, costs: list[np.ndarray]):
        super().__init__(edges, n_states, loss, costs)
        self.cliques = cliques

    @property
    def n_entries(self) -> int:
        """Rows of the programme but for those of replies."""
        return self.cliques.size

    def tables(self, T: np.ndarray) -> np.ndarray:
        """Edge scores (m, k, k) as the cliques' tables, flat."""
        t, k = self.cliques.arrays, self.n_states
        E = np.zeros(self.cliques.size)
        for e, (u, v) in enumerate(self.edges):
            c, state = self.cliques.edge_clique[e], self.cliques.edge_state[e]
            own = T[e, : k[u], : k[v]] if self.cliques.edge_first[e] else T[e, : k[u], : k[v]].T
            table_of(t, c, E)[:] += own[:, state]
        return E

    def marginals(self, Q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Node (n, k) and edge (m, k, k) marginals of the cliques' tables."""
        t, k = self.cliques.arrays, self.n_states
        widest = int(k.max())
        nodes = np.zeros((k.size, widest))
        pairs = np.zeros((len(self.edges), widest, widest))
        for c, v in enumerate(t.node):
            nodes[v, : k[v]] = table_of(t, c, Q).sum(axis=1)
        for e, (u, v) in enumerate(self.edges):
            c, state, first = self.cliques.edge_clique[e], self.cliques.edge_state[e], self.cliques.edge_first[e]
            other = int(k[v] if first else k[u])
            joint = np.array([np.bincount(state, weights=row, minlength=other) for row in table_of(t, c, Q)])
            pairs[e, : k[u], : k[v]] = joint if first else joint.T
        return nodes, pairs

    def feasible(self, f: np.ndarray, T: np.ndarray) -> bool:
        """Whether some labelling is allowed."""
        forbids = np.isneginf(f[np.arange(f.shape[1]) < self.n_states[:, None]]).any() or np.isneginf(T).any()
        return not forbids or self.maximise(f, T).score > -np.inf

    def maximise(self, f: np.ndarray, T: np.ndarray, method: str = "exact", time_limit: float = 60.0) -> Labeling:
        """The best labelling, by max-product, which is exact and fast: both arguments change nothing."""
        t, E = self.cliques.arrays, self.tables(T)
        inside = self._room()
        best = messages.inward(t, f, np.zeros_like(f), E, 0.0, inside)
        labels = np.zeros(f.shape[0], dtype=np.int64)
        messages.decode(t, f, E, inside, labels)
        return Labeling(labels, float(best), float(best), "optimal" if best > -np.inf else "infeasible")

    def _played(self, f: np.ndarray, T: np.ndarray) -> Equilibrium:
        t, E = self.cliques.arrays, self.tables(T)
        best, reduced, Q, p = exact.solve(t, f, E, self.costs)
        upper = messages.inward(t, np.zeros_like(f), self._lift(p, f.shape), reduced, 0.0, self._room())
        nodes, pairs = self.marginals(Q)
        used = Q > 0
        gap = upper - float(Q[used] @ reduced[used]) - self.risk(nodes)
        return self.certified(best + upper, gap, nodes, pairs, p)

    def cover(self, unit: float) -> exact.Cover:
        """The programme with scores left open, in units of ``unit``: one row for each entry of a clique's table."""
        t, k = self.cliques.arrays, int(self.n_states.max())
        alive = np.ones(self.cliques.size, dtype=np.bool_)
        made = exact.assemble(t, alive, np.zeros(self.cliques.size), [L / unit for L in self.costs])
        rows, columns = [], []
        for c, v in enumerate(t.node):
            entry = np.arange(t.rows[c] * t.columns[c])
            rows.append(t.table[c] + entry)
            columns.append(v * k + entry // t.columns[c])
        for e, (c, first) in enumerate(zip(self.cliques.edge_clique, self.cliques.edge_first, strict=True)):
            own, other = np.divmod(np.arange(t.rows[c] * t.columns[c]), t.columns[c])
            other = np.asarray(self.cliques.edge_state[e])[other]
            rows.append(t.table[c] + np.arange(own.size))
            columns.append(self.n_states.size * k + e * k * k + (own * k + other if first else other * k + own))
        at = np.concatenate(rows), np.concatenate(columns)
        shape = made.h.size, self.n_states.size * k + len(self.edges) * k * k
        return exact.Cover(made, sparse.csr_matrix((np.ones(at[0].size), at), shape=shape), self._calibrated)

    def _calibrated(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        Q = z[: self.cliques.size].copy()
        exact.calibrate(self.cliques.arrays, Q)
        return self.marginals(Q)

    def improve(
        self, f: np.ndarray, T: np.ndarray, smoothing: float, state: tuple[np.ndarray, ...], rounds: int
    ) -> Equilibrium:
        """Sweep ``rounds`` times with smoothing from the replies in ``state``, in place."""
        (p,) = state
        t, E = self.cliques.arrays, self.tables(T)
        lift = self._lift(p, f.shape)
        inside, outside, B = self._room(), self._room(), np.empty(E.size)
        messages.inward(t, f, lift, E, smoothing, inside)
        for _ in range(rounds):
            messages.sweep(self.loss, t, f, lift, E, smoothing, p, inside, outside)
        messages.beliefs(t, t.table, f, lift, E, smoothing, inside, outside, B)
        Q = self._normalised(B, smoothing)
        nodes, pairs = self.marginals(Q)
        gap = float(stars.expected(self.loss, p, nodes)) - self.risk(nodes)
        upper = float(inside[t.parent < 0, 0].sum())
        return self.certified(upper, gap, nodes, pairs, p, smoothing * self._entropy(Q))

    def ceiling(self, f: np.ndarray, T: np.ndarray, state: tuple[np.ndarray, ...]) -> float:
        """What the best adversary gets against the replies in ``state``, without smoothing."""
        return float(
            messages.inward(self.cliques.arrays, f, self._lift(state[0], f.shape), self.tables(T), 0.0, self._room())
        )

    def _normalised(self, B: np.ndarray, smoothing: float) -> np.ndarray:
        t = self.cliques.arrays
        sizes = t.rows * t.columns
        Q = np.exp((B - np.repeat(np.maximum.reduceat(B, t.table), sizes)) / smoothing)
        return Q / np.repeat(np.add.reduceat(Q, t.table), sizes)

    def _entropy(self, Q: np.ndarray) -> float:
        """That of the distribution over labellings: of each clique's own node given its separator, summed."""
        t = self.cliques.arrays
        given = np.concatenate([np.tile(table_of(t, c, Q).sum(axis=0), t.rows[c]) for c in range(t.node.size)])
        used = Q > 0
        return -float(Q[used] @ np.log(Q[used] / given[used]))

    def _room(self) -> np.ndarray:
        t = self.cliques.arrays
        return np.zeros((t.node.size, int(t.columns.max())))

    def _lift(self, p: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        lift = np.zeros(shape)
        for v, L in enumerate(self.costs):
            lift[v, : L.shape[1]] = p[v, : L.shape[0]] @ L
        return lift
