"""What all estimators of one label per row share: validation, training, the certificate."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import KW_ONLY
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_consistent_length, validate_data

from nashlearn.arrays import aligned
from nashlearn.dask.answers import averaged, lazily, refuse_costs
from nashlearn.dask.collections import is_collection
from nashlearn.dask.rows import fit_rows
from nashlearn.estimators._certify import CertifiedRows
from nashlearn.estimators._deciding import DECISIONS
from nashlearn.estimators._labels import known_positions, refuse_none
from nashlearn.estimators._parameters import parameters
from nashlearn.estimators._risk import RiskNash
from nashlearn.estimators._row_costs import RowCostNash
from nashlearn.estimators._row_functions import FLOATS, RowFunctions
from nashlearn.estimators._sparse_coef import SparseCoef
from nashlearn.estimators._streaming import StreamingNash, refuse_box
from nashlearn.solvers.threads import threads
from nashlearn.training import Method, Problem, Trained
from nashlearn.training.blas import allowed_threads, one_thread
from nashlearn.training.designs.gram import Gram, Kernel
from nashlearn.training.designs.span import KernelProblem
from nashlearn.training.methods.climb import Climb
from nashlearn.training.methods.linear import Linear
from nashlearn.training.methods.sparse_rows import SparseRows
from nashlearn.training.methods.tempered import Tempered
from nashlearn.training.methods.tempered_span import TemperedSpan
from nashlearn.training.opening import train_as_asked
from nashlearn.training.progress import scaling_advice
from nashlearn.training.risk import problem_risk

__all__ = ["FLOATS", "BaseNash", "Setting"]


@parameters
class RowTraining(RowFunctions):
    """What the estimators of one label per row are told besides."""

    _: KW_ONLY
    class_weight: Any = None
    penalty: str = "l2"


# How linear models are trained, by the name of the penalty: for a smoothing and the scale of a game.
LINEAR: dict[str, Callable[[float, float], Method]] = {
    "l2": lambda mu, scale: Tempered(mu) if mu else Linear(),
    "l1": SparseRows,
}


_ASKED = 1000  # rows, about, whose answers are looked at
_FOR_SUMS = 0.5  # alpha from which it is looked at whether it was meant for a sum of losses


class Setting(NamedTuple):
    """What an estimator trains on.

    Attributes
    ----------
    game
        The game, in its own units.
    design, span
        How weights become scores, and how coefficients of kernel values do.
    bias : float
        The constant feature.
    mu, unit : float
        See :mod:`nashlearn.estimators._tempering`.
    """

    game: Any
    design: Any
    span: Any
    bias: float
    mu: float
    unit: float


class BaseNash(
    RowTraining, RiskNash, CertifiedRows, StreamingNash, RowCostNash, SparseCoef, ClassifierMixin, BaseEstimator
):
    """A game played on linear scores. Subclasses name the game, the design and how they answer."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, costs: Any = None) -> Any:
        """Train to a relative duality gap of ``tol``.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d), Dask array or Dask dataframe
            Read in place where it is C-ordered float32 or float64, or CSR. Partitions of a Dask collection are read
            once in every iteration, wherever they are.
        y : array-like of shape (n,), or Dask array or series
            At least two distinct labels.
        sample_weight : array-like of shape (n,), or Dask array or series, optional
            Not negative. The loss is the weighted mean: a weight counts as repetitions.
        costs : array-like of shape (n,) or (n, options, labels), optional
            What is at stake in each row: factors on the estimator's own loss or, for :class:`NashClassifier`, a cost
            matrix for each row, with options as in the loss and labels in the order of ``classes_``. Finite and not
            negative. They weigh the loss and leave the moments of the labels as they are. Predictions take the costs
            of their own rows; without, they are for the estimator's own loss. Not for Dask collections.

        Returns
        -------
        self

        Warns
        -----
        ConvergenceWarning
            Where ``dual_gap_`` exceeds ``tol``.
        """
        self._check_parameters()
        if is_collection(X):
            refuse_box(self, "for Dask collections")
            refuse_costs(costs)
            return fit_rows(self, X, y, sample_weight)
        as_given = X, y
        X, y = self._read(X, y)
        if self._pairwise() and X.shape[0] != X.shape[1]:
            raise ValueError(f"kernel='precomputed' needs a square Gram matrix as X; got shape {X.shape}.")
        labels = np.unique(y)
        self._check_classes(labels)
        classes = self._arranged(labels, as_given[1])
        codes = known_positions(classes, y, "is not among the classes")
        X, codes, omega, kept, total = self._weighted(X, y, codes, sample_weight)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        setting = self._game_and_scores(classes, X.shape[1])
        if costs is not None:
            setting = self._with_costs(setting, costs, y.size, kept)
        self.alpha_ = self._regularisation(classes.size, total)
        if costs is not None and isinstance(self.alpha, str):
            self.alpha_ *= self._of_typical_costs(setting.game, omega)
        problem, method = self._posed(setting, X, codes, omega, rng)
        # Not by BLAS: its threads would go on spinning beside those of the training for a tenth of a second.
        spread = float(np.sqrt(0.5 * np.sum(omega**2 * problem.squared_diameters())))
        if not np.isfinite(spread):
            raise ValueError("X has values so large that the squares of its rows overflow; scale the features.")
        trained = train_as_asked(
            self,
            problem,
            method,
            [
                X,
                codes,
                omega,
                classes,
                self._game.params,
                self.smoothing_,
                *([] if costs is None else setting.game.params),
            ],
            alpha=self.alpha_,
            unit=setting.unit,
            random_state=rng,
            start=self._previous(classes),
            advice=scaling_advice if self._pairwise() else lambda: scaling_advice([X]),
        )
        self._kernel = None if self._is_linear else problem.gram.kernel
        if self._kernel is not None:
            self._keep_support(X, trained.w, kept, setting)
        self._conclude(trained, classes, spread, self._risk_of(problem, setting, trained.w))
        self._warn_of_one_answer(as_given[0], total)
        return self

    def _warn_of_one_answer(self, X: Any, total: float) -> None:
        """Warn where an ``alpha`` as large as those beside a sum of losses leaves one answer to all rows."""
        if isinstance(self.alpha, str) or self.alpha_ < _FOR_SUMS or self._pairwise():
            return
        some = X[:: max(1, int(total) // _ASKED)] if hasattr(X, "shape") else X
        answers = np.unique(self._answers(some))
        if answers.size == 1:
            warnings.warn(
                f"alpha={self.alpha!r} is so large that all rows get the same answer. Here alpha stands beside the "
                "mean loss of the rows; where it stood beside their sum, as in mord, divide it by their number: "
                f"alpha={self.alpha_ / total:.2g}. The default is alpha='auto'.",
                UserWarning,
                stacklevel=3,
            )

    def _posed(
        self, setting: Setting, X: Any, codes: np.ndarray, omega: np.ndarray, rng: np.random.Generator
    ) -> tuple[Any, Method]:
        """The training problem, and the method that suits it."""
        alpha = self.alpha_ / setting.unit
        if self._is_linear:
            problem = Problem(X, codes, omega, alpha, setting.game, setting.design)
            if problem.shared:
                problem.run = threads(allowed_threads())
            return problem, LINEAR[self.penalty](setting.mu, setting.game.scale)
        kernel = Kernel(self.kernel, self.gamma, self.degree, self.coef0, X)
        gram = Gram(kernel, X, setting.bias**2, self.cache_size, threads(allowed_threads()))
        gram.refuse_indefinite(rng)
        kernel_problem = KernelProblem(gram, codes, omega, alpha, setting.game, setting.span)
        return kernel_problem, TemperedSpan(setting.mu) if setting.mu else Climb()

    def _risk_of(self, problem: Any, setting: Setting, w: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """What bounds the risk of a tempered game; that of the game itself is bounded by its mean loss."""
        if not setting.mu:
            return None
        with one_thread() if problem.shared else nullcontext():
            return problem_risk(problem, setting.unit * w, setting.mu, self.smoothing_)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the state of a stored model; in one of 0.1 the game is exact, and has no unit but its own."""
        super().__setstate__(state if "smoothing" in state else {**self._before_tempering(state), **state})

    def _before_tempering(self, state: dict[str, Any]) -> dict[str, Any]:
        """What is not said in the state of a model of 0.1."""
        then: dict[str, Any] = {"smoothing": 0.0, "intercept_scaling": 1.0, "penalty": "l2"}
        if "classes_" in state:
            risk = {"_sigma": np.ones(1), "_risk_means": np.array([state["_loss_of_training"]])}
            then |= {"smoothing_": 0.0, "alpha_": state["alpha"], "_largest": 1.0, **risk}
        return then

    def _arranged(self, labels: np.ndarray, y: Any) -> np.ndarray:
        """The classes in their order, of the sorted ``labels`` of ``y`` as it was given."""
        return labels

    def _read(self, X: Any, y: Any, *, reset: bool = True) -> tuple[Any, np.ndarray]:
        """Rows and labels, checked; not copied where training can read them as they are."""
        refuse_none(y)
        kinds = False if self._pairwise() else "csr"
        X, y = validate_data(
            self, X, y, accept_sparse=kinds, dtype=FLOATS, order="C", accept_large_sparse=True, reset=reset
        )
        check_classification_targets(y)
        return aligned(X), y

    def _check_classes(self, classes: np.ndarray) -> None:
        if classes.size < 2:
            raise ValueError(
                f"y holds {'one class only, ' + repr(classes.tolist()[0]) if classes.size else 'no labels'}; "
                f"{type(self).__name__} needs at least two distinct labels."
            )

    def _conclude(
        self,
        trained: Trained,
        classes: np.ndarray,
        spread: float,
        risk: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> Any:
        """Keep what training found and what it certified; a stream ends here.

        ``risk`` are what :mod:`nashlearn.training.risk` bounds the risk by; the mean loss does, if not so well.
        """
        self.__dict__.pop("_stream", None)
        self.classes_ = classes
        self.n_iter_, self.objective_, self.dual_gap_ = trained.n_iter, trained.objective, trained.dual_gap
        self.history_ = trained.rounds
        of_the_other = (
            ("support_", "support_vectors_", "dual_coef_") if self._kernel is None else ("coef_", "n_nonzero_")
        )
        for name in of_the_other:  # of an earlier fit with another kernel
            self.__dict__.pop(name, None)
        if self._kernel is None:
            self._store(trained.w)
            self.n_nonzero_ = int(np.count_nonzero(self.coef_))
        self._keep_risk(trained, spread, risk)
        if self.warm_start:
            self._trained: Trained = trained
        return self

    def _keep_support(self, X: Any, C: np.ndarray, kept: np.ndarray, setting: Setting) -> None:
        """Keep the examples whose coefficients are not zero, and those."""
        own = np.flatnonzero(C.any(axis=1))
        self.support_ = kept[own]
        self.support_vectors_ = X[own][:, :0] if self._pairwise() else X[own]
        self._store_span(C[own], setting)

    def _weighted(self, X: Any, y: np.ndarray, codes: np.ndarray, sample_weight: Any) -> tuple[Any, ...]:
        """The examples that count, their labels and shares of the mean loss, which they are, and how many, by weight.

        Weights of classes change the shares alone.
        """
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        share = weight
        if self.class_weight is not None:
            if not (isinstance(self.class_weight, Mapping) or str(self.class_weight) == "balanced"):
                raise ValueError(f"class_weight must be None, 'balanced' or a dict; got {self.class_weight!r}.")
            share = weight * compute_sample_weight(self.class_weight, y)
        counts = share > 0
        if not counts.any():
            raise ValueError("sample_weight must be positive for at least one row; all rows have weight 0.")
        kept = np.flatnonzero(counts)
        if not counts.all():
            X, codes, share = X[kept], codes[kept], share[kept]
            if self._pairwise():
                X = X[:, kept]
        return X, np.ascontiguousarray(codes, dtype=np.int64), share / share.sum(), kept, float(weight[kept].sum())

    def _previous(self, classes: np.ndarray) -> Trained | None:
        if self.warm_start and hasattr(self, "_trained") and np.array_equal(classes, self.classes_):
            return self._trained
        return None

    def _check_parameters(self) -> None:
        self._check_training(decision=DECISIONS)
        if not self._is_linear:
            refuse_box(self, "with a kernel, whose functions have no weights to be sparse")

    def _game_and_scores(self, classes: np.ndarray, d: int) -> Setting:
        """What to train on ``d`` features; keeps the game to answer by, and its smoothing."""
        raise NotImplementedError

    def _store(self, w: np.ndarray) -> None:
        raise NotImplementedError

    def _store_span(self, C: np.ndarray, setting: Setting) -> None:
        raise NotImplementedError

    def _scores(self, X: Any, dtype: Any = FLOATS) -> np.ndarray:
        """Scores (n, k), one for each class."""
        raise NotImplementedError

    @lazily
    def strategy(self, X: Any, *, costs: Any = None) -> np.ndarray:
        """The predictor's equilibrium strategy ``p`` (n, options): with which probability to take each option.

        Options are the labels, in the order of ``classes_``; the rows of a cost matrix; labels and then, last, to
        abstain. This is the randomised prediction whose cost :meth:`worst_case_risk` bounds; what the labels themselves
        are likely to be, ``predict_proba`` says. It is computed in double precision, whatever that of ``X``, as
        training was. With ``costs`` it is the strategy for these rows' own costs, as ``fit`` takes them.
        """
        return self._play(self._scores(X, dtype=np.float64), costs).p

    @averaged
    def score(self, X: Any, y: Any, sample_weight: Any = None, costs: Any = None) -> float:
        """Minus :meth:`task_loss`: larger is better, so that model selection looks for the least loss."""
        return -self.task_loss(X, y, sample_weight, costs)

    @averaged
    def task_loss(self, X: Any, y: Any, sample_weight: Any = None, costs: Any = None) -> float:
        """Mean cost of the answers of this estimator on labelled data, in the units of its loss.

        With ``costs``, as ``fit`` takes them, answers and what they cost are those of these rows' own costs.
        """
        return float(np.average(self._paid(self._answers(X, costs), y, costs), weights=sample_weight))

    def _paid(self, options: np.ndarray, y: Any, costs: Any = None) -> np.ndarray:
        """What each of the options costs for its label."""
        check_consistent_length(options, y)
        paid = self._game.costs[options, known_positions(self.classes_, y, "was not seen in fit; known")]
        return self._charged(paid, costs)

    def _answers(self, X: Any, costs: Any = None) -> np.ndarray:
        """The option chosen for each row."""
        raise NotImplementedError
