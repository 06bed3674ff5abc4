"""The data sets of the training benchmarks: generated or shipped with scikit-learn, never downloaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_digits, make_classification
from sklearn.preprocessing import StandardScaler

__all__ = ["NAMES", "Split", "load", "text_like"]

NAMES = ("dense", "sparse", "digits", "mid", "noisy")


@dataclass(frozen=True)
class Split:
    """One named train/test split; ``X`` is a C-ordered array or a CSR matrix of doubles."""

    name: str
    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray

    @property
    def n_classes(self) -> int:
        """Number of classes seen in training."""
        return len(np.unique(self.y))

    @property
    def shape(self) -> str:
        """``rows x features, classes`` in words."""
        return f"{self.X.shape[0]:,} × {self.X.shape[1]:,}, k = {self.n_classes}"


def _standardised(name: str, n_train: int, X: np.ndarray, y: np.ndarray) -> Split:
    scaler = StandardScaler().fit(X[:n_train])
    X = np.ascontiguousarray(scaler.transform(X))
    return Split(name, X[:n_train], y[:n_train], X[n_train:], y[n_train:])


def text_like(n: int, d: int, k: int, *, words: int = 59, seed: int = 0) -> tuple[sp.csr_matrix, np.ndarray]:
    """Rows of l2-normalised tf-idf counts: a Zipf background mixed with 30 topical words per class.

    About 58 non-zeros a row at ``words=59`` and ``d=2000``. Cost O(n words).
    """
    rng = np.random.default_rng(seed)
    background = 1.0 / (np.arange(d) + 10.0)
    background /= background.sum()
    topics = np.array([rng.choice(d, 30, replace=False) for _ in range(k)])
    y = rng.integers(0, k, n)
    lengths = rng.poisson(words, n) + 5
    owner = np.repeat(np.arange(n), lengths)
    topical = rng.random(owner.size) < 0.15
    word = rng.choice(d, owner.size, p=background)
    word[topical] = topics[y[owner[topical]], rng.integers(0, 30, topical.sum())]
    counts = sp.coo_matrix((np.ones(owner.size), (owner, word)), shape=(n, d)).tocsr()
    counts.sum_duplicates()
    frequency = np.bincount(counts.indices, minlength=d)
    counts.data = (1.0 + np.log(counts.data)) * (np.log((1.0 + n) / (1.0 + frequency)) + 1.0)[counts.indices]
    norms = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1)).ravel())
    return sp.csr_matrix(sp.diags(1.0 / norms) @ counts), y


def _dense() -> Split:
    X, y = make_classification(
        25000, 100, n_informative=40, n_redundant=20, n_classes=10, n_clusters_per_class=2,
        class_sep=1.5, flip_y=0.02, random_state=0,
    )  # fmt: skip
    return _standardised("dense", 20000, X, y)


def _sparse() -> Split:
    X, y = text_like(7000, 2000, 50)
    return Split("sparse", X[:5000], y[:5000], X[5000:], y[5000:])


def _digits() -> Split:
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = np.ascontiguousarray(X[order] / 16.0), y[order]
    return Split("digits", X[:1200], y[:1200], X[1200:], y[1200:])


def _mid() -> Split:
    X, y = make_classification(
        8000, 40, n_informative=20, n_redundant=5, n_classes=6, n_clusters_per_class=2,
        class_sep=1.0, flip_y=0.05, random_state=1,
    )  # fmt: skip
    return _standardised("mid", 6000, X, y)


def _noisy() -> Split:
    X, y = make_classification(
        16000, 70, n_informative=30, n_redundant=10, n_classes=8, n_clusters_per_class=2,
        class_sep=1.0, flip_y=0.1, random_state=2,
    )  # fmt: skip
    return _standardised("noisy", 12000, X, y)


def load(name: str) -> Split:
    """The split called ``name``, one of ``NAMES``."""
    makers = {"dense": _dense, "sparse": _sparse, "digits": _digits, "mid": _mid, "noisy": _noisy}
    return makers[name]()
