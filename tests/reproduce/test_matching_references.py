"""The thesis's algorithms for matchings reach what ours do."""

import json

import numpy as np
import pytest

from nashlearn import NashMatcher, games
from reproduce import matching_time
from reproduce.references.doubly_stochastic import admm
from reproduce.references.marginal_matching import doubled, marginal_training
from reproduce.references.projected_quasi_newton import projected_quasi_newton


@pytest.mark.parametrize("size", [0.3, 3.0])
def test_alternating_directions_project(size):
    R, P = size * np.random.default_rng(0).standard_normal((8, 8)), np.empty((8, 8))
    assert admm(R, 1.0, 1e-10, 100_000, P) < 100_000
    assert np.abs(P - games.matching(8).project(R[None])[0]).max() <= 1e-8


def test_projected_quasi_newton_on_a_box():
    rng = np.random.default_rng(1)
    A, b = rng.standard_normal((12, 12)), 3 * rng.standard_normal(12)
    H = A @ A.T + 0.1 * np.eye(12)
    x = projected_quasi_newton(
        lambda x: (0.5 * x @ H @ x - b @ x, H @ x - b), lambda x: np.clip(x, 0.0, 1.0), np.full(12, 0.5)
    )
    gradient = H @ x - b
    assert (x >= 0).all() and (x <= 1).all() and 0 < ((x > 1e-6) & (x < 1 - 1e-6)).sum() < 12
    assert np.abs(np.clip(x - gradient, 0.0, 1.0) - x).max() <= 1e-4


def test_marginal_training_agrees():
    """At small smoothing the weights reach the certified optimum of the exact game."""
    rng = np.random.default_rng(2)
    X = rng.random((8, 5, 5, 4))
    y = games.matching(5).argmax(X @ rng.standard_normal(4) + 0.3 * rng.standard_normal((8, 5, 5)))
    alpha = 0.05
    matcher = NashMatcher(alpha=alpha, tol=1e-4).fit(list(X), list(y))

    def objective(w):
        return 0.5 * alpha * w @ w + games.matching(5).loss_value(X @ w, y).mean() / 5

    theta = marginal_training(X, y, 5 * alpha, mu=0.01)
    assert abs(objective(matcher.coef_) - matcher.objective_) <= 1e-6
    assert (1 - 1e-4) * matcher.objective_ <= objective(theta) <= 1.01 * matcher.objective_


def test_doubling_keeps_scores_and_answers():
    """The best doubled matching restricts to the best partial one, and has its score."""
    rng = np.random.default_rng(4)
    pairs = [rng.standard_normal((3, 2, 4)), rng.standard_normal((2, 4, 4)), rng.standard_normal((0, 2, 4))]
    y = [np.array([1, -1, 0]), np.array([3, -1]), np.zeros(0, dtype=int)]
    X, complete = doubled(pairs, y)
    assert X.shape == (3, 8, 8, 7) and (np.sort(complete, axis=1) == np.arange(8)).all()
    w = rng.standard_normal(7)
    w[6] = 0.0  # nodes that stay invisible are worth nothing
    best = games.matching(8).argmax(X @ w)
    for x, partners, square, answer, found in zip(pairs, y, X, complete, best, strict=True):
        n1, n2 = x.shape[:2]
        assert (np.where(answer[:n1] < n2, answer[:n1], -1) == partners).all()
        scores = np.zeros((1, n1 + 1, n2 + 1))
        scores[0, :n1, :n2], scores[0, :n1, n2], scores[0, n1, :n2] = x @ w[:4], w[5], w[4]
        game = games.partial_matching(n1, n2)
        compact = (game.vertex(game.argmax(scores)) * scores).sum()
        assert abs((square @ w)[np.arange(8), found].sum() - compact) <= 1e-10


def test_the_page_has_what_is_stored(tmp_path):
    assert matching_time.section(tmp_path) == ""
    done = {"seconds": 0.1, "gap": 5e-3, "iterations": 3, "objective": 0.5}
    theirs = {"mu": 0.1, "seconds": {"0.01": 0.7, "0.001": None}, "spent": 9.0, "gap": 4e-3, "iterations": 9}
    ours = {"0.01": done, "0.001": done}
    record = {
        "key": ["table13", "video", "Campus"],
        "n": 12,
        "ours": ours,
        "without doubling": ours,
        "theirs": [theirs],
    }
    (tmp_path / "table13.jsonl").write_text(json.dumps(record) + "\n")
    page = matching_time.section(tmp_path)
    assert "| video Campus | 12 | 100 ms | 5e-03 | 700 ms | 7 | 100 ms | 1.96 s |" in page
    assert "> 9 s (gap 4.0e-03) | > 90 |" in page
