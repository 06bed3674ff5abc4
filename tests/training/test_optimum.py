"""Training reaches the optimum of an independent quadratic program, by every route, and says how close it is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from qp_reference import per_class_optimum, threshold_optimum
from training_problems import LOSSES, data, per_class, shares, thresholded

from nashlearn.training import train
from nashlearn.training.methods.linear import Linear

TIGHT = 1e-9
REFERENCE = 1e-7  # accuracy of the reference


def solve(problem, tol=TIGHT, max_iter=5000, **options):
    return train(problem, Linear(), tol=tol, max_iter=max_iter, random_state=np.random.default_rng(0), **options)


def assert_optimal(trained, optimum):
    """The objective lies above the optimum by no more than it admits to, and by less than 1e-6."""
    slack = REFERENCE * optimum + 1e-10
    assert trained.objective - optimum <= 1e-6 * optimum + 1e-10
    assert trained.objective - optimum >= -slack
    assert trained.objective * (1 - trained.dual_gap) <= optimum + slack


@pytest.mark.parametrize("csr", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_reaches_the_reference(name, k, csr):
    game = LOSSES[name](k)
    X, y = data(seed=k, n=40, d=3, k=k, csr=csr)
    for alpha, weighted, bias in [(1e-3, False, 1.0), (0.1, True, 1.0), (1e-2, True, 0.0)]:
        omega = shares(1, y.size, weighted)
        optimum = per_class_optimum(X, y, omega, alpha, game.costs, bias)
        assert_optimal(solve(per_class(X, y, game, alpha, omega, bias)), optimum)


@pytest.mark.parametrize("csr", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("k", [2, 3, 4])
def test_thresholds_reach_the_thesis_loss(k, csr):
    X, y = data(seed=k, n=40, d=3, k=k, csr=csr)
    for alpha, weighted in [(1e-4, False), (1e-3, True), (0.1, True)]:
        omega = shares(2, y.size, weighted)
        trained = solve(thresholded(X, y, k, alpha, omega))
        optimum, thresholds = threshold_optimum(X, y, omega, alpha, k)
        assert_optimal(trained, optimum)
        # Strong convexity turns an error of the objective into one of the weights.
        assert np.abs(-trained.w[X.shape[1] :] - thresholds).max() <= np.sqrt(4 * REFERENCE * optimum / alpha)


@given(
    seed=st.integers(0, 2**32 - 1),
    k=st.integers(2, 4),
    name=st.sampled_from(sorted(LOSSES)),
    log_alpha=st.floats(-4, 1),
    csr=st.booleans(),
)
def test_any_small_problem_reaches_the_reference(seed, k, name, log_alpha, csr):
    game = LOSSES[name](k)
    X, y = data(seed, n=20, d=2, k=k, csr=csr)
    omega = shares(seed, y.size, True)
    alpha = 10.0**log_alpha
    assert_optimal(solve(per_class(X, y, game, alpha, omega)), per_class_optimum(X, y, omega, alpha, game.costs))
