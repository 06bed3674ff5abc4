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
        game = estimator._game
        if game.n_options != game.n_labels:
            return "equilibrium"
        if self.decision == "auto":
            return "scores" if game.answers_by_scores else "equilibrium"
        return self.decision

    @lazily
    def predict_proba(self, X: Any) -> np.ndarray:
        """The predictor's equilibrium strategy ``p`` (n, options): minimax optimal and sparse, not calibrated.

        As :meth:`strategy`, in the precision of ``X``.

        Its entries are the probabilities with which to answer so that no adversary gains, see
        :meth:`worst_case_risk`; they do not estimate the probabilities of the labels. Of ordered labels it takes one or
        two neighbours.
        """
        estimator: Any = self
        scores = estimator._scores(X)
        return estimator._game.solve(scores).p

    @lazily
    def predict(self, X: Any) -> np.ndarray:
        """Labels by the rule ``decision_``, or indices of options where the cost matrix is not square."""
        estimator, options = cast(Any, self), self._answers(X)
        square = estimator._game.n_options == estimator._game.n_labels
        return estimator.classes_[options] if square else options

    def _answers(self, X: Any) -> np.ndarray:
        """The option chosen for each row."""
        estimator: Any = self
        scores = estimator._scores(X)
        return (scores if self.decision_ == "scores" else estimator._game.solve(scores).p).argmax(axis=1)
