"""Law 0: a certificate fed with any strategies, optimal or not, reports at least their true gap, and no fancy figure.

The strategies are mixtures of vertices: random ones, equilibria of other scores, and equilibria that a linear programme
over all vertices finds, moved a little. Enumeration says what each is worth.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from shipped_games import SHIPPED, Shipped

SIZES = (1.0, 0.1, 1e-2, 1e-4)
fed = [(case, name) for case in SHIPPED for name in case.certificates]
stopped = [(case, name) for case in SHIPPED for name in case.reports]
seeds = st.integers(0, 2**32 - 1)


def named(pairs):
    return {"argnames": "case, name", "argvalues": pairs, "ids": [f"{case.id}-{name}" for case, name in pairs]}


def equilibrium(case: Shipped, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both players' strategies in the game of all vertices, by linear programming."""
    C = case.options @ case.L @ case.labels.T
    worth = case.labels @ theta
    options, labels = C.shape
    # min t: t >= worth_b + (C' nu)_b; the multipliers are the adversary's mixture.
    found = linprog(
        np.r_[np.zeros(options), 1.0],
        np.hstack([C.T, -np.ones((labels, 1))]),
        -worth,
        np.r_[np.ones(options), 0.0][None],
        [1.0],
        bounds=[(0, None)] * options + [(None, None)],
        method="highs",
    )
    mu = np.maximum(-found.ineqlin.marginals, 0.0)
    return found.x[:-1] @ case.options, mu / mu.sum() @ case.labels


def mixed(case: Shipped, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Random strategies, some of them vertices."""
    heat = float(rng.choice([0.02, 0.3, 3.0]))
    return tuple(rng.dirichlet(np.full(len(x), heat)) @ x for x in (case.options, case.labels))  # type: ignore[return-value]


def rounding(case: Shipped, theta: np.ndarray) -> float:
    return 1e-11 * (1.0 + np.abs(theta).max() + np.abs(case.L).max()) * case.labels.shape[1]


def assert_law(case: Shipped, theta, p, q, gap: float, slack: float) -> None:
    true = case.gap(theta, p, q)
    assert gap >= true - slack
    if case.exact:
        assert gap <= true + slack


@pytest.mark.parametrize(**named(fed))
@given(seed=seeds)
@settings(max_examples=12)
def test_strategies_that_are_no_equilibrium_have_their_true_gap(case, name, seed):
    rng = np.random.default_rng(seed)
    theta = case.scores(rng)
    slack = rounding(case, theta) if case.exact else 1e-7 * (1.0 + np.abs(theta).max())
    for p, q in (mixed(case, rng), equilibrium(case, case.scores(rng))):
        assert_law(case, theta, p, q, case.certificates[name](theta, p, q), slack)


@pytest.mark.parametrize(**named(fed))
@given(seed=seeds)
@settings(max_examples=6)
def test_gaps_vanish_towards_the_equilibrium(case, name, seed):
    rng = np.random.default_rng(seed)
    theta = case.scores(rng)
    slack = 1e-7 * (1.0 + np.abs(theta).max() + np.abs(case.L).max())
    p, q = equilibrium(case, theta)
    other_p, other_q = mixed(case, rng)
    worst = case.certificates[name](theta, other_p, other_q)
    at_best = case.certificates[name](theta, p, q)
    assert at_best <= slack or not case.exact
    for size in SIZES:
        here, there = (1 - size) * p + size * other_p, (1 - size) * q + size * other_q
        gap = case.certificates[name](theta, here, there)
        assert_law(case, theta, here, there, gap, slack)
        assert gap <= (1 - size) * at_best + size * worst + slack  # gaps are convex


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(**named(stopped))
@given(seed=seeds)
@settings(max_examples=6)
def test_a_solver_that_was_disturbed_reports_the_true_gap_of_what_it_returns(case, name, seed):
    rng = np.random.default_rng(seed)
    theta = case.scores(rng)
    slack = 1e-7 * (1.0 + np.abs(theta).max() + np.abs(case.L).max())
    gaps = []
    for size in (*SIZES, 0.0):
        gap, p, q = case.reports[name](theta, size, rng)
        assert_law(case, theta, p, q, gap, slack)
        gaps.append(gap)
    assert gaps[-1] <= slack
    assert gaps[-2] <= 1e-2 * (1.0 + np.abs(theta).max())


@pytest.mark.parametrize("case", SHIPPED, ids=lambda case: case.id)
@given(seed=seeds)
@settings(max_examples=6)
def test_the_game_as_it_is_played_reports_no_less_than_its_gap(case, seed):
    theta = case.scores(np.random.default_rng(seed))
    gap, p, q = case.solve(theta)
    slack = 1e-9 * (1.0 + np.abs(theta).max() + np.abs(case.L).max()) * case.labels.shape[1]
    assert case.gap(theta, p, q) - slack <= gap <= 1e-6 * (1.0 + np.abs(theta).max())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(**named(stopped))
def test_disturbed_solvers_have_gaps_to_report(case, name):
    """Else the law would say nothing of them."""
    rng = np.random.default_rng(0)
    assert max(case.reports[name](case.scores(rng), 1.0, rng)[0] for _ in range(5)) > 0.01
