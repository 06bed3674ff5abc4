"""Partitions as recipes: what Dask would do to make one, to be done inside the task that reads it.

Data that are loaded or generated are not worth moving. A bundle of recipes is walked by one task, which makes, reads
and drops one partition after another: it holds one at a time, and a pass over the data takes as many messages as there
are bundles, however many rows these stand for.
"""

from __future__ import annotations

import pickle
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

__all__ = ["joined", "recipes", "threads", "walked"]

_LARGE = 1 << 16  # bytes from which a recipe holds data, not a way to get at them


def recipes(parts: Sequence[tuple[Any, ...]]) -> list[bytes] | None:
    """A recipe for each partition, a tuple of delayed values and others; None where partitions must come from Dask.

    That is where they, or what they are made of, lie in memory here, where several partitions are made of the same, or
    where what makes them cannot be sent.
    """
    import dask
    from dask.core import get_dependencies
    from dask.optimization import cull

    merged: dict[Any, Any] = {}
    for item in filter(dask.is_dask_collection, chain(*parts)):
        merged.update(item.__dask_graph__())
    wanted = [[item.key if dask.is_dask_collection(item) else None for item in part] for part in parts]
    culled = [cull(merged, [key for key in keys if key is not None])[0] for keys in wanted]
    uses = Counter(key for graph in culled for key in graph)
    packed = []
    for part, keys, graph in zip(parts, wanted, culled, strict=True):
        if any(uses[key] > 1 and get_dependencies(graph, key) for key in graph) or _large(graph):
            return None
        rest = [item if key is None else None for item, key in zip(part, keys, strict=True)]
        recipe = _pickled((graph, keys, rest))
        if recipe is None or len(recipe) > _LARGE:
            return None
        packed.append(recipe)
    return packed


def _large(graph: dict[Any, Any]) -> bool:
    """Whether a graph has large arrays for values."""
    return any(getattr(getattr(value, "value", value), "nbytes", 0) > _LARGE for value in graph.values())


def _pickled(value: Any) -> bytes | None:
    """``value`` as bytes, None where it cannot leave this process: locks, open files."""
    import cloudpickle  # type: ignore[import-untyped]

    try:
        return cloudpickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    except (TypeError, AttributeError, pickle.PicklingError):
        return None


def joined(packed: Sequence[bytes]) -> bytes:
    """Several recipes as one value; they differ little, and take little more room than one."""
    return zlib.compress(pickle.dumps(list(packed)))


def walked(bundle: bytes) -> Iterator[tuple[Any, ...]]:
    """The partitions of a bundle, made here, one after another."""
    import dask

    for recipe in pickle.loads(zlib.decompress(bundle)):
        graph, keys, rest = pickle.loads(recipe)
        made = iter(dask.get(graph, [key for key in keys if key is not None]))
        yield tuple(value if key is None else next(made) for key, value in zip(keys, rest, strict=True))


def threads() -> int:
    """How many tasks run at a time: on the cluster that Dask is connected to, or here."""
    from dask.system import CPU_COUNT

    if "distributed" not in sys.modules:
        return CPU_COUNT
    try:
        client = sys.modules["distributed"].default_client()
    except ValueError:  # no cluster is connected: tasks run here
        return CPU_COUNT
    return max(1, sum(client.nthreads().values()))
