"""Real data sets and losses by fixed rules: what the defaults are chosen and judged on.

A *task* is a data set with a loss. Costs follow rules that know the name of the set and its labels, nothing else:

- ``lognormal``: two matrices a set, ``exp(N(0, 1))`` off the diagonal, 0 on it, drawn from the set's name;
- ``prevalence``: a mistake costs the inverse of its true label's share of the rows, divided by the number of labels;
- ``10:1``: two labels, the rarer at 10 against 1: malignant tumours, or the highest fifth of graded sets.

Graded sets are cut into five labels of equal frequency. Labels of fewer than twelve rows are left out. Sets of more
than 2,000 rows are thinned to as many at random, once. A split takes half of the rows for training, at random within
labels.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler

from nashlearn.datasets import load_multiclass, load_ordinal, multiclass_names

__all__ = ["FRESH", "KNOWN", "Split", "costs_of", "labelled", "seed", "splits"]

# The sets on which the tempered game was first tried, and those that nothing was ever chosen on.
KNOWN = ("cancer", "wine", *multiclass_names())
FRESH = ("abalone", "autompg", "bank", "boston", "calhousing", "computer", "digits", "machinecpu", "pyrimidines")
FRESH += ("stocks", "triazines", "wisconsin")
_SHIPPED = {"cancer": load_breast_cancer, "wine": load_wine, "digits": load_digits}
_ROWS = 2000
_LEAST = 12
_GRADES = 5


class Split(NamedTuple):
    """Standardised rows and codes of labels for training and for test."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def seed(*names: object) -> int:
    """A number that depends on the names alone."""
    return zlib.crc32("/".join(map(str, names)).encode())


@cache
def labelled(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows and codes 0..k-1 of a set."""
    if name in _SHIPPED:
        X, y = _SHIPPED[name](return_X_y=True)
        y = 1 - y if name == "cancer" else y  # 1 is malignant
    elif name in multiclass_names():
        found = load_multiclass(name)
        X, y = found.data, found.target
    else:
        found = load_ordinal(name, None if name in ("bank", "computer", "calhousing") else "y_eqfreq")
        ranks = np.unique(found.target, return_inverse=True)[1]
        X, y = found.data, ranks * _GRADES // (ranks.max() + 1)
    _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    kept = np.flatnonzero(counts[codes] >= _LEAST)
    if kept.size > _ROWS:
        kept = np.sort(np.random.default_rng(seed(name, "rows")).choice(kept, _ROWS, replace=False))
    return np.asarray(X[kept], dtype=np.float64), np.unique(codes[kept], return_inverse=True)[1]


def costs_of(name: str) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """The tasks of a set with costs: a name, the cost matrix and the codes of the labels that it is about."""
    _, y = labelled(name)
    k = int(y.max()) + 1
    if k == 2 or (name in FRESH and name != "digits"):
        rare = (y == k - 1).astype(np.int64)
        yield "10:1", np.array([[0.0, 10.0], [1.0, 0.0]]), rare
    if k > 2:
        off = 1.0 - np.eye(k)
        for i in (1, 2):
            drawn = np.random.default_rng(seed(name, "lognormal", i)).lognormal(size=(k, k))
            yield f"lognormal {i}", drawn * off, y
        yield "prevalence", off * (y.size / (k * np.bincount(y))), y


def splits(name: str, y: np.ndarray, count: int) -> Iterator[Split]:
    """Random halves of a set, stratified by its labels, its features standardised by the training half."""
    X, _ = labelled(name)
    halves = StratifiedShuffleSplit(count, train_size=0.5, random_state=seed(name, "splits"))
    for train, test in halves.split(X, y):
        scaler = StandardScaler().fit(X[train])
        yield Split(scaler.transform(X[train]), y[train], scaler.transform(X[test]), y[test])
