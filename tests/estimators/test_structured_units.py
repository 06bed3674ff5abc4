"""Structured estimators divide their loss by ``s (1 + m)``: what that leaves as it is, and what it means."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from nashlearn import NashMarkovNetwork, NashMatcher, NashParser, NashTagger, games

COSTS = np.array([[0.0, 3.0, 1.0], [6.0, 0.0, 2.0], [1.0, 4.0, 0.0]])
RNG = np.random.default_rng(0)
LENGTHS = (4, 1, 3, 5, 4, 2, 5, 3)
SENTENCES = [RNG.standard_normal((n, 2)) for n in LENGTHS]
LABELS = [np.digitize(x[:, 0] + 0.7 * RNG.standard_normal(len(x)), [-0.5, 0.5]) for x in SENTENCES]
SETTINGS = {"alpha": 0.02, "tol": 1e-7, "max_iter": 2000}


def chain_scores(model, x):
    """Every labelling of a sequence, and its score."""
    nodes, edges = model.decision_function([x])[0]
    every = np.array(list(itertools.product(range(3), repeat=len(x))))
    total = nodes[np.arange(len(x)), every].sum(axis=1)
    for t, table in enumerate(edges):
        total += table[every[:, t], every[:, t + 1]]
    return every, total


@pytest.mark.parametrize("loss", ["zero_one", "absolute", COSTS], ids=["zero_one", "absolute", "costs"])
@pytest.mark.parametrize("smoothing", [0.3, 2.0])
def test_the_loss_is_the_cost_of_p_and_the_log_loss_of_q(loss, smoothing):
    """Over enumerated labellings: ``(cost / s + m log loss) / (1 + m)``, and predict_proba has the marginals of q."""
    model = NashTagger(loss, smoothing=smoothing, **SETTINGS).fit(SENTENCES, LABELS)
    L = {"zero_one": 1.0 - np.eye(3), "absolute": np.abs(np.subtract.outer(range(3), range(3)))}.get(str(loss), COSTS)
    scale, total = L.max(), 0.0
    strategies, proba = model.strategy(SENTENCES), model.predict_proba(SENTENCES)
    for x, y, p, q in zip(SENTENCES, LABELS, strategies, proba, strict=True):
        every, scores = chain_scores(model, x)
        cost = (p @ L)[np.arange(len(x)), every].sum(axis=1)
        logits = (scale * (1 + smoothing) * scores + cost) / (scale * smoothing)
        log_q = logits - np.logaddexp.reduce(logits)
        true = int(np.flatnonzero((every == y).all(axis=1))[0])
        total += (cost[true] / scale - smoothing * log_q[true]) / (1 + smoothing)
        marginals = [[np.exp(log_q[every[:, t] == a]).sum() for a in range(3)] for t in range(len(x))]
        np.testing.assert_allclose(q, marginals, atol=1e-4)
    penalty = 0.5 * model.alpha * float(model._weights @ model._weights)
    assert model.objective_ == pytest.approx(total / sum(LENGTHS) + penalty, rel=1e-4)
    assert model.smoothing_ == smoothing


@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_units_of_costs_change_nothing_but_costs(smoothing):
    graphs = [(x, [(i, i + 1) for i in range(len(x) - 1)]) for x in SENTENCES]
    for make, X in ((NashTagger, SENTENCES), (NashMarkovNetwork, graphs)):
        one = make(COSTS, smoothing=smoothing, **SETTINGS).fit(X, LABELS)
        other = make(250.0 * COSTS, smoothing=smoothing, **SETTINGS).fit(X, LABELS)
        assert other.objective_ == pytest.approx(one.objective_, rel=1e-5)
        np.testing.assert_allclose(other.coef_, one.coef_, atol=2e-3)
        assert other.history_[-1].objective == pytest.approx(other.objective_, rel=1e-9)
        assert other.worst_case_risk(0.1) == pytest.approx(250.0 * one.worst_case_risk(0.1), rel=1e-4)
        assert other.task_loss(X, LABELS) == pytest.approx(250.0 * one.task_loss(X, LABELS))
        assert other.score(X, LABELS) == -other.task_loss(X, LABELS)


def test_score_is_the_metric_that_was_named():
    for loss, best in (("zero_one", 1.0), ("absolute", 0.0), (COSTS, 0.0)):
        model = NashTagger(loss, alpha=0.02).fit(SENTENCES, LABELS)
        assert model.score(SENTENCES, LABELS) == best - model.task_loss(SENTENCES, LABELS)


def test_without_smoothing_probabilities_are_the_strategy():
    model = NashTagger(smoothing=0.0, alpha=0.02).fit(SENTENCES, LABELS)
    for p, proba in zip(model.strategy(SENTENCES), model.predict_proba(SENTENCES), strict=True):
        np.testing.assert_allclose(proba, p, atol=1e-6)


def test_much_smoothing_is_a_conditional_random_field():
    """A field is the game whose nodes cost nothing, its loss halved at ``m = 1``: twice the scores, half the alpha."""
    field = NashTagger(smoothing=1.0, alpha=0.02, tol=1e-6, max_iter=2000)
    field.fit(SENTENCES, LABELS, node_weight=[np.zeros(n) for n in LENGTHS])
    smooth = NashTagger(COSTS, smoothing=1e5, alpha=0.01, tol=1e-6, max_iter=2000).fit(SENTENCES, LABELS)
    for one, other in zip(field.decision_function(SENTENCES), smooth.decision_function(SENTENCES), strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_allclose(2.0 * a, b, atol=2e-2)


@pytest.mark.parametrize("smoothing", [0.0, 0.4])
def test_rounds_are_told_in_the_units_of_the_objective(smoothing):
    told = []
    model = NashTagger(COSTS, smoothing=smoothing, alpha=0.02, callback=told.append).fit(SENTENCES, LABELS)
    assert told[-1].objective == pytest.approx(model.objective_, rel=1e-3)
    assert told[-1].bound <= model.objective_


@pytest.mark.parametrize("smoothing", [0.0, 0.4])
def test_matchings_and_trees_divide_their_loss_too(smoothing):
    rng, unit = np.random.default_rng(1), 1.0 + smoothing
    X = list(rng.normal(size=(12, 3, 3, 2)))
    y = [games.matching(3).argmax((x[..., 0] + rng.normal(size=(3, 3)))[None])[0] for x in X]
    trees = list(rng.normal(size=(12, 3, 4, 2)))
    heads = [games.arborescence(3, True).argmax((x[..., 0] + rng.normal(size=(3, 4)))[None])[0] for x in trees]
    for model, game, inputs, labels in (
        (NashMatcher(alpha=0.05, smoothing=smoothing), games.matching(3), X, y),
        (NashParser(alpha=0.05, smoothing=smoothing), games.arborescence(3, True), trees, heads),
    ):
        model.fit(inputs, labels)
        scores = unit * np.array(model.decision_function(inputs))
        mean = game.loss_value(scores, np.array(labels), smoothing).mean() / 3
        expected = mean / unit + 0.025 * float(model.coef_ @ model.coef_)
        assert model.objective_ == pytest.approx(expected, rel=1e-5)
        assert model.worst_case_risk(0.2) == pytest.approx(mean + 0.2 * unit * np.linalg.norm(model.coef_), rel=1e-5)
        # Strategies need not be unique; what the true labels cost them is at most the loss.
        truth = game.vertex(np.array(labels))
        expected_cost = game.task_loss(np.array(model.strategy(inputs)), truth).mean() / 3
        assert expected_cost <= mean + 1e-8


def test_a_warm_start_begins_at_its_own_weights():
    model = NashTagger(COSTS, smoothing=0.5, alpha=0.02, tol=1e-3, warm_start=True).fit(SENTENCES, LABELS)
    before = model.objective_
    model.set_params(max_iter=1, tol=0.5).fit(SENTENCES, LABELS)
    assert model.objective_ <= before * (1 + 1e-6)
