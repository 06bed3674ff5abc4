"""What all estimators of structured outputs share: parameters, training, the certificate, the risk bound."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from nashlearn.estimators._base import number
from nashlearn.training.smooth import StructuredProblem, anneal

__all__ = ["StructuredNash", "example_weights"]


def example_weights(sample_weight: Any, n: int) -> np.ndarray:
    """Weights of ``n`` examples, checked: finite, not negative, not all zero; 1 each by default."""
    if sample_weight is None:
        return np.ones(n)
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"sample_weight must be one number for each of the {n} examples; it is not numbers.") from None
    if weight.shape != (n,):
        raise ValueError(f"sample_weight must hold one number for each of the {n} examples; got shape {weight.shape}.")
    if not (np.isfinite(weight).all() and (weight >= 0).all()):
        raise ValueError("sample_weight must be finite and not negative.")
    if not weight.any():
        raise ValueError("sample_weight must be positive for at least one example; all are 0.")
    return weight


class StructuredNash(BaseEstimator):
    """A game played on linear scores of the parts of an output.

    Subclasses build the training problem (``_problem``), read the weights (``_store``), and answer
    (``predict``, ``_mistakes``).
    """

    alpha: float
    tol: float
    max_iter: int
    warm_start: bool
    verbose: int
    _weights: np.ndarray

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Train to a relative duality gap of ``tol``.

        Parameters
        ----------
        X : list of examples
        y : list of their outputs
        sample_weight : array-like of shape (n_examples,), optional
            Not negative. The loss is the weighted mean: a weight counts as repetitions.

        Returns
        -------
        self

        Warns
        -----
        ConvergenceWarning
            Where ``dual_gap_`` exceeds ``tol``.
        """
        self._check_parameters()
        problem = self._problem(X, y, sample_weight)
        start = self._weights if self.warm_start and hasattr(self, "_weights") else None
        if start is not None and start.shape != (problem.n_weights,):
            start = None
        target, schedule = self._smoothing()
        trained = anneal(
            problem,
            float(self.alpha),
            schedule=schedule,
            target=target,
            tol=self.tol,
            max_iter=self.max_iter,
            start=start,
            verbose=self.verbose,
        )
        self._weights = trained.w
        self._loss_of_training = trained.loss
        self.objective_, self.dual_gap_, self.n_iter_ = trained.objective, trained.dual_gap, trained.n_iter
        self._store(trained.w)
        return self

    def _problem(self, X: Any, y: Any, sample_weight: Any) -> StructuredProblem:
        """The training problem, after every check of the data."""
        raise NotImplementedError

    def _smoothing(self) -> tuple[float, Iterable[float]]:
        """The smoothing that the certificate is for, and those that lead to it."""
        raise NotImplementedError

    def _store(self, w: np.ndarray) -> None:
        """Keep the weights under public names."""
        raise NotImplementedError

    def predict(self, X: Any) -> list[np.ndarray]:
        """The most probable output of each example."""
        raise NotImplementedError

    def _mistakes(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Loss of each example's prediction, and its number of predicted variables."""
        raise NotImplementedError

    def _check_parameters(self) -> None:
        for name in ("alpha", "tol"):
            value = number(getattr(self, name), name)
            if not 0 < value < np.inf:
                raise ValueError(f"{name} must be a positive, finite number; got {value!r}.")
        if not number(self.max_iter, "max_iter").is_integer() or self.max_iter < 1:
            raise ValueError(f"max_iter must be a positive integer; got {self.max_iter!r}.")

    def task_loss(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Mean loss per predicted variable of the predictions on labelled data."""
        losses, sizes = self._mistakes(X, y)
        weight = example_weights(sample_weight, losses.size)
        return float(weight @ losses / max(weight @ sizes, np.finfo(float).tiny))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """1 minus :meth:`task_loss`: the share of variables that are right, for a loss that counts mistakes."""
        return 1.0 - self.task_loss(X, y, sample_weight)

    def worst_case_risk(self, radius: float = 0.0) -> float:
        """Bound on the expected loss per variable of the randomised prediction ``p`` over a set of distributions.

        For every distribution of outputs, given the training inputs, whose moments lie within ``radius``
        (Euclidean) of those of the training data, ``E loss(p, y) <= mean surrogate loss + radius |w|``.

        Parameters
        ----------
        radius : float
            Not negative; 0 for distributions with the moments of the training data.
        """
        check_is_fitted(self)
        if not 0 <= number(radius, "radius") < np.inf:
            raise ValueError(f"radius must be a finite number, not negative; got {radius!r}.")
        return self._loss_of_training + float(radius) * float(np.linalg.norm(self._weights))
