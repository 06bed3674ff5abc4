"""Estimators of structured outputs on Dask bags: partitions agree on labels and features, then each is a problem.

What is read of a partition, what is to be known of all and the problem of each are the estimator's own, the same as for
data in memory, which are one partition. A problem is built once, kept by Dask where it was built, spilled where
memory ends and built again where a worker is lost. A pass adds what the problems say at the weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nashlearn.dask.collections import bag_partitions, on_workers
from nashlearn.dask.reduction import PartitionedProblem, Partitions, shared, travelling
from nashlearn.training.objective import Evaluation, GameProblem

__all__ = ["bag_problem"]

_SETTLED = 1e-6  # relative change of the loss by another evaluation below which a new problem has settled
_ROUNDS = 50


class _Part:
    """The problem of a partition, None where no example counts.

    Games that are not solved to a tolerance keep the replies of the last evaluation and improve them in the next. A new
    problem of such is evaluated until that changes nothing, so that what it says does not depend on when it was built.
    """

    def __init__(self, problem: GameProblem | None):
        self.problem, self._new = problem, problem is not None and problem.tol == np.inf

    def evaluate(self, w: np.ndarray, smoothing: float) -> Evaluation:
        if self.problem is None:
            return Evaluation(0.0, np.zeros(w.size), 0.0, 0.0)
        found = self.problem.evaluate(w, smoothing)
        for _ in range(_ROUNDS * self._new):
            last, found = found.loss, self.problem.evaluate(w, smoothing)
            if abs(last - found.loss) <= _SETTLED * abs(found.loss):
                break
        self._new = False
        return found


def _read(X: Any, y: Any, weight: Any, estimator: Any) -> Any:
    """What the estimator reads in a partition, None where there is nothing."""
    X, y = list(X), list(y)
    weight = np.ones(len(X)) if weight is None else np.asarray(list(weight), dtype=np.float64)
    if not len(X) == len(y) == weight.size:
        raise ValueError(
            f"A partition of X holds {len(X)} examples, that of y {len(y)} and that of sample_weight {weight.size}; "
            f"cut them alike."
        )
    return estimator._read(X, y, weight) if X else None


def _said(X: Any, y: Any, weight: Any, estimator: Any, method: str, *known: Any) -> Any:
    """What a method of the estimator says of a partition, None where there is nothing."""
    data = _read(X, y, weight, estimator)
    return None if data is None else getattr(estimator, method)(data, *known)


def _build(X: Any, y: Any, weight: Any, estimator: Any, facts: Any, sums: Any) -> _Part:
    data = _read(X, y, weight, estimator)
    counts = data is not None and np.any(data.weight)
    return _Part(estimator._problem(data, facts, sums) if counts else None)


def _plus(one: Any, other: Any) -> Any:
    """The sum of what two partitions say, each of which may say nothing."""
    if one is None or other is None:
        return other if one is None else one
    return one + other


@dataclass(frozen=True)
class _Kind:
    """Number of weights, what holds of all games, and the sum of the guesses of the curvature."""

    n_weights: int
    exact: bool
    complete: bool
    curvature: np.ndarray | None

    def __add__(self, other: _Kind) -> _Kind:
        exact, complete = self.exact and other.exact, self.complete and other.complete
        return _Kind(self.n_weights, exact, complete, _plus(self.curvature, other.curvature))


def _kind(part: _Part) -> _Kind | None:
    problem = part.problem
    return None if problem is None else _Kind(problem.n_weights, problem.exact, problem.complete, problem.curvature)


def bag_problem(estimator: Any, X: Any, y: Any, sample_weight: Any) -> tuple[PartitionedProblem, Any]:
    """The training problem of bags of examples, of outputs and perhaps of weights, cut alike; and the facts of all."""
    import dask

    delayed = bag_partitions(X, y=y, sample_weight=sample_weight)
    parts = Partitions(delayed, not any(map(on_workers, (X, y, sample_weight))))
    reader = shared(travelling(estimator))
    facts = parts.reduce(_said, _plus, reader, "_facts")
    if facts is None:
        raise ValueError("X holds no examples.")
    facts.check()
    known = shared(facts)
    sums = shared(parts.reduce(_said, _plus, reader, "_sums", known) if facts.needs_sums else None)
    build = dask.delayed(_build, traverse=False)
    problems = dask.persist(*(build(*part, reader, known, sums) for part in delayed))
    kept = Partitions([(problem,) for problem in problems], bundled=False)
    kind: Any = kept.reduce(_kind, _plus)
    about = (kind.n_weights, kind.curvature, kind.complete, kind.exact)
    return PartitionedProblem(kept, _Part.evaluate, None, *about), facts
