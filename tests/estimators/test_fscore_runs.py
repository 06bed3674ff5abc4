"""NashFScore as an estimator: formats, kernels, interrupts, checkpoints, files, and what scikit-learn expects."""

from __future__ import annotations

import warnings

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks
from test_fscore import sample

import nashlearn
from nashlearn import NashFScore

PROBABLE = {"check_classifiers_train": "answers are positive from half the F-score on, not from one half"}


@parametrize_with_checks(
    [NashFScore(), NashFScore(2.0, smoothing=0.0, alpha=1e-3), NashFScore(kernel="rbf", gamma=0.5, smoothing=1.0)],
    expected_failed_checks=lambda estimator: PROBABLE if estimator.smoothing else {},
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("average", ["macro", "micro"])
@pytest.mark.parametrize(
    "check",
    [
        estimator_checks.check_classifiers_multilabel_output_format_predict,
        estimator_checks.check_classifiers_multilabel_output_format_predict_proba,
        estimator_checks.check_classifiers_multilabel_output_format_decision_function,
        estimator_checks.check_classifiers_multilabel_representation_invariance,
    ],
)
def test_scikit_learn_checks_of_indicators(check, average):
    estimator = NashFScore(average=average)
    if check is estimator_checks.check_classifiers_multilabel_representation_invariance:
        X, Y = sample(60, labels=3)
        dense = estimator.fit(X, Y).predict(X)
        for other in (sp.csr_matrix(Y), Y.tolist(), Y.astype(bool), Y.astype(float)):
            np.testing.assert_array_equal(clone(estimator).fit(X, other).predict(X), dense)
        return
    check("NashFScore", estimator)


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
def test_sparse_rows_and_a_linear_kernel_are_the_same_model(smoothing):
    X, y = sample(60)
    options = {"smoothing": smoothing, "alpha": 0.02, "intercept_scaling": 1.0, "tol": 1e-7}
    dense = NashFScore(**options).fit(X, y)
    sparse = NashFScore(**options).fit(sp.csr_matrix(X), y)
    assert sparse.fixed_point_ == pytest.approx(dense.fixed_point_, abs=1e-6)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-4)
    kernel = NashFScore(kernel="poly", degree=1, gamma=1.0, **options).fit(X, y)
    gram = NashFScore(kernel="precomputed", **options).fit(X @ X.T, y)
    for other, rows in ((kernel, X), (gram, X @ X.T)):
        assert other.fixed_point_ == pytest.approx(dense.fixed_point_, abs=1e-4)
        np.testing.assert_allclose(other.decision_function(rows), dense.decision_function(X), atol=1e-3)
        for radius in (0.0, 0.05):
            assert other.worst_case_score(radius) == pytest.approx(dense.worst_case_score(radius), abs=1e-3)


def test_files_pickles_and_clones_are_the_same_model(tmp_path):
    X, Y = sample(60, labels=2)
    for model, y in (
        (NashFScore(0.5, smoothing=0.3, warm_start=True, random_state=0), Y[:, 0]),
        (NashFScore(average="micro", kernel="rbf", random_state=0), Y),
        (NashFScore(average="macro", metric="jaccard", random_state=0), Y),
    ):
        model.fit(X, y)
        nashlearn.save(model, tmp_path / "model")
        joblib.dump(model, tmp_path / "pickle")
        copies = (nashlearn.load(tmp_path / "model"), joblib.load(tmp_path / "pickle"), clone(model).fit(X, y))
        for copy in copies:
            np.testing.assert_array_equal(copy.predict_proba(X), model.predict_proba(X))
            np.testing.assert_array_equal(copy.predict(X), model.predict(X))
            assert copy.worst_case_score(0.02) == model.worst_case_score(0.02)
        assert nashlearn.persistence.read_info(tmp_path / "model")["certificate"]


@pytest.mark.parametrize("average", [None, "macro", "micro"])
def test_logarithms_are_those_of_probabilities_and_finite(average):
    X, Y = sample(60, labels=2)
    y = Y if average else Y[:, 0]
    far = np.vstack([X, 1e4 * X[:2]])
    for smoothing in (0.0, 0.3, 1.0):
        model = NashFScore(2.0, average=average, smoothing=smoothing).fit(X, y)
        found = model.predict_log_proba(far)
        np.testing.assert_allclose(np.exp(found), model.predict_proba(far), atol=1e-9)
        assert np.isfinite(found).all() or not smoothing


def test_searches_and_pipelines_maximise_the_metric():
    X, y = sample(120)
    search = GridSearchCV(make_pipeline(StandardScaler(), NashFScore()), {"nashfscore__alpha": [1e-3, 1e-1]}, cv=3)
    search.fit(X, y)
    assert 0.0 < search.best_score_ <= 1.0
    assert search.score(X, y) == search.best_estimator_.score(X, y)


def test_a_warm_start_takes_fewer_fits():
    X, y = sample(300)
    model = NashFScore(warm_start=True, tol=1e-6).fit(X, y)
    first, found = len(model.history_), model.fixed_point_
    model.fit(X, y)
    assert len(model.history_) == 1 < first
    assert model.fixed_point_ == pytest.approx(found, abs=1e-6)


def test_seeds_repeat_and_history_leads_to_the_fixed_point():
    X, y = sample(300)
    one, two = (NashFScore(random_state=0).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert one.history_[-1].t == one.fixed_point_
    assert abs(one.history_[-1].ratio - one.history_[-1].t) == pytest.approx(one.residual_)
    assert one.residual_ <= one.tol
    assert one.n_iter_ == sum(step.n_iter for step in one.history_)


def test_progress_names_the_fit(capsys):
    X, Y = sample(60, labels=2)
    NashFScore(average="macro", verbose=1).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert "fit 1, label 0" in lines[0]
    assert "lies between 0 and 1" in lines[0]
    assert any("fit 2, label 1" in line for line in lines)


class KilledError(Exception):
    pass


@pytest.mark.parametrize("average", ["macro", "micro"])
@pytest.mark.parametrize("after", [0.1, 0.4, 0.9])
def test_a_killed_training_goes_on(tmp_path, monkeypatch, average, after):
    X, Y = sample(80, labels=2)
    monkeypatch.setattr("nashlearn.training.checkpoint._SECONDS", 0.0)
    monkeypatch.setattr("nashlearn.training.checkpoint._SHARE", np.inf)
    calls = []
    whole = NashFScore(average=average, random_state=0, callback=calls.append).fit(X, Y)
    left = [max(1, int(after * len(calls)))]

    def kill(_):
        left[0] -= 1
        if not left[0]:
            raise KilledError

    path = tmp_path / "state"
    options = {"average": average, "random_state": 0, "checkpoint": path}
    with pytest.raises(KilledError):
        NashFScore(callback=kill, **options).fit(X, Y)
    again = []
    resumed = NashFScore(callback=again.append, **options).fit(X, Y)
    assert len(again) < len(calls)
    np.testing.assert_allclose(resumed.fixed_point_, whole.fixed_point_, atol=1e-9)
    np.testing.assert_allclose(resumed.coef_, whole.coef_, atol=1e-6)
    assert [file.name for file in tmp_path.iterdir()] == ["state"]
    done = []
    np.testing.assert_array_equal(NashFScore(callback=done.append, **options).fit(X, Y).coef_, resumed.coef_)
    assert not done
    finer = NashFScore(tol=1e-9, **options).fit(X, Y)
    assert finer.residual_ <= 1e-9
    with pytest.raises(ValueError, match="belongs to other data"):
        NashFScore(2.0, **options).fit(X, Y)


@pytest.mark.parametrize("at", [1, 7])
def test_an_interrupt_keeps_the_best_model(at):
    X, Y = sample(80, labels=3)
    count = iter(range(1, 10**6))

    def press(_):
        if next(count) == at:
            raise KeyboardInterrupt

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = NashFScore(average="macro", callback=press).fit(X, Y)
    assert any("interrupted" in str(one.message) for one in caught)
    assert any(issubclass(one.category, ConvergenceWarning) for one in caught)
    assert model.predict(X).shape == Y.shape
    assert 0.0 <= model.worst_case_score() <= 1.0


def test_time_ends_training_with_a_warning():
    X, Y = sample(80, labels=3)
    with pytest.warns(ConvergenceWarning, match="from the fixed point"):
        model = NashFScore(average="macro", max_time=1e-6).fit(X, Y)
    assert len(model.history_) == 3
    assert 0.0 <= model.worst_case_score() <= 1.0


@pytest.mark.parametrize("average", [None, "macro", "micro"])
def test_logarithms_are_those_of_the_probabilities(average):
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = (X > 0.5).astype(int) if average else (X[:, 0] > 0.5).astype(int)
    for smoothing in (0.0, 0.5):
        model = NashFScore(average=average, smoothing=smoothing).fit(X, y)
        found = model.predict_log_proba(X)
        np.testing.assert_allclose(np.exp(found), model.predict_proba(X), atol=1e-12)
        assert smoothing == 0.0 or np.isfinite(model.predict_log_proba(1e6 * X)).all()
