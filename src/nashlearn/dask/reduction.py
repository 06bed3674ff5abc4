"""Sums over partitions, and a training problem made of them.

A pass sends the weights to the workers, each of which answers for its partitions with as many numbers as there are
weights: what travels does not depend on the number of examples. Sums are taken pairwise, in a tree that depends on the
number of partitions alone, so results do not depend on who computed them. Workers keep nothing that is not made again
by Dask when one is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np

from nashlearn.arrays import aligned
from nashlearn.dask.recipes import joined, recipes, threads, walked
from nashlearn.training.objective import Evaluation, summed

__all__ = ["PartitionedProblem", "Partitions", "pairwise", "shared", "travelling"]

T = TypeVar("T")
_FAN_IN = 8  # a power of 2, as bundles are: whole subtrees of the pairwise sum
_TASKS = 4  # bundles for each thread at least, so that the slowest does not decide


def shared(value: Any) -> Any:
    """A value that many tasks read: it is sent once, not once a task."""
    import dask

    return dask.delayed(value, name=f"nashlearn-shared-{uuid4().hex}", traverse=False)


def travelling(estimator: Any) -> Any:
    """A copy of an estimator for workers, without what is of use here alone and may not be sent."""
    traveller = copy(estimator)
    traveller.callback = traveller.checkpoint = None
    for name in ("history_", "_trained", "_stream"):
        traveller.__dict__.pop(name, None)
    return traveller


def pairwise(values: Iterable[T], combine: Callable[[T, T], T]) -> T:
    """All values combined two by two, then the results, and so on; holds as many as the logarithm of their number."""
    held: list[tuple[int, T]] = []
    for value in values:
        rank = 0
        while held and held[-1][0] == rank:
            value = combine(held.pop()[1], value)
            rank += 1
        held.append((rank, value))
    result = held.pop()[1]
    while held:
        result = combine(held.pop()[1], result)
    return result


def _walk(bundle: bytes, function: Callable[..., T], combine: Callable[[T, T], T], *arguments: Any) -> T:
    """Make and read the partitions of a bundle one after another."""
    return pairwise((_called(function, *part, *arguments) for part in walked(bundle)), combine)


def _called(function: Callable[..., T], *arguments: Any) -> T:
    return function(*map(aligned, arguments))


class Partitions:
    """A data set in partitions, each a tuple of delayed values, to be read many times.

    Where ``bundled``, partitions that can be made where they are needed are (:mod:`nashlearn.dask.recipes`);
    others, say those that were persisted, are each read by a task of their own, where Dask keeps or has spilled them.
    """

    def __init__(self, parts: Sequence[tuple[Any, ...]], bundled: bool):
        import dask

        self._parts, self._bundles = parts, None
        found = recipes(parts) if bundled else None
        if found is not None:
            size = 1
            while len(found) >= 2 * size * _TASKS * threads():
                size *= 2
            self._bundles = dask.persist(*(shared(joined(found[i : i + size])) for i in range(0, len(found), size)))

    def reduce(self, function: Callable[..., T], combine: Callable[[T, T], T], *arguments: Any) -> T:
        """``function(*part, *arguments)`` of all parts, combined pairwise, by the scheduler that Dask is set to."""
        import dask

        if self._bundles is None:
            call = dask.delayed(_called, traverse=False)
            level = [call(function, *part, *arguments) for part in self._parts]
        else:
            walk = dask.delayed(_walk, traverse=False)
            level = [walk(bundle, function, combine, *arguments) for bundle in self._bundles]
        join = dask.delayed(pairwise)
        while len(level) > 1:
            level = [join(level[i : i + _FAN_IN], combine) for i in range(0, len(level), _FAN_IN)]
        return level[0].compute()


class PartitionedProblem:
    """A training problem whose examples lie in partitions, for :mod:`nashlearn.training.methods.descent`.

    Parameters
    ----------
    parts : Partitions
    evaluate : callable
        ``evaluate(*part, task, w, smoothing)`` is what a part contributes to the mean.
    task
        Whatever that needs besides; None for nothing, and then it is not given.
    n_weights : int
    curvature : ndarray (n_weights,), optional
    complete : bool
        Whether no label is missing in any partition.
    exact : bool
        Whether no game of any partition is relaxed.
    """

    def __init__(
        self,
        parts: Partitions,
        evaluate: Callable[..., Evaluation],
        task: Any,
        n_weights: int,
        curvature: np.ndarray | None = None,
        complete: bool = True,
        exact: bool = True,
    ):
        import dask

        self._parts, self._evaluate, self.n_weights = parts, evaluate, n_weights
        self.curvature, self.complete, self.exact = curvature, complete, exact
        self._task = () if task is None else dask.persist(shared(task))

    def evaluate(self, w: np.ndarray, smoothing: float) -> Evaluation:
        """Loss, gradient and plane at ``w``: one pass over all partitions."""
        return self.reduce(self._evaluate, summed, shared(w), smoothing)

    def reduce(self, function: Callable[..., T], combine: Callable[[T, T], T], *arguments: Any) -> T:
        """As :meth:`Partitions.reduce`, the task before the other arguments."""
        return self._parts.reduce(function, combine, *self._task, *arguments)
