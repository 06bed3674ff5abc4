"""What training says about its result is true of the weights that it returns, however it ended."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from training_problems import LOSSES, data, per_class, thresholded

from nashlearn import NashOrdinalClassifier, games
from nashlearn.training import train
from nashlearn.training.methods.linear import Linear
from nashlearn.training.progress import Progress

NAMES = ["zero_one", "zero_one-weighted", "absolute", "squared", "abstain-0.2", "abstain-0.6", "cost-tall", "cost-ties"]


def fitted(problem, tol, max_iter=2000, start=None, seed=0):
    """The result, and whether a ConvergenceWarning came with it; any other warning is an error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trained = train(
            problem, Linear(), tol=tol, max_iter=max_iter, random_state=np.random.default_rng(seed), start=start
        )
    assert all(issubclass(w.category, ConvergenceWarning) for w in caught), [str(w.message) for w in caught]
    return trained, bool(caught)


def objective(problem, trained) -> float:
    """P(w) from the game's own losses, or, for thresholds, from the absolute game on prefix sums."""
    X = problem.X.toarray() if sp.issparse(problem.X) else np.asarray(problem.X, dtype=np.float64)
    w = trained.w
    if w.ndim == 2:
        scores = X @ w[:, :-1].T + problem.design.bias * w[:, -1]
        losses = problem.game.loss_value(scores, problem.y)
    else:
        above = (X @ w[: problem.d])[:, None] + w[problem.d :]
        losses = np.maximum(np.maximum(above, 0), (1 + above) / 2).sum(axis=1) - np.array(
            [row[:label].sum() for row, label in zip(above, problem.y, strict=True)]
        )
    return 0.5 * problem.alpha * float(np.vdot(w, w)) + float(problem.omega @ losses)


def assert_honest(problem, trained, warned, tol, lower_bound=-np.inf):
    """The objective belongs to the weights, the gap is kept or warned of, and no bound lies above the optimum."""
    assert np.isfinite(trained.w).all()
    assert np.isfinite(trained.objective)
    scores_scale = 1.0 + np.abs(trained.w).max() * np.sqrt(np.abs(problem.X).max())
    assert abs(trained.objective - objective(problem, trained)) <= 1e-10 * max(trained.objective, 1e-6 * scores_scale)
    assert warned == (trained.dual_gap > tol)
    assert trained.dual_gap >= 0
    assert trained.objective >= lower_bound - 1e-10 * abs(lower_bound)


def any_problem(name, n, alpha, csr=False, seed=3, k=3):
    X, y = data(seed=seed, n=n, d=4, k=k, csr=csr)
    if name == "thresholds":
        return thresholded(X, y, k, alpha)
    return per_class(X, y, LOSSES[name](k), alpha)


@pytest.mark.parametrize("n", [60, 500])
@pytest.mark.parametrize("name", [*NAMES, "thresholds"])
def test_the_gap_holds_against_a_tighter_solve(name, n):
    problem = any_problem(name, n, alpha=1e-3)
    tight, warned = fitted(problem, 1e-9, 4000)
    assert_honest(problem, tight, warned, 1e-9)
    assert not warned
    optimum_at_most, optimum_at_least = tight.objective, tight.objective * (1 - tight.dual_gap)
    for max_iter in (1, 2, 4, 8, 16):
        early, warned = fitted(problem, 1e-9, max_iter)
        assert early.n_iter <= max_iter
        assert_honest(problem, early, warned, 1e-9, optimum_at_least)
        assert early.objective * (1 - early.dual_gap) <= optimum_at_most * (1 + 1e-12)


@given(
    seed=st.integers(0, 2**32 - 1),
    name=st.sampled_from([*NAMES, "thresholds"]),
    n=st.sampled_from([20, 150]),
    log_alpha=st.floats(-6, 1),
    max_iter=st.integers(1, 30),
    csr=st.booleans(),
)
def test_a_run_that_ends_anywhere_is_honest(seed, name, n, log_alpha, max_iter, csr):
    problem = any_problem(name, n, 10.0**log_alpha, csr, seed)
    trained, warned = fitted(problem, 1e-6, max_iter)
    assert trained.n_iter <= max_iter
    assert_honest(problem, trained, warned, 1e-6)


@pytest.mark.parametrize("shape", ["few rows", "many rows"])
@pytest.mark.parametrize("alpha", 10.0 ** np.arange(-8, 3, 2))
@pytest.mark.parametrize("name", ["zero_one", "absolute", "squared", "abstain-0.2", "cost-square", "thresholds"])
def test_badly_scaled_data_end_with_an_honest_gap(name, alpha, shape):
    """Scales 1e-4 to 1e4, a constant column and a duplicated one: reach tol, or warn and know how far off."""
    n = 30 if shape == "few rows" else 300
    X, y = data(seed=5, n=n, d=5, k=3)
    X = np.column_stack([X * 10.0 ** np.array([-4, -2, 0, 2, 4]), np.ones(n), X[:, 1] * 1e-2])
    if name == "thresholds":
        problem = thresholded(X, y, 3, alpha)
    else:
        problem = per_class(X, y, LOSSES[name](3), alpha)
    trained, warned = fitted(problem, 1e-3, max_iter=200)
    assert_honest(problem, trained, warned, 1e-3)
    assert trained.objective <= problem.primal(np.zeros(problem.design.shape)) * (1 + 1e-12)
    other, _ = fitted(problem, 1e-3, max_iter=60, seed=1)
    assert trained.objective * (1 - trained.dual_gap) <= other.objective * (1 + 1e-9)
    assert other.objective * (1 - other.dual_gap) <= trained.objective * (1 + 1e-9)


@pytest.mark.parametrize("name", [*NAMES, "thresholds"])
def test_a_warm_start_reaches_the_same_optimum_sooner(name):
    problem = any_problem(name, 12_000, alpha=1e-3)  # too large to be polished beyond tol
    assert not problem.small
    cold, _ = fitted(problem, 1e-6)
    warm, warned = fitted(problem, 1e-6, start=cold)
    assert not warned
    assert warm.n_iter <= cold.n_iter
    assert abs(warm.objective - cold.objective) <= 1e-6 * cold.objective
    assert_honest(problem, warm, warned, 1e-6)


@pytest.mark.parametrize("after", [1, 3])
@pytest.mark.parametrize("n", [60, 600])
def test_an_interrupt_keeps_the_best_weights(n, after, monkeypatch):
    problem = any_problem("zero_one", n, alpha=1e-4)
    offered = []
    original = Progress.offer

    def interrupted(self, w, primal, dual, *errors):
        if len(offered) == after:
            raise KeyboardInterrupt
        offered.append((primal, dual))
        original(self, w, primal, dual, *errors)

    monkeypatch.setattr(Progress, "offer", interrupted)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trained = train(problem, Linear(), tol=1e-9, max_iter=1000, random_state=np.random.default_rng(0))
    assert any("interrupted" in str(w.message) for w in caught)
    assert any(issubclass(w.category, ConvergenceWarning) for w in caught)
    primal, dual = min(p for p, _ in offered), max(0.0, *(d for _, d in offered))  # no loss is negative
    assert trained.objective == primal
    assert abs(objective(problem, trained) - primal) <= 1e-12 * primal
    assert 0.0 <= trained.dual_gap - (primal - dual) / primal <= 1e-11  # with what rounding may hide


def test_an_interrupt_before_any_weights_gives_weights_of_zero(monkeypatch):
    def interrupted(self, w, primal, dual, *errors):
        raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "offer", interrupted)
    problem = any_problem("zero_one", 60, 1e-3)
    with pytest.warns() as caught:
        trained = train(problem, Linear(), tol=1e-3, max_iter=10, random_state=np.random.default_rng(0))
    assert any("interrupted" in str(w.message) for w in caught)
    assert not trained.w.any()
    assert trained.objective == pytest.approx(objective(problem, trained), rel=1e-12)
    assert trained.dual_gap == 1.0


@pytest.mark.parametrize("name", ["zero_one", "cost-tall", "thresholds"])
def test_a_run_that_has_hardly_begun_knows_that_no_loss_is_negative(name):
    """Next to no regularisation makes the first dual points' weights enormous, and their bounds worthless."""
    trained, warned = fitted(any_problem(name, 60, alpha=1e-8), 1e-9, max_iter=1)
    assert warned
    assert trained.dual_gap <= 1.0
    assert all(now.bound >= 0.0 for now in trained.rounds)


@pytest.mark.parametrize("kernel", [None, "rbf"])
@pytest.mark.parametrize("seed", range(8))
def test_thresholds_of_loose_fits_are_sorted_and_their_objective_is_that_of_the_game(seed, kernel):
    """Labels at random, more grades than the data can tell apart, and a fit that ends early."""
    rng = np.random.default_rng(seed)
    n, k = 60, 8
    X, y = rng.normal(size=(n, 3)), rng.integers(0, k, n)
    y[:k] = np.arange(k)
    weight = rng.exponential(size=n)
    model = NashOrdinalClassifier(
        alpha=1e-5, tol=0.3, max_iter=1 + seed % 3, kernel=kernel, smoothing=0.0, intercept_scaling=1.0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y, sample_weight=weight)
    assert (np.diff(model.thresholds_) >= 0).all()
    above = model._functions(X) - model.thresholds_
    scores = np.column_stack([np.zeros(n), np.cumsum(above, axis=1)])
    surrogate = np.average(games.absolute(k).loss_value(scores, y), weights=weight)
    norm = model.worst_case_risk(1.0) - model.worst_case_risk(0.0)
    assert model.objective_ == pytest.approx(surrogate + 0.5 * model.alpha * norm**2, rel=1e-9)
    assert model.history_[-1].objective == model.objective_
