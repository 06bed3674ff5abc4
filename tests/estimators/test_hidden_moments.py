"""What labelled nodes and edges say of all: rates, propensities and moments, from their definitions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from nashlearn import NashTagger
from nashlearn.training.graphs import Graphs
from nashlearn.training.missing import estimated_propensities, label_rate, propensities

CHAINS = Graphs(np.zeros((5, 1)), np.array([3, 2]), [np.array([[0, 1], [1, 2]]), np.array([[0, 1]])], None)
HIDDEN = np.array([False, True, False, False, True])


def test_propensities_are_estimated():
    rate = label_rate("homogeneous", CHAINS.sizes, HIDDEN, np.array([2.0, 1.0]))
    assert rate.known.tolist() == [2 * 2 + 1] and rate.every == 2 * 3 + 2 and rate.hidden == 2
    node, pair = estimated_propensities(rate, CHAINS)
    assert node == pytest.approx(np.full(5, 5 / 8)) and pair == pytest.approx(np.full(3, 25 / 64))
    of_node, of_edge = propensities(node, pair, CHAINS, HIDDEN)
    assert np.isinf(of_node).tolist() == HIDDEN.tolist()
    assert np.isinf(of_edge).tolist() == [True, True, True]
    both = propensities(node, pair, CHAINS, np.array([False, False, True, False, False]))[1]
    assert both == pytest.approx([25 / 64, np.inf, 25 / 64])
    each = label_rate("node", np.array([3, 3]), np.array([0, 1, 0, 0, 0, 1], bool), np.array([2.0, 1.0]))
    assert each.known.tolist() == [3.0, 1.0, 2.0] and each.every == 3.0
    assert (each + each).known.tolist() == [6.0, 2.0, 4.0] and (each + each).every == 6.0


def hidden_problem(rng, weight=None):
    """Features that are never negative, labels of which some are hidden; the moments that training takes for theirs."""
    X = [rng.random((n, 2)) for n in (3, 4, 2, 5)]
    y = [rng.integers(0, 2, len(x)) for x in X]
    for labels in y:
        labels[rng.integers(len(labels))] = -1
    y[0][:2], y[1][:2] = [0, 1], [1, 0]
    weight = np.ones(4) if weight is None else weight
    model = NashTagger(unseen_pairs=True, fit_intercept=False)
    return X, y, weight, model._in_memory(X, y, weight)[0]


def test_moments_add_up_to_what_is_known():
    """Each feature's total over all nodes, and the number of edges, are known without labels."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, _, weight, problem = hidden_problem(rng, rng.integers(1, 4, 4).astype(float))
        total = sum(w * len(x) for w, x in zip(weight, X, strict=True))
        split = problem.design.nodes.n_weights
        of_nodes = problem.moments[:split].reshape(-1, 2) if split % 2 == 0 else None
        expected = sum(w * x.sum(axis=0) for w, x in zip(weight, X, strict=True)) / total
        assert of_nodes.sum(axis=1)[:2] == pytest.approx(expected)
        edges = sum(w * (len(x) - 1) for w, x in zip(weight, X, strict=True)) / total
        assert problem.moments[split:].sum() == pytest.approx(edges)


def test_moments_are_those_of_the_labels_where_features_are_constant():
    """Then rescaling makes up for any rate: the labels' own frequencies are what is left."""
    X, y = [np.ones((3, 1))] * 3, [[0, 0, -1], [1, -1, 0], [-1, 0, 1]]
    problem = NashTagger(unseen_pairs=True, fit_intercept=False)._in_memory(X, y, None)[0]
    known = [label for labels in y for label in labels if label >= 0]
    of_nodes = problem.moments[: problem.design.nodes.n_weights].reshape(-1, 2)
    assert of_nodes[0] == pytest.approx(np.bincount(known) / len(known))
    pairs = [(a, b) for labels in y for a, b in itertools.pairwise(labels) if min(a, b) >= 0]
    table = np.zeros((2, 2))
    for a, b in pairs:
        table[a, b] += 1 / len(pairs)
    assert problem.moments[problem.design.nodes.n_weights :].reshape(2, 2) == pytest.approx(table * 6 / 9)
