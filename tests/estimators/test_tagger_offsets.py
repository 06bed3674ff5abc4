"""Offsets of a tagger: they move what it predicts, as moved scores do, and nothing else."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from nashlearn import NashTagger


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = [rng.standard_normal((rng.integers(1, 5), 3)) for _ in range(30)]
    y = [np.where(x[:, 0] + 0.8 * rng.standard_normal(len(x)) > 0.6, "B", np.where(x[:, 1] > 0.5, "I", "O")) for x in X]
    return X, y


def best_by_force(scores, offset):
    nodes, edges = scores
    nodes = nodes + offset

    def score(labels):
        pairs = itertools.pairwise(labels)
        return sum(nodes[i, a] for i, a in enumerate(labels)) + sum(edges[i, a, b] for i, (a, b) in enumerate(pairs))

    return max(itertools.product(range(nodes.shape[1]), repeat=len(nodes)), key=score)


def test_predictions_are_those_of_moved_scores(data):
    X, y = data
    tagger = NashTagger(alpha=1e-2).fit(X, y)
    plain = [list(one) for one in tagger.predict(X)]
    before = tagger.strategy(X), tagger.predict_proba(X)
    tagger.set_params(offsets={"O": -0.4, "B": 0.1})
    moved = [list(one) for one in tagger.predict(X)]
    for scores, found in zip(tagger.decision_function(X), moved, strict=True):
        assert tagger.classes_[list(best_by_force(scores, np.array([0.1, 0.0, -0.4])))].tolist() == found
    assert moved != plain and sum(one.count("O") for one in moved) < sum(one.count("O") for one in plain)
    for old, new in zip(before, (tagger.strategy(X), tagger.predict_proba(X)), strict=True):
        np.testing.assert_array_equal(np.concatenate(old), np.concatenate(new))
    wrong = np.mean(np.concatenate([np.asarray(a) != b for a, b in zip(moved, y, strict=True)]))
    assert tagger.task_loss(X, y) == pytest.approx(wrong)


def test_training_is_not_moved(data):
    plain, moved = (NashTagger(alpha=1e-2, offsets=offsets).fit(*data) for offsets in (None, {"O": -0.4}))
    np.testing.assert_array_equal(plain.coef_, moved.coef_)


@pytest.mark.parametrize(
    ("offsets", "error", "message"),
    [
        ([("O", 1)], TypeError, "offsets must be a dict"),
        ({"O": "much"}, TypeError, r"offsets\['O'\] must be a number"),
        ({"O": np.nan}, ValueError, r"offsets\['O'\] must be finite"),
    ],
)
def test_bad_offsets(data, offsets, error, message):
    with pytest.raises(error, match=message):
        NashTagger(offsets=offsets).fit(*data)


def test_offsets_of_unknown_labels(data):
    tagger = NashTagger(alpha=1e-2, offsets={"X": 1.0}).fit(*data)
    with pytest.raises(ValueError, match="offsets names the label 'X'"):
        tagger.predict(data[0])
