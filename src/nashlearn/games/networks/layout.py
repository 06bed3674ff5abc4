"""How many graphs without cycles are laid out as one forest, in depth-first preorder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nashlearn.games.networks.cliques import CliqueArrays
from nashlearn.games.networks.forest import Forest

__all__ = ["chains", "components", "join", "preorder"]


def chains(sizes: np.ndarray) -> Forest:
    """Chains of these sizes, one after another."""
    n = int(sizes.sum())
    starts = np.cumsum(sizes) - sizes
    parent, child = np.arange(-1, n - 1), np.arange(1, n + 1)
    parent[starts[sizes > 0]] = -1
    child[(starts + sizes - 1)[sizes > 0]] = -1
    table = np.cumsum(parent >= 0) - 1
    return Forest(parent, child, np.full(n, -1), np.maximum(table, 0), np.zeros(n, dtype=np.bool_))


def preorder(n: int, edges: np.ndarray) -> tuple[np.ndarray, ...] | None:
    """Nodes in depth-first preorder, parents, edges to them and whether those run upwards; None for a cycle."""
    if len(edges) >= n > 0:
        return None
    near: list[list[tuple[int, int]]] = [[] for _ in range(n)]
    for e, (u, v) in enumerate(edges.tolist()):
        near[u].append((v, e))
        near[v].append((u, e))
    seen = [False] * n
    order: list[int] = []
    parent: list[int] = []
    edge: list[int] = []
    for root in range(n):
        stack = [] if seen[root] else [(root, -1, -1)]
        while stack:
            v, above, e = stack.pop()
            if seen[v]:
                return None
            seen[v] = True
            position = len(order)
            order.append(v)
            parent.append(above)
            edge.append(e)
            stack.extend((u, position, d) for u, d in near[v] if d != e)
    nodes, edge_of = np.array(order, dtype=np.int64), np.array(edge, dtype=np.int64)
    upward = np.array([e >= 0 and edges[e, 0] == v for v, e in zip(order, edge, strict=True)], dtype=np.bool_)
    return nodes, np.array(parent, dtype=np.int64), edge_of, upward


def join(
    trees: Sequence[tuple[np.ndarray, ...] | None], starts: np.ndarray, edge_starts: np.ndarray
) -> tuple[Forest, np.ndarray]:
    """All forests as one, and the numbers of its nodes among all networks'."""
    order, parents, tables, flipped = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], []
    at = 0
    for i, tree in enumerate(trees):
        if tree is None:
            continue
        nodes, parent, edge, upward = tree
        order.append(starts[i] + nodes)
        parents.append(np.where(parent >= 0, parent + at, -1))
        tables.append(np.where(edge >= 0, edge + edge_starts[i], 0))
        flipped.append(upward)
        at += nodes.size
    parent = np.concatenate(parents)
    child, sibling = np.full(at, -1), np.full(at, -1)
    for i in range(at - 1, -1, -1):
        if parent[i] >= 0:
            sibling[i], child[parent[i]] = child[parent[i]], i
    flips = np.concatenate([np.zeros(0, np.bool_), *flipped])
    return Forest(parent, child, sibling, np.concatenate(tables), flips), np.concatenate(order)


def components(t: CliqueArrays, rows: np.ndarray) -> CliqueArrays:
    """Some whole components of a forest as a forest of their own."""
    position = np.full(t.node.size + 1, -1)
    position[rows] = np.arange(rows.size)
    parent, child, sibling = (position[x[rows]] for x in (t.parent, t.child, t.sibling))
    return CliqueArrays(
        np.arange(rows.size),
        t.rows[rows],
        t.columns[rows],
        parent,
        child,
        sibling,
        t.table[rows],
        t.map[rows],
        t.maps,
    )
