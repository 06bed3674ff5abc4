"""What estimators with one weight vector per class share."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from nashlearn.dask.answers import lazily
from nashlearn.estimators._base import FLOATS, BaseNash, Setting
from nashlearn.estimators._parameters import parameters
from nashlearn.estimators._sparse_coef import dense_coef
from nashlearn.training.designs.rows import PerClass
from nashlearn.training.designs.span import SpanPerClass

__all__ = ["PerClassNash"]


@parameters
class PerClassNash(BaseNash):
    """A game on scores with one weight vector per class; weights as LogisticRegression keeps them."""

    _: KW_ONLY
    fit_intercept: bool = True

    def _make_game(self, classes: np.ndarray) -> Any:
        raise NotImplementedError

    def _auto_alpha(self, k: int) -> float:
        # LogisticRegression keeps the difference of two classes' weights: its square is twice that of both together,
        # its absolute value the same.
        return 2.0 if k == 2 and self.penalty == "l2" else 1.0

    @property
    def _bias(self) -> float:
        """The constant feature, 0 without one."""
        return self._constant if self.fit_intercept else 0.0

    def _game_and_scores(self, classes: np.ndarray, d: int) -> Setting:
        self._game, k = self._make_game(classes), classes.size
        self._temper(self._game.largest)
        return Setting(self._game, PerClass(k, d, self._bias), SpanPerClass(k), self._bias, self._mu, self._unit)

    def _store(self, w: np.ndarray) -> None:
        if w.shape[0] == 2:  # the two rows are opposite: keep their difference
            w = (w[1] - w[0])[None, :]
        self.coef_ = np.ascontiguousarray(w[:, :-1])
        self.intercept_ = self._bias * w[:, -1]

    def _stored(self) -> np.ndarray:
        """The weights that were stored."""
        last = self.intercept_ / self._bias if self.fit_intercept else np.zeros_like(self.intercept_)
        w = np.column_stack([dense_coef(self), last])
        return np.concatenate([-0.5 * w, 0.5 * w]) if w.shape[0] == 1 else w

    def _store_span(self, C: np.ndarray, setting: Setting) -> None:
        C = C.T
        if C.shape[0] == 2:
            C = (C[1] - C[0])[None, :]
        self.dual_coef_ = np.ascontiguousarray(C)
        self.intercept_ = setting.bias**2 * C.sum(axis=1)

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
