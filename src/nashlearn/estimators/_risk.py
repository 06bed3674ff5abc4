"""Bounds of what the answers of an estimator cost for other labels at the inputs that it was trained on."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nashlearn.estimators._parameters import number
from nashlearn.training import Trained

__all__ = ["MomentRadius", "RiskNash"]


class MomentRadius:
    """Estimators that know how far the moments of their data may be from what they were drawn from."""

    _moment_spread: float

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


class RiskNash(MomentRadius):
    """Estimators of one label per row: ``worst_case_risk`` and ``moment_radius``."""

    def _keep_risk(self, trained: Trained, spread: float, risk: tuple[np.ndarray, np.ndarray] | None) -> None:
        """Keep what the bounds are made of, in costs."""
        unit: float = cast(Any, self)._unit
        if risk is None:
            loss = float(np.maximum(trained.loss, 0.0)) + trained.error  # rounding may make it negative
            risk = np.ones(1), np.array([unit * loss])
        self._sigma: np.ndarray = risk[0]
        self._risk_means: np.ndarray = risk[1]
        self._weight_norm = unit * trained.norm
        self._moment_spread = spread

    def worst_case_risk(self, radius: float = 0.0) -> float:
        """Bound on the cost of :meth:`strategy` for other labels at the same inputs: those that it was trained on.

        It says nothing about other inputs; what answers cost on new data, :meth:`certify` bounds.

        For every distribution of labels, given the training inputs, whose moments ``E[Phi(x)' y]`` lie within
        ``radius`` (Euclidean; with ``penalty="l1"`` by their largest difference) of those of the training data, with
        ``f_i`` the scores in units of the costs and ``w`` their weights,

            ``E cost(p, y) <= min_sigma mean_i (max_y (sigma f_i + L'p_i)_y - sigma f_{i, y_i}) + sigma radius |w|``,

        the minimum taken over some values of ``sigma`` that were chosen in training, 1 among them. At smoothing 0
        ``sigma`` is 1, and the mean that of the surrogate loss. With ``penalty="l1"``, ``|w|`` is the sum of absolute
        values: the norm dual to that of the moments.

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
        return float(np.min(self._risk_means + float(radius) * self._weight_norm * self._sigma))
