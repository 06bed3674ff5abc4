"""Projection of labelled arcs onto trees as published: Frank-Wolfe, and ADMM on Martin's polytope ([li2022]_, sec. 4).

A point is an array ``x`` (n, n + 1, labels) over tokens and their heads. Martin's formulation keeps, for every node
``k``, a tree directed away from ``k`` on the same undirected edges; ADMM asks the copies ``u_k`` to agree. Both exist
for trees with any number of root arcs and for trees with one, so that they can be compared on the same polytope.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from nashlearn.games.trees.best import Workspace, best_tree, workspace

__all__ = ["admm_path", "frank_wolfe_path"]

_INNER = 2000  # steps for the projection onto one copy's constraints
_TINY = 1e-12


@njit(cache=True, nogil=True)
def _simplex(v, out):
    """The nearest point of the simplex."""
    order = np.sort(v)[::-1]
    total, t = 0.0, 0.0
    for i in range(order.size):
        total += order[i]
        if order[i] > (total - 1.0) / (i + 1.0):
            t = (total - 1.0) / (i + 1.0)
    for i in range(v.size):
        out[i] = max(v[i] - t, 0.0)


@njit(cache=True, nogil=True)
def _rows(v, single_root, out):
    """``U_r``: one head for each token; with a single root the root arcs sum to 1, by bisection on their price."""
    n, _, L = v.shape
    shifted, flat = np.empty((n + 1) * L), np.empty((n + 1) * L)
    low, high, price = -np.abs(v).max() * 2.0 - 2.0, np.abs(v).max() * 2.0 + 2.0, 0.0
    for _ in range(100 if single_root else 1):
        price = 0.5 * (low + high) if single_root else 0.0
        roots = 0.0
        for d in range(n):
            for h in range(n + 1):
                for j in range(L):
                    shifted[h * L + j] = v[d, h, j] - (price if h == 0 else 0.0)
            for j in range(L):
                shifted[(d + 1) * L + j] = -np.inf
            _simplex(shifted, flat)
            for h in range(n + 1):
                for j in range(L):
                    out[d, h, j] = flat[h * L + j]
                    if h == 0:
                        roots += flat[j]
        if roots > 1.0:
            low = price
        else:
            high = price


@njit(cache=True, nogil=True)
def _copy(v, k, z, out):
    """``U_k``: the nearest ``x`` whose undirected edges carry a tree directed away from node ``k``; ``z`` is its start.

    ``z[j, i]`` is the arc into node ``j`` from ``i``; accelerated projected gradients over one simplex a node.
    """
    n, _, L = v.shape
    edge, count = np.zeros((n + 1, n + 1)), np.zeros((n + 1, n + 1))
    for d in range(n):
        for h in range(n + 1):
            if h != d + 1:
                for j in range(L):
                    edge[d + 1, h] += v[d, h, j]
                    edge[h, d + 1] += v[d, h, j]
                    count[d + 1, h] += 1.0
                    count[h, d + 1] += 1.0
    step = 0.25 * L  # the least number of arcs of an edge over the curvature
    ahead, speed, row, new = z.copy(), 1.0, np.empty(n), np.empty(n)
    for _ in range(_INNER):
        moved, faster = 0.0, 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * speed * speed))
        before = z.copy()
        for node in range(n + 1):
            if node == k:
                continue
            at = 0
            for i in range(n + 1):
                if i != node:
                    slope = 2.0 * (ahead[node, i] + ahead[i, node] - edge[node, i]) / count[node, i]
                    row[at] = ahead[node, i] - step * slope
                    at += 1
            _simplex(row, new)
            at = 0
            for i in range(n + 1):
                if i != node:
                    z[node, i] = new[at]
                    at += 1
        for a in range(n + 1):
            for b in range(n + 1):
                moved = max(moved, abs(z[a, b] - before[a, b]))
                ahead[a, b] = z[a, b] + (speed - 1.0) / faster * (z[a, b] - before[a, b])
        speed = faster
        if moved < _TINY:
            break
    for d in range(n):
        for h in range(n + 1):
            if h != d + 1:
                share = (z[d + 1, h] + z[h, d + 1] - edge[d + 1, h]) / count[d + 1, h]
                for j in range(L):
                    out[d, h, j] = v[d, h, j] + share


@njit(cache=True, nogil=True)
def _admm(w, single_root, steps, path):
    n, _, L = w.shape
    nodes = n + 1
    x, old, mixed = np.zeros(w.shape), np.zeros(w.shape), np.empty(w.shape)
    _rows(w, single_root, x)
    u, dual = np.zeros((n, n, n + 1, L)), np.zeros((n, n, n + 1, L))
    z, rho = np.zeros((n, nodes, nodes)), np.full(n, 1.0)
    for t in range(steps):
        old[:] = x
        for k in range(n):
            mixed[:] = (2.0 * w + rho[k] * nodes * (x + dual[k])) / (2.0 + rho[k] * nodes)
            _copy(mixed, k + 1, z[k], u[k])
        mixed[:] = 2.0 * w
        for k in range(n):
            mixed += nodes * rho[k] * (u[k] - dual[k])
        mixed /= 2.0 + nodes * rho.sum()
        _rows(mixed, single_root, x)
        for k in range(n):
            dual[k] += x - u[k]
            apart, change = np.sqrt(np.sum((x - u[k]) ** 2)), rho[k] * np.sqrt(np.sum((x - old) ** 2))
            factor = 1.1 if apart > change else 1.0 / 1.1  # the published scheme of varying penalties
            rho[k] *= factor
            dual[k] /= factor
        path[t] = x


@njit(cache=True, nogil=True)
def _frank_wolfe(w, single_root, steps, path, work):
    n = len(w)
    x, arc = np.zeros(w.shape), np.empty((n, n + 1))
    label, heads = np.empty((n, n + 1), np.int64), np.empty(n, np.int64)
    for t in range(steps):
        for d in range(n):
            for h in range(n + 1):
                slope = w[d, h] - x[d, h]
                label[d, h] = slope.argmax()
                arc[d, h] = slope[label[d, h]]
        best_tree(arc, n, single_root, heads, work)
        gamma = 2.0 / (t + 2.0)
        x *= 1.0 - gamma
        for d in range(n):
            x[d, heads[d], label[d, heads[d]]] += gamma
        path[t] = x


def admm_path(scores: np.ndarray, steps: int, single_root: bool) -> np.ndarray:
    """The iterates (steps, n, n + 1, labels) of ADMM: one head a token each, mixtures of trees in the limit."""
    w, path = _own_arcs_out(scores), np.empty((steps, *scores.shape))
    _admm(w, single_root, steps, path)
    return path


def frank_wolfe_path(scores: np.ndarray, steps: int, single_root: bool) -> np.ndarray:
    """The iterates of Frank-Wolfe with the published steps ``2 / (t + 2)``, each a mixture of trees."""
    w, path = _own_arcs_out(scores), np.empty((steps, *scores.shape))
    work: Workspace = workspace(len(scores))
    _frank_wolfe(w, single_root, steps, path, work)
    return path


def _own_arcs_out(scores: np.ndarray) -> np.ndarray:
    w = scores.copy()
    w[np.arange(len(w)), np.arange(len(w)) + 1] = 0.0
    return w
