"""Markov networks on tensors in main memory: chains by the compiled sweep, without copies, other graphs one by one."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numba import njit
from torch import Tensor

from nashlearn import games
from nashlearn.games.networks.forest import Forest, play
from nashlearn.games.networks.game import loss_of
from nashlearn.games.networks.outcome import warn_of_gap
from nashlearn.solvers.threads import in_threads

__all__ = ["Room", "Rule", "best_labels", "make_room", "solve_chains", "solve_graphs"]

_FIRST = 2  # rounds before the first look at the gap: each look costs more than a round
_WORTH_A_THREAD = 1 << 17  # entries of the tables that a round reads


class Rule(NamedTuple):
    """How instances are solved: the loss of a node by name, empty for a matrix of ``costs``, and when to end."""

    loss: str
    costs: bytes
    smoothing: float
    tol: float
    max_iter: int


class Room(NamedTuple):
    """What a solver writes: losses and gaps (b,), ``q - y`` of nodes and edges, replies ``p`` (b, n, options).

    Without a target these are values at ``p`` and ``q``. Edges that share one table (k, k) are summed over: (b, k, k).
    """

    loss: Tensor
    gap: Tensor
    nodes: Tensor
    edges: Tensor
    p: Tensor


def make_room(node: Tensor, edge: Tensor, n_options: int) -> Room:
    """Room for scores ``node`` (b, n, k) and ``edge`` (k, k) or (b, m, k, k): float64 if either is, else float32."""
    b, n, k = node.shape
    kind = torch.float64 if torch.float64 in (node.dtype, edge.dtype) else torch.float32
    edges = (b, k, k) if edge.dim() == 2 else tuple(edge.shape)
    shapes = (b,), (b,), (b, n, k), edges, (b, n, n_options)
    return Room(*(node.new_empty(shape, dtype=kind) for shape in shapes))


@lru_cache(maxsize=32)
def _loss(loss: str, costs: bytes, k: int, n: int) -> tuple[Any, float]:
    """The loss of ``n`` nodes for compiled code, and the largest cost."""
    made, matrices = loss_of(_named(loss, costs, k), np.full(n, k), np.ones(n))
    return made, float(matrices[0].max())


def _named(loss: str, costs: bytes, k: int) -> Any:
    return loss or np.frombuffer(costs).reshape(-1, k)


@lru_cache(maxsize=256)
def _game(loss: str, costs: bytes, k: int, n: int, edges: bytes) -> Any:
    pairs = np.frombuffer(edges, dtype=np.int64).reshape(-1, 2)
    return games.markov(pairs, np.full(n, k), loss=_named(loss, costs, k))


@njit(cache=True, nogil=True)
def _sweeps(
    loss, forest, S, tops, W, eps, tol, max_iter, most, shared, lengths, steps, p, q, E, value, gap, lost, begin, end
):
    """Play the chains ``begin..end - 1``, each until its gap is at most ``tol`` a node; rows are padded to ``steps``.

    ``E`` sums over a chain's edges where they share ``W[0]``. How many rounds are still needed is guessed from how fast
    the gap has shrunk.
    """
    weight, sums = np.ones(S.shape[0]), np.zeros((S.shape[0], 4))
    for b in range(begin, end):
        n, first = lengths[b], b * steps
        if n == 0:
            continue
        tables = E[b : b + 1] if shared else E
        low, high = (0, 1) if shared else (b * (steps - 1), b * (steps - 1) + n - 1)
        before, rounds, done = most * n, _FIRST, 0
        while True:
            rounds = min(rounds, max_iter - done)
            tables[low:high] = 0.0
            play(loss, forest, S, W, tops, W, eps, rounds, p, q, tables, weight, first, first + n, lost, sums)
            done += rounds
            value[b], gap[b] = sums[first, 0], max(sums[first, 1] - sums[first, 2], 0.0)
            if lost[first] or not gap[b] > tol * n or done >= max_iter:
                break
            rate = min(max((gap[b] / before) ** (1.0 / rounds), 0.05), 0.95)
            before = gap[b]
            # Twice as many as the rate so far asks for: it slows down, and another look costs more.
            needed = 2.0 * np.log(tol * n / gap[b]) / np.log(rate) if tol > 0 else np.inf
            rounds = int(np.ceil(min(needed, 4.0 * done)))


@njit(cache=True, nogil=True)
def _subtract(S, T, shared, target, lengths, steps, value, q, E):
    """Take the target's score from the values and its vertex from the marginals."""
    for b in range(lengths.size):
        for t in range(lengths[b]):
            i, y = b * steps + t, target[b, t]
            value[b] -= S[i, y]
            q[i, y] -= 1.0
            if t > 0:
                z, e = target[b, t - 1], b * (steps - 1) + t - 1
                value[b] -= T[0 if shared else e, z, y]
                E[b if shared else e, z, y] -= 1.0


def _padded_chains(lengths: np.ndarray, steps: int, shared: bool) -> Forest:
    """Chains whose rows are ``steps`` apart, the edges' tables too."""
    nodes = np.arange(lengths.size * steps).reshape(-1, steps)
    parent, child, table = nodes - 1, nodes + 1, np.zeros_like(nodes)
    parent[:, 0] = -1
    child[np.arange(lengths.size), np.maximum(lengths, 1) - 1] = -1
    if not shared:
        table[:, 1:] = np.arange(lengths.size * (steps - 1)).reshape(-1, steps - 1)
    return Forest(
        parent.ravel(), child.ravel(), np.full(nodes.size, -1), table.ravel(), np.zeros(nodes.size, dtype=np.bool_)
    )


def _unusable(node: Tensor, edge: Tensor, lengths: Tensor) -> Tensor:
    """Which chains (b,) hold NaN or +inf, or a node or an edge at which everything is forbidden."""
    place = torch.arange(node.shape[1])
    bad = (~node.amax(2).isfinite() & (place < lengths[:, None])).any(1)
    if edge.dim() == 2:
        return bad | ((lengths > 1) & ~edge.amax().isfinite())
    return bad | (~edge.amax((2, 3)).isfinite() & (place[1:] < lengths[:, None])).any(1)


def solve_chains(
    node: Tensor, edge: Tensor, target: Tensor | None, lengths: Tensor, rule: Rule, room: Room
) -> None:  # fmt: skip
    """Solve smoothed chains of scores ``node`` (b, t, k), float32 or float64, and ``edge`` (k, k) or (b, t - 1, k, k).

    Chains that have no value give NaN; chains out of the fast kernel's range are solved one by one.
    """
    b, steps, k = node.shape
    unusable = _unusable(node, edge, lengths)
    whole = lengths.numpy()
    sizes = lengths.masked_fill(unusable, 0).numpy()
    shared = edge.dim() == 2
    smoothing, tol = rule.smoothing, rule.tol
    made, most = _loss(rule.loss, rule.costs, k, b * steps)
    S, T = node.reshape(-1, k).numpy(), edge.reshape(-1, k, k)
    tops = T.amax((1, 2)).to(torch.float64)
    W = ((T.to(torch.float64) - tops[:, None, None]) / smoothing).exp_().nan_to_num_(0.0)
    E = np.zeros((b, k, k)) if shared else np.zeros(T.shape)
    p = np.full((b * steps, room.p.shape[2]), 1.0 / room.p.shape[2])
    q, value, gap = room.nodes.zero_().reshape(-1, k).numpy(), np.zeros(b), np.zeros(b)
    lost = np.zeros(b * steps, dtype=np.bool_)
    forest = _padded_chains(sizes, steps, shared)

    def part(begin: int, end: int) -> None:
        _sweeps(
            made, forest, S, tops.numpy(), W.numpy(), smoothing, tol, rule.max_iter, most, shared, sizes, steps,
            p, q, E, value, gap, lost, begin, end,
        )  # fmt: skip

    in_threads(part, b, max(1, min(torch.get_num_threads(), b * steps * k * k // _WORTH_A_THREAD)))
    room.edges.copy_(torch.from_numpy(E).mul_(W).view(room.edges.shape))
    beyond = lost.reshape(b, steps).any(1)
    if beyond.any():
        sizes = np.where(beyond, 0, sizes)
    if target is not None:
        edges = room.edges.reshape(-1, k, k).numpy()
        _subtract(S, T.numpy(), shared, target.numpy(), sizes, steps, value, q, edges)
    room.loss.copy_(torch.from_numpy(value))
    room.gap.copy_(torch.from_numpy(gap))
    room.p.copy_(torch.from_numpy(p).view(room.p.shape))
    if (sizes < steps).any():
        room.p.masked_fill_((torch.arange(steps) >= torch.from_numpy(sizes)[:, None])[:, :, None], 0.0)
    places = np.arange(steps)
    pairs = np.stack([places[:-1], places[1:]], axis=1)
    for i in np.flatnonzero(beyond).tolist():
        _solve_graph(node, edge, target, i, places < whole[i], pairs, rule, room)
    _spoil(room, unusable)
    if (gap > tol * np.maximum(whole, 1)).any():
        warn_of_gap(float((gap / np.maximum(whole, 1)).max()), tol)


def _spoil(room: Room, which: Tensor) -> None:
    if which.any():
        for part in room:
            part[which] = torch.nan


def _instance(
    node: Tensor, edge: Tensor, i: int, here: np.ndarray, pairs: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Which nodes of instance ``i`` are ``here``, which of the edges ``pairs`` join them and how, and their scores."""
    nodes, tables = np.flatnonzero(here), np.flatnonzero(here[pairs].all(axis=1))
    graph = (np.cumsum(here) - 1)[pairs[tables]].astype(np.int64)
    own = edge[i].numpy()[tables] if edge.dim() == 4 else np.broadcast_to(edge.numpy(), (len(graph), *edge.shape))
    return nodes, tables, graph, node[i].numpy()[nodes].astype(np.float64), own.astype(np.float64)


def _solve_graph(
    node: Tensor, edge: Tensor, target: Tensor | None, i: int, here: np.ndarray, pairs: np.ndarray, rule: Rule,
    room: Room,
) -> None:  # fmt: skip
    """Solve instance ``i`` on the nodes that are ``here``, joined by ``pairs``."""
    nodes, tables, graph, f, T = _instance(node, edge, i, here, pairs)
    n = nodes.size
    solver = _game(rule.loss, rule.costs, node.shape[2], n, graph.tobytes()).solver
    usable = all(np.isfinite(part.max(axis=tuple(range(1, part.ndim)))).all() for part in (f, T))
    if not (usable and solver.feasible(f, T)):
        _spoil(room, torch.arange(len(room.loss)) == i)
        return
    found = solver.solve(f, T, rule.smoothing, rule.tol * n, max_iter=rule.max_iter)
    q, joint = (part.copy() for part in found.q)
    value = found.value + found.gap if found.gap < np.inf else found.value  # at p, as q - y is its gradient there
    if target is not None:
        y = target[i].numpy()[nodes]
        first, second = y[graph[:, 0]], y[graph[:, 1]]
        every, each = np.arange(n), np.arange(len(graph))
        value -= f[every, y].sum() + T[each, first, second].sum()
        q[every, y] -= 1.0
        joint[each, first, second] -= 1.0
    room.loss[i], room.gap[i] = float(value), float(found.gap)
    room.nodes[i, nodes] = torch.from_numpy(q).to(room.nodes.dtype)
    room.p[i, nodes] = torch.from_numpy(found.p).to(room.p.dtype)
    if edge.dim() == 4:
        room.edges[i, tables] = torch.from_numpy(joint).to(room.edges.dtype)
    else:
        room.edges[i] = torch.from_numpy(joint.sum(axis=0)).to(room.edges.dtype)


def solve_graphs(
    node: Tensor, edge: Tensor, target: Tensor | None, mask: Tensor, graph: Tensor, rule: Rule, room: Room
) -> None:  # fmt: skip
    """Solve instances that share the edges ``graph`` (m, 2) among those of their nodes that ``mask`` (b, n) names."""
    for part in room:
        part.zero_()

    def some(begin: int, end: int) -> None:
        for i in range(begin, end):
            if mask[i].any():
                _solve_graph(node, edge, target, i, mask[i].numpy(), graph.numpy(), rule, room)

    in_threads(some, len(node), torch.get_num_threads())


def best_labels(node: Tensor, edge: Tensor, mask: Tensor, graph: Tensor) -> Tensor:
    """The best labels (b, n) of instances that share the edges ``graph``, -1 at nodes that ``mask`` leaves out."""
    best = torch.full(node.shape[:2], -1)
    for i in range(len(node)):
        if mask[i].any():
            nodes, _, pairs, f, T = _instance(node, edge, i, mask[i].numpy(), graph.numpy())
            game = _game("zero_one", b"", node.shape[2], nodes.size, pairs.tobytes())
            best[i, nodes] = torch.from_numpy(game.argmax((f, T)))
    return best
