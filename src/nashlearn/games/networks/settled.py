"""Strategies of both players for many networks, each settled to an accuracy of its own.

A network's strategies do not depend on which others are settled beside it: with smoothing its replies are those of the
first look at which its own gap is small enough; without smoothing it is played by itself, exactly or by sweeps that
cool down until the gap of the game itself is small enough.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nashlearn.games.networks.batch import Networks
from nashlearn.solvers.threads import Run

__all__ = ["Settled", "settle"]

_SWEEPS = 4  # between two looks
_LOOKS = 300
_PLAYED = 1 << 12  # entries of a network's tables up to which the exact game is played at once
_HEATS = 0.3 * 0.3 ** np.arange(9)  # of sweeps towards the exact game, relative to the largest loss


class Settled(NamedTuple):
    """Replies ``p`` (n, options) and marginals ``q`` (n, k), in the order of rows, and the largest gap of a node.

    The gap of a network, shared out among its nodes, bounds what either player could still gain there.
    """

    p: np.ndarray
    q: np.ndarray
    gap: float


def settle(networks: Networks, S: np.ndarray, T: np.ndarray, smoothing: float, accuracy: float, run: Run) -> Settled:
    """Strategies at which no network leaves a gap of more than ``accuracy`` a node, where that is reached.

    Parameters
    ----------
    networks : Networks
    S, T : ndarray
        Scores of nodes (n, k) and of edges (m, k, k), or (1, k, k) for all edges alike.
    smoothing : float
        Weight of the entropy; the gap is that of the game at this smoothing.
    accuracy : float
        In units of the loss.
    run : callable
        How to call a function on blocks, see :func:`nashlearn.solvers.threads.threads`.
    """
    return _swept(networks, S, T, smoothing, accuracy, run) if smoothing else _played(networks, S, T, accuracy, run)


def _swept(networks: Networks, S: np.ndarray, T: np.ndarray, eps: float, accuracy: float, run: Run) -> Settled:
    """Sweep all networks together; each one's strategies are kept as soon as they are settled."""
    one, owner = np.ones(networks.n), networks.owner
    p, q = np.zeros((networks.n, networks.costs.shape[0])), np.zeros((networks.n, networks.k))
    gaps = np.full(networks.sizes.size, np.inf)
    for _ in range(_LOOKS):
        played = networks.play(S, T, eps, one, run, _SWEEPS)
        replies = networks.replies()
        cost = played.nodes @ networks.costs.T * networks.counts[:, None]
        left = np.bincount(owner, (replies * cost).sum(axis=1) - cost.min(axis=1), networks.sizes.size)
        left[list(networks.loopy)] += played.slacks
        new = gaps > accuracy  # not settled at an earlier look
        rows = new[owner]
        p[rows], q[rows] = replies[rows], played.nodes[rows]
        gaps[new] = np.maximum(left[new], 0.0) / np.maximum(networks.sizes[new], 1)
        if (gaps <= accuracy).all():
            break
    return Settled(p, q, float(gaps.max(initial=0.0)))


def _played(networks: Networks, S: np.ndarray, T: np.ndarray, accuracy: float, run: Run) -> Settled:
    """Play the games without smoothing, one by one."""
    p, q = np.zeros((networks.n, networks.costs.shape[0])), np.zeros((networks.n, networks.k))
    starts = np.concatenate([[0], np.cumsum(networks.edge_counts)])

    def play(i: int) -> float:
        rows, n = networks.rows_of(i), int(networks.sizes[i])
        edges = slice(starts[i], starts[i + 1])
        tables = np.broadcast_to(T, (edges.stop - edges.start, *T.shape[1:])) if len(T) == 1 else T[edges]
        own, labels, gap = _one(networks.solver_of(i), S[rows], np.ascontiguousarray(tables), n * accuracy)
        p[rows], q[rows] = own[:, : p.shape[1]], labels
        return gap / max(n, 1)

    gaps = run(play, [(i,) for i in range(networks.sizes.size)])
    return Settled(p, q, float(max(gaps, default=0.0)))


def _one(solver: Any, f: np.ndarray, T: np.ndarray, accuracy: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Replies, node marginals and gap of one network."""
    if solver.n_entries > _PLAYED:
        unit = max(float(L.max()) for L in solver.costs) or 1.0
        state = solver.start()
        for heat in unit * _HEATS:
            seen = solver.improve(f, T, float(heat), state, 2 * _SWEEPS)
            gap = solver.ceiling(f, T, state) - solver.secured(f, T, seen.nodes, seen.pairs)
            if gap <= accuracy:
                return state[0], seen.nodes, max(gap, 0.0)
    found = solver.solve(f, T, 0.0, accuracy)
    return found.p, found.q[0], float(found.gap)
