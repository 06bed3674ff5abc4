"""Kernel training reaches the optimum of the same program in explicit features, whatever the kernel comes as."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from qp_reference import per_class_optimum, threshold_optimum
from sklearn.base import clone
from sklearn.metrics.pairwise import laplacian_kernel, linear_kernel, polynomial_kernel, rbf_kernel

from nashlearn import NashAbstainer, NashClassifier, NashOrdinalClassifier

RNG = np.random.default_rng(3)
X = RNG.normal(size=(45, 3))
Y = (X[:, 0] + 0.7 * RNG.normal(size=45) > 0).astype(int) + (X[:, 1] > 0.3)
ALPHA, TOL, WIDTH = 3e-3, 1e-8, 0.4
COSTS = np.array([[0.0, 3.0, 5.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0], [0.7, 0.8, 0.9]])

MODELS = {
    "zero_one": NashClassifier("zero_one"),
    "absolute": NashClassifier("absolute"),
    "squared": NashClassifier("squared"),
    "cost": NashClassifier(COSTS),
    "abstain": NashAbstainer(0.3),
    "without_intercept": NashClassifier("zero_one", fit_intercept=False),
}
KERNELS = {
    "rbf": ({"kernel": "rbf", "gamma": WIDTH}, lambda A, B: rbf_kernel(A, B, gamma=WIDTH)),
    "poly": (
        {"kernel": "poly", "gamma": WIDTH, "degree": 2, "coef0": 1.0},
        lambda A, B: polynomial_kernel(A, B, degree=2, gamma=WIDTH, coef0=1.0),
    ),
    "laplacian": ({"kernel": "laplacian", "gamma": WIDTH}, lambda A, B: laplacian_kernel(A, B, gamma=WIDTH)),
}


def fitted(model, data=X, **options):
    """A model whose thresholds and intercepts see the constant feature 1, with a kernel or without."""
    own = {"alpha": ALPHA, "tol": TOL, "random_state": 0, "max_iter": 3000, "smoothing": 0.0, "intercept_scaling": 1.0}
    return clone(model).set_params(**{**own, **options}).fit(data, Y)


def features(K):
    """Rows whose inner products are ``K``."""
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0.0))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", MODELS)
def test_optimum_is_that_of_explicit_features(name, kernel):
    options, pairs = KERNELS[kernel]
    model = fitted(MODELS[name], **options)
    bias = float(model.fit_intercept)
    omega = np.full(Y.size, 1 / Y.size)
    costs = model._game.costs / model._game.costs.max()  # of the loss that estimators normalise
    optimum = per_class_optimum(features(pairs(X, X)), Y, omega, ALPHA, costs, bias)
    assert abs(model.objective_ - optimum) <= 1e-6 * optimum
    assert model.objective_ * (1 - model.dual_gap_) <= optimum * (1 + 1e-7)


@pytest.mark.parametrize("kernel", KERNELS)
def test_ordinal_optimum_is_that_of_explicit_features(kernel):
    options, pairs = KERNELS[kernel]
    model = fitted(NashOrdinalClassifier(), **options)
    optimum, thresholds = threshold_optimum(features(pairs(X, X)), Y, np.full(Y.size, 1 / Y.size), ALPHA, 3)
    assert abs(model.objective_ - optimum) <= 1e-6 * optimum
    assert np.abs(model.thresholds_ - thresholds).max() <= np.sqrt(1e-6 * optimum / ALPHA)


@pytest.mark.parametrize("name", [*MODELS, "ordinal"])
def test_named_callable_and_precomputed_agree(name):
    model = MODELS.get(name, NashOrdinalClassifier())
    options, pairs = KERNELS["rbf"]
    named, called = fitted(model, **options), fitted(model, kernel=pairs)
    given = fitted(model, pairs(X, X), kernel="precomputed")
    new = RNG.normal(size=(20, 3))
    for other, scores in ((called, called.decision_function(new)), (given, given.decision_function(pairs(new, X)))):
        assert abs(other.objective_ - named.objective_) <= 2 * TOL * named.objective_
        # Strong convexity: both lie within sqrt(2 gap P / alpha) of the optimum, in the norm that bounds scores.
        near = 2 * np.sqrt(2 * TOL * named.objective_ / ALPHA * (1 + pairs(X, X).max()) * 4)
        assert np.abs(scores - named.decision_function(new)).max() <= near


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 3.0])
@pytest.mark.parametrize("name", [*MODELS, "ordinal"])
def test_linear_kernel_is_linear_training(name, smoothing):
    model = MODELS.get(name, NashOrdinalClassifier())
    plain = fitted(model, smoothing=smoothing)
    kernel = fitted(model, smoothing=smoothing, kernel=linear_kernel)
    assert abs(plain.objective_ - kernel.objective_) <= 2 * TOL * plain.objective_
    if smoothing:  # else strategies are not unique
        assert np.abs(plain.predict_proba(X) - kernel.predict_proba(X)).max() <= 1e-2
    assert kernel.worst_case_risk(0.5) == pytest.approx(plain.worst_case_risk(0.5), rel=1e-3)
    assert kernel.moment_radius() == pytest.approx(plain.moment_radius())


def test_a_cache_of_few_rows_changes_nothing():
    big = RNG.normal(size=(400, 4))
    labels = (big[:, 0] * big[:, 1] > 0).astype(int) + (big[:, 2] > 1)
    plenty = NashClassifier(kernel="rbf", alpha=1e-3, tol=1e-6, random_state=0).fit(big, labels)
    scarce = NashClassifier(kernel="rbf", alpha=1e-3, tol=1e-6, random_state=0, cache_size=1e-3, max_iter=5000)
    scarce.fit(big, labels)
    assert plenty.support_.size > 64  # the least capacity: the rows cannot all be kept
    assert abs(plenty.objective_ - scarce.objective_) <= 2e-6 * plenty.objective_


def test_predictions_need_the_support_vectors_only():
    model = fitted(MODELS["zero_one"], kernel="rbf", gamma=WIDTH)
    new = RNG.normal(size=(10, 3))
    by_hand = rbf_kernel(new, model.support_vectors_, gamma=WIDTH) @ model.dual_coef_.T + model.intercept_
    assert np.allclose(model.decision_function(new), by_hand)
    assert np.array_equal(model.support_vectors_, X[model.support_])
    assert model.support_.size < Y.size


def test_sparse_rows_and_zero_weights():
    dense, sparse = (fitted(MODELS["zero_one"], data, kernel="rbf", gamma=WIDTH) for data in (X, sp.csr_matrix(X)))
    assert abs(dense.objective_ - sparse.objective_) <= 2 * TOL * dense.objective_
    keep = np.arange(Y.size) % 3 > 0
    for kernel, data in (("rbf", X), ("precomputed", rbf_kernel(X, gamma=WIDTH))):
        make = clone(MODELS["zero_one"]).set_params(kernel=kernel, gamma=WIDTH, alpha=ALPHA, tol=TOL, random_state=0)
        part = data[keep][:, keep] if kernel == "precomputed" else data[keep]
        fewer, weighted = clone(make).fit(part, Y[keep]), clone(make).fit(data, Y, sample_weight=keep.astype(float))
        assert abs(fewer.objective_ - weighted.objective_) <= 2 * TOL * fewer.objective_
        assert np.all(keep[weighted.support_])


@pytest.mark.parametrize(
    ("options", "data", "message"),
    [
        ({"kernel": "cosine"}, X, "kernel must be None or 'linear', one of"),
        ({"kernel": "precomputed"}, X, "square Gram matrix"),
        ({"kernel": "precomputed"}, -np.eye(45), "positive semidefinite"),
        ({"kernel": lambda A, B: -rbf_kernel(A, B)}, X, "positive semidefinite"),
        ({"kernel": lambda A, B: rbf_kernel(A, B) + A[:, :1]}, X, "symmetric"),
        ({"kernel": lambda A, B: np.ones(3)}, X, "kernel returned shape"),
        ({"kernel": "poly", "coef0": -1.0}, X, "coef0 >= 0"),
        ({"kernel": "poly", "degree": 1.5}, X, "integer degree"),
        ({"kernel": "rbf", "gamma": 0.0}, X, "gamma must be"),
        ({"kernel": "rbf", "gamma": "wide"}, X, "gamma must be"),
        ({"kernel": "rbf", "gamma": None}, X, "gamma must be"),
        ({"kernel": "poly", "degree": "two"}, X, "integer degree"),
        ({"kernel": "rbf", "cache_size": 0}, X, "cache_size must be"),
    ],
)
def test_kernels_that_cannot_be(options, data, message):
    with pytest.raises(ValueError, match=message):
        NashClassifier(**options).fit(data, Y)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kernel", [linear_kernel, rbf_kernel])
def test_centred_kernels_without_intercept_certify_nothing_false(kernel, seed):
    """What examples have in common is nothing but rounding then, and dividing by it made coefficients of any size."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(40, 3)), np.r_[:3, rng.integers(0, 3, 37)]
    K = kernel(X)
    K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    options = {"kernel": "precomputed", "fit_intercept": False, "smoothing": 0.0, "alpha": 1e-2, "random_state": 0}
    model = NashClassifier(tol=1e-3, **options).fit(K, y)
    closer = NashClassifier(tol=1e-7, **options).fit(K, y)
    assert 0.0 < closer.objective_ <= model.objective_ * (1.0 + 1e-9)
    assert model.objective_ * (1.0 - model.dual_gap_) <= closer.objective_ * (1.0 + 1e-9)
    assert max(model.dual_gap_ / 1e-3, closer.dual_gap_ / 1e-7) <= 1.0
