"""The estimators inside scikit-learn: its own checks, and the tools that users put around a classifier."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, make_classification
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from nashlearn import NashAbstainer, NashClassifier, NashOrdinalClassifier

# What is said of words for grades, and of values that are tried to be refused, is tested elsewhere.
pytestmark = [
    pytest.mark.filterwarnings("ignore:y holds words and no order"),
    pytest.mark.filterwarnings("ignore:alpha=100.0 is so large"),
    pytest.mark.filterwarnings("ignore:abstain_cost=.* is never worth paying"),
]

COST = [[0.0, 1.0, 4.0], [2.0, 0.0, 1.0], [3.0, 1.0, 0.0]]
SPECIES = ["setosa", "versicolor", "virginica"]
ESTIMATORS = [NashClassifier(), NashClassifier("squared"), NashOrdinalClassifier(), NashAbstainer(0.3)]
ESTIMATORS += [NashClassifier(smoothing=0.0), NashOrdinalClassifier(smoothing=0.0)]


def expected_failures(estimator) -> dict[str, str]:
    """Of grades the cheapest answer is a median, which need be neither the largest score nor the most probable label.

    The check wants all three to be the same.
    """
    exact = isinstance(estimator, NashOrdinalClassifier) and estimator.smoothing == 0
    if getattr(estimator, "loss", None) == "absolute" and not exact:
        return {"check_classifiers_train": "predict takes the median of ordered labels, not the most probable one"}
    return {}


def exact(estimator):
    """A copy without smoothing, at an ``alpha`` where no scores tie: predictions would depend on rounding."""
    return clone(estimator).set_params(smoothing=0.0, alpha=1e-3)


CHECKED = [NashClassifier(), NashOrdinalClassifier(), NashAbstainer()]
ALIKE = [NashClassifier("absolute"), NashAbstainer(0.2)]


@parametrize_with_checks([*CHECKED, *map(exact, CHECKED)], expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([*ALIKE, *map(exact, ALIKE)], expected_failed_checks=expected_failures)
def test_scikit_learn_checks_of_other_losses(estimator, check):
    check(estimator)


@pytest.fixture
def iris():
    X, y = load_iris(return_X_y=True)
    return X, np.array(SPECIES)[y]


def for_species(estimator):
    """A copy; one of grades is told that the order of the names is meant."""
    return clone(estimator).set_params(**({"order": SPECIES} if hasattr(estimator, "order") else {}))


def good(model, score):
    """Whether a score is that of a good model: an accuracy, or minus a loss of less than a tenth."""
    return score > 0.9 if getattr(model, "loss", None) == "zero_one" else -0.1 < score <= 0.0


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_grid_search_over_a_pipeline(estimator, iris):
    X, y = iris
    step = type(estimator).__name__.lower()
    pipeline = make_pipeline(StandardScaler(), for_species(estimator))
    search = GridSearchCV(pipeline, {f"{step}__alpha": [1e2, 1e-3]}, cv=3)
    search.fit(X, y)
    assert search.best_params_ == {f"{step}__alpha": 1e-3}
    assert good(estimator, search.best_score_)
    assert search.best_estimator_[-1].dual_gap_ <= search.best_estimator_[-1].tol


def test_grid_search_over_the_loss_itself(iris):
    X, y = iris
    search = GridSearchCV(NashClassifier(alpha=1e-2), {"loss": ["zero_one", "absolute", COST]}, cv=3).fit(X, y)
    losses = [NashClassifier(loss, alpha=1e-2) for loss in ("zero_one", "absolute", COST)]
    expected = [cross_val_score(model, X, y, cv=3).mean() for model in losses]
    assert np.allclose(search.cv_results_["mean_test_score"], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("estimator", [*ESTIMATORS, NashClassifier(COST), NashClassifier(alpha=0.1, warm_start=True)])
def test_clone_and_pickle(estimator, iris):
    X, y = iris
    model = for_species(estimator).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    for name in ("predict", "predict_proba", "predict_log_proba", "strategy", "decision_function"):
        assert np.array_equal(getattr(model, name)(X), getattr(again, name)(X))
    assert model.worst_case_risk(0.1) == again.worst_case_risk(0.1)
    fresh = clone(model).fit(X, y)
    assert abs(fresh.objective_ - model.objective_) <= 1e-9 * model.objective_


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_data_frames(library, estimator, iris):
    frames = pytest.importorskip(library)
    X, y = iris
    names = ["a", "b", "c", "d"]
    frame, labels = frames.DataFrame(dict(zip(names, X.T, strict=True))), frames.Series(list(y))
    plain = for_species(estimator).fit(X, y)
    model = for_species(estimator).fit(frame, labels)
    assert list(model.feature_names_in_) == names
    assert abs(model.objective_ - plain.objective_) <= 1e-9 * plain.objective_
    assert np.array_equal(model.predict(frame), plain.predict(X))
    assert model.task_loss(frame, labels) == plain.task_loss(X, y)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[names[::-1]])


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_sample_weight_is_routed(estimator, iris):
    X, y = iris
    weight = np.where(y == "setosa", 0.1, 3.0)
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False),
            for_species(estimator).set_fit_request(sample_weight=True),
        )
        routed = pipeline.fit(X, y, sample_weight=weight)[-1]
    direct = for_species(estimator).fit(StandardScaler().fit_transform(X), y, sample_weight=weight)
    unweighted = for_species(estimator).fit(StandardScaler().fit_transform(X), y)
    assert abs(routed.objective_ - direct.objective_) <= 1e-9 * direct.objective_
    assert abs(routed.objective_ - unweighted.objective_) > 1e-3 * direct.objective_


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
@pytest.mark.parametrize("labels", [[False, True], ["no", "yes"], [-3, 8], [1.0, 2.0]], ids=str)
def test_two_classes_of_any_kind(estimator, labels):
    X, y = make_classification(n_samples=120, n_features=6, random_state=0)
    y = np.array(labels)[y]
    model = clone(estimator).set_params(**({"order": labels} if hasattr(estimator, "order") else {})).fit(X, y)
    scores = model.decision_function(X)
    assert scores.shape == (120,)
    assert model.coef_.shape == LogisticRegression().fit(X, y).coef_.shape
    assert np.array_equal(model.predict(X), np.array(labels)[(scores > 0).astype(int)])
    assert np.mean(model.predict(X) == y) > 0.8
    assert model.score(X, y) > (0.8 if getattr(model, "loss", None) == "zero_one" else -0.2)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_meta_estimators(estimator, iris):
    X, y = iris
    own = for_species(estimator).set_params(alpha=1e-3)
    assert good(own, cross_val_score(own, X, y, cv=3).mean())
    calibrated = CalibratedClassifierCV(clone(own), cv=3).fit(X, y)
    assert np.allclose(calibrated.predict_proba(X).sum(axis=1), 1.0, atol=1e-12)
    assert calibrated.score(X, y) > 0.8
    of_codes = clone(estimator)  # these encode the labels before they train
    assert BaggingClassifier(of_codes, n_estimators=3, random_state=0).fit(X, y).score(X, y) > 0.85
    assert OneVsRestClassifier(of_codes).fit(X, y).score(X, y) > 0.6
    vote = VotingClassifier([("game", of_codes), ("log", LogisticRegression(max_iter=500))], voting="soft")
    assert vote.fit(X, y).score(X, y) > 0.9


def test_sparse_and_dense_inputs_of_predict_agree(iris):
    X, y = iris
    for estimator in ESTIMATORS:
        model = for_species(estimator).fit(sp.csr_array(X), y)
        assert np.allclose(model.decision_function(X), model.decision_function(sp.csr_array(X)), atol=1e-12)


def test_a_fit_is_silent_unless_it_is_asked_not_to_be(iris, capsys):
    X, y = iris
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        NashClassifier().fit(X, y)
    assert capsys.readouterr().out == ""
    model = NashClassifier(verbose=1).fit(X, y)
    assert f"objective {model.objective_:.8g}" in capsys.readouterr().out
