"""The published algorithms of the multiclass games, as the thesis of Fathony (2019, chapter 2) states them.

Compiled, and returning the value and the adversary's strategy only, which is less than the games compute.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["absolute", "abstain", "squared", "zero_one", "zero_one_numpy"]


@njit(cache=True)
def zero_one(scores):
    """AL0-1 by sorting (section 2.4.1): the best of k prefixes. O(k log k) a row."""
    n, k = scores.shape
    value, q = np.empty(n), np.zeros((n, k))
    for i in range(n):
        order = np.argsort(-scores[i])
        total, best, size = 0.0, -np.inf, 0
        for s in range(k):
            total += scores[i, order[s]]
            candidate = (total + s) / (s + 1)
            if candidate <= best:
                break
            best, size = candidate, s + 1
        value[i] = best
        for s in range(size):
            q[i, order[s]] = 1.0 / size
    return value, q


def zero_one_numpy(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """AL0-1 by sorting, all rows at once."""
    n, k = scores.shape
    order = np.argsort(-scores, axis=1)
    totals = np.cumsum(np.take_along_axis(scores, order, axis=1), axis=1)
    prefix = (totals + np.arange(k)) / np.arange(1, k + 1)
    size = prefix.argmax(axis=1) + 1
    q = np.zeros((n, k))
    np.put_along_axis(q, order, (np.arange(k) < size[:, None]) / size[:, None], axis=1)
    return prefix[np.arange(n), size - 1], q


@njit(cache=True)
def absolute(scores):
    """AL-ord: the best of all pairs, which separate (equation 2.35). O(k) a row."""
    n, k = scores.shape
    value, q = np.empty(n), np.zeros((n, k))
    for i in range(n):
        low, high, at_low, at_high = -np.inf, -np.inf, 0, 0
        for j in range(k):
            if scores[i, j] - j > low:
                low, at_low = scores[i, j] - j, j
            if scores[i, j] + j > high:
                high, at_high = scores[i, j] + j, j
        value[i] = 0.5 * (low + high)
        q[i, at_low] += 0.5
        q[i, at_high] += 0.5
    return value, q


@njit(cache=True)
def squared(scores):
    """AL-sq by enumerating all triples (theorem 2.5). O(k^3) a row."""
    n, k = scores.shape
    value, q = np.empty(n), np.zeros((n, k))
    for row in range(n):
        f = scores[row]
        at_i = at_j = int(np.argmax(f))
        best, weight = f[at_i], 1.0
        for i in range(k):
            for j in range(i + 1, k):
                for m in range(i + 1, j + 1):
                    w = (2 * (j - m) + 1) / (2 * (j - i))
                    candidate = w * (f[i] + (m - i) ** 2) + (1.0 - w) * (f[j] + (j - m) ** 2)
                    if candidate > best:
                        best, weight, at_i, at_j = candidate, w, i, j
        value[row] = best
        q[row, at_i] += weight
        q[row, at_j] += 1.0 - weight
    return value, q


@njit(cache=True)
def abstain(scores, cost):
    """AL-abstain for ``cost <= 1/2`` (theorem 2.7): the best label, or the two best mixed. O(k) a row."""
    n, k = scores.shape
    value, q = np.empty(n), np.zeros((n, k))
    for i in range(n):
        first, second = 0, 1
        if scores[i, 1] > scores[i, 0]:
            first, second = 1, 0
        for j in range(2, k):
            if scores[i, j] > scores[i, first]:
                first, second = j, first
            elif scores[i, j] > scores[i, second]:
                second = j
        mixed = (1.0 - cost) * scores[i, first] + cost * scores[i, second] + cost
        alone = scores[i, first] >= mixed
        value[i] = scores[i, first] if alone else mixed
        q[i, first] = 1.0 if alone else 1.0 - cost
        q[i, second] = 0.0 if alone else cost
    return value, q
