"""How a strategy becomes one answer: by the largest score, or by the largest entry of ``p``."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nashlearn.dask.answers import lazily
from nashlearn.estimators._parameters import parameters

__all__ = ["DECISIONS", "DecidingNash"]

DECISIONS = ("auto", "scores", "equilibrium")


@parameters
class DecidingNash:
    """Estimators of one label per row that take the parameter ``decision``.

    Scores minimise the surrogate risk of a label distribution ``pi`` where ``pi`` is the adversary's strategy at them,
    and then ``p`` is a best reply to ``pi``: its entries are positive for Bayes options alone, whatever the costs.
    Nothing of the kind holds for the scores of any cost matrix, so ``"auto"`` asks the game.
    """

    _: KW_ONLY
    decision: str = "auto"

    @property
    def decision_(self) -> str:
        """The rule by which ``predict`` answers: ``"scores"`` or ``"equilibrium"``."""
        check_is_fitted(self)
        estimator: Any = self
        if not np.array_equal(self._options, estimator.classes_):
            return "equilibrium"
        if self.decision == "auto":
            return "scores" if estimator._game.answers_by_scores else "equilibrium"
        return self.decision

    @property
    def _options(self) -> np.ndarray:
        """What the estimator may answer."""
        return cast(Any, self).classes_

    @lazily
    def predict_proba(self, X: Any, *, costs: Any = None) -> np.ndarray:
        """Probabilities (n, k) of the labels, ``q``, where ``smoothing_`` is positive; at 0 the strategy ``p``.

        ``q`` estimates the probabilities of the labels in the order of ``classes_``, whatever the costs: the loss is
        strictly proper. Without smoothing nothing does, and what is returned is ``p`` (n, options) of
        :meth:`strategy`, in the precision of ``X``: with which probability to answer so that no adversary gains. That
        is minimax optimal and sparse, and not calibrated. With ``costs``, as ``fit`` takes them, rows play their own.
        """
        check_is_fitted(self)
        estimator: Any = self
        return (
            estimator._probabilities(X, costs)
            if estimator.smoothing_
            else estimator._play(estimator._scores(X), costs).p
        )

    def _most_probable(self, scores: np.ndarray, found: Any, costs: Any) -> np.ndarray | None:
        estimator: Any = self
        if costs is not None or not estimator._game.answers_by_scores:
            return None
        return (scores if self.decision_ == "scores" else found.p).argmax(axis=1)

    @lazily
    def predict(self, X: Any, *, costs: Any = None) -> np.ndarray:
        """Labels by the rule ``decision_``; where the options of the loss are no labels, their names or indices.

        With ``costs``, as ``fit`` takes them, the answers are for these rows' own costs: the largest ``p``, unless
        ``decision="scores"`` was asked for. Without, they are for the estimator's own loss, whatever it was trained on.
        """
        options = self._answers(X, costs)
        return self._options[options]

    def _answers(self, X: Any, costs: Any = None) -> np.ndarray:
        """The option chosen for each row."""
        estimator: Any = self
        scores = estimator._scores(X)
        by_scores = self.decision_ == "scores" and (costs is None or self.decision == "scores")
        return (scores if by_scores else estimator._play(scores, costs).p).argmax(axis=1)
