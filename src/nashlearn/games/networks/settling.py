"""Strategies of both players for many networks, each settled to an accuracy of its own.

A network's strategies do not depend on which others are settled beside it: with smoothing its replies are those of the
first look at which its own gap is small enough; without smoothing it is played by itself, exactly or by sweeps that
cool down until the gap of the game itself is small enough.
"""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from nashlearn.game import Equilibrium
from nashlearn.games.networks.sweeps import State, sweep
from nashlearn.solvers.threads import Run

if TYPE_CHECKING:
    from nashlearn.games.networks.batch import Networks

__all__ = ["played", "swept"]

_SWEEPS = 4  # between two looks
_LOOKS = 3000
_COPIED = 1 << 10  # rows that a thread copies at a time
_PLAYED = 1 << 12  # entries of a network's tables up to which the exact game is played at once
_COOLING = 0.3 * 0.3 ** np.arange(9)  # smoothing of sweeps towards the exact game, relative to the largest loss


def swept(
    networks: Networks, S: np.ndarray, T: np.ndarray, smoothing: float, tol: float, state: State, run: Run
) -> Equilibrium:
    """Sweep all networks together; each one's strategies are kept as soon as its gap is ``tol`` a node at most."""
    state = state._replace(smoothing=smoothing)
    of_edges = np.repeat(np.arange(networks.sizes.size), networks.edge_counts)
    p, q = np.empty((networks.n, networks.costs.shape[0])), np.empty((networks.n, networks.k))
    pairs, own = np.zeros_like(T), np.zeros_like(T)
    numbers = np.empty((4, networks.sizes.size))
    aim, moving = tol * np.maximum(networks.sizes, 1), np.ones(networks.sizes.size, dtype=np.bool_)
    cuts = list(itertools.pairwise([*range(0, networks.n, _COPIED), networks.n]))
    for left in reversed(range(_LOOKS)):
        found = sweep(networks, S, T, state, _SWEEPS, run)
        new = moving & ~(found.gap > aim) if left else moving.copy()  # settled at this look
        moving &= ~new
        run(partial(_keep, found, new[networks.owner], p, q), cuts)
        edges = slice(None) if len(T) == 1 else new[of_edges]
        pairs[edges] = found.q[1][edges]
        if found.reply is not None:
            own[edges] = found.reply[1][edges]
        numbers[:, new] = np.array([found.value, found.gap, found.entropy, found.risk])[:, new]
        if not moving.any():
            break
    value, gap, entropy, risk = numbers
    reply = None if networks.is_exact else (q, own)
    both: Any = q, pairs
    return Equilibrium(value, both, p, gap, entropy, risk, reply, state)


def _keep(found: Equilibrium, new: np.ndarray, p: np.ndarray, q: np.ndarray, first: int, last: int) -> None:
    """Copy the strategies of those of the rows ``first`` to ``last`` that are ``new``."""
    rows, own = slice(first, last), new[first:last]
    if own.all():
        p[rows], q[rows] = found.p[rows], found.q[0][rows]
    elif own.any():
        p[rows][own], q[rows][own] = found.p[rows][own], found.q[0][rows][own]


def played(
    networks: Networks, S: np.ndarray, T: np.ndarray, smoothing: float, tol: float, state: State, run: Run
) -> Equilibrium:
    """Play the games without smoothing, one by one."""
    p, q = np.zeros((networks.n, networks.costs.shape[0])), np.zeros((networks.n, networks.k))
    pairs, shared = np.zeros_like(T), len(T) == 1

    def play(i: int) -> tuple[Equilibrium, np.ndarray]:
        rows, tables = networks.rows_of(i), np.ascontiguousarray(networks.edge_tables(T, i))
        found = _one(networks.solver_of(i), S[rows], tables, rows.size * tol)
        p[rows], (q[rows], own) = found.p[:, : p.shape[1]], found.q
        if not shared:
            pairs[networks.between(i)] = own
        return found, networks.weight[i] * own.sum(axis=0, keepdims=True)

    every = run(play, [(i,) for i in range(networks.sizes.size)])
    if shared:
        pairs += sum(own for _, own in every)
    value, gap, risk = np.array([(one.value, one.gap, one.risk) for one, _ in every]).reshape(-1, 3).T
    both: Any = q, pairs
    return Equilibrium(value, both, p, gap, risk, state=state)


def _one(solver: Any, f: np.ndarray, T: np.ndarray, tol: float) -> Equilibrium:
    """One network's equilibrium; a large one is left at sweeps where these are enough for ``tol``."""
    if solver.n_entries > _PLAYED and tol > 0:
        unit = max(float(L.max()) for L in solver.costs) or 1.0
        state = solver.start()
        for smoothing in unit * _COOLING:
            seen = solver.improve(f, T, float(smoothing), state, 2 * _SWEEPS)
            upper = solver.ceiling(f, T, state)
            found = solver.certified(upper, upper - solver.secured(f, T, *seen.q), *seen.q, state[0])
            if found.gap <= tol:
                return found
    return solver.solve(f, T, 0.0, np.inf)
