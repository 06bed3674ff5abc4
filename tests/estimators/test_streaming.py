"""``partial_fit``: batches of any size lead to the optimum of what they hold together."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris

from nashlearn import NashAbstainer, NashClassifier, NashOrdinalClassifier, games
from nashlearn.training import Problem


def lopsided(k):
    return games.cost(np.array([[0.0, 1.0, 4.0], [20.0, 0.0, 1.0], [3.0, 1.0, 0.0]])[:, :k])


ESTIMATORS = [
    NashClassifier(alpha=1e-2),
    NashClassifier(alpha=1e-2, smoothing=0.0),
    NashClassifier("squared", alpha=1e-2, smoothing=0.0),
    NashClassifier(lopsided, alpha=1e-2, smoothing=0.3),
    NashAbstainer(0.3, alpha=1e-2),
    NashAbstainer(0.3, alpha=1e-2, smoothing=0.0),
    NashOrdinalClassifier(alpha=1e-2),
    NashOrdinalClassifier(alpha=1e-2, smoothing=0.0),
]


def stream(n=2000, d=5, seed=0):
    """Three noisy grades along a direction, features in very different units."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.digitize(X[:, 0] + 0.5 * X[:, 1] + 0.6 * rng.standard_normal(n), [-0.5, 0.7])
    return X * np.array([1.0, 100.0, 0.01, 1.0, 10.0]) + 0.1, y


def objective(model, X, y):
    """The objective of the weights of a model on data, by the training problem itself."""
    setting = model._game_and_scores(model.classes_, X.shape[1])
    codes, alpha = np.searchsorted(model.classes_, y), model.alpha / setting.unit
    problem = Problem(X, codes, np.full(len(y), 1.0 / len(y)), alpha, setting.game, setting.design)
    w = model._stream.average
    loss = problem.evaluate(w.ravel(), setting.mu).loss
    return (loss + 0.5 * alpha * np.square(w).sum()) / setting.unit


def named(estimator):
    """The same in every process, where a function's address is not."""
    return re.sub(r" at 0x\w+", "", repr(estimator))


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=named)
def test_the_objective_approaches_the_optimum(estimator):
    X, y = stream()
    best = clone(estimator).fit(X, y).objective_
    model, rng, excess = clone(estimator), np.random.default_rng(0), []
    for _ in range(8):
        for part in np.array_split(rng.permutation(len(y)), 4):
            model.partial_fit(X[part], y[part], classes=[0, 1, 2])
        excess.append(objective(model, X, y) / best - 1.0)
    assert min(excess) >= -1e-9
    assert excess[-1] < 0.02 and excess[-1] < excess[0] / 2


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=named)
def test_how_rows_are_cut_stored_or_saved_changes_nothing(estimator):
    X, y = stream(320)
    whole = clone(estimator).partial_fit(X, y, classes=[0, 1, 2])
    parts = clone(estimator)
    for start in range(0, 320, 80):
        parts.partial_fit(sp.csr_matrix(X[start : start + 80]), y[start : start + 80], classes=[2, 1, 0])
        parts = pickle.loads(pickle.dumps(parts))
    assert np.allclose(whole.coef_, parts.coef_, rtol=1e-9) and np.allclose(whole.intercept_, parts.intercept_)
    assert whole.n_iter_ == parts.n_iter_ == 40


def test_classes_that_have_not_come_yet_are_known():
    X, y = load_iris(return_X_y=True)
    model = NashClassifier().partial_fit(X[:50], y[:50], classes=[0, 1, 2])  # one label only
    assert list(model.classes_) == [0, 1, 2] and model.coef_.shape == (3, 4)
    order = np.random.default_rng(0).permutation(150)
    for _ in range(40):
        model.partial_fit(X[order], y[order])
    assert model.score(X, y) > 0.9


def test_no_certificate_is_claimed_and_fit_ends_the_stream():
    X, y = stream(300)
    model = NashClassifier().partial_fit(X, y, classes=[0, 1, 2])
    assert np.isnan([model.dual_gap_, model.objective_, model.worst_case_risk()]).all()
    assert model.fit(X, y).dual_gap_ <= model.tol


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=named)
@pytest.mark.parametrize("k", [2, 3])
def test_a_stream_goes_on_from_what_was_fitted(estimator, k):
    X, y = stream(1000)
    y = y.clip(max=k - 1)
    model = clone(estimator).fit(X, y)
    best = model.objective_
    model.partial_fit(X, y)
    assert objective(model, X, y) <= 1.1 * best
    assert objective(clone(estimator).partial_fit(X, y, classes=range(k)), X, y) > objective(model, X, y)


def test_weights_count_as_said():
    X, y = stream(800)
    plain, weighted = NashClassifier(), NashClassifier(class_weight={0: 0.0, 1: 2.0})
    keep = y > 0
    weighted.partial_fit(X, y, classes=[0, 1, 2], sample_weight=np.full(800, 0.5))
    plain.partial_fit(X, y, classes=[0, 1, 2], sample_weight=np.where(keep, np.where(y == 1, 1.0, 0.5), 0.0))
    assert np.allclose(plain.coef_, weighted.coef_)


def test_rows_without_weight_change_nothing():
    X, y = stream(160)
    model = NashClassifier(alpha=1.0).partial_fit(X, y, classes=[0, 1, 2])
    again = pickle.loads(pickle.dumps(model))
    part = slice(0, 8)  # what is read together
    model.partial_fit(X[part], y[part])
    again.partial_fit(np.tile(X[part], (3, 1)), np.tile(y[part], 3), sample_weight=np.repeat([0.0, 0.0, 1.0], 8))
    # Sums of products may differ in their last bit where rows lie elsewhere in memory.
    assert np.allclose(model._stream.w, again._stream.w, rtol=1e-12, atol=1e-14)
    assert np.allclose(model._stream.squares, again._stream.squares, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "classes must be passed on the first call"),
        ({"classes": [1]}, "at least two distinct labels"),
        ({"classes": [0, 1]}, "y holds the label 2, which is not among the classes"),
        ({"classes": [0, 1, 2], "sample_weight": -np.ones(60)}, "Negative values"),
    ],
)
def test_refusals_name_what_was_wrong(arguments, message):
    X, y = stream(60)
    with pytest.raises(ValueError, match=message):
        NashClassifier().partial_fit(X, y, **arguments)


def test_other_classes_features_kernels_and_balanced_weights_are_refused():
    X, y = stream(60)
    model = NashClassifier().partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="classes must be those of the first call"):
        model.partial_fit(X, y, classes=[0, 1, 2, 3])
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :2], y)
    with pytest.raises(ValueError, match="class_weight must be None or a dict"):
        NashClassifier(class_weight="balanced").partial_fit(X, y, classes=[0, 1, 2])
    assert not hasattr(NashClassifier(kernel="rbf"), "partial_fit")


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=named)
def test_a_feature_that_a_batch_lacks_keeps_its_weights(estimator):
    X, y = stream(300)
    model = clone(estimator).fit(X, y)
    before, last = model.coef_[:, 3].copy(), X[:, 3].copy()
    X[:, 3] = 0.0
    model.partial_fit(X[:40], y[:40])
    assert np.allclose(model.coef_[:, 3], before)
    X[:, 3] = last
    model.partial_fit(X, y)
    assert np.isfinite(model.coef_).all() and np.mean(model.predict(X) == y) > 0.5


def test_a_stream_after_a_kernel_starts_anew():
    X, y = stream(100)
    model = NashClassifier().fit(X, y).set_params(kernel="rbf").fit(X, y)
    assert not hasattr(model, "coef_") and hasattr(model, "dual_coef_")
    model.set_params(kernel=None).partial_fit(X, y)
    fresh = NashClassifier().partial_fit(X, y, classes=[0, 1, 2])
    assert np.array_equal(model.coef_, fresh.coef_)
    assert not {"dual_coef_", "support_", "support_vectors_"} & vars(model).keys()
