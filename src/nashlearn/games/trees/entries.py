"""Which entries the game over arborescences is played with: near the best of their row, worth their price, or replies.

Few of the arcs of a sentence are used by either player; the interior point method is given those that may be.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from nashlearn.games.trees.best import Workspace, best_tree, workspace
from nashlearn.games.trees.cuts import Flow, flow_scratch
from nashlearn.games.trees.projection import Cuts, cut_scratch

__all__ = [
    "TreeScratch",
    "find_usable",
    "take_near",
    "take_priced",
    "take_replies",
    "taken_entries",
    "tree_scratch",
]


class TreeScratch(NamedTuple):
    """Arrays reused from sentence to sentence of up to ``n`` tokens."""

    work: Workspace
    cuts: Cuts
    flow: Flow
    arc: np.ndarray  # (n, n + 1) best score over labels
    other: np.ndarray  # (n, n + 1)
    label: np.ndarray  # (n, n + 1) and its label
    usable: np.ndarray  # (n, n + 1) whether some tree holds the arc
    lift: np.ndarray  # (n, n + 1) prices of the cuts that an arc crosses
    heads: np.ndarray  # (n,)
    sets: np.ndarray  # (K, n) the cuts of the game


@njit(cache=True, nogil=True)
def tree_scratch(n: int) -> TreeScratch:
    """Arrays for sentences of up to ``n`` tokens."""
    return TreeScratch(
        workspace(n),
        cut_scratch(n),
        flow_scratch(n),
        np.empty((n, n + 1)),
        np.empty((n, n + 1)),
        np.empty((n, n + 1), np.int64),
        np.empty((n, n + 1), np.bool_),
        np.empty((n, n + 1)),
        np.empty(n, np.int64),
        np.empty((6 * n + 16, n), np.bool_),
    )


@njit(cache=True, nogil=True)
def _spread_from(sources, avoid, n, arc, flow):
    """Mark in ``flow.source`` the tokens reached from ``sources`` (1..n, in ``flow.queue``) without token ``avoid``."""
    last = sources
    first = 0
    while first < last:
        u = flow.queue[first]
        first += 1
        for d in range(n):
            if d + 1 != avoid and d + 1 != u and not flow.source[d + 1] and arc[d, u] > -np.inf:
                flow.source[d + 1] = True
                flow.queue[last] = d + 1
                last += 1
    return last


@njit(cache=True, nogil=True)
def find_usable(arc, n, single_root, usable, flow):
    """Which arcs of finite score some tree holds; there must be a tree. O(n^2), or O(n^3) with forbidden arcs."""
    complete = True
    for d in range(n):
        for h in range(n + 1):
            usable[d, h] = h != d + 1 and arc[d, h] > -np.inf
            complete = complete and (usable[d, h] or h == d + 1)
    if complete:
        return
    if single_root:  # only a token that reaches all others can be the root's
        for r in range(1, n + 1):
            if usable[r - 1, 0]:
                flow.source[: n + 1] = False
                flow.source[r] = True
                flow.queue[0] = r
                usable[r - 1, 0] = _spread_from(1, 0, n, arc, flow) == n
    for d in range(n):
        flow.source[: n + 1] = False
        m = 0
        for r in range(1, n + 1):
            if r != d + 1 and usable[r - 1, 0]:
                flow.source[r] = True
                flow.queue[m] = r
                m += 1
        _spread_from(m, d + 1, n, arc, flow)
        for h in range(1, n + 1):
            usable[d, h] = usable[d, h] and flow.source[h]


@njit(cache=True, nogil=True)
def take_near(theta, n, reach, take, s):
    """Take the entries within ``reach`` of the best of their row, prices added."""
    for d in range(n):
        top = -np.inf
        for h in range(n + 1):
            if h != d + 1:
                for j in range(theta.shape[2]):
                    top = max(top, theta[d, h, j] + s.lift[d, h])
        for h in range(n + 1):
            for j in range(theta.shape[2]):
                if theta[d, h, j] > -np.inf and theta[d, h, j] + s.lift[d, h] >= top - reach:
                    take[d, h, j] = True


@njit(cache=True, nogil=True)
def take_priced(theta, slack, y, lam, K, n, take, s):
    """Take the entries that either player would use at the potentials of the game played without them."""
    one = lam.shape[1] - K
    for d in range(n):
        for h in range(n + 1):
            price_p, price_q = y[0, d], y[1, d]
            if h == 0:
                for c in range(one):
                    price_p += lam[0, c]
                    price_q += lam[1, c]
            for c in range(K):
                if s.sets[c, d] and (h == 0 or not s.sets[c, h - 1]):
                    price_p += lam[0, c + one]
                    price_q += lam[1, c + one]
            for j in range(theta.shape[2]):
                if theta[d, h, j] > -np.inf and (price_p > slack or theta[d, h, j] + price_q >= -slack):
                    take[d, h, j] = True


@njit(cache=True, nogil=True)
def take_replies(theta, n, single_root, take, s):
    """Take the trees that the certificate has just found against either player: while there is a gap, one is new."""
    for scores in (s.arc, s.other):
        best_tree(scores, n, single_root, s.heads, s.work)
        for d in range(n):
            for j in range(theta.shape[2]):
                if theta[d, s.heads[d], j] > -np.inf:
                    take[d, s.heads[d], j] = True


@njit(cache=True, nogil=True)
def taken_entries(theta, n, single_root, take, s):
    """Tokens, heads and labels of the entries that are taken.

    Arcs that no tree among them holds are left out, as the interior point method must have it.
    """
    L = theta.shape[2]
    at = np.empty((3, n * (n + 1) * L), np.int64)
    for d in range(n):
        for h in range(n + 1):
            s.other[d, h] = 0.0 if take[d, h].any() else -np.inf
    find_usable(s.other, n, single_root, s.usable, s.flow)
    m = 0
    for d in range(n):
        for h in range(n + 1):
            if s.usable[d, h]:
                for j in range(L):
                    if take[d, h, j]:
                        at[0, m], at[1, m], at[2, m] = d, h, j
                        m += 1
    return at[:, :m].copy()
