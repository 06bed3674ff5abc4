"""Dual ascent, Newton with a factored Hessian, Newton with conjugate gradients: one optimum."""

from __future__ import annotations

import numpy as np
import pytest
from training_problems import LOSSES, data, per_class, shares, thresholded

import nashlearn.training.methods.linear as linear_module
import nashlearn.training.methods.newton as newton_module
from nashlearn.training import train
from nashlearn.training.driver import Run
from nashlearn.training.methods.ascent import Ascent, AscentState
from nashlearn.training.methods.linear import Linear
from nashlearn.training.methods.newton import Newton
from nashlearn.training.methods.newton_state import NewtonState, drawn_to_truth
from nashlearn.training.progress import Progress

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


@pytest.mark.parametrize(("n", "newton_first"), [(8, False), (600, True)])
@pytest.mark.parametrize("name", ["zero_one", "squared", "cost-square"])
def test_train_takes_both_routes_to_the_same_optimum(n, newton_first, name, monkeypatch):
    """Fifteen weights: eight rows begin with ascent, 600 with Newton, and the other route finds the same value."""
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


@pytest.mark.parametrize("csr", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("name", ROUTED)
def test_steps_on_the_support_lead_to_the_same_optimum_and_never_lower_the_dual(name, csr, monkeypatch):
    """Ascent that solves for the examples with weight after every sweep, whatever that costs.

    Rows of another class, too light to be heard, play it for sure: they are not solved for, but have their say.
    """
    X, y = data(seed=13, n=40, d=9, k=3, csr=csr)
    omega = shares(3, 40, weighted=True)
    y[10:20], omega[10:20] = (y[10:20] + 1) % 3, 0.1 * omega[10:20]
    problem = per_class(X, y, LOSSES[name](3), alpha=1e-3, omega=omega / omega.sum())
    duals = []

    class Watched(Linear):
        def update(self, run, state):
            before = problem.dual(state.Q, problem.moments(state.Q) / -problem.alpha)
            supported = isinstance(state, AscentState) and self._few(run, state)
            found = super().update(run, state)
            if supported:
                duals.append((before, found[1].dual))
            return found

    monkeypatch.setattr(linear_module, "_CROWDED", np.inf)
    monkeypatch.setattr(linear_module, "_PAID", 0.0)
    monkeypatch.setattr(linear_module, "_NEWTON_STEPS", 1e9)
    trained = train(problem, Watched(), tol=1e-8, max_iter=500, random_state=np.random.default_rng(0))
    assert duals
    assert all(after >= before - 1e-12 for before, after in duals)
    assert_agree(trained, by_newton(problem, 1e-8), tol=1e-8)


@pytest.mark.parametrize("name", ["zero_one", "cost-tall", "abstain-0.6"])
@pytest.mark.parametrize("alpha", [1e-6, 1e-3, 10.0])
def test_the_first_weights_have_a_certificate_that_is_true(name, alpha):
    """Drawn towards the labels, strategies make a dual point, and the dual there is no less than what is said."""
    X, y = data(seed=14, n=200, d=5, k=3)
    problem = per_class(X, y, LOSSES[name](3), alpha=alpha)
    run = Run(problem, alpha, 1e-8, Progress(1e-8, 10), np.random.default_rng(0), None)
    state, offer = Newton().init(run)
    share, dual = drawn_to_truth(run, state)
    point = share * state.Q + (1.0 - share) * problem.truth()
    assert 0.0 <= dual == pytest.approx(offer.dual, rel=1e-12)
    assert dual <= problem.dual(point, problem.moments(point) / -alpha) + 1e-12
    for other in np.linspace(0.0, 1.0, 11):  # no other share is better by the same bound
        risk = state.dual + np.vdot(state.G, state.G) / (2.0 * alpha)
        assert dual >= other * risk - other**2 * np.vdot(state.G, state.G) / (2.0 * alpha) - 1e-12
    assert dual <= by_newton(problem, 1e-8).objective


@pytest.mark.parametrize("name", ["zero_one", "cost-tall", "abstain-0.6"])
def test_mixtures_of_strategies_never_promise_more_than_the_optimum(name):
    X, y = data(seed=16, n=400, d=6, k=3)
    problem = per_class(X, y, LOSSES[name](3), alpha=1e-3)
    run = Run(problem, 1e-3, 1e-8, Progress(1e-8, 100), np.random.default_rng(0), None)
    method, best, mixed = Newton(), by_newton(problem, 1e-8).objective, 0
    state, offer = method.init(run)
    for _ in range(12):
        assert offer is None or offer.dual <= best + 1e-12
        if offer is not None:
            run.progress.offer(*offer)
            mixed += offer.dual > drawn_to_truth(run, state)[1] + 1e-9
        state, offer = method.update(run, state)
    assert mixed  # some bound is better than that of the last strategies alone


def test_few_iterations_leave_a_gap_below_one():
    X, y = data(seed=15, n=600, d=5, k=3)
    problem = per_class(X, y, LOSSES["zero_one"](3), alpha=1e-5)
    with pytest.warns(UserWarning, match="gap"):
        assert by_newton(problem, 1e-8, max_iter=2).dual_gap < 1.0


@pytest.mark.parametrize("gives_up", [False, True], ids=["L-BFGS", "Newton"])
def test_few_rows_make_a_start_whatever_they_end_with(gives_up, monkeypatch):
    """Where few rows have come to Newton's method, its Hessian is no metric for the classes of all rows."""
    monkeypatch.setattr(newton_module, "_FEW", 2)
    X, y = data(seed=14, n=600, d=4, k=3)
    problem, seen = per_class(X, y, LOSSES["cost-square"](3), alpha=1e-4), []

    class Watched(Newton):
        def _slow(self, run, state):
            seen.append(run.problem.n)
            return gives_up and run.problem.n < 600

    trained = train(problem, Watched(), tol=1e-4, max_iter=3000, random_state=np.random.default_rng(0))
    assert min(seen) < 600 == max(seen)
    assert_agree(trained, by_ascent(problem, 1e-4), tol=1e-4)


@pytest.mark.parametrize("name", ["zero_one", "cost-square", "absolute"])
def test_the_objective_is_seldom_computed_and_always_the_one_returned(name, monkeypatch):
    X, y = data(seed=15, n=800, d=4, k=4)
    problem, made = per_class(X, y, LOSSES[name](4), alpha=1e-3), []
    of_weights = type(problem).primal
    monkeypatch.setattr(type(problem), "primal", lambda self, w: made.append(w) or of_weights(self, w))
    trained = by_newton(problem, 1e-3)
    assert trained.dual_gap <= 1e-3
    assert trained.objective == of_weights(problem, trained.w)
    assert len(made) <= 0.5 * len(trained.rounds)
