"""The sweep on forests in the probability domain: what training calls, once for each evaluation.

A batch of chains or trees is one forest, its nodes numbered in depth-first preorder. One round is

    up      messages to parents at the replies that are there;
    tour    depth first: renew a node's reply, tell its children what lies outside, on the way back renew messages;
    q       node and edge marginals; only where nodes branch do they need another pass down.

All numbers are probabilities scaled by their largest, so that a pass is multiplications and additions, with one
exponential for each node and label. Where the scores' range, in units of the smoothing, is too wide for that, the
component is left untouched and reported: :mod:`nashlearn.games.networks.messages` takes any range.
A chain is a tree without branches; costs are O(k^2) an edge. Reference: the sweep is block coordinate descent on the
predictor's side of the smoothed game, each block exact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from nashlearn.games.networks import replies
from nashlearn.games.networks.vectors import (
    add_outer,
    add_outers,
    dot,
    exponentials,
    flush,
    largest,
    product,
    rows_dot,
    rows_sum,
    scale_by,
    total,
)

__all__ = ["Forest", "play"]

_TINY = 1e-290
_LOG_TINY = -660.0  # a little above the logarithm of the smallest normal number


class Forest(NamedTuple):
    """Nodes in preorder: parents, first children and next siblings (-1: none), and the tables of their edges.

    ``table[i]`` is the table of the edge to the parent, read as (parent, child), or the other way where ``flipped``.
    """

    parent: np.ndarray
    child: np.ndarray
    sibling: np.ndarray
    table: np.ndarray
    flipped: np.ndarray


@njit(cache=True, nogil=True, forceinline=True)
def _below(child, sibling, i, skip, origin, up, k, out, row):
    """Product of the children's messages but that of ``skip``."""
    d = child[i]
    if d >= 0 and d != skip and sibling[d] < 0:
        for a in range(k):
            out[row, a] = up[d - origin, a]
        return
    for a in range(k):
        out[row, a] = 1.0
    while d >= 0:
        if d != skip:
            product(out, row, up, d - origin, k, out, row)
        d = sibling[d]


@njit(cache=True, nogil=True, forceinline=True)
def _tell_parent(flipped, table, i, origin, W, node, below, up, scale, k, x):
    """The message of node ``i`` to its parent, scaled by its largest entry."""
    j = i - origin
    product(node, j, below, j, k, x, 0)
    if flipped[i]:
        rows_sum(W, table[i], x, 0, k, up, j)
    else:
        rows_dot(W, table[i], x, 0, k, up, j)
    scale[j] = largest(up, j, k)
    if scale[j] > 0.0:
        scale_by(up, j, 1.0 / scale[j], k)


@njit(cache=True, nogil=True, forceinline=True)
def _tell_child(parent, child, sibling, flipped, table, i, origin, W, node, up, outside, pair, spread, k, x):
    """What lies outside node ``i``; ``pair`` keeps the parent's side of the edge, ``spread`` the scale."""
    j, u = i - origin, parent[i]
    product(outside, u - origin, node, u - origin, k, pair, j)
    if not (child[u] == i and sibling[i] < 0):
        _below(child, sibling, u, i, origin, up, k, x, 0)
        product(pair, j, x, 0, k, pair, j)
    if flipped[i]:
        rows_dot(W, table[i], pair, j, k, outside, j)
    else:
        rows_sum(W, table[i], pair, j, k, outside, j)
    spread[j] = largest(outside, j, k)
    if spread[j] > 0.0:
        scale_by(outside, j, 1.0 / spread[j], k)


@njit(cache=True, nogil=True)
def _up(loss, t, root, end, f, W, eps, p, base, node, below, up, scale, high, lifted, x, g, powers):
    """Messages to parents at the replies that are there; whether all are in range."""
    parent, child, sibling, table, flipped = t  # looked up once: each look-up counts a reference
    k = f.shape[1]
    for i in range(end - 1, root - 1, -1):
        j = i - root
        high[j] = largest(f, i, k)
        exponentials(f, i, high[j], eps, k, base, j, powers)
        lifted[j] = replies.tilt(loss, i, p, base, k, eps, g, node, j)
        _below(child, sibling, i, -1, root, up, k, below, j)
        if parent[i] >= 0:
            _tell_parent(flipped, table, i, root, W, node, below, up, scale, k, x)
            if not scale[j] > 0.0:
                return False
    return True


@njit(cache=True, nogil=True)
def _tour(loss, t, root, end, W, eps, p, base, node, below, up, scale, outside, pair, spread, lifted, x, c, g):
    """Renew the replies, depth first, with what is told to children on the way down and to parents on the way up."""
    parent, child, sibling, table, flipped = t
    k = base.shape[1]
    for i in range(root, end):
        j = i - root
        if parent[i] >= 0:
            _tell_child(parent, child, sibling, flipped, table, i, root, W, node, up, outside, pair, spread, k, x)
        else:
            for a in range(k):
                outside[j, a] = 1.0
        product(outside, j, below, j, k, c, 0)
        product(c, 0, base, j, k, c, 0)
        best = largest(c, 0, k)
        if not (best > 0.0 and np.log(best) - replies.reach(loss, i, eps) / eps > _LOG_TINY):
            return False
        lifted[j] = replies.settle(loss, i, c, best, k, eps, base, p, g, node, j)
        after = parent[i + 1] if i + 1 < end else -1
        d = i
        while d != after and parent[d] >= 0:
            _tell_parent(flipped, table, d, root, W, node, below, up, scale, k, x)
            if not scale[d - root] > 0.0:
                return False
            d = parent[d]
            _below(child, sibling, d, -1, root, up, k, below, d - root)
    return True


@njit(cache=True, nogil=True)
def _marginals(t, root, end, again, W, node, below, up, outside, pair, spread, mass, q, x):
    """Nodes' marginals, not yet scaled; ``again`` tells children anew, which chains have been told already."""
    parent, child, sibling, table, flipped = t
    k = q.shape[1]
    for i in range(root, end):
        j = i - root
        if parent[i] < 0:
            for a in range(k):
                outside[j, a] = 1.0
        elif again:
            _tell_child(parent, child, sibling, flipped, table, i, root, W, node, up, outside, pair, spread, k, x)
        product(outside, j, node, j, k, x, 0)
        product(x, 0, below, j, k, q, i)
        mass[j] = total(q, i, k)
        # An edge's marginals are divided by both, so what underflowed must be small beside their product.
        if not (mass[j] > _TINY and (parent[i] < 0 or mass[j] * spread[j] > _TINY)):
            return False
    return True


@njit(cache=True, nogil=True)
def _sums(
    loss, t, root, end, f, T, tops, W, eps, w, p, q, E, own, node, below, up, scale, pair, spread, mass, high, lifted
):
    """Scale ``q`` and add the edges' marginals to ``E``, weighted.

    Returns the value at ``p``, ``<p, L q>``, its least over ``p``, and ``<scores, q>``. ``own`` (1, k, k) is scratch.
    """
    parent, table, flipped = t.parent, t.table, t.flipped
    k = q.shape[1]
    value, cost, risk, scored, norm = 0.0, 0.0, 0.0, 0.0, mass[0]
    for i in range(root, end):
        j = i - root
        r = 1.0 / mass[j]
        scale_by(q, i, r, k)
        cost += replies.expected(loss, i, p, q, k)
        risk += replies.risk(loss, i, q, k)
        scored += dot(f, i, q, i, k)
        value += high[j] + lifted[j]
        if parent[i] >= 0:
            value += tops[table[i]]
            if 1e-100 < norm < 1e100 and scale[j] > 1e-100:  # one logarithm for many factors
                norm *= scale[j]
            else:
                value += eps * (np.log(norm) + np.log(scale[j]))
                norm = 1.0
            product(node, j, below, j, k, up, j)  # messages are no longer needed
            scale_by(up, j, r / spread[j], k)
    i = root + 1
    own[:] = 0.0
    while i < end:
        j, e = i - root, table[i]
        if (
            i + 3 < end
            and e == table[i + 1] == table[i + 2] == table[i + 3]
            and not (flipped[i] or flipped[i + 1] or flipped[i + 2] or flipped[i + 3])
        ):
            add_outers(own, 0, pair, j, up, j, k)
            i += 4
        else:
            if flipped[i]:
                add_outer(own, 0, up, j, pair, j, 1.0, k)
            else:
                add_outer(own, 0, pair, j, up, j, 1.0, k)
            i += 1
        if i == end or table[i] != e:
            scored += flush(own, T, W, E, e, w, k)
    return value + eps * np.log(norm), cost, risk, scored


@njit(cache=True, nogil=True)
def play(loss, t, f, T, tops, W, eps, rounds, p, q, E, weight, first, last, lost, sums):
    """Play the components of the nodes ``first..last - 1``; write ``p``, ``q``, and add edge marginals to ``E``.

    ``T`` holds the tables, ``tops`` the largest entry of each, and ``W`` exp((T - tops) / eps). ``E`` sums the edges'
    marginals divided by ``W``, each component's times the ``weight`` of its root.
    Row ``root`` of ``sums`` gets the component's smoothed value at ``p``, ``<p, L q>``, its least over ``p``, and
    ``<scores, q>``. A component out of range sets ``lost`` at its root instead and adds nothing.
    """
    parent, sibling = t.parent, t.sibling
    k = f.shape[1]
    longest, i = 1, first
    while i < last:
        end = i + 1
        while end < last and parent[end] >= 0:
            end += 1
        longest = max(longest, end - i)
        i = end
    base, node, below = np.empty((longest, k)), np.empty((longest, k)), np.empty((longest, k))
    up, outside, pair = np.empty((longest, k)), np.empty((longest, k)), np.empty((longest, k))
    scale, spread, mass = np.empty(longest), np.empty(longest), np.empty(longest)
    high, lifted = np.empty(longest), np.empty(longest)
    x, c, g = np.empty((1, k)), np.empty((1, k)), np.empty((2, max(k, p.shape[1])))
    powers, own = np.empty((1, k)), np.empty((1, k, k))
    root = first
    while root < last:
        end = root + 1
        branched = False
        while end < last and parent[end] >= 0:
            branched = branched or sibling[end] >= 0
            end += 1
        good = _up(loss, t, root, end, f, W, eps, p, base, node, below, up, scale, high, lifted, x, g, powers)
        for _ in range(rounds):
            good = good and _tour(
                loss, t, root, end, W, eps, p, base, node, below, up, scale, outside, pair, spread, lifted, x, c, g
            )
        again = branched or rounds == 0
        good = good and _marginals(t, root, end, again, W, node, below, up, outside, pair, spread, mass, q, x)
        if good:
            w = weight[root]
            sums[root, 0], sums[root, 1], sums[root, 2], sums[root, 3] = _sums(
                loss, t, root, end, f, T, tops, W, eps, w, p, q, E, own, node, below, up, scale, pair, spread, mass,
                high, lifted,
            )  # fmt: skip
        else:
            lost[root] = True
        root = end
