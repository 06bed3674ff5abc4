"""Which pairs some matching uses, and which columns' sums follow from the others.

Forbidden pairs can rule out more than themselves: a pair that no feasible matching uses is 0 in the whole polytope.
Think of a matching as a flow from rows to columns. A pair can carry flow if and only if its column leads back to
its row along pairs in use, taken backwards, and allowed pairs: both lie in one strongly connected component of the
residual graph (the coarse half of the Dulmage-Mendelsohn decomposition). In a component that has neither the row of
entering nor the column of leaving, rows and columns sum to the same, so that one column is redundant.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["admissible_pairs"]


@njit(cache=True, nogil=True)
def _residual_graph(scores, rows, columns, column):
    """Arcs between the rows (first) and columns (after them) of a matching's residual graph."""
    N1, N2 = scores.shape
    arc = np.zeros((N1 + N2, N1 + N2), np.bool_)
    arc[:N1, N1:] = scores > -np.inf
    if rows < N1:
        arc[rows, N1 + columns] = True
        arc[N1:, rows] = True
        arc[N1 + columns, rows] = False
    for i in range(rows):
        j = column[i] if column[i] >= 0 else columns
        arc[N1 + j, i] = True
        if rows < N1 and j < columns:
            arc[N1 + j, rows] = False  # a matched column does not enter
            arc[N1 + columns, rows] = True
    return arc


@njit(cache=True, nogil=True)
def _reach(arc, start, seen, stack):
    seen[:] = False
    seen[start] = True
    stack[0], size = start, 1
    while size:
        size -= 1
        a = stack[size]
        for b in range(seen.size):
            if arc[a, b] and not seen[b]:
                seen[b] = True
                stack[size] = b
                size += 1


@njit(cache=True, nogil=True)
def admissible_pairs(scores, rows, columns, column, keep, free):
    """Mark in ``keep`` (N1, N2) the pairs that some matching uses, in ``free`` the columns that are not redundant.

    ``column`` is any feasible matching. Cost: O(N²) for each component of the residual graph, N = N1 + N2.
    """
    N1 = scores.shape[0]
    arc = _residual_graph(scores, rows, columns, column)
    back = arc.T.copy()
    N = arc.shape[0]
    component, stack = np.full(N, -1), np.empty(N, np.int64)
    ahead, behind = np.empty(N, np.bool_), np.empty(N, np.bool_)
    free[:] = True
    for node in range(N):
        if component[node] >= 0:
            continue
        _reach(arc, node, ahead, stack)
        _reach(back, node, behind, stack)
        component[ahead & behind] = node
        bound = rows == N1 or not (component[rows] == node or component[N1 + columns] == node)
        for j in range(columns):
            if bound and component[N1 + j] == node:
                free[j] = False
                break
    for i in range(N1):
        for j in range(scores.shape[1]):
            void = i == rows and j == columns
            keep[i, j] = scores[i, j] > -np.inf and component[i] == component[N1 + j] and not void
