"""Trees of cliques: what makes a graph's labellings a chain of small tables.

Nodes are eliminated one after another. Node ``v`` leaves behind the clique of itself and of those neighbours that
are still there, its *separator*, which lies within the clique of the next of them to go, its parent. On a tree every
separator is the parent node alone. The table of a clique has a row for each state of ``v`` and a column for each
joint state of the separator: sum- and max-product, the marginals and the linear programme of the game all read off it
[koller2009]_. Ordering by the smallest table costs O(n log n) dictionary steps on graphs of bounded width.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

__all__ = ["CliqueArrays", "Cliques", "TooWideError", "clique_tree", "columns_of", "relatives", "table_of"]


class TooWideError(ValueError):
    """The tables would have more entries than allowed."""


class CliqueArrays(NamedTuple):
    """A clique tree as compiled code reads it. Cliques are numbered in depth-first preorder, each before its children.

    ``node[c]`` is the node eliminated in clique ``c``; ``rows[c]`` its states and ``columns[c]`` those of the
    separator; ``table[c]`` where its entries start in a flat buffer (cliques may share them); ``map[c]`` where in
    ``maps`` the column of ``c`` that each entry of the parent's table belongs to is listed.
    """

    node: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    parent: np.ndarray
    child: np.ndarray  # first child, or -1
    sibling: np.ndarray  # next child of the same parent, or -1
    table: np.ndarray
    map: np.ndarray
    maps: np.ndarray


def table_of(t: CliqueArrays, c: int, flat: np.ndarray) -> np.ndarray:
    """The entries of clique ``c`` in a flat buffer, a view (rows, columns)."""
    return flat[t.table[c] : t.table[c] + t.rows[c] * t.columns[c]].reshape(t.rows[c], t.columns[c])


def columns_of(t: CliqueArrays, c: int) -> np.ndarray:
    """The column of clique ``c`` that each entry of its parent's table, flat, belongs to."""
    u = t.parent[c]
    return t.maps[t.map[c] : t.map[c] + t.rows[u] * t.columns[u]]


def relatives(parent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First children and next siblings, -1 where there are none, from parents in preorder."""
    child, sibling = np.full(parent.size, -1), np.full(parent.size, -1)
    for c in range(parent.size - 1, -1, -1):
        if parent[c] >= 0:
            sibling[c], child[parent[c]] = child[parent[c]], c
    return child, sibling


@dataclass(frozen=True)
class Cliques:
    """A clique tree with the place of each edge: rows of a clique by columns in which the other end's state fits."""

    arrays: CliqueArrays
    size: int  # entries of all tables
    edge_clique: np.ndarray  # the clique whose table holds the edge's scores
    edge_first: np.ndarray  # whether the edge's first end is the eliminated node
    edge_state: list[np.ndarray]  # for each column of that clique, the state of the other end
    order: list[tuple[int, tuple[int, ...]]]  # nodes in the order of their elimination, with their separators


def _eliminate(n: int, edges: np.ndarray, n_states: np.ndarray, limit: float) -> list[tuple[int, tuple[int, ...]]]:
    """Nodes in the order of their elimination, each with its separator; TooWideError beyond ``limit`` entries."""
    near: list[set[int]] = [set() for _ in range(n)]
    for u, v in edges.tolist():
        near[u].add(v)
        near[v].add(u)
    logs = np.log(n_states).tolist()

    def cost(v: int) -> float:
        return logs[v] + sum(logs[u] for u in near[v])

    heap = [(cost(v), v, 0) for v in range(n)]
    heapq.heapify(heap)
    version = [0] * n  # an entry of the heap counts only if it is its node's latest
    order, total = [], 0.0
    while heap:
        size, v, stamp = heapq.heappop(heap)
        if stamp != version[v]:
            continue
        version[v] = -1
        total += math.exp(size)
        if total > limit:
            raise TooWideError(
                f"the graph is too wide for exact tables: eliminating node {v} joins it to {len(near[v])} others, "
                f"{math.exp(size):.1e} entries, and the tables may have {limit:.0e} in all"
            )
        order.append((v, tuple(sorted(near[v]))))
        for u in near[v]:
            near[u] |= near[v]
            near[u] -= {u, v}
        for u in near[v]:
            version[u] += 1
            heapq.heappush(heap, (cost(u), u, version[u]))
        near[v] = set()
    return order


def clique_tree(n: int, edges: np.ndarray, n_states: np.ndarray, limit: float) -> Cliques:
    """The clique tree of a graph, of at most ``limit`` entries."""
    order = _eliminate(n, edges, n_states, limit)
    position = {v: i for i, (v, _) in enumerate(order)}
    parent_node = {v: min(rest, key=position.__getitem__) if rest else -1 for v, rest in order}
    children: list[list[int]] = [[] for _ in range(n)]
    roots: list[int] = []
    for v, _ in order:
        (children[parent_node[v]] if parent_node[v] >= 0 else roots).append(v)
    preorder, stack = [], roots[::-1]
    while stack:
        v = stack.pop()
        preorder.append(v)
        stack.extend(reversed(children[v]))
    number = {v: c for c, v in enumerate(preorder)}
    # The separator is listed with the parent first: on trees and chains columns are then its states in order.
    separators = {
        v: tuple(sorted(rest, key=lambda u, v=v: (u != parent_node[v], position[u])))  # type: ignore[misc]
        for v, rest in order
    }
    states = n_states.tolist()
    rows = np.array([states[v] for v in preorder], dtype=np.int64)
    columns = np.array([math.prod(states[u] for u in separators[v]) for v in preorder], dtype=np.int64)
    parent = np.array([number.get(parent_node[v], -1) for v in preorder], dtype=np.int64)
    child, sibling = relatives(parent)
    table = np.concatenate([[0], np.cumsum(rows * columns)]).astype(np.int64)
    maps, starts = [], np.zeros(n, dtype=np.int64)
    shared: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
    used = 0
    for c, v in enumerate(preorder):
        if parent[c] < 0:
            continue
        u = parent_node[v]
        scope = (u, *separators[u])
        shape = tuple(states[w] for w in scope)
        axes = tuple(scope.index(w) for w in separators[v])
        if (shape, axes) not in shared:
            own = np.arange(columns[c]).reshape([shape[a] for a in axes]).transpose(np.argsort(axes))
            grid = own.reshape([size if a in axes else 1 for a, size in enumerate(shape)])
            maps.append(np.broadcast_to(grid, shape).ravel().astype(np.int32))
            shared[shape, axes] = used
            used += maps[-1].size
        starts[c] = shared[shape, axes]
    arrays = CliqueArrays(
        np.array(preorder, dtype=np.int64),
        rows,
        columns,
        parent,
        child,
        sibling,
        table[:-1],
        starts,
        np.concatenate(maps) if maps else np.zeros(0, dtype=np.int32),
    )
    home, first, state = [], [], []
    for u, v in edges.tolist():
        low, high = (u, v) if position[u] < position[v] else (v, u)
        c = number[low]
        shape = tuple(states[w] for w in separators[low])
        axis = separators[low].index(high)
        grid = np.arange(states[high]).reshape([-1 if a == axis else 1 for a in range(len(shape))])
        home.append(c)
        first.append(low == u)
        state.append(np.broadcast_to(grid, shape).ravel())
    ends = np.array(home, dtype=np.int64), np.array(first, dtype=np.bool_)
    return Cliques(arrays, int(table[-1]), *ends, state, order)
