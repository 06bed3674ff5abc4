"""Data that :mod:`benchmarks.compare_jobs` and :mod:`benchmarks.threads` draw: the same at each call."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["costs", "grids", "pairs", "rows", "sentences", "sequences", "trees", "words"]


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


def words(n: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Words of 3 to 14 letters, each a noisy picture of 128 pixels; a letter often has the same successors."""
    rng = np.random.default_rng(6)
    pictures, after = rng.random((26, 128)) < 0.3, rng.dirichlet(np.full(26, 0.2), size=26).cumsum(axis=1)
    y = []
    for size in rng.integers(3, 15, size=n):
        word = [int(rng.integers(26))]
        for chance in rng.random(size - 1):
            word.append(min(int(np.searchsorted(after[word[-1]], chance)), 25))
        y.append(np.array(word))
    return [(pictures[one] ^ (rng.random((one.size, 128)) < 0.25)).astype(float) for one in y], y


def sentences(n: int) -> list[Any]:
    """Sentences of 4 to 39 tokens: words of a few thousand, a dozen tags, heads that are near."""
    from nashlearn.datasets.conllu import Sentence

    rng = np.random.default_rng(7)
    tags = ["VERB", "PUNCT", "NOUN", "ADJ", "ADP", "DET", "ADV", "PRON", "AUX", "PROPN", "NUM", "CCONJ"]
    made = []
    for size in rng.integers(4, 40, size=n):
        word = np.minimum(rng.zipf(1.3, size=size), 5000)
        head = [0, *(max(1, at - int(rng.geometric(0.4)) + 1) for at in range(1, size))]
        rows = [
            [str(i + 1), f"w{w}", f"l{w // 2}", tags[w % 12], f"x{w % 40}", f"f{w % 30}", str(head[i]), "dep", "_", "_"]
            for i, w in enumerate(word.tolist())
        ]
        made.append(Sentence(rows))
    return made
