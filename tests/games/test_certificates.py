"""Law 0 of compiled certificates and of disturbed solvers: they report the true gap of any strategies.

The strategies are mixtures of vertices: random ones, equilibria of other scores, and equilibria that a linear programme
over all vertices finds, moved a little. Enumeration says what each is worth.
"""

from __future__ import annotations

import numpy as np
import pytest
from cases import Case, linear_programme, scores, strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from shipped_games import SHIPPED

from nashlearn.kernels.loss import certify_rows, solve_rows

SIZES = (1.0, 0.1, 1e-2, 1e-4)
fed = [(case, name) for case in SHIPPED for name in case.certificates]
stopped = [(case, name) for case in SHIPPED for name in case.reports]
seeds = st.integers(0, 2**32 - 1)


def named(pairs):
    return {"argnames": "case, name", "argvalues": pairs, "ids": [f"{case.id}-{name}" for case, name in pairs]}


def assert_law(case: Case, theta, p, q, gap: float, slack: float) -> None:
    true = case.gap(theta, p, q)
    assert gap >= true - slack
    assert gap <= true + slack or not case.exact


@pytest.mark.parametrize(**named(fed))
@given(seed=seeds)
@settings(max_examples=12)
def test_strategies_that_are_no_equilibrium_have_their_true_gap(case, name, seed):
    rng = np.random.default_rng(seed)
    theta = scores(case, rng)
    slack = 1e-11 * case.size(theta) * case.dim
    for p, q in (strategies(case, rng), linear_programme(case, scores(case, rng))[1:]):
        assert_law(case, theta, p, q, case.certificates[name](theta, p, q), slack)


@pytest.mark.parametrize(**named(fed))
@given(seed=seeds)
@settings(max_examples=6)
def test_gaps_vanish_towards_the_equilibrium(case, name, seed):
    rng = np.random.default_rng(seed)
    theta = scores(case, rng)
    slack = 1e-7 * case.size(theta)
    _, p, q = linear_programme(case, theta)
    other_p, other_q = strategies(case, rng)
    worst = case.certificates[name](theta, other_p, other_q)
    at_best = case.certificates[name](theta, p, q)
    assert at_best <= slack
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
    theta = scores(case, rng)
    slack = 1e-7 * case.size(theta)
    gaps = []
    for size in (*SIZES, 0.0):
        gap, p, q = case.reports[name](theta, size, rng)
        assert_law(case, theta, p, q, gap, slack)
        gaps.append(gap)
    assert gaps[-1] <= slack
    assert gaps[-2] <= 1e-2 * (1.0 + np.abs(theta).max())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(**named(stopped))
def test_disturbed_solvers_have_gaps_to_report(case, name):
    """Else the law would say nothing of them."""
    rng = np.random.default_rng(0)
    assert max(case.reports[name](scores(case, rng), 1.0, rng)[0] for _ in range(5)) > 0.01


@given(seed=seeds, shift=st.sampled_from([0.0, -1e6, 1e6]))
def test_the_gap_of_rows_is_that_of_the_strategies_that_were_written(seed, shift):
    """Strategies from elsewhere; and NaN where the value is."""
    case = next(case for case in SHIPPED if case.id == "cost-tall")
    loss = case.game.params.compiled()
    rng = np.random.default_rng(seed)
    theta = np.array([scores(case, rng) for _ in range(3)]) + shift
    p, q = (np.array(x) for x in zip(*(strategies(case, rng) for _ in range(3)), strict=True))
    gap, entropy = np.empty((2, 3))
    certify_rows(loss, theta, q, p, gap, entropy)
    relative = theta - theta.max(axis=1, keepdims=True)
    assert gap == pytest.approx([case.gap(relative[i], p[i], q[i]) for i in range(3)], abs=1e-9)
    assert entropy == pytest.approx([case.risk(q[i]) for i in range(3)], abs=1e-12)
    theta[1, 0] = np.nan
    solve_rows(loss, theta, np.empty(3), q, p, gap, entropy)
    assert np.isnan(gap).tolist() == np.isnan(entropy).tolist() == [False, True, False]
