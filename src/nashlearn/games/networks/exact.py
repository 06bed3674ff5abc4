"""The game without smoothing on a clique tree: a linear programme, with a certificate that trusts nothing.

The predictor chooses replies ``p`` and messages ``m`` such that each clique's message covers its table,

    min sum of the roots' messages,   m_c(s) >= f(a) + (L' p)(a) + E_c(a, s) + sum of the children's messages,

and the multipliers of these constraints are the adversary's marginals. First the scores are replaced by how far each
entry falls short of the best labelling through it; entries that fall short by more than the loss can lift are dropped
(no best reply uses them), so that what remains is of the size of the loss whatever the scores were.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import sparse

from nashlearn.games.networks import messages
from nashlearn.games.networks.cliques import CliqueArrays
from nashlearn.games.networks.programme import Builder, interior_point

__all__ = ["Assembled", "Cover", "assemble", "calibrate", "read_replies", "shortfalls", "solve"]

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
        rows, columns, start = t.rows[c], t.columns[c], t.table[c]
        own = f[t.node[c], :rows, None] + E[start : start + rows * columns].reshape(rows, columns)
        d = t.child[c]
        while d >= 0:
            own = own + inside[d, t.maps[t.map[d] : t.map[d] + rows * columns]].reshape(rows, columns)
            d = t.sibling[d]
        with np.errstate(invalid="ignore"):  # -inf minus -inf: no labelling there
            own = own - inside[c, :columns]
        own[np.isnan(own)] = -np.inf
        reduced[start : start + rows * columns] = own.ravel()
        B[start : start + rows * columns] -= tops[c]
    return best, reduced, B


def calibrate(t: CliqueArrays, Q: np.ndarray) -> None:
    """Scale the tables ``Q``, parents first, so that they agree on their separators."""
    for c in range(t.node.size):
        rows, columns, start, u = t.rows[c], t.columns[c], t.table[c], t.parent[c]
        own = Q[start : start + rows * columns].reshape(rows, columns)
        if u < 0:
            own /= own.sum()
            continue
        size = t.rows[u] * t.columns[u]
        target = np.bincount(
            t.maps[t.map[c] : t.map[c] + size], weights=Q[t.table[u] : t.table[u] + size], minlength=columns
        )
        mass = own.sum(axis=0)
        own *= np.divide(target, mass, out=np.zeros(columns), where=mass > 0)


def _alive(t: CliqueArrays, distance: np.ndarray, least: float) -> np.ndarray:
    """Entries no farther than ``least`` from the best, of the columns that their parents' entries need.

    Rounding may tell an entry and the best of its child's column apart: that best is taken in any case.
    """
    alive = np.zeros(distance.size, dtype=np.bool_)
    for c in range(t.node.size):
        rows, columns, start, u = t.rows[c], t.columns[c], t.table[c], t.parent[c]
        own = distance[start : start + rows * columns].reshape(rows, columns)
        needed = np.ones(columns, dtype=np.bool_)
        if u >= 0:
            size = t.rows[u] * t.columns[u]
            needed[:] = False
            needed[t.maps[t.map[c] : t.map[c] + size][alive[t.table[u] : t.table[u] + size]]] = True
        kept = (own >= least) & needed
        kept[own.argmax(axis=0), np.arange(columns)] |= needed
        alive[start : start + rows * columns] = kept.ravel()
    return alive


class _Variables:
    """Numbers of the variables: messages that some entry needs, then each node's replies but the last."""

    def __init__(self, t: CliqueArrays, alive: np.ndarray, costs: list[np.ndarray]):
        self.message = np.full((t.node.size, int(t.columns.max())), -1)
        used = 0
        for c in range(t.node.size):
            rows, columns, start = t.rows[c], t.columns[c], t.table[c]
            own = alive[start : start + rows * columns].reshape(rows, columns).any(axis=0)
            self.message[c, :columns][own] = used + np.arange(own.sum())
            used += int(own.sum())
        self.n_messages = used
        self.reply = np.zeros(len(costs), dtype=np.int64)
        for v, L in enumerate(costs):
            self.reply[v] = used
            used += L.shape[0] - 1
        self.size = used


def _clique_rows(
    build: Builder, t: CliqueArrays, c: int, alive: np.ndarray, E: np.ndarray, L: np.ndarray, number: _Variables
) -> None:
    """``m_c(s) - (L' p)(a) - sum of the children's messages >= E(a, s)``, for the entries alive."""
    columns, start = t.columns[c], t.table[c]
    x = np.flatnonzero(alive[start : start + t.rows[c] * columns])
    a, s, ids = x // columns, x % columns, np.arange(x.size)
    build.add(ids, number.message[c, s], np.ones(x.size))
    d = t.child[c]
    while d >= 0:
        build.add(ids, number.message[d, t.maps[t.map[d] + x]], np.full(x.size, -1.0))
        d = t.sibling[d]
    build.replies(a, L, int(number.reply[t.node[c]]))
    build.close(E[start + x] + L[-1, a])


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


class Cover(NamedTuple):
    """A network's programme with its scores left open: ``G y >= h + scores theta``.

    ``theta`` holds the node scores (n, k), then the edge scores (m, k, k), flat. ``marginals`` turns multipliers of the
    constraints into the adversary's node and edge marginals, exactly feasible.
    """

    made: Assembled
    scores: sparse.csr_matrix
    marginals: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def assemble(t: CliqueArrays, alive: np.ndarray, E: np.ndarray, costs: list[np.ndarray]) -> Assembled:
    """The programme of a clique tree with tables ``E``, of whose entries those ``alive`` count."""
    number = _Variables(t, alive, costs)
    build = Builder()
    for c in range(t.node.size):
        _clique_rows(build, t, c, alive, E, costs[t.node[c]], number)
    n_tables = build.rows
    for v, L in enumerate(costs):
        build.simplex(int(number.reply[v]), L.shape[0])
    G, h = build.matrix(number.size)
    objective = np.zeros(number.size)
    objective[number.message[t.parent < 0, 0]] = 1.0
    y = np.zeros(number.size)
    for v, L in enumerate(costs):
        y[number.reply[v] : number.reply[v] + L.shape[0] - 1] = 1.0 / L.shape[0]
    _cover(t, number, costs, y)
    return Assembled(G, h, objective, y, number.reply, n_tables)


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
    s = made.G @ made.y - made.h
    z = t.node.size / (1.0 / s[: made.n_tables]).sum() / s
    found = interior_point(made.G, made.h, made.objective, made.y, z, _TOL)
    Q = np.zeros(E.size)
    Q[alive] = found.z[: made.n_tables]
    calibrate(t, Q)
    return best, reduced, Q, read_replies(found.y, made.reply, costs)


def _cover(t: CliqueArrays, number: _Variables, costs: list[np.ndarray], y: np.ndarray) -> None:
    """Messages that cover all tables with room to spare: no shortfall is positive, no lift above the mean cost's."""
    height = np.zeros(t.node.size)
    for c in range(t.node.size - 1, -1, -1):
        L = costs[t.node[c]]
        height[c] += 1.0 + L.mean(axis=0).max()
        own = number.message[c]
        y[own[own >= 0]] = height[c]
        if t.parent[c] >= 0:
            height[t.parent[c]] += height[c]
