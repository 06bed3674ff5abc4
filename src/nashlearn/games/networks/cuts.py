"""Best labellings of two-state networks, in whole or in part, by a minimum cut.

With ``x_v`` in {0, 1} and ``w = T(0, 0) + T(1, 1) - T(0, 1) - T(1, 0) >= 0`` at every edge, its ends *attract* each
other and a score is

    constant + sum_v d_v x_v - sum_uv w_uv (1 - x_u) x_v,

and its maximum is ``constant + sum_v max(d_v, 0)`` less a maximum flow [greig1989]_. Where some edges repel, nodes are
renamed, 1 - x for x, so that all attract: a grid whose edges all repel is a chessboard, of which every other square is
renamed. Where no renaming does, each node is given both names as if these were two nodes, and scores are halved: the
cut of that network bounds every labelling's score, and nodes whose two names agree have these labels in some best
labelling [boros2002]_. Flows are integers in SciPy: capacities are rounded down, and what is left of them is sent again
in finer units, so that every flow gives a bound.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order, connected_components, maximum_flow

from nashlearn.games.networks.stars import Incidence

__all__ = ["Cut", "cut"]

_LARGEST = 2.0**30  # capacity
_PHASES = 4


class Cut(NamedTuple):
    """Labels (n,), -1 where none is known, and a bound on every labelling's score.

    ``certain``: whether the labels that are known belong to a best labelling, but for rounding.
    """

    labels: np.ndarray
    bound: float
    certain: bool


def cut(g: Incidence, f: np.ndarray, T: np.ndarray, rounding: float, until: float = np.inf) -> Cut | None:
    """Labels that are best up to ``rounding``, of all nodes or, where edges repel in a cycle, of some.

    None where a node has more than two states, or a label or pair is forbidden. Past ``until`` no finer flow is begun;
    one that is under way is not broken off.
    """
    if f.shape[1] != 2 or not (np.isfinite(f).all() and np.isfinite(T).all()):
        return None
    n, (u, v), tables = len(f), g.ends.T, T[g.table]
    w = _attraction(tables)
    negligible = rounding / max(w.size, 1)
    repel = w < -negligible
    flip = _renaming(n, u, v, np.abs(w) > negligible, repel)
    if flip is not None:
        tables = np.where(flip[u, None, None], tables[:, ::-1], tables)
        tables = np.where(flip[v, None, None], tables[:, :, ::-1], tables)
        found = _attracted(u, v, np.where(flip[:, None], f[:, ::-1], f), tables, rounding, until)
        return None if found is None else Cut(found.labels ^ flip, found.bound, found.certain)
    both = np.concatenate([f, f[:, ::-1]]) / 2.0  # nodes, and then their other names
    first = np.concatenate([u, u + n])
    second = np.concatenate([np.where(repel, v + n, v), np.where(repel, v, v + n)])
    own, other = tables / 2.0, tables[:, ::-1, ::-1] / 2.0
    crossed = repel[:, None, None]
    pairs = np.concatenate([np.where(crossed, own[:, :, ::-1], own), np.where(crossed, other[:, :, ::-1], other)])
    found = _attracted(first, second, both, pairs, rounding, until)
    if found is None:
        return None
    one, renamed = found.labels[:n], found.labels[n:]
    return Cut(np.where(one != renamed, one, -1), found.bound, found.certain)


def _attraction(tables: np.ndarray) -> np.ndarray:
    return np.asarray(tables[:, 0, 0] + tables[:, 1, 1] - tables[:, 0, 1] - tables[:, 1, 0])


def _renaming(n: int, u: np.ndarray, v: np.ndarray, counts: np.ndarray, repel: np.ndarray) -> np.ndarray | None:
    """Which nodes to rename so that all edges that count attract; None where edges repel in a cycle.

    Nodes and their other names are two layers of a graph, joined across where ends repel: a node that is connected with
    its own other name lies on such a cycle. Cost: O(n + m).
    """
    if not repel.any():
        return np.zeros(n, dtype=np.bool_)
    u, v, across = u[counts], v[counts], np.where(repel[counts], n, 0)
    ends = np.concatenate([u, u + n]), np.concatenate([v + across, v + n - across])
    layers = sparse.coo_matrix((np.ones(2 * u.size), ends), shape=(2 * n, 2 * n))
    part = connected_components(layers, directed=False)[1]
    return None if (part[:n] == part[n:]).any() else part[:n] > part[n:]


def _attracted(
    u: np.ndarray, v: np.ndarray, f: np.ndarray, tables: np.ndarray, rounding: float, until: float
) -> Cut | None:
    """The best labelling where all edges attract; None where capacities leave the range of numbers."""
    attraction, n = np.maximum(_attraction(tables), 0.0), len(f)
    d = f[:, 1] - f[:, 0]
    np.add.at(d, u, tables[:, 1, 0] - tables[:, 0, 0])
    np.add.at(d, v, tables[:, 1, 1] - tables[:, 1, 0])
    bound = float(f[:, 0].sum() + tables[:, 0, 0].sum() + np.maximum(d, 0.0).sum())
    source, sink, nodes = n, n + 1, np.arange(n)
    rows = np.concatenate([np.where(d > 0.0, source, nodes), v])
    columns = np.concatenate([np.where(d > 0.0, nodes, sink), u])
    left = sparse.csr_matrix((np.concatenate([abs(d), attraction]), (rows, columns)), shape=(n + 2, n + 2))
    most = float(left.data.sum()) or 1.0  # that can still flow
    for _ in range(_PHASES):
        unit = _LARGEST / most
        if not np.isfinite(unit):
            return None
        capacity = left.copy()
        capacity.data = np.floor(np.minimum(left.data, most) * unit).astype(np.int32)
        found = maximum_flow(capacity.astype(np.int32), source, sink)
        bound -= float(found.flow_value) / unit
        left = sparse.csr_matrix(left - found.flow / unit)
        left.data = np.maximum(left.data, 0.0)
        most = left.nnz / unit
        if most <= rounding or time.monotonic() > until:
            break
    open_arcs = sparse.csr_matrix(capacity - found.flow)
    open_arcs.data = np.maximum(open_arcs.data, 0)
    open_arcs.eliminate_zeros()
    labels = np.zeros(n + 2, dtype=np.int64)
    labels[breadth_first_order(open_arcs, source, return_predecessors=False)] = 1
    return Cut(labels[:n], bound, most <= rounding)
