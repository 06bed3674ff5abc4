"""What the tables of networks share: methods that are trained and asked alike, and their choice of settings.

*nash* is ours; *crf* the random field on the same engine, a game in which nothing costs anything, with the most
probable labeling (*viterbi*) or the labels of least expected loss under its marginals (*bayes*); *ssvm* the structured
SVM, or its LP bound where there are cycles.

All minimise ``alpha/2 |w|^2 + mean loss`` with the loss, and ours its smoothing, in costs, as the papers do and as the
keys of stored results say. Estimators divide their loss by ``s (1 + m)``, ``s`` the largest cost and ``m`` the
smoothing relative to it; they are given what makes the two objectives the same up to that factor.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nashlearn.games.catalogue import named_costs
from reproduce.references import margin_rescaling

__all__ = ["METHODS", "Decoder", "bayes", "flat", "in_costs", "trained", "viterbi"]

Decoder = Callable[[Any, Any], list[np.ndarray]]


def in_costs(alpha: float, smoothing: float, largest: float = 1.0) -> dict[str, float]:
    """Parameters of a structured estimator for these of a loss in costs, the largest of which is given."""
    relative = smoothing / largest
    return {"alpha": alpha * largest * (1.0 + relative), "smoothing": relative}


def _largest(loss: Any, y: Any) -> float:
    """The largest cost of a loss between the labels of ``y``."""
    if not isinstance(loss, str):
        return float(np.max(loss))
    return 1.0 if loss == "zero_one" else float(named_costs(loss, np.unique(flat(y)).size).max())


def _nash(model: Any, X: Any, y: Any, **given: Any) -> Any:
    return model.set_params(**in_costs(model.alpha, model.smoothing, _largest(model.loss, y))).fit(X, y, **given)


def _crf(model: Any, X: Any, y: Any, **given: Any) -> Any:
    given["node_weight"] = [np.zeros(len(labels)) for labels in y]
    return model.set_params(loss="zero_one", **in_costs(model.alpha, 1.0)).fit(X, y, **given)


METHODS: dict[str, Callable[..., Any]] = {"nash": _nash, "crf": _crf, "ssvm": margin_rescaling.fit}


def trained(method: str, model: Any, X: Any, y: Any, **given: Any) -> tuple[Any, float]:
    """A model trained by a method, and the CPU seconds that it took."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # gaps are stored
        model = METHODS[method](model, X, y, **given)
    return model, time.process_time() - start


def viterbi(model: Any, X: Any) -> list[np.ndarray]:
    """The labeling of the largest score."""
    return model.predict(X)


def bayes(costs: np.ndarray) -> Decoder:
    """The labels of least expected cost under the random field of the model's scores, at its smoothing."""

    def decode(model: Any, X: Any) -> list[np.ndarray]:
        model.set_params(loss=np.zeros(costs.shape))  # marginals without a game
        return [model.classes_[(q @ costs.T).argmin(axis=1)] for q in model.marginals(X)]

    return decode


def flat(parts: Sequence[Any]) -> np.ndarray:
    """Labels of all examples one after another."""
    return np.concatenate([np.asarray(part) for part in parts])
