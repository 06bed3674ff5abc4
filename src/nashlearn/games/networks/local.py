"""Any graph through the local polytope: an upper bound on the game, and labellings with a bound on the best one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from nashlearn.games.networks import stars
from nashlearn.games.networks.exact import Assembled, Cover, assembled, read_replies, reply_numbers
from nashlearn.games.networks.labellings import METHODS
from nashlearn.games.networks.outcome import Improved, Labeling
from nashlearn.games.networks.programme import Builder
from nashlearn.games.networks.replies import Hamming
from nashlearn.games.networks.search import deficits
from nashlearn.games.networks.solver import Solver

__all__ = ["EDGE_SHARE", "LocalSolver", "consistent"]

EDGE_SHARE = 0.1  # smoothing of edges over that of nodes: equal ones would add a bias of several of it for each edge
_BALANCING = 30  # sweeps at each temperature


def consistent(f: np.ndarray, T: np.ndarray, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Labels (n, k) and pairs (m, k, k) that survive asking each for an allowed neighbour, again and again."""
    labels = f > -np.inf
    while True:
        pairs = np.isfinite(T) & labels[edges[:, 0], :, None] & labels[edges[:, 1], None, :]
        kept = labels.copy()
        np.logical_and.at(kept, edges[:, 0], pairs.any(axis=2))
        np.logical_and.at(kept, edges[:, 1], pairs.any(axis=1))
        if (kept == labels).all():
            return labels, pairs
        labels = kept


class _Assembled(NamedTuple):
    """A programme with the numbers of its multipliers (m, 2, k), -1 where fixed, and of its rows for nodes."""

    made: Assembled
    alpha: np.ndarray
    n_nodes: int


class LocalSolver(Solver):
    """Solves one graph's games over locally consistent marginals."""

    is_exact = False
    sweeps = 10

    def __init__(self, edges: np.ndarray, n_states: np.ndarray, loss: Any, costs: list[np.ndarray]):
        super().__init__(edges, n_states, loss, costs)
        self.graph = stars.incidence(n_states.size, edges, np.arange(len(edges)))

    @property
    def n_entries(self) -> int:
        """Rows of the programme but for those of replies."""
        return int(self.n_states.sum() + (self.n_states[self.edges[:, 0]] * self.n_states[self.edges[:, 1]]).sum())

    def feasible(self, f: np.ndarray, T: np.ndarray) -> bool:
        """Whether local reasoning leaves every node a label: false proves that no labelling is allowed."""
        return bool(consistent(f, T, self.edges)[0].any(axis=1).all())

    def maximise(self, f: np.ndarray, T: np.ndarray, method: str = "exact", time_limit: float = 60.0) -> Labeling:
        """A good labelling: ``method`` "exact" proves it best if ``time_limit`` seconds suffice, "ascent" is fast."""
        return METHODS[method](self.graph, f, T, time_limit)

    def _played(self, f: np.ndarray, T: np.ndarray) -> tuple[float, float, tuple[np.ndarray, np.ndarray], np.ndarray]:
        """The equilibrium over the local polytope, without smoothing, by the interior point method.

        First the scores are replaced by how far each label and pair falls short in a bound that sweeps have lowered,
        so that what matters is of the size of the loss whatever the scores were.
        """
        unit = max(float(L.max()) for L in self.costs) or 1.0
        node, pair, bound = deficits(self.graph, f, T, self._balance(f, T, unit))
        upper, lower, q, p = self._programme(-node, -pair, unit)
        return bound + upper, bound + lower, q, p

    def _balance(self, f: np.ndarray, T: np.ndarray, unit: float) -> np.ndarray:
        """Multipliers from sweeps without a loss, cooled down to ``unit``."""
        free = Hamming(np.zeros(f.shape[0]))
        p, q, alpha = np.zeros_like(f), np.zeros_like(f), np.zeros((len(self.edges), 2, f.shape[1]))
        smoothing = max((float(np.ptp(x[x > -np.inf])) for x in (f, T) if x.size and x.max() > -np.inf), default=0.0)
        while smoothing > unit:
            tables = stars.heated(T, EDGE_SHARE * smoothing)
            for _ in range(_BALANCING):
                stars.sweep(free, self.graph, f, tables, smoothing, p, alpha, q)
            smoothing *= 0.3
        return alpha

    def _assemble(self, f: np.ndarray, T: np.ndarray, labels: np.ndarray, pairs: np.ndarray, unit: float) -> _Assembled:
        """The programme in units of ``unit``: the nodes' maxima, the multipliers and the replies are its variables."""
        build = Builder()
        n, m = f.shape[0], len(self.edges)
        used = n
        alpha = np.full((m, 2, f.shape[1]), -1)
        for e, (u, v) in enumerate(self.edges):
            for side, w in enumerate((u, v)):
                free = np.flatnonzero(labels[w])[side:]  # one multiplier of the second end is fixed at 0
                alpha[e, side, free] = used + np.arange(free.size)
                used += free.size
        reply = reply_numbers(used, self.costs)
        y = np.zeros(reply[-1])
        for e in range(m):
            of = np.flatnonzero(alpha[e, 0] >= 0)
            y[alpha[e, 0, of]] = np.where(pairs[e], T[e] / unit, -np.inf).max(axis=1)[of] + 1.0
        for v, L in enumerate(self.costs):
            self._node_rows(build, v, L / unit, f[v] / unit, labels[v], alpha, int(reply[v]))
        n_nodes = build.rows
        for e in range(m):
            a, b = np.nonzero(pairs[e])
            ids = np.arange(a.size)
            build.add(ids, alpha[e, 0, a], np.ones(a.size))
            fixed = alpha[e, 1, b] < 0
            build.add(ids[~fixed], alpha[e, 1, b[~fixed]], np.ones(int((~fixed).sum())))
            build.close(T[e, a, b] / unit)
        made = assembled(build, y, slice(n), reply, self.costs)
        rows = (made.G @ y - made.h)[:n_nodes]
        node_of = np.repeat(np.arange(n), labels.sum(axis=1))
        y[:n] = 1.0 - np.minimum.reduceat(rows, np.flatnonzero(np.diff(node_of, prepend=-1)))
        return _Assembled(made, alpha, n_nodes)

    def _programme(
        self, f: np.ndarray, T: np.ndarray, unit: float
    ) -> tuple[float, float, tuple[np.ndarray, np.ndarray], np.ndarray]:
        """Bounds of the value from above and below, marginals, and replies."""
        labels, pairs = consistent(f, T, self.edges)
        made, alpha, n_nodes = self._assemble(f, T, labels, pairs, unit)
        found = made.solved(f.shape[0] + len(self.edges))
        p = read_replies(found.y, made.reply, self.costs)
        q, joint = self._marginals(found.z, labels, pairs, n_nodes, made.n_tables)
        multipliers = np.where(alpha >= 0, unit * found.y[alpha], 0.0)
        left = np.where(labels, f, -np.inf), stars.heated(np.where(pairs, T, -np.inf), 0.0)
        upper = stars.bound(self.loss, self.graph, *left, 0.0, p, multipliers)
        return float(upper), self.secured(f, T, q, joint), (q, joint), p

    def _marginals(
        self, z: np.ndarray, labels: np.ndarray, pairs: np.ndarray, n_nodes: int, n_tables: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Node and edge marginals that multipliers stand for, made to agree exactly."""
        n, k = labels.shape
        q, joint = np.zeros((n, k)), np.zeros((len(self.edges), k, k))
        q[labels] = z[:n_nodes]
        q /= q.sum(axis=1, keepdims=True)
        joint[pairs] = z[n_nodes:n_tables]
        row, column = np.empty(k), np.empty(k)
        for e, (u, v) in enumerate(self.edges):
            stars.match(joint[e], q[u], q[v], row, column)
        return q, joint

    def cover(self, unit: float) -> Cover:
        """The programme with scores left open: one row for each label of a node, one for each pair of an edge."""
        (n, m), k = (self.n_states.size, len(self.edges)), int(self.n_states.max())
        labels, pairs = np.ones((n, k), np.bool_), np.ones((m, k, k), np.bool_)
        made, _, n_nodes = self._assemble(np.zeros((n, k)), np.zeros((m, k, k)), labels, pairs, unit)
        scores = sparse.eye(made.h.size, n * k + m * k * k, format="csr")  # in the order of the rows
        return Cover(made, scores, lambda z: self._marginals(z, labels, pairs, n_nodes, made.n_tables))

    def _node_rows(
        self,
        build: Builder,
        v: int,
        L: np.ndarray,
        f: np.ndarray,
        alive: np.ndarray,
        alpha: np.ndarray,
        reply: int,
    ) -> None:
        """``U_v - (L' p)(a) - sum_e alpha_ev(a) >= f_v(a)`` for the labels alive."""
        labels = np.flatnonzero(alive)
        ids = np.arange(labels.size)
        build.add(ids, np.full(labels.size, v), np.ones(labels.size))
        g = self.graph
        for i in range(g.start[v], g.start[v + 1]):
            number = alpha[g.member[i], g.side[i], labels]
            build.add(ids[number >= 0], number[number >= 0], np.full(int((number >= 0).sum()), -1.0))
        build.replies(labels, L, reply)
        build.close(f[labels] + L[-1, labels])

    def start(self) -> tuple[np.ndarray, ...]:
        """Uniform replies and multipliers of 0, from which sweeps start."""
        return *super().start(), np.zeros((len(self.edges), 2, int(self.n_states.max())))

    def improve(
        self, f: np.ndarray, T: np.ndarray, smoothing: float, state: tuple[np.ndarray, ...], rounds: int
    ) -> Improved:
        """Sweep ``rounds`` times at ``smoothing > 0`` from ``state``: a bound there, and marginals that agree."""
        p, alpha = state
        q, joint, h = np.zeros_like(f), np.zeros(T.shape), stars.heated(T, EDGE_SHARE * smoothing)
        for _ in range(rounds):
            stars.sweep(self.loss, self.graph, f, h, smoothing, p, alpha, q)
        stars.beliefs(self.graph, h, alpha, joint)
        own = joint.copy()
        stars.agree(self.graph, q, joint)
        upper = float(stars.bound(self.loss, self.graph, f, h, smoothing, p, alpha))
        cost = float(stars.expected(self.loss, p, q))
        entropy = _entropy(q) + EDGE_SHARE * _entropy(joint)
        attained = self._scored(f, T, q, joint) + cost + smoothing * entropy
        return Improved(upper, q, joint, own, max(upper - attained, 0.0), entropy)

    def ceiling(self, f: np.ndarray, T: np.ndarray, state: tuple[np.ndarray, ...]) -> float:
        """What the best adversary gets against the replies in ``state``, at most, without smoothing."""
        return float(stars.bound(self.loss, self.graph, f, stars.heated(T, 0.0), 0.0, *state))

    def _left(self, f: np.ndarray, T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        labels, pairs = consistent(f, T, self.edges)  # what is left without a partner would keep its mass
        return np.where(labels, f, -np.inf), np.where(pairs, T, -np.inf)


def _entropy(q: np.ndarray) -> float:
    positive = q[q > 0]
    return -float(positive @ np.log(positive))
