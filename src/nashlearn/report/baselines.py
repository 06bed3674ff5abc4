"""Peers from scikit-learn to hold a model against, given the same features and costs."""

from __future__ import annotations

import warnings
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if

__all__ = ["Cheapest", "Constant", "Stakes", "split", "table_baselines"]

_ROWS = 20_000
_NUMBERS = 20_000_000  # features times rows times classes for gradient boosting
_HISTOGRAMS = (
    150_000  # features times classes times rounds for it: with both it ends within a quarter of a minute or so
)
_FEW, _ROUNDS = 300, 100  # rows below which it is left out, and its rounds


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

    def probabilities(self, X: Any) -> np.ndarray:
        """Those of the other classifier (n, classes), 0 for classes that it has not seen."""
        seen = np.asarray(self.peer.classes_).tolist()
        q = np.zeros((X.shape[0] if hasattr(X, "shape") else len(X), len(self.classes)))
        q[:, [self.classes.index(label) for label in seen]] = self.peer.predict_proba(X)
        return q

    def _expected(self, X: Any) -> np.ndarray:
        return self.probabilities(X) @ self.costs.T

    def predict(self, X: Any) -> list[Any]:
        """The cheapest answers."""
        return [self.possible[i] for i in self._expected(X).argmin(axis=1)]

    def ranking(self, X: Any) -> tuple[list[Any], np.ndarray]:
        """The cheapest labels and what they are expected to cost: where that is much, it is better to abstain."""
        expected = self._expected(X)[:, : len(self.classes)]
        return [self.classes[i] for i in expected.argmin(axis=1)], expected.min(axis=1)


class Alone(BaseEstimator):
    """A peer that works on dense features, in one thread, so that it does not wait for its own on a busy machine."""

    def __init__(self, peer: Any):
        self.peer = peer

    def fit(self, X: Any, y: Any) -> Alone:
        """Fit the peer."""
        with _one_thread():
            self.peer.fit(_dense(X), y)
        self.classes_ = self.peer.classes_
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The peer's answers."""
        with _one_thread():
            return np.asarray(self.peer.predict(_dense(X)))

    @available_if(lambda self: hasattr(self.peer, "predict_proba"))
    def predict_proba(self, X: Any) -> np.ndarray:
        """The peer's probabilities."""
        with _one_thread():
            return np.asarray(self.peer.predict_proba(_dense(X)))


def _one_thread() -> Any:
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1, user_api="openmp")


class Graded(Stakes):
    """A peer that knows grades by their places only.

    Parameters
    ----------
    estimator : estimator of this library
        Whose grades these are.
    peer : fitted estimator whose answers are places
    """

    def __init__(self, estimator: Any, peer: Any):
        super().__init__(estimator)
        self.peer = peer

    def predict(self, X: Any) -> list[Any]:
        """The grades at the peer's places."""
        return [self.classes[int(place)] for place in self.peer.predict(X)]


def table_baselines(model: Any, X: Any, y: Any, *, random_state: int = 0) -> dict[str, Any]:
    """Peers of a classifier, fitted to the training data ``X``, ``y``: for the argument ``baselines`` of the reports.

    The cheapest constant answer; logistic regression, gradient boosting and a linear support vector machine with
    scikit-learn's defaults on the features that the model's own first steps make; and, where mistakes do not all cost
    the same, the first two with the answer that is cheapest under their probabilities. For grades whose loss is the
    distance, mord's ordinal logistic regression too; None where mord is not installed, which the report says.

    They are fitted to at most 20,000 rows, drawn at random; gradient boosting to as many as hold 2e7 numbers times
    classes, and in fewer than 100 rounds where features times classes are more than 1,500. Their names say so.

    Parameters
    ----------
    model : fitted NashClassifier, NashOrdinalClassifier or NashAbstainer, or a pipeline that ends in one
    X, y : the training data, as given to the model
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    stakes = Stakes(split(model)[1])
    fitting = _Fitting(model, X, np.asarray(y), random_state)
    logistic = fitting.fitted(LogisticRegression(max_iter=500), "logistic regression")
    boosted = fitting.boosted(len(stakes.classes))
    peers: dict[str, Any] = {}
    if not stakes.zero_one:
        peers = {
            f"{name}, cheapest answer": Cheapest(fitting.estimator, peer) for name, peer in (logistic | boosted).items()
        }
    if stakes.aligned:
        peers |= logistic if peers else logistic | boosted
        peers |= fitting.fitted(LinearSVC(random_state=random_state), "linear SVM")
    ranks = np.arange(len(stakes.classes))
    if stakes.aligned and len(ranks) > 2 and np.array_equal(stakes.costs, np.abs(ranks[:, None] - ranks)):
        peers |= fitting.graded()
    return peers | {"always the same answer": Constant(fitting.estimator, y)}


class _Fitting:
    """Training data as peers see them: after the first steps of a model, and not too many rows."""

    def __init__(self, model: Any, X: Any, y: np.ndarray, random_state: int):
        self.before, self.estimator = split(model)
        self.X, self.y, self.random_state = X, y, random_state
        self.order = np.random.default_rng(random_state).permutation(y.shape[0])

    @cached_property
    def whole(self) -> tuple[Any, np.ndarray]:
        """Features and labels of as many rows as any peer sees."""
        return self._part(_ROWS)

    def _part(self, size: int) -> tuple[Any, np.ndarray]:
        from sklearn.utils import _safe_indexing

        rows = np.sort(self.order[:size])
        X = _safe_indexing(self.X, rows)
        return X if self.before is None else self.before.transform(X), self.y[rows]

    def _behind(self, peer: Any) -> Any:
        from sklearn.pipeline import make_pipeline

        return peer if self.before is None else make_pipeline(self.before, peer)

    def _named(self, name: str, size: int) -> str:
        return name if size >= self.y.shape[0] else f"{name} ({size:,} rows)"

    def fitted(self, peer: Any, name: str) -> dict[str, Any]:
        """The peer behind the model's first steps, by its name."""
        return {self._named(name, _ROWS): self._behind(_quietly(peer, *self.whole))}

    def boosted(self, n_classes: int) -> dict[str, Any]:
        """Gradient boosting, which needs all numbers of a row; left out where a few hundred rows have too many."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        n, width = self.y.shape[0], self.whole[0].shape[1]
        size = min(n, _ROWS, int(_NUMBERS // (width * n_classes)))
        rounds = min(_ROUNDS, _HISTOGRAMS // (width * n_classes))
        if size < min(_FEW, n) or rounds < 1:
            return {}
        peer = Alone(HistGradientBoostingClassifier(max_iter=rounds, random_state=self.random_state))
        name = "gradient boosting" if rounds == _ROUNDS else f"gradient boosting ({rounds} rounds)"
        return {self._named(name, size): self._behind(_quietly(peer, *self._part(size)))}

    def graded(self) -> dict[str, Any]:
        """mord's all-threshold logistic regression, or None in its place."""
        name = "ordinal logistic regression (mord)"
        try:
            from mord import LogisticAT
        except ImportError:
            return {name: None}
        places = np.searchsorted(np.asarray(self.estimator.classes_), self.whole[1])
        peer = _quietly(Alone(LogisticAT()), self.whole[0], places)
        return {self._named(name, _ROWS): Graded(self.estimator, self._behind(peer))}


def _quietly(peer: Any, X: Any, y: Any) -> Any:
    """The peer, fitted: it may stop early, and is judged by its answers all the same."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return peer.fit(X, y)


def _dense(features: Any) -> Any:
    return features.toarray() if hasattr(features, "toarray") else features
