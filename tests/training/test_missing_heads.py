"""Heads that are missing: the corrected moments have the expectation of the whole ones."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from nashlearn.games import arborescence
from nashlearn.training.designs.arcs import tree_problem
from nashlearn.training.designs.entries import EntryFeatures, stacked
from nashlearn.training.missing_heads import completed, known_share, known_weights

HEADS = [np.array([0, 1, 2]), np.array([2, 0])]


def test_the_share_is_that_of_weighted_tokens():
    hidden = [np.array([0, -1, 2]), np.array([-1, 0])]
    weights = known_weights(hidden, np.array([2.0, 1.0]))
    assert weights.tolist() == [2 * 2 + 1, 2 * 3 + 2]
    assert known_share(weights) == 5 / 8
    assert known_share(known_weights(HEADS, np.array([0.3, 0.1]))) == 1.0
    with pytest.raises(ValueError, match="no heads"):
        known_share(known_weights([np.array([-1, -1])], np.ones(1)))


def test_what_known_heads_say_is_right_in_the_mean():
    """Over all ways to hide one of three heads: the loss and its gradient are those of all heads."""
    rng = np.random.default_rng(0)
    X, omega = [rng.normal(size=(3, 4, 2))], np.ones(1) / 3
    design, heads, w = EntryFeatures([stacked(X)], np.array([0, 12])), np.array([0, 1, 2]), rng.normal(size=2)
    whole = tree_problem(design, [heads], omega, True).evaluate(w, 0.5)
    hidden = [np.where(np.arange(3) == gone, -1, heads) for gone in range(3)]
    each = [tree_problem(design, [y], omega, True, known=2 / 3).evaluate(w, 0.5) for y in hidden]
    assert np.mean([seen.loss for seen in each]) == pytest.approx(whole.loss, abs=1e-8)
    assert np.mean([seen.gradient for seen in each], axis=0) == pytest.approx(whole.gradient, abs=1e-8)
    assert all(seen.entropy == pytest.approx(whole.entropy) for seen in each)


@pytest.mark.parametrize("single_root", [True, False])
def test_known_heads_are_completed_where_a_tree_has_them(single_root):
    trees = [h for h in itertools.product(range(4), repeat=3) if _is_tree(np.array(h), single_root)]
    for part in itertools.product(range(-1, 4), repeat=3):
        fits = [tree for tree in trees if all(h in (-1, t) for h, t in zip(part, tree, strict=True))]
        found = completed(np.array(part), single_root)
        assert tuple(found) in fits if fits else found is None


def _is_tree(heads, single_root) -> bool:
    try:
        arborescence(3, single_root=single_root).labels.checked_labels(heads[None])
    except ValueError:
        return False
    return True
