"""Weights count as repetitions; the form in which data come changes nothing and is not copied."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import nashlearn.estimators._base as base
from nashlearn import NashAbstainer, NashClassifier, NashOrdinalClassifier

COST = [[0.0, 1.0, 4.0], [2.0, 0.0, 1.0], [3.0, 1.0, 0.0], [1.0, 0.7, 1.0]]
ESTIMATORS = [
    NashClassifier(alpha=1e-2, tol=1e-9, max_iter=5000),
    NashClassifier("absolute", alpha=1e-2, tol=1e-9, max_iter=5000),
    NashClassifier("squared", alpha=1e-2, tol=1e-9, max_iter=5000),
    NashClassifier(COST, alpha=1e-2, tol=1e-9, max_iter=5000),
    NashOrdinalClassifier(alpha=1e-2, tol=1e-9, max_iter=5000),
    NashAbstainer(0.3, alpha=1e-2, tol=1e-9, max_iter=5000),
    NashClassifier(alpha=1e-2, tol=1e-9, max_iter=5000, smoothing=0.0),
    NashClassifier(COST, alpha=1e-2, tol=1e-9, max_iter=5000, smoothing=0.0),
    NashOrdinalClassifier(alpha=1e-2, tol=1e-9, max_iter=5000, smoothing=0.0),
]
each = pytest.mark.parametrize(
    "estimator", ESTIMATORS, ids=lambda e: f"{type(e).__name__}-{getattr(e, 'loss', '')}-{e.smoothing}"
)


def small(seed=0, n=50, d=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.digitize(X[:, 0] + 0.5 * rng.normal(size=n), [-0.5, 0.5])
    return X, y, rng


def assert_same(one, other, tol=1e-7):
    """Equal objectives, and weights as close as alpha's strong convexity then makes them."""
    assert abs(one.objective_ - other.objective_) <= tol * one.objective_
    apart = np.linalg.norm(one.coef_ - other.coef_) ** 2 + np.linalg.norm(one.intercept_ - other.intercept_) ** 2
    certified = (one.dual_gap_ + other.dual_gap_ + tol) * one.objective_
    assert apart <= 2 * 4 * certified / one.alpha


@each
def test_integer_weights_are_repetitions(estimator):
    X, y, rng = small()
    times = rng.integers(1, 4, y.size)
    weighted = clone(estimator).fit(X, y, sample_weight=times)
    repeated = clone(estimator).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert_same(weighted, repeated)
    assert abs(weighted.worst_case_risk(0.3) - repeated.worst_case_risk(0.3)) <= 1e-4


@each
def test_class_weights_are_sample_weights(estimator):
    X, y, _ = small()
    by_class = {0: 0.5, 1: 3.0, 2: 1.0}
    weight = np.array([by_class[c] for c in y])
    assert_same(
        clone(estimator).set_params(class_weight=by_class).fit(X, y), clone(estimator).fit(X, y, sample_weight=weight)
    )
    balanced = (y.size / (3 * np.bincount(y)))[y]
    assert_same(
        clone(estimator).set_params(class_weight="balanced").fit(X, y),
        clone(estimator).fit(X, y, sample_weight=balanced),
    )
    both = clone(estimator).set_params(class_weight=by_class).fit(X, y, sample_weight=balanced)
    assert_same(both, clone(estimator).fit(X, y, sample_weight=balanced * weight))


@each
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_weight_zero_is_absence(estimator, form):
    X, y, rng = small()
    kept = rng.random(y.size) < 0.6
    X_far = np.where(kept[:, None], X, 1e3)
    assert_same(
        clone(estimator).fit(form(X_far), y, sample_weight=kept.astype(float)),
        clone(estimator).fit(form(X[kept]), y[kept]),
    )


@each
def test_a_common_factor_of_the_weights_changes_nothing(estimator):
    X, y, rng = small()
    weight = rng.exponential(size=y.size)
    assert_same(
        clone(estimator).fit(X, y, sample_weight=weight), clone(estimator).fit(X, y, sample_weight=1e6 * weight)
    )


@each
def test_a_class_that_only_weightless_rows_have_stays_a_class(estimator):
    X, y, _ = small()
    model = clone(estimator).fit(X, y, sample_weight=(y != 1).astype(float))
    assert list(model.classes_) == [0, 1, 2]
    assert model.dual_gap_ <= model.tol
    assert np.isfinite(model.decision_function(X)).all()


@each
def test_the_same_seed_gives_the_same_weights(estimator):
    X, y, _ = small(n=200)
    one, other = (clone(estimator).set_params(random_state=3, tol=1e-3).fit(X, y) for _ in range(2))
    assert np.array_equal(one.coef_, other.coef_)
    assert np.array_equal(one.intercept_, other.intercept_)
    assert (one.n_iter_, one.objective_, one.dual_gap_) == (other.n_iter_, other.objective_, other.dual_gap_)


@each
def test_any_layout_of_the_data(estimator):
    X, y, _ = small()
    model = clone(estimator).fit(X, y)
    wide = np.zeros((X.shape[0], 2 * X.shape[1]))
    wide[:, ::2] = X
    large = sp.csr_array(X)
    large.indices, large.indptr = large.indices.astype(np.int64), large.indptr.astype(np.int64)
    forms = {
        "fortran": np.asfortranarray(X),
        "strided": wide[:, ::2],
        "csr": sp.csr_array(X),
        "csr matrix": sp.csr_matrix(X),
        "int64 indices": large,
        "csc": sp.csc_array(X),
        "list": X.tolist(),
        "big-endian": X.astype(">f8"),
    }
    for name, form in forms.items():
        other = clone(estimator).fit(form, y)
        assert abs(other.objective_ - model.objective_) <= 1e-7 * model.objective_, name
        error = np.sqrt(2 * 3e-7 * model.objective_ / model.alpha) * np.linalg.norm(np.hypot(X, 1), axis=1).max()
        assert np.abs(other.decision_function(form) - model.decision_function(X)).max() <= error, name


@each
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_single_precision_is_nearly_double(estimator, form):
    X, y, _ = small()
    X = X.astype(np.float32)
    single, double = clone(estimator).fit(form(X), y), clone(estimator).fit(form(X.astype(np.float64)), y)
    assert_same(single, double, tol=1e-7)
    assert single.predict_proba(form(X)).sum(axis=1) == pytest.approx(1, abs=1e-5)
    assert np.allclose(single.decision_function(form(X)), double.decision_function(X.astype(np.float64)), atol=1e-3)


@each
@pytest.mark.parametrize("form", [np.array, sp.csr_array], ids=["dense", "csr"])
def test_data_are_read_in_place(estimator, form, monkeypatch):
    X, y, _ = small()
    X = form(X)
    seen = []
    problem = base.Problem

    class Watched(problem):
        def __init__(self, X, *args):
            seen.append(X)
            super().__init__(X, *args)

    for module in ("_base", "ordinal"):
        monkeypatch.setattr(f"nashlearn.estimators.{module}.Problem", Watched, raising=False)
    parts = lambda A: [A.data, A.indices, A.indptr] if sp.issparse(A) else [A]  # noqa: E731
    before = [part.copy() for part in parts(X)]
    for part in parts(X):
        part.flags.writeable = False
    model = clone(estimator).fit(X, y)
    model.predict_proba(X)
    assert len(seen) == 1
    for mine, theirs, was in zip(parts(X), parts(seen[0]), before, strict=True):
        assert np.shares_memory(mine, theirs)
        assert np.array_equal(mine, was)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("form", [np.ascontiguousarray, sp.csr_array], ids=["dense", "csr"])
def test_training_makes_nothing_of_the_size_of_the_data(form, dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50_000, 200)).astype(dtype)
    y = rng.integers(0, 2, 50_000)
    X[:, 0] += y
    X = form(X)
    size = sum(part.nbytes for part in ([X.data, X.indices, X.indptr] if sp.issparse(X) else [X]))
    model = NashClassifier(max_iter=3)
    for stage in ("compile", "measure"):
        tracemalloc.start()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X[:500] if stage == "compile" else X, y[:500] if stage == "compile" else y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < size


@each
@pytest.mark.parametrize("n", [50, 300])
def test_warm_starts(estimator, n):
    X, y, _ = small(n=n)
    model = clone(estimator).set_params(warm_start=True, tol=1e-6).fit(X, y)
    objective = model.objective_
    model.fit(X, y)
    assert abs(model.objective_ - objective) <= 2e-6 * objective
    for alpha in (1e-1, 1e-3):
        model.set_params(alpha=alpha).fit(X, y)
        cold = clone(estimator).set_params(alpha=alpha, tol=1e-6).fit(X, y)
        assert model.dual_gap_ <= 1e-6
        assert abs(model.objective_ - cold.objective_) <= 2e-6 * cold.objective_
    for rows in (n - 7, n):
        model.fit(X[:rows], y[:rows])
        cold = clone(estimator).set_params(alpha=1e-3, tol=1e-6).fit(X[:rows], y[:rows])
        assert abs(model.objective_ - cold.objective_) <= 2e-6 * cold.objective_
    narrow = clone(estimator).set_params(alpha=1e-3, tol=1e-6).fit(X[:, :2], y)
    assert abs(model.fit(X[:, :2], y).objective_ - narrow.objective_) <= 2e-6 * narrow.objective_


@each
def test_a_warm_start_saves_iterations(estimator):
    """On a problem too large to be polished beyond tol, where iterations are spent on rounding."""
    X, y, _ = small(n=12_000)
    model = clone(estimator).set_params(warm_start=True, tol=1e-4, random_state=0).fit(X, y)
    cold = model.n_iter_
    assert model.fit(X, y).n_iter_ < cold
    assert model.dual_gap_ <= 1e-4


def test_a_warm_start_survives_other_classes():
    X, y, _ = small()
    model = NashClassifier(warm_start=True, tol=1e-6).fit(X, y)
    model.fit(X, np.minimum(y, 1))
    cold = NashClassifier(tol=1e-6).fit(X, np.minimum(y, 1))
    assert abs(model.objective_ - cold.objective_) <= 2e-6 * cold.objective_
