"""What answers cost, as scikit-learn's tools for model selection ask for it, and bounds of what they will cost."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_consistent_length

from nashlearn.certificates import Certified, mean_bounds
from nashlearn.estimators._costs import NamedCosts, named_costs
from nashlearn.estimators._labels import known_positions
from nashlearn.games._check import cost_matrix
from nashlearn.games.catalogue import LOSSES, suggested_name
from nashlearn.games.catalogue import named_costs as costs_between

__all__ = ["Certified", "TaskLossScorer", "mean_bounds", "task_loss_scorer"]


def task_loss_scorer(loss: Any) -> TaskLossScorer:
    """A scorer for ``GridSearchCV``, ``cross_val_score`` and the like: minus the mean loss of what is predicted.

    It serves any classifier and any pipeline that ends in one.

    Parameters
    ----------
    loss : {"zero_one", "absolute", "squared"}, cost matrix, DataFrame or dict of dicts
        As :class:`nashlearn.NashClassifier` takes it. Rows and columns without names are those of the estimator's
        ``classes_``; where there are more or fewer rows than columns, predictions are their indices. Costs with names
        also serve where the estimator has not seen each label.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> from nashlearn.metrics import task_loss_scorer
    >>> X, y = load_iris(return_X_y=True)
    >>> costs = {0: {0: 0, 1: 1, 2: 1}, 1: {0: 1, 1: 0, 2: 5}, 2: {0: 1, 1: 1, 2: 0}}
    >>> scores = cross_val_score(LogisticRegression(max_iter=1000), X, y, scoring=task_loss_scorer(costs))
    >>> bool((scores <= 0).all())
    True
    """
    return TaskLossScorer(loss)


class TaskLossScorer:
    """Minus the mean loss of an estimator's predictions; see :func:`task_loss_scorer`."""

    def __init__(self, loss: Any):
        if isinstance(loss, str) and loss not in LOSSES:
            raise ValueError(
                f"loss must be one of {LOSSES}, a cost matrix or costs with names; got {loss!r}.{suggested_name(loss)}"
            )
        named = None if isinstance(loss, str) else named_costs(loss)
        self._loss, self._named = loss, named
        self._matrix = cost_matrix(loss, "loss") if named is None and not isinstance(loss, str) else None

    def __repr__(self) -> str:
        return f"task_loss_scorer({self._loss!r})"

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Minus the weighted mean loss of ``estimator.predict(X)`` for the labels ``y``."""
        costs = self._named if self._named is not None else self._of_classes(np.asarray(estimator.classes_))
        predicted = np.asarray(estimator.predict(X))
        check_consistent_length(predicted, y)
        rows = known_positions(costs.options, predicted, "is no option of the loss", of="predict(X)")
        columns = known_positions(costs.labels, y, "the loss does not know; it knows")
        return -float(np.average(costs.matrix[rows, columns], weights=sample_weight))

    def _of_classes(self, classes: np.ndarray) -> NamedCosts:
        """The costs of the classes in their order."""
        k = classes.size
        matrix = costs_between(self._loss, k) if self._matrix is None else self._matrix
        if matrix.shape[1] != k:
            raise ValueError(
                f"loss has {matrix.shape[1]} columns, but the estimator knows {k} classes; name rows and columns, by a "
                "data frame or a dictionary of dictionaries, where a part of the data may lack a class."
            )
        return NamedCosts(classes if matrix.shape[0] == k else np.arange(matrix.shape[0]), classes, matrix)
