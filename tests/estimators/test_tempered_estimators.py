"""Smoothing of the estimators of one label per row: its unit, its limits, and what its probabilities mean."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from nashlearn import NashAbstainer, NashClassifier, NashOrdinalClassifier, games

# Random settings meet the advice about alpha and prices of abstaining, which is tested elsewhere.
pytestmark = [
    pytest.mark.filterwarnings("ignore:alpha=.* is so large"),
    pytest.mark.filterwarnings("ignore:abstain_cost=.* is never worth paying"),
]

COST = np.array([[0.0, 1.0, 4.0], [2.0, 0.0, 1.0], [3.0, 1.0, 0.0], [1.2, 0.6, 1.0]])
GRADES = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
MODELS = {
    "zero_one": (NashClassifier(), 1 - np.eye(3)),
    "absolute": (NashClassifier("absolute"), GRADES),
    "squared": (NashClassifier("squared"), GRADES**2),
    "cost": (NashClassifier(COST), COST),
    "ordinal": (NashOrdinalClassifier(), GRADES),
    "abstain": (NashAbstainer(0.3), games.abstain(3, 0.3).costs),
}
each = pytest.mark.parametrize("name", MODELS)


def noisy(seed=0, n=120, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.digitize(X[:, 0] + 0.7 * rng.normal(size=n), [-0.5, 0.6])


def scale(name):
    """The unit of a loss: its largest cost, 1 for thresholds."""
    return 1.0 if name == "ordinal" else MODELS[name][1].max()


def penalty(model):
    """Half the squared norm of the weights of a linear model of three classes, with the constant 10."""
    return 0.5 * (np.sum(model.coef_**2) + np.sum((model.intercept_ / 10.0) ** 2))


@each
@pytest.mark.parametrize("smoothing", [1e-2, 0.3, 1.0, 20.0])
def test_the_loss_is_the_cost_of_p_and_the_log_loss_of_q(name, smoothing):
    """On the training data: ``objective_ = (cost / s + m log loss) / (1 + m) + alpha / 2 |W|^2``."""
    model, L = MODELS[name]
    X, y = noisy()
    model = clone(model).set_params(smoothing=smoothing, alpha=3e-3, tol=1e-6).fit(X, y)
    own = np.arange(y.size)
    cost = (model.strategy(X) @ L)[own, y].mean()
    log_loss = -model.predict_log_proba(X)[own, y].mean()
    loss = (cost / scale(name) + smoothing * log_loss) / (1 + smoothing)
    assert model.objective_ == pytest.approx(loss + model.alpha * penalty(model), rel=1e-9)
    assert np.allclose(model.predict_proba(X), np.exp(model.predict_log_proba(X)), rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("kernel", [None, "rbf"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("factor", [10.0, 1e-3])
def test_alpha_means_the_same_whatever_costs_are_counted_in(smoothing, factor, kernel):
    X, y = noisy()
    one, other = (
        NashClassifier(times * COST, smoothing=smoothing, alpha=1e-2, kernel=kernel, tol=1e-8, random_state=0).fit(X, y)
        for times in (1.0, factor)
    )
    assert other.objective_ == pytest.approx(one.objective_, rel=1e-7)
    assert np.allclose(other.decision_function(X), one.decision_function(X), rtol=0, atol=1e-3)
    assert np.array_equal(other.predict(X), one.predict(X))
    assert other.task_loss(X, y) == pytest.approx(factor * one.task_loss(X, y), rel=1e-9)
    for radius in (0.0, 0.1):
        assert other.worst_case_risk(radius) == pytest.approx(factor * one.worst_case_risk(radius), rel=1e-3)
    assert other.moment_radius() == one.moment_radius()


@pytest.mark.parametrize("name", ["zero_one", "absolute", "squared", "cost", "abstain"])
@pytest.mark.parametrize("k", [2, 3])
def test_much_smoothing_is_logistic_regression(name, k):
    """With ``C = 1 / (n alpha)``, twice that for two classes, whose rows of weights are opposite and share the norm."""
    X, y = noisy()
    y = y.clip(max=k - 1)
    model = clone(MODELS[name][0]).set_params(smoothing=1e6, alpha=1e-2, tol=1e-9)
    if name == "cost":
        model.set_params(loss=COST[:, :k])
    model.fit(X, y)
    with_constant = np.column_stack([X, np.full(len(X), 10.0)])
    C = (2.0 if k == 2 else 1.0) / (1e-2 * y.size)
    logistic = LogisticRegression(C=C, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(with_constant, y)
    assert np.allclose(model.coef_, logistic.coef_[:, :-1], rtol=0, atol=1e-4)
    assert np.allclose(model.intercept_, 10.0 * logistic.coef_[:, -1], rtol=0, atol=1e-4)
    assert np.allclose(model.predict_proba(X), logistic.predict_proba(with_constant), rtol=0, atol=1e-4)


def test_grades_with_much_smoothing_have_adjacent_logits():
    """``log q_j / q_{j-1} = w x - eta_j``: the same optimum by minimising the regularised log loss."""
    X, y = noisy()
    model = NashOrdinalClassifier(smoothing=1e6, alpha=1e-2, tol=1e-9).fit(X, y)

    def objective(w):
        above = (X @ w[:3])[:, None] + 10.0 * w[3:]
        logits = np.column_stack([np.zeros(y.size), np.cumsum(above, axis=1)])
        top = logits.max(axis=1, keepdims=True)
        logits -= top + np.log(np.exp(logits - top).sum(axis=1, keepdims=True))
        return -logits[np.arange(y.size), y].mean() + 0.5e-2 * w @ w

    best = minimize(objective, np.zeros(5), method="BFGS", options={"gtol": 1e-8}).x
    assert np.allclose(model.coef_[0], best[:3], rtol=0, atol=1e-4)
    assert np.allclose(model.thresholds_, -10.0 * best[3:], rtol=0, atol=1e-4)


@each
def test_little_smoothing_is_the_exact_game(name):
    """Entropy is at most ``log 3``, so both objectives, before they are normalised, differ by ``m log 3`` at most."""
    X, y = noisy()
    exact = clone(MODELS[name][0]).set_params(smoothing=0.0, alpha=1e-2, tol=1e-4, intercept_scaling=1.0).fit(X, y)
    for smoothing in (1e-3, 1e-2, 1e-1):
        model = clone(exact).set_params(smoothing=smoothing, alpha=1e-2 * (1 + smoothing), tol=1e-4).fit(X, y)
        between = (1 + smoothing) * model.objective_ - exact.objective_  # alpha / 2 |w|^2 with the same w
        assert -1e-4 <= between <= smoothing * np.log(3) + 1e-4


@pytest.mark.parametrize("name", ["zero_one", "absolute", "squared", "cost", "abstain"])
@pytest.mark.parametrize("smoothing", [0.3, 1.0, 10.0])
def test_probabilities_are_those_of_the_labels_where_scores_are_free(name, smoothing):
    """One-hot points, each with its own distribution of labels, next to no regularisation: ``q`` is what they have."""
    rng = np.random.default_rng(3)
    pi = rng.dirichlet(np.ones(3), size=5)
    X, y = np.repeat(np.eye(5), 3, axis=0), np.tile(np.arange(3), 5)
    model = clone(MODELS[name][0]).set_params(alpha=1e-8, smoothing=smoothing, fit_intercept=False)
    model.fit(X, y, sample_weight=pi.ravel())
    assert np.abs(model.predict_proba(np.eye(5)) - pi).max() <= 1e-4
    risks = pi @ MODELS[name][1].T
    paid = (model.strategy(np.eye(5)) * risks).sum(axis=1)
    assert (paid - risks.min(axis=1) <= 1e-4).all()  # p has no regret


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("smoothing", [0.05, 1.0])
@pytest.mark.parametrize("model", [NashClassifier(), NashAbstainer(0.6), NashAbstainer(0.9)], ids=repr)
def test_the_prediction_is_the_most_probable_label_in_ties_too(model, smoothing, dtype):
    """Labels that ``p`` mixes are equally probable: rounding must not decide between them."""
    X, y = noisy(n=400)
    X = X.astype(dtype)
    model = clone(model).set_params(smoothing=smoothing, alpha=0.1).fit(X, y)
    q, p = model.predict_proba(X), model.strategy(X)
    assert q.dtype == np.float64
    assert (np.count_nonzero(p[:, :3], axis=1) > 1).sum() >= 5  # there are ties
    best = model.predict(X)
    assert np.array_equal(model.classes_[q.argmax(axis=1)], best)
    assert np.array_equal(model.classes_[model.predict_log_proba(X).argmax(axis=1)], best)
    assert np.array_equal(model.classes_[model.decision_function(X).argmax(axis=1)], best)


@each
def test_no_probability_is_too_small_for_its_logarithm(name):
    X, y = noisy()
    model = clone(MODELS[name][0]).set_params(smoothing=0.1).fit(X, y)
    far = 1e6 * X
    assert (model.predict_proba(far) == 0.0).any()
    logs = model.predict_log_proba(far)
    assert np.isfinite(logs).all() and logs.min() < -1e4


def test_what_auto_stands_for():
    X, y = noisy(n=60)
    for model, linear in ((NashClassifier(), 1.0), (NashAbstainer(), 1.0), (NashOrdinalClassifier(), 3.0)):
        assert model.get_params()["smoothing"] == model.get_params()["intercept_scaling"] == "auto"
        assert model.fit(X, y).smoothing_ == linear
        same = clone(model).set_params(smoothing=linear, intercept_scaling=10.0).fit(X, y)
        assert np.allclose(same.coef_, model.coef_, rtol=1e-9)
        model.set_params(kernel="rbf").fit(X, y)
        assert model.smoothing_ == 0.0
        same = clone(model).set_params(smoothing=0.0, intercept_scaling=1.0, random_state=0).fit(X, y)
        assert same.objective_ == pytest.approx(model.objective_, rel=2e-3)


@each
@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_probabilities_of_kernel_models_follow_from_their_coefficients(name, kernel):
    model, L = MODELS[name]
    X, y = noisy(n=80)
    model = clone(model).set_params(kernel=kernel, smoothing=0.5, gamma=0.5, alpha=1e-2).fit(X, y)
    game = games.absolute(3) if name == "ordinal" else games.cost(L)
    scores = scale(name) * 1.5 * model.decision_function(X)
    found = game.solve(scores, smoothing=0.5 * scale(name))
    assert np.allclose(model.predict_proba(X), found.q, rtol=0, atol=1e-8)
    value = np.mean(found.value - scores[np.arange(y.size), y]) / (scale(name) * 1.5)
    assert 0 < model.objective_ - value < model.objective_
    assert model.dual_gap_ <= model.tol


@each
def test_warm_starts_from_another_smoothing(name):
    X, y = noisy()
    model = clone(MODELS[name][0]).set_params(warm_start=True, alpha=1e-2, tol=1e-5)
    for smoothing in (0.0, 1.0, 0.1, 0.0):
        model.set_params(smoothing=smoothing).fit(X, y)
        cold = clone(model).set_params(warm_start=False).fit(X, y)
        assert model.objective_ == pytest.approx(cold.objective_, rel=3e-5)


@each
@pytest.mark.parametrize("smoothing", [0.0, 1.0])
def test_whoever_watches_is_told_of_the_normalised_loss(name, smoothing, capsys):
    X, y = noisy()
    seen = []
    model = clone(MODELS[name][0]).set_params(smoothing=smoothing, callback=seen.append, verbose=1).fit(X, y)
    assert [now.objective for now in seen[:-1]] == [now.objective for now in model.history_[:-1]]
    assert f"objective {seen[-1].objective:.8g}" in capsys.readouterr().out
    assert min(now.objective for now in seen) >= model.objective_ * (1 - model.dual_gap_) - 1e-12
    assert max(now.bound for now in seen) <= model.objective_ * (1 + 1e-9)


@pytest.mark.parametrize("change", [{"smoothing": 0.5}, {"intercept_scaling": 2.0}, {"loss": 2.0 * COST + 0.1}])
def test_checkpoints_belong_to_a_smoothing_and_a_constant(change, tmp_path):
    X, y = noisy()
    model = NashClassifier(COST, checkpoint=tmp_path / "state", max_iter=3, tol=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    model.set_params(max_iter=1000).fit(X, y)
    assert model.objective_ == pytest.approx(NashClassifier(COST, tol=1e-6).fit(X, y).objective_, rel=2e-6)
    assert model.history_[0].objective >= model.objective_
    with pytest.raises(ValueError, match="checkpoint"):
        model.set_params(**change).fit(X, y)


BAD = [
    ({"smoothing": "much"}, ValueError, "smoothing must be 'auto' or a number; got 'much'"),
    ({"smoothing": -0.1}, ValueError, "smoothing must be 'auto', 0, or a number between"),
    ({"smoothing": np.nan}, ValueError, "smoothing must"),
    ({"smoothing": np.inf}, ValueError, "smoothing must"),
    ({"smoothing": 1e-12}, ValueError, "smoothing must be 'auto', 0, or a number between"),
    ({"smoothing": True}, TypeError, "smoothing must be a number; got True"),
    ({"smoothing": None}, TypeError, "smoothing must be a number; got None"),
    ({"intercept_scaling": 0.0}, ValueError, "intercept_scaling must be 'auto' or a positive, finite number; got 0.0"),
    ({"intercept_scaling": "large"}, ValueError, "intercept_scaling must be 'auto' or a number; got 'large'"),
    ({"intercept_scaling": np.inf}, ValueError, "intercept_scaling must be 'auto' or a positive, finite number"),
]


@pytest.mark.parametrize("make", [NashClassifier, NashOrdinalClassifier, NashAbstainer])
@pytest.mark.parametrize(("parameters", "error", "words"), BAD, ids=[str(one[0]) for one in BAD])
def test_bad_parameters_are_named(make, parameters, error, words):
    X, y = noisy(n=30)
    with pytest.raises(error, match=words):
        make(**parameters).fit(X, y)


def test_probabilities_of_iris_are_better_than_the_strategy():
    """At the defaults the log loss is about that of logistic regression; ``p`` has none that is finite."""
    X, y = load_iris(return_X_y=True)
    model = NashClassifier().fit(X[::2], y[::2])  # alpha is 1 / n, as there
    own = np.arange(75)
    log_loss = -model.predict_log_proba(X[1::2])[own, y[1::2]].mean()
    logistic = LogisticRegression(max_iter=5000).fit(X[::2], y[::2])
    assert log_loss <= 1.2 * -logistic.predict_log_proba(X[1::2])[own, y[1::2]].mean()
    assert (model.strategy(X[1::2]) == 0.0).any()
