"""Dual ascent, Newton with a factored Hessian, Newton with conjugate gradients: one optimum."""

from __future__ import annotations

import numpy as np
import pytest
from training_problems import LOSSES, data, per_class, thresholded

import nashlearn.training.methods.linear as linear_module
import nashlearn.training.methods.newton as newton_module
from nashlearn.training import train
from nashlearn.training.methods.ascent import Ascent, AscentState
from nashlearn.training.methods.linear import Linear
from nashlearn.training.methods.newton import Newton, NewtonState

ROUTED = ["zero_one", "zero_one-weighted", "absolute", "squared", "abstain-0.2", "abstain-0.6", "cost-tall"]


def by_ascent(problem, tol, max_iter=20_000):
    return train(problem, Ascent(), tol=tol, max_iter=max_iter, random_state=np.random.default_rng(0))


def by_newton(problem, tol, max_iter=3000):
    return train(problem, Newton(), tol=tol, max_iter=max_iter, random_state=np.random.default_rng(0))


def assert_agree(*runs, tol):
    """Each run reaches ``tol``, and the intervals that hold the optimum meet."""
    for run in runs:
        assert run.dual_gap <= tol
    highest_dual, lowest_primal = max(run.rounds[-1].bound for run in runs), min(run.objective for run in runs)
    for run in runs:
        assert run.objective * (1 - run.dual_gap) <= lowest_primal * (1 + 1e-12)
        assert run.objective >= highest_dual * (1 - 1e-12)


@pytest.mark.parametrize("csr", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("name", ROUTED)
def test_each_method_alone_reaches_the_same_optimum(name, csr, monkeypatch):
    X, y = data(seed=11, n=60, d=4, k=3, csr=csr)
    problem = per_class(X, y, LOSSES[name](3), alpha=1e-2)
    ascended, factored = by_ascent(problem, 1e-6), by_newton(problem, 1e-8)
    monkeypatch.setattr(newton_module, "DENSE_LIMIT", 0)
    conjugate = by_newton(problem, 1e-6)
    assert_agree(ascended, factored, conjugate, tol=1e-6)


@pytest.mark.parametrize("csr", [False, True], ids=["dense", "csr"])
def test_thresholds_by_either_newton(csr, monkeypatch):
    X, y = data(seed=12, n=80, d=4, k=4, csr=csr)
    problem = thresholded(X, y, 4, alpha=1e-2)
    factored = by_newton(problem, 1e-8)
    monkeypatch.setattr(newton_module, "DENSE_LIMIT", 0)
    assert_agree(factored, by_newton(problem, 1e-6), tol=1e-6)


@pytest.mark.parametrize(("n", "newton_first"), [(24, False), (600, True)])
@pytest.mark.parametrize("name", ["zero_one", "squared", "cost-square"])
def test_train_takes_both_routes_to_the_same_optimum(n, newton_first, name, monkeypatch):
    """Fifteen weights: 24 rows begin with ascent, 600 with Newton, and the other route finds the same value."""
    X, y = data(seed=n, n=n, d=4, k=3)
    problem = per_class(X, y, LOSSES[name](3), alpha=1e-3)
    taken = []

    class Watched(Linear):
        def update(self, run, state):
            taken.append(type(state))
            return super().update(run, state)

    rng = np.random.default_rng(0)
    trained = train(problem, Watched(), tol=1e-8, max_iter=3000, random_state=rng)
    assert taken[0] is (NewtonState if newton_first else AscentState)
    routes = len(taken)
    monkeypatch.setattr(linear_module, "_CROWDED", np.inf if newton_first else 0)
    other = train(problem, Watched(), tol=1e-8, max_iter=3000, random_state=rng)
    assert taken[routes] is (AscentState if newton_first else NewtonState)
    assert trained.dual_gap <= 1e-8
    assert other.dual_gap <= 1e-8
    assert abs(trained.objective - other.objective) <= 1e-8 * max(trained.objective, other.objective)
