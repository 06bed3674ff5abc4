"""Classification with the right to abstain at a price."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nashlearn import games
from nashlearn.dask.answers import lazily
from nashlearn.estimators._parameters import parameters
from nashlearn.estimators._per_class import PerClassNash

__all__ = ["NashAbstainer"]

_LEAST = 1e-100  # prices below are lost in products


@parameters
class NashAbstainer(PerClassNash):
    """Linear or kernel classifier that may answer "I do not know" for a price known in training.

    A wrong label costs 1, none ``abstain_cost`` ([fathony2019]_, sec. 2.4.3), and the loss is that of
    :class:`NashClassifier` for these costs, so the weights are trained for the answers that will be given.
    ``predict`` never abstains, which keeps every scikit-learn tool at work; ``predict_or_abstain`` may.

    Parameters
    ----------
    abstain_cost : float or array-like of shape (k,), default=0.5
        Price of abstaining, the same for all labels or one for each, in the order of ``classes_``; not negative.
        A price of 1 or more is never worth paying for the loss of a wrong label, 1.
    abstain_label : default=-1
        What ``predict_or_abstain`` answers where it abstains. Must not be a class.
    alpha, smoothing, kernel, gamma, degree, coef0, fit_intercept, intercept_scaling, class_weight, tol, cache_size
        As for :class:`NashClassifier`.
    max_iter, warm_start, random_state, verbose, max_time, checkpoint, callback
        As for :class:`NashClassifier`.

    Attributes
    ----------
    classes_, smoothing_, coef_, intercept_, objective_, dual_gap_, n_iter_, history_
        As for :class:`NashClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nashlearn import NashAbstainer
    >>> X, y = load_iris(return_X_y=True)
    >>> model = NashAbstainer(0.2, alpha=1e-2).fit(X, y)
    >>> bool((model.predict_or_abstain(X) == -1).any())
    True
    """

    abstain_cost: Any = 0.5
    _: KW_ONLY
    abstain_label: Any = -1

    def _make_game(self, classes: np.ndarray) -> Any:
        try:
            game = games.abstain(classes.size, self.abstain_cost)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"abstain_cost is refused: {error}") from None
        prices = game.costs[-1]
        if ((prices > 0) & (prices < _LEAST)).any():
            raise ValueError(f"abstain_cost must be 0 or at least {_LEAST}; got {self.abstain_cost!r}.")
        return game

    def _most_probable(self, scores: np.ndarray, found: Any, costs: Any) -> np.ndarray:
        mixed = found.p[:, :-1].any(axis=1)
        return np.where(mixed, found.p[:, :-1].argmax(axis=1), found.q.argmax(axis=1))

    @lazily
    def predict(self, X: Any, *, costs: Any = None) -> np.ndarray:
        """The most probable labels, without abstaining; at smoothing 0 those of the largest scores."""
        scores = self._scores(X)
        if not self.smoothing_:
            return self.classes_[scores.argmax(axis=1)]
        return self.classes_[self._most_probable(scores, self._play(scores, costs), costs)]

    def _answers(self, X: Any, costs: Any = None) -> np.ndarray:
        return self._play(self._scores(X), costs).p.argmax(axis=1)

    @lazily
    def predict_or_abstain(self, X: Any, *, costs: Any = None) -> np.ndarray:
        """Labels, and ``abstain_label`` where abstaining is the largest entry of ``p`` ([fathony2019]_, Cor. 2.4).

        With ``costs`` (n,) mistakes and abstaining cost so many times more in each row, and ``p`` is for these costs.
        These are the answers that :meth:`task_loss` and :meth:`score`, its negative, are of.
        """
        options = self._answers(X, costs)
        if np.isin(self.abstain_label, self.classes_):
            raise ValueError(f"abstain_label must not be a class; got {self.abstain_label!r}, classes {self.classes_}.")
        answer = np.array([self.abstain_label])
        joint = np.result_type(self.classes_, answer) if self.classes_.dtype.kind == answer.dtype.kind else object
        return np.concatenate([self.classes_.astype(joint), answer.astype(joint)])[options]

    @lazily
    def abstain_proba(self, X: Any, *, costs: Any = None) -> np.ndarray:
        """Probability (n,) with which the equilibrium strategy ``p`` abstains."""
        return self._play(self._scores(X), costs).p[:, -1]

    @lazily
    def predict_proba(self, X: Any, *, costs: Any = None) -> np.ndarray:
        """Probabilities (n, k) of the labels, ``q``, where ``smoothing_`` is positive.

        At smoothing 0 nothing estimates them, and what is returned is ``p`` without abstention, renormalised; the
        label of the largest score where ``p`` surely abstains.
        """
        check_is_fitted(self)
        if self.smoothing_:
            return self._probabilities(X, costs)
        scores = self._scores(X)
        rest = self._play(scores, costs).p[:, :-1]
        mass = rest.sum(axis=1, keepdims=True)
        surely = mass[:, 0] <= np.sqrt(np.finfo(rest.dtype).eps)
        rest[surely] = self._game.labels.vertex(scores[surely].argmax(axis=1))
        mass[surely] = 1.0
        return rest / mass
