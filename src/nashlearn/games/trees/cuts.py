"""Cuts that a point violates: sets ``S`` of tokens with ``x(arcs into S) < 1``, by maximum flows from the root."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

__all__ = ["Flow", "flow_scratch", "separate"]


class Flow(NamedTuple):
    """Arrays of the flow search over the root, 0, and the tokens 1..n."""

    residual: np.ndarray  # (n + 1, n + 1) capacity left from the first index to the second
    near: np.ndarray  # (n + 1, n + 1) neighbours of each node, both ways
    degree: np.ndarray  # (n + 1,)
    source: np.ndarray  # (n + 1,) whether merged with the root
    inflow: np.ndarray  # (n + 1,) direct capacity from the merged root
    previous: np.ndarray  # (n + 1,) breadth-first predecessor, -1 where not reached
    queue: np.ndarray  # (n + 1,)


@njit(cache=True, nogil=True)
def flow_scratch(n: int) -> Flow:
    """Arrays for sentences of up to ``n`` tokens."""
    return Flow(
        np.empty((n + 1, n + 1)),
        np.empty((n + 1, n + 1), np.int64),
        np.empty(n + 1, np.int64),
        np.empty(n + 1, np.bool_),
        np.empty(n + 1),
        np.empty(n + 1, np.int64),
        np.empty(n + 1, np.int64),
    )


@njit(cache=True, nogil=True)
def _connect(x, n, flow):
    """Neighbours: nodes that an arc joins, in either direction."""
    flow.degree[: n + 1] = 0
    for d in range(n):
        for h in range(n + 1):
            if x[d, h] > 0.0 and h != d + 1 and not (0 < h < d + 1 and x[h - 1, d + 1] > 0.0):
                flow.near[d + 1, flow.degree[d + 1]] = h
                flow.degree[d + 1] += 1
                flow.near[h, flow.degree[h]] = d + 1
                flow.degree[h] += 1


@njit(cache=True, nogil=True)
def _refill(x, n, flow):
    """Capacities from ``x`` between neighbours; the root receives nothing."""
    for v in range(n + 1):
        for i in range(flow.degree[v]):
            u = flow.near[v, i]
            flow.residual[u, v] = x[v - 1, u] if v > 0 else 0.0


@njit(cache=True, nogil=True)
def _reach_back(n, target, tiny, flow):
    """Search backwards from ``target`` along capacity left, up to a merged source, which is returned, or -1."""
    flow.previous[: n + 1] = -1
    flow.previous[target] = target
    flow.queue[0] = target
    first, last = 0, 1
    while first < last:
        v = flow.queue[first]
        first += 1
        for i in range(flow.degree[v]):
            u = flow.near[v, i]
            if flow.previous[u] < 0 and flow.residual[u, v] > tiny:
                flow.previous[u] = v
                if flow.source[u]:
                    return u
                flow.queue[last] = u
                last += 1
    return -1


@njit(cache=True, nogil=True)
def _flow_reaches_one(n, target, tol, flow):
    """Push flow from the merged root to ``target`` until 1 is reached, or stop at a smaller cut."""
    total = 0.0
    while total < 1.0 - tol:
        u = _reach_back(n, target, 1e-15, flow)
        if u < 0:
            return False
        push, v = np.inf, u
        while v != target:
            push = min(push, flow.residual[v, flow.previous[v]])
            v = flow.previous[v]
        v = u
        while v != target:
            flow.residual[v, flow.previous[v]] -= push
            flow.residual[flow.previous[v], v] += push
            v = flow.previous[v]
        total += push
    return True


@njit(cache=True, nogil=True)
def separate(x: np.ndarray, n: int, members: np.ndarray, tol: float, flow: Flow) -> int:
    """Violated cuts of ``x`` (n, n + 1), whose rows sum to 1, into ``members`` (room, n); their number.

    A token whose flow from the root is 1 joins the root: no violated cut parts them. The others each give a set.
    Cost: O(n^2), and one flow on the arcs in use for each token that the root and those joined to it do not feed.
    """
    flow.source[: n + 1] = False
    flow.source[0] = True
    for d in range(n):
        flow.inflow[d + 1] = x[d, 0]
    found, connected = 0, False
    for _ in range(n):
        v, most = 0, -1.0
        for u in range(1, n + 1):
            if not flow.source[u] and flow.inflow[u] > most:
                v, most = u, flow.inflow[u]
        if most < 1.0 - tol:
            if not connected:
                _connect(x, n, flow)
                connected = True
            _refill(x, n, flow)
            if not _flow_reaches_one(n, v, tol, flow):
                if found == members.shape[0]:
                    return found
                for d in range(n):
                    members[found, d] = flow.previous[d + 1] >= 0
                found += 1
        flow.source[v] = True
        for d in range(n):
            flow.inflow[d + 1] += x[d, v]
    return found
