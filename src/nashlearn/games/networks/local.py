"""Any graph through the local polytope: an upper bound on the game, and labellings with a bound on the best one."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from nashlearn.game import Equilibrium
from nashlearn.games.networks import stars
from nashlearn.games.networks.exact import Assembled, Cover, assembled, read_replies, reply_numbers
from nashlearn.games.networks.labellings import METHODS
from nashlearn.games.networks.outcome import Labeling
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

    def _played(self, f: np.ndarray, T: np.ndarray) -> Equilibrium:
        """The equilibrium over the local polytope, without smoothing, by the interior point method.

        First the scores are replaced by how far each label and pair falls short in a bound that sweeps have lowered,
        so that what matters is of the size of the loss whatever the scores were.
        """
        unit = max(float(L.max()) for L in self.costs) or 1.0
        node, pair, bound = deficits(self.graph, f, T, self._balance(f, T, unit))
        f, T = -node, -pair
        labels, pairs = consistent(f, T, self.edges)
        made, alpha = self._assemble(f, T, labels, pairs, unit)
        found = made.solved(f.shape[0] + len(self.edges))
        p = read_replies(found.y, made.reply, self.costs)
        q, joint = self._marginals(found.z, labels, pairs)
        multipliers = np.where(alpha >= 0, unit * found.y[alpha], 0.0)
        left = np.where(labels, f, -np.inf), stars.heated(np.where(pairs, T, -np.inf), 0.0)
        upper = float(stars.bound(self.loss, self.graph, *left, 0.0, p, multipliers))
        return self.certified(bound + upper, upper - self.secured(f, T, q, joint), q, joint, p)

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

    def _assemble(
        self, f: np.ndarray, T: np.ndarray, labels: np.ndarray, pairs: np.ndarray, unit: float
    ) -> tuple[Assembled, np.ndarray]:
        """The programme in units of ``unit``, with the numbers of its multipliers (m, 2, k), -1 where fixed.

        Variables are the nodes' maxima ``U``, the multipliers and the replies; one row for each label, then for each
        pair:
        ``U_v - (L' p)(a) - sum_e alpha_ev(a) >= f_v(a)`` and ``alpha_eu(a) + alpha_ev(b) >= T_e(a, b)``.
        """
        n, build = f.shape[0], Builder()
        free = labels[self.edges]
        free[np.arange(len(free)), 1, free[:, 1].argmax(axis=1)] = False  # one multiplier of the second end is 0
        alpha = np.full(free.shape, -1)
        alpha[free] = n + np.arange(free.sum())
        reply = reply_numbers(n + int(free.sum()), self.costs)
        y = np.zeros(reply[-1])
        y[alpha[:, 0][free[:, 0]]] = 1.0 + np.where(pairs, T / unit, -np.inf).max(axis=2)[free[:, 0]]
        row = np.cumsum(labels).reshape(labels.shape) - 1
        build.add(row[labels], np.nonzero(labels)[0], np.ones(int(labels.sum())))
        e, side, a = np.nonzero(free)
        build.add(row[self.edges[e, side], a], alpha[free], np.full(e.size, -1.0))
        h = f[labels] / unit
        for v, L in enumerate(self.costs):
            own, rows = np.flatnonzero(labels[v]), row[v, labels[v]]
            build.replies(rows, own, L / unit, int(reply[v]))
            h[rows] += L[-1, own] / unit
        build.close(h)
        e, a, b = np.nonzero(pairs)
        for number in (alpha[e, 0, a], alpha[e, 1, b]):
            rows = np.flatnonzero(number >= 0)
            build.add(rows, number[rows], np.ones(rows.size))
        build.close(T[pairs] / unit)
        made = assembled(build, y, slice(n), reply, self.costs)
        rooms = np.full(labels.shape, np.inf)
        rooms[labels] = (made.G @ y - made.h)[: h.size]
        y[:n] = 1.0 - rooms.min(axis=1)
        return made, alpha

    def _marginals(self, z: np.ndarray, labels: np.ndarray, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Node and edge marginals that multipliers stand for, made to agree exactly."""
        q, joint, n_nodes = np.zeros(labels.shape), np.zeros(pairs.shape), int(labels.sum())
        q[labels] = z[:n_nodes]
        q /= q.sum(axis=1, keepdims=True)
        joint[pairs] = z[n_nodes : n_nodes + int(pairs.sum())]
        stars.agree(self.graph, q, joint)
        return q, joint

    def cover(self, unit: float) -> Cover:
        """The programme with scores left open: one row for each label of a node, one for each pair of an edge."""
        (n, m), k = (self.n_states.size, len(self.edges)), int(self.n_states.max())
        labels, pairs = np.ones((n, k), np.bool_), np.ones((m, k, k), np.bool_)
        made, _ = self._assemble(np.zeros((n, k)), np.zeros((m, k, k)), labels, pairs, unit)
        scores = sparse.eye(made.h.size, n * k + m * k * k, format="csr")  # in the order of the rows
        return Cover(made, scores, lambda z: self._marginals(z, labels, pairs))

    def start(self) -> tuple[np.ndarray, ...]:
        """Uniform replies and multipliers of 0, from which sweeps start."""
        return *super().start(), np.zeros((len(self.edges), 2, int(self.n_states.max())))

    def improve(
        self, f: np.ndarray, T: np.ndarray, smoothing: float, state: tuple[np.ndarray, ...], rounds: int
    ) -> Equilibrium:
        """Sweep ``rounds`` times at ``smoothing > 0`` from ``state``, in place.

        What ``p`` may lose is bounded, and ``reply``, the edges' own beliefs, attains that; ``q`` are marginals.
        """
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
        gap = max(upper - attained, 0.0) + cost - self.risk(q)
        return self.certified(upper, gap, q, joint, p, smoothing * entropy, (q, own))

    def ceiling(self, f: np.ndarray, T: np.ndarray, state: tuple[np.ndarray, ...]) -> float:
        """What the best adversary gets against the replies in ``state``, at most, without smoothing."""
        return float(stars.bound(self.loss, self.graph, f, stars.heated(T, 0.0), 0.0, *state))

    def _left(self, f: np.ndarray, T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        labels, pairs = consistent(f, T, self.edges)  # what is left without a partner would keep its mass
        return np.where(labels, f, -np.inf), np.where(pairs, T, -np.inf)


def _entropy(q: np.ndarray) -> float:
    positive = q[q > 0]
    return -float(positive @ np.log(positive))
