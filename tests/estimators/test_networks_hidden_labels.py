"""Hidden labels of NashTagger: guesses that stand for them, and what no label was seen for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from nashlearn import NashTagger


def test_guesses_that_are_right_stand_for_hidden_labels():
    rng = np.random.default_rng(6)
    X = [rng.standard_normal((n, 2)) for n in (4, 3, 5, 2)]
    y = [(x[:, 0] > 0).astype(int) for x in X]
    hidden = [np.where(rng.random(len(labels)) < 0.4, -1, labels) for labels in y]
    edges = [np.ones((len(x) - 1, 1)) for x in X]
    for inputs in (X, list(zip(X, edges, strict=True))):
        whole = NashTagger(alpha=0.01).fit(inputs, y)
        guessed = NashTagger(alpha=0.01).fit(inputs, hidden, guesses=y)
        assert guessed.objective_ == pytest.approx(whole.objective_, rel=1e-6)
    # Wrong guesses are corrected for: with every label known they change nothing.
    wrong = [1 - labels for labels in y]
    assert NashTagger(alpha=0.01).fit(X, y, guesses=wrong).objective_ == pytest.approx(
        NashTagger(alpha=0.01).fit(X, y).objective_, rel=1e-6
    )
    for guesses, words in (
        (hidden, "a missing label"),
        ([labels + 1 for labels in y], "the label 2"),
        (y[:2], "guesses"),
    ):
        with pytest.raises(ValueError, match=words):
            NashTagger().fit(X, hidden, guesses=guesses)


def skewed_labels(m: int, seed: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Sequences of three nodes: indicators of two states, and labels that follow them, some 15% of them 0."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(m, 3))
    states = [np.column_stack([row < -1, row >= -1]).astype(float) for row in z]
    return states, list((z + 0.3 * rng.normal(size=z.shape) > -1).astype(int))


@pytest.mark.parametrize("kind", ["dense", "sparse", "signed", "ends"])
def test_features_that_labelled_nodes_lack_are_shared_out(kind):
    """The last node is never labelled, and has a feature of its own: labels are as frequent there as elsewhere."""
    X, truth = skewed_labels(100, 0)
    if kind != "ends":
        X = [np.column_stack([x, [0.0, 0.0, -1.0 if kind == "signed" else 1.0]]) for x in X]
    if kind == "sparse":
        X = [sparse.csr_matrix(x) for x in X]
    y = [[int(labels[0]), int(labels[1]), None] for labels in truth]
    model = NashTagger(alpha=1e-2, tol=1e-2, unseen_pairs=True).fit(X, y)
    assert 0 < model.objective_ < 0.5 and np.abs(model._weights).max() < 5
    frequency = np.mean([label == 0 for labels in y for label in labels[:2]])
    assert np.mean([q[2, 0] for q in model.marginals(X)]) == pytest.approx(frequency, abs=0.05)  # alpha |w|
    assert model.score(X, truth) > 0.9


@pytest.mark.parametrize("with_features", [False, True])
def test_edges_that_are_never_labelled_are_shared_out(with_features):
    X, truth = skewed_labels(100, 0)
    y = [[int(t[0]), None, int(t[2])] if i % 2 else [None, int(t[1]), None] for i, t in enumerate(truth)]
    examples = [(x, np.ones((2, 1)) * [1.0, i % 3 == 0]) for i, x in enumerate(X)] if with_features else X
    model = NashTagger(alpha=1e-2, tol=1e-2).fit(examples, y)
    assert 0 < model.objective_ < 0.5 and np.abs(model._weights).max() < 5
    assert model.score(examples, truth) > 0.9


@pytest.mark.parametrize("propensity", ["homogeneous", "node"])
def test_examples_with_hidden_labels_may_be_weighted(propensity):
    """A weight of 2 is an example that comes twice, also where it is counted how often nodes are labelled."""
    X, truth = skewed_labels(12, 1)
    rng = np.random.default_rng(3)
    y = [[int(a) if keep else None for a, keep in zip(t, rng.random(3) < 0.6, strict=True)] for t in truth]
    weight = rng.integers(0, 3, 12)
    twice = [i for i, w in enumerate(weight) for _ in range(w)]
    settings = {"alpha": 0.01, "tol": 1e-6, "smoothing": 1.0, "propensity": propensity}
    weighted = NashTagger(**settings).fit(X, y, sample_weight=weight)
    repeated = NashTagger(**settings).fit([X[i] for i in twice], [y[i] for i in twice])
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-5)
