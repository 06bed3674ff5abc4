"""The papers' protocol: random splits, standardised features, two rounds of five-fold cross-validation.

[fathony2016]_ sec. 4 and [fathony2019]_ sec. 2.8; what they leave open follows the authors' published examples:
features are standardised by the training part of a split (cross-validation included), folds are drawn anew in the
second round, the first of equally good parameters is taken, and Gaussian models of classes have no intercept.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from nashlearn.datasets import load_multiclass, load_ordinal
from reproduce.papers import train_size

__all__ = ["FOLDS", "FULL", "LOADERS", "QUICK", "Data", "Profile", "Round", "data", "folds", "rounds"]

LOADERS: dict[str, Callable[[str], Any]] = {"multiclass": load_multiclass, "ordinal": load_ordinal}
FOLDS = 5


@dataclass(frozen=True)
class Round:
    """Values to try: those of the first round as they are, those of the second as factors of the best so far."""

    strengths: tuple[float, ...]
    gammas: tuple[float, ...]


@dataclass(frozen=True)
class Profile:
    """How much of a table is run. ``rows`` bounds the sets, ``thin`` takes every so many of a grid's values."""

    name: str
    splits: int
    rows: int
    thin: int


FULL = Profile("full", splits=20, rows=1_000_000, thin=1)
QUICK = Profile("quick", splits=3, rows=150, thin=3)

# The grids of the papers: C (per example) for classes, lambda (of the mean) for linear ordinal models; and the
# first of them cut short, for a baseline too slow for the rest.
_ROUNDS = {
    "C": (tuple(2.0**i for i in (0, 3, 6, 9, 12)), tuple(2.0**i for i in (-2, -1, 0, 1, 2))),
    "C up to 64": (tuple(2.0**i for i in (0, 3, 6)), tuple(2.0**i for i in (-2, -1, 0, 1, 2))),
    "lambda": (tuple(2.0**-i for i in range(1, 14, 2)), tuple(2.0 ** (i / 2) for i in range(-3, 4))),
}
_GAMMAS = (tuple(2.0**i for i in (-12, -9, -6, -3, 0)), tuple(2.0**i for i in (-2, -1, 0, 1, 2)))


def rounds(grid: str, kernel: bool, profile: Profile) -> tuple[Round, Round]:
    """The two rounds of tuning. Without a kernel there is one gamma, which nothing reads."""
    first, second = (
        Round(strengths[:: profile.thin], gammas[:: profile.thin] if kernel else (1.0,))
        for strengths, gammas in zip(_ROUNDS[grid], _GAMMAS, strict=True)
    )
    return first, second


def _rng(*words: Any) -> np.random.Generator:
    return np.random.default_rng([zlib.crc32(str(word).encode()) for word in words])


@dataclass(frozen=True)
class Data:
    """One split: standardised features, ranks of the training labels, and labels to be judged by."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    classes: np.ndarray


@functools.lru_cache(maxsize=4)
def _load(room: str, name: str) -> Any:
    return LOADERS[room](name)


@functools.lru_cache(maxsize=4)
def data(room: str, name: str, split: int) -> Data:
    """The ``split``-th split: the authors' where published, else random with the sizes of their tables."""
    bunch = _load(room, name)
    if bunch.splits is not None:
        train, test = bunch.splits[split]
    else:
        n_train = train_size(room, name)
        order = _rng(room, name, split).permutation(len(bunch.data))
        train, test = order[:n_train], order[n_train:]
    scaler = StandardScaler().fit(bunch.data[train])
    classes, y = np.unique(bunch.target[train], return_inverse=True)
    X, X_test = (np.ascontiguousarray(scaler.transform(bunch.data[part])) for part in (train, test))
    return Data(X, y, X_test, bunch.target[test], classes)


def folds(n: int, name: str, step: int) -> list[np.ndarray]:
    """Validation rows of the five folds in a round of tuning."""
    return np.array_split(_rng("folds", name, step).permutation(n), FOLDS)
