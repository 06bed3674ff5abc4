"""A small training for each route through the library: dual ascent, Newton's methods, kernels, L-BFGS, blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from nashlearn import (
    NashAbstainer,
    NashClassifier,
    NashMarkovNetwork,
    NashMatcher,
    NashOrdinalClassifier,
    NashParser,
    NashTagger,
    games,
)
from nashlearn.datasets import Sentence
from nashlearn.parsing import HashedSentences


def rows(n: int = 300, d: int = 5, k: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Labels that a noisy linear rule gives: no separation, so training takes some rounds."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.argmax(X @ rng.normal(size=(d, k)) + 2.0 * rng.normal(size=(n, k)), axis=1)


def chains(n: int = 20) -> tuple[list[np.ndarray], list[np.ndarray]]:
    X, y = rows(8 * n, 4)
    return np.split(X, n), np.split(y, n)


def squares(n: int = 12) -> tuple[list[Any], list[np.ndarray]]:
    X, y = rows(4 * n, 3)
    edges = np.array([(0, 1), (1, 2), (2, 3), (3, 0)])
    return [(part, edges) for part in np.split(X, n)], np.split(y, n)


def pairs(n: int = 15) -> tuple[list[np.ndarray], list[np.ndarray]]:
    rng = np.random.default_rng(1)
    X = list(rng.normal(size=(n, 4, 4, 3)))
    game = games.matching(4)
    return X, [game.argmax((x @ [1.0, -1.0, 0.5] + rng.normal(size=(4, 4)))[None])[0] for x in X]


def arcs(n: int = 12) -> tuple[list[np.ndarray], list[np.ndarray]]:
    rng = np.random.default_rng(2)
    X = [rng.normal(size=(m, m + 1, 3)) for m in 3 + np.arange(n) % 3]
    scores = [x @ [1.0, -1.0, 0.5] + rng.normal(size=x.shape[:2]) for x in X]
    return X, [games.arborescence(len(s), single_root=True).argmax(s[None])[0] for s in scores]


def hashed(n: int = 12) -> tuple[HashedSentences, list[np.ndarray]]:
    rng = np.random.default_rng(3)
    sentences = []
    for heads in arcs(n)[1]:
        words = rng.choice(["a", "b", "c", "d", "e"], size=len(heads))
        tags = rng.choice(["N", "V"], size=len(heads))
        lines = [
            [str(i + 1), w, "_", t, "_", "_", str(h), "_", "_", "_"]
            for i, (w, t, h) in enumerate(zip(words, tags, heads, strict=True))
        ]
        sentences.append(Sentence(lines))
    return HashedSentences(sentences, bits=12), [s.heads for s in sentences]


def _sparse_rows() -> tuple[Any, np.ndarray]:
    X, y = rows(120, 40)
    return sparse.csr_array(np.where(np.abs(X) > 1.0, X, 0.0)), y


# name: (estimator, data); a tolerance that takes more than a few rounds.
ROUTES: dict[str, tuple[Any, Any]] = {
    "ascent": (NashClassifier(alpha=1e-3, tol=1e-9, random_state=0, smoothing=0.0), _sparse_rows),
    "newton": (NashClassifier("absolute", alpha=1e-4, tol=1e-9, random_state=0, smoothing=0.0), rows),
    "thresholds": (NashOrdinalClassifier(alpha=1e-4, tol=1e-9, random_state=0, smoothing=0.0), rows),
    "abstain": (NashAbstainer(0.3, alpha=1e-4, tol=1e-9, random_state=0, smoothing=0.0), rows),
    "kernel": (NashClassifier(kernel="rbf", alpha=1e-4, tol=1e-6, random_state=0, smoothing=0.0), rows),
    "tempered": (NashClassifier("absolute", alpha=1e-4, tol=1e-9, smoothing=1.0), rows),
    "tempered grades": (NashOrdinalClassifier(alpha=1e-4, tol=1e-9, smoothing=1.0), rows),
    "tempered kernel": (NashClassifier(kernel="rbf", alpha=1e-4, tol=1e-6, random_state=0, smoothing=1.0), rows),
    "chains": (NashTagger(alpha=1e-3, tol=1e-6), chains),
    "chains exactly": (NashTagger(alpha=1e-3, smoothing=0.0, tol=5e-2, max_iter=200), chains),
    "graphs": (NashMarkovNetwork(alpha=1e-3, tol=1e-5), squares),
    "matchings": (NashMatcher(alpha=1e-2, tol=1e-4), pairs),
    "trees": (NashParser(alpha=1e-2, tol=1e-4), arcs),
    "hashed trees": (NashParser(alpha=1e-2, tol=1e-3, random_state=0), hashed),
}
