"""What all estimators of structured outputs share: parameters, training, the certificate, the risk bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from nashlearn.dask.answers import mistakes
from nashlearn.dask.bags import bag_problem
from nashlearn.dask.collections import is_collection
from nashlearn.estimators._certify import CertifiedStructures
from nashlearn.estimators._parameters import Training, check_parameters, number, parameters
from nashlearn.training.driver import Method
from nashlearn.training.opening import train_as_asked
from nashlearn.training.played import SETTLED
from nashlearn.training.progress import Watch, scaling_advice

__all__ = ["Facts", "StructuredNash", "Units", "example_weights"]


class Units(NamedTuple):
    """What training counts in: costs.

    Attributes
    ----------
    unit : float
        What the loss that an estimator minimises is multiplied by to be one in costs.
    smoothing : float
        The weight of the smoothing.
    """

    unit: float
    smoothing: float


def example_weights(sample_weight: Any, n: int) -> np.ndarray:
    """Weights of ``n`` examples, checked: finite, not negative; 1 each by default."""
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
    return weight


def _matrices(X: Any) -> Iterator[Any]:
    """The features of examples that hold them as arrays, or as tuples that begin with one."""
    for example in X:
        features = example[0] if isinstance(example, tuple) else example
        if isinstance(features, np.ndarray) or sparse.issparse(features):
            yield features


@dataclass(frozen=True)
class Facts:
    """What must be known of all examples before those of a partition can be made a training problem.

    Subclasses add what partitions must agree on, or count together. Data in memory are one partition.
    """

    total: float  # weighted number of predicted variables: what the mean loss is a mean over

    def __add__(self, other: Any) -> Any:
        """The facts of two partitions together, or an error where they disagree."""
        raise NotImplementedError

    def check(self) -> None:
        """Refuse data, of all partitions, that nothing can be learnt from."""
        if not self.total > 0:
            raise ValueError(
                "sample_weight must be positive for at least one example with something to predict: X holds no "
                "examples of positive weight, and there is nothing to learn from."
            )

    @property
    def needs_sums(self) -> bool:
        """Whether problems depend on sums over all examples that can be taken only once these facts are known."""
        return False


@parameters
class StructuredTraining(Training):
    """What the estimators of structured outputs are told besides."""

    _: KW_ONLY
    smoothing: float = 0.0
    n_jobs: int | None = None


class StructuredNash(StructuredTraining, CertifiedStructures, BaseEstimator):
    """A game played on linear scores of the parts of an output.

    Subclasses read examples (``_read``), say what is to be known of all of them (``_facts``, ``_sums``), build the
    training problem of some or all (``_problem``), keep the weights (``_store``), and answer (``predict``,
    ``_mistakes``, ``_expected_mistakes``). None of the first four touches the estimator, so that data which are refused
    leave an earlier fit as it was.

    Training and the games behind predictions are in costs; weights, scores and the objective are of the loss divided by
    ``s (1 + m)``, where ``s`` is the largest cost (:meth:`_largest_cost`) and ``m`` the parameter ``smoothing``, so
    that ``alpha`` means the same for every loss and smoothing.
    """

    _weights: np.ndarray
    # Models that 0.1 has saved lack both: their weights and their smoothing were in costs.
    _unit: float = 1.0
    _weight_norm: float | None = None
    _mu: float | None = None

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
        return self._fit(X, y, sample_weight)

    def _fit(
        self, X: Any, y: Any, sample_weight: Any, *, watch: Callable[[Any, Any], Watch] | None = None, **more: Any
    ) -> Any:
        """:meth:`fit`, with ``more`` arguments that :meth:`_read` takes for data in memory.

        ``watch`` makes of the training problem and its facts what :func:`nashlearn.training.driver.train` shows weights
        to.
        """
        self._check_parameters()
        if is_collection(X):
            problem, facts = bag_problem(self, X, y, sample_weight)
            data, features = [getattr(each, "name", None) for each in (X, y, sample_weight)], ()
        else:
            problem, facts = self._in_memory(X, y, sample_weight, **more)
            data, features = [X, y, sample_weight, *more.values()], X
        units = self._units(facts)
        trained = train_as_asked(
            self,
            problem,
            self._method(problem, facts),
            data,
            unit=units.unit,
            start=self._weights if self.warm_start and hasattr(self, "_weights") else None,
            random_state=self._generator(),
            watch=None if watch is None else watch(problem, facts),
            advice=lambda: scaling_advice(_matrices(features)),
        )
        self._weights = trained.w
        self._unit, self._mu = units
        self.smoothing_ = float(self.smoothing)
        self._loss_of_training, self._weight_norm = trained.loss, trained.norm
        self.objective_, self.dual_gap_, self.n_iter_ = trained.objective, trained.dual_gap, trained.n_iter
        self.history_ = trained.rounds
        self._store(trained.w, facts, problem)
        return self

    def _in_memory(self, X: Any, y: Any, sample_weight: Any, **more: Any) -> tuple[Any, Any]:
        """The training problem of data in memory, one partition, and their facts."""
        read = self._read(X, y, sample_weight, **more)
        facts = self._facts(read)
        facts.check()
        return self._problem(read, facts, self._sums(read, facts) if facts.needs_sums else None), facts

    def _read(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """The examples with their outputs and weights, checked one by one and against each other."""
        raise NotImplementedError

    def _facts(self, data: Any) -> Facts:
        """What training must know of what was read."""
        raise NotImplementedError

    def _sums(self, data: Any, facts: Any) -> Any:
        """Sums over what was read, which add up with ``+``; asked for where ``facts.needs_sums``."""
        raise NotImplementedError

    def _problem(self, data: Any, facts: Any, sums: Any) -> Any:
        """The training problem of what was read, its shares of the mean being those among all that ``facts`` count."""
        raise NotImplementedError

    def _method(self, problem: Any, facts: Any) -> Method:
        """How to train."""
        raise NotImplementedError

    def _largest_cost(self, facts: Any) -> float:
        """The largest cost of a variable, 1 where nothing costs; what variables count besides is no part of it."""
        return 1.0

    def _units(self, facts: Any) -> Units:
        """What the loss is divided by, and the weight of its smoothing."""
        largest, relative = self._largest_cost(facts), float(self.smoothing)
        return Units(largest * (1.0 + relative), largest * relative)

    @property
    def _smoothing_in_costs(self) -> float:
        """The weight of the smoothing of the games behind predictions, whose scores are ``_unit`` times the model's."""
        return float(self.smoothing) if self._mu is None else self._mu

    def _generator(self) -> np.random.Generator | None:
        """Random numbers for methods that visit examples in a random order."""
        return None

    def _store(self, w: np.ndarray, facts: Any, problem: Any) -> None:
        """Keep the weights under public names, and what predictions need to know of the data."""
        raise NotImplementedError

    def predict(self, X: Any) -> list[Any]:
        """The most probable output of each example."""
        raise NotImplementedError

    def strategy(self, X: Any) -> list[np.ndarray]:
        """The predictor's strategy ``p`` for each example: what :meth:`worst_case_risk` bounds the loss of."""
        raise NotImplementedError

    def _mistakes(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Loss of each example's prediction, and its number of predicted variables."""
        raise NotImplementedError

    def _expected_mistakes(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """As :meth:`_mistakes`, for predictions drawn from :meth:`strategy`, in expectation."""
        raise NotImplementedError

    def _check_parameters(self) -> None:
        check_parameters(self)

    def _accuracy(self) -> float:
        """How far strategies may be from settled, in units of the loss of a variable."""
        return SETTLED

    def task_loss(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Mean loss per predicted variable of the predictions on labelled data, in costs."""
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
        """1 minus :meth:`task_loss`, which counts mistakes: the share of variables that are right."""
        return 1.0 - self.task_loss(X, y, sample_weight)

    def worst_case_risk(self, radius: float = 0.0) -> float:
        """Bound on the cost per variable of :meth:`strategy` for other outputs at the inputs that it was trained on.

        It says nothing about other inputs; what predictions cost on new data, :meth:`certify` bounds.

        For every distribution of outputs, given the training inputs, whose moments lie within ``radius``
        (Euclidean) of those of the training data,

            ``E cost(p, y) <= s (1 + m) (mean surrogate loss + radius |w|) + accuracy``,

        where ``p = strategy(X)`` at the training inputs, ``s`` is the largest cost, ``m`` is ``smoothing`` and
        ``accuracy`` is what strategies are settled to. Smoothing only adds to the right-hand side, so the bound is
        looser where it is large. Where labels are missing the moments are those that training has estimated.

        Parameters
        ----------
        radius : float
            Not negative; 0 for distributions with the moments of the training data.
        """
        check_is_fitted(self)
        if not 0 <= number(radius, "radius") < np.inf:
            raise ValueError(f"radius must be a finite number, not negative; got {radius!r}.")
        norm = float(np.linalg.norm(self._weights)) if self._weight_norm is None else self._weight_norm
        return self._unit * (self._loss_of_training + float(radius) * norm) + self._accuracy()
