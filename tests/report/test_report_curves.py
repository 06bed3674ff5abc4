"""Curves over thresholds and reliability are those of scikit-learn, of SciPy and of loops over rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from report_models import COSTS, abstainer, classifier, flowers, ordinal, reports
from scipy.stats import binomtest, norm
from sklearn.metrics import (
    average_precision_score,
    log_loss,
    precision_score,
    recall_score,
    roc_auc_score,
    roc_curve,
)

from nashlearn import NashClassifier, report
from nashlearn.report.curves import Event, Opinion, area, events_of, reliability, thresholds

MODELS = {"classification": classifier, "ordinal": ordinal, "abstention": abstainer}


def section(data: dict[str, Any], kind: str) -> dict[str, Any]:
    return next(one for one in data["sections"] if one["type"] == kind)


def opinion(n: int = 300, seed: int = 0, ties: bool = False) -> tuple[Opinion, np.ndarray]:
    """Three labels with probabilities that mean something, and answers by chance; a few equal ones where asked for."""
    rng = np.random.default_rng(seed)
    q = rng.dirichlet([0.7, 0.5, 0.4], size=n)
    labels = np.array([rng.choice(3, p=one) for one in q])
    q = np.round(q, 1) / np.round(q, 1).sum(axis=1, keepdims=True) if ties else q
    return Opinion("this model", rng.integers(0, 3, size=n), q, q), labels


EVENTS = [Event(str(c), np.arange(3) == c, np.arange(3) == c) for c in range(3)]


@pytest.mark.parametrize("ties", [False, True])
def test_areas_and_rates_are_those_of_scikit_learn(ties: bool) -> None:
    own, labels = opinion(n=60, ties=ties)
    found = thresholds([own], EVENTS, labels, COSTS, 0.95)
    for c, event in enumerate(found["events"]):
        truth, score = labels == c, np.round(own.q[:, c], 9)
        curve = event["curves"][0]
        assert curve["area"]["value"] == pytest.approx(roc_auc_score(truth, score))
        assert curve["average_precision"] == pytest.approx(average_precision_score(truth, score))
        alarms, recall, _ = roc_curve(truth, score, drop_intermediate=False)
        points = np.array(curve["points"], dtype=float)
        assert points[:, 3] == pytest.approx(alarms, abs=1e-5) and points[:, 2] == pytest.approx(recall, abs=1e-5)
        claimed = own.options == c
        assert curve["own"][2] == pytest.approx(recall_score(truth, claimed))
        assert curve["own"][4] == pytest.approx(precision_score(truth, claimed))
        assert curve["own"][5] == pytest.approx(COSTS[own.options, labels].mean())


def test_costs_at_each_threshold_are_those_of_a_loop() -> None:
    own, labels = opinion(n=40)
    curve = thresholds([own], EVENTS, labels, COSTS, 0.95)["events"][2]["curves"][0]
    for threshold, share, _, _, _, cost in curve["points"][1:]:
        paid = 0.0
        for q, label in zip(own.q, labels, strict=True):
            allowed = [2] if q[2] >= threshold * (1 - 1e-4) else [0, 1]
            expected = {a: sum(q[j] * COSTS[a, j] for j in range(3)) for a in allowed}
            paid += COSTS[min(expected, key=lambda a: expected[a]), label]
        assert share == pytest.approx(np.mean(own.q[:, 2] >= threshold * (1 - 1e-4)), abs=1e-5)
        assert cost == pytest.approx(paid / labels.size, rel=1e-4)


def test_the_interval_of_an_area_is_delongs() -> None:
    rng = np.random.default_rng(0)
    score, positive = rng.integers(0, 12, size=50).astype(float), rng.random(50) < 0.4
    inside, outside = score[positive], score[~positive]
    wins = (inside[:, None] > outside) + 0.5 * (inside[:, None] == outside)
    variance = wins.mean(axis=1).var(ddof=1) / inside.size + wins.mean(axis=0).var(ddof=1) / outside.size
    half = norm.ppf(0.95) * np.sqrt(variance)
    found = area(score, positive, 0.9)
    assert found == {
        "value": pytest.approx(wins.mean()),
        "low": pytest.approx(wins.mean() - half),
        "high": pytest.approx(wins.mean() + half),
    }
    assert area(np.arange(6.0), np.arange(6) > 2, 0.9) == {"value": 1.0, "low": None, "high": None}


def test_strategies_tell_rows_of_one_probability_apart() -> None:
    q = np.array([[0.5, 0.5]] * 4)
    p = np.array([[1.0, 0.0], [0.6, 0.4], [0.2, 0.8], [0.0, 1.0]])
    event = Event("1", np.array([False, True]), np.array([False, True]))
    assert Opinion("a", p.argmax(axis=1), q, q).rank(event).tolist() == [0, 0, 0, 0]
    assert Opinion("a", p.argmax(axis=1), q, q, p).rank(event).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", MODELS)
def test_the_operating_point_is_what_the_model_answers(kind: str) -> None:
    _, _, X, y = flowers()
    data = reports()[kind]
    rows = section(data, "comparison")["measures"][0]["rows"]
    cost = {row["name"]: row["value"] for row in rows}
    names = [rows[0]["name"], *(name for name in cost if "cheapest" in name)]
    for event in section(data, "thresholds")["events"]:
        assert [curve["name"] for curve in event["curves"]] == names
        for curve in event["curves"]:
            assert curve["own"][5] == pytest.approx(cost[curve["name"]])
    if kind == "classification":
        claimed = classifier().predict(X) == 2
        assert section(data, "thresholds")["events"][2]["curves"][0]["own"][2] == pytest.approx(
            recall_score(y == 2, claimed)
        )


def test_two_classes_answer_by_a_threshold() -> None:
    X, y, X_new, y_new = flowers()
    model = NashClassifier([[0, 4], [1, 0]], alpha=1e-2).fit(X, y == 2)
    data = report.classification_report_data(model, X_new, y_new == 2)
    for event in section(data, "thresholds")["events"]:
        curve = event["curves"][0]
        assert min(np.abs(np.array(p[1:6], dtype=float) - curve["own"][1:6]).max() for p in curve["points"][1:]) < 1e-4
    assert section(data, "thresholds")["events"][section(data, "thresholds")["chosen"]]["n"] == np.sum(y_new == 2)


def test_events_of_grades_keep_their_order() -> None:
    data = reports()["ordinal"]
    assert [one["name"] for one in section(data, "thresholds")["events"]] == [
        "versicolor & co or higher",
        "virginica or higher",
    ]
    labels = np.repeat(np.arange(12), np.arange(1, 13))
    names = [f"grade {g}" for g in range(12)]
    found = events_of(names, labels, 12, ordered=True)
    assert len(found) == 8 and [one.labels.argmax() for one in found] == sorted(one.labels.argmax() for one in found)
    assert [one.name for one in events_of(names, labels, 13, ordered=False)] == names[4:]
    assert not any(one.answers[12] for one in events_of(names, labels, 13, ordered=False))


def test_reliability_is_counted_bin_by_bin() -> None:
    own, labels = opinion()
    found = reliability([own], EVENTS, labels, 0.9)
    said, happened = own.q.max(axis=1), own.q.argmax(axis=1) == labels
    order = np.argsort(said)
    for b, (mean, often, low, high, n) in enumerate(found["events"][0]["bins"]):
        rows = order[30 * b : 30 * b + 30]
        exact = binomtest(int(happened[rows].sum()), 30).proportion_ci(0.9)
        assert (mean, often, n) == (pytest.approx(said[rows].mean()), pytest.approx(happened[rows].mean()), 30)
        assert (low, high) == (pytest.approx(exact.low), pytest.approx(exact.high))
    assert sum(one[4] for one in found["events"][1]["bins"]) == labels.size
    scores = found["scores"][0]
    assert scores["log_loss"] == pytest.approx(log_loss(labels, own.q))
    assert scores["brier"] == pytest.approx(
        np.mean([np.sum((q - np.eye(3)[y]) ** 2) for q, y in zip(own.q, labels, strict=True)])
    )


def test_bins_hold_equal_probabilities_together() -> None:
    q = np.repeat([[0.9, 0.1], [0.6, 0.4]], [50, 10], axis=0)
    own = Opinion("this model", np.zeros(60, dtype=int), q, q)
    bins = reliability([own], [], np.zeros(60, dtype=int), 0.95)["events"][0]["bins"]
    assert [row[4] for row in bins] == [10, 50]


def test_without_probabilities_scores_rank_and_nothing_is_called_reliable() -> None:
    X, y, X_new, y_new = flowers()
    model = NashClassifier(kernel="rbf", gamma=0.5, alpha=1e-2).fit(X, y)
    data = report.classification_report_data(model, X_new, y_new)
    types = [one["type"] for one in data["sections"]]
    assert "thresholds" in types and "reliability" not in types
    assert not section(data, "thresholds")["probabilities"]
    scores = model.decision_function(X_new)
    lead = scores[:, 1] - scores[:, [0, 2]].max(axis=1)
    event = section(data, "thresholds")["events"][1]
    assert event["curves"][0]["area"]["value"] == pytest.approx(roc_auc_score(y_new == 1, lead))
