"""What linear and kernel models of rows share, whatever they are trained for: parameters, and functions of rows."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, cast

import numpy as np
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from nashlearn.estimators._foreign import ROWS
from nashlearn.estimators._parameters import Training, check_parameters, number, parameters
from nashlearn.estimators._tempering import TemperedNash

__all__ = ["FLOATS", "RowFunctions"]

_BLOCK = 1 << 26  # bytes of kernel values in a block of predictions
FLOATS = [np.float64, np.float32]


class _LinearWeights:
    """``coef_`` of models that have none: says what there is instead. Fitted linear models hide it by their own."""

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        if model is None:
            return self
        kind = type(model).__name__
        if "dual_coef_" not in vars(model):
            raise AttributeError(f"{kind} has no coef_ before it is fitted.")
        raise AttributeError(
            f"{kind} with kernel={model.kernel!r} has no coef_: its functions are sums over support_vectors_, weighted "
            "by dual_coef_. Linear models, kernel=None, have a weight for each feature."
        )


@parameters
class RowFunctions(TemperedNash, Training):
    """Linear functions ``coef_`` of rows, or ``dual_coef_`` in the span of a kernel, and how they are trained."""

    _: KW_ONLY
    alpha: Any = "auto"
    gamma: Any = "scale"
    degree: float = 3
    coef0: float = 0.0
    cache_size: float = 800
    random_state: Any = None
    _others_say = ROWS
    coef_ = cast(Any, _LinearWeights())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._pairwise()
        return tags

    def _pairwise(self) -> bool:
        """Whether ``X`` holds kernel values instead of features."""
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _check_training(self, **choices: tuple[Any, ...]) -> None:
        """Refuse parameters that no training can use; ``choices`` as :func:`check_parameters` takes them."""
        check_parameters(self, auto=("alpha", "smoothing"), **choices)
        self._chosen_smoothing()
        if not 0 < self._constant < np.inf:
            raise ValueError(
                f"intercept_scaling must be 'auto' or a positive, finite number; got {self.intercept_scaling!r}."
            )
        if not 0 < number(self.cache_size, "cache_size") < np.inf:
            raise ValueError(f"cache_size must be a positive, finite number; got {self.cache_size!r}.")

    def _functions(self, X: Any, dtype: Any = FLOATS) -> np.ndarray:
        """What the weights say of each row, without intercepts: ``X coef'``, or the same in the span of the kernel."""
        check_is_fitted(self)
        fitted: Any = self
        X = validate_data(self, X, accept_sparse="csr", dtype=dtype, reset=False)
        if fitted._kernel is None:
            return safe_sparse_dot(X, fitted.coef_.T.astype(X.dtype, copy=False), dense_output=True)
        values = np.zeros((X.shape[0], fitted.dual_coef_.shape[0]))
        if not fitted.support_.size:  # the zero function, of which a kernel need not know how to make it
            return values
        if fitted._kernel.precomputed:
            return safe_sparse_dot(X[:, fitted.support_], fitted.dual_coef_.T)
        step = max(1, _BLOCK // (8 * fitted.support_.size))
        for start in range(0, X.shape[0], step):
            part = slice(start, start + step)
            values[part] = fitted._kernel(X[part], fitted.support_vectors_) @ fitted.dual_coef_.T
        return values
