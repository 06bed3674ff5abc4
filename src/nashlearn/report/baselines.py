"""Peers from scikit-learn to hold a model against, given the same features and costs."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

__all__ = ["Cheapest", "Constant", "Stakes", "split", "table_baselines"]

_ROWS = 20_000


def split(model: Any) -> tuple[Any, Any]:
    """What a model does before its last step (None for nothing), and that step: a pipeline's, or the model itself."""
    steps = getattr(model, "steps", None)
    if steps is None:
        return None, model
    return (model[:-1] if len(steps) > 1 else None), steps[-1][1]


class Stakes:
    """What an estimator may answer, in the order of the rows of its costs, and what each answer costs.

    Attributes
    ----------
    costs : ndarray (answers, classes)
    classes, possible : lists
        The labels and the answers.
    aligned, zero_one : bool
        Whether the first answers are the labels, and whether all that counts is to answer with the right one.
    """

    def __init__(self, estimator: Any):
        self.costs, self.classes = np.asarray(estimator._game.costs), np.asarray(estimator.classes_).tolist()
        k = len(self.classes)
        self.possible = np.asarray(getattr(estimator, "_options", estimator.classes_)).tolist()
        if hasattr(estimator, "abstain_label"):
            self.possible = [*self.classes, estimator.abstain_label]
        self.aligned = self.possible[:k] == self.classes
        self.zero_one = np.array_equal(self.costs, 1.0 - np.eye(k))


class Constant(Stakes):
    """The one answer that is cheapest on the training data, whatever the features."""

    def __init__(self, estimator: Any, y: Any):
        super().__init__(estimator)
        shares = np.array([np.mean(np.asarray(y) == label) for label in self.classes])
        self.answer = self.possible[int((self.costs @ shares).argmin())]

    def predict(self, X: Any) -> list[Any]:
        """The answer, once for each row."""
        return [self.answer] * (X.shape[0] if hasattr(X, "shape") else len(X))


class Cheapest(Stakes):
    """The answer of least expected cost under another classifier's probabilities: Bayes's rule, Chow's with abstention.

    Parameters
    ----------
    estimator : estimator of this library
        Whose costs and answers these are.
    peer : fitted classifier with ``predict_proba``
        With the same classes.
    """

    def __init__(self, estimator: Any, peer: Any):
        super().__init__(estimator)
        self.peer = peer

    def _expected(self, X: Any) -> np.ndarray:
        seen = np.asarray(self.peer.classes_).tolist()
        columns = [self.classes.index(label) for label in seen]
        return np.asarray(self.peer.predict_proba(X)) @ self.costs[:, columns].T

    def predict(self, X: Any) -> list[Any]:
        """The cheapest answers."""
        return [self.possible[i] for i in self._expected(X).argmin(axis=1)]

    def ranking(self, X: Any) -> tuple[list[Any], np.ndarray]:
        """The cheapest labels and what they are expected to cost: where that is much, it is better to abstain."""
        expected = self._expected(X)[:, : len(self.classes)]
        return [self.classes[i] for i in expected.argmin(axis=1)], expected.min(axis=1)


def table_baselines(model: Any, X: Any, y: Any, *, random_state: int = 0) -> dict[str, Any]:
    """Peers of a classifier, fitted to the training data ``X``, ``y``: for the argument ``baselines`` of the reports.

    The cheapest constant answer; logistic regression and a linear support vector machine with scikit-learn's defaults
    on the features that the model's own first steps make; and, where mistakes do not all cost the same, logistic
    regression that answers what is cheapest under its probabilities. They are fitted to at most 20,000 rows, drawn
    at random; their names say so.

    Parameters
    ----------
    model : fitted NashClassifier, NashOrdinalClassifier or NashAbstainer, or a pipeline that ends in one
    X, y : the training data, as given to the model
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC
    from sklearn.utils import _safe_indexing

    before, estimator = split(model)
    y = np.asarray(y)
    n = y.shape[0]
    rows = np.sort(np.random.default_rng(random_state).permutation(n)[:_ROWS])
    X = _safe_indexing(X, rows)
    features = X if before is None else before.transform(X)
    logistic, hinge = LogisticRegression(max_iter=500), LinearSVC(random_state=random_state)
    with warnings.catch_warnings():  # a peer may stop early: it is judged by its answers all the same
        warnings.simplefilter("ignore")
        fitted: list[Any] = [peer.fit(features, y[rows]) for peer in (logistic, hinge)]
    if before is not None:
        fitted = [make_pipeline(before, peer) for peer in fitted]
    cheapest = Cheapest(estimator, fitted[0])
    peers: dict[str, Any] = {} if cheapest.zero_one else {"logistic regression, cheapest answer": cheapest}
    if cheapest.aligned:
        peers |= dict(zip(("logistic regression", "linear SVM"), fitted, strict=True))
    if n > _ROWS:
        peers = {f"{name} ({_ROWS:,} rows)": peer for name, peer in peers.items()}
    return peers | {"always the same answer": Constant(estimator, y)}
