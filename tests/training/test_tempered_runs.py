"""Runs of training of tempered games: checkpoints, interrupts, warm starts, and what is told of a gap."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from training_problems import LOSSES, data, per_class
from training_problems import solve_tempered as solve

import nashlearn.training.methods.tempered as module
from nashlearn import games
from nashlearn.training import Problem
from nashlearn.training.checkpoint import Checkpoint
from nashlearn.training.methods.tempered import Tempered, TemperedState


@pytest.mark.parametrize("after", [0, 3, 40])
@pytest.mark.parametrize("m", [0.01, 1.0])
def test_a_run_goes_on_where_its_checkpoint_ended(after, m, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_FIRST", 5)
    monkeypatch.setattr(module, "_WATCHED", 2)
    monkeypatch.setattr(module, "_NEWTON_STEPS", 1e-3)
    X, y = data(seed=14, n=500, d=4, k=3)
    problem, path = per_class(X, y, games.zero_one(3), 1e-4), tmp_path / "run"
    problem.small = False
    whole = solve(problem, m, tol=1e-8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        part = solve(problem, m, tol=1e-8, max_iter=after, checkpoint=Checkpoint(path, "same"))
    assert part.n_iter == min(after, whole.n_iter)
    resumed = solve(problem, m, tol=1e-8, checkpoint=Checkpoint(path, "same"))
    assert resumed.n_iter == whole.n_iter
    np.testing.assert_allclose(resumed.w, whole.w, rtol=1e-12)
    assert resumed.rounds[0].n_iter == 0


def test_an_interrupt_keeps_the_best_weights():
    X, y = data(seed=15, n=300, d=4, k=3)
    problem, seen = per_class(X, y, games.zero_one(3), 1e-4), []

    def press(now):
        seen.append(now)
        if now.n_iter == 4:
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="interrupted"), pytest.warns(ConvergenceWarning):
        trained = solve(problem, 1.0, callback=press)
    assert trained.n_iter == 4
    assert trained.objective == seen[-1].objective
    direct = problem.evaluate(trained.w.ravel(), 1.0).loss + 0.5e-4 * np.square(trained.w).sum()
    assert trained.objective == pytest.approx(direct, rel=1e-12)


def test_an_interrupt_before_any_weights_gives_weights_of_zero(monkeypatch):
    X, y = data(seed=15, n=300, d=4, k=3)
    problem, calls, evaluate = per_class(X, y, games.zero_one(3), 1e-4), [], Problem.evaluate

    def press(self, w, smoothing):
        calls.append(smoothing)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return evaluate(self, w, smoothing)

    monkeypatch.setattr(Problem, "evaluate", press)
    with pytest.warns(UserWarning, match="interrupted"), pytest.warns(ConvergenceWarning):
        trained = solve(problem, 2.0)
    assert not trained.w.any()
    assert trained.objective == pytest.approx(2.0 / 3.0 + 2.0 * np.log(3.0))  # 1 - 1/3, and the entropy


@pytest.mark.parametrize("name", ["zero_one", "absolute", "cost-square"])
def test_a_warm_start_reaches_the_same_optimum_sooner(name):
    game = LOSSES[name](3)
    X, y = data(seed=16, n=2000, d=5, k=3)
    cold = solve(per_class(X, y, game, 1e-3), game.largest, tol=1e-6)
    nearby = solve(per_class(X, y, game, 1.05e-3), game.largest, tol=1e-6)
    warm = solve(per_class(X, y, game, 1e-3), game.largest, tol=1e-6, start=nearby)
    assert warm.n_iter < cold.n_iter
    assert warm.objective == pytest.approx(cold.objective, rel=2e-6)


def test_small_problems_end_at_weights_that_no_longer_move():
    X, y = data(seed=17, n=60, d=3, k=3)
    problem = per_class(X, y, games.absolute(3), 1e-3)
    found = [solve(problem, 1.0, tol=tol).w for tol in (1e-2, 1e-6)]
    np.testing.assert_allclose(*found, rtol=1e-9, atol=1e-11)
    w = found[0].ravel()
    gradient = 1e-3 * w + problem.evaluate(w, 1.0).gradient
    assert np.abs(gradient).max() <= 1e-13


def test_a_gap_that_is_not_reached_is_told():
    X, y = data(seed=18, n=500, d=4, k=3)
    with pytest.warns(ConvergenceWarning, match="after 2 iterations"):
        trained = solve(per_class(X, y, games.zero_one(3), 1e-6), 1.0, max_iter=2)
    assert trained.dual_gap > 1e-9


@pytest.mark.parametrize("smoothing", [0.0, -1.0, np.nan, np.inf])
def test_smoothing_must_be_positive(smoothing):
    with pytest.raises(ValueError, match="smoothing must be positive"):
        Tempered(smoothing)


def test_states_are_named_for_checkpoints():
    assert Tempered.states == (TemperedState,)
