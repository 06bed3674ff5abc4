"""Rounds of sweeps over all networks of a batch, each from the replies that are there.

Forests are played in blocks by the compiled sweep in the probability domain, components beyond its range in the log
domain, and graphs with cycles by their own solvers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nashlearn.game import Equilibrium
from nashlearn.games.networks import messages
from nashlearn.games.networks.cliques import CliqueArrays
from nashlearn.games.networks.forest import play
from nashlearn.games.networks.layout import components
from nashlearn.solvers.threads import Run

if TYPE_CHECKING:
    from nashlearn.games.networks.batch import Networks

__all__ = ["State", "Swept", "ceilings", "sweep"]


class State(NamedTuple):
    """Replies (n, options) of forests, what each network with cycles keeps, and the last smoothing of sweeps."""

    p: np.ndarray
    others: list[tuple[np.ndarray, ...]]
    smoothing: float


class Swept(NamedTuple):
    """What networks have come to: numbers for each, and the adversary's marginals, which the next round overwrites."""

    value: np.ndarray  # of the smoothed games at the replies, or a bound on it where networks are relaxed
    cost: np.ndarray  # <p, L q>
    risk: np.ndarray  # min_p <p, L q>
    scored: np.ndarray  # <scores, q>
    slack: np.ndarray  # by how much the bound of a relaxed network exceeds what its marginals get against p
    nodes: np.ndarray
    pairs: np.ndarray  # of edges that share a table the weighted sum
    own: np.ndarray | None  # the edges' own beliefs, for which bounds of relaxed networks are attained

    def equilibrium(self, p: np.ndarray, state: State) -> Equilibrium:
        """With replies ``p``, those of all rows. What smoothing adds is what is left of the value at ``p``."""
        gap = np.maximum(self.cost - self.risk + self.slack, 0.0)
        added = self.value - self.slack - self.cost - self.scored
        reply = None if self.own is None else (self.nodes, self.own)
        q: Any = self.nodes, self.pairs
        return Equilibrium(self.value - gap, q, p, gap, self.risk + added, self.risk, reply, state)


def sweep(networks: Networks, S: np.ndarray, T: np.ndarray, state: State, rounds: int, run: Run) -> Swept:
    """Renew all replies ``rounds`` times, in place, at the smoothing of the state.

    ``S`` (n, k) scores nodes, ``T`` (m, k, k) edges, or (1, k, k) all of them alike. Cost: O(k^2) an edge and round.
    """
    k, eps, shared, q = networks.k, state.smoothing, len(T) == 1, networks.room
    tops = T.max(axis=(1, 2)) if len(T) else np.zeros(0)
    W = np.exp((T - tops[:, None, None]) / eps)
    blocks = networks.blocks
    if shared:
        tables = np.zeros((len(blocks), 1, k, k))
    else:
        tables = np.broadcast_to(np.zeros_like(T), (len(blocks), *T.shape))
        tables.flags.writeable = True
    forest = networks.forest if not shared else networks.forest._replace(table=np.zeros_like(networks.forest.table))
    of_rows = networks.weight[networks.owner] if shared else np.ones(networks.n)
    lost = np.zeros(networks.n_forest, dtype=np.bool_)
    sums = np.empty((networks.n_forest, 4))

    def block(i: int) -> None:
        first, last = blocks[i]
        play(networks.loss, forest, S, T, tops, W, eps, rounds, state.p, q, tables[i], of_rows, first, last, lost, sums)

    run(block, [(i,) for i in range(len(blocks))])
    edges = tables.sum(axis=0) if shared else tables[0] if blocks else np.zeros_like(T)
    edges *= W
    if lost.any():
        flat = networks.tables(T)
        beyond = [rows for rows in (_lost(networks, lost, *cut) for cut in blocks) if rows.size]
        for rows, pairs in zip(
            beyond,
            run(lambda rows: _any_range(networks, rows, flat, S, state, rounds, q, sums), [(r,) for r in beyond]),
            strict=True,
        ):
            inner = rows[networks.forest.parent[rows] >= 0]
            table = np.zeros_like(inner) if shared else networks.forest.table[inner]
            np.add.at(edges, table, of_rows[inner, None, None] * pairs)
    found = np.zeros((5, networks.sizes.size))
    for total, column in zip(found, sums[networks.roots].T, strict=False):
        total[:] = np.bincount(networks.owner[networks.roots], column, total.size)
    return _with_others(networks, S, T, state, rounds, run, found, edges)


def _with_others(
    networks: Networks,
    S: np.ndarray,
    T: np.ndarray,
    state: State,
    rounds: int,
    run: Run,
    found: np.ndarray,
    edges: np.ndarray,
) -> Swept:
    """What networks with cycles come to, beside what the forests have."""
    q, shared = networks.room, len(T) == 1
    results = run(
        lambda one, own: one.solver.improve(S[one.rows], networks.edge_tables(T, one), state.smoothing, own, rounds),
        list(zip(networks.others, state.others, strict=True)),
    )
    beliefs = None if networks.is_exact else edges.copy()
    for one, own, seen in zip(networks.others, state.others, results, strict=True):
        q[one.rows] = seen.nodes
        costs = seen.nodes @ networks.costs.T * networks.counts[one.rows, None]
        scores = float((S[one.rows] * seen.nodes).sum() + (networks.edge_tables(T, one) * seen.pairs).sum())
        expected = float((own[0][:, : costs.shape[1]] * costs).sum())
        found[:, one.number] = seen.value, expected, float(costs.min(axis=1).sum()), scores, seen.slack
        for table, pairs in ((edges, seen.pairs), (beliefs, seen.own)):
            if table is None:
                continue
            if shared:
                table[0] += networks.weight[one.number] * pairs.sum(axis=0)
            else:
                table[one.edges] = pairs
    value, cost, risk, scored, slack = found
    return Swept(value, cost, risk, scored, slack, q, edges, beliefs)


def _lost(networks: Networks, lost: np.ndarray, first: int, last: int) -> np.ndarray:
    """The rows between two of the components that are marked as lost at their roots."""
    a, b = np.searchsorted(networks.roots, (first, last))
    ends = np.append(networks.roots[1:], networks.n_forest)
    ranges = [np.arange(r, e) for r, e in zip(networks.roots[a:b], ends[a:b], strict=True) if lost[r]]
    return np.concatenate(ranges) if ranges else np.zeros(0, dtype=np.int64)


def _any_range(
    networks: Networks,
    rows: np.ndarray,
    flat: tuple[CliqueArrays, np.ndarray],
    S: np.ndarray,
    state: State,
    rounds: int,
    q: np.ndarray,
    sums: np.ndarray,
) -> np.ndarray:
    """Play whole components in the log domain, as the compiled sweep does; marginals of the edges to parents."""
    t, E, k, eps = components(flat[0], rows), flat[1], networks.k, state.smoothing
    f, p = S[rows], state.p[rows]
    lift = p @ networks.costs * networks.counts[rows, None]
    inside, outside = np.zeros((rows.size, k)), np.zeros((rows.size, k))
    messages.inward(t, f, lift, E, eps, inside)
    loss = networks.loss._replace(weights=networks.loss.weights[rows])
    for _ in range(rounds):
        messages.sweep(loss, t, f, lift, E, eps, p, inside, outside)
    state.p[rows] = p
    # Cliques share tables, but each needs a place of its own for its marginals.
    B = np.empty((rows.size, k * k))
    messages.beliefs(t, np.arange(0, B.size, k * k), f, lift, E, eps, inside, outside, B.ravel())
    inner = t.parent >= 0
    B[~inner, k:] = -np.inf
    joint = np.exp((B - B.max(axis=1, keepdims=True)) / eps)
    joint /= joint.sum(axis=1, keepdims=True)
    tables = joint[inner].reshape(-1, k, k)
    q[rows[inner]] = tables.sum(axis=2)
    q[rows[~inner]] = joint[~inner, :k]
    cost = q[rows] @ networks.costs.T * networks.counts[rows, None]
    scored = (f * q[rows]).sum(axis=1)
    scored[inner] += (E[t.table[inner, None] + np.arange(k * k)] * joint[inner]).sum(axis=1)
    component = np.cumsum(~inner) - 1
    sums[rows[~inner], 0] = inside[~inner, 0]
    for i, each in enumerate(((p * cost).sum(axis=1), cost.min(axis=1), scored)):
        sums[rows[~inner], 1 + i] = np.bincount(component, each)
    return np.where(networks.forest.flipped[rows[inner], None, None], tables, tables.swapaxes(1, 2))


def ceilings(networks: Networks, S: np.ndarray, T: np.ndarray, state: State) -> np.ndarray:
    """What the best adversary of each network gets against the replies, without smoothing."""
    found = np.zeros(networks.sizes.size)
    if networks.n_forest:
        t, E = networks.tables(T)
        inside = np.zeros((networks.n_forest, networks.k))
        lift = state.p @ networks.costs * networks.counts[: networks.n_forest, None]
        messages.inward(t, S[: networks.n_forest], lift, E, 0.0, inside)
        found[:] = np.bincount(networks.owner[networks.roots], inside[networks.roots, 0], found.size)
    for one, own in zip(networks.others, state.others, strict=True):
        found[one.number] = one.solver.ceiling(S[one.rows], networks.edge_tables(T, one), own)
    return found
