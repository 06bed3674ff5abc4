"""What all estimators of structured outputs share: parameters, training, the certificate, the risk bound."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from nashlearn.dask.answers import mistakes
from nashlearn.dask.bags import bag_problem
from nashlearn.dask.collections import is_collection
from nashlearn.estimators._parameters import check_parameters, number, opened_checkpoint
from nashlearn.training.methods.descent import Programme, StructuredProblem, anneal
from nashlearn.training.played import SETTLED
from nashlearn.training.progress import Round, scaling_advice

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


def _matrices(X: Any) -> Iterator[Any]:
    """The features of examples that hold them as arrays, or as tuples that begin with one."""
    for example in X:
        features = example[0] if isinstance(example, tuple) else example
        if isinstance(features, np.ndarray) or sparse.issparse(features):
            yield features


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
    n_jobs: int | None
    max_time: float | None
    checkpoint: Any
    callback: Callable[[Round], object] | None
    _weights: np.ndarray

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Train to a relative duality gap of ``tol``.

        Parameters
        ----------
        X : list of examples, or Dask bag of them
        y : list of their outputs, or Dask bag with the partitions of ``X``
        sample_weight : array-like of shape (n_examples,), or Dask bag, optional
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
        problem: StructuredProblem
        data: tuple[Any, ...]
        programme: Programme | None = None
        before = vars(self).copy()
        try:
            if is_collection(X):
                problem = bag_problem(self, X, y, sample_weight)
                data, features = (X.name, getattr(y, "name", None), getattr(sample_weight, "name", None)), ()
            else:
                problem, data, features = self._problem(X, y, sample_weight), (X, y, sample_weight), X
                programme = self._programme(problem)
            checkpoint = opened_checkpoint(self, *data, self._also())
        except Exception:  # data that are refused leave an earlier fit as it was
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
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
            max_time=self.max_time,
            callback=self.callback,
            checkpoint=checkpoint,
            programme=programme,
            advice=lambda: scaling_advice(_matrices(features)),
        )
        self._weights = trained.w
        self._loss_of_training = trained.loss
        self.objective_, self.dual_gap_, self.n_iter_ = trained.objective, trained.dual_gap, trained.n_iter
        self.history_ = trained.rounds
        self._store(trained.w)
        return self

    def _problem(self, X: Any, y: Any, sample_weight: Any) -> StructuredProblem:
        """The training problem, after every check of the data."""
        raise NotImplementedError

    def _survey(self, X: Any, y: Any, sample_weight: np.ndarray) -> tuple[np.ndarray, Any]:
        """Sizes of the examples of a partition, and what all partitions must agree on or add up."""
        raise NotImplementedError

    def _merged(self, one: Any, other: Any) -> Any:
        """What two partitions agree on, or an error."""
        raise NotImplementedError

    def _adopt(self, facts: Any) -> None:
        """Take what all partitions agree on for the data's own."""
        raise NotImplementedError

    @property
    def _incomplete(self) -> bool:
        """Whether the problem depends on sums over all partitions that can be taken only once that was adopted."""
        return False

    def _sums(self, X: Any, y: Any, sample_weight: np.ndarray, total: float) -> Any:
        """Those of a partition, with a method ``merged``; ``total`` is the weighted number of all variables."""
        raise NotImplementedError

    def _adopt_sums(self, sums: Any) -> None:
        """Take the sums over all partitions."""
        raise NotImplementedError

    def _part(self, X: Any, y: Any, sample_weight: np.ndarray) -> StructuredProblem:
        """The training problem of a partition, once all that was adopted."""
        raise NotImplementedError

    def _also(self) -> Any:
        """What the problem depends on besides the parameters and the arguments that all estimators have."""
        return None

    def _smoothing(self) -> tuple[float, Iterable[float]]:
        """The smoothing that the certificate is for, and those that lead to it."""
        raise NotImplementedError

    def _programme(self, problem: Any) -> Programme | None:
        """The training problem as one programme, where it is small enough and there is no smoothing."""
        return None

    def _store(self, w: np.ndarray) -> None:
        """Keep the weights under public names."""
        raise NotImplementedError

    def predict(self, X: Any) -> list[np.ndarray]:
        """The most probable output of each example."""
        raise NotImplementedError

    def strategy(self, X: Any) -> list[np.ndarray]:
        """The predictor's strategy ``p`` for each example: what :meth:`worst_case_risk` bounds the loss of."""
        raise NotImplementedError

    def _mistakes(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Loss of each example's prediction, and its number of predicted variables."""
        raise NotImplementedError

    def _check_parameters(self) -> None:
        check_parameters(self)

    def _accuracy(self) -> float:
        """How far strategies may be from settled, in units of the loss of a variable."""
        return SETTLED

    def task_loss(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Mean loss per predicted variable of the predictions on labelled data."""
        if is_collection(X):
            lost, variables = mistakes(self, X, y, sample_weight)
        else:
            losses, sizes = self._mistakes(X, y)
            weight = example_weights(sample_weight, losses.size)
            lost, variables = weight @ losses, weight @ sizes
        if not variables > 0:
            raise ValueError("y holds no known output that counts: there is nothing to compare predictions with.")
        return float(lost / variables)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """1 minus :meth:`task_loss`: the share of variables that are right, for a loss that counts mistakes."""
        return 1.0 - self.task_loss(X, y, sample_weight)

    def worst_case_risk(self, radius: float = 0.0) -> float:
        """Bound on the expected loss per variable of answers drawn from :meth:`strategy` over a set of distributions.

        For every distribution of outputs, given the training inputs, whose moments lie within ``radius``
        (Euclidean) of those of the training data, ``E loss(p, y) <= mean surrogate loss + accuracy + radius |w|``,
        where ``p = strategy(X)`` at the training inputs and ``accuracy`` is what strategies are settled to. Where
        labels are missing the moments are those that training has estimated.

        Parameters
        ----------
        radius : float
            Not negative; 0 for distributions with the moments of the training data.
        """
        check_is_fitted(self)
        if not 0 <= number(radius, "radius") < np.inf:
            raise ValueError(f"radius must be a finite number, not negative; got {radius!r}.")
        return self._loss_of_training + self._accuracy() + float(radius) * float(np.linalg.norm(self._weights))
