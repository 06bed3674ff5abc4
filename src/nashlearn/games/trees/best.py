"""Best spanning arborescences: greedy heads where they make a tree, else Tarjan's algorithm on dense scores.

A tree of ``n`` tokens gives each token ``d = 0..n-1`` a head ``h = 0..n``; 0 is the root and ``h`` token ``h - 1``.
The algorithm grows a path of best arcs backwards and contracts each cycle that closes [tarjan1977]_. The rows of a
cycle are merged into one, sources stay tokens, so that every token is merged at most twice: O(n^2) in all.

Single root: arcs from the root compete only where a component has no other arc left. No cycle passes through the
root, so this is the lexicographic optimum (fewest root arcs, then largest score), without large constants.

The values of the arcs chosen for the contracted sets are the dual solution of the linear programme
``max <scores, x>``, ``x(arcs into S) >= 1`` for every set ``S`` of tokens [edmonds1967]_.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

__all__ = ["Workspace", "best_labelled", "best_tree", "best_trees", "contracted_sets", "is_tree", "workspace"]


class Workspace(NamedTuple):
    """Arrays that one search needs; reused from sentence to sentence. Components: tokens, then contracted sets."""

    value: np.ndarray  # (n, n + 1) best arc from each source into the component that owns the row, less what was paid
    token: np.ndarray  # (n, n + 1) the token at which that arc ends
    row: np.ndarray  # (2n,) row of a component
    top: np.ndarray  # (n,) component of a token
    paid: np.ndarray  # (2n,) value of the arc chosen for a component
    source: np.ndarray  # (2n,) and its source
    end: np.ndarray  # (2n,) and its token
    parent: np.ndarray  # (2n,) contracted set that a component went into, or -1
    state: np.ndarray  # (2n,) 0 new, 1 on the path, 2 tied to the root
    path: np.ndarray  # (n,)
    settled: np.ndarray  # (2n,)


@njit(cache=True, nogil=True)
def workspace(n: int) -> Workspace:
    """Arrays for sentences of up to ``n`` tokens."""
    return Workspace(
        np.empty((n, n + 1)),
        np.empty((n, n + 1), np.int32),
        np.empty(2 * n, np.int64),
        np.empty(n, np.int64),
        np.empty(2 * n),
        np.empty(2 * n, np.int64),
        np.empty(2 * n, np.int64),
        np.empty(2 * n, np.int64),
        np.empty(2 * n, np.int64),
        np.empty(n, np.int64),
        np.empty(2 * n, np.bool_),
    )


@njit(cache=True, nogil=True)
def is_tree(heads: np.ndarray, n: int, mark: np.ndarray) -> bool:
    """Whether every token reaches the root; ``mark`` is (n,) scratch."""
    mark[:n] = 0
    for d in range(n):
        u = d
        while mark[u] == 0:
            mark[u] = d + 1
            if heads[u] == 0:
                break
            u = heads[u] - 1
        if mark[u] == d + 1 and heads[u] != 0:
            return False
    return True


@njit(cache=True, nogil=True)
def best_tree(scores: Any, n: int, single_root: bool, heads: np.ndarray, work: Workspace) -> int:
    """Heads of a best tree of ``scores`` (n, n + 1); the number of components, or 0 where there is no tree.

    The count is ``n`` where greedy heads sufficed. ``scores[d, d + 1]`` is not read; ``-inf`` forbids an arc.
    """
    roots = 0
    for d in range(n):
        best, at = -np.inf, -1
        row = scores[d]
        for h in range(d + 1):
            if row[h] > best:
                best, at = row[h], h
        for h in range(d + 2, n + 1):
            if row[h] > best:
                best, at = row[h], h
        if at < 0:
            return 0
        heads[d] = at
        roots += at == 0
        work.paid[d], work.source[d], work.end[d] = best, at, d
    if roots > 0 and (roots == 1 or not single_root) and is_tree(heads, n, work.path):
        work.parent[:n] = -1
        return n
    for root_last in (False, True):
        count = _contract(scores, n, root_last, work)
        if count == 0:
            return 0
        _expand(n, count, heads, work)
        if not single_root or np.count_nonzero(heads[:n]) == n - 1:
            return count
    return 0


@njit(cache=True, nogil=True)
def best_labelled(theta, n, single_root, arc, label, heads, work):
    """The best tree of ``theta`` (n, n + 1, labels); its score, or ``-inf`` where there is none."""
    for d in range(n):
        for h in range(n + 1):
            best, at = theta[d, h, 0], 0
            for j in range(1, theta.shape[2]):
                if theta[d, h, j] > best:
                    best, at = theta[d, h, j], j
            arc[d, h], label[d, h] = best, at
    if best_tree(arc, n, single_root, heads, work) == 0:
        return -np.inf
    total = 0.0
    for d in range(n):
        total += arc[d, heads[d]]
    return total


@njit(cache=True, nogil=True)
def _choose(work: Workspace, c: int, n: int, root_last: bool) -> bool:
    """Choose the best arc into component ``c``."""
    row = work.value[work.row[c]]
    best, at = -np.inf, -1
    for h in range(1 if root_last else 0, n + 1):
        if row[h] > best:
            best, at = row[h], h
    if at < 0 and root_last and row[0] > -np.inf:
        best, at = row[0], 0
    if at < 0:
        return False
    work.paid[c], work.source[c], work.end[c] = best, at, work.token[work.row[c], at]
    return True


@njit(cache=True, nogil=True)
def _contract(scores: Any, n: int, root_last: bool, work: Workspace) -> int:
    """Choose an arc into every component until none is left loose; the number of components, or 0."""
    value, token, top, state, path = work.value, work.token, work.top, work.state, work.path
    for d in range(n):
        for h in range(n + 1):
            value[d, h] = scores[d, h]
            token[d, h] = d
        value[d, d + 1] = -np.inf
        work.row[d] = d
        top[d] = d
        state[d] = 0
        work.parent[d] = -1
    count = n
    for start in range(n):
        if state[top[start]] != 0:
            continue
        length, c = 0, top[start]
        while True:
            state[c] = 1
            path[length] = c
            length += 1
            if not _choose(work, c, n, root_last):
                return 0
            h = work.source[c]
            if h == 0 or state[top[h - 1]] == 2:
                for i in range(length):
                    state[path[i]] = 2
                break
            c = top[h - 1]
            if state[c] == 1:
                first = length - 1
                while path[first] != c:
                    first -= 1
                _merge(work, n, first, length, count)
                length, c = first, count
                count += 1
    return count


@njit(cache=True, nogil=True)
def _merge(work: Workspace, n: int, first: int, length: int, new: int) -> None:
    """Contract the cycle ``path[first:length]`` into the component ``new``."""
    value, token, top = work.value, work.token, work.top
    a = work.path[first]
    into = work.row[a]
    cost = work.paid[a]
    target, ends = value[into], token[into]
    for h in range(n + 1):
        target[h] -= cost
    work.parent[a] = new
    for i in range(first + 1, length):
        c = work.path[i]
        work.parent[c] = new
        cost = work.paid[c]
        other, other_ends = value[work.row[c]], token[work.row[c]]
        for h in range(n + 1):
            v = other[h] - cost
            if v > target[h]:
                target[h] = v
                ends[h] = other_ends[h]
    work.row[new], work.parent[new], work.state[new] = into, -1, 0
    for d in range(n):
        if work.parent[top[d]] == new:
            top[d] = new
            target[d + 1] = -np.inf


@njit(cache=True, nogil=True)
def _expand(n: int, count: int, heads: np.ndarray, work: Workspace) -> None:
    """Undo the contractions: the arc into a set takes the place of the cycle's arc into the same token."""
    work.settled[:count] = False
    for c in range(count - 1, -1, -1):
        if work.settled[c]:
            continue
        d = work.end[c]
        heads[d] = work.source[c]
        u = d
        while u != c:
            work.settled[u] = True
            u = work.parent[u]


@njit(cache=True, nogil=True)
def contracted_sets(n: int, count: int, work: Workspace, members: np.ndarray, prices: np.ndarray) -> int:
    """Sets with a price from the last search: ``members`` (k, n) and ``prices`` (k,); their number ``k``.

    Prices are positive, but for the set of all tokens where a single root was asked for.
    """
    k = 0
    for c in range(n, count):
        if work.paid[c] != 0.0:
            for d in range(n):
                u = d
                while u != -1 and u < c:
                    u = work.parent[u]
                members[k, d] = u == c
            prices[k] = -work.paid[c]
            k += 1
    return k


@njit(cache=True, nogil=True)
def best_trees(scores: np.ndarray, single_root: bool, heads: np.ndarray, feasible: np.ndarray, work: Workspace) -> None:
    """Best trees of a batch (b, n, n + 1) into ``heads`` (b, n); ``feasible`` (b,) tells where there is one."""
    for i in range(scores.shape[0]):
        feasible[i] = best_tree(scores[i], scores.shape[1], single_root, heads[i], work) > 0
