"""What partitions say at any weights, optimal or not: the numbers that certificates are made of."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

from nashlearn import games  # noqa: E402
from nashlearn.dask.collections import row_partitions  # noqa: E402
from nashlearn.dask.reduction import PartitionedProblem, Partitions  # noqa: E402
from nashlearn.dask.rows import _evaluate, _Task, row_facts  # noqa: E402
from nashlearn.games.rows.thresholds import ThresholdGame  # noqa: E402
from nashlearn.training.designs.rows import PerClass, Shared  # noqa: E402
from nashlearn.training.problem import Problem  # noqa: E402

GAMES = {
    "zero_one": games.zero_one(3),
    "absolute": games.absolute(3),
    "abstain": games.abstain(3, 0.3),
    "thresholds": ThresholdGame(2),
    "cost": games.cost([[0.0, 1.0, 4.0], [2.0, 0.0, 1.0], [3.0, 1.0, 0.0], [0.7, 0.7, 0.7]]),
}


def drawn(game, seed=0, n=30, d=2):
    """A problem whose weights do not sum to 1, and two vectors of weights."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, d)), rng.integers(0, 3, n)
    design = PerClass(3, d, 0.7) if game.n_labels == 3 else Shared(2, d)
    problem = Problem(X, y, rng.random(n), 0.1, game, design)
    return problem, rng.normal(size=problem.design.size), rng.normal(size=problem.design.size)


@pytest.mark.parametrize("name", GAMES)
@given(seed=st.integers(0, 2**32 - 1), smoothing=st.sampled_from([0.0, 0.1, 2.0]))
@settings(max_examples=15)
def test_planes_touch_the_loss_and_support_it(name, seed, smoothing):
    """``loss(w) = <g, w> + entropy - penalty`` where the plane was taken, and at least that elsewhere."""
    game = GAMES[name]
    problem, w, other = drawn(game, seed)
    seen = problem.evaluate(w, smoothing)
    assert seen.loss == pytest.approx(seen.gradient @ w + seen.entropy - seen.penalty, abs=1e-9)
    assert problem.evaluate(other, smoothing).loss >= seen.gradient @ other + seen.entropy - seen.penalty - 1e-9
    scores = problem.design.scores(problem.X, w.reshape(problem.shape))
    exact = problem.omega @ game.loss_value(scores, problem.y)
    if smoothing:
        # Smoothing adds at most the entropy of the uniform strategy: that of three labels, or of two thresholds.
        most = smoothing * problem.omega.sum() * np.log(3.0 if game.n_labels == 3 else 4.0)
        assert exact - 1e-9 <= seen.loss <= exact + most + 1e-9
        assert -most - 1e-9 <= seen.penalty <= 0.0
    else:
        assert seen.loss == pytest.approx(exact, abs=1e-9)
        assert seen.penalty == 0.0


def test_the_penalty_is_that_of_uniform_labels_where_smoothing_is_all():
    """``Omega = -log k`` at the uniform distribution, which scores of 0 give."""
    problem, _, _ = drawn(GAMES["zero_one"])
    seen = problem.evaluate(np.zeros(problem.design.size), 100.0)
    assert seen.penalty == pytest.approx(-100.0 * np.log(3.0) * problem.omega.sum())
    assert seen.entropy == pytest.approx(2.0 / 3.0 * problem.omega.sum())


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("parts", [1, 2, 7, 30])
def test_partitions_say_together_what_one_says(parts, smoothing):
    problem, w, _ = drawn(GAMES["abstain"], n=60)
    share, weight = np.array([0.5, 1.0, 0.25]), np.random.default_rng(1).random(60)
    whole = Problem(problem.X, problem.y, share[problem.y] * weight, 0.1, problem.game, problem.design)
    task = _Task(np.arange(3), np.arange(3), share, 0.1, problem.game, problem.design, np.zeros(2))
    blocks = [da.from_array(part, chunks=(60 // parts, *part.shape[1:])) for part in (problem.X, problem.y, weight)]
    with dask.config.set(scheduler="synchronous"):
        delayed = row_partitions(blocks[0], y=blocks[1], sample_weight=blocks[2])
        cut = PartitionedProblem(Partitions(delayed, True), _evaluate, task, w.size)
        there, here = cut.evaluate(w, smoothing), whole.evaluate(w, smoothing)
    for name in ("loss", "gradient", "entropy", "penalty"):
        assert getattr(there, name) == pytest.approx(getattr(here, name), rel=1e-8), name  # but for rounding


def test_facts_add_up():
    rng = np.random.default_rng(0)
    X, y, weight = rng.normal(size=(40, 3)), rng.choice(["a", "b", "c"], 40), rng.random(40)
    y[:20][y[:20] == "b"] = "a"  # the first part lacks a class
    whole = row_facts(X, y, weight)
    both = row_facts(X[:20], y[:20], weight[:20]) + row_facts(X[20:], y[20:], weight[20:])
    assert list(whole.labels) == list(both.labels) == ["a", "b", "c"]
    assert both.counts == pytest.approx(whole.counts) and both.squares == pytest.approx(whole.squares)
    for label, counts in zip(whole.labels, whole.counts, strict=True):
        w, norms = weight[y == label], (X[y == label] ** 2).sum(axis=1)
        assert counts == pytest.approx([w.size, w.sum(), (w**2).sum(), w**2 @ norms])
    assert whole.squares == pytest.approx(weight @ X**2)
