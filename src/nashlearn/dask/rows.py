"""Estimators of one label per row on Dask arrays and dataframes: facts about the labels, then gradients.

Training is L-BFGS on the tempered game, certified by the planes that it meets on the way
(:mod:`nashlearn.training.methods.descent`). Where the estimator's smoothing is 0, the adversary is paid for entropy all
the same, at a price that falls until the game itself is certified. No dual variable of an example is ever kept.
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
from nashlearn.dask.reduction import PartitionedProblem, Partitions, shared
from nashlearn.training.designs.row_products import squared_norms
from nashlearn.training.driver import Run
from nashlearn.training.methods.descent import Descent
from nashlearn.training.objective import Evaluation
from nashlearn.training.opening import train_as_asked
from nashlearn.training.problem import Problem
from nashlearn.training.progress import scaling_advice
from nashlearn.training.risk import risk_means, sigmas
from nashlearn.training.rounding import rounding

__all__ = ["RowFacts", "fit_rows", "row_facts"]

_ROWS = 1 << 16  # more than the sums over the rows of a block, and then over blocks, add up
_SCHEDULE = (0.015, 3e-3, 6e-4, 1.2e-4, 2.4e-5, 4.8e-6, 0.0)  # in units of the game's scale


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

    ``places`` are those of the sorted ``labels`` among the classes, ``share`` their rows' parts of the mean, and
    ``sizes`` bounds the means of the absolute features.
    """

    labels: np.ndarray
    places: np.ndarray
    share: np.ndarray
    alpha: float
    game: Any
    design: Any
    sizes: np.ndarray

    def problem(self, X: Any, y: Any, weight: Any) -> Problem:
        """A partition, whose rows were checked before."""
        X, y = _numbers(X, y, checked=True)
        which = np.searchsorted(self.labels, y)
        omega = self.share[which]
        if weight is not None:
            omega = omega * np.asarray(weight, dtype=np.float64).ravel()
        return Problem(X, self.places[which], omega, self.alpha, self.game, self.design)

    def error(self, w: np.ndarray, smoothing: float) -> float:
        """How wrong rounding may make the mean loss at ``w``; partitions are read by blocks of some thousand rows."""
        reach = self.design.reach(self.sizes, w.reshape(self.design.shape))
        k = self.game.n_labels
        unit = self.game.unit + smoothing * (1.0 + float(np.log(k + 1.0)))
        return rounding(_ROWS + self.sizes.size + k + 1, unit, reach)


def _evaluate(X: Any, y: Any, weight: Any, task: _Task, w: np.ndarray, smoothing: float) -> Evaluation:
    """What a partition contributes to the mean."""
    part = task.problem(X, y, weight)
    seen = part.evaluate(w, smoothing)
    # What rounding may hide of the gap, the loss's part and the bound's, is taken off the bound.
    return seen._replace(entropy=seen.entropy - 2.0 * float(part.omega.sum()) * task.error(w, smoothing))


def _risk(X: Any, y: Any, weight: Any, task: _Task, w: np.ndarray, smoothing: float, sigma: np.ndarray) -> np.ndarray:
    """What a partition contributes to the means that bound the risk."""
    part = task.problem(X, y, weight)
    means = np.zeros(sigma.size)
    for rows, block in part.blocks():
        scores = task.design.scores(block, w.reshape(task.design.shape))
        means += risk_means(task.game, scores, part.y[rows], part.omega[rows], smoothing, sigma)
    return means


def _shares(class_weight: Any, seen: RowFacts) -> tuple[np.ndarray, float]:
    """What a row of weight 1 of each class is of the weighted mean, and the sum of the rows' weights."""
    factors = np.ones(seen.labels.size)
    if isinstance(class_weight, str) and class_weight == "balanced":
        factors = seen.counts[:, 0].sum() / (seen.labels.size * seen.counts[:, 0])
    elif class_weight is not None:
        factors = compute_class_weight(class_weight, classes=seen.labels, y=seen.labels)
    total = factors @ seen.counts[:, 1]
    if not total > 0:
        raise ValueError("sample_weight must be positive for at least one row; all rows have weight 0.")
    return factors / total, float(seen.counts[factors > 0, 1].sum())


def _metric(design: Any, squares: np.ndarray, alpha: float) -> np.ndarray:
    """One over the curvature along each weight, as far as the sizes of features tell."""
    k = design.scores(np.zeros((1, design.d)), np.zeros(design.shape)).shape[1]
    diagonal = np.zeros(design.shape)
    design.add_diagonal(np.sqrt(squares)[None, :], np.ones((k, 1)), diagonal)  # a row with the squares of all
    return 1.0 / (alpha + diagonal.ravel())


class _RowDescent(Descent):
    """Descent to weights that the design prefers, where it prefers others that are no worse: one more pass."""

    def __init__(self, design: Any, schedule: Iterable[float], target: float, metric: np.ndarray):
        super().__init__(schedule, target, metric)
        self.design = design

    def finish(self, run: Run, state: Any) -> None:
        """Exchange the best weights for those that the design prefers."""
        super().finish(run, state)
        w = run.progress.w.reshape(self.design.shape)
        if (tidy := self.design.tidied(w)) is not w:
            tidy = tidy.ravel()
            primal = 0.5 * run.alpha * float(np.square(tidy).sum()) + run.problem.evaluate(tidy, self.target).loss
            run.progress.exchange(tidy, primal, 0.0)


def fit_rows(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    """Train an estimator of :mod:`nashlearn.estimators` on a Dask array or dataframe.

    Cost: a pass for the facts, then about ten to forty for gaps of 1e-2 to 1e-3, each reading every partition once;
    where the game is tempered, one more for the bound on the risk.
    """
    from dask.base import tokenize

    if not estimator._is_linear:
        raise ValueError(f"kernel must be None for Dask collections: training is linear; got {estimator.kernel!r}.")
    if y is None:
        raise ValueError("y must hold a label for each row; got None.")
    X, _ = one_block_wide(X)
    delayed = row_partitions(X, y=y, sample_weight=sample_weight)
    parts = Partitions(delayed, not any(map(on_workers, (X, y, sample_weight))))
    seen = parts.reduce(row_facts, add)
    d = X.shape[1]
    estimator._check_classes(seen.labels)
    classes = estimator._arranged(seen.labels, y)
    place = {label: i for i, label in enumerate(classes.tolist())}  # there may be classes without rows
    places = np.array([place[label] for label in seen.labels.tolist()])
    share, total = _shares(estimator.class_weight, seen)
    setting = estimator._game_and_scores(classes, d)
    game, design, mu, unit = setting.game, setting.design, setting.mu, setting.unit
    squared = share**2 @ seen.counts[:, 2]
    spread = float(np.sqrt(0.5 * squared * design.squared_diameters(share**2 @ seen.counts[:, 3:] / squared)[0]))
    if not np.isfinite(spread):
        raise ValueError("X has values so large that the squares of its rows overflow; scale the features.")
    estimator.alpha_ = estimator._regularisation(classes.size, total)
    alpha = estimator.alpha_ / unit
    task = _Task(seen.labels, places, share, alpha, game, design, np.sqrt(share.max() * seen.squares))
    problem = PartitionedProblem(parts, _evaluate, task, design.size)
    previous = estimator._previous(classes)
    metric = _metric(design, seen.squares / seen.counts[:, 1].sum(), alpha)
    trained = train_as_asked(
        estimator,
        problem,
        _RowDescent(design, [mu] if mu else [game.scale * part for part in _SCHEDULE], mu, metric),
        [tokenize(X, y, sample_weight), classes, estimator._game.params, estimator.smoothing_],
        alpha=estimator.alpha_,
        unit=unit,
        start=None if previous is None else previous.w.ravel(),
        advice=lambda: scaling_advice([np.sqrt(seen.squares)]),
    )
    w = unit * trained.w
    trained = replace(trained, w=trained.w.reshape(design.shape), error=task.error(w, mu) / unit)
    risk = None
    if mu:
        sigma = sigmas(estimator.smoothing_)
        means = problem.reduce(_risk, add, shared(w), mu, sigma)
        risk = sigma, means + np.maximum(sigma, 1.0) * task.error(w, mu)
    _check_feature_names(estimator, getattr(X, "_meta", X), reset=True)
    estimator.n_features_in_, estimator._kernel = d, None
    return estimator._conclude(trained, classes, spread, risk)
