"""Dual block ascent on any graph: the local polytope's game, one node with all its edges at a time.

Node and edge marginals that agree only locally bound the game from above; the multipliers ``alpha`` of their
agreement and the replies ``p`` are found together. With temperature ``e_v`` on nodes and ``e_e`` on edges,

    sum_v e_v log sum_a exp((f_v + L' p_v + sum_e alpha_ev)(a) / e_v)
    + sum_e e_e log sum_ab exp((T_e(a, b) - alpha_eu(a) - alpha_ev(b)) / e_e),

and for one node ``v`` of degree ``d`` the exact minimiser over its ``alpha`` and its reply is, with
``mu_e(a) = e_e log sum_b exp((T_e(a, b) - alpha_e,other(b)) / e_e)`` and ``F = f_v + sum_e mu_e``: the best reply to
``F`` at temperature ``e_v + d e_e``, then ``alpha_ev = mu_e - e_e (F + L' p_v) / (e_v + d e_e)``.
A sweep over all nodes costs two passes over the edges' tables.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from nashlearn.games.markov import replies

__all__ = ["Incidence", "bound", "incidence", "marginals", "sweep"]


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


@njit(cache=True, nogil=True)
def _told(g, e, side, T, alpha, k, eps, x, out):
    """``mu_e`` for the end ``side`` of edge ``e``."""
    table = T[g.table[e]]
    other = alpha[e, 1 - side]
    for a in range(k):
        for b in range(k):
            t = table[a, b] if side == 0 else table[b, a]
            x[b] = t - other[b] if t > -np.inf else -np.inf
        out[a] = _log_sum(x, k, eps)


@njit(cache=True, nogil=True)
def sweep(loss, g, f, T, e_v, e_e, p, alpha, q):
    """Renew every node's reply and multipliers once, first to last, then back; ``q`` gets the nodes' beliefs."""
    n, k = f.shape
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
            _told(g, e, side, T, alpha, k, e_e, x[0], mu[i])
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
def bound(loss, g, f, T, e_v, e_e, p, alpha):
    """The objective at ``p`` and ``alpha``: an upper bound on the game's value at these temperatures."""
    n, k = f.shape
    lift, y = np.empty((1, k)), np.empty(k)
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
        table = T[g.table[e]]
        for a in range(k):
            for b in range(k):
                x[b] = table[a, b] - alpha[e, 0, a] - alpha[e, 1, b] if table[a, b] > -np.inf else -np.inf
            y[a] = _log_sum(x, k, e_e)
        value += _log_sum(y, k, e_e)
    return value


@njit(cache=True, nogil=True)
def marginals(g, T, e_e, alpha, q, pairs):
    """Edge marginals near the beliefs that agree with the nodes' ``q``: scaled, then topped up [altschuler2017]_."""
    k = q.shape[1]
    row, column = np.empty(k), np.empty(k)
    for e in range(g.ends.shape[0]):
        table, joint = T[g.table[e]], pairs[e]
        u, v = g.ends[e, 0], g.ends[e, 1]
        top, total = -np.inf, 0.0
        for a in range(k):
            for b in range(k):
                joint[a, b] = table[a, b] - alpha[e, 0, a] - alpha[e, 1, b] if table[a, b] > -np.inf else -np.inf
                top = max(top, joint[a, b])
        for a in range(k):
            for b in range(k):
                joint[a, b] = np.exp((joint[a, b] - top) / e_e)
                total += joint[a, b]
        joint /= total
        match(joint, q[u], q[v], row, column)


@njit(cache=True, nogil=True)
def match(joint, left, right, row, column):
    """Change ``joint`` into one with marginals ``left`` and ``right``, keeping its zeros where that is possible."""
    k = left.size
    for _ in range(4):
        for a in range(k):
            s = joint[a].sum()
            if s > 0.0:
                for b in range(k):
                    joint[a, b] *= left[a] / s
        for b in range(k):
            s = 0.0
            for a in range(k):
                s += joint[a, b]
            if s > 0.0:
                for a in range(k):
                    joint[a, b] *= right[b] / s
    for a in range(k):
        s = joint[a].sum()
        if s > left[a]:
            for b in range(k):
                joint[a, b] *= left[a] / s
    missing = 0.0
    for a in range(k):
        row[a] = max(left[a] - joint[a].sum(), 0.0)
        missing += row[a]
    if missing > 0.0:
        for b in range(k):
            s = 0.0
            for a in range(k):
                s += joint[a, b]
            column[b] = max(right[b] - s, 0.0)
        for a in range(k):
            if row[a] > 0.0:
                for b in range(k):
                    joint[a, b] += row[a] * column[b] / missing
