"""Golden values of ``moment_radius``: ``s (1 + sqrt(log(1 / (1 - c))))``, ``s^2 = sum_i omega_i^2 D_i^2 / 2``."""

from __future__ import annotations

import numpy as np
import pytest

from nashlearn import NashAbstainer, NashClassifier, NashOrdinalClassifier

X = np.array([[3.0, 0.0], [0.0, 4.0], [1.0, 2.0], [0.0, 0.0], [2.0, 1.0], [1.0, 1.0]])
Y = np.array([0, 1, 2, 0, 1, 2])
WEIGHT = np.array([1.0, 2.0, 3.0, 1.0, 2.0, 3.0])
NORMS = np.array([9.0, 16.0, 5.0, 0.0, 5.0, 2.0])  # |x|^2
# Squared distances of the moments of two labels: 2 (|x|^2 + c^2), or m^2 |x|^2 + m c^2 for m thresholds, where c is the
# constant feature: 10, or 1 beside a kernel or in the exact game, unless it is given.
CASES = {
    "classifier": (NashClassifier(), 2 * (NORMS + 100)),
    "exact": (NashClassifier(smoothing=0.0), 2 * (NORMS + 1)),
    "constant": (NashClassifier(intercept_scaling=3.0), 2 * (NORMS + 9)),
    "no intercept": (NashClassifier("absolute", fit_intercept=False), 2 * NORMS),
    "costs": (NashClassifier([[0.0, 1.0, 4.0], [2.0, 0.0, 1.0], [3.0, 1.0, 0.0]]), 2 * (NORMS + 100)),
    "abstainer": (NashAbstainer(0.3, intercept_scaling=1.0), 2 * (NORMS + 1)),
    "ordinal": (NashOrdinalClassifier(), 4 * NORMS + 200),
    "exact ordinal": (NashOrdinalClassifier(smoothing=0.0, intercept_scaling=2.0), 4 * NORMS + 8),
    "kernel": (NashClassifier(kernel="rbf", gamma=1.0), 2 * (np.ones(6) + 1)),
    "kernel and constant": (NashClassifier(kernel="rbf", gamma=1.0, intercept_scaling=3.0), 2 * (np.ones(6) + 9)),
    "linear kernel": (NashClassifier(kernel="poly", degree=1, gamma=1.0, smoothing=1.0), 2 * (NORMS + 1)),
    "ordinal kernel": (NashOrdinalClassifier(kernel="rbf", gamma=1.0), 4 * np.ones(6) + 2),
    "tempered ordinal kernel": (
        NashOrdinalClassifier(kernel="rbf", gamma=1.0, smoothing=1.0, intercept_scaling=3.0), 4 * np.ones(6) + 18,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_radii_are_those_of_the_formula(name):
    model, squares = CASES[name]
    model.set_params(alpha=0.1)
    for weight in (WEIGHT, 5 * WEIGHT, None):
        model.fit(X, Y, sample_weight=weight)
        omega = np.full(6, 1 / 6) if weight is None else weight / weight.sum()
        spread = np.sqrt(omega**2 @ squares / 2)
        for confidence in (0.5, 0.95):
            radius = spread * (1 + np.sqrt(np.log(1 / (1 - confidence))))
            assert model.moment_radius(confidence) == pytest.approx(radius, rel=1e-12)


def test_a_radius_by_hand():
    """Two rows at 0 and the constant 1: D² = 2, s² = 2 (1/4) 2 / 2 = 1/2, log(1 / (1 - c)) = 4 at c = 1 - e⁻⁴."""
    for smoothing in (0.0, 1.0):
        model = NashClassifier(alpha=0.1, intercept_scaling=1.0, smoothing=smoothing).fit([[0.0], [0.0]], [0, 1])
        assert model.moment_radius(1 - np.exp(-4.0)) == pytest.approx(3 / np.sqrt(2))
