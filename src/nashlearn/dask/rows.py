"""Estimators of one label per row on Dask arrays and dataframes: facts about the labels, then gradients.

The game is smoothed by ``mu Omega(q)``, ``Omega(q) = (|q|^2 - <1, q>) / 2``, 0 at every label, and ``mu`` falls until
the game itself is certified (:mod:`nashlearn.training.methods.descent`): no dual variable of an example is ever kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from operator import add
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_feature_names

from nashlearn.dask.collections import on_workers, one_block_wide, row_partitions
from nashlearn.dask.reduction import PartitionedProblem, Partitions
from nashlearn.training.designs.row_products import squared_norms
from nashlearn.training.driver import Run
from nashlearn.training.methods.descent import Descent
from nashlearn.training.objective import Evaluation
from nashlearn.training.opening import train_as_asked
from nashlearn.training.problem import Problem
from nashlearn.training.progress import scaling_advice
from nashlearn.training.rounding import rounding

__all__ = ["RowFacts", "fit_rows", "row_facts"]

_ROWS = 1 << 16  # more than the sums over the rows of a block, and then over blocks, add up
_SCHEDULE = (0.1, 0.02, 4e-3, 8e-4, 1.6e-4, 3.2e-5, 6.4e-6, 0.0)


@dataclass(frozen=True)
class RowFacts:
    """What is to be known of all rows before training; those of two parts add up.

    Attributes
    ----------
    labels : ndarray (k,)
        Distinct labels, sorted.
    counts : ndarray (k, 4)
        For each its rows, the sum of their weights, that of the squared weights, and that weighted by the rows'
        squared norms.
    squares : ndarray (d,)
        Weighted sum of squares of each feature.
    """

    labels: np.ndarray
    counts: np.ndarray
    squares: np.ndarray

    def __add__(self, other: RowFacts) -> RowFacts:
        if not (self.labels.size and other.labels.size):
            return self if self.labels.size else other
        labels, codes = np.unique(np.concatenate([self.labels, other.labels]), return_inverse=True)
        counts = np.zeros((labels.size, 4))
        np.add.at(counts, codes, np.concatenate([self.counts, other.counts]))
        return RowFacts(labels, counts, self.squares + other.squares)


def _numbers(X: Any, y: Any, checked: bool) -> tuple[Any, np.ndarray]:
    X = check_array(
        X,
        accept_sparse="csr",
        dtype=[np.float64, np.float32],
        order="C",
        ensure_all_finite=not checked,
        ensure_min_samples=0,
        input_name="X",
    )
    y = column_or_1d(y)
    if X.shape[0] != y.shape[0]:
        raise ValueError(f"A partition of X has {X.shape[0]} rows and that of y has {y.shape[0]}; cut them alike.")
    return X, y


def row_facts(X: Any, y: Any, weight: Any) -> RowFacts:
    """The facts of a partition; refuses what training could not use."""
    X, y = _numbers(X, y, checked=False)
    if X.shape[0] == 0:
        return RowFacts(y[:0], np.zeros((0, 4)), np.zeros(X.shape[1]))
    check_classification_targets(y)
    weight = np.ones(y.size) if weight is None else np.asarray(weight, dtype=np.float64).ravel()
    if weight.size != y.size or not (np.isfinite(weight).all() and (weight >= 0).all()):
        raise ValueError("sample_weight must hold one number for each row of X, finite and not negative.")
    labels, codes = np.unique(y, return_inverse=True)
    columns = (np.ones_like(weight), weight, weight**2, weight**2 * squared_norms(X))
    counts = np.stack([np.bincount(codes, weights=column, minlength=labels.size) for column in columns], axis=1)
    squares = X.multiply(X).T @ weight if hasattr(X, "multiply") else np.einsum("ij,ij,i->j", X, X, weight)
    return RowFacts(labels, counts, np.asarray(squares, dtype=np.float64).ravel())


class _Task(NamedTuple):
    """What a worker needs besides a partition and the weights.

    ``share`` is a row's part of the mean, by class, and ``sizes`` bounds the means of the absolute features.
    """

    classes: np.ndarray
    share: np.ndarray
    alpha: float
    game: Any
    design: Any
    sizes: np.ndarray

    def error(self, w: np.ndarray) -> float:
        """How wrong rounding may make the mean loss at ``w``; partitions are read by blocks of some thousand rows."""
        reach = self.design.reach(self.sizes, w.reshape(self.design.shape))
        return rounding(_ROWS + self.sizes.size + self.share.size, self.game.unit, reach)


def _evaluate(X: Any, y: Any, weight: Any, task: _Task, w: np.ndarray, smoothing: float) -> Evaluation:
    """What a partition contributes to the mean."""
    X, y = _numbers(X, y, checked=True)
    codes = np.searchsorted(task.classes, y).astype(np.int64)
    omega = task.share[codes] if weight is None else task.share[codes] * np.asarray(weight, dtype=np.float64).ravel()
    seen = Problem(X, codes, omega, task.alpha, task.game, task.design).evaluate(w, smoothing)
    # What rounding may hide of the gap, the loss's part and the bound's, is taken off the bound.
    return seen._replace(entropy=seen.entropy - 2.0 * float(omega.sum()) * task.error(w))


def _shares(class_weight: Any, seen: RowFacts) -> np.ndarray:
    """What a row of weight 1 of each class is of the weighted mean."""
    factors = np.ones(seen.labels.size)
    if isinstance(class_weight, str) and class_weight == "balanced":
        factors = seen.counts[:, 0].sum() / (seen.labels.size * seen.counts[:, 0])
    elif class_weight is not None:
        factors = compute_class_weight(class_weight, classes=seen.labels, y=seen.labels)
    total = factors @ seen.counts[:, 1]
    if not total > 0:
        raise ValueError("sample_weight must be positive for at least one row; all rows have weight 0.")
    return factors / total


def _metric(design: Any, squares: np.ndarray, alpha: float) -> np.ndarray:
    """One over the curvature along each weight, as far as the sizes of features tell."""
    k = design.scores(np.zeros((1, design.d)), np.zeros(design.shape)).shape[1]
    diagonal = np.zeros(design.shape)
    design.add_diagonal(np.sqrt(squares)[None, :], np.ones((k, 1)), diagonal)  # a row with the squares of all
    return 1.0 / (alpha + diagonal.ravel())


class _RowDescent(Descent):
    """Descent to weights that the design prefers, where it prefers others that are no worse: one more pass."""

    def __init__(self, design: Any, schedule: Iterable[float], metric: np.ndarray):
        super().__init__(schedule, metric=metric)
        self.design = design

    def finish(self, run: Run, state: Any) -> None:
        """Exchange the best weights for those that the design prefers."""
        super().finish(run, state)
        w = run.progress.w.reshape(self.design.shape)
        if (tidy := self.design.tidied(w)) is not w:
            tidy = tidy.ravel()
            primal = 0.5 * run.alpha * float(np.square(tidy).sum()) + run.problem.evaluate(tidy, 0.0).loss
            run.progress.exchange(tidy, primal, 0.0)


def fit_rows(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    """Train an estimator of :mod:`nashlearn.estimators` on a Dask array or dataframe.

    Cost: a pass for the facts, then about ten to forty for gaps of 1e-2 to 1e-3, each reading every partition once.
    """
    from dask.base import tokenize

    if estimator.kernel is not None:
        raise ValueError(f"kernel must be None for Dask collections: training is linear; got {estimator.kernel!r}.")
    if y is None:
        raise ValueError("y must hold a label for each row; got None.")
    X, _ = one_block_wide(X)
    delayed = row_partitions(X, y=y, sample_weight=sample_weight)
    parts = Partitions(delayed, not any(map(on_workers, (X, y, sample_weight))))
    seen = parts.reduce(row_facts, add)
    d = X.shape[1]
    estimator._check_classes(seen.labels)
    share = _shares(estimator.class_weight, seen)
    setting = estimator._game_and_scores(seen.labels, d)
    game, design, alpha = setting.game, setting.design, float(estimator.alpha) / setting.unit
    squared = share**2 @ seen.counts[:, 2]
    spread = float(np.sqrt(0.5 * squared * design.squared_diameters(share**2 @ seen.counts[:, 3:] / squared)[0]))
    if not np.isfinite(spread):
        raise ValueError("X has values so large that the squares of its rows overflow; scale the features.")
    task = _Task(seen.labels, share, alpha, game, design, np.sqrt(share.max() * seen.squares))
    problem = PartitionedProblem(parts, _evaluate, task, design.size)
    previous = estimator._previous(seen.labels)
    metric = _metric(design, seen.squares / seen.counts[:, 1].sum(), alpha)
    trained = train_as_asked(
        estimator,
        problem,
        _RowDescent(design, [game.scale * mu for mu in _SCHEDULE], metric),
        [tokenize(X, y, sample_weight), seen.labels],
        unit=setting.unit,
        start=None if previous is None else previous.w.ravel(),
        advice=lambda: scaling_advice([np.sqrt(seen.squares)]),
    )
    error = task.error(setting.unit * trained.w) / setting.unit
    trained = replace(trained, w=trained.w.reshape(design.shape), error=error)
    _check_feature_names(estimator, getattr(X, "_meta", X), reset=True)
    estimator.n_features_in_, estimator._kernel = d, None
    return estimator._conclude(trained, seen.labels, spread)
