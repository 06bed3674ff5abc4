"""Classification with the right to abstain at a price."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from nashlearn import games
from nashlearn.certificates import Certified, Losses, checked_confidence, error_p_value, passed_in_turn
from nashlearn.dask.answers import lazily
from nashlearn.dask.collections import is_collection
from nashlearn.estimators._labels import known_positions
from nashlearn.estimators._parameters import number, parameters
from nashlearn.estimators._per_class import PerClassNash

__all__ = ["NashAbstainer"]

_LEAST = 1e-100  # prices below are lost in products
# Of calibrate, known before any data are.
_PRICES = (0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.75, 1.0)


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
    alpha, penalty, smoothing, kernel, gamma, degree, coef0, fit_intercept, intercept_scaling, class_weight, tol
        As for :class:`NashClassifier`.
    cache_size, max_iter, warm_start, random_state, verbose, max_time, checkpoint, callback
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
        guess = 1.0 - 1.0 / classes.size  # what the best guess costs at most, however likely the labels are
        if prices.min() > guess:
            warnings.warn(
                f"abstain_cost={self.abstain_cost!r} is never worth paying: a wrong label costs 1, so that a guess "
                f"among {classes.size} classes costs {guess:.2g} at most. predict_or_abstain will not abstain.",
                UserWarning,
                stacklevel=4,
            )
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

    _certifies: ClassVar = {
        "predict_or_abstain": "_losses_of_answers",
        "strategy": "_losses_of_strategy",
        "predict": "_errors",
        "answered": "_errors_where_answered",
        "abstentions": "_abstentions",
    }

    def certify(
        self,
        X: Any,
        y: Any,
        confidence: float = 0.95,
        *,
        of: str | None = None,
        costs: Any = None,
        bounds: Any = None,
    ) -> Certified:
        """As :meth:`NashClassifier.certify`, of one of five means.

        Parameters
        ----------
        X, y, confidence, costs
            As there.
        of : str, default="predict_or_abstain"
            ``"predict_or_abstain"``: the mean cost of these answers, as :meth:`task_loss` has it. ``"strategy"``: that
            of answers drawn from :meth:`strategy`. ``"predict"``: the share of wrong labels where it never abstains.
            ``"answered"``: the share of wrong labels among the rows that :meth:`predict_or_abstain` answers, the ``n``
            of what is returned. ``"abstentions"``: the share of rows where it abstains.
        bounds : (low, high), optional
            As there: needed with ``costs`` for the first two, which are means of costs. The others are shares of the
            answers that are given for these costs, and lie between 0 and 1.
        """
        return super().certify(X, y, confidence, of=of, costs=costs, bounds=bounds)

    def _wrong(self, X: Any, y: Any, costs: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Whether the answer to each row is not its label, and whether there is one."""
        options, codes = self._answers(X, costs), known_positions(self.classes_, y, "was not seen in fit; known")
        check_consistent_length(options, codes)
        return options != codes, options < self.classes_.size

    def _errors(self, X: Any, y: Any, costs: Any = None, bounds: Any = None) -> Losses:
        known_positions(self.classes_, y, "was not seen in fit; known")
        check_consistent_length(answers := self.predict(X, costs=costs), y)
        return Losses((answers != np.asarray(y)).astype(float), 0.0, 1.0, binary=True)

    def _errors_where_answered(self, X: Any, y: Any, costs: Any = None, bounds: Any = None) -> Losses:
        wrong, answered = self._wrong(X, y, costs)
        return Losses(wrong[answered].astype(float), 0.0, 1.0, binary=True)

    def _abstentions(self, X: Any, y: Any, costs: Any = None, bounds: Any = None) -> Losses:
        return Losses((~self._wrong(X, y, costs)[1]).astype(float), 0.0, 1.0, binary=True)

    def calibrate(
        self, X: Any, y: Any, max_loss: float, confidence: float = 0.95, *, prices: Sequence[float] = _PRICES
    ) -> Any:
        """The same model at the largest price for which few of its answers are provably wrong, from data held out.

        With probability ``confidence`` over the draw of these rows, at most the share ``max_loss`` of the rows to come
        that the returned model answers gets a wrong label: the error where it answers is what is kept, however often
        it abstains. What :meth:`certify` asks of the data is asked here: drawn like those to come, not trained on.

        Weights stay as they are. With smoothing, the price moves how far ahead a label must be to be answered, so that
        every price gives a rule, and lower prices abstain more. The rules of all ``prices`` are tested in turn, from
        the lowest on, by exact binomial tests of the rows that they answer. These tests are valid although the number
        of answered rows is random: a rule answers by ``X`` alone and rows are independent, so that, given which rows
        it answers, their errors are independent draws of the very error rate that is tested. Each test has an equal
        share of the doubt ``1 - confidence``, and inherits the level of the one before it where this was certified, the
        fallback procedure [wiens2003]_. It allows any dependence between tests, as long as their order is fixed before
        the rows are seen; so all that are certified are right at once, and the one that answers most may be taken.

        The promise is about :meth:`predict_or_abstain` without ``costs``, also where the model was trained with some.

        Parameters
        ----------
        X, y : rows and their labels
            In memory.
        max_loss : float
            Share of wrong labels among answered rows, between 0 and 1.
        confidence : float, default=0.95
        prices : sequence of float, optional
            Increasing, between 0 and 1, fixed before these rows were seen. By default 16 from 0.005 to 1.

        Returns
        -------
        NashAbstainer
            A copy with the ``abstain_cost`` that was chosen, one for all labels. Its ``worst_case_risk`` is NaN: that
            was of another price.

        Raises
        ------
        ValueError
            Where no price can be certified: too few rows, or too small a ``max_loss``. The message says how near it
            came. Only a model that always abstains would keep the promise then.
        """
        check_is_fitted(self)
        doubt = 1.0 - checked_confidence(confidence)
        if not 0 < number(max_loss, "max_loss") < 1:
            raise ValueError(f"max_loss must lie between 0 and 1, both excluded; got {max_loss!r}.")
        if is_collection(X):
            raise TypeError("calibrate takes rows in memory; compute a sample of the Dask collection first.")
        if not self.smoothing_:
            raise ValueError("calibrate needs smoothing > 0: without, prices up to 1/2 all give the same answers.")
        grid = np.asarray(prices, dtype=np.float64)
        if grid.ndim != 1 or not grid.size or not (np.diff(grid) > 0).all() or not (0 < grid[0] <= grid[-1] <= 1):
            raise ValueError(f"prices must increase, all of them above 0 and at most 1; got {prices!r:.200}.")
        rules = [self._priced_at(price) for price in grid.tolist()]
        counts = [(int((wrong & answered).sum()), int(answered.sum())) for wrong, answered in (
            rule._wrong(X, y) for rule in rules
        )]  # fmt: skip
        values = [error_p_value(errors, n, float(max_loss)) for errors, n in counts]
        certified = [rule for rule, passed in zip(rules, passed_in_turn(values, doubt), strict=True) if passed]
        if not certified:
            raise ValueError(
                f"No price can be certified to keep max_loss={max_loss!r} with confidence {confidence!r} on "
                f"{len(y)} rows: the least p-value is {min(values):.2g}. Give more rows, or ask for less."
            )
        return certified[-1]

    def _priced_at(self, price: float) -> Any:
        """A copy that answers at another price, by the same scores."""
        rule = copy.copy(self)
        rule.abstain_cost, rule._game = price, games.abstain(self.classes_.size, price)
        rule._risk_means = np.full_like(self._risk_means, np.nan)
        return rule

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
