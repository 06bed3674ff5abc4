"""Dual block ascent on any graph: the local polytope's game, one node with all its edges at a time.

Node and edge marginals that agree only locally bound the game from above; the multipliers ``alpha`` of their
agreement and the replies ``p`` are found together. With temperature ``e_v`` on nodes and ``e_e`` on edges,

    sum_v e_v log sum_a exp((f_v + L' p_v + sum_e alpha_ev)(a) / e_v)
    + sum_e e_e log sum_ab exp((T_e(a, b) - alpha_eu(a) - alpha_ev(b)) / e_e),

and for one node ``v`` of degree ``d`` the exact minimiser over its ``alpha`` and its reply is, with
``mu_e(a) = e_e log sum_b exp((T_e(a, b) - alpha_e,other(b)) / e_e)`` and ``F = f_v + sum_e mu_e``: the best reply to
``F`` at temperature ``e_v + d e_e``, then ``alpha_ev = mu_e - e_e (F + L' p_v) / (e_v + d e_e)``.
A sweep over all nodes costs two passes over the edges' tables, whose exponentials are taken once for many sweeps
(:func:`heated`); sums that leave the range of numbers are taken again in the log domain.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from nashlearn.games.networks import replies

__all__ = ["Heated", "Incidence", "agree", "beliefs", "bound", "expected", "heated", "incidence", "risk", "sweep"]

_TINY = 1e-250
_LEAST = 1e-300  # sum that others may be divided by


class Incidence(NamedTuple):
    """A graph as compiled code reads it: ends of the edges, their tables, and the edges at each node."""

    ends: np.ndarray  # (m, 2)
    table: np.ndarray  # (m,)
    start: np.ndarray  # (n + 1,)
    member: np.ndarray  # edges, 2 m of them
    side: np.ndarray  # which end of each the node is


def incidence(n: int, edges: np.ndarray, table: np.ndarray) -> Incidence:
    """The edges at each node of a graph of ``n`` nodes."""
    node = edges.ravel()
    order = np.argsort(node, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(node, minlength=n))]).astype(np.int64)
    return Incidence(edges, table, start, order // 2, order % 2)


@njit(cache=True, nogil=True)
def _log_sum(values, k, eps):
    top = -np.inf
    for a in range(k):
        top = max(top, values[a])
    if eps == 0.0 or top == -np.inf:
        return top
    total = 0.0
    for a in range(k):
        if values[a] > top - 40.0 * eps:
            total += np.exp((values[a] - top) / eps)
    return top + eps * np.log(total)


class Heated(NamedTuple):
    """Edge scores, and ``exp((scores - top) / eps)`` for one temperature with the tables' ``top``."""

    T: np.ndarray
    W: np.ndarray
    top: np.ndarray
    eps: float


def heated(T: np.ndarray, eps: float) -> Heated:
    """Tables (m, k, k) at a temperature; one that is repeated by broadcasting is worked out once."""
    own = T[:1] if len(T) and T.strides[0] == 0 else T
    top = own.max(axis=(1, 2)) if len(own) else np.zeros(0)
    top[np.isneginf(top)] = 0.0
    W = np.exp((own - top[:, None, None]) / eps) if eps else own
    return Heated(T, np.broadcast_to(W, T.shape), np.broadcast_to(top, len(T)), eps)


@njit(cache=True, nogil=True)
def _lowered(alpha, k, eps, out):
    """Write ``exp((low - alpha) / eps)`` and return ``low``, the least of them."""
    low = np.inf
    for a in range(k):
        low = min(low, alpha[a])
    for a in range(k):
        out[a] = np.exp((low - alpha[a]) / eps) if alpha[a] < np.inf else 0.0
    return low


@njit(cache=True, nogil=True)
def _told(g, e, side, h, alpha, k, x, out):
    """``mu_e`` for the end ``side`` of edge ``e``."""
    i, eps = g.table[e], h.eps
    other = alpha[e, 1 - side]
    low = _lowered(other, k, eps, x)
    for a in range(k):
        total = 0.0
        for b in range(k):
            total += (h.W[i, a, b] if side == 0 else h.W[i, b, a]) * x[b]
        out[a] = total
    for a in range(k):
        if out[a] > _TINY:
            out[a] = h.top[i] - low + eps * np.log(out[a])
        else:
            for b in range(k):
                t = h.T[i, a, b] if side == 0 else h.T[i, b, a]
                x[b] = t - other[b] if t > -np.inf else -np.inf
            out[a] = _log_sum(x, k, eps)


@njit(cache=True, nogil=True)
def sweep(loss, g, f, h, e_v, p, alpha, q):
    """Renew every node's reply and multipliers once, first to last, then back; ``q`` gets the nodes' beliefs."""
    n, k = f.shape
    e_e = h.eps
    widest = 1
    for v in range(n):
        widest = max(widest, g.start[v + 1] - g.start[v])
    mu, F, x = np.empty((widest, k)), np.empty((1, k)), np.empty((1, k))
    scratch = np.empty((2, max(k, p.shape[1])))
    for step in range(2 * n):
        v = step if step < n else 2 * n - 1 - step
        degree = g.start[v + 1] - g.start[v]
        for a in range(k):
            F[0, a] = f[v, a]
        for i in range(degree):
            e, side = g.member[g.start[v] + i], g.side[g.start[v] + i]
            _told(g, e, side, h, alpha, k, x[0], mu[i])
            for a in range(k):
                F[0, a] += mu[i, a]
        heat = e_v + degree * e_e
        replies.reply(loss, v, F, k, heat, p, scratch)
        replies.gain(loss, v, p, k, x, 0)
        top, total = -np.inf, 0.0
        for a in range(k):
            F[0, a] += x[0, a]
            top = max(top, F[0, a])
        for a in range(k):
            q[v, a] = np.exp((F[0, a] - top) / heat)
            total += q[v, a]
        for a in range(k):
            q[v, a] /= total
        for i in range(degree):
            e, side = g.member[g.start[v] + i], g.side[g.start[v] + i]
            for a in range(k):
                # The multiplier of a label that is out of the question keeps the edge from counting on it.
                alpha[e, side, a] = mu[i, a] - e_e * (F[0, a] - top) / heat if F[0, a] > -np.inf else np.inf


@njit(cache=True, nogil=True)
def bound(loss, g, f, h, e_v, p, alpha):
    """The objective at ``p`` and ``alpha``: an upper bound on the game's value at these temperatures."""
    n, k = f.shape
    lift, y, z, joint = np.empty((1, k)), np.empty(k), np.empty(k), np.empty((k, k))
    x = lift[0]
    value = 0.0
    for v in range(n):
        replies.gain(loss, v, p, k, lift, 0)
        for a in range(k):
            x[a] += f[v, a]
        for i in range(g.start[v], g.start[v + 1]):
            for a in range(k):
                if x[a] > -np.inf:
                    x[a] += alpha[g.member[i], g.side[i], a]
        for a in range(k):
            if x[a] == np.inf:  # allowed here, but not by a neighbour
                x[a] = -np.inf
        value += _log_sum(x, k, e_v)
    for e in range(g.ends.shape[0]):
        value += _belief(g, e, h, alpha, k, y, z, joint)
    return value


@njit(cache=True, nogil=True)
def _belief(g, e, h, alpha, k, x, y, joint):
    """``eps log sum exp((T - alpha) / eps)`` of an edge, and where ``eps > 0`` its distribution, into ``joint``."""
    i = g.table[e]
    if h.eps > 0.0:
        low = _lowered(alpha[e, 0], k, h.eps, x) + _lowered(alpha[e, 1], k, h.eps, y)
        total = 0.0
        for a in range(k):
            for b in range(k):
                joint[a, b] = h.W[i, a, b] * x[a] * y[b]
                total += joint[a, b]
        if total > _TINY:
            joint /= total
            return h.top[i] - low + h.eps * np.log(total)
    for a in range(k):
        for b in range(k):
            t = h.T[i, a, b]
            joint[a, b] = t - alpha[e, 0, a] - alpha[e, 1, b] if t > -np.inf else -np.inf
        x[a] = _log_sum(joint[a], k, h.eps)
    value = _log_sum(x, k, h.eps)
    if h.eps > 0.0:
        for a in range(k):
            for b in range(k):
                joint[a, b] = np.exp((joint[a, b] - value) / h.eps)
    return value


@njit(cache=True, nogil=True)
def expected(loss, p, q):
    """``<p, L q>``, summed over nodes."""
    cost = 0.0
    for v in range(q.shape[0]):
        cost += replies.expected(loss, v, p, q, q.shape[1])
    return cost


@njit(cache=True, nogil=True)
def risk(loss, q):
    """``min_p <p, L q>``, summed over nodes."""
    least = 0.0
    for v in range(q.shape[0]):
        least += replies.risk(loss, v, q, q.shape[1])
    return least


@njit(cache=True, nogil=True)
def beliefs(g, h, alpha, pairs):
    """The edges' own distributions, for which the bound is attained; their sums need not agree with the nodes'."""
    k = pairs.shape[1]
    x, y = np.empty(k), np.empty(k)
    for e in range(g.ends.shape[0]):
        _belief(g, e, h, alpha, k, x, y, pairs[e])


@njit(cache=True, nogil=True)
def agree(g, q, pairs):
    """Change edge beliefs into marginals that agree with the nodes' ``q``: scaled, then topped up [altschuler2017]_."""
    row, column = np.empty(q.shape[1]), np.empty(q.shape[1])
    for e in range(g.ends.shape[0]):
        _match(pairs[e], q[g.ends[e, 0]], q[g.ends[e, 1]], row, column)


@njit(cache=True, nogil=True)
def _scale_rows(joint, sums, down):
    """Scale rows to these sums; ``down``: only those that exceed them. What is all but 0 stays as it is."""
    for a in range(sums.size):
        s = joint[a].sum()
        if s > (sums[a] if down else _LEAST):
            for b in range(sums.size):
                joint[a, b] *= sums[a] / s


@njit(cache=True, nogil=True)
def _match(joint, left, right, row, column):
    """Change ``joint`` into one with marginals ``left`` and ``right``, keeping its zeros where that is possible."""
    k = left.size
    for _ in range(4):
        _scale_rows(joint, left, False)
        _scale_rows(joint.T, right, False)
    _scale_rows(joint, left, True)
    missing = 0.0
    for a in range(k):
        row[a] = max(left[a] - joint[a].sum(), 0.0)
        missing += row[a]
    if missing > 0.0:
        for b in range(k):
            column[b] = max(right[b] - joint[:, b].sum(), 0.0)
        for a in range(k):
            if row[a] > 0.0:
                for b in range(k):
                    joint[a, b] += row[a] * column[b] / missing
