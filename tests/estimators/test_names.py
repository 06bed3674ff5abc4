"""Costs and grades by name: aligned to the classes whatever their order, and refused where a name is missing."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import nashlearn
from nashlearn import NashClassifier, NashOrdinalClassifier
from nashlearn.metrics import task_loss_scorer

NAMES = np.array(["low", "mid", "high"])  # sorted: high, low, mid
COSTS = {
    "low": {"low": 0.0, "mid": 1.0, "high": 6.0},
    "mid": {"low": 1.0, "mid": 0.0, "high": 2.0},
    "high": {"low": 2.0, "mid": 1.0, "high": 0.0},
}
SORTED = np.array([[0.0, 2.0, 1.0], [6.0, 0.0, 1.0], [2.0, 1.0, 0.0]])  # the same, high, low, mid
ASKING = {**COSTS, "ask": {"low": 0.4, "mid": 0.4, "high": 0.4}}


def graded(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.digitize(X[:, 0] + 0.5 * rng.normal(size=n), [-0.4, 0.7])


def frame(costs, rows=None, columns=None):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame.from_dict(costs, orient="index")
    return table.loc[rows or list(table.index), columns or list(table.columns)]


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
def test_rows_and_columns_are_those_of_their_names(smoothing):
    X, y = graded()
    plain = NashClassifier(SORTED, smoothing=smoothing).fit(X, NAMES[y])
    shuffled = frame(COSTS, ["mid", "high", "low"], ["low", "high", "mid"])
    for loss in (COSTS, shuffled, shuffled.to_dict(orient="index")):
        model = NashClassifier(loss, smoothing=smoothing).fit(X, NAMES[y])
        assert list(model.options_) == list(model.classes_) == ["high", "low", "mid"]
        assert model.objective_ == pytest.approx(plain.objective_, rel=1e-3)
        assert np.mean(model.predict(X) == plain.predict(X)) > 0.98
        paid = [COSTS[answer][label] for answer, label in zip(model.predict(X), NAMES[y], strict=True)]
        assert model.task_loss(X, NAMES[y]) == pytest.approx(np.mean(paid)) == pytest.approx(-model.score(X, NAMES[y]))


def test_options_that_are_no_labels_are_answered_by_name():
    X, y = graded()
    model = NashClassifier(ASKING, alpha=1e-2).fit(X, NAMES[y])
    assert list(model.options_) == ["high", "low", "mid", "ask"]
    assert model.decision_ == "equilibrium"
    answers = model.predict(X)
    assert "ask" in answers and set(answers) <= set(ASKING)
    assert model.strategy(X).shape == (150, 4) and model.predict_proba(X).shape == (150, 3)
    paid = [ASKING[answer][label] for answer, label in zip(answers, NAMES[y], strict=True)]
    assert model.score(X, NAMES[y]) == pytest.approx(-np.mean(paid))
    # As many options as labels, but others: never the label of the largest score.
    other = {"accept": {"low": 4.0, "mid": 1.0, "high": 0.0}, "ask": {"low": 1.0, "mid": 0.5, "high": 1.0}}
    other["reject"] = {"low": 0.0, "mid": 1.0, "high": 4.0}
    model = NashClassifier(other, decision="scores").fit(X, NAMES[y])
    assert model.decision_ == "equilibrium" and set(model.predict(X)) <= set(other)


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
def test_a_part_of_the_data_may_lack_a_class(smoothing):
    """Its column is left out of training; its row stays, and so does what it costs."""
    X, y = graded()
    some = y < 2
    model = NashClassifier(COSTS, smoothing=smoothing).fit(X[some], NAMES[y[some]])
    assert list(model.classes_) == ["low", "mid"] and list(model.options_) == ["low", "mid", "high"]
    assert set(model.predict(X)) <= set(NAMES)
    paid = [COSTS[answer][label] for answer, label in zip(model.predict(X), NAMES[y], strict=True)]
    assert model.task_loss(X, NAMES[y]) == pytest.approx(np.mean(paid))
    with pytest.raises(ValueError, match="y holds the label 'none', which the loss does not name"):
        model.task_loss(X, np.where(y == 0, "none", NAMES[y]))


def test_cross_validation_where_a_fold_lacks_a_class():
    X, y = graded(60)
    y[y == 2] = 1
    y[-3:] = 2  # the last fold has them all
    folds = [(np.arange(40), np.arange(40, 60)), (np.arange(20, 60), np.arange(20))]
    scores = cross_val_score(NashClassifier(COSTS), X, NAMES[y], cv=folds)
    assert np.isfinite(scores).all() and (scores < 0).all()


def test_names_may_be_numbers():
    X, y = graded()
    costs = {2: {0: 9.0, 2: 0.0, 1: 1.0}, 0: {0: 0.0, 1: 1.0, 2: 9.0}, 1: {0: 1.0, 1: 0.0, 2: 1.0}}
    model = NashClassifier(costs).fit(X, y)
    assert np.array_equal(model._game.costs, [[0.0, 1.0, 9.0], [1.0, 0.0, 1.0], [9.0, 1.0, 0.0]])
    assert model.predict(X).dtype == y.dtype
    mixed = {**costs, "ask": {0: 0.1, 1: 0.1, 2: 0.1}}
    assert "ask" in NashClassifier(mixed).fit(X, y).predict(X).tolist()


REFUSED = {
    "unknown": (lambda: frame(COSTS).rename(columns={"low": "Low"}), r"none for \['low'\], and columns.*\['Low'\]"),
    "missing": (lambda: frame(COSTS, None, ["low", "mid"]), r"none for \['high'\]"),
    "hole": (
        lambda: {**COSTS, "mid": {"low": 1.0, "mid": 0.0}},
        r"no cost of the option 'mid' for the labels \['high'\]",
    ),
    "twice": (lambda: frame(COSTS, ["low", "low", "mid"]), r"one row for each name; it has several for \['low'\]"),
    "flat": (lambda: {"low": 1.0, "mid": 2.0, "high": 0.0}, "dictionary of dictionaries"),
    "negative": (lambda: {**COSTS, "ask": dict.fromkeys(NAMES.tolist(), -1.0)}, "must not be negative"),
    "words": (lambda: {**COSTS, "ask": dict.fromkeys(NAMES.tolist(), "dear")}, "loss must be a matrix of numbers"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_names_that_are_missing_or_unknown_are_named(case):
    make, words = REFUSED[case]
    X, y = graded(30)
    with pytest.raises(ValueError, match=words):
        NashClassifier(make()).fit(X, NAMES[y])


# --------------------------------------------------------------------------------------------------------------- grades


@pytest.mark.parametrize("smoothing", [0.0, 3.0])
def test_the_order_of_grades_may_be_told(smoothing):
    pandas = pytest.importorskip("pandas")
    X, y = graded()
    plain = NashOrdinalClassifier(smoothing=smoothing).fit(X, y)
    told = NashOrdinalClassifier(smoothing=smoothing, order=NAMES.tolist()).fit(X, NAMES[y])
    series = pandas.Series(pandas.Categorical(NAMES[y], categories=NAMES, ordered=True))
    typed = NashOrdinalClassifier(smoothing=smoothing).fit(X, series)
    for model in (told, typed):
        assert list(model.classes_) == NAMES.tolist()
        assert np.allclose(model.coef_, plain.coef_, rtol=1e-6)
        assert np.array_equal(model.predict(X), NAMES[plain.predict(X)])
        assert np.allclose(model.predict_proba(X), plain.predict_proba(X), atol=1e-6)
        assert model.score(X, NAMES[y]) == pytest.approx(plain.score(X, y), abs=1e-12)
    assert told.score(X, series) == told.score(X, NAMES[y])


def test_a_grade_that_no_row_has_stays_a_grade():
    X, y = graded()
    some = y != 1
    model = NashOrdinalClassifier(order=NAMES.tolist()).fit(X[some], NAMES[y[some]])
    assert model.thresholds_.size == 2 and list(model.classes_) == NAMES.tolist()
    assert model.score(X, NAMES[y]) > -0.6


def test_words_without_an_order_warn_with_the_order_that_is_taken():
    X, y = graded()
    with pytest.warns(UserWarning, match=r"taken to be \['high', 'low', 'mid'\], from low to high, .*pass order="):
        NashOrdinalClassifier().fit(X, NAMES[y])
    for loss in ("absolute", "squared"):
        with pytest.warns(UserWarning, match=r"\['high', 'low', 'mid'\].*use NashOrdinalClassifier\(order="):
            NashClassifier(loss).fit(X, NAMES[y])
    for model in (NashOrdinalClassifier(), NashClassifier("absolute")):
        model.fit(X, y)  # numbers have an order
        model.fit(X, np.array(["no", "yes"])[(y > 1).astype(int)])  # two words have two orders, which cost the same


@pytest.mark.parametrize(
    ("order", "words"),
    [
        (["low", "mid"], r"order must hold every label of y; it lacks \['high'\]"),
        (["low", "mid", "mid", "high"], "at least two grades, each once"),
        (["low"], "at least two grades"),
    ],
)
def test_orders_that_do_not_fit_are_refused(order, words):
    X, y = graded()
    with pytest.raises(ValueError, match=words):
        NashOrdinalClassifier(order=order).fit(X, NAMES[y])


# --------------------------------------------------------------------------------------------------------------- scorer


def test_the_scorer_is_minus_the_mean_loss_of_any_classifier():
    X, y = graded()
    for model in (LogisticRegression(), NashClassifier("absolute"), make_pipeline(StandardScaler(), NashClassifier())):
        model = clone(model).fit(X, y)
        found, weight = model.predict(X), np.random.default_rng(0).exponential(size=y.size)
        L = np.array([[0.0, 1.0, 6.0], [1.0, 0.0, 2.0], [2.0, 1.0, 0.0]])
        by_name = {i: dict(enumerate(row)) for i, row in enumerate(L)}
        wanted = {
            "zero_one": (found != y).astype(float),
            "absolute": np.abs(found - y),
            "squared": (found - y) ** 2,
            "matrix": L[found, y],
            "names": L[found, y],
        }
        for name, loss in wanted.items():
            scorer = task_loss_scorer({"matrix": L, "names": by_name}.get(name, name))
            assert scorer(model, X, y) == pytest.approx(-loss.mean())
            assert scorer(model, X, y, sample_weight=weight) == pytest.approx(-np.average(loss, weights=weight))


def test_the_scorer_agrees_with_the_estimators_own_score():
    X, y = graded()
    tall = np.array([[0.0, 1.0, 6.0], [1.0, 0.0, 2.0], [2.0, 1.0, 0.0], [0.4, 0.4, 0.4]])
    for loss, labels in ((ASKING, NAMES[y]), (frame(ASKING), NAMES[y]), (tall, y), ("squared", y)):
        model = NashClassifier(loss, alpha=1e-2).fit(X, labels)
        assert nashlearn.metrics.task_loss_scorer(loss)(model, X, labels) == pytest.approx(model.score(X, labels))


@pytest.mark.filterwarnings("ignore:alpha=10.0 is so large")
def test_grid_search_looks_for_the_least_cost():
    X, y = graded()
    pipeline = make_pipeline(StandardScaler(), NashClassifier(COSTS))
    grid = {"nashclassifier__alpha": [1e-3, 10.0], "nashclassifier__smoothing": [0.0, 1.0]}
    search = GridSearchCV(pipeline, grid, scoring=task_loss_scorer(COSTS), cv=3).fit(X, NAMES[y])
    own = GridSearchCV(clone(pipeline), grid, cv=3).fit(X, NAMES[y])
    assert np.allclose(search.cv_results_["mean_test_score"], own.cv_results_["mean_test_score"])
    assert search.best_score_ == search.cv_results_["mean_test_score"].max() < 0


def test_the_scorer_refuses_what_it_cannot_judge():
    X, y = graded()
    model = LogisticRegression().fit(X, NAMES[y])
    with pytest.raises(ValueError, match="loss must be one of"):
        task_loss_scorer("hinge")
    with pytest.raises(ValueError, match="loss has 4 columns, but the estimator knows 3 classes"):
        task_loss_scorer(1 - np.eye(4))(model, X, NAMES[y])
    with pytest.raises(ValueError, match="y holds the label 'none', which the loss does not know"):
        task_loss_scorer(COSTS)(model, X, np.where(y == 0, "none", NAMES[y]))
    lacking = {option: costs for option, costs in COSTS.items() if option != "mid"}
    with pytest.raises(ValueError, match=r"predict\(X\) holds the label 'mid'"):
        task_loss_scorer(lacking)(model, X, NAMES[y])
    assert "squared" in repr(task_loss_scorer("squared"))
