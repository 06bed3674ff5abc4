"""Paper Table 1: constraints added and active in constraint generation, at the parameters tuned for Table II.

Quadratic programs grow with the constraints, so large problems get fewer splits, and the largest none.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from reproduce import protocol
from reproduce.papers import PAPERS, train_size
from reproduce.protocol import Profile
from reproduce.references import constraint_generation, gram_features
from reproduce.run import carry_out, chosen, sets_of
from reproduce.store import Store
from reproduce.tables import TABLES

__all__ = ["KINDS", "generate", "run"]

KINDS = {"linear": ("table2_linear", "al01"), "gaussian": ("table2_gaussian", "al01-rbf")}
# Entries of the matrix of constraints up to which twenty splits, and two, are affordable (a few minutes a split).
_AFFORDABLE = {"linear": {30_000: 20, 150_000: 2}, "gaussian": {200_000: 20, 300_000: 2}}


def _splits(name: str, kind: str, profile: Profile) -> int:
    """How many splits are run, by the number of constraints that the paper needed and the features of each."""
    sizes, position = PAPERS["1"]["columns"], PAPERS["1"]["sets"].index(name)
    width = {"linear": sizes["features"][position] + 1, "gaussian": sizes["train"][position]}[kind]
    entries = sizes[f"{kind} added"][position] * width
    return min(next((count for bound, count in _AFFORDABLE[kind].items() if entries <= bound), 0), profile.splits)


def _linear(X: np.ndarray, gamma: float) -> np.ndarray:
    return np.column_stack([X, np.ones(len(X))])


def _gaussian(X: np.ndarray, gamma: float) -> np.ndarray:
    squares = (X**2).sum(axis=1)
    distances = np.maximum(squares[:, None] + squares - 2.0 * X @ X.T, 0.0)
    return gram_features(np.exp(-gamma * distances))


_FEATURES = {"linear": _linear, "gaussian": _gaussian}


def generate(key: list[Any]) -> dict[str, Any]:
    """One split by constraint generation."""
    _, name, kind, _, split, gamma, strength = key
    data = protocol.data("multiclass", name, split)
    begin = time.perf_counter()
    result = constraint_generation(_FEATURES[kind](data.X, gamma), data.y, data.classes.size, strength)
    return {
        "key": key,
        "added": result.added,
        "active": result.active,
        "rounds": result.rounds,
        "objective": result.objective,
        "seconds": time.perf_counter() - begin,
    }


def run(table_name: str, profile: Profile, folder: Path, n_jobs: int = 1) -> Store:
    """Complete the store of Table 1 for the sets that Table II has tuned."""
    store = Store(folder / f"{table_name}.jsonl")
    keys = []
    for kind, (source, method) in KINDS.items():
        tuned = Store(folder / f"{source}.jsonl")
        for name in sorted(sets_of(TABLES[source], profile), key=lambda name: -train_size("multiclass", name)):
            try:
                strength, gamma = chosen(tuned, source, name, method, profile)
            except KeyError:
                print(f"{table_name}: {name} has no tuned {kind} parameters; run {source} first", flush=True)
                continue
            splits = range(_splits(name, kind, profile))
            keys += [[table_name, name, kind, "split", split, gamma, strength] for split in splits]
    carry_out(generate, keys, store, n_jobs, table_name)
    return store
