"""Rounds of sweeps over all networks of a batch, each from the replies that are there.

Forests are played in blocks by the compiled sweep in the probability domain, components beyond its range in the log
domain; so are trees of cliques, and relaxed networks by their own solvers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import nashlearn.kernels.messages as messages
from nashlearn.game import Equilibrium
from nashlearn.games.networks.cliques import CliqueArrays
from nashlearn.games.networks.layout import components
from nashlearn.kernels.forest import play
from nashlearn.solvers.threads import Run

if TYPE_CHECKING:
    from nashlearn.games.networks.batch import Networks

__all__ = ["State", "ceilings", "sweep"]


class State(NamedTuple):
    """Replies (n, options) but of relaxed networks, what each of these keeps, and the last smoothing of sweeps."""

    p: np.ndarray
    others: list[tuple[np.ndarray, ...]]
    smoothing: float


def sweep(networks: Networks, S: np.ndarray, T: np.ndarray, state: State, rounds: int, run: Run) -> Equilibrium:
    """Renew all replies ``rounds`` times, in place, at the smoothing of the state; the next call overwrites ``q``.

    ``S`` (n, k) scores nodes, ``T`` (m, k, k) edges, or (1, k, k) all of them alike. Cost: O(k^2) an edge and round.
    """
    sums, edges = _forests(networks, S, T, state, rounds, run)
    joined, n = networks.joined, networks.n_swept
    if joined.n:
        of = networks.loss.of(slice(n)).compiled(), np.ascontiguousarray(S[:n]), np.ascontiguousarray(T)
        out = state.p, networks.room[:n], edges, networks.weight[networks.numbers]
        sums[:, networks.numbers] = joined.sweep(*of, state.smoothing, rounds, *out, run).T
    value, cost, risk, scored = sums
    gap = np.maximum(cost - risk, 0.0)
    added = value - cost - scored  # by smoothing: what is left of the value at p
    numbers = np.array([value - gap, gap, risk + added, risk])
    results = run(
        lambda one, own: one.solver.improve(
            S[one.rows], networks.edge_tables(T, one.number), state.smoothing, own, rounds
        ),
        list(zip(networks.others, state.others, strict=True)),
    )
    nodes, beliefs = networks.room, None if networks.is_exact else edges.copy()
    for one, seen in zip(networks.others, results, strict=True):
        numbers[:, one.number] = seen.value, seen.gap, seen.entropy, seen.risk
        nodes[one.rows] = seen.q[0]
        for table, (_, pairs) in ((edges, seen.q), (beliefs, seen.reply or seen.q)):
            if table is None:
                continue
            if len(T) == 1:
                table[0] += networks.weight[one.number] * pairs.sum(axis=0)
            else:
                table[networks.between(one.number)] = pairs
    value, gap, entropy, risk = numbers
    reply = None if beliefs is None else (nodes, beliefs)
    q: Any = nodes, edges
    return Equilibrium(value, q, networks.replies(state), gap, entropy, risk, reply, state)


def _forests(
    networks: Networks, S: np.ndarray, T: np.ndarray, state: State, rounds: int, run: Run
) -> tuple[np.ndarray, np.ndarray]:
    """Sweep the forests: each network's value at p, ``<p, L q>``, its least, ``<scores, q>``; and edge marginals."""
    k, eps, shared, q = networks.k, state.smoothing, len(T) == 1, networks.room
    tops = T.max(axis=(1, 2)) if len(T) else np.zeros(0)
    W = np.exp((T - tops[:, None, None]) / eps)
    blocks = networks.blocks
    if shared:
        tables = np.zeros((len(blocks), 1, k, k))
    else:
        tables = np.broadcast_to(np.zeros_like(T), (len(blocks), *T.shape))
        tables.flags.writeable = True
    forest, of_rows = networks.sharing if shared else (networks.forest, np.ones(networks.n))
    lost = np.zeros(networks.n_forest, dtype=np.bool_)
    sums, loss, p = networks.sums, networks.loss.compiled(), state.p[: networks.n_forest]

    def block(i: int) -> None:
        first, last = blocks[i]
        play(loss, forest, S, T, tops, W, eps, rounds, p, q, tables[i], of_rows, first, last, lost, sums)

    run(block, [(i,) for i in range(len(blocks))])
    edges = tables.sum(axis=0) if shared else tables[0] if blocks else np.zeros_like(T)
    edges *= W
    if lost.any():
        flat = networks.tables(T)
        # Whole components, which are marked at their roots.
        every = np.repeat(lost[networks.roots], np.diff(networks.roots, append=networks.n_forest))
        beyond = [first + np.flatnonzero(every[first:last]) for first, last in blocks if every[first:last].any()]
        for rows, pairs in zip(
            beyond,
            run(lambda rows: _any_range(networks, rows, flat, S, state, rounds, q, sums), [(r,) for r in beyond]),
            strict=True,
        ):
            inner = rows[networks.forest.parent[rows] >= 0]
            table = np.zeros_like(inner) if shared else networks.forest.table[inner]
            np.add.at(edges, table, of_rows[inner, None, None] * pairs)
    return networks.totals(sums), edges


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
    loss = networks.loss.of(rows).compiled()
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


def ceilings(networks: Networks, S: np.ndarray, T: np.ndarray, state: State, run: Run) -> np.ndarray:
    """What the best adversary of each network gets against the replies, without smoothing."""
    found = np.zeros(networks.sizes.size)
    if networks.n_forest:
        t, E = networks.tables(T)
        inside = np.zeros((networks.n_forest, networks.k))
        lift = state.p[: networks.n_forest] @ networks.costs * networks.counts[: networks.n_forest, None]
        messages.inward(t, np.ascontiguousarray(S[: networks.n_forest]), lift, E, 0.0, inside)
        found[:] = np.bincount(networks.owner[networks.roots], inside[networks.roots, 0], found.size)
    if networks.joined.n:
        n = networks.n_swept
        of = networks.loss.of(slice(n)).compiled(), np.ascontiguousarray(S[:n]), np.ascontiguousarray(T)
        found[networks.numbers] = networks.joined.ceilings(*of, state.p, run)
    for one, own in zip(networks.others, state.others, strict=True):
        found[one.number] = one.solver.ceiling(S[one.rows], networks.edge_tables(T, one.number), own)
    return found
