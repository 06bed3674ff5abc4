"""Ordinal classification by one direction and thresholds."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nashlearn import games
from nashlearn.dask.answers import lazily
from nashlearn.estimators._base import FLOATS, BaseNash, Setting
from nashlearn.estimators._deciding import DecidingNash
from nashlearn.estimators._foreign import GRADES as OF_GRADES
from nashlearn.estimators._labels import warn_of_words
from nashlearn.estimators._parameters import parameters
from nashlearn.estimators._sparse_coef import dense_coef
from nashlearn.estimators._tempering import GRADES
from nashlearn.games.rows.thresholds import ThresholdGame
from nashlearn.training.designs.rows import Cumulative, Shared
from nashlearn.training.designs.span import SpanCumulative, SpanShared

__all__ = ["NashOrdinalClassifier"]


@parameters
class NashOrdinalClassifier(DecidingNash, BaseNash):
    """Ordered labels from one direction ``w`` and ``k - 1`` thresholds, trained on the mean absolute error.

    The loss is the game of the absolute loss with scores ``f_j = sum_{l < j} (w x - eta_l)``, in which the adversary
    is paid for the entropy of its labels, see :class:`NashClassifier`; the unit is one grade. Without smoothing it is
    AL^ord-th ([fathony2019]_, eq. 2.34). Fewer weights than :class:`NashClassifier` with ``loss="absolute"``
    (AL^ord-mc), which fits better where data are few or the classes lie along one direction. Thresholds are weights
    of a constant feature, and regularised, as intercepts are.

    All inputs share the thresholds, so the loss is consistent only for label distributions that one direction and
    common thresholds can tell apart; :class:`NashClassifier` with ``loss="absolute"`` is consistent without that.

    Parameters
    ----------
    loss : {"absolute"}, default="absolute"
        The loss between ranks. Others are for :class:`NashClassifier`: only this one separates by thresholds.
    order : sequence of labels, optional
        The grades from low to high; each label of ``y`` must be among them, not each of them need occur. By default the
        order of pandas' ordered categories, where ``y`` has these, or else that of the sorted labels. Where those
        are words, a warning says which order was taken.
    smoothing : "auto" or float, default="auto"
        As for :class:`NashClassifier`, relative to one grade. ``"auto"`` is 3 for linear models, 0 with a kernel.
    intercept_scaling : "auto" or float, default="auto"
        The constant feature that thresholds are the weights of: 10 for linear models, 1 with a kernel.
    alpha, penalty, kernel, gamma, degree, coef0, class_weight, tol, cache_size, max_iter, warm_start
        As for :class:`NashClassifier`.
    random_state, verbose, max_time, checkpoint, callback
        As for :class:`NashClassifier`.
    decision : {"auto", "scores", "equilibrium"}, default="auto"
        Answer with the largest score, or with the largest entry of ``p``, which is a median of the probabilities ``q``
        of the labels where there is smoothing. ``"auto"`` takes the largest ``p`` unless there are only two grades,
        where both are the same; ``decision_`` says which.

    Attributes
    ----------
    classes_ : ndarray (k,)
        The grades in their order.
    coef_ : ndarray (1, d)
        The direction.
    thresholds_ : ndarray (k - 1,)
        Where the score of one grade exceeds that of the one before; ``intercept_`` is their negative. Without smoothing
        they are sorted. ``theta_``, as mord calls them, is the same.
    smoothing_, decision_, objective_, dual_gap_, n_iter_, history_
        As for :class:`NashClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from nashlearn import NashOrdinalClassifier
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> y = np.digitize(X[:, 0], [0.3, 0.6])
    >>> NashOrdinalClassifier(alpha=1e-5).fit(X, y).predict([[0.1], [0.5], [0.9]])
    array([0, 1, 2])
    """

    loss: str = "absolute"
    _: KW_ONLY
    order: Any = None
    _auto = GRADES
    _others_say = OF_GRADES

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # labels without an order do not lie along one direction
        return tags

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not (isinstance(self.loss, str) and self.loss == "absolute"):
            raise ValueError(
                f"loss must be 'absolute'; got {self.loss!r}. Other losses between grades: NashClassifier(loss)."
            )

    def _arranged(self, labels: np.ndarray, y: Any) -> np.ndarray:
        """The grades in their order: that of the parameter, of ordered categories, or of the sorted labels."""
        given, kind = self.order, getattr(y, "dtype", None)
        if given is None and getattr(kind, "ordered", False):
            given = cast(Any, kind).categories
        if given is None:
            warn_of_words(labels, "pass order=[...], or ordered categories of pandas", level=3)
            return labels
        try:
            grades = np.asarray(list(given), dtype=object if labels.dtype == object else None)
            right = not isinstance(given, str) and grades.ndim == 1 and np.unique(grades).size == grades.size >= 2
        except TypeError:  # no sequence, or values that do not compare
            right = False
        if not right:
            raise ValueError(f"order must hold at least two grades, each once; got {given!r:.200}.")
        if unknown := [label for label in labels.tolist() if label not in grades.tolist()]:
            raise ValueError(f"order must hold every label of y; it lacks {unknown}. It is {grades.tolist()}.")
        return grades

    def _game_and_scores(self, classes: np.ndarray, d: int) -> Setting:
        k, constant = classes.size, self._constant
        self._game = games.absolute(k)
        self._temper(1.0)  # a grade, whatever their number
        game: Any
        design: Any
        span: Any
        if self.smoothing_:
            game, design, span = self._game, Cumulative(k - 1, d, constant), SpanCumulative(k, constant)
        else:
            game, design, span = ThresholdGame(k - 1), Shared(k - 1, d, constant), SpanShared(k - 1, constant)
        return Setting(game, design, span, 0.0, self._mu, self._unit)

    def _with_costs(self, setting: Setting, costs: Any, n: int, kept: np.ndarray) -> Setting:
        if not self.smoothing_:  # a factor on the loss of grades is none on that of independent thresholds
            if not self._is_linear:
                raise ValueError("costs need smoothing > 0 where NashOrdinalClassifier has a kernel; got smoothing 0.")
            m = setting.design.m
            setting = setting._replace(design=Cumulative(m, setting.design.d, setting.design.constant))
        return super()._with_costs(setting, costs, n, kept)

    def _store(self, w: np.ndarray) -> None:
        d = self.n_features_in_
        self.coef_ = w[None, :d].copy()
        self.intercept_ = self._constant * w[d:]
        self.thresholds_ = -self.intercept_

    def _stored(self) -> np.ndarray:
        """The weights that were stored."""
        return np.concatenate([dense_coef(self)[0], self.intercept_ / self._constant])

    def _store_span(self, C: np.ndarray, setting: Setting) -> None:
        self.dual_coef_ = np.ascontiguousarray(setting.span.reduce(C).T)
        self.intercept_ = setting.span.offsets(C)
        self.thresholds_ = -self.intercept_

    def _scores(self, X: Any, dtype: Any = FLOATS) -> np.ndarray:
        """Scores (n, k): prefix sums of ``w x - eta_l``, 0 for the lowest grade."""
        above = self._functions(X, dtype) + self.intercept_
        scores = np.zeros((above.shape[0], self.classes_.size))
        np.cumsum(above, axis=1, out=scores[:, 1:])
        return scores

    @property
    def theta_(self) -> np.ndarray:
        """``thresholds_`` under the name that mord gives them."""
        check_is_fitted(self)
        return self.thresholds_

    @lazily
    def decision_function(self, X: Any) -> np.ndarray:
        """Scores (n, k), or (n,) of the higher grade over the lower where there are two."""
        scores = self._scores(X)
        return scores[:, 1] if scores.shape[1] == 2 else scores
