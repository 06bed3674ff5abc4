"""Closed forms of the predictor's strategy: no adversary gets more than the game's value."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra [torch]")

from nashlearn import games  # noqa: E402
from nashlearn.torch import replies  # noqa: E402

POSITIONS = [-1.0, 0.5, 2.0, 6.0]
WEIGHTS = [1.0, 2.0, 0.5, 3.0]
# A form, its parameters and its game.
CASES = {
    "zero_one": ("zero_one", [], 0.0, games.zero_one(4)),
    "weighted": ("zero_one", WEIGHTS, 0.0, games.zero_one(4, WEIGHTS)),
    "absolute": ("absolute", [], 0.0, games.absolute(4)),
    "absolute, values": ("absolute", POSITIONS, 0.0, games.absolute(4, POSITIONS)),
    "abstain": ("abstain", [], 0.3, games.abstain(4, 0.3)),
    "abstain, half": ("abstain", [], 0.5, games.abstain(4, 0.5)),
    "abstain, free": ("abstain", [], 0.0, games.abstain(4, 0.0)),
    "one label": ("zero_one", [], 0.0, games.zero_one(1)),
    "one position": ("absolute", [], 0.0, games.absolute(1)),
    "one label or none": ("abstain", [], 0.5, games.abstain(1, 0.5)),
}


def reply(name, scores):
    loss, params, price, game = CASES[name]
    finite = np.where(np.isfinite(scores.max(axis=1, keepdims=True)), scores, 0.0)
    above = torch.tensor(game.solve(finite).value - finite.max(axis=1))
    params = torch.tensor(params, dtype=torch.float64)
    return replies.CLOSED[loss](torch.tensor(scores), params, price, above).numpy()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("spread", [0.0, 0.3, 2.0, 50.0])
def test_the_adversary_gets_no_more_than_the_value(name, spread):
    game = CASES[name][3]
    scores = spread * np.random.default_rng(0).standard_normal((50, game.n_labels))
    p = reply(name, scores)
    assert p.min() >= 0
    assert p.sum(axis=1) == pytest.approx(1.0)
    assert (scores + p @ game.costs).max(axis=1) == pytest.approx(game.solve(scores).value)


@pytest.mark.parametrize("name", CASES)
def test_rows_without_a_largest_score_are_nan(name):
    k = CASES[name][3].n_labels
    scores = np.zeros((4, k))
    scores[0, -1], scores[1, 0], scores[2] = np.nan, np.inf, -np.inf
    p = reply(name, scores)
    assert np.isnan(p).all(axis=1).tolist() == [True, True, True, False]
