"""Wolfe's method for the point of the arborescence polytope that is nearest to given scores [wolfe1976]_.

The point is kept as a convex combination of affinely independent trees. A best tree for the direction towards the
scores enters; then the affine minimiser over the trees is taken, trees that would get a negative weight leaving. The
inner product of two trees is the number of arcs they share, so the systems are small and exact.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from nashlearn.games.trees.best import Workspace, best_tree

__all__ = ["nearest_point"]

_MOST = 4000  # trees that may enter


@njit(cache=True, nogil=True)
def _grow(a, size):
    """``a`` with its first axis doubled."""
    b = np.empty((2 * a.shape[0], *a.shape[1:]), a.dtype)
    b[:size] = a[:size]
    return b


@njit(cache=True, nogil=True)
def _factor(G, L, start, k):
    """Rows ``start..k-1`` of the Cholesky factor of ``G + 1``; the first row whose pivot vanishes, or ``k``."""
    for i in range(start, k):
        for j in range(i + 1):
            s = G[i, j] + 1.0
            for p in range(j):
                s -= L[i, p] * L[j, p]
            if i == j:
                if s <= 1e-10:
                    return i
                L[i, i] = np.sqrt(s)
            else:
                L[i, j] = s / L[j, j]
    return k


@njit(cache=True, nogil=True)
def _solve(L, k, b, out):
    """``(L L')^-1 b``."""
    for i in range(k):
        s = b[i]
        for p in range(i):
            s -= L[i, p] * out[p]
        out[i] = s / L[i, i]
    for i in range(k - 1, -1, -1):
        s = out[i]
        for p in range(i + 1, k):
            s -= L[p, i] * out[p]
        out[i] = s / L[i, i]


@njit(cache=True, nogil=True)
def _affine(L, k, worth, ones, out, other):
    """Weights, summing to 1, of the affine combination of trees nearest to the scores."""
    _solve(L, k, worth, out)
    _solve(L, k, ones, other)
    excess = (out[:k].sum() - 1.0) / other[:k].sum()
    for i in range(k):
        out[i] -= excess * other[i]


@njit(cache=True, nogil=True)
def _drop(i, k, V, G, mu, worth):
    """Remove tree ``i``, keeping the order of the rest."""
    for r in range(i, k - 1):
        V[r] = V[r + 1]
        mu[r], worth[r] = mu[r + 1], worth[r + 1]
    for r in range(k):
        for c in range(i, k - 1):
            G[r, c] = G[r, c + 1]
    for r in range(i, k - 1):
        G[r, : k - 1] = G[r + 1, : k - 1]


@njit(cache=True, nogil=True)
def _best_code(w, n, single_root, arc, label, heads, code, work):
    """The best tree of ``w`` (n, n + 1, labels), each token's head and label as one number."""
    L = w.shape[2]
    for d in range(n):
        for h in range(n + 1):
            best, at = w[d, h, 0], 0
            for j in range(1, L):
                if w[d, h, j] > best:
                    best, at = w[d, h, j], j
            arc[d, h], label[d, h] = best, at
    best_tree(arc, n, single_root, heads, work)
    for d in range(n):
        code[d] = heads[d] * L + label[d, heads[d]]


@njit(cache=True, nogil=True)
def nearest_point(w: np.ndarray, n: int, single_root: bool, x: np.ndarray, heads: np.ndarray, work: Workspace) -> float:
    """The projection of ``w`` (n, n + 1, labels) into ``x``; the Frank-Wolfe gap at which it ended.

    There must be a tree; forbidden arcs are ``-inf``.
    """
    room, L = 64, w.shape[2]
    V, code, label = np.empty((room, n), np.int64), np.empty(n, np.int64), np.empty((n, n + 1), np.int64)
    G, chol = np.empty((room, room)), np.empty((room, room))
    mu, worth, ones, best, other = np.empty(room), np.empty(room), np.ones(room), np.empty(room), np.empty(room)
    slope, arc = np.empty((n, n + 1, L)), np.empty((n, n + 1))
    size = 0.0
    for d in range(n):
        low = 0.0
        for h in range(n + 1):
            for j in range(L):
                if w[d, h, j] > -np.inf:
                    low = min(low, w[d, h, j])
        size -= low
    _best_code(w, n, single_root, arc, label, heads, code, work)
    V[0] = code
    k, mu[0], worth[0] = 1, 1.0, 0.0
    for d in range(n):
        worth[0] += w[d, code[d] // L, code[d] % L]
    G[0, 0] = n
    _factor(G, chol, 0, 1)
    gap = np.inf
    for _ in range(_MOST):
        x[:n, : n + 1] = 0.0
        for i in range(k):
            for d in range(n):
                x[d, V[i, d] // L, V[i, d] % L] += mu[i]
        inside = 0.0
        for d in range(n):
            for h in range(n + 1):
                for j in range(L):
                    slope[d, h, j] = w[d, h, j] - x[d, h, j]
                    if x[d, h, j] > 0.0:
                        inside += slope[d, h, j] * x[d, h, j]
        _best_code(slope, n, single_root, arc, label, heads, code, work)
        top, value = 0.0, 0.0
        for d in range(n):
            h, j = code[d] // L, code[d] % L
            top += slope[d, h, j]
            value += w[d, h, j]
        gap = top - inside
        if gap <= 1e-14 * (n + size):
            return gap
        if k == room:
            room *= 2
            V, mu, worth, best, other = _grow(V, k), _grow(mu, k), _grow(worth, k), _grow(best, k), _grow(other, k)
            ones = np.ones(room)
            wide, tall = np.empty((room, room)), np.empty((room, room))
            wide[:k, :k], tall[:k, :k] = G[:k, :k], chol[:k, :k]
            G, chol = wide, tall
        V[k] = code
        for i in range(k + 1):
            shared = 0
            for d in range(n):
                shared += V[i, d] == V[k, d]
            G[i, k] = G[k, i] = shared
        mu[k], worth[k] = 0.0, value
        k += 1
        if _factor(G, chol, k - 1, k) < k:  # an affine combination of the others: only rounding lets it enter
            return gap
        while True:
            _affine(chol, k, worth, ones, best, other)
            t, leaving = 1.0, -1
            for i in range(k):
                if best[i] <= 0.0 and mu[i] - best[i] > 0.0:
                    share = mu[i] / (mu[i] - best[i])
                    if share < t:
                        t, leaving = share, i
            for i in range(k):
                mu[i] += t * (best[i] - mu[i])
            if leaving < 0:
                break
            _drop(leaving, k, V, G, mu, worth)
            k -= 1
            _factor(G, chol, leaving, k)
    return gap
