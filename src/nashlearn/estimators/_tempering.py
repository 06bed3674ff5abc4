"""How much an adversary is paid for the entropy of its labels: the parameter ``smoothing``, its unit and its default.

Let ``s`` be the largest cost and ``m`` the smoothing. Estimators of one label per row minimise

    alpha/2 |W|^2 + mean loss,        loss = (cost of p / s + m log loss of q) / (1 + m),

so that ``alpha`` means the same whatever the costs are counted in, and for every smoothing. Games and training have
units of their own: there the adversary is paid ``mu = m s`` for entropy, scores are ``c = s (1 + m)`` times those of
the estimator and losses ``c`` times those above, and the regularisation is ``alpha / c``.
"""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_softmax
from sklearn.utils.validation import check_is_fitted

from nashlearn.dask.answers import lazily
from nashlearn.estimators._parameters import number, parameters
from nashlearn.training.risk import gains

__all__ = ["CONSTANT", "GRADES", "LABELS", "Auto", "TemperedNash"]

_LEAST, _MOST = 1e-9, 1e9  # of what is not 0


class Auto(NamedTuple):
    """What ``"auto"`` stands for in linear models, and in those of a kernel."""

    linear: float
    kernel: float

    def chosen(self, value: Any, name: str, is_linear: bool) -> float:
        """The number that the parameter ``name`` says, or an error that names it."""
        if isinstance(value, str):
            if value != "auto":
                raise ValueError(f"{name} must be 'auto' or a number; got {value!r}.")
            return self.linear if is_linear else self.kernel
        return number(value, name)


LABELS = Auto(linear=1.0, kernel=0.0)  # smoothing for unordered labels, whatever the costs
GRADES = Auto(linear=3.0, kernel=0.0)  # smoothing for ordered ones along one direction
CONSTANT = Auto(linear=10.0, kernel=1.0)  # intercept_scaling; kernel values are of the size of 1
EXACT_CONSTANT = Auto(linear=1.0, kernel=1.0)  # that of the papers, and of the exact game, whose training wants it


@parameters
class TemperedNash:
    """Estimators of one label per row that take the parameters ``smoothing`` and ``intercept_scaling``."""

    _: KW_ONLY
    smoothing: Any = "auto"
    intercept_scaling: Any = "auto"
    kernel: Any = None
    _auto = LABELS

    @property
    def _is_linear(self) -> bool:
        """Whether the model has a weight for each feature: no kernel, or the linear one."""
        return self.kernel is None or (isinstance(self.kernel, str) and self.kernel == "linear")

    def _chosen_smoothing(self) -> float:
        """The number that ``smoothing`` says, or an error that names it."""
        value = self._auto.chosen(self.smoothing, "smoothing", self._is_linear)
        if not (value == 0 or _LEAST <= value <= _MOST):
            raise ValueError(
                f"smoothing must be 'auto', 0, or a number between {_LEAST:g} and {_MOST:g}; got {self.smoothing!r}."
            )
        return value

    @property
    def _constant(self) -> float:
        """The feature that intercepts and thresholds are the weights of."""
        auto = CONSTANT if self._chosen_smoothing() else EXACT_CONSTANT
        return auto.chosen(self.intercept_scaling, "intercept_scaling", self._is_linear)

    def _regularisation(self, k: int, total: float) -> float:
        """The number that ``alpha`` says for ``k`` classes and rows of this total weight.

        ``"auto"`` is what LogisticRegression's ``C = 1`` would be.
        """
        estimator: Any = self
        return self._auto_alpha(k) / total if isinstance(estimator.alpha, str) else float(estimator.alpha)

    def _auto_alpha(self, k: int) -> float:
        """``alpha`` times the number of rows at ``C = 1``."""
        return 1.0

    def _temper(self, largest: float) -> None:
        """Keep the smoothing and the scale ``s`` of the loss that will be trained on."""
        self.smoothing_, self._largest = self._chosen_smoothing(), largest

    @property
    def _mu(self) -> float:
        """What the adversary is paid for entropy, in the units of the game."""
        return self.smoothing_ * self._largest

    @property
    def _unit(self) -> float:
        """What scores and losses of the game are divided by to be those of the estimator."""
        return self._largest * (1.0 + self.smoothing_)

    def _play(self, scores: np.ndarray, costs: Any = None) -> Any:
        """The equilibria at scores (n, k) of the estimator; those of tempered games in double precision."""
        estimator: Any = self
        scores = self._unit * (scores.astype(np.float64, copy=False) if self.smoothing_ else scores)
        return estimator._game_of(costs, len(scores)).solve(scores, smoothing=self._mu)

    def _most_probable(self, scores: np.ndarray, found: Any, costs: Any) -> np.ndarray | None:
        """The label (n,) that the loss makes the most probable of each row, by its equilibrium; None where it does not.

        Labels that ``p`` mixes are equally probable where all mistakes cost the same, and no other is more so.
        """
        raise NotImplementedError

    def _probabilities(self, X: Any, costs: Any) -> np.ndarray:
        """``q`` (n, k), for the same scores as predictions."""
        estimator: Any = self
        scores = estimator._scores(X)
        found = self._play(scores, costs)
        return with_largest(found.q, self._most_probable(scores, found, costs))

    @lazily
    def predict_log_proba(self, X: Any, *, costs: Any = None) -> np.ndarray:
        """Logarithms of :meth:`predict_proba`.

        At a positive smoothing ``log q = (f + L'p) / mu - log sum exp``, with ``f`` the scores in units of the costs:
        no probability is so small that it would be 0. At smoothing 0 options that ``p`` never takes have ``-inf``.
        """
        estimator: Any = self
        check_is_fitted(self)
        if not self.smoothing_:
            p = estimator.predict_proba(X, costs=costs)
            return np.log(p, out=np.full(p.shape, -np.inf), where=p > 0)
        scores = estimator._scores(X)
        found, game = self._play(scores, costs), estimator._game_of(costs, len(scores))
        reward = self._unit * scores.astype(np.float64, copy=False) + gains(game, found.p)
        return with_largest(log_softmax(reward / self._mu, axis=1), self._most_probable(scores, found, costs))


def with_largest(q: np.ndarray, best: np.ndarray | None) -> np.ndarray:
    """``q`` (n, k), or logarithms, with the entries ``best`` raised above all others by no more than rounding.

    Which of several equal entries is the largest as computed is an accident. Made to be the one that is predicted, both
    say the same.
    """
    if best is not None:
        own = np.take_along_axis(q, best[:, None], axis=1)
        np.put_along_axis(q, best[:, None], -np.inf, axis=1)
        others = q.max(axis=1, keepdims=True)
        raised = np.nextafter(others, np.inf, dtype=q.dtype)
        np.put_along_axis(q, best[:, None], np.where(own > others, own, raised), axis=1)
    return q
