"""The published algorithms of the multiclass games, as the thesis of Fathony (2019, chapter 2) states them.

Compiled, and returning the value and the adversary's strategy only, which is less than the games compute.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from reproduce.compiled import load

__all__ = ["absolute", "abstain", "squared", "zero_one", "zero_one_numpy"]

Answer = tuple[np.ndarray, np.ndarray]


def _loops() -> ModuleType:
    return load("thesis_loops", "benchmarks")


def _room(scores: np.ndarray) -> Answer:
    return np.empty(len(scores)), np.zeros(scores.shape)


def zero_one(scores: np.ndarray) -> Answer:
    """AL0-1 by sorting (section 2.4.1): the best of k prefixes, as long as they rise. O(k log k) a row."""
    value, q = _room(scores)
    _loops().zero_one(scores, np.argsort(-scores, axis=1), value, q)
    return value, q


def zero_one_numpy(scores: np.ndarray) -> Answer:
    """AL0-1 by sorting, all rows at once."""
    n, k = scores.shape
    order = np.argsort(-scores, axis=1)
    totals = np.cumsum(np.take_along_axis(scores, order, axis=1), axis=1)
    prefix = (totals + np.arange(k)) / np.arange(1, k + 1)
    size = prefix.argmax(axis=1) + 1
    q = np.zeros((n, k))
    np.put_along_axis(q, order, (np.arange(k) < size[:, None]) / size[:, None], axis=1)
    return prefix[np.arange(n), size - 1], q


def absolute(scores: np.ndarray) -> Answer:
    """AL-ord: the best of all pairs, which separate (equation 2.35). O(k) a row."""
    value, q = _room(scores)
    _loops().absolute(scores, value, q)
    return value, q


def squared(scores: np.ndarray) -> Answer:
    """AL-sq by enumerating all triples (theorem 2.5). O(k^3) a row."""
    value, q = _room(scores)
    _loops().squared(scores, value, q)
    return value, q


def abstain(scores: np.ndarray, cost: float) -> Answer:
    """AL-abstain for ``cost <= 1/2`` (theorem 2.7): the best label, or the two best mixed. O(k) a row."""
    value, q = _room(scores)
    _loops().abstain(scores, cost, value, q)
    return value, q
