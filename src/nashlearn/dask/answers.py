"""Answers for Dask collections: lazy, partition by partition; means of answers at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import numpy as np

from nashlearn.arrays import aligned
from nashlearn.dask.collections import (
    bag_partitions,
    is_array,
    is_bag,
    is_collection,
    one_block_wide,
    row_partitions,
)
from nashlearn.dask.reduction import Partitions, travelling

__all__ = ["averaged", "gathered", "lazily", "mistakes", "refuse_costs"]


def refuse_costs(costs: Any) -> None:
    """Refuse costs of rows beside a Dask collection."""
    if costs is not None:
        raise ValueError("costs must be None where X is a Dask collection: costs of rows are for data in memory.")


def lazily(method: Callable[..., Any]) -> Callable[..., Any]:
    """Make a method ``answer(self, X)`` map over the partitions of a Dask collection.

    Arrays and dataframes give an array, bags a bag; nothing is computed before it is asked for.
    """

    @wraps(method)
    def answer(self: Any, X: Any, **options: Any) -> Any:
        if not is_collection(X):
            return method(self, X, **options)
        refuse_costs(options.get("costs"))
        function = partial(_answered, method, travelling(self), **options)
        return X.map_partitions(_of_examples, function) if is_bag(X) else _of_rows(function, X)

    return answer


def _answered(method: Callable[..., Any], estimator: Any, X: Any, **options: Any) -> Any:
    return method(aligned(estimator), aligned(X), **options)


def _of_examples(part: Any, function: Callable[[Any], list[Any]]) -> list[Any]:
    examples = list(part)
    return list(function(examples)) if examples else []


def _of_block(block: Any, function: Callable[[Any], np.ndarray], empty: np.ndarray) -> np.ndarray:
    return function(block) if block.shape[0] else empty


def _of_rows(function: Callable[[Any], np.ndarray], X: Any) -> Any:
    import dask
    import dask.array as da

    X, rows = one_block_wide(X)
    by_blocks = is_array(X)
    # One answer tells shape and dtype of all, and refuses features that do not fit before any work is done.
    probe = function(np.zeros((1, X.shape[1]), X.dtype) if by_blocks else X._meta_nonempty)
    empty = probe[:0]
    if by_blocks:
        chunks = (rows, *((size,) for size in probe.shape[1:]))
        dropped = [1] if probe.ndim == 1 else None
        return X.map_blocks(
            _of_block, function=function, empty=empty, chunks=chunks, drop_axis=dropped, dtype=probe.dtype, meta=empty
        )
    one = dask.delayed(_of_block, traverse=False)
    shape = (math.nan, *probe.shape[1:])
    blocks = [da.from_delayed(one(part, function, empty), shape=shape, meta=empty) for part in X.to_delayed()]
    return da.concatenate(blocks, allow_unknown_chunksizes=True)


def averaged(method: Callable[..., float]) -> Callable[..., float]:
    """Make a method ``mean(self, X, y, sample_weight=None, costs=None)`` average over a Dask collection, now."""

    @wraps(method)
    def mean(self: Any, X: Any, y: Any, sample_weight: Any = None, costs: Any = None) -> float:
        if not is_collection(X):
            return method(self, X, y, sample_weight, costs)
        refuse_costs(costs)
        parts = Partitions(row_partitions(X, y=y, sample_weight=sample_weight), bundled=False)
        value, weight = parts.reduce(partial(_weighted, partial(method, travelling(self))), np.add)
        return float(value / weight)

    return mean


def _weighted(method: Callable[..., float], X: Any, y: Any, weight: Any) -> np.ndarray:
    total = float(X.shape[0] if weight is None else np.sum(np.asarray(weight)))
    return np.array([total * method(X, y, weight) if total else 0.0, total])


def mistakes(estimator: Any, X: Any, y: Any, sample_weight: Any) -> np.ndarray:
    """Weighted sums, over the examples of bags, of their losses and of their numbers of predicted variables."""
    parts = Partitions(bag_partitions(X, y=y, sample_weight=sample_weight), bundled=False)
    return parts.reduce(partial(_mistakes, travelling(estimator)), np.add)


def _mistakes(estimator: Any, X: Any, y: Any, weight: Any) -> np.ndarray:
    examples = list(X)
    if not examples:
        return np.zeros(2)
    losses, sizes = estimator._mistakes(examples, list(y))
    weight = np.ones(losses.size) if weight is None else np.asarray(list(weight), dtype=np.float64)
    return np.array([weight @ losses, weight @ sizes])


def gathered(estimator: Any, method: str, X: Any, y: Any, **options: Any) -> Any:
    """The losses, one for each example of a Dask collection, that a method of the estimator returns for partitions."""
    cut = bag_partitions if is_bag(X) else row_partitions
    parts = Partitions(cut(X, y=y), bundled=False)
    found = parts.reduce(partial(_losses, travelling(estimator), method, bag=is_bag(X), **options), _joined)
    if found is None:
        raise ValueError("X must hold at least one example; all of its partitions are empty.")
    return found


def _losses(estimator: Any, method: str, X: Any, y: Any, *, bag: bool, **options: Any) -> Any:
    X, y = (list(X), list(y)) if bag else (X, y)
    empty = len(X) == 0 if bag else X.shape[0] == 0
    return None if empty else getattr(estimator, method)(X, y, **options)


def _joined(first: Any, second: Any) -> Any:
    """Losses of examples in their order, those of empty partitions being None."""
    if first is None or second is None:
        return second if first is None else first
    return first._replace(values=np.concatenate([first.values, second.values]))
