"""How many graphs without cycles are laid out as one forest, in depth-first preorder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nashlearn.games.networks.cliques import CliqueArrays, relatives
from nashlearn.games.networks.forest import Forest

__all__ = ["chains", "components", "forests"]


def chains(sizes: np.ndarray) -> Forest:
    """Chains of these sizes, one after another."""
    n = int(sizes.sum())
    starts = np.cumsum(sizes) - sizes
    parent, child = np.arange(-1, n - 1), np.arange(1, n + 1)
    parent[starts[sizes > 0]] = -1
    child[(starts + sizes - 1)[sizes > 0]] = -1
    table = np.cumsum(parent >= 0) - 1
    return Forest(parent, child, np.full(n, -1), np.maximum(table, 0), np.zeros(n, dtype=np.bool_))


def forests(
    sizes: np.ndarray, edges: Sequence[np.ndarray], starts: np.ndarray, edge_starts: np.ndarray
) -> tuple[Forest, np.ndarray, list[int]]:
    """All graphs without cycles as one forest, the numbers of its nodes among all networks', and the other graphs."""
    found: list[tuple[int, int, int, bool]] = []
    loopy = []
    for i, (n, own) in enumerate(zip(sizes.tolist(), edges, strict=True)):
        tree = _preorder(n, own.tolist(), len(found), int(starts[i]), int(edge_starts[i]))
        if tree is None:
            loopy.append(i)
        else:
            found.extend(tree)
    order, parent, table, flipped = np.array(found, dtype=np.int64).reshape(-1, 4).T.copy()
    return Forest(parent, *relatives(parent), table, flipped.astype(np.bool_)), order, loopy


def _preorder(
    n: int, edges: list[list[int]], first: int, start: int, edge_start: int
) -> list[tuple[int, int, int, bool]] | None:
    """Nodes in depth-first preorder, parents, edges to them and whether those run upwards; None for a cycle.

    Nodes and edges are numbered from their starts on, parents as the rows from ``first`` on.
    """
    if len(edges) >= n > 0:
        return None
    near: list[list[tuple[int, int, bool]]] = [[] for _ in range(n)]
    for e, (u, v) in enumerate(edges):
        near[u].append((v, e, False))
        near[v].append((u, e, True))
    seen = [False] * n
    found: list[tuple[int, int, int, bool]] = []
    for root in range(n):
        stack = [] if seen[root] else [(root, -1, -1, False)]
        while stack:
            v, above, e, upward = stack.pop()
            if seen[v]:
                return None
            seen[v] = True
            row = first + len(found)
            found.append((start + v, above, edge_start + e if e >= 0 else 0, upward))
            stack.extend((u, row, d, up) for u, d, up in near[v] if d != e)
    return found


def components(t: CliqueArrays, rows: np.ndarray) -> CliqueArrays:
    """Some whole components of a forest as a forest of their own."""
    position = np.full(t.node.size + 1, -1)
    position[rows] = np.arange(rows.size)
    relations = {name: position[getattr(t, name)[rows]] for name in ("parent", "child", "sibling")}
    own = {name: getattr(t, name)[rows] for name in ("rows", "columns", "table", "map")}
    return t._replace(node=np.arange(rows.size), **relations, **own)
