"""How a strategy becomes one answer: by the largest score, or by the largest entry of ``p``."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

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

    def _answers(self, X: Any) -> np.ndarray:
        """The option chosen for each row."""
        estimator: Any = self
        scores = estimator._scores(X)
        return (scores if self.decision_ == "scores" else estimator._game.solve(scores).p).argmax(axis=1)
