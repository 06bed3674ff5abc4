"""The best assignment of rows to columns, by shortest augmenting paths [jonker1987]_, compiled.

A score of ``-inf`` forbids its pair. The potentials returned with an assignment prove it optimal:
``u_i + v_j >= scores_ij`` everywhere, with equality on the pairs chosen.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["assign", "best_matching", "matching_score"]


@njit(cache=True, nogil=True)
def _greedy(scores, u, v, column, owner):
    """Potentials from the best of each row, then of each column; tight pairs are taken as they come."""
    n = scores.shape[0]
    for i in range(n):
        u[i] = -np.inf
        for j in range(n):
            u[i] = max(u[i], scores[i, j])
        if u[i] == -np.inf:
            return False
    for j in range(n):
        v[j] = -np.inf
        for i in range(n):
            v[j] = max(v[j], scores[i, j] - u[i])
        if v[j] == -np.inf:
            return False
    for i in range(n):
        for j in range(n):
            if owner[j] < 0 and scores[i, j] - u[i] - v[j] == 0.0:
                column[i], owner[j] = j, i
                break
    return True


@njit(cache=True, nogil=True)
def _shortest_path(scores, root, u, v, owner, distance, before, queue):
    """Dijkstra from a free row to the nearest free column, over reduced costs; -1 where there is none.

    Columns already scanned lie in ``queue[:done]``; the potentials are brought up to date at the end.
    """
    n = scores.shape[0]
    for j in range(n):
        distance[j], before[j], queue[j] = np.inf, -1, j
    i, reached, done = root, 0.0, 0
    while True:
        nearest, place = np.inf, -1
        for t in range(done, n):
            j = queue[t]
            through = reached + (u[i] + v[j] - scores[i, j])
            if through < distance[j]:
                distance[j], before[j] = through, i
            if distance[j] < nearest or (distance[j] == nearest and place >= 0 and owner[j] < 0):
                nearest, place = distance[j], t
        if place < 0:
            return -1
        reached = nearest
        j = queue[place]
        queue[place], queue[done] = queue[done], j
        done += 1
        if owner[j] < 0:
            break
        i = owner[j]
    u[root] -= reached
    for t in range(done - 1):
        c = queue[t]
        u[owner[c]] -= reached - distance[c]
        v[c] += reached - distance[c]
    return j


@njit(cache=True, nogil=True)
def assign(scores, column, u, v):
    """Write the column of each row of a square matrix, and the potentials; False where nothing is feasible.

    Cost: O(n³), far less where rows disagree on what is best.
    """
    n = scores.shape[0]
    owner = np.full(n, -1)
    distance, before, queue = np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64)
    column[:] = -1
    if not _greedy(scores, u, v, column, owner):
        return False
    for root in range(n):
        if column[root] >= 0:
            continue
        j = _shortest_path(scores, root, u, v, owner, distance, before, queue)
        if j < 0:
            return False
        while True:
            i = before[j]
            owner[j] = i
            column[i], j = j, column[i]
            if i == root:
                break
    return True


@njit(cache=True, nogil=True)
def _with_partners(scores):
    """A square matrix with a partner for each element to stay alone with; partners are free to pair up."""
    n1, n2 = scores.shape[0] - 1, scores.shape[1] - 1
    square = np.full((n1 + n2, n1 + n2), -np.inf)
    square[:n1, :n2] = scores[:n1, :n2]
    square[n1:, n2:] = 0.0
    for i in range(n1):
        square[i, n2 + i] = scores[i, n2]
    for j in range(n2):
        square[n1 + j, j] = scores[n1, j]
    return square


@njit(cache=True, nogil=True)
def best_matching(scores, rows, column, u, v):
    """The same for ``rows`` rows to be matched, all or all but the last.

    In the latter case the last column leaves a row unmatched and the last row leaves a column so: ``column`` gets -1
    for the rows that leave, and ``u_i`` and ``v_j`` are at least the scores of leaving too.
    """
    partial = rows < scores.shape[0]
    n1, n2 = scores.shape[0] - partial, scores.shape[1] - partial
    n = n1 + n2 if partial else n1
    chosen, of_row, of_column = np.empty(n, np.int64), np.empty(n), np.empty(n)
    if not assign(_with_partners(scores) if partial else scores, chosen, of_row, of_column):
        return False
    for i in range(n1):
        column[i] = chosen[i] if chosen[i] < n2 else -1
        u[i] = of_row[i] + (of_column[n2 + i] if partial else 0.0)
    for j in range(n2):
        v[j] = of_column[j] + (of_row[n1 + j] if partial else 0.0)  # partners' sum to 0 or more: pairs stay covered
    return True


@njit(cache=True, nogil=True)
def matching_score(scores, rows, column):
    """The score of an assignment: that of its pairs, and in the partial case of what is left on either side."""
    total = 0.0
    if rows == scores.shape[0]:
        for i in range(rows):
            total += scores[i, column[i]]
        return total
    taken = np.zeros(scores.shape[1], np.bool_)
    for i in range(rows):
        j = column[i] if column[i] >= 0 else scores.shape[1] - 1
        taken[j] = True
        total += scores[i, j]
    for j in range(scores.shape[1] - 1):
        if not taken[j]:
            total += scores[rows, j]
    return total
