"""Fisher consistency through training: enough copies of a point, and its Bayes answer is learnt."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from nashlearn import NashAbstainer, NashClassifier, games

TIMES = 20


def points(distributions):
    """One-hot points whose labels occur in the given proportions, exactly."""
    counts = np.rint(TIMES * np.asarray(distributions)).astype(int)
    place, label = np.indices(counts.shape)
    places, labels = np.repeat(place.ravel(), counts.ravel()), np.repeat(label.ravel(), counts.ravel())
    return np.eye(len(counts))[places], labels, counts / counts.sum(axis=1, keepdims=True)


def proportions(seed, places, k):
    """Random label counts that add up to ``TIMES`` at every point."""
    rng = np.random.default_rng(seed)
    return np.array([rng.multinomial(TIMES, rng.dirichlet(np.ones(k))) for _ in range(places)]) / TIMES


def test_the_most_frequent_label_is_learnt_without_a_majority():
    """At (.4, .3, .3) Crammer and Singer's hinge is least where all scores tie; the game's loss is not."""
    X, y, pi = points([[0.4, 0.3, 0.3], [0.3, 0.4, 0.3], [0.3, 0.3, 0.4]])
    bayes = pi.argmax(axis=1)
    for smoothing in (0.1, 1.0, 10.0):
        tempered = NashClassifier(alpha=1e-5, fit_intercept=False, smoothing=smoothing).fit(X, y)
        assert np.array_equal(tempered.predict(np.eye(3)), bayes)
    model = NashClassifier(alpha=1e-3, fit_intercept=False, smoothing=0.0).fit(X, y)
    assert np.array_equal(model.predict(np.eye(3)), bayes)
    scores = np.sort(model.decision_function(np.eye(3)), axis=1)
    assert (scores[:, 2] - scores[:, 1] > 0.5).all()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        hinge = LinearSVC(
            multi_class="crammer_singer", C=1 / (1e-3 * y.size), fit_intercept=False, max_iter=100_000, random_state=0
        ).fit(X, y)
    tied = np.sort(hinge.decision_function(np.eye(3)), axis=1)
    assert (tied[:, 2] - tied[:, 1] < 1e-3).all()
    assert not np.array_equal(hinge.predict(np.eye(3)), bayes)


LOSSES = {
    "zero_one": ("zero_one", games.zero_one(4)),
    "absolute": ("absolute", games.absolute(4)),
    "squared": ("squared", games.squared(4)),
    "cost": (np.random.default_rng(0).random((4, 4)), games.cost(np.random.default_rng(0).random((4, 4)))),
    "rectangular": (np.random.default_rng(1).random((7, 4)), games.cost(np.random.default_rng(1).random((7, 4)))),
}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", [*LOSSES, "abstain"])
def test_the_objective_is_that_of_the_bayes_scores_at_most(name, seed):
    """Scores ``-L' b`` with Bayes answers ``b`` attain the Bayes risk, so training may not lose more than their norm.

    The randomised prediction costs no more than the surrogate, and no less than the Bayes answers.
    """
    X, y, pi = points(proportions(seed, places=6, k=4))
    places = np.eye(6)
    if name == "abstain":
        game, model = games.abstain(4, 0.4), NashAbstainer(0.4, alpha=1e-6, fit_intercept=False, smoothing=0.0)
    else:
        loss, game = LOSSES[name]
        model = NashClassifier(loss, alpha=1e-6, fit_intercept=False, smoothing=0.0)
    unit = game.costs.max()
    risks = pi @ game.costs.T
    bayes_risk = risks.min(axis=1).mean()
    bayes_scores = -game.costs[risks.argmin(axis=1)]
    centred = bayes_scores - bayes_scores.mean(axis=1, keepdims=True)
    model.fit(X, y)
    assert model.classes_.size == 4
    bound = bayes_risk / unit + 0.5 * model.alpha * np.sum((centred / unit) ** 2)
    assert model.objective_ * (1 - model.dual_gap_) <= bound * (1 + 1e-10)
    p = game.solve(unit * model.decision_function(places)).p
    expected = np.mean(np.sum(p * risks, axis=1))
    assert bayes_risk - 1e-12 <= expected <= model.worst_case_risk() + 1e-9
    assert expected - bayes_risk <= 2e-3


def population(rng):
    """A cost matrix and label probabilities such that the runner-up is dearer than the best option by 2 % or more.

    Square or not, diagonal 0 or not, whole numbers or any, sometimes with a label that never occurs.
    """
    while True:
        k = int(rng.integers(2, 6))
        square, diagonal, whole = rng.random(3) < 0.5
        options = k if square else int(rng.integers(2, 8))
        L = 10.0 ** rng.uniform(-2, 3) * rng.random((options, k)) ** rng.integers(1, 4)
        if whole:
            L = rng.integers(0, 6, (options, k)).astype(float)
        if square and diagonal:
            np.fill_diagonal(L, 0.0)
        pi = rng.dirichlet(np.full(k, rng.choice([0.3, 1.0, 5.0])))
        if rng.random() < 0.2:
            pi[rng.integers(k)] = 0.0
            pi /= pi.sum()
        risks = np.sort(L @ pi)
        if risks[1] - risks[0] >= 0.02 * L.max() > 0:
            return L, pi


@pytest.mark.parametrize("times", [100, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, "auto"])
def test_the_default_decision_is_bayes_at_one_point_whatever_the_costs(smoothing, times):
    """Many populations: one input, labels weighted by their probabilities, next to no regularisation.

    Where there is smoothing, ``q`` is the distribution of the labels.
    """
    rng = np.random.default_rng(0)
    shapes = {"square": 0, "rectangular": 0, "costly to be right": 0, "scores are wrong": 0}
    for _ in range(times):
        L, pi = population(rng)
        y = np.arange(pi.size)
        model = NashClassifier(L, alpha=1e-6, smoothing=smoothing, intercept_scaling=1.0)
        model.fit(np.ones((pi.size, 1)), y, sample_weight=pi)
        bayes = int((L @ pi).argmin())
        assert model.predict([[1.0]])[0] == bayes
        if smoothing:
            assert np.abs(model.predict_proba([[1.0]])[0] - pi).max() <= 1e-4
        is_square = L.shape[0] == L.shape[1]
        shapes["square" if is_square else "rectangular"] += 1
        shapes["costly to be right"] += is_square and np.diagonal(L).any()
        shapes["scores are wrong"] += is_square and model.set_params(decision="scores").predict([[1.0]])[0] != bayes
    assert min(shapes.values()) >= 0.05 * times


@pytest.mark.parametrize("smoothing", [0.0, "auto"])
@pytest.mark.parametrize("loss", ["zero_one", "absolute", "squared", "weighted"])
def test_the_default_decision_is_bayes_for_named_losses(loss, smoothing):
    rng = np.random.default_rng(1)
    rules = set()
    for _ in range(60):
        while True:
            k = int(rng.integers(2, 6))
            pi = rng.dirichlet(np.full(k, 0.5))
            weights = rng.uniform(0.2, 3.0, k)
            game = games.zero_one(k, weights) if loss == "weighted" else getattr(games, loss)(k)
            risks = np.sort(game.costs @ pi)
            if risks[1] - risks[0] >= 0.02 * game.costs.max():
                break
        model = NashClassifier((lambda k, game=game: game) if loss == "weighted" else loss, alpha=1e-6)
        model.set_params(smoothing=smoothing, intercept_scaling=1.0)
        model.fit(np.ones((k, 1)), np.arange(k), sample_weight=pi)
        assert model.predict([[1.0]])[0] == (game.costs @ pi).argmin()
        rules.add(model.decision_)
    assert ("scores" in rules) == (loss != "weighted")
    assert ("equilibrium" in rules) == (loss != "zero_one")


def test_a_costly_right_answer_is_given_where_it_is_the_cheapest():
    """60 % of the second class, whose overlooking costs 100; answering it costs 5 at any rate."""
    L = np.array([[0.0, 100.0], [5.0, 5.0]])
    X, y = np.ones((10, 1)), np.repeat([0, 1], [4, 6])
    for smoothing in (0.0, "auto"):
        model = NashClassifier(L, alpha=1e-6, smoothing=smoothing).fit(X, y)
        assert (model.predict(X) == 1).all()
        assert model.task_loss(X, y) == 5.0 == -model.score(X, y)
