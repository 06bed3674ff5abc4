"""The training of structured games, on a problem small enough for the classifier's own training to check it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from nashlearn import NashClassifier, games
from nashlearn.kernels.newton import smoothed_rows
from nashlearn.training.driver import train
from nashlearn.training.methods.descent import Descent
from nashlearn.training.methods.planes import Planes
from nashlearn.training.objective import Evaluation

ALPHA = 1e-2


class Rows:
    """The zero-one game on rows, smoothed by ``(|q|^2 - 1) / 2``."""

    complete = True

    def __init__(self, n=60, d=4, k=3, seed=0):
        rng = np.random.default_rng(seed)
        self.X = rng.normal(size=(n, d))
        self.y = np.argmax(self.X @ rng.normal(size=(d, k)) + rng.normal(size=(n, k)), axis=1)
        self.game, self.Y = games.zero_one(k), np.eye(k)[self.y]
        self.n_weights, self.calls = k * d, 0
        self.curvature = np.tile((self.X**2).mean(axis=0), k)

    def evaluate(self, w, smoothing):
        self.calls += 1
        n, k = self.Y.shape
        scores = self.X @ w.reshape(k, -1).T
        if smoothing:
            q, tight, zero = np.empty((n, k)), np.empty((n, k), bool), np.zeros((n, k))
            smoothed_rows(self.game.params.compiled(), scores, self.Y, np.ones(n) / n, smoothing, zero, q, tight)
        else:
            q = self.game.solve(scores).q
        entropy = 1.0 - q.max(axis=1)
        penalty = 0.5 * smoothing * ((q**2).sum(axis=1) - 1.0)
        losses = (scores * (q - self.Y)).sum(axis=1) + entropy - penalty
        return Evaluation(losses.mean(), ((q - self.Y).T @ self.X / n).ravel(), entropy.mean(), penalty.mean())


@pytest.mark.parametrize("smoothing", [0.05, 1.0])
def test_smoothed_optimum_is_that_of_scipy(smoothing):
    problem = Rows()

    def objective(w):
        seen = problem.evaluate(w, smoothing)
        return 0.5 * ALPHA * w @ w + seen.loss, ALPHA * w + seen.gradient

    reference = minimize(objective, np.zeros(problem.n_weights), jac=True, options={"gtol": 1e-9}).fun
    found = train(problem, Descent((smoothing,), smoothing), alpha=ALPHA, tol=1e-6, max_iter=500)
    assert found.dual_gap <= 1e-6
    assert found.objective == pytest.approx(reference, rel=2e-6)
    assert found.loss + 0.5 * ALPHA * found.w @ found.w == pytest.approx(found.objective)


def game_optimum(problem):
    """The least objective without smoothing, by another method."""
    model = NashClassifier(alpha=ALPHA, fit_intercept=False, tol=1e-10, smoothing=0.0)
    return model.fit(problem.X, problem.y).objective_


def test_annealing_reaches_the_game():
    problem = Rows()
    exact = game_optimum(problem)
    found = train(problem, Descent([0.1 * 0.25**i for i in range(8)]), alpha=ALPHA, tol=1e-3, max_iter=2000)
    assert found.dual_gap <= 1e-3
    assert exact * (1 - 1e-9) <= found.objective <= exact / (1 - found.dual_gap)


def test_smoother_stages_certify_the_target():
    """No bound on the way exceeds the optimum of the game that was asked for, and objectives are not below it."""
    problem, rounds = Rows(), []
    exact = game_optimum(problem)
    train(problem, Descent([2.0, 0.5, 0.1, 0.01]), alpha=ALPHA, tol=0.02, max_iter=2000, callback=rounds.append)
    assert len(rounds) > 5 and rounds[-1].gap < 0.5
    assert all(seen.bound <= exact * (1 + 1e-9) <= seen.objective * (1 + 2e-9) for seen in rounds)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("max_iter", [20, 40, 60])
@pytest.mark.parametrize("factor", [0.4, 0.25])
def test_a_smaller_tol_does_not_end_at_a_worse_model(max_iter, factor):
    """Within the same iterations: smoother stages are not solved to an accuracy that their smoothing makes useless."""
    schedule = [0.5 * factor**i for i in range(6)]
    tols = (1e-2, 1e-3, 1e-4, 1e-6, 1e-8)
    found = [train(Rows(), Descent(schedule), alpha=ALPHA, tol=tol, max_iter=max_iter).objective for tol in tols]
    assert all(b <= a * (1 + 1e-9) for a, b in itertools.pairwise(found))


def test_a_start_at_the_optimum_ends_at_once():
    problem = Rows()
    found = train(problem, Descent((0.5,), 0.5), alpha=ALPHA, tol=1e-5, max_iter=500)
    again = train(problem, Descent((0.5,), 0.5), alpha=ALPHA, tol=1e-4, max_iter=500, start=found.w)
    assert again.n_iter == 0


def test_no_iterations_warn():
    with pytest.warns(ConvergenceWarning, match="above tol"):
        found = train(Rows(), Descent((0.5,), 0.5), alpha=ALPHA, tol=1e-9, max_iter=1)
    assert found.dual_gap > 1e-9


@pytest.mark.parametrize("call", [1, 5])
def test_interruption_keeps_the_best(call):
    problem = Rows()
    evaluate = problem.evaluate

    def interrupted(w, smoothing):
        if problem.calls == call:
            problem.calls += 1
            raise KeyboardInterrupt
        return evaluate(w, smoothing)

    problem.evaluate = interrupted
    with pytest.warns() as record:
        found = train(problem, Descent([0.5, 0.1]), alpha=ALPHA, tol=1e-6, max_iter=500)
    assert any("interrupted" in str(w.message) for w in record)
    start = evaluate(np.zeros(problem.n_weights), 0.0).loss
    assert found.objective <= start


@given(st.integers(0, 2**31), st.integers(1, 60), st.sampled_from([0.0, 0.3]))
@settings(max_examples=40, deadline=None)
def test_planes_bound_their_maximum(seed, count, smoothing):
    """The bound never exceeds ``min_w alpha/2 |w|^2 + max_t <g_t, w> + e_t``, and no single plane beats it."""
    rng = np.random.default_rng(seed)
    slopes, entropy, omega = rng.normal(size=(count, 5)), rng.random(count), -rng.random(count)
    planes = Planes.none(5, 9)
    bounds = []
    for t in range(count):
        planes.add(slopes[t], entropy[t], omega[t] if t % 3 else np.inf)
        bounds.append(planes.bound(ALPHA, smoothing))
    known = np.arange(count) % 3 != 0 if smoothing else np.ones(count, bool)
    offset = (entropy - smoothing * omega)[known]
    if not known.any():
        assert bounds[-1] == -np.inf
        return
    single = offset - (slopes[known] ** 2).sum(axis=1) / (2 * ALPHA)
    assert bounds[-1] >= single[-1] - 1e-9 * abs(single[-1]) or not known[-1]
    w = -(slopes[known] * np.eye(known.sum())[0][:, None]).sum(axis=0) / ALPHA
    for point in (w, np.zeros(5), *rng.normal(size=(20, 5)) * 3):
        assert bounds[-1] <= 0.5 * ALPHA * point @ point + (slopes[known] @ point + offset).max() + 1e-9


@pytest.mark.parametrize("alpha", [1.0, 1e-3, 1e-6])
@pytest.mark.parametrize("seed", range(3))
def test_the_bound_is_that_of_the_best_mixture_of_planes(alpha, seed):
    # Slopes that shrink as near an optimum: the newest plane is far better than all that went before it.
    rng = np.random.default_rng(seed)
    slopes = rng.normal(size=(20, 8)) * np.logspace(0, -4, 20)[:, None]
    heights = rng.random(20)
    planes = Planes.none(8)
    for slope, height in zip(slopes, heights, strict=True):
        planes.add(slope, height, 0.0)
        found = planes.bound(alpha, 0.0)

    def below(x):
        return 0.5 * (x @ slopes) @ (x @ slopes) / alpha - x @ heights

    scale = max(1.0, abs(below(np.eye(20)[-1])))
    rule = {"type": "eq", "fun": lambda x: x.sum() - 1.0}
    for start in (np.eye(20)[-1], np.eye(20)[heights.argmax()], np.full(20, 0.05)):
        best = minimize(below, start, method="SLSQP", bounds=[(0.0, 1.0)] * 20, constraints=rule).x.clip(0.0)
        assert found >= -below(best / best.sum()) - 1e-6 * scale


def test_a_guess_that_overflows_is_none():
    problem = Rows()
    problem.curvature = np.full(problem.n_weights, np.inf)
    assert train(problem, Descent((0.1,), 0.1), alpha=ALPHA, tol=1e-4, max_iter=300).dual_gap <= 1e-4
