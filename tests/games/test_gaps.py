"""Certificates fed with strategies that are no equilibrium report what enumeration does, neither less nor more."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from game_instances import INSTANCES, Instance
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from sklearn.exceptions import ConvergenceWarning

from nashlearn import games
from nashlearn.game import Game
from nashlearn.games.rows import kernels
from nashlearn.games.rows.thresholds import ThresholdGame
from nashlearn.solvers.double_oracle import solve

every = pytest.mark.parametrize("case", INSTANCES, ids=lambda case: case.id)
simplex_only = pytest.mark.parametrize(
    "case", [case for case in INSTANCES if case.is_simplex], ids=lambda case: case.id
)
seeds = st.integers(0, 2**32 - 1)


def drawn(case: Instance, seed: int, n: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores, and strategies of both players that have nothing to do with them; some are vertices."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(n, case.dim)) * 10.0 ** rng.uniform(-1, 1)
    q = rng.dirichlet(np.full(len(case.labels), rng.choice([0.01, 0.3, 3.0])), size=n) @ case.labels
    p = rng.dirichlet(np.full(len(case.options), rng.choice([0.01, 0.3, 3.0])), size=n) @ case.options
    return theta, q, p


def best_adversary(case: Instance, theta: np.ndarray, p: np.ndarray) -> np.ndarray:
    """``max_q <theta, q> + <p, L q>`` over all vertices."""
    return ((theta + p @ case.L) @ case.labels.T).max(axis=1)


def best_predictor(case: Instance, theta: np.ndarray, q: np.ndarray) -> np.ndarray:
    """``<theta, q> + min_p <p, L q>`` over all vertices."""
    return (theta * q).sum(axis=1) + (q @ case.L.T @ case.options.T).min(axis=1)


@every
@given(seed=seeds)
def test_both_sides_are_those_of_enumeration(case, seed):
    theta, q, p = drawn(case, seed)
    scale = 1e-12 * (1.0 + np.abs(theta).max() + np.abs(case.L).max()) * case.dim
    assert np.abs(case.game.upper(theta, p) - best_adversary(case, theta, p)).max() <= scale
    assert np.abs(case.game.lower(theta, q) - best_predictor(case, theta, q)).max() <= scale


@njit
def _reply(loss, scores, p):
    return kernels.best_reply(loss, scores, p)


@njit
def _risk(loss, q):
    return kernels.risk(loss, q)


@simplex_only
@given(seed=seeds)
@settings(max_examples=15)
def test_compiled_sides_are_those_of_enumeration(case, seed):
    theta, q, p = drawn(case, seed)
    scale = 1e-12 * (1.0 + np.abs(theta).max() + np.abs(case.L).max()) * case.dim
    for i in range(len(theta)):
        assert abs(_reply(case.game.params, theta[i], p[i]) - (theta[i] + p[i] @ case.L).max()) <= scale
        assert abs(_risk(case.game.params, q[i]) - (case.L @ q[i]).min()) <= scale


@given(seed=seeds, m=st.integers(1, 4))
@settings(max_examples=15)
def test_thresholds_against_all_vertices_of_the_cube(seed, m):
    """``F = sum_l max_q f_l q + min(q, 1 - q)``: both sides for any strategies, and the value."""
    rng = np.random.default_rng(seed)
    game, f, q, p = ThresholdGame(m), 2.0 * rng.normal(size=(3, m)), rng.random((3, m)), rng.random((3, m))
    for i in range(3):
        assert _reply(game.params, f[i], p[i]) == pytest.approx(np.maximum(p[i], f[i] + 1.0 - p[i]).sum())
        assert _risk(game.params, q[i]) == pytest.approx(np.minimum(q[i], 1.0 - q[i]).sum())
    value = np.max([np.zeros_like(f), 0.5 * f + 0.5, f], axis=0).sum(axis=1)
    found = game.solve(f)
    assert found.value == pytest.approx(value) and found.gap == pytest.approx(0.0, abs=1e-12)


@given(seed=seeds, shift=st.sampled_from([0.0, -1e6, 1e6]))
def test_the_gap_of_rows_is_that_of_the_strategies_that_were_written(seed, shift):
    """The batch solver in Python, with strategies from elsewhere."""
    case = next(case for case in INSTANCES if case.id == "cost-tall")
    theta, q, p = drawn(case, seed, n=4)
    theta += shift
    q[3], p[3] = np.nan, np.nan

    def elsewhere(loss, scores, value, own_q, own_p):
        value[:], own_q[:], own_p[:] = np.where(np.isnan(q[:, 0]), np.nan, 1.0), q, p

    value, gap, own_q, own_p = np.empty(4), np.empty(4), np.empty_like(q), np.empty_like(p)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "equilibria", elsewhere)
        patch.setattr(kernels, "common", lambda loss, scores: scores.max())
        patch.setattr(kernels, "best_reply", lambda loss, scores, p: (scores + p @ case.L).max())
        patch.setattr(kernels, "risk", lambda loss, q: (case.L @ q).min())
        kernels.solve_rows.py_func(None, theta, value, own_q, own_p, gap, np.empty(4))
    relative = theta - theta.max(axis=1, keepdims=True)
    true = best_adversary(case, relative, p) - best_predictor(case, relative, q)
    assert gap[:3] == pytest.approx(true[:3], abs=1e-9)
    assert np.isnan(gap[3])


@every
@given(seed=seeds, max_iter=st.integers(1, 3))
@settings(max_examples=15)
def test_a_double_oracle_that_is_stopped_knows_its_gap(case, seed, max_iter):
    theta, _, _ = drawn(case, seed)
    game = Game(case.game.labels, case.game.options, case.L)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        eq = solve(game, theta, tol=1e-9, max_iter=max_iter)
    upper, lower = best_adversary(case, theta, eq.p), best_predictor(case, theta, eq.q)
    scale = 1e-11 * (1.0 + np.abs(theta).max() + np.abs(case.L).max()) * case.dim
    assert np.abs(eq.gap - (upper - lower)).max() <= scale
    assert np.abs(eq.value - lower).max() <= scale
    missed = (eq.gap > 1e-9 * np.maximum(1.0, np.abs(eq.value))).any()
    assert [w.category for w in caught] == [ConvergenceWarning] * int(missed)


def test_a_stopped_double_oracle_has_gaps_to_report():
    """Else the test above would say nothing."""
    rng = np.random.default_rng(0)
    game = Game(games.Simplex(6), games.Simplex(6), rng.random((6, 6)))
    with pytest.warns(ConvergenceWarning, match="stopped at a gap"):
        assert solve(game, 0.1 * rng.normal(size=(3, 6)), max_iter=1).gap.min() > 0.05
