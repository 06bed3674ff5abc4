"""NashMatcher: laws of its answers, scikit-learn's tools on lists, weights, partial matchings, bad input."""

from __future__ import annotations

import pickle
import re
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score

from nashlearn import NashMatcher

WEIGHTS = np.array([2.0, -1.0, 0.5])


def complete(rng, count=25, noise=0.3):
    """Square examples of several sizes whose true matching is the best by noisy scores."""
    X, y = [], []
    for _ in range(count):
        n = int(rng.integers(2, 6))
        X.append(rng.normal(size=(n, n, 3)))
        y.append(linear_sum_assignment(-X[-1] @ WEIGHTS + noise * rng.normal(size=(n, n)))[1])
    return X, y


def partial(rng, count=25):
    """Rectangular examples with features for staying alone, some sides empty."""
    X, y = [], []
    for _ in range(count):
        n1, n2 = rng.integers(0, 5, size=2)
        pairs = rng.normal(size=(n1, n2, 3))
        gain = pairs @ WEIGHTS - 0.3
        rows, columns = linear_sum_assignment(np.minimum(-gain, 0.0))
        partners = np.full(n1, -1)
        kept = gain[rows, columns] > 0
        partners[rows[kept]] = columns[kept]
        X.append((pairs, np.ones((n1, 1)), np.ones((n2, 1))))
        y.append(partners)
    return X, y


DATA = {"complete": complete, "partial": partial}


@pytest.mark.parametrize("kind", DATA)
def test_answers_obey_the_laws(kind):
    X, y = DATA[kind](np.random.default_rng(0))
    matcher = NashMatcher(alpha=1e-2).fit(X, y)
    assert matcher.partial_ == (kind == "partial")
    assert 0 <= matcher.dual_gap_ <= matcher.tol
    for example, scores, p, partners in zip(
        X, matcher.decision_function(X), matcher.predict_proba(X), matcher.predict(X), strict=True
    ):
        n1, n2, _ = (example[0] if kind == "partial" else example).shape
        assert p.shape == (n1, n2) and partners.shape == (n1,)
        assert (p >= 0).all()
        assert (p.sum(axis=0) <= 1 + 1e-8).all() and (p.sum(axis=1) <= 1 + 1e-8).all()
        if kind == "complete":
            assert np.allclose(p.sum(axis=0), 1, atol=1e-8) and np.allclose(p.sum(axis=1), 1, atol=1e-8)
            assert scores[np.arange(n1), partners].sum() == pytest.approx(
                scores[linear_sum_assignment(-scores)].sum(), abs=1e-9
            )
        else:
            assert scores.shape == (n1 + 1, n2 + 1)
    assert matcher.score(X, y) > 0.8
    assert matcher.score(X, y) == 1.0 - matcher.task_loss(X, y)


@pytest.mark.parametrize("kind", DATA)
@given(seed=st.integers(0, 10**6))
def test_risk_bounds_the_loss_of_the_randomised_answers(kind, seed):
    X, y = DATA[kind](np.random.default_rng(seed), count=8)
    if not sum(map(len, y)):
        return
    matcher = NashMatcher(alpha=0.05).fit(X, y)
    wrong = 0.0
    for p, partners in zip(matcher.predict_proba(X), y, strict=True):
        alone = partners < 0
        wrong += p[alone].sum() + (1.0 - p[np.flatnonzero(~alone), partners[~alone]]).sum()
    assert wrong / sum(map(len, y)) <= matcher.worst_case_risk() + 1e-7
    assert matcher.worst_case_risk(1.0) > matcher.worst_case_risk()


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("kind", DATA)
def test_strategies_are_played_as_the_risk_bound_has_them(kind, smoothing):
    """One example at a time or all together, converged or not; leaving and entering are part of the strategy."""
    X, y = DATA[kind](np.random.default_rng(3), count=10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        matcher = NashMatcher(alpha=0.01, smoothing=smoothing, max_iter=3).fit(X, y)
    for strategies in (matcher.strategy(X), [matcher.strategy([example])[0] for example in X]):
        wrong = 0.0
        for P, scores, pairs, partners in zip(
            strategies, matcher.decision_function(X), matcher.predict_proba(X), y, strict=True
        ):
            assert P.shape == scores.shape and (P >= 0).all()
            inner = P[: pairs.shape[0], : pairs.shape[1]]
            assert np.allclose(inner, pairs, atol=1e-6)
            assert np.allclose(P[: pairs.shape[0]].sum(axis=1), 1, atol=1e-8)
            assert np.allclose(P[:, : pairs.shape[1]].sum(axis=0), 1, atol=1e-8)
            wrong += (1.0 - P[np.arange(len(partners)), partners]).sum()  # -1 is the last column: leaving
        assert wrong / sum(map(len, y)) <= matcher.worst_case_risk()


def test_strategies_that_are_not_settled_are_warned_of(monkeypatch):
    X, y = complete(np.random.default_rng(0))
    matcher = NashMatcher(alpha=0.05).fit(X, y)
    monkeypatch.setattr(NashMatcher, "_accurate", 0.3)
    with pytest.warns(ConvergenceWarning, match="of 25 examples are settled to .* not to 1e-08"):
        matcher.strategy(X)


def test_pairs_far_apart_are_learnt():
    X, y = complete(np.random.default_rng(1), count=60, noise=0.0)
    matcher = NashMatcher(alpha=1e-5).fit(X, y)
    assert matcher.score(X, y) == 1.0
    assert matcher.coef_ @ WEIGHTS > 0.95 * np.linalg.norm(matcher.coef_) * np.linalg.norm(WEIGHTS)


def test_rectangles_and_lonely_elements_make_matchings_partial():
    rng = np.random.default_rng(2)
    X, y = partial(rng, 30)
    told = NashMatcher(alpha=1e-2).fit(X, y)
    plain = [example[0] for example in X]
    untold = NashMatcher(alpha=1e-2).fit(plain, y)
    assert untold.partial_ and np.array_equal(told.coef_, untold.coef_)
    assert untold.leave_coef_.shape == untold.enter_coef_.shape == (1,)
    square = NashMatcher().fit([np.ones((2, 2, 1)), np.eye(2)[:, :, None]], [[-1, 0], [0, 1]])
    assert square.partial_
    assert square.predict([np.zeros((0, 3, 1)), np.zeros((2, 0, 1))])[0].size == 0
    assert square.predict([np.zeros((2, 0, 1))])[0].tolist() == [-1, -1]


@pytest.mark.parametrize("kind", DATA)
def test_weights_count_as_repetitions(kind):
    X, y = DATA[kind](np.random.default_rng(4), count=12)
    weight = np.array([1, 2, 3, 0] * 3)
    how = {"alpha": 0.05, "tol": 1e-5}
    weighted = NashMatcher(**how).fit(X, y, sample_weight=weight)
    repeated = NashMatcher(**how).fit(
        [x for x, times in zip(X, weight, strict=True) for _ in range(times)],
        [x for x, times in zip(y, weight, strict=True) for _ in range(times)],
    )
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=2e-5)
    assert np.allclose(weighted.coef_, repeated.coef_, atol=0.02 * np.abs(repeated.coef_).max())
    expected = np.repeat([len(partners) for partners in y], weight).sum()
    assert weighted.score(X, y, sample_weight=weight) == pytest.approx(
        1 - sum(t * (a != b).sum() for t, a, b in zip(weight, weighted.predict(X), y, strict=True)) / expected
    )


def test_forbidden_pairs_are_never_matched():
    rng = np.random.default_rng(5)
    X, y = [], []
    for _ in range(20):
        pairs, allowed = rng.normal(size=(4, 4, 3)), rng.random((4, 4)) < 0.6
        np.fill_diagonal(allowed, True)
        X.append((pairs, None, None, allowed))
        y.append(linear_sum_assignment(np.where(allowed, -pairs @ WEIGHTS, 1e6))[1])
    matcher = NashMatcher(alpha=1e-3).fit(X, y)
    assert not matcher.partial_ and matcher.dual_gap_ <= 1e-3
    for (_, _, _, allowed), partners, p, scores in zip(
        X, matcher.predict(X), matcher.predict_proba(X), matcher.decision_function(X), strict=True
    ):
        assert allowed[np.arange(4), partners].all()
        assert (p[~allowed] == 0).all()
        assert np.array_equal(np.isneginf(scores), ~allowed)


def test_scikit_learn_tools_work_on_lists():
    X, y = partial(np.random.default_rng(6), 30)
    search = GridSearchCV(NashMatcher(tol=1e-2), {"alpha": [1e-3, 1.0], "smoothing": [0.0, 0.2]}, cv=3).fit(X, y)
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()
    assert search.best_estimator_.predict(X[:2])[0].shape == (len(y[0]),)
    assert cross_val_score(NashMatcher(tol=1e-2), X, y, cv=3).shape == (3,)
    matcher = NashMatcher(alpha=0.3, n_jobs=2)
    assert clone(matcher).get_params() == matcher.get_params()
    with pytest.raises(NotFittedError):
        clone(matcher).predict(X)


def test_fits_are_repeatable_and_survive_pickling():
    X, y = complete(np.random.default_rng(7))
    one, two = NashMatcher().fit(X, y), NashMatcher(n_jobs=2).fit(X, y)
    assert np.array_equal(one.coef_, two.coef_)
    kept = pickle.loads(pickle.dumps(one))
    assert all(np.array_equal(a, b) for a, b in zip(kept.predict(X), one.predict(X), strict=True))
    assert kept.worst_case_risk() == one.worst_case_risk()


def test_warm_starts_and_too_few_iterations():
    X, y = complete(np.random.default_rng(8))
    matcher = NashMatcher(warm_start=True).fit(X, y)
    first = matcher.n_iter_
    assert matcher.fit(X, y).n_iter_ < first
    with pytest.warns(ConvergenceWarning, match="above tol"):
        NashMatcher(max_iter=1).fit(X, y)


def test_the_gap_is_honest_where_features_are_huge():
    X, y = complete(np.random.default_rng(0))
    reached = NashMatcher().fit(X, y).objective_  # by smaller weights: more than the optimum of the larger features
    with pytest.warns(ConvergenceWarning):
        matcher = NashMatcher(max_iter=40).fit([1e8 * pairs for pairs in X], y)
    assert matcher.objective_ * (1 - matcher.dual_gap_) <= reached


def test_examples_with_one_answer_cost_nothing():
    matcher = NashMatcher().fit([np.ones((1, 1, 2))] * 3, [[0]] * 3)
    assert matcher.dual_gap_ == 0.0
    assert 0.0 <= matcher.worst_case_risk(1.0) <= 1e-8  # the accuracy of strategies


def test_a_refused_fit_changes_nothing_and_a_new_one_everything():
    rng = np.random.default_rng(10)
    X, y = complete(rng, 5)
    lonely = partial(rng, 5)
    matcher = NashMatcher(alpha=0.1)
    with pytest.raises(ValueError, match="sample_weight must be positive"):
        matcher.fit(X, y, sample_weight=np.zeros(5))
    with pytest.raises(NotFittedError):
        matcher.predict(X)
    before = matcher.fit(X, y).predict(X)
    with pytest.raises(ValueError, match="sample_weight must be positive"):
        matcher.fit(*lonely, sample_weight=np.zeros(5))
    assert all(np.array_equal(a, b) for a, b in zip(matcher.predict(X), before, strict=True))
    assert hasattr(matcher.fit(*lonely), "leave_coef_")
    assert not hasattr(matcher.fit(X, y), "leave_coef_") and not hasattr(matcher, "enter_coef_")


SQUARE = np.zeros((2, 2, 1))


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([], [], "X must hold at least one example"),
        ("pairs", [[0]], "X must be a list of examples"),
        ([SQUARE], [[0, 1], [1, 0]], "same length; got 1 examples and 2 labels"),
        ([SQUARE], 3, "y must be a list of arrays"),
        ([SQUARE[0]], [[0, 1]], "X[0], pair features must have shape (n1, n2, d)"),
        ([np.zeros((2, 2, 0))], [[0, 1]], "at least one feature"),
        ([SQUARE, np.zeros((2, 2, 2))], [[0, 1], [0, 1]], "X[1] has 2 pairs features, X[0] has 1"),
        ([SQUARE + np.nan], [[0, 1]], "X[0], pair features must be finite"),
        ([[["a"]]], [[0]], "not an array of real numbers"),
        ([SQUARE + 1j], [[0, 1]], "not an array of real numbers"),
        ([SQUARE], [[0, 0]], "y[0] is not a matching: it has the partner 0 more than once"),
        ([SQUARE], [[0, 2]], "y[0] must hold partners 0..1, or -1 for none; got 2"),
        ([SQUARE], [[0, -2]], "got -2"),
        ([SQUARE], [[[0], [0, 1]]], "y[0] must be one list of partners"),
        ([SQUARE], [[0]], "one partner for each of the 2 left elements"),
        ([SQUARE], [[0.0, 1.0]], "must hold integers"),
        ([(SQUARE, np.ones((2, 1)))], [[0, 1]], "got a tuple of 2"),
        ([(SQUARE, np.ones((2, 1)), None)], [[0, 1]], "both leaving and entering, or of neither"),
        ([(SQUARE, np.ones((3, 1)), np.ones((2, 1)))], [[0, 1]], "leave features must have 2 rows"),
        ([(SQUARE, np.ones((2, 1)), np.full((2, 1), np.inf))], [[0, 1]], "X[0], enter features must be finite"),
        ([(SQUARE, None, None, np.ones((2, 2)))], [[0, 1]], "allowed must be a mask of shape (2, 2)"),
        ([(SQUARE, None, None, np.array([[0, 0], [1, 1]], bool))], [[0, 1]], "every partner of left element 0"),
        ([(SQUARE, None, None, np.array([[0, 1], [0, 1]], bool))], [[0, 1]], "every partner of right element 0"),
        ([(SQUARE, None, None, ~np.eye(2, dtype=bool))], [[0, 1]], "y[0] matches left element 0 with 0, a pair"),
        (
            [(np.zeros((3, 3, 1)), None, None, np.array([[1, 1, 1], [1, 0, 0], [1, 0, 0]], bool))],
            [[0, 1, 2]],
            "leaves no complete matching",
        ),
        ([SQUARE, np.zeros((0, 0, 1))], [[0, 1], np.zeros(0, int)], "X[1] has no elements"),
        ([np.zeros((0, 2, 1))], [np.zeros(0, int)], "nothing to learn from"),
    ],
)  # fmt: skip
def test_bad_data(X, y, message):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        NashMatcher().fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": 0}, "alpha must be a positive"),
        ({"smoothing": -1}, "smoothing must be a finite number, not negative"),
        ({"tol": np.nan}, "tol must be a positive"),
        ({"max_iter": 0}, "max_iter must be a positive integer"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        NashMatcher(**parameters).fit([SQUARE], [[0, 1]])


def test_predictions_need_what_training_had():
    rng = np.random.default_rng(9)
    matcher = NashMatcher().fit(*complete(rng))
    with pytest.raises(ValueError, match="trained on complete matchings"):
        matcher.predict([np.zeros((2, 3, 3))])
    with pytest.raises(ValueError, match="X has 2 pairs features, but NashMatcher was trained on 3"):
        matcher.predict([np.zeros((2, 2, 2))])
    with pytest.raises(ValueError, match="sample_weight must hold one number for each of the 1"):
        matcher.fit([SQUARE], [[0, 1]], sample_weight=[1.0, 2.0])
    with pytest.raises(ValueError, match="sample_weight must be one number for each of the 1"):
        matcher.fit([SQUARE], [[0, 1]], sample_weight=["a"])
    with pytest.raises(ValueError, match="y\\[0\\] is not a matching"):
        matcher.fit(*complete(rng)).score([np.zeros((2, 2, 3))], [[1, 1]])
