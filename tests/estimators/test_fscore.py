"""NashFScore: its fixed point is the robust score, and its bounds hold, by conic programmes and by enumeration."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from fscore_reference import robust_score, worst_score
from scipy.optimize import linprog
from sklearn.metrics import fbeta_score, jaccard_score

from nashlearn import NashFScore
from nashlearn.training.score_bound import Rows, score_bound

METRICS = [("f", 1.0), ("f", 2.0), ("f", 0.5), ("jaccard", 1.0)]


def sample(n: int = 40, labels: int = 0, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    noise = rng.normal(size=(n, max(labels, 1)))
    Y = (X[:, :1] + 0.5 * X[:, 1:2] * np.arange(max(labels, 1)) + 0.8 * noise > 0.8).astype(int)
    return X, Y if labels else Y[:, 0]


def with_constant(model, X):
    return np.column_stack([X, np.full(len(X), model._bias)])


def as_f(model, score):
    """The F-score behind a metric."""
    return 2 * score / (1 + score) if model.metric == "jaccard" else score


@pytest.mark.parametrize(("metric", "beta"), METRICS)
def test_the_fixed_point_is_the_robust_score(metric, beta):
    X, y = sample()
    weight = np.random.default_rng(1).integers(1, 4, size=len(y))
    model = NashFScore(beta, metric=metric, smoothing=0.0, alpha=0.02, tol=1e-10).fit(X, y, sample_weight=weight)
    direct = robust_score(with_constant(model, X), y[:, None], weight / weight.sum(), model.radius_ / np.sqrt(2), beta)
    assert as_f(model, model.fixed_point_) == pytest.approx(direct, abs=1e-6)
    # It is its own proof: the bound for that radius, which uses nothing but the weights, says the same.
    assert model.worst_case_score(model.radius_) == pytest.approx(model.fixed_point_, abs=1e-6)


@pytest.mark.parametrize("average", ["macro", "micro"])
def test_labels_together_are_the_robust_score(average):
    X, Y = sample(30, labels=3)
    model = NashFScore(2.0, average=average, smoothing=0.0, alpha=0.03, tol=1e-10).fit(X, Y)
    omega, rows = np.full(len(X), 1 / len(X)), with_constant(model, X)
    groups = [[0], [1], [2]] if average == "macro" else [[0, 1, 2]]
    direct = [
        robust_score(rows, Y[:, own], omega, radius / np.sqrt(2), 2.0)
        for own, radius in zip(groups, np.atleast_1d(model.radius_), strict=True)
    ]
    np.testing.assert_allclose(np.atleast_1d(model.fixed_point_), direct, atol=1e-6)


def test_macro_is_one_model_for_each_label():
    X, Y = sample(30, labels=3)
    macro = NashFScore(average="macro").fit(X, Y)
    for label in range(3):
        alone = NashFScore().fit(X, Y[:, label])
        assert macro.fixed_point_[label] == pytest.approx(alone.fixed_point_, abs=1e-12)
        np.testing.assert_array_equal(macro.predict(X)[:, label], alone.predict(X))
    assert np.ptp(macro.fixed_point_) > 0.01


@pytest.mark.parametrize("smoothing", [0.0, 0.03, 1.0, 10.0])
@pytest.mark.parametrize(("metric", "beta"), METRICS)
def test_no_labels_bring_the_score_below_its_bound(metric, beta, smoothing):
    X, y = sample(30, seed=2)
    model = NashFScore(beta, metric=metric, smoothing=smoothing, alpha=0.02, tol=1e-8).fit(X, y)
    omega, p = np.full(len(X), 1 / len(X)), model.strategy(X)[:, 1:]
    for radius in (0.0, 0.05, model.radius_, 0.3):
        true = worst_score(with_constant(model, X), y[:, None], omega, p, radius / np.sqrt(2), beta)
        bound = as_f(model, model.worst_case_score(radius))
        assert bound <= true + 1e-7
        if not radius and smoothing <= 1.0:
            assert bound >= 0.7 * true  # one direction of moments of many, and yet near
    if not smoothing:
        assert as_f(model, model.worst_case_score(model.radius_)) == pytest.approx(
            worst_score(with_constant(model, X), y[:, None], omega, p, model.radius_ / np.sqrt(2), beta), abs=1e-5
        )


@pytest.mark.parametrize("average", ["macro", "micro"])
def test_no_indicators_bring_the_score_below_its_bound(average):
    X, Y = sample(20, labels=2, seed=3)
    model = NashFScore(average=average, smoothing=0.3, alpha=0.02).fit(X, Y)
    omega, rows, p = np.full(len(X), 1 / len(X)), with_constant(model, X), model.strategy(X)
    groups = [[0], [1]] if average == "macro" else [[0, 1]]
    for radius in (0.0, 0.1):
        true = [worst_score(rows, Y[:, own], omega, p[:, own], radius / np.sqrt(2), 1.0) for own in groups]
        assert 0.5 * np.mean(true) <= model.worst_case_score(radius) <= np.mean(true) + 1e-7


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
def test_every_labelling_obeys_the_bound_of_its_distance(smoothing):
    X, y = sample(10, seed=6)
    model = NashFScore(smoothing=smoothing, alpha=0.05).fit(X, y)
    p, rows = model.strategy(X)[:, 1], with_constant(model, X)
    tightest = np.inf
    for labels in itertools.product([0, 1], repeat=len(y)):
        other = np.array(labels)
        distance = np.sqrt(2) * np.linalg.norm(rows.T @ (other - y)) / len(y)
        slack = 2 * p @ other / (p.sum() + other.sum()) - model.worst_case_score(distance)
        tightest = min(tightest, slack)
    assert -1e-9 <= tightest < 0.2


def test_the_bound_reports_what_wrong_strategies_are_worth():
    X, y = sample(25, seed=4)
    omega, rng = np.full(len(y), 1 / len(y)), np.random.default_rng(0)
    for _ in range(20):
        w, p = rng.normal(size=3), rng.random(len(y)) ** 3
        bound = score_bound(Rows(p, X @ w, y.astype(float), omega), 1.0, np.linalg.norm(w), 0.05)
        for radius in (0.0, 0.02, 0.05):
            true = worst_score(X, y[:, None], omega, p[:, None], radius, 1.0)
            assert bound.at(radius) <= true + 1e-8
            # One direction of moments leaves no other, and what it does not bound from above only adds positives.
            along = worst_score((X @ w)[:, None], y[:, None], omega, p[:, None], radius * np.linalg.norm(w), 1.0)
            assert bound.at(radius) <= along + 1e-8


def test_the_bound_is_exact_along_its_direction():
    """Against a linear programme over labels with the one constraint that the bound knows."""
    X, y = sample(25, seed=4)
    omega, rng = np.full(len(y), 1 / len(y)), np.random.default_rng(1)
    positive = 0
    for _ in range(20):
        lead, p = X @ np.array([1.0, 0.5, 0.2]) - 0.5 + 0.3 * rng.normal(size=len(y)), rng.random(len(y))
        bound = score_bound(Rows(p, lead, y.astype(float), omega), 2.0, 1.0, 0.05)
        for radius in (0.0, 0.05):
            # x = (kappa q, kappa) with kappa (mean p + 4 mean q) = 1
            own = np.r_[-omega * lead, omega @ (lead * y) - radius]
            box = np.column_stack([np.eye(len(y)), -np.ones(len(y))])
            total = np.r_[4.0 * omega, omega @ p][None, :]
            found = linprog(
                np.r_[5.0 * omega * p, 0.0], np.vstack([own, box]), np.zeros(len(y) + 1), total, [1.0], bounds=(0, None)
            )
            assert bound.at(radius) == pytest.approx(found.fun, abs=1e-8)
            positive += found.fun > 0.01
    assert positive > 20


def test_the_bound_falls_with_the_error_of_rounding():
    X, y = sample(25, seed=4)
    rows = Rows(np.clip(X[:, 0], 0, 1), X[:, 0] - 0.2, y.astype(float), np.full(len(y), 1 / len(y)))
    exact, rounded = (score_bound(rows, 1.0, 1.0, 0.0, error) for error in (0.0, 0.01))
    # What rounding may have added to the mean is as good as a larger radius.
    assert rounded.at(0.02) == pytest.approx(exact.at(0.03), abs=1e-12)
    assert rounded.at(0.02) < exact.at(0.02)


def test_points_chosen_on_some_rows_hold_for_all(monkeypatch):
    X, y = sample(200, seed=5)
    omega, w = np.full(len(y), 1 / len(y)), np.array([1.0, 0.4, 0.1])
    rows = Rows(np.clip(0.3 + 0.4 * X @ w, 0, 1), X @ w, y.astype(float), omega)
    exact = score_bound(rows, 1.0, 1.0, 0.01)
    monkeypatch.setattr("nashlearn.training.score_bound._CHOSEN_ON", 50)
    rough = score_bound(rows, 1.0, 1.0, 0.01)
    for radius in (0.0, 0.01, 0.05):
        assert exact.at(radius) - 0.03 <= rough.at(radius) <= exact.at(radius) + 1e-12


def test_predictions_take_the_largest_p_and_score_is_the_metric():
    X, y = sample(300)
    for metric, beta in METRICS:
        for smoothing in (0.0, 1.0):
            model = NashFScore(beta, metric=metric, smoothing=smoothing).fit(X, y)
            predicted = model.predict(X)
            np.testing.assert_array_equal(predicted, model.strategy(X).argmax(axis=1))
            np.testing.assert_array_equal(predicted, model.decision_function(X) > 0)
            weight = np.random.default_rng(0).random(len(y))
            own = (
                jaccard_score(y, predicted, sample_weight=weight)
                if metric == "jaccard"
                else fbeta_score(y, predicted, beta=beta, sample_weight=weight)
            )
            assert model.score(X, y, sample_weight=weight) == pytest.approx(own)


def test_either_class_may_be_the_positive_one():
    X, y = sample(200)
    names = np.array(["no", "yes"])[y]
    flipped = np.array(["yes", "no"])[y]  # sorted, the positives are now first
    plain = NashFScore(tol=1e-8).fit(X, names)
    turned = NashFScore(tol=1e-8, pos_label="no").fit(X, flipped)
    # Both are within their tolerance of the same number, and sums taken in another order may end at another place.
    assert turned.fixed_point_ == pytest.approx(plain.fixed_point_, abs=1e-7)
    np.testing.assert_array_equal(turned.predict(X) == "no", plain.predict(X) == "yes")
    assert turned.worst_case_score() == pytest.approx(plain.worst_case_score(), abs=1e-6)
    assert turned.score(X, flipped) == pytest.approx(plain.score(X, names))
    np.testing.assert_array_equal(turned.predict(X) == "yes", turned.decision_function(X) > 0)
    with pytest.raises(ValueError, match="pos_label must be one of the classes"):
        NashFScore(pos_label="maybe").fit(X, names)


def test_rare_positives_and_no_signal_at_all():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 2)), np.zeros(400, dtype=int)
    y[:4] = 1
    for smoothing in (0.0, 1.0):
        model = NashFScore(smoothing=smoothing).fit(X, y)
        assert 0.0 <= model.fixed_point_ < 0.3
        assert model.residual_ <= model.tol
        assert 0.0 <= model.worst_case_score() <= 1.0
    held = NashFScore(smoothing=0.0, alpha=100.0).fit(X, y)  # a ball so large that no positive is certain
    assert held.fixed_point_ == pytest.approx(0.0, abs=1e-2)


def test_labels_without_positives_are_never_predicted():
    X, Y = sample(50, labels=2)
    Y[:, 0] = 0
    with pytest.warns(UserWarning, match=r"no positive example of the labels \[0\]"):
        model = NashFScore(average="macro").fit(X, Y)
    assert np.isnan(model.fixed_point_[0])
    assert not model.predict(X)[:, 0].any()
    Y[:, 0] = 1
    assert NashFScore(average="macro").fit(X, Y).predict(X)[:, 0].all()
    with pytest.warns(UserWarning, match="no positive example of any label"):
        empty = NashFScore(average="micro").fit(X, 0 * Y)
    assert not empty.predict(X).any()


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
def test_weights_are_repetitions(smoothing):
    X, y = sample(40)
    weight = np.random.default_rng(3).integers(0, 3, size=len(y))
    model = NashFScore(smoothing=smoothing, tol=1e-9).fit(X, y, sample_weight=weight)
    again = NashFScore(smoothing=smoothing, tol=1e-9).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert model.fixed_point_ == pytest.approx(again.fixed_point_, abs=1e-7)
    np.testing.assert_allclose(model.coef_, again.coef_, atol=1e-5)
    assert model.worst_case_score() == pytest.approx(again.worst_case_score(), abs=1e-4)


def test_bad_input_is_refused_by_name():
    X, y = sample(20)
    Y = np.column_stack([y, 1 - y])
    for model, labels, message in [
        (NashFScore(0.0), y, "beta must be"),
        (NashFScore(metric="accuracy"), y, "metric must be"),
        (NashFScore(2.0, metric="jaccard"), y, "beta must be 1"),
        (NashFScore(average="samples"), Y, "no game of theirs"),
        (NashFScore(average="weighted"), Y, "average must be"),
        (NashFScore(), Y, "average must be 'macro' or 'micro'"),
        (NashFScore(average="macro"), y, "indicator matrix"),
        (NashFScore(average="macro"), 2 * Y, "zeros and ones"),
        (NashFScore(average="macro", pos_label=1), Y, "pos_label must be None"),
        (NashFScore(zero_division=0.5), y, "zero_division must be"),
        (NashFScore(pos_label=[0, 1]), y, "pos_label must be one of the classes"),
        (NashFScore(average="macro"), Y[:10], "inconsistent numbers of samples"),
        (NashFScore(average="macro"), Y[:, :, None], "dim 3"),
        (NashFScore(), np.arange(20) % 3, "Only binary classification"),
        (NashFScore(), np.zeros(20), "two distinct labels"),
    ]:
        with pytest.raises(ValueError, match=message), warnings.catch_warnings():
            warnings.simplefilter("error")
            model.fit(X, labels)
    with pytest.raises(ValueError, match="one class only among rows"):
        NashFScore().fit(X, y, sample_weight=y)
    for weight, message in [(0.0, "at least one non-zero"), (-1.0, "Negative values"), (1e308, "finite sum")]:
        with pytest.raises(ValueError, match=message):
            NashFScore().fit(X, y, sample_weight=np.full(20, weight))
    with pytest.raises(ValueError, match="radius must be"):
        NashFScore().fit(X, y).worst_case_score(-1)
