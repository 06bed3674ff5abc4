"""The Gibbs distribution over arborescences, ``P(y) = exp(<scores, y>) / Z``: partition function and arc marginals.

``Z`` is the determinant of a Laplacian ([koo2007]_, matrix-tree theorem). Here tokens are eliminated one by one: an arc
``k -> i`` is replaced by arcs from the heads of ``k``, ``w_ij + w_ik w_kj / d_k`` with ``d_k`` the sum of the weights
into ``k``, and ``Z`` is the product of the ``d_k``. Nothing is ever subtracted, so saturated scores do no harm. With a
single root the arcs from the root are left out of ``d_k`` but for the last token. Marginals come from undoing the
eliminations: what flowed over an arc is shared among the paths that it stands for. O(n^3).
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["gibbs_tree", "gibbs_trees"]

_TINY = 1e-290  # a weight below it is about to lose digits: logarithms are used instead


@njit(cache=True, nogil=True)
def _pick(total, active, n):
    """The active token with the largest sum of weights."""
    best, at = -np.inf, -1
    for k in range(n):
        if active[k] and total[k] > best:
            best, at = total[k], k
    return best, at


@njit(cache=True, nogil=True)
def _plus(a, b, logs):
    if logs is None:
        return a + b
    if a < b:
        a, b = b, a
    return a if b == -np.inf else a + np.log1p(np.exp(b - a))


@njit(cache=True, nogil=True)
def _over(a, b, logs):
    return a / b if logs is None else a - b


@njit(cache=True, nogil=True)
def _weight(a, logs):
    return a if logs is None else np.exp(a)


@njit(cache=True, nogil=True)
def _eliminate(scores, n, single_root, logs, A, pi, ratio, order, active, total):
    """Forward pass; ``log Z``, ``-inf`` where there is no tree.

    On weights where ``logs`` is None, and then NaN where their range does not suffice, else on their logarithms.
    """
    nothing = 0.0 if logs is None else -np.inf
    log_z, share = 0.0, np.empty(n + 1)
    for i in range(n):
        active[i] = True
        top = -np.inf
        for h in range(n + 1):
            if h != i + 1:
                top = max(top, scores[i, h])
        if top == -np.inf:
            return -np.inf
        log_z += top
        for h in range(n + 1):
            A[i, h] = nothing
            if h != i + 1 and scores[i, h] > -np.inf:
                A[i, h] = np.exp(scores[i, h] - top) if logs is None else scores[i, h] - top
                if logs is None and A[i, h] < _TINY:
                    return np.nan
    for t in range(n):
        for i in range(n):
            if active[i]:
                total[i] = A[i, 0] if not single_root or t == n - 1 else nothing
                for j in range(n):
                    if active[j]:
                        total[i] = _plus(total[i], A[i, j + 1], logs)
        d, k = _pick(total, active, n)
        if d <= nothing:
            return -np.inf
        order[t] = k
        active[k] = False
        log_z += np.log(d) if logs is None else d
        for h in range(n + 1):
            share[h] = _over(A[k, h], d, logs) if h == 0 or active[h - 1] else nothing
            pi[k, h] = _weight(share[h], logs)
        for i in range(n):
            if not active[i]:
                continue
            f = A[i, k + 1]
            for h in range(n + 1):
                ratio[t, i, h] = 0.0
                if f > nothing and share[h] > nothing and h != i + 1:
                    via = f * share[h] if logs is None else f + share[h]
                    if logs is None and via < _TINY:
                        return np.nan
                    A[i, h] = _plus(A[i, h], via, logs)
                    ratio[t, i, h] = _weight(_over(via, A[i, h], logs), logs)
    return log_z


@njit(cache=True, nogil=True)
def _restore(n, single_root, pi, ratio, order, active, marginal):
    """Backward pass: marginals from the shares of the eliminated paths."""
    marginal[:n, : n + 1] = 0.0
    for t in range(n - 1, -1, -1):
        k = order[t]
        children = 0.0
        for i in range(n):
            if not active[i]:
                continue
            through = 0.0
            for h in range(n + 1):
                part = marginal[i, h] * ratio[t, i, h]
                if part > 0.0:
                    marginal[i, h] -= part
                    marginal[k, h] += part
                    through += part
            marginal[i, k + 1] = through
            children += through
        alone = 1.0 - children
        if not single_root or t == n - 1:
            marginal[k, 0] += alone * pi[k, 0]
        for h in range(1, n + 1):
            marginal[k, h] += alone * pi[k, h]
        active[k] = True
    for d in range(n):
        for h in range(n + 1):
            marginal[d, h] = min(max(marginal[d, h], 0.0), 1.0)


@njit(cache=True, nogil=True)
def gibbs_tree(scores: np.ndarray, n: int, single_root: bool, marginal: np.ndarray, ratio: np.ndarray) -> float:
    """``log Z`` of ``scores`` (n, n + 1); arc marginals into ``marginal``. ``ratio`` (n, n, n + 1) is scratch.

    ``-inf``, and no marginals, where there is no tree.
    """
    A, pi = np.empty((n, n + 1)), np.empty((n, n + 1))
    order, active, total = np.empty(n, np.int64), np.empty(n, np.bool_), np.empty(n)
    log_z = _eliminate(scores, n, single_root, None, A, pi, ratio, order, active, total)
    if np.isnan(log_z):
        log_z = _eliminate(scores, n, single_root, True, A, pi, ratio, order, active, total)
    if log_z > -np.inf:
        _restore(n, single_root, pi, ratio, order, active, marginal)
    return log_z


@njit(cache=True, nogil=True)
def gibbs_trees(scores: np.ndarray, single_root: bool, log_z: np.ndarray, marginal: np.ndarray) -> None:
    """The same for a batch (b, n, n + 1)."""
    n = scores.shape[1]
    ratio = np.empty((n, n, n + 1))
    for i in range(scores.shape[0]):
        log_z[i] = gibbs_tree(scores[i], n, single_root, marginal[i], ratio)
