"""The papers' own algorithms reach the optimum that the estimators certify."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import scale

from nashlearn import NashClassifier, games
from reproduce.references import constraint_generation, gram_features, kernel_pegasos, stochastic_subgradient


def _data(load, n):
    X, y = load(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(y))[:n]
    return scale(X)[rows], y[rows]


def _constant(X):
    return np.column_stack([X, np.ones(len(X))])


def _objective(game, features, W, y, alpha):
    return 0.5 * alpha * np.vdot(W, W) + game.loss_value(features @ W.T, y).mean()


@pytest.mark.parametrize("load", [load_iris, load_wine])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_constraint_generation_agrees(load, C):
    X, y = _data(load, 80)
    generated = constraint_generation(_constant(X), y, 3, C)
    model = NashClassifier("zero_one", alpha=1.0 / (80 * C), smoothing=0, tol=1e-8).fit(X, y)
    assert generated.objective == pytest.approx(model.objective_, rel=1e-6)
    assert 0 < generated.active <= generated.added <= 80 * (2**3 - 1)


def test_constraint_generation_reports_its_own_weights():
    X, y = _data(load_iris, 60)
    generated = constraint_generation(_constant(X), y, 3, 1.0)
    game = games.zero_one(3)
    assert generated.objective == pytest.approx(_objective(game, _constant(X), generated.W, y, 1.0 / 60), rel=1e-9)


def test_constraint_generation_stops_at_its_limit():
    X, y = _data(load_iris, 60)
    with pytest.raises(RuntimeError, match="within 1 rounds"):
        constraint_generation(_constant(X), y, 3, 10.0, max_rounds=1)


def test_gram_features_reproduce_the_gram():
    X, _ = _data(load_wine, 40)
    gram = rbf_kernel(X, gamma=0.1)
    features = gram_features(gram)
    assert np.allclose(features @ features.T, gram, atol=1e-10)


def test_constraint_generation_agrees_with_a_kernel():
    X, y = _data(load_wine, 60)
    generated = constraint_generation(gram_features(rbf_kernel(X, gamma=0.1)), y, 3, 5.0)
    model = NashClassifier("zero_one", alpha=1.0 / 300, kernel="rbf", gamma=0.1, fit_intercept=False, tol=1e-7)
    assert generated.objective == pytest.approx(model.fit(X, y).objective_, rel=1e-6)


@pytest.mark.parametrize("loss", ["zero_one", "absolute", "squared"])
def test_subgradient_and_pegasos_come_near(loss):
    X, y = _data(load_iris, 60)
    features, alpha, game = _constant(X), 0.05, getattr(games, loss)(3)
    model = NashClassifier(loss, alpha=alpha * game.largest, smoothing=0, tol=1e-8)
    optimum = game.largest * model.fit(X, y).objective_
    primal = _objective(game, features, stochastic_subgradient(game, features, y, alpha, 4000), y, alpha)
    dual = kernel_pegasos(game, features @ features.T, y, alpha, 4000)
    kernel = _objective(game, features, dual.T @ features, y, alpha)
    assert optimum * (1 - 1e-8) <= primal <= 1.03 * optimum
    assert optimum * (1 - 1e-8) <= kernel <= 1.10 * optimum
