"""How well the weights of each round of training do on data that they are not trained on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nashlearn.training.progress import Round

__all__ = ["DevRound", "Development"]


class DevRound(NamedTuple):
    """What a round of training has reached on development data.

    Attributes
    ----------
    n_iter : int
        Iterations so far.
    score : float
        What the estimator's ``score`` returns for the best weights so far.
    """

    n_iter: int
    score: float


class Development:
    """Development data, read once, and a copy of the model whose weights may be exchanged.

    Parameters
    ----------
    model : estimator of networks
        Knows labels and features, and is used by nobody else.
    X, y
        As those of ``fit``.
    """

    def __init__(self, model: Any, X: Any, y: Any):
        self._model, self._y = model, y
        self._graphs, self._networks, self._design = model._designed_for(X)
        self.rounds: list[DevRound] = []
        self._score(np.zeros_like(model._weights))  # refuses labels that are not known before any training

    def __call__(self, now: Round, w: np.ndarray) -> str:
        """Judge the weights after a round, and say how well they do."""
        self.rounds.append(DevRound(now.n_iter, self._score(w)))
        return f"dev {self.rounds[-1].score:.4f}  "

    def _score(self, w: np.ndarray) -> float:
        self._model._weights = w
        return self._model._score_of(self._graphs, self._networks, self._design, self._y)
