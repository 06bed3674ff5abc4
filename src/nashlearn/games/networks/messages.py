"""Sum-product, max-product and the predictor's sweep on clique trees, in the log domain: any range of scores.

    inward     each clique tells its parent  m(s) = eps log sum_a exp(b(a, s) / eps), leaves first;
    sweep      a depth-first tour: at each clique the node's reply is renewed, on the way back the message;
    outward    each clique is told by its parent what lies outside: marginals.

``b`` adds the node's scores, the lift ``L' p`` of its reply, the table and the children's messages. ``eps = 0`` is
max-product. Cost of each: a few operations for each entry of the tables, and one exponential where ``eps > 0``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from nashlearn.games.networks import replies

__all__ = ["beliefs", "decode", "inward", "sweep"]


@njit(cache=True, nogil=True)
def _fill(t, c, skip, f, lift, E, inside, b):
    """Write ``b`` of clique ``c`` without the message of child ``skip`` and without what is outside."""
    rows, columns, v = t.rows[c], t.columns[c], t.node[c]
    start = t.table[c]
    for a in range(rows):
        base = f[v, a] + lift[v, a]
        for s in range(columns):
            b[a * columns + s] = base + E[start + a * columns + s]
    d = t.child[c]
    while d >= 0:
        if d != skip:
            column = t.map[d]
            for x in range(rows * columns):
                b[x] += inside[d, t.maps[column + x]]
        d = t.sibling[d]


@njit(cache=True, nogil=True)
def _fill_all(t, c, skip, f, lift, E, inside, outside, b):
    """The same with what is outside."""
    _fill(t, c, skip, f, lift, E, inside, b)
    if t.parent[c] >= 0:
        rows, columns = t.rows[c], t.columns[c]
        for a in range(rows):
            for s in range(columns):
                b[a * columns + s] += outside[c, s]


@njit(cache=True, nogil=True)
def _pool(values, index, size, eps, out, total):
    """``out[i] = eps log sum exp(values / eps)`` over the entries with that index; -inf where there are none."""
    for i in range(out.size):
        out[i] = -np.inf
    for x in range(size):
        i = index[x]
        if values[x] > out[i]:
            out[i] = values[x]
    if eps > 0.0:
        for i in range(out.size):
            total[i] = 0.0
        for x in range(size):
            i = index[x]
            if values[x] > out[i] - 40.0 * eps:
                total[i] += np.exp((values[x] - out[i]) / eps)
        for i in range(out.size):
            if out[i] > -np.inf:
                out[i] += eps * np.log(total[i])


@njit(cache=True, nogil=True)
def _column_index(rows, columns, index):
    for a in range(rows):
        for s in range(columns):
            index[a * columns + s] = s


@njit(cache=True, nogil=True)
def _row_index(rows, columns, index):
    for a in range(rows):
        for s in range(columns):
            index[a * columns + s] = a


@njit(cache=True, nogil=True)
def _tell_parent(t, c, f, lift, E, eps, inside, b, index, total):
    _fill(t, c, -1, f, lift, E, inside, b)
    rows, columns = t.rows[c], t.columns[c]
    _column_index(rows, columns, index)
    _pool(b, index, rows * columns, eps, inside[c, :columns], total)


@njit(cache=True, nogil=True)
def _tell_child(t, c, f, lift, E, eps, inside, outside, b, total):
    """What lies outside clique ``c``, from its parent."""
    u = t.parent[c]
    _fill_all(t, u, c, f, lift, E, inside, outside, b)
    start, size = t.map[c], t.rows[u] * t.columns[u]
    _pool(b, t.maps[start : start + size], size, eps, outside[c, : t.columns[c]], total)


@njit(cache=True, nogil=True)
def inward(t, f, lift, E, eps, inside):
    """Write all messages to parents and return ``eps log Z``, the sum of the roots'."""
    size = (t.rows * t.columns).max()
    b, index, total = np.empty(size), np.empty(size, dtype=np.int64), np.empty(size)
    value = 0.0
    for c in range(t.node.size - 1, -1, -1):
        _tell_parent(t, c, f, lift, E, eps, inside, b, index, total)
        if t.parent[c] < 0:
            value += inside[c, 0]
    return value


@njit(cache=True, nogil=True)
def decode(t, f, E, inside, labels):
    """The labelling that attains ``eps log Z`` at ``eps = 0``, from the messages of :func:`inward`."""
    entry = np.empty(t.node.size, dtype=np.int64)
    for c in range(t.node.size):
        rows, columns, v, u = t.rows[c], t.columns[c], t.node[c], t.parent[c]
        s = 0 if u < 0 else t.maps[t.map[c] + entry[u]]
        best, chosen = -np.inf, 0
        for a in range(rows):
            value = f[v, a] + E[t.table[c] + a * columns + s]
            d = t.child[c]
            while d >= 0:
                value += inside[d, t.maps[t.map[d] + a * columns + s]]
                d = t.sibling[d]
            if value > best:
                best, chosen = value, a
        labels[v] = chosen
        entry[c] = chosen * columns + s


@njit(cache=True, nogil=True)
def sweep(loss, t, f, lift, E, eps, p, inside, outside):
    """Renew every reply in ``p`` once, with its ``lift``; ``inside`` holds the messages before, and after."""
    size = (t.rows * t.columns).max()
    b, index, total = np.empty(size), np.empty(size, dtype=np.int64), np.empty(size)
    widest = t.rows.max()
    reward, scratch = np.empty((1, widest)), np.empty((2, max(widest, p.shape[1])))
    n = t.node.size
    for c in range(n):
        rows, columns, v = t.rows[c], t.columns[c], t.node[c]
        if t.parent[c] >= 0:
            _tell_child(t, c, f, lift, E, eps, inside, outside, b, total)
        lift[v, :rows] = 0.0
        _fill_all(t, c, -1, f, lift, E, inside, outside, b)
        _row_index(rows, columns, index)
        _pool(b, index, rows * columns, eps, reward[0, :rows], total)
        replies.reply(loss, v, reward, rows, eps, p, scratch)
        replies.gain(loss, v, p, rows, lift, v)
        after = t.parent[c + 1] if c + 1 < n else -1
        d = c
        while d != after:
            _tell_parent(t, d, f, lift, E, eps, inside, b, index, total)
            d = t.parent[d]
            if d < 0:
                break


@njit(cache=True, nogil=True)
def beliefs(t, place, f, lift, E, eps, inside, outside, B):
    """Write the tables' unnormalised log-marginals into ``B``, each at its ``place``, from the messages inward."""
    size = (t.rows * t.columns).max()
    b, total = np.empty(size), np.empty(size)
    for c in range(t.node.size):
        if t.parent[c] >= 0:
            _tell_child(t, c, f, lift, E, eps, inside, outside, b, total)
        _fill_all(t, c, -1, f, lift, E, inside, outside, B[place[c] :])
