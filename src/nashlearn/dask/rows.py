"""Estimators of one label per row on Dask arrays and dataframes: a survey of the labels, then gradients.

The game is smoothed by ``mu Omega(q)``, ``Omega(q) = (|q|^2 - <1, q>) / 2``, 0 at every label, and ``mu`` falls until
the game itself is certified (:mod:`nashlearn.training.methods.descent`): no dual variable of an example is ever kept.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_feature_names

from nashlearn.dask.collections import on_workers, one_block_wide, row_partitions
from nashlearn.dask.reduction import PartitionedProblem, Partitions
from nashlearn.games.rows.kernels import solve_rows
from nashlearn.training.designs.row_products import squared_norms
from nashlearn.training.driver import Trained
from nashlearn.training.methods.descent import Minimised, anneal
from nashlearn.training.objective import Evaluation
from nashlearn.training.problem import Problem, risk_rows, smooth_rows
from nashlearn.training.progress import relative_gap, scaling_advice
from nashlearn.training.rounding import rounding

__all__ = ["Survey", "evaluate_rows", "fit_rows", "merged", "survey_rows"]

_ROWS = 1 << 16  # more than the sums over the rows of a block, and then over blocks, add up
_SCHEDULE = (0.1, 0.02, 4e-3, 8e-4, 1.6e-4, 3.2e-5, 6.4e-6, 0.0)


class Survey(NamedTuple):
    """What is to be known of all rows before training.

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


def survey_rows(X: Any, y: Any, weight: Any) -> Survey:
    """The survey of a partition; refuses what training could not use."""
    X, y = _numbers(X, y, checked=False)
    if X.shape[0] == 0:
        return Survey(y[:0], np.zeros((0, 4)), np.zeros(X.shape[1]))
    check_classification_targets(y)
    weight = np.ones(y.size) if weight is None else np.asarray(weight, dtype=np.float64).ravel()
    if weight.size != y.size or not (np.isfinite(weight).all() and (weight >= 0).all()):
        raise ValueError("sample_weight must hold one number for each row of X, finite and not negative.")
    labels, codes = np.unique(y, return_inverse=True)
    columns = (np.ones_like(weight), weight, weight**2, weight**2 * squared_norms(X))
    counts = np.stack([np.bincount(codes, weights=column, minlength=labels.size) for column in columns], axis=1)
    squares = X.multiply(X).T @ weight if hasattr(X, "multiply") else np.einsum("ij,ij,i->j", X, X, weight)
    return Survey(labels, counts, np.asarray(squares, dtype=np.float64).ravel())


def merged(one: Survey, other: Survey) -> Survey:
    """The survey of two partitions together."""
    if not (one.labels.size and other.labels.size):
        return one if one.labels.size else other
    labels, codes = np.unique(np.concatenate([one.labels, other.labels]), return_inverse=True)
    counts = np.zeros((labels.size, 4))
    np.add.at(counts, codes, np.concatenate([one.counts, other.counts]))
    return Survey(labels, counts, one.squares + other.squares)


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


def evaluate_rows(problem: Problem, w: np.ndarray, smoothing: float) -> Evaluation:
    """Loss, gradient and plane of the rows at ``w``. Cost: the data twice, and a game for each row."""
    w = w.reshape(problem.shape)
    gradient = np.zeros(problem.shape)
    loss = entropy = penalty = 0.0
    for part, block in problem.blocks():
        scores, Y, omega = problem.design.scores(block, w), problem.truth(part), problem.omega[part]
        Q, p = Y.copy(), np.empty((len(omega), problem.n_options))
        if smoothing:
            # Steps from the centre 1/2 subtract Omega and a constant of 1/8 for each entry.
            centre, tight = np.full_like(scores, 0.5), np.empty(p.shape, np.bool_)
            loss += smooth_rows(problem.loss, scores, Y, omega, smoothing, centre, Q, tight)
            loss += 0.125 * smoothing * Q.shape[1] * float(omega.sum())
            penalty += 0.5 * smoothing * float(omega @ (np.einsum("ij,ij->i", Q, Q) - Q.sum(axis=1)))
        else:
            value, gap = np.empty((2, len(omega)))
            solve_rows(problem.loss, scores, value, Q, p, gap)
            loss += float(omega @ (value + gap - np.einsum("ij,ij->i", scores, Y)))
        entropy += risk_rows(problem.loss, Q, omega)
        problem.design.add_moments(block, omega[:, None] * (Q - Y), gradient)
    return Evaluation(loss, gradient.ravel(), entropy, penalty)


def _evaluate(X: Any, y: Any, weight: Any, task: _Task, w: np.ndarray, smoothing: float) -> Evaluation:
    """What a partition contributes to the mean."""
    X, y = _numbers(X, y, checked=True)
    codes = np.searchsorted(task.classes, y).astype(np.int64)
    omega = task.share[codes] if weight is None else task.share[codes] * np.asarray(weight, dtype=np.float64).ravel()
    seen = evaluate_rows(Problem(X, codes, omega, task.alpha, task.game, task.design), w, smoothing)
    # What rounding may hide of the gap, the loss's part and the bound's, is taken off the bound.
    return seen._replace(entropy=seen.entropy - 2.0 * float(omega.sum()) * task.error(w))


def _shares(class_weight: Any, seen: Survey) -> np.ndarray:
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
    identity = np.zeros((k * (k + 1) // 2, 1))
    identity[[c * (c + 3) // 2 for c in range(k)]] = 1.0
    diagonal = np.zeros(design.shape)
    design.add_diagonal(np.sqrt(squares)[None, :], identity, diagonal)  # a row with the squares of all
    return 1.0 / (alpha + diagonal.ravel())


def _tidied(found: Minimised, problem: PartitionedProblem, design: Any, alpha: float) -> Minimised:
    """The weights that the design prefers to those that were found, with their objective: one more pass."""
    w = found.w.reshape(design.shape)
    if (tidy := design.tidied(w)) is w:
        return found
    loss = problem.evaluate(tidy.ravel(), 0.0).loss
    objective = 0.5 * alpha * float(np.square(tidy).sum()) + loss
    gap = relative_gap(objective, found.objective * (1.0 - found.dual_gap))
    rounds = [*found.rounds[:-1], found.rounds[-1]._replace(objective=objective, gap=gap)]
    return replace(found, w=tidy.ravel(), loss=loss, objective=objective, dual_gap=gap, rounds=rounds)


def fit_rows(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    """Train an estimator of :mod:`nashlearn.estimators` on a Dask array or dataframe.

    Cost: a pass for the survey, then about ten to forty for gaps of 1e-2 to 1e-3, each reading every partition once.
    """
    from dask.base import tokenize

    from nashlearn.estimators._parameters import opened_checkpoint

    if estimator.kernel is not None:
        raise ValueError(f"kernel must be None for Dask collections: training is linear; got {estimator.kernel!r}.")
    if y is None:
        raise ValueError("y must hold a label for each row; got None.")
    X, _ = one_block_wide(X)
    delayed = row_partitions(X, y=y, sample_weight=sample_weight)
    parts = Partitions(delayed, not any(map(on_workers, (X, y, sample_weight))))
    seen = parts.reduce(survey_rows, merged)
    alpha, d = float(estimator.alpha), X.shape[1]
    if seen.labels.size < 2:
        raise ValueError(
            f"y holds {'one class only, ' + repr(seen.labels.tolist()[0]) if seen.labels.size else 'no labels'}; "
            f"{type(estimator).__name__} needs at least two distinct labels."
        )
    share = _shares(estimator.class_weight, seen)
    game, design, _, _ = estimator._game_and_scores(seen.labels.size, d)
    squared = share**2 @ seen.counts[:, 2]
    spread = float(np.sqrt(0.5 * squared * design.squared_diameters(share**2 @ seen.counts[:, 3:] / squared)[0]))
    if not np.isfinite(spread):
        raise ValueError("X has values so large that the squares of its rows overflow; scale the features.")
    task = _Task(seen.labels, share, alpha, game, design, np.sqrt(share.max() * seen.squares))
    problem = PartitionedProblem(parts, _evaluate, task, design.size)
    previous = estimator._previous(seen.labels)
    if previous is not None and previous.w.shape != design.shape:
        previous = None
    found = anneal(
        problem,
        alpha,
        schedule=[game.scale * mu for mu in _SCHEDULE],
        tol=estimator.tol,
        max_iter=estimator.max_iter,
        start=None if previous is None else previous.w.ravel(),
        metric=_metric(design, seen.squares / seen.counts[:, 1].sum(), alpha),
        verbose=estimator.verbose,
        max_time=estimator.max_time,
        callback=estimator.callback,
        checkpoint=opened_checkpoint(estimator, tokenize(X, y, sample_weight), seen.labels),
        advice=lambda: scaling_advice([np.sqrt(seen.squares)]),
    )
    found = _tidied(found, problem, design, alpha)
    w, norm, error = found.w.reshape(design.shape), float(np.linalg.norm(found.w)), task.error(found.w)
    trained = Trained(
        w, np.empty((0, 0)), alpha, norm, found.objective, found.dual_gap, found.n_iter, found.rounds, error
    )
    _check_feature_names(estimator, getattr(X, "_meta", X), reset=True)
    estimator.n_features_in_, estimator._kernel = d, None
    return estimator._conclude(trained, seen.labels, spread)
