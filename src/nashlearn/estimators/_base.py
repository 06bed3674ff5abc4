"""What all estimators of one label per row share: validation, training, the certificate, the risk bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_consistent_length, check_is_fitted, validate_data

from nashlearn.arrays import aligned
from nashlearn.dask.answers import averaged, lazily
from nashlearn.dask.collections import is_collection
from nashlearn.dask.rows import fit_rows
from nashlearn.estimators._deciding import DECISIONS
from nashlearn.estimators._parameters import Training, check_parameters, number, parameters
from nashlearn.estimators._streaming import StreamingNash
from nashlearn.training import Method, Problem, Trained
from nashlearn.training.designs.gram import Gram, Kernel
from nashlearn.training.designs.rows import PerClass
from nashlearn.training.designs.span import KernelProblem, SpanPerClass
from nashlearn.training.methods.climb import Climb
from nashlearn.training.methods.linear import Linear
from nashlearn.training.opening import train_as_asked
from nashlearn.training.progress import scaling_advice

__all__ = ["FLOATS", "BaseNash", "PerClassNash", "number"]

_BLOCK = 1 << 26  # bytes of kernel values in a block of predictions
FLOATS = [np.float64, np.float32]


@parameters
class RowTraining(Training):
    """What the estimators of one label per row are told besides."""

    _: KW_ONLY
    kernel: Any = None
    gamma: Any = "scale"
    degree: float = 3
    coef0: float = 0.0
    cache_size: float = 800
    class_weight: Any = None
    random_state: Any = None


class BaseNash(RowTraining, StreamingNash, ClassifierMixin, BaseEstimator):
    """A game played on linear scores. Subclasses name the game, the design and how they answer."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._pairwise()
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
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
            return fit_rows(self, X, y, sample_weight)
        X, y = self._read(X, y)
        if self._pairwise() and X.shape[0] != X.shape[1]:
            raise ValueError(f"kernel='precomputed' needs a square Gram matrix as X; got shape {X.shape}.")
        classes, codes = np.unique(y, return_inverse=True)
        self._check_classes(classes)
        X, codes, omega, kept = self._weighted(X, y, codes, sample_weight)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        game, design, span, bias = self._game_and_scores(classes.size, X.shape[1])
        problem: Any
        method: Method
        kernel = None
        if self.kernel is None:
            problem, method = Problem(X, codes, omega, float(self.alpha), game, design), Linear()
        else:
            kernel = Kernel(self.kernel, self.gamma, self.degree, self.coef0, X)
            gram = Gram(kernel, X, bias, self.cache_size)
            gram.refuse_indefinite(rng)
            problem, method = KernelProblem(gram, codes, omega, float(self.alpha), game, span), Climb()
        spread = float(np.sqrt(0.5 * (omega**2 @ problem.squared_diameters())))
        if not np.isfinite(spread):
            raise ValueError("X has values so large that the squares of its rows overflow; scale the features.")
        trained = train_as_asked(
            self,
            problem,
            method,
            [X, codes, omega, classes],
            random_state=rng,
            start=self._previous(classes),
            advice=scaling_advice if self._pairwise() else lambda: scaling_advice([X]),
        )
        self._kernel = kernel
        if kernel is not None:
            self._keep_support(X, trained.w, kept, bias)
        return self._conclude(trained, classes, spread)

    def _read(self, X: Any, y: Any, *, reset: bool = True) -> tuple[Any, np.ndarray]:
        """Rows and labels, checked; not copied where training can read them as they are."""
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

    def _conclude(self, trained: Trained, classes: np.ndarray, spread: float) -> Any:
        """Keep what training found and what it certified; a stream ends here."""
        self.__dict__.pop("_stream", None)
        self.classes_ = classes
        self.n_iter_, self.objective_, self.dual_gap_ = trained.n_iter, trained.objective, trained.dual_gap
        self.history_ = trained.rounds
        of_the_other = ("support_", "support_vectors_", "dual_coef_") if self._kernel is None else ("coef_",)
        for name in of_the_other:  # of an earlier fit with another kernel
            self.__dict__.pop(name, None)
        if self._kernel is None:
            self._store(trained.w)
        self._weight_norm = trained.norm
        self._loss_of_training = float(np.maximum(trained.loss, 0.0)) + trained.error  # rounding may make it negative
        self._moment_spread = spread
        if self.warm_start:
            self._trained: Trained = trained
        return self

    def _keep_support(self, X: Any, C: np.ndarray, kept: np.ndarray, bias: float) -> None:
        """Keep the examples whose coefficients are not zero, and those."""
        own = np.flatnonzero(C.any(axis=1))
        self.support_ = kept[own]
        self.support_vectors_ = X[own][:, :0] if self._pairwise() else X[own]
        self._store_span(C[own], bias)

    def _weighted(self, X: Any, y: np.ndarray, codes: np.ndarray, sample_weight: Any) -> tuple[Any, Any, Any, Any]:
        """The examples that count, their labels, their shares of the mean loss, and which they are."""
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if self.class_weight is not None:
            if not (isinstance(self.class_weight, Mapping) or str(self.class_weight) == "balanced"):
                raise ValueError(f"class_weight must be None, 'balanced' or a dict; got {self.class_weight!r}.")
            weight = weight * compute_sample_weight(self.class_weight, y)
        counts = weight > 0
        if not counts.any():
            raise ValueError("sample_weight must be positive for at least one row; all rows have weight 0.")
        kept = np.flatnonzero(counts)
        if not counts.all():
            X, codes, weight = X[kept], codes[kept], weight[kept]
            if self._pairwise():
                X = X[:, kept]
        return X, np.ascontiguousarray(codes, dtype=np.int64), weight / weight.sum(), kept

    def _pairwise(self) -> bool:
        """Whether ``X`` holds kernel values instead of features."""
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _previous(self, classes: np.ndarray) -> Trained | None:
        if self.warm_start and hasattr(self, "_trained") and np.array_equal(classes, self.classes_):
            return self._trained
        return None

    def _check_parameters(self) -> None:
        check_parameters(self, decision=DECISIONS)
        if not 0 < number(self.cache_size, "cache_size") < np.inf:
            raise ValueError(f"cache_size must be a positive, finite number; got {self.cache_size!r}.")

    def _game_and_scores(self, k: int, d: int) -> tuple[Any, Any, Any, float]:
        """The game to train on, the linear design, its kernel counterpart, and the constant feature."""
        raise NotImplementedError

    def _store(self, w: np.ndarray) -> None:
        raise NotImplementedError

    def _store_span(self, C: np.ndarray, bias: float) -> None:
        raise NotImplementedError

    def _functions(self, X: Any, dtype: Any = FLOATS) -> np.ndarray:
        """What the weights say of each row, without intercepts: ``X coef'``, or the same in the span of the kernel."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=dtype, reset=False)
        if self._kernel is None:
            return safe_sparse_dot(X, self.coef_.T.astype(X.dtype, copy=False))
        values = np.zeros((X.shape[0], self.dual_coef_.shape[0]))
        if not self.support_.size:  # the zero function, of which a kernel need not know how to make it
            return values
        if self._kernel.precomputed:
            return safe_sparse_dot(X[:, self.support_], self.dual_coef_.T)
        step = max(1, _BLOCK // (8 * self.support_.size))
        for start in range(0, X.shape[0], step):
            part = slice(start, start + step)
            values[part] = self._kernel(X[part], self.support_vectors_) @ self.dual_coef_.T
        return values

    def _scores(self, X: Any, dtype: Any = FLOATS) -> np.ndarray:
        """Scores (n, k), one for each class."""
        raise NotImplementedError

    @lazily
    def strategy(self, X: Any) -> np.ndarray:
        """The predictor's equilibrium strategy ``p`` (n, options): with which probability to take each option.

        Options are the labels, in the order of ``classes_``; the rows of a cost matrix; labels and then, last, to
        abstain. This is the randomised prediction whose loss :meth:`worst_case_risk` bounds. It is computed in double
        precision, whatever that of ``X``, as training was.
        """
        scores = self._scores(X, dtype=np.float64)
        return self._game.solve(scores).p

    def _codes(self, y: Any, answers: np.ndarray) -> np.ndarray:
        """Positions in ``classes_`` of the labels, one for each answer."""
        y = np.asarray(y)
        check_consistent_length(answers, y)
        position = np.searchsorted(self.classes_, y).clip(max=self.classes_.size - 1)
        wrong = self.classes_[position] != y
        if np.any(wrong):
            raise ValueError(
                f"y holds the label {y[wrong].tolist()[0]!r}, which was not seen in fit; known: {self.classes_}."
            )
        return position

    @averaged
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy of ``predict``."""
        return super().score(X, y, sample_weight)

    @averaged
    def task_loss(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Mean cost of the answers of this estimator on labelled data, in the units of its loss."""
        options = self._answers(X)
        return float(np.average(self._game.costs[options, self._codes(y, options)], weights=sample_weight))

    def _answers(self, X: Any) -> np.ndarray:
        """The option chosen for each row."""
        raise NotImplementedError

    def worst_case_risk(self, radius: float = 0.0) -> float:
        """Bound on the expected task loss of the randomised prediction :meth:`strategy` over a set of distributions.

        For every distribution of labels, given the training inputs, whose moments ``E[Phi(x)' y]`` lie within
        ``radius`` (Euclidean) of those of the training data,

            ``E loss(p, y) <= mean surrogate loss + radius |w|``.

        With ``radius=moment_radius(confidence)`` the distribution that the labels were drawn from is among them
        with that confidence: the bound is then a guarantee for new labels at the training inputs. It holds for
        answers drawn from the strategy ``p``, abstention included where it is an option, not for the most probable
        answer, and in the mean over the training inputs, weighted as in training. After ``partial_fit``, which has no
        training inputs to speak of, it is NaN.

        Parameters
        ----------
        radius : float
            Not negative; 0 for distributions with the moments of the training data.
        """
        check_is_fitted(self)
        if not 0 <= number(radius, "radius") < np.inf:
            raise ValueError(f"radius must be a finite number, not negative; got {radius!r}.")
        return self._loss_of_training + float(radius) * self._weight_norm

    def moment_radius(self, confidence: float = 0.95) -> float:
        """Radius within which the training moments lie of their expectation, given the inputs, with ``confidence``.

        The moments are a mean of independent vectors, the ``i``-th within a set of diameter ``D_i``, so by
        McDiarmid's inequality, with ``s^2 = sum_i omega_i^2 D_i^2 / 2``, the radius is

            ``s (1 + sqrt(log(1 / (1 - confidence))))``.

        Parameters
        ----------
        confidence : float
            Between 0 and 1, both excluded.
        """
        check_is_fitted(self)
        if not 0 < number(confidence, "confidence") < 1:
            raise ValueError(f"confidence must lie between 0 and 1; got {confidence!r}.")
        return self._moment_spread * (1.0 + float(np.sqrt(-np.log1p(-confidence))))


@parameters
class PerClassNash(BaseNash):
    """A game on scores with one weight vector per class; weights as LogisticRegression keeps them."""

    _: KW_ONLY
    fit_intercept: bool = True

    def _make_game(self, k: int) -> Any:
        raise NotImplementedError

    def _game_and_scores(self, k: int, d: int) -> tuple[Any, Any, Any, float]:
        self._game = self._make_game(k)
        bias = float(self.fit_intercept)
        return self._game, PerClass(k, d, bias), SpanPerClass(k), bias

    def _store(self, w: np.ndarray) -> None:
        if w.shape[0] == 2:  # the two rows are opposite: keep their difference
            w = (w[1] - w[0])[None, :]
        self.coef_ = np.ascontiguousarray(w[:, :-1])
        self.intercept_ = w[:, -1].copy()

    def _stored(self) -> np.ndarray:
        """The weights that were stored."""
        w = np.column_stack([self.coef_, self.intercept_])
        return np.concatenate([-0.5 * w, 0.5 * w]) if w.shape[0] == 1 else w

    def _store_span(self, C: np.ndarray, bias: float) -> None:
        C = C.T
        if C.shape[0] == 2:
            C = (C[1] - C[0])[None, :]
        self.dual_coef_ = np.ascontiguousarray(C)
        self.intercept_ = bias * C.sum(axis=1)

    def _leads(self, X: Any, dtype: Any = FLOATS) -> np.ndarray:
        """Scores (n, k), or (n, 1) of the second class over the first where there are two."""
        functions = self._functions(X, dtype)
        return functions + self.intercept_.astype(functions.dtype, copy=False)

    @lazily
    def decision_function(self, X: Any) -> np.ndarray:
        """Scores (n, k), or (n,) of the second class over the first where there are two."""
        leads = self._leads(X)
        return leads.ravel() if leads.shape[1] == 1 else leads

    def _scores(self, X: Any, dtype: Any = FLOATS) -> np.ndarray:
        leads = self._leads(X, dtype)
        return np.hstack([-0.5 * leads, 0.5 * leads]) if leads.shape[1] == 1 else leads
