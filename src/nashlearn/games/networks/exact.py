"""The game without smoothing on a clique tree: a linear programme, with a certificate that trusts nothing.

The predictor chooses replies ``p`` and messages ``m`` such that each clique's message covers its table,

    min sum of the roots' messages,   m_c(s) >= f(a) + (L' p)(a) + E_c(a, s) + sum of the children's messages,

and the multipliers of these constraints are the adversary's marginals. First the scores are replaced by how far each
entry falls short of the best labelling through it; entries that fall short by more than the loss can lift are dropped
(no best reply uses them), so that what remains is of the size of the loss whatever the scores were.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from nashlearn.games.networks import messages
from nashlearn.games.networks.cliques import CliqueArrays, columns_of, table_of
from nashlearn.games.networks.programme import Builder, Solution, interior_point

__all__ = [
    "Assembled",
    "Cover",
    "assemble",
    "assembled",
    "calibrate",
    "read_replies",
    "reply_numbers",
    "shortfalls",
    "solve",
]

_TOL = 1e-13  # of the largest cost: the limit of the arithmetic


def shortfalls(t: CliqueArrays, f: np.ndarray, E: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """The best labelling's score, tables that sum to each labelling's distance from it, and the max-marginals'."""
    lift = np.zeros_like(f)
    inside = np.full((t.node.size, int(t.columns.max())), -np.inf)
    outside = np.zeros_like(inside)
    best = messages.inward(t, f, lift, E, 0.0, inside)
    reduced = np.empty(E.size)
    if best == -np.inf:
        return best, reduced, reduced
    B = np.empty(E.size)
    messages.beliefs(t, t.table, f, lift, E, 0.0, inside, outside, B)
    tops = np.maximum.reduceat(B, t.table)
    for c in range(t.node.size):
        own = f[t.node[c], : t.rows[c], None] + table_of(t, c, E)
        d = t.child[c]
        while d >= 0:
            own = own + inside[d, columns_of(t, d)].reshape(own.shape)
            d = t.sibling[d]
        with np.errstate(invalid="ignore"):  # -inf minus -inf: no labelling there
            own = own - inside[c, : t.columns[c]]
        own[np.isnan(own)] = -np.inf
        table_of(t, c, reduced)[:] = own
        table_of(t, c, B)[:] -= tops[c]
    return best, reduced, B


def calibrate(t: CliqueArrays, Q: np.ndarray) -> None:
    """Scale the tables ``Q``, parents first, so that they agree on their separators."""
    for c in range(t.node.size):
        own = table_of(t, c, Q)
        if t.parent[c] < 0:
            own /= own.sum()
            continue
        mass = own.sum(axis=0)
        target = np.bincount(columns_of(t, c), weights=table_of(t, t.parent[c], Q).ravel(), minlength=mass.size)
        own *= np.divide(target, mass, out=np.zeros(mass.size), where=mass > 0)


def _alive(t: CliqueArrays, distance: np.ndarray, least: float) -> np.ndarray:
    """Entries no farther than ``least`` from the best, of the columns that their parents' entries need.

    Rounding may tell an entry and the best of its child's column apart: that best is taken in any case.
    """
    alive = np.zeros(distance.size, dtype=np.bool_)
    for c in range(t.node.size):
        own, kept, u = table_of(t, c, distance), table_of(t, c, alive), t.parent[c]
        needed = np.full(t.columns[c], u < 0)
        if u >= 0:
            needed[columns_of(t, c)[table_of(t, u, alive).ravel()]] = True
        kept[:] = (own >= least) & needed
        kept[own.argmax(axis=0), np.arange(needed.size)] |= needed
    return alive


def reply_numbers(first: int, costs: list[np.ndarray]) -> np.ndarray:
    """Where each node's replies, but the last, start among the variables, which are ``first`` without them; the end."""
    return first + np.concatenate([[0], np.cumsum([L.shape[0] - 1 for L in costs])]).astype(np.int64)


def _message_numbers(t: CliqueArrays, alive: np.ndarray) -> np.ndarray:
    """Numbers of the messages that some entry needs, -1 for others."""
    needed = np.zeros((t.node.size, int(t.columns.max())), dtype=np.bool_)
    for c in range(t.node.size):
        needed[c, : t.columns[c]] = table_of(t, c, alive).any(axis=0)
    return np.where(needed, np.cumsum(needed).reshape(needed.shape) - 1, -1)


class Assembled(NamedTuple):
    """A network's programme ``min <objective, y>``, ``G y >= h``, and a point ``y`` strictly within.

    The first ``n_tables`` constraints have the adversary's tables for multipliers; node ``v``'s replies, but the last,
    are the variables from ``reply[v]`` on.
    """

    G: sparse.csr_matrix
    h: np.ndarray
    objective: np.ndarray
    y: np.ndarray
    reply: np.ndarray
    n_tables: int

    def multipliers(self, mass: float, s: np.ndarray) -> np.ndarray:
        """A start for the multipliers of constraints that ``y`` satisfies by ``s``: tables with ``mass`` together."""
        return mass / (1.0 / s[: self.n_tables]).sum() / s

    def solved(self, mass: float) -> Solution:
        """The optimum, from such a start."""
        z = self.multipliers(mass, self.G @ self.y - self.h)
        return interior_point(self.G, self.h, self.objective, self.y, z, _TOL)


class Cover(NamedTuple):
    """A network's programme with its scores left open: ``G y >= h + scores theta``.

    ``theta`` holds the node scores (n, k), then the edge scores (m, k, k), flat. ``marginals`` turns multipliers of the
    constraints into the adversary's node and edge marginals, exactly feasible.
    """

    made: Assembled
    scores: sparse.csr_matrix
    marginals: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def assemble(t: CliqueArrays, alive: np.ndarray, E: np.ndarray, costs: list[np.ndarray]) -> Assembled:
    """The programme of a clique tree with tables ``E``, of whose entries those ``alive`` count: for each a row

    ``m_c(s) - (L' p)(a) - sum of the children's messages >= E(a, s)``.
    """
    message, build = _message_numbers(t, alive), Builder()
    reply = reply_numbers(int(message.max()) + 1, costs)
    for c, v in enumerate(t.node):
        x = np.flatnonzero(table_of(t, c, alive))
        (a, s), ids = np.divmod(x, t.columns[c]), np.arange(x.size)
        build.add(ids, message[c, s], np.ones(x.size))
        d = t.child[c]
        while d >= 0:
            build.add(ids, message[d, t.maps[t.map[d] + x]], np.full(x.size, -1.0))
            d = t.sibling[d]
        build.replies(ids, a, costs[v], int(reply[v]))
        build.close(E[t.table[c] + x] + costs[v][-1, a])
    y = np.zeros(reply[-1])
    _cover(t, message, costs, y)
    return assembled(build, y, message[t.parent < 0, 0], reply, costs)


def assembled(build: Builder, y: np.ndarray, tops: Any, reply: np.ndarray, costs: list[np.ndarray]) -> Assembled:
    """The programme of rows for tables, which minimises the sum of the variables ``tops``; ``y`` gets its replies."""
    n_tables, objective = build.rows, np.zeros(y.size)
    objective[tops] = 1.0
    for v, L in enumerate(costs):
        build.simplex(int(reply[v]), L.shape[0])
        y[reply[v] : reply[v + 1]] = 1.0 / L.shape[0]
    return Assembled(*build.matrix(y.size), objective, y, reply[:-1], n_tables)


def read_replies(y: np.ndarray, reply: np.ndarray, costs: list[np.ndarray]) -> np.ndarray:
    """The replies ``p`` (n, options) that the variables from ``reply`` on stand for, made exactly feasible."""
    p = np.zeros((len(costs), max(L.shape[0] for L in costs)))
    for v, L in enumerate(costs):
        own = y[reply[v] : reply[v] + L.shape[0] - 1]
        own = np.append(own, 1.0 - own.sum()).clip(min=0)
        p[v, : L.shape[0]] = own / own.sum()
    return p


def solve(
    t: CliqueArrays, f: np.ndarray, E: np.ndarray, costs: list[np.ndarray]
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """Best score, distances from it as tables, tables of ``q`` and replies ``p``; ``costs[v]`` is a node's matrix."""
    best, reduced, distance = shortfalls(t, f, E)
    span = sum(float(L.max() - L.min()) for L in costs)
    unit = max(float(L.max()) for L in costs) or 1.0
    rounding = 1e-12 * max(abs(best), float(np.abs(f[f > -np.inf]).max()))
    alive = _alive(t, distance, -span * (1 + 1e-9) - rounding)
    costs = [L / unit for L in costs]
    made = assemble(t, alive, reduced / unit, costs)
    found = made.solved(t.node.size)
    Q = np.zeros(E.size)
    Q[alive] = found.z[: made.n_tables]
    calibrate(t, Q)
    return best, reduced, Q, read_replies(found.y, made.reply, costs)


def _cover(t: CliqueArrays, message: np.ndarray, costs: list[np.ndarray], y: np.ndarray) -> None:
    """Messages that cover all tables with room to spare: no shortfall is positive, no lift above the mean cost's."""
    height = np.zeros(t.node.size)
    for c in range(t.node.size - 1, -1, -1):
        L = costs[t.node[c]]
        height[c] += 1.0 + L.mean(axis=0).max()
        own = message[c]
        y[own[own >= 0]] = height[c]
        if t.parent[c] >= 0:
            height[t.parent[c]] += height[c]
