"""Certificates of the exact kernel problem from linear models on Nyström's features."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris
from sklearn.kernel_approximation import Nystroem

import nashlearn.nystroem as module
from nashlearn import NashAbstainer, NashClassifier, NashOrdinalClassifier
from nashlearn.nystroem import kernel_gap

WIDTH, ALPHA = 0.05, 1e-3
KERNELS = {
    "rbf": {"kernel": "rbf", "gamma": WIDTH},
    "poly": {"kernel": "poly", "gamma": WIDTH, "degree": 2, "coef0": 1.0},
    "laplacian": {"kernel": "laplacian", "gamma": WIDTH},
}


def digits():
    X, y = load_digits(return_X_y=True)
    return X[:250] / 16.0, y[:250]


def on_features(X, y, m, estimator=NashClassifier, kernel="rbf", **options):
    features = Nystroem(n_components=m, random_state=0, **KERNELS[kernel]).fit(X)
    made = estimator(alpha=ALPHA, intercept_scaling=3.0, **{"smoothing": 1.0, "tol": 1e-6, **options})
    return features, made.fit(features.transform(X), y)


def optimum(X, y, estimator=NashClassifier, kernel="rbf", **options):
    """Bounds of the exact kernel problem, by training on it."""
    options = {"smoothing": 1.0, "tol": 1e-7, **options}
    model = estimator(alpha=ALPHA, intercept_scaling=3.0, random_state=0, **KERNELS[kernel], **options).fit(X, y)
    return model.objective_ * (1.0 - model.dual_gap_), model.objective_


@pytest.mark.parametrize("smoothing", [0.1, 1.0])
@pytest.mark.parametrize("kernel", KERNELS)
def test_bounds_hold_the_optimum_of_the_kernel(kernel, smoothing):
    X, y = digits()
    low, high = optimum(X, y, kernel=kernel, smoothing=smoothing, tol=1e-5)
    gaps = []
    for m in (5, 60, 200):
        features, model = on_features(X, y, m, kernel=kernel, smoothing=smoothing, tol=1e-3)
        found = kernel_gap(model, features, X, y)
        assert found.bound <= high and low <= found.objective
        assert found.objective == pytest.approx(model.objective_, rel=1e-9)
        assert found.gap == pytest.approx((found.objective - found.bound) / found.objective)
        gaps.append(found.gap)
    assert gaps[0] > max(gaps[1:])


def test_few_landmarks_are_told_from_little_training():
    X, y = digits()
    few = kernel_gap(*reversed(on_features(X, y, 10)), X, y)
    assert 0.1 < few.residual < few.gap < 1.0
    all_rows = kernel_gap(*reversed(on_features(X, y, len(y))), X, y)
    assert all_rows.gap < 1e-4 and all_rows.residual < 1e-6
    low, high = optimum(X, y)
    assert all_rows.objective == pytest.approx(high, rel=1e-4)
    assert all_rows.bound == pytest.approx(low, rel=1e-4)


def test_the_bound_is_nearly_tight_with_many_landmarks():
    X, y = digits()
    features, model = on_features(X, y, 150)
    missing = 1.0 - optimum(X, y)[1] / model.objective_
    assert missing <= kernel_gap(model, features, X, y).gap <= 1.5 * missing


@pytest.mark.parametrize("estimator, options", [(NashAbstainer, {}), (NashClassifier, {"loss": "absolute"})])
def test_other_games_and_two_classes(estimator, options):
    X, y = load_iris(return_X_y=True)
    for some in (y < 3, y > 0):
        low, high = optimum(X[some], y[some], estimator, **options)
        features, model = on_features(X[some], y[some], 20, estimator, **options)
        found = kernel_gap(model, features, X[some], y[some])
        assert found.bound <= high and low <= found.objective


def test_blocks_and_sparse_rows_make_no_difference(monkeypatch):
    X, y = digits()
    features, model = on_features(X, y, 40)
    whole = kernel_gap(model, features, X, y)
    monkeypatch.setattr(module, "_BLOCK", 37)
    np.testing.assert_allclose(kernel_gap(model, features, X, y), whole, rtol=1e-9)
    np.testing.assert_allclose(kernel_gap(model, features, sp.csr_matrix(X), y), whole, rtol=1e-9)


def test_what_it_cannot_certify_is_refused():
    X, y = digits()
    features, model = on_features(X, y, 20)
    with pytest.raises(ValueError, match="linear in the features"):
        kernel_gap(NashClassifier(kernel="rbf", alpha=ALPHA).fit(X, y), features, X, y)
    with pytest.raises(ValueError, match="penalty"):
        kernel_gap(NashClassifier(penalty="l1", alpha=ALPHA).fit(features.transform(X), y), features, X, y)
    with pytest.raises(ValueError, match="smoothing above 0"):
        kernel_gap(NashClassifier(smoothing=0.0, alpha=ALPHA).fit(features.transform(X), y), features, X, y)
    with pytest.raises(TypeError, match="NashOrdinalClassifier"):
        kernel_gap(NashOrdinalClassifier(alpha=ALPHA).fit(features.transform(X), y), features, X, y)
    with pytest.raises(ValueError, match="inconsistent"):
        kernel_gap(model, features, X, y[:-1])
    with pytest.raises(ValueError, match="so far from the origin"):
        kernel_gap(model, features, X + 1e8, y)
