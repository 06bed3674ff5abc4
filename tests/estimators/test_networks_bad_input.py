"""What NashTagger and NashMarkovNetwork refuse, and in which words."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from nashlearn import NashMarkovNetwork, NashTagger

K = 6


def good():
    """Three sequences of 30 symbols, and their states."""
    y = np.random.default_rng(0).integers(0, K, (3, 30))
    return [np.eye(K)[row] for row in y], y.tolist()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X, y: ([], []), "no examples"),
        (lambda X, y: ("text", y), "list of examples"),
        (lambda X, y: ([[], *X[1:]], [[], *y[1:]]), r"X\[0\] is empty: each sequence or graph needs"),
        (lambda X, y: ([*X, np.zeros((0, K))], [*y, []]), r"X\[3\] is empty"),
        (lambda X, y: ([[{"a": 1}], []], [[0], []]), r"X\[1\] is empty"),
        (lambda X, y: (X[0], y[0]), r"got one array of shape \(30, 6\). For a single example pass \[X\]"),
        (lambda X, y: ([{"a": 1}, {"b": 1}], [0, 1]), r"X\[0\] is a single dict, \{'a': 1\}. For a single"),
        (lambda X, y: (["the", "cat"], ["D", "N"]), r"X\[0\] is a single str, 'the'"),
        (lambda X, y: ([["the", "cat"]], [["D", "N"]]), r"X\[0\] holds the word 'the' in the place of its features"),
        (lambda X, y: (X, y[:2]), "y holds labels of 2 examples"),
        (lambda X, y: (X, [y[0], y[1], y[2][:-1]]), r"y\[2\] must hold one label"),
        (lambda X, y: ([X[0], X[1], X[2][:, :-1]], y), r"X\[2\] has 5 features; expected 6"),
        (lambda X, y: ([X[0], X[1], np.full((30, K), np.nan)], y), r"X\[2\] holds NaN"),
        (lambda X, y: ([X[0], X[1], X[2][0]], y), r"X\[2\] must have shape"),
        (lambda X, y: ([[{"a": 1.0}] * 30, [{"a": np.nan}] * 30, [{"a": 1}] * 30], y), r"X\[1\] holds NaN"),
        (lambda X, y: ([X[0], X[1], sparse.csr_matrix(X[2])], y), r"X\[2\] is not sparse|X\[2\] is sparse"),
        (lambda X, y: (X, [[-1] * 30] * 3), "no labels"),
        (lambda X, y: (X, [[4] * 30] * 3), "one class only"),
        (lambda X, y: (X, [y[0], ["a"] * 30, y[2]]), "one kind"),
        (lambda X, y: (X, [y[0], [float("nan")] * 30, y[2]]), "NaN, which is no label; mark missing labels by None"),
    ],
)
def test_bad_sequences(change, words):
    with pytest.raises(ValueError, match=words):
        NashTagger().fit(*change(*good()))


@pytest.mark.parametrize(
    ("example", "words"),
    [
        ((np.eye(4), [(0, 4)]), r"X\[1\]: edges must join nodes 0..3"),
        ((np.eye(4), [(1, 1)]), r"X\[1\]: edges must join two different nodes"),
        ((np.eye(4), [(0, 1), (1, 0)]), r"X\[1\]: edges must be distinct"),
        ((np.eye(4),), r"X\[1\] must be \(node_features, edges\)"),
    ],
)
def test_bad_graphs(example, words):
    with pytest.raises(ValueError, match=words):
        NashMarkovNetwork().fit([(np.eye(4), [(0, 1), (1, 2), (2, 3), (3, 0)]), example], [[0, 1, 0, 1]] * 2)


def test_more_bad_input():
    X, y = good()
    for propensities, words in [
        ([np.zeros(30)] * 3, "above 0"),
        ([np.full(30, 1.5)] * 3, "at most 1"),
        ([np.ones(30)] * 2, "each of the 3 examples"),
        ([np.ones(29)] * 3, r"each of the 30 nodes"),
        ([(np.ones(30), np.ones(30))] * 3, r"each of the 29 edges"),
        (0.5, "propensities must be a list"),
        ("abc", "propensities must be a list"),
        ((np.ones(29) for _ in range(3)), r"each of the 30 nodes"),
    ]:
        with pytest.raises(ValueError, match=words):
            NashTagger().fit(X, y, propensities=propensities)
    for parameters, words in [
        ({"alpha": 0.0}, "alpha"),
        ({"smoothing": -1.0}, "smoothing"),
        ({"propensity": "none"}, "propensity"),
        ({"loss": "hinge"}, "loss"),
        ({"loss": "zero-one"}, "Did you mean 'zero_one'?"),
        ({"loss": np.eye(3)}, "cost matrix for the 6 classes"),
    ]:
        with pytest.raises(ValueError, match=words):
            NashTagger(**parameters).fit(X, y)
    model = NashTagger(alpha=1e-3, max_iter=50).fit(X, y)
    with pytest.raises(TypeError, match="timelimit"):
        model.predict(X, timelimit=1.0)
    with pytest.raises(ValueError, match="not seen in fit"):
        model.score(X, [["z"] * 30] * 3)
    with pytest.raises(ValueError, match="expected 6"):
        model.predict([np.zeros((2, 3))])
    with pytest.raises(ValueError, match="edge features"):
        model.predict([(X[0], np.ones((29, 1)))])
    with pytest.raises(ValueError, match="equal size"):
        NashTagger(propensity="node").fit([X[0], X[1][:5]], [y[0], y[1][:5]])
    wide = [(20 * i + j, 20 * i + j + 1) for i in range(20) for j in range(19)]
    wide += [(20 * i + j, 20 * i + j + 20) for i in range(19) for j in range(20)]
    with pytest.raises(ValueError, match="too wide"):
        NashMarkovNetwork(exact=True).fit([(np.ones((400, 1)), wide)], [np.arange(400) % 9])


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([np.ones(2)], "each of the 2 examples"),
        ([np.ones(2), np.ones(3)], "each of the 2 nodes"),
        ([[1, -1]] * 2, "nega"),
    ],
)
def test_bad_weights_of_nodes(weights, words):
    with pytest.raises(ValueError, match=words):
        NashTagger().fit([np.eye(2), np.eye(2)], [[0, 1], [1, 0]], node_weight=weights)


def test_labels_that_weigh_nothing_are_refused_and_the_earlier_fit_stays():
    y = np.random.default_rng(0).integers(0, K, (8, 4))
    X, names = [np.eye(K)[row] for row in y], [[f"c{label}" for label in row] for row in y]
    model = NashTagger(alpha=1e-2).fit(X, names)
    before = model.predict(X)
    hidden = [*names[:4], *([None] * 4 for _ in range(4))]
    with pytest.raises(ValueError, match="no labels that count"):
        model.fit(X, hidden, sample_weight=[0] * 4 + [1] * 4)
    with pytest.raises(ValueError, match="one class only"):
        model.fit([[{"a": 1.0}] * 4 for _ in X], [["z"] * 4 for _ in X])
    assert all(np.array_equal(a, b) for a, b in zip(before, model.predict(X), strict=True))
