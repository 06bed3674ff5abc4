"""Data that :mod:`benchmarks.compare_jobs` draws: the same at each call."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["costs", "grids", "pairs", "rows", "sequences", "trees"]


def rows(n: int, d: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Normal features and noisy labels of rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, (X @ rng.normal(size=(d, k)) + 3 * rng.normal(size=(n, k))).argmax(axis=1)


def costs(k: int) -> np.ndarray:
    """A cost matrix with nothing to pay for what is right."""
    return np.random.default_rng(1).random((k, k)) * (1 - np.eye(k))


def sequences(n: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Sequences of 3 to 24 rows with six labels."""
    rng = np.random.default_rng(2)
    W, sizes = rng.normal(size=(20, 6)), rng.integers(3, 25, size=n)
    X = [rng.normal(size=(size, 20)) for size in sizes]
    return X, [(x @ W + 2 * rng.normal(size=(len(x), 6))).argmax(axis=1) for x in X]


def grids(n: int) -> tuple[list[Any], list[np.ndarray]]:
    """Grids of 8 × 8 nodes with two labels."""
    rng, at = np.random.default_rng(3), np.arange(64).reshape(8, 8)
    edges = np.vstack([np.c_[at[:, :-1].ravel(), at[:, 1:].ravel()], np.c_[at[:-1].ravel(), at[1:].ravel()]])
    y = [(rng.random(64) < 0.5).astype(int) for _ in range(n)]
    return [(label[:, None] + rng.normal(size=(64, 3)), edges) for label in y], y


def pairs(n: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Pairs of sets of 4 to 12 elements, all matched."""
    rng = np.random.default_rng(4)
    y = [rng.permutation(int(size)) for size in rng.integers(4, 13, size=n)]
    X = [np.eye(len(one))[one][:, :, None] + 1.5 * rng.normal(size=(len(one), len(one), 5)) for one in y]
    return X, y


def trees(n: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Sentences of 4 to 19 tokens with features of arcs."""
    rng = np.random.default_rng(5)
    y = [np.r_[0, [rng.integers(1, i + 1) for i in range(1, size)]] for size in rng.integers(4, 20, size=n)]
    X = [np.eye(len(one) + 1)[one][:, :, None] + 1.5 * rng.normal(size=(len(one), len(one) + 1, 5)) for one in y]
    return X, y
