"""Diameters and moment radii of every design, worked out by hand: a factor of 2 or of its root would be noticed."""

from __future__ import annotations

import numpy as np
import pytest

from nashlearn import NashAbstainer, NashClassifier, NashOrdinalClassifier
from nashlearn.training.designs.rows import PerClass, Shared
from nashlearn.training.designs.span import SpanPerClass, SpanShared

# |x|^2 = 25 and 4.
X = np.array([[3.0, 4.0], [0.0, 2.0]])
SQUARES = np.array([25.0, 4.0])


def test_a_weight_vector_for_each_class():
    """Moments of label a are ``x`` (and the constant feature b) in row a: |(e_a - e_b) (x, b)'|^2 = 2 (|x|^2 + b^2)."""
    assert PerClass(3, 2, 1.0).squared_diameters(SQUARES).tolist() == [52.0, 10.0]  # 2 * 26, 2 * 5
    assert PerClass(3, 2, 0.0).squared_diameters(SQUARES).tolist() == [50.0, 8.0]
    assert PerClass(7, 2, 0.5).squared_diameters(SQUARES).tolist() == [50.5, 8.5]  # b^2 = 1/4; k does not matter
    # The kernel's diagonal holds |x|^2 + b^2 already.
    assert SpanPerClass(3).squared_diameters(SQUARES + 1.0).tolist() == [52.0, 10.0]


def test_one_direction_with_thresholds():
    """The highest label's vertex is m ones, the lowest's zeros: moments (m x, 1, ..., 1), |.|^2 = m^2 |x|^2 + m."""
    assert Shared(1, 2).squared_diameters(SQUARES).tolist() == [26.0, 5.0]  # 1 * 25 + 1, 1 * 4 + 1
    assert Shared(2, 2).squared_diameters(SQUARES).tolist() == [102.0, 18.0]  # 4 * 25 + 2, 4 * 4 + 2
    assert Shared(3, 2).squared_diameters(SQUARES).tolist() == [228.0, 39.0]  # 9 * 25 + 3, 9 * 4 + 3
    assert SpanShared(2).squared_diameters(SQUARES).tolist() == [102.0, 18.0]


ROWS = np.array([[3.0, 4.0], [0.0, 2.0], [1.0, 0.0], [0.0, 0.0]])  # |x|^2 = 25, 4, 1, 0
LABELS = np.array([0, 1, 2, 1])
CONFIDENCE = 1.0 - np.exp(-4.0)  # sqrt(log(1 / (1 - confidence))) = 2, so the radius is 3 s


def linear(A, B):
    return A @ B.T


# s^2 = sum_i omega_i^2 D_i^2 / 2.
CASES = {
    # omega = 1/4; D^2 = 2 (26, 5, 2, 1): s^2 = (26 + 5 + 2 + 1) / 16 = 34/16.
    "classes": (NashClassifier(), None, 34 / 16),
    "abstention": (NashAbstainer(0.3), None, 34 / 16),
    "costs": (NashClassifier(np.array([[0.0, 3.0, 1.0], [2.0, 0.0, 5.0]])), None, 34 / 16),
    "kernel": (NashClassifier(kernel=linear), None, 34 / 16),
    # Without the constant feature D^2 = 2 (25, 4, 1, 0): s^2 = 30/16.
    "no intercept": (NashClassifier(fit_intercept=False), None, 30 / 16),
    "kernel, no intercept": (NashClassifier(kernel=linear, fit_intercept=False), None, 30 / 16),
    # Two thresholds, D^2 = 4 |x|^2 + 2 = (102, 18, 6, 2): s^2 = 128 / 32 = 4.
    "grades": (NashOrdinalClassifier(), None, 4.0),
    "grades, kernel": (NashOrdinalClassifier(kernel=linear), None, 4.0),
    # Weights (1, 2, 0, 1), omega = (1/4, 1/2, 0, 1/4): s^2 = 26/16 + 5/4 + 1/16 = 47/16.
    "weights": (NashClassifier(), [1.0, 2.0, 0.0, 1.0], 47 / 16),
    "weights, kernel": (NashClassifier(kernel=linear), [1.0, 2.0, 0.0, 1.0], 47 / 16),
    # D^2/2 = (51, 9, 3, 1): s^2 = 51/16 + 9/4 + 1/16 = 88/16.
    "weights, grades": (NashOrdinalClassifier(), [1.0, 2.0, 0.0, 1.0], 88 / 16),
    # Class 1 counts twice: weights (1, 2, 1, 2), omega = (1, 2, 1, 2)/6: s^2 = (26 + 4*5 + 2 + 4*1)/36 = 52/36.
    "class weights": (NashClassifier(class_weight={0: 1.0, 1: 2.0, 2: 1.0}), None, 52 / 36),
}


@pytest.mark.parametrize("case", CASES)
def test_moment_radii(case):
    model, weight, squared = CASES[case]
    model.set_params(alpha=0.1, intercept_scaling=1.0).fit(ROWS, LABELS, sample_weight=weight)
    assert model.moment_radius(CONFIDENCE) == pytest.approx(3.0 * np.sqrt(squared), rel=1e-12)
    # At confidence 1 - 1/e the root is 1.
    assert model.moment_radius(1.0 - np.exp(-1.0)) == pytest.approx(2.0 * np.sqrt(squared), rel=1e-12)


@pytest.mark.parametrize("case", [case for case in CASES if "kernel" not in case])
def test_moment_radii_of_partitions(case):
    da = pytest.importorskip("dask.array")
    model, weight, squared = CASES[case]
    parts = [None if a is None else da.from_array(np.asarray(a), chunks=2) for a in (ROWS, LABELS, weight)]
    model.set_params(alpha=0.1, intercept_scaling=1.0).fit(*parts)
    assert model.moment_radius(CONFIDENCE) == pytest.approx(3.0 * np.sqrt(squared), rel=1e-12)


def test_the_slope_of_the_risk_is_the_norm_of_the_weights():
    """Two classes and one feature: weights (-v/2, v/2) and (-b/2, b/2) of the constant have |w|^2 = (v^2 + b^2) / 2."""
    x, y = np.array([[-2.0], [-1.0], [1.0], [3.0]]), np.array([0, 0, 1, 1])
    model = NashClassifier(alpha=0.1, smoothing=0.0, intercept_scaling=2.0).fit(x, y)
    v, b = model.coef_[0, 0], model.intercept_[0] / 2.0
    slope = model.worst_case_risk(1.0) - model.worst_case_risk(0.0)
    assert slope == pytest.approx(np.sqrt((v * v + b * b) / 2), rel=1e-9)
    # One threshold: scores w x + b, |w|^2 = w^2 + b^2, without halves.
    grades = NashOrdinalClassifier(alpha=0.1, smoothing=0.0, intercept_scaling=2.0).fit(x, y)
    slope = grades.worst_case_risk(1.0) - grades.worst_case_risk(0.0)
    assert slope == pytest.approx(np.hypot(grades.coef_[0, 0], grades.thresholds_[0] / 2.0), rel=1e-9)
