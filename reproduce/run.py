"""Runs the cells of a table that are still missing: first and second round of tuning, then the splits."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from reproduce import cells, protocol
from reproduce.methods import METHODS
from reproduce.protocol import FOLDS, LOADERS, Profile, Round
from reproduce.store import Store
from reproduce.tables import TABLES, Table

__all__ = ["around", "carry_out", "chosen", "run_table", "sets_of"]

Key = list[Any]


def carry_out(work: Callable[[Key], dict[str, Any]], keys: list[Key], store: Store, n_jobs: int, what: str) -> None:
    """Run ``work`` on the keys that the store lacks, and store each result when it comes."""
    missing = [key for key in keys if key not in store]
    done, begin = len(keys) - len(missing), time.perf_counter()
    results = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
        joblib.delayed(work)(key) for key in missing
    )
    for count, record in enumerate(results, start=1):
        store.add(record)
        left = (time.perf_counter() - begin) / count * (len(missing) - count)
        where = " ".join(str(word) for word in record["key"][1:5])
        print(f"{what} {done + count}/{len(keys)}, {left:.0f} s left: {where}", flush=True)


def sets_of(table: Table, profile: Profile) -> list[str]:
    """The table's sets that the profile admits, the largest first: the long cells should not come last."""
    sizes = {name: len(LOADERS[table.room](name).data) for name in table.sets}
    return sorted((name for name in table.sets if sizes[name] <= profile.rows), key=lambda name: -sizes[name])


def _best(store: Store, base: Key, strengths: tuple[float, ...], gammas: tuple[float, ...]) -> tuple[float, float]:
    """The (strength, gamma) of the smallest validation loss, the first of several."""
    losses = np.array(
        [
            np.sum([store[[*base, fold, gamma, list(strengths)]]["losses"] for fold in range(FOLDS)], axis=0)
            for gamma in gammas
        ]
    )
    row, column = np.unravel_index(losses.argmin(), losses.shape)
    return strengths[column], gammas[row]


def around(best: tuple[float, float], factors: Round) -> Round:
    """The values of the second round: multiples of the best of the first."""
    strength, gamma = best
    return Round(tuple(strength * f for f in factors.strengths), tuple(gamma * f for f in factors.gammas))


def chosen(store: Store, table_name: str, name: str, method: str, profile: Profile) -> tuple[float, float]:
    """The tuned (strength, gamma) of a method on a set; KeyError where tuning is not complete."""
    first, factors = protocol.rounds(METHODS[method].grid, METHODS[method].kernel, profile)
    best = _best(store, [table_name, name, method, 1], first.strengths, first.gammas)
    second = around(best, factors)
    return _best(store, [table_name, name, method, 2], second.strengths, second.gammas)


def _tuning(base: Key, values: Round) -> list[Key]:
    return [[*base, fold, gamma, list(values.strengths)] for fold in range(FOLDS) for gamma in values.gammas]


def run_table(table_name: str, profile: Profile, folder: Path, n_jobs: int = 1) -> Store:
    """Complete a table's store."""
    table, store = TABLES[table_name], Store(folder / f"{table_name}.jsonl")
    methods = [method for method in table.methods if METHODS[method].available]
    pairs = [(name, method) for name in sets_of(table, profile) for method in methods]
    grids = {m: protocol.rounds(METHODS[m].grid, METHODS[m].kernel, profile) for m in methods}
    begin = time.perf_counter()

    first = [key for s, m in pairs for key in _tuning([table_name, s, m, 1], grids[m][0])]
    carry_out(cells.tune, first, store, n_jobs, f"{table_name} tuning 1/2")
    second = []
    for s, m in pairs:
        best = _best(store, [table_name, s, m, 1], grids[m][0].strengths, grids[m][0].gammas)
        second += _tuning([table_name, s, m, 2], around(best, grids[m][1]))
    carry_out(cells.tune, second, store, n_jobs, f"{table_name} tuning 2/2")

    splits = []
    for s, m in pairs:
        strength, gamma = chosen(store, table_name, s, m, profile)
        splits += [[table_name, s, m, "split", split, gamma, strength] for split in range(profile.splits)]
    carry_out(cells.evaluate, splits, store, n_jobs, f"{table_name} splits")
    print(f"{table_name}: {time.perf_counter() - begin:.0f} s", flush=True)
    return store
