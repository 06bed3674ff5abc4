"""Dask arrays, dataframes and bags as partitions of examples; none is told by importing Dask."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

__all__ = ["bag_partitions", "is_array", "is_bag", "is_collection", "on_workers", "one_block_wide", "row_partitions"]


def is_collection(X: Any) -> bool:
    """Whether ``X`` is a Dask collection."""
    return hasattr(X, "__dask_graph__")


def is_array(X: Any) -> bool:
    """Whether ``X`` is a Dask array."""
    return is_collection(X) and hasattr(X, "chunks")


def is_frame(X: Any) -> bool:
    """Whether ``X`` is a Dask dataframe or series."""
    return is_collection(X) and not is_array(X) and hasattr(X, "to_dask_array")


def is_bag(X: Any) -> bool:
    """Whether ``X`` is a Dask bag."""
    return is_collection(X) and not (is_array(X) or is_frame(X)) and hasattr(X, "npartitions")


def _delayed(collection: Any) -> list[Any]:
    found = collection.to_delayed()
    return found.ravel().tolist() if is_array(collection) else found


def on_workers(collection: Any) -> bool:
    """Whether a collection refers to results that a cluster holds."""
    if "distributed" not in sys.modules or not is_collection(collection):
        return False
    future = sys.modules["distributed"].Future
    values = dict(collection.__dask_graph__()).values()
    return any(isinstance(getattr(value, "value", value), future) for value in values)


def row_partitions(X: Any, **columns: Any) -> list[tuple[Any, ...]]:
    """Delayed partitions ``(X, *columns)``; a column that is None is None in each.

    Blocks of equal numbers of rows are paired. Where their numbers are not known, there must be as many blocks of each,
    and whether they match is left to those who read them.
    """
    X, rows = one_block_wide(X)
    return list(zip(_delayed(X), *(_column(column, name, rows) for name, column in columns.items()), strict=True))


def one_block_wide(X: Any) -> tuple[Any, tuple[float, ...]]:
    """A matrix whose blocks hold whole rows, and how many each holds; NaN where that is not known."""
    if is_frame(X) and hasattr(X, "columns"):
        return X, (math.nan,) * X.npartitions
    if not is_array(X) or X.ndim != 2:
        raise TypeError(f"X must be a Dask array of shape (n, d) or a Dask dataframe; got {X!r:.200}.")
    if math.isnan(X.shape[1]):
        raise ValueError("X must have a known number of columns; call X.compute_chunk_sizes() first.")
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    return X, X.chunks[0]


def _column(values: Any, name: str, rows: tuple[float, ...]) -> list[Any]:
    """One value for each row, cut as the rows are."""
    known = not any(map(math.isnan, rows))
    if values is None:
        return [None] * len(rows)
    if not is_collection(values):
        if not known:
            raise ValueError(
                f"{name} must be a Dask collection with the partitions of X, whose numbers of rows are not known; "
                f"or call X.compute_chunk_sizes() first."
            )
        values = np.asarray(values)
        _same_length(name, len(values), sum(rows))
        return np.split(values, np.cumsum(rows).astype(int)[:-1])
    if is_bag(values):
        raise TypeError(f"{name} must be a Dask array or series; got a bag.")
    if is_array(values):
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if values.ndim != 1:
            raise ValueError(f"{name} must hold one value for each row; it has {values.ndim} dimensions.")
        if known and not any(map(math.isnan, values.chunks[0])):
            _same_length(name, values.shape[0], sum(rows))
            values = values.rechunk((rows,))
    found = _delayed(values)
    if len(found) != len(rows):
        raise ValueError(
            f"{name} has {len(found)} partitions and X has {len(rows)}, of numbers of rows that are not known: call "
            f"compute_chunk_sizes() on both, or repartition them alike."
        )
    return found


def _same_length(name: str, length: float, rows: float) -> None:
    if length != rows:
        raise ValueError(f"X and {name} must have the same number of rows; got {rows:.0f} and {length:.0f}.")


def bag_partitions(X: Any, **columns: Any) -> list[tuple[Any, ...]]:
    """Delayed partitions ``(X, *columns)`` of bags with as many partitions; a column that is None is None in each."""
    if not is_bag(X):
        raise TypeError(f"X must be a Dask bag of examples; got {X!r:.200}.")
    parts = [_delayed(X)]
    for name, column in columns.items():
        if column is not None and not is_bag(column):
            raise TypeError(f"{name} must be a Dask bag with the partitions of X; got {type(column).__name__}.")
        if column is not None and column.npartitions != X.npartitions:
            raise ValueError(
                f"X and {name} must be cut into partitions alike; got {X.npartitions} and {column.npartitions}."
            )
        parts.append([None] * X.npartitions if column is None else _delayed(column))
    return list(zip(*parts, strict=True))
