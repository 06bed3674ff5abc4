"""The metric of L-BFGS: each class's own part of the Hessian, inverted."""

from __future__ import annotations

import numpy as np
import pytest
from training_problems import LOSSES, data, per_class, thresholded

import nashlearn.training.methods.class_metric as class_metric_module
from nashlearn.training import train
from nashlearn.training.methods.class_metric import class_metric, evaluations_between
from nashlearn.training.methods.linear import Linear
from nashlearn.training.methods.tangents import Tangents


def stepped(problem, mu, w):
    """Proximal steps at the weights from the most uncertain strategies."""
    centre = np.tile(problem.game.uncertain, (problem.n, 1))
    Q, tight = centre.copy(), np.zeros((problem.n, problem.n_options), np.bool_)
    problem.smoothed(w, mu, centre, Q, tight)
    return Q, tight


@pytest.mark.parametrize("csr", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("name", ["zero_one", "cost-square", "absolute"])
def test_blocks_are_those_of_the_hessian(name, csr, monkeypatch):
    """Without a ridge, and from all rows, each matrix is the inverse of a diagonal block of the Hessian itself."""
    monkeypatch.setattr(class_metric_module, "_RIDGE", 0.0)
    X, y = data(seed=3, n=60, d=4, k=3, csr=csr)
    problem = per_class(X, y, LOSSES[name](3), alpha=1e-2)
    Q, tight = stepped(problem, 0.5, np.random.default_rng(0).normal(size=problem.shape))
    found = class_metric(problem, 0.5, Q, tight, problem.alpha, np.random.default_rng(0))
    lower = np.tril(Tangents(problem, 0.5, Q, tight, np.arange(problem.n)).matrix())
    H = lower + np.tril(lower, -1).T + problem.alpha * np.eye(problem.n_weights)
    m = problem.design.common
    for c in range(problem.k):
        own = slice(c * m, (c + 1) * m)
        np.testing.assert_allclose(found[c] @ H[own, own], np.eye(m), atol=1e-5)


def test_no_metric_of_features_that_are_too_large_for_it():
    X, y = data(seed=4, n=60, d=4, k=3)
    X[:, 0] *= 1e25
    problem = per_class(X, y, LOSSES["zero_one"](3), alpha=1e-2)
    Q = np.random.default_rng(0).dirichlet(np.ones(3), size=60)
    assert class_metric(problem, 0.5, Q, np.eye(3, dtype=bool)[y], problem.alpha, np.random.default_rng(0)) is None


def test_no_metric_where_no_row_is_at_a_kink():
    X, y = data(seed=4, n=30, d=4, k=3)
    problem = per_class(X, y, LOSSES["zero_one"](3), alpha=1e-2)
    Q = problem.truth()
    assert class_metric(problem, 0.5, Q, Q > 0.0, problem.alpha, np.random.default_rng(0)) is None


def test_one_direction_for_all_labels_has_newtons_method_instead():
    X, y = data(seed=5, n=50, d=4, k=4)
    assert np.isinf(evaluations_between(thresholded(X, y, 4, alpha=1e-2)))
    assert np.isfinite(evaluations_between(per_class(X, y, LOSSES["zero_one"](4), alpha=1e-2)))


def test_it_saves_steps(monkeypatch):
    """Many classes that overlap, on features of one size: second moments have nothing to say, the rows in play do."""
    rng = np.random.default_rng(6)
    X, W = rng.standard_normal((3000, 30)), rng.standard_normal((30, 8))
    y = np.argmax(X @ W + 2.0 * rng.gumbel(size=(3000, 8)), axis=1)
    problem = per_class(X, y, LOSSES["zero_one"](8), alpha=1e-5)

    def steps():
        return train(problem, Linear(), tol=1e-3, max_iter=500, random_state=np.random.default_rng(0)).n_iter

    found = steps()
    monkeypatch.setattr(class_metric_module, "_SOONEST", np.inf)
    assert found < 0.8 * steps()
