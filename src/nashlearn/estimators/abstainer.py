"""Classification with the right to abstain at a price."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from nashlearn import games
from nashlearn.dask.answers import lazily
from nashlearn.estimators._base import PerClassNash
from nashlearn.estimators._parameters import parameters

__all__ = ["NashAbstainer"]

_LEAST = 1e-100  # prices below are lost in products


@parameters
class NashAbstainer(PerClassNash):
    """Linear or kernel classifier that may answer "I do not know" for a price known in training.

    The loss is 1 for a wrong label and ``abstain_cost`` for none ([fathony2019]_, sec. 2.4.3), so the weights are
    trained for the answers that will be given. ``predict`` never abstains, which keeps every scikit-learn tool at
    work; ``predict_or_abstain`` may.

    Parameters
    ----------
    abstain_cost : float or array-like of shape (k,), default=0.5
        Price of abstaining, the same for all labels or one for each, in the order of ``classes_``; not negative.
        A price of 1 or more is never worth paying for the loss of a wrong label, 1.
    abstain_label : default=-1
        What ``predict_or_abstain`` answers where it abstains. Must not be a class.
    alpha, kernel, gamma, degree, coef0, fit_intercept, class_weight, tol, cache_size, max_iter
        As for :class:`NashClassifier`.
    warm_start, random_state, verbose, max_time, checkpoint, callback
        As for :class:`NashClassifier`.

    Attributes
    ----------
    classes_, coef_, intercept_, objective_, dual_gap_, n_iter_, history_
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

    def _make_game(self, k: int) -> Any:
        try:
            game = games.abstain(k, self.abstain_cost)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"abstain_cost is refused: {error}") from None
        prices = game.costs[-1]
        if ((prices > 0) & (prices < _LEAST)).any():
            raise ValueError(f"abstain_cost must be 0 or at least {_LEAST}; got {self.abstain_cost!r}.")
        return game

    @lazily
    def predict(self, X: Any) -> np.ndarray:
        """Labels of the largest scores, without abstaining."""
        best = self._scores(X).argmax(axis=1)
        return self.classes_[best]

    def _answers(self, X: Any) -> np.ndarray:
        scores = self._scores(X)
        return self._game.solve(scores).p.argmax(axis=1)

    @lazily
    def predict_or_abstain(self, X: Any) -> np.ndarray:
        """Labels, and ``abstain_label`` where abstaining is the largest entry of ``p`` ([fathony2019]_, Cor. 2.4)."""
        options = self._answers(X)
        if np.isin(self.abstain_label, self.classes_):
            raise ValueError(f"abstain_label must not be a class; got {self.abstain_label!r}, classes {self.classes_}.")
        answer = np.array([self.abstain_label])
        joint = np.result_type(self.classes_, answer) if self.classes_.dtype.kind == answer.dtype.kind else object
        return np.concatenate([self.classes_.astype(joint), answer.astype(joint)])[options]

    @lazily
    def abstain_proba(self, X: Any) -> np.ndarray:
        """Probability (n,) with which the equilibrium strategy ``p`` abstains."""
        scores = self._scores(X)
        return self._game.solve(scores).p[:, -1]

    @lazily
    def predict_proba(self, X: Any) -> np.ndarray:
        """The rest of ``p`` (n, k), renormalised; the label of the largest score where ``p`` surely abstains."""
        scores = self._scores(X)
        rest = self._game.solve(scores).p[:, :-1]
        mass = rest.sum(axis=1, keepdims=True)
        surely = mass[:, 0] <= np.sqrt(np.finfo(rest.dtype).eps)
        rest[surely] = self._game.labels.vertex(scores[surely].argmax(axis=1))
        mass[surely] = 1.0
        return rest / mass
