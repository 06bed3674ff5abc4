"""What estimators of games with one array of scores share: smoothing that falls to what is asked for, and answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nashlearn.estimators._parameters import number
from nashlearn.estimators._structured import StructuredNash
from nashlearn.games.batch import Batch
from nashlearn.training.driver import Method
from nashlearn.training.methods.descent import Descent
from nashlearn.training.played import warn_unsettled

__all__ = ["EntryNash"]


class EntryNash(StructuredNash):
    """A game for each example, played on scores that lie one after another. Subclasses say how ``X`` is scored."""

    _schedule: Sequence[float]  # of smoothing, for training at a smaller one
    _accurate: float  # gap to which games are solved: far below any gap of training that is worth asking for

    _scale: float = 1.0  # what a variable can lose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not 0 <= number(self.smoothing, "smoothing") < np.inf:
            raise ValueError(f"smoothing must be a finite number, not negative; got {self.smoothing!r}.")

    def _method(self, problem: Any, facts: Any) -> Method:
        target = self._units(facts).smoothing
        return Descent([smoothing for smoothing in self._schedule if smoothing > target] + [target], target)

    def _scored(self, X: Any) -> tuple[Batch, np.ndarray]:
        """The games of examples like those of training, and their scores, or an error that says what differs."""
        raise NotImplementedError

    def _variables(self, game: Any) -> float:
        """Number of predicted variables of an example with this game: what its loss can come to."""
        raise NotImplementedError

    def _strategies(self, games: Batch, scores: np.ndarray) -> list[np.ndarray]:
        """The predictor's strategy of each example, or a warning where it is not settled."""
        tol, smoothing = self._accurate * self._scale, self._smoothing_in_costs
        found = games.solve(self._unit * scores, smoothing=smoothing, tol=tol, n_jobs=self.n_jobs)
        warn_unsettled(found.gap, np.array([self._variables(game) for game in games.games]))
        return games.split_options(found.p)
