"""Wolfe's method for the point of the arborescence polytope that is nearest to given scores [wolfe1976]_.

The point is kept as a convex combination of affinely independent trees. A best tree for the direction towards the
scores enters; then the affine minimiser over the trees is taken, trees that would get a negative weight leaving. The
inner product of two trees is the number of arcs they share, so the systems, each entry 1 more, are small and exact.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from nashlearn.games.trees.best import Workspace, best_labelled
from nashlearn.solvers.dense import cholesky, cholesky_solve

__all__ = ["nearest_point"]

_MOST = 4000  # trees that may enter
_DEPENDENT = 1e-10  # a pivot of the Gram matrix, of integers, that is 0 but for rounding


@njit(cache=True, nogil=True)
def _grow(a, size):
    """``a`` with its first axis doubled."""
    b = np.empty((2 * a.shape[0], *a.shape[1:]), a.dtype)
    b[:size] = a[:size]
    return b


@njit(cache=True, nogil=True)
def _affine(chol, k, worth, out, other):
    """Weights, summing to 1, of the affine combination of trees nearest to the scores."""
    out[:k], other[:k] = worth[:k], 1.0
    cholesky_solve(chol, k, out)
    cholesky_solve(chol, k, other)
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
    """The score of the best tree of ``w`` (n, n + 1, labels), each token's head and label as one number in ``code``."""
    score = best_labelled(w, n, single_root, arc, label, heads, work)
    for d in range(n):
        code[d] = heads[d] * w.shape[2] + label[d, heads[d]]
    return score


@njit(cache=True, nogil=True)
def nearest_point(w: np.ndarray, n: int, single_root: bool, x: np.ndarray, heads: np.ndarray, work: Workspace) -> float:
    """The projection of ``w`` (n, n + 1, labels) into ``x``; the Frank-Wolfe gap at which it ended.

    There must be a tree; forbidden arcs are ``-inf``.
    """
    room, L = 64, w.shape[2]
    V, code, label = np.empty((room, n), np.int64), np.empty(n, np.int64), np.empty((n, n + 1), np.int64)
    G, chol = np.empty((room, room)), np.empty((room, room))
    mu, worth, best, other = np.empty(room), np.empty(room), np.empty(room), np.empty(room)
    slope, arc = np.empty((n, n + 1, L)), np.empty((n, n + 1))
    size = 0.0
    for d in range(n):
        low = 0.0
        for h in range(n + 1):
            for j in range(L):
                if w[d, h, j] > -np.inf:
                    low = min(low, w[d, h, j])
        size -= low
    worth[0] = _best_code(w, n, single_root, arc, label, heads, code, work)
    V[0] = code
    k, mu[0] = 1, 1.0
    G[0, 0] = n + 1.0
    cholesky(G, chol, 0, 1, _DEPENDENT)
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
        gap = _best_code(slope, n, single_root, arc, label, heads, code, work) - inside
        if gap <= 1e-14 * (n + size):
            return gap
        if k == room:
            room *= 2
            V, mu, worth, best, other = _grow(V, k), _grow(mu, k), _grow(worth, k), _grow(best, k), _grow(other, k)
            wide, tall = np.empty((room, room)), np.empty((room, room))
            wide[:k, :k], tall[:k, :k] = G[:k, :k], chol[:k, :k]
            G, chol = wide, tall
        V[k] = code
        for i in range(k + 1):
            G[i, k] = G[k, i] = 1.0 + (V[i] == code).sum()
        mu[k], worth[k] = 0.0, 0.0
        for d in range(n):
            worth[k] += w[d, code[d] // L, code[d] % L]
        k += 1
        # An affine combination of the others: only rounding lets it enter.
        if cholesky(G, chol, k - 1, k, _DEPENDENT) < k:
            return gap
        while True:
            _affine(chol, k, worth, best, other)
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
            cholesky(G, chol, leaving, k, _DEPENDENT)
    return gap
