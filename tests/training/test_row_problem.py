"""Both sides of the training problem of rows at any weights and any label distributions, from their definitions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from training_problems import LOSSES, data, per_class, shares, thresholded

from nashlearn.solvers.threads import threads
from nashlearn.training.designs.span import SpanPerClass, SpanShared

NAMES = ["zero_one", "zero_one-weighted", "absolute", "squared", "abstain-0.2", "cost-tall"]
K, ALPHA, BIAS = 3, 0.3, 0.7


def features(problem, i):
    """``Phi(x_i)``, of shape (scores, weights)."""
    x = problem.X.toarray()[i] if sp.issparse(problem.X) else problem.X[i]
    if problem.design.shape == (K - 1 + x.size,):
        return np.column_stack([np.tile(x, (K - 1, 1)), np.eye(K - 1)])
    return np.kron(np.eye(K), np.r_[x, problem.design.bias])


def made(name, seed, csr=False):
    X, y = data(seed=seed, n=16, d=2, k=K, csr=csr)
    omega = shares(seed, 16, True)
    if name == "thresholds":
        return thresholded(X, y, K, ALPHA, omega)
    return per_class(X, y, LOSSES[name](K), ALPHA, omega, BIAS)


def risk(problem, q):
    return np.minimum(q, 1.0 - q).sum() if q.size == K - 1 else (problem.game.costs @ q).min()


@pytest.mark.parametrize("name", [*NAMES, "thresholds"])
@given(seed=st.integers(0, 2**32 - 1), csr=st.booleans())
@settings(max_examples=10)
def test_both_sides_are_those_of_their_definitions(name, seed, csr):
    problem, rng = made(name, seed, csr), np.random.default_rng(seed)
    w = rng.normal(size=problem.shape)
    if name == "thresholds":
        Q = rng.random((16, K - 1))
    else:
        Q = rng.dirichlet(np.full(K, 0.5), size=16)
    Phi, Y = [features(problem, i) for i in range(16)], problem.truth()
    moments = sum(problem.omega[i] * Phi[i].T @ (Q[i] - Y[i]) for i in range(16))
    assert problem.moments(Q).ravel() == pytest.approx(moments, abs=1e-12)
    scores = np.array([phi @ w.ravel() for phi in Phi])
    losses = problem.game.solve(scores).value - (scores * Y).sum(axis=1)
    primal = 0.5 * ALPHA * (w**2).sum() + problem.omega @ losses
    assert problem.primal(w) == pytest.approx(primal, abs=1e-10)
    own = -problem.moments(Q) / ALPHA
    dual = sum(problem.omega[i] * risk(problem, Q[i]) for i in range(16)) - (moments @ moments) / (2.0 * ALPHA)
    assert problem.dual(Q, own) == pytest.approx(dual, abs=1e-10)
    assert problem.dual(Q, own) <= primal + 1e-12


@pytest.mark.parametrize("name", [*NAMES, "thresholds"])
def test_diameters_are_the_largest_distances_of_moments(name):
    problem = made(name, 0)
    vertices = problem.game.labels.vertex(np.arange(K))
    far = [max(((features(problem, i).T @ (a - b)) ** 2).sum() for a in vertices for b in vertices) for i in range(16)]
    assert problem.squared_diameters() == pytest.approx(far)
    # Those of kernels, from the diagonals of their Gram matrices: the intercept of rows is one more feature.
    diagonal = (problem.X**2).sum(axis=1)
    if name == "thresholds":
        assert SpanShared(K - 1).squared_diameters(diagonal) == pytest.approx(far)
    else:
        assert SpanPerClass(K).squared_diameters(diagonal + BIAS**2) == pytest.approx(far)


@pytest.mark.parametrize("name", [*NAMES, "thresholds"])
@given(seed=st.integers(0, 2**32 - 1), mu=st.sampled_from([0.05, 2.0]))
@settings(max_examples=10)
def test_smoothed_objectives_are_those_of_their_strategies(name, seed, mu):
    """``max_q <s, q - y> + risk(q) - mu/2 |q - centre|^2``: attained by what is written, by no other strategy."""
    problem, rng = made(name, seed), np.random.default_rng(seed)
    w, k = rng.normal(size=problem.shape), problem.truth().shape[1]

    def strategies():
        return rng.random((16, k)) if name == "thresholds" else rng.dirichlet(np.ones(k), size=16)

    def smoothed(Q):
        each = [
            (features(problem, i) @ w.ravel()) @ (Q[i] - Y[i])
            + risk(problem, Q[i])
            - 0.5 * mu * ((Q[i] - centre[i]) ** 2).sum()
            for i in range(16)
        ]
        return 0.5 * ALPHA * (w**2).sum() + problem.omega @ each

    Y, centre, Q = problem.truth(), strategies(), strategies()
    tight = np.empty((16, problem.n_options), np.bool_)
    value, upper, dual, moments = problem.smoothed(w, mu, centre, Q, tight)
    assert value == pytest.approx(smoothed(Q), abs=1e-10)
    assert all(smoothed(Q + 0.1 * (strategies() - Q)) <= value + 1e-10 for _ in range(5))
    assert upper >= problem.primal(w) - 1e-10
    assert dual == pytest.approx(problem.dual(Q, moments / -ALPHA), abs=1e-10)
    assert moments == pytest.approx(problem.moments(Q), abs=1e-12)
    sharp = problem.smoothed(w, 1e-9, centre, Q.copy(), tight)
    assert sharp[1] == pytest.approx(problem.primal(w), abs=1e-7)  # the predictor has next to no smoothing to fear


@pytest.mark.parametrize("csr", [False, True])
@pytest.mark.parametrize("name", ["zero_one", "cost-tall", "thresholds"])
def test_any_number_of_threads_finds_the_same_to_the_last_bit(name, csr, monkeypatch):
    monkeypatch.setattr("nashlearn.training.problem._WORK", 1)
    monkeypatch.setattr("nashlearn.training.problem._FEWEST", 16)
    X, y = data(seed=5, n=400, d=6, k=K, csr=csr)
    omega, rng = shares(5, 400, True), np.random.default_rng(5)
    seen = []
    for jobs in (1, 2, 5):
        made = (
            thresholded(X, y, K, ALPHA, omega)
            if name == "thresholds"
            else per_class(X, y, LOSSES[name](K), ALPHA, omega, BIAS)
        )
        made.run, rng = threads(jobs), np.random.default_rng(5)
        w, Q = rng.normal(size=made.shape), rng.dirichlet(np.ones(made.truth().shape[1]), size=400)
        evaluations = [
            made.evaluate(w.ravel(), smoothing) for smoothing in ((0.0,) if name == "thresholds" else (0.0, 0.5))
        ]
        seen.append(
            [made.moments(Q), made.primal(w), *(part for one in evaluations for part in one if part is not None)]
        )
    assert len(list(made.blocks())) > 20, "too few blocks: nothing is shown"
    for other in seen[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(seen[0], other, strict=True))
