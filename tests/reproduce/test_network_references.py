"""The references of networks: margin rescaling against enumeration, and the paper's Adam."""

from __future__ import annotations

import itertools

import numpy as np

from nashlearn import NashTagger
from reproduce.networks import bayes, trained
from reproduce.references import margin_rescaling
from reproduce.references.mana_adam import mana_adam


def _data():
    rng = np.random.default_rng(1)
    X = [rng.standard_normal((n, 2)) for n in (3, 2, 4, 3)]
    return X, [(x[:, 0] > 0).astype(int) + (x[:, 1] > 0.5) for x in X]


def test_margin_rescaling_is_the_largest_lifted_score():
    X, y = _data()
    model, _ = trained("ssvm", NashTagger("absolute", alpha=0.05, tol=1e-4, max_iter=400), X, y)
    total = 0.0
    for (f, T), labels in zip(model.decision_function(X), y, strict=True):
        truth = _score(f, T, labels)
        every = itertools.product(range(3), repeat=len(labels))
        total += max(_score(f, T, other) + np.abs(np.array(other) - labels).sum() for other in every) - truth
    nodes = sum(map(len, y))
    hinge = total / nodes + 0.025 * float(model._weights @ model._weights)
    assert hinge <= model.objective_ + 1e-9  # smoothing only adds
    assert model.objective_ - hinge <= 0.1 * np.log(3)  # at most its unit times the entropy of a node


def _score(f, T, labels) -> float:
    pairs = zip(T, itertools.pairwise(labels), strict=True)
    return float(f[np.arange(len(labels)), labels].sum() + sum(t[a, b] for t, (a, b) in pairs))


def test_missing_labels_leave_the_margin_of_the_others():
    X, y = _data()
    partial = [np.where(np.arange(len(labels)) == 0, -1, labels) for labels in y]
    model = margin_rescaling.fit(NashTagger(alpha=0.5), X, partial)
    assert np.isfinite(model.objective_)
    assert len(model.predict(X)) == len(X)


def test_a_random_field_decodes_by_its_marginals():
    X, y = _data()
    model, _ = trained("crf", NashTagger(alpha=1e-3), X, y)
    answers = bayes(1.0 - np.eye(3))(model, X)
    assert np.mean(np.concatenate(answers) == np.concatenate(y)) > 0.8


def test_adam_lowers_the_loss():
    rng = np.random.default_rng(0)
    y = np.repeat(rng.integers(0, 3, (4, 5)), 2, axis=1)
    *_, early = mana_adam(y, y, 3, 1)
    emission, _, late = mana_adam(y, y, 3, 60)
    assert late < early
    assert (emission.argmax(axis=1) == np.arange(3)).all()
