"""How a strategy becomes one answer: by the largest score, or by the largest entry of ``p``."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

__all__ = ["DECISIONS", "DecidingNash"]

DECISIONS = ("auto", "scores", "equilibrium")


class DecidingNash:
    """Estimators of one label per row that take the parameter ``decision``.

    Scores minimise the surrogate risk of a label distribution ``pi`` where ``pi`` is the adversary's strategy at them,
    and then ``p`` is a best reply to ``pi``: its entries are positive for Bayes options alone, whatever the costs.
    Nothing of the kind holds for the scores of any cost matrix, so ``"auto"`` asks the game.
    """

    decision: str
    _game: Any

    @property
    def decision_(self) -> str:
        """The rule by which ``predict`` answers: ``"scores"`` or ``"equilibrium"``."""
        check_is_fitted(self)
        if self._game.n_options != self._game.n_labels:
            return "equilibrium"
        if self.decision == "auto":
            return "scores" if self._game.answers_by_scores else "equilibrium"
        return self.decision

    def _answers(self, X: Any) -> np.ndarray:
        """The option chosen for each row."""
        estimator: Any = self
        scores = estimator._scores(X)
        return (scores if self.decision_ == "scores" else self._game.solve(scores).p).argmax(axis=1)
