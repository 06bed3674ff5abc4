"""Estimators of structured outputs on Dask bags: partitions agree on labels and features, then each is a problem.

The problem of a partition is the estimator's own. It is built once, kept by Dask where it was built, spilled where
memory ends and built again where a worker is lost. A pass adds what the problems say at the weights.
"""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple

import numpy as np

from nashlearn.dask.collections import bag_partitions, on_workers
from nashlearn.dask.reduction import PartitionedProblem, Partitions, shared, travelling
from nashlearn.training.methods.descent import StructuredProblem
from nashlearn.training.objective import Evaluation

__all__ = ["bag_problem"]

_SETTLED = 1e-6  # relative change of the loss by another evaluation below which a new problem has settled
_ROUNDS = 50


class _Survey(NamedTuple):
    """What partitions must agree on, None where all are empty, and the weighted number of predicted variables."""

    facts: Any
    total: float


class _Part:
    """The problem of a partition, None where no example counts, and its share of the mean.

    Some problems keep the replies of the last evaluation and improve them in the next. A new one is evaluated until
    that changes nothing, so that what it says does not depend on when it was built.
    """

    def __init__(self, problem: StructuredProblem | None, share: float):
        self.problem, self.share, self._new = problem, share, True

    def evaluate(self, w: np.ndarray, smoothing: float) -> Evaluation:
        if self.problem is None:
            return Evaluation(0.0, np.zeros(w.size), 0.0, 0.0)
        found = self.problem.evaluate(w, smoothing)
        for _ in range(_ROUNDS * self._new):
            last, found = found.loss, self.problem.evaluate(w, smoothing)
            if abs(last - found.loss) <= _SETTLED * abs(found.loss):
                break
        self._new = False
        return Evaluation(*(self.share * value for value in found))  # type: ignore[arg-type]


def _listed(X: Any, y: Any, weight: Any) -> tuple[list[Any], list[Any], np.ndarray]:
    """The examples of a partition, their outputs and weights."""
    X, y = list(X), list(y)
    weight = np.ones(len(X)) if weight is None else np.asarray(list(weight), dtype=np.float64)
    if not len(X) == len(y) == weight.size:
        raise ValueError(
            f"A partition of X holds {len(X)} examples, that of y {len(y)} and that of sample_weight {weight.size}; "
            f"cut them alike."
        )
    if not (np.isfinite(weight).all() and (weight >= 0).all()):
        raise ValueError("sample_weight must be finite and not negative.")
    return X, y, weight


def _survey(X: Any, y: Any, weight: Any, estimator: Any) -> _Survey:
    X, y, weight = _listed(X, y, weight)
    if not X:
        return _Survey(None, 0.0)
    sizes, facts = copy(estimator)._survey(X, y, weight)
    return _Survey(facts, float(weight @ sizes))


class _Merge:
    """How an estimator merges two surveys; a class, to travel with it."""

    def __init__(self, estimator: Any):
        self.estimator = estimator

    def __call__(self, one: _Survey, other: _Survey) -> _Survey:
        if one.facts is None or other.facts is None:
            return other if one.facts is None else one
        return _Survey(self.estimator._merged(one.facts, other.facts), one.total + other.total)


def _sums(X: Any, y: Any, weight: Any, estimator: Any, total: float) -> Any:
    X, y, weight = _listed(X, y, weight)
    return copy(estimator)._sums(X, y, weight, total) if X else None


def _add(one: Any, other: Any) -> Any:
    if one is None or other is None:
        return other if one is None else one
    return one.merged(other)


def _build(X: Any, y: Any, weight: Any, estimator: Any, total: float) -> _Part:
    X, y, weight = _listed(X, y, weight)
    if not weight.any():
        return _Part(None, 0.0)
    # Copies: reading examples leaves traces, and threads share the original.
    sizes, _ = copy(estimator)._survey(X, y, weight)
    return _Part(copy(estimator)._part(X, y, weight), float(weight @ sizes) / total)


class _Kind(NamedTuple):
    """Number of weights, -1 where there is no example, what holds of all games, and the share of a curvature."""

    n_weights: int
    exact: bool
    complete: bool
    curvature: np.ndarray | None


def _kind(part: _Part) -> _Kind:
    if part.problem is None:
        return _Kind(-1, True, True, None)
    networks = getattr(part.problem, "networks", None)  # the only games that may be relaxed
    guess = part.problem.curvature()
    guess = None if guess is None else part.share * guess
    exact, complete = networks is None or networks.is_exact, part.problem.complete
    return _Kind(part.problem.n_weights, exact, complete, guess)


def _plus(one: np.ndarray | None, other: np.ndarray | None) -> np.ndarray | None:
    if one is None or other is None:
        return other if one is None else one
    return one + other


def _same_kind(one: _Kind, other: _Kind) -> _Kind:
    if one.n_weights != other.n_weights and min(one.n_weights, other.n_weights) >= 0:
        raise ValueError(
            f"Partitions of X differ in their features: {one.n_weights} weights for one, {other.n_weights} for another."
        )
    return _Kind(
        max(one.n_weights, other.n_weights),
        one.exact and other.exact,
        one.complete and other.complete,
        _plus(one.curvature, other.curvature),
    )


def _evaluate(part: _Part, _: Any, w: np.ndarray, smoothing: float) -> Evaluation:
    return part.evaluate(w, smoothing)


def bag_problem(estimator: Any, X: Any, y: Any, sample_weight: Any) -> PartitionedProblem:
    """The training problem of bags of examples, of their outputs and perhaps of their weights, cut alike."""
    import dask

    delayed = bag_partitions(X, y=y, sample_weight=sample_weight)
    parts = Partitions(delayed, not any(map(on_workers, (X, y, sample_weight))))
    seen = parts.reduce(_survey, _Merge(travelling(estimator)), shared(travelling(estimator)))
    if seen.facts is None or not seen.total > 0:
        raise ValueError("X holds no examples of positive weight.")
    estimator._adopt(seen.facts)
    if estimator._incomplete:
        estimator._adopt_sums(parts.reduce(_sums, _add, shared(travelling(estimator)), seen.total))
    build, adopted = dask.delayed(_build, traverse=False), shared(travelling(estimator))
    problems = dask.persist(*(build(*part, adopted, seen.total) for part in delayed))
    kept = Partitions([(problem,) for problem in problems], bundled=False)
    kind = kept.reduce(_kind, _same_kind)
    if hasattr(estimator, "is_exact_"):
        estimator.is_exact_ = kind.exact
    return PartitionedProblem(kept, _evaluate, None, kind.n_weights, kind.curvature, kind.complete)
