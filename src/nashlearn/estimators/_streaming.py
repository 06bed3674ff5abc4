"""Training on batches that come one after another."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_sample_weight

from nashlearn.estimators._labels import known_positions
from nashlearn.training import Problem, Trained
from nashlearn.training.methods.stream import Stream, opened, stepped

__all__ = ["StreamingNash", "refuse_box"]


_OF_STREAMS = 1e-3  # alpha="auto": nobody knows how many rows a stream will have


def _linear(estimator: Any) -> bool:
    if not estimator._is_linear:
        raise AttributeError(f"partial_fit is linear and needs kernel=None; got {estimator.kernel!r}.")
    if estimator.penalty != "l2":
        raise AttributeError(
            f"partial_fit needs penalty='l2'; got {estimator.penalty!r}: its averages of weights are not sparse."
        )
    return True


def refuse_box(estimator: Any, where: str) -> None:
    """Refuse the penalty of absolute values where nothing trains with it."""
    if estimator.penalty != "l2":
        raise ValueError(f"penalty must be 'l2' {where}; got {estimator.penalty!r}.")


class StreamingNash:
    """``partial_fit`` of the linear estimators."""

    classes_: np.ndarray
    alpha: Any
    class_weight: Any

    @available_if(_linear)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Train on a batch of rows, in their order, and forget them; see :mod:`nashlearn.training.methods.stream`.

        The weights approach the optimum of the objective over all rows of the stream. How near they are is not known:
        ``objective_``, ``dual_gap_`` and the bounds on the risk are NaN. Cost: the batch once.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
        y : array-like of shape (n,)
        classes : array-like of shape (k,)
            All labels that may come. Needed in the first call. After ``fit``, where they are the same or not given,
            training goes on from its weights.
        sample_weight : array-like of shape (n,), optional
            Not negative: weights against 1, the weight of a row of the stream.

        Returns
        -------
        self
        """
        estimator: Any = self
        estimator._check_parameters()
        stream: Stream | None = self.__dict__.get("_stream")
        known = self._known_classes(classes, stream is None)
        fitted = hasattr(self, "coef_") and np.array_equal(known, self.classes_)
        X, y = estimator._read(X, y, reset=not fitted)
        codes = known_positions(known, y, "is not among the classes")
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        setting = estimator._game_and_scores(known, X.shape[1])
        estimator.alpha_ = _OF_STREAMS if isinstance(self.alpha, str) else float(self.alpha)
        alpha, omega = estimator.alpha_ / setting.unit, weight * self._class_factors(known)[codes]
        problem = Problem(X, codes, omega, alpha, setting.game, setting.design)
        if stream is None:
            stream = opened(problem, setting.unit * estimator._stored() if fitted else None, setting.mu)
        stream = stepped(stream, problem, setting.mu)
        norm = float(np.linalg.norm(stream.average))
        estimator._kernel = None
        trained = Trained(stream.average, np.empty((0, 0)), alpha, norm, np.nan, np.nan, stream.steps)
        estimator._conclude(trained.divided(setting.unit), known, np.nan)
        self._stream = stream
        return self

    def _known_classes(self, classes: Any, first: bool) -> np.ndarray:
        if classes is None:
            if not hasattr(self, "classes_"):
                raise ValueError("classes must be passed on the first call to partial_fit: all labels that may come.")
            return self.classes_
        known = np.unique(classes)
        if known.size < 2:
            raise ValueError(f"classes must hold at least two distinct labels; got {classes!r}.")
        known = cast(Any, self)._arranged(known, classes)
        if not first and not np.array_equal(known, self.classes_):
            raise ValueError(f"classes must be those of the first call, {self.classes_}; got {classes!r}.")
        return known

    def _class_factors(self, known: np.ndarray) -> np.ndarray:
        if isinstance(self.class_weight, str):
            raise ValueError(
                f"class_weight must be None or a dict for partial_fit, which cannot count labels to come; "
                f"got {self.class_weight!r}."
            )
        return compute_class_weight(self.class_weight, classes=known, y=known)
