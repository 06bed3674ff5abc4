"""The figures of reports are those of the models, of scikit-learn and of direct computation."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from report_models import (
    COSTS,
    abstainer,
    classifier,
    flowers,
    matcher,
    ordinal,
    parser,
    reports,
    sequences,
    tagger,
    treebank,
    video,
)
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, confusion_matrix, mean_absolute_error

from nashlearn import NashClassifier, report
from nashlearn.parsing import attachment, complete_matches
from nashlearn.report.sections import Measure, comparison, confusion, thinned
from nashlearn.report.summary import figure
from nashlearn.tagging import phrase_f1
from nashlearn.tracking import track_examples

KINDS = ("classification", "ordinal", "abstention", "tagging", "parsing", "tracking")


def section(data: dict[str, Any], kind: str) -> dict[str, Any]:
    return next(one for one in data["sections"] if one["type"] == kind)


def values(data: dict[str, Any], measure: str) -> dict[str, float]:
    """What each model has by the measure of that name."""
    table = next(one for one in section(data, "comparison")["measures"] if one["name"] == measure)
    return {row["name"]: row["value"] for row in table["rows"]}


@pytest.mark.parametrize("kind", KINDS)
def test_data_are_plain(kind: str) -> None:
    data = reports()[kind]
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    for measure in section(data, "comparison")["measures"]:
        for row in measure["rows"]:
            if row["value"] is not None:
                assert row["low"] - 1e-9 <= row["value"] <= row["high"] + 1e-9


def test_data_are_the_same_each_time() -> None:
    X, y, X_new, y_new = flowers()

    def made() -> dict[str, Any]:
        peers = report.table_baselines(classifier(), X, y)
        return report.classification_report_data(classifier(), X_new, y_new, baselines=peers, training=(X, y))

    assert report.report_html(made()) == report.report_html(made())


TABLE = ["confusion", "thresholds", "reliability", "importances", "weights"]


@pytest.mark.parametrize(
    ("kind", "own"),
    [
        ("classification", TABLE),
        ("ordinal", ["errors", *TABLE]),
        ("abstention", ["coverage", *TABLE]),
        ("tagging", ["phrases", "sequences", "confusion"]),
        ("parsing", ["trees", "lengths"]),
        ("tracking", ["table", "boxes"]),
    ],
)
def test_sections_are_those_of_the_task(kind: str, own: list[str]) -> None:
    proofs = ["certificate"] if kind == "tracking" else ["new_data", "certificate"]
    assert [one["type"] for one in reports()[kind]["sections"]] == ["comparison", *own, *proofs]


def test_costs_and_confusion_of_a_classifier() -> None:
    _, _, X, y = flowers()
    model, data = classifier(), reports()["classification"]
    answers = model.predict(X)
    assert values(data, "Mean cost")["this model"] == pytest.approx(model[-1].task_loss(model[0].transform(X), y))
    assert values(data, "Error rate")["this model"] == pytest.approx(1 - accuracy_score(y, answers))
    table = section(data, "confusion")
    assert np.array_equal(np.array(table["counts"]).T, confusion_matrix(y, answers))
    assert np.array_equal(table["costs"], COSTS)
    assert table["total"]["cost"] == pytest.approx(COSTS[answers, y].sum())
    for cell, examples in table["examples"].items():
        i, j = map(int, cell.split(","))
        assert all(answers[one["row"]] == i and y[one["row"]] == j for one in examples)


def test_baselines_are_scikit_learn_behind_the_same_steps() -> None:
    X, y, X_new, y_new = flowers()
    data = reports()["classification"]
    scaler = classifier()[0]
    peer = LogisticRegression(max_iter=500).fit(scaler.transform(X), y)
    found = values(data, "Error rate")
    assert found["logistic regression"] == pytest.approx(1 - peer.score(scaler.transform(X_new), y_new))
    expected = peer.predict_proba(scaler.transform(X_new)) @ COSTS.T
    cheapest = COSTS[expected.argmin(axis=1), y_new].mean()
    costs = values(data, "Mean cost")
    assert costs["logistic regression, cheapest answer"] == pytest.approx(cheapest)
    shares = np.bincount(y) / y.size
    assert costs["always the same answer"] == pytest.approx(COSTS[(COSTS @ shares).argmin(), y_new].mean())


def test_baselines_may_be_answers() -> None:
    _, _, X, y = flowers()
    data = report.classification_report_data(classifier(), X, y, baselines={"the truth": y})
    assert values(data, "Mean cost")["the truth"] == 0.0
    assert section(data, "comparison")["measures"][0]["rows"][1]["difference"]["value"] > 0


def test_the_certificate_is_the_models() -> None:
    found, model = section(reports()["classification"], "certificate"), classifier()[-1]
    assert (found["gap"], found["objective"]) == (model.dual_gap_, model.objective_)
    assert found["history"][-1][4] == pytest.approx(model.dual_gap_)


def apart(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of two classes that one column tells apart."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, size=n)
    return (2.0 * y - 1.0)[:, None] + 0.1 * rng.normal(size=(n, 1)), y


def test_a_worst_case_that_says_something_is_shown() -> None:
    X, y = apart(2000)
    model = NashClassifier(alpha=1e-2).fit(X, y)
    worst = section(report.classification_report_data(model, X, y), "risk")
    for confidence, radius in worst["marks"]:
        assert radius == pytest.approx(model.moment_radius(confidence))
        assert dict(worst["points"])[radius] == pytest.approx(model.worst_case_risk(radius))
    assert worst["points"][0] == [0.0, pytest.approx(model.worst_case_risk())]
    assert worst["measured"] == pytest.approx(np.mean(1.0 - model.strategy(X)[np.arange(y.size), y]), abs=1e-12)
    assert worst["secured"] == pytest.approx(0.5)  # of two classes, by a coin
    assert worst["measured"] <= dict(worst["points"])[dict(worst["marks"])[0.95]] < worst["secured"]


def test_a_worst_case_that_says_nothing_or_contradicts_is_not_shown() -> None:
    X, y = apart(200)
    few = NashClassifier(alpha=1e-2).fit(X, y)
    assert few.worst_case_risk(few.moment_radius(0.95)) > 0.5
    assert "risk" not in [one["type"] for one in report.classification_report_data(few, X, y)["sections"]]
    X, y = apart(2000)
    sure = NashClassifier(alpha=1e-2).fit(X, y)
    shifted = report.classification_report_data(sure, X, 1 - y)  # new labels that are all others
    assert "risk" not in [one["type"] for one in shifted["sections"]]
    for kind in KINDS:
        data = reports()[kind]
        assert "risk" not in [one["type"] for one in data["sections"]]
        assert not any("worst" in words.lower() for words in [data["headline"], *data["words"]])
        assert "Worst case" not in [card["name"] for card in data["cards"]]


@pytest.mark.parametrize(("kind", "model"), [("classification", classifier), ("abstention", abstainer)])
def test_bounds_for_new_data_are_the_models(kind: str, model: Any) -> None:
    _, _, X, y = flowers()
    found, bounds = model()[-1].certify(model()[:-1].transform(X), y), section(reports()[kind], "new_data")
    assert [bounds[name] for name in found._fields] == pytest.approx(list(found))
    assert reports()[kind]["cards"][-1]["name"] == "New data"


def test_bounds_for_new_sequences_are_the_models_and_frames_have_none() -> None:
    X, y, _ = sequences(1)
    found, bounds = tagger().certify(X, y), section(reports()["tagging"], "new_data")
    assert [bounds[name] for name in found._fields] == pytest.approx(list(found))
    assert "new_data" not in [one["type"] for one in reports()["tracking"]["sections"]]


@pytest.mark.parametrize(("kind", "each"), [("tagging", "in the mean sequence"), ("parsing", "in the mean sentence")])
def test_bounds_for_new_data_stand_beside_their_own_measure(kind: str, each: str) -> None:
    """The share of all tokens is another number than the mean over sentences, and may lie outside its bounds."""
    data = reports()[kind]
    bounds, card = section(data, "new_data"), data["cards"][-1]
    assert bounds["unit"].endswith(each) and each in card["note"] and each in data["words"][-1]
    assert bounds["lower"] <= bounds["loss"] <= bounds["upper"]
    assert card["note"].endswith(f"here {figure(bounds['loss'], percent=True)}")


def test_a_model_without_history_is_reported() -> None:
    _, _, X, y = flowers()
    model = clone(ordinal()).fit(*flowers()[:2])
    del model.history_
    assert section(report.ordinal_report_data(model, X, y), "certificate")["history"] == []


def test_errors_of_grades() -> None:
    _, _, X, y = flowers()
    data, answers = reports()["ordinal"], ordinal().predict(X)
    assert values(data, "Mean absolute error")["this model"] == pytest.approx(mean_absolute_error(y, answers))
    errors = section(data, "errors")
    own = dict(zip(errors["offsets"], errors["series"][0]["counts"], strict=True))
    assert own == {d: int(np.sum(answers - y == d)) for d in errors["offsets"]}
    assert values(data, "Off by more than one")["this model"] == np.mean(np.abs(answers - y) > 1)


def test_coverage_and_risk() -> None:
    _, _, X, y = flowers()
    model, data = abstainer(), reports()["abstention"]
    features = model[0].transform(X)
    curve = section(data, "coverage")["curves"][0]["points"]
    reluctance, labels = model[-1].abstain_proba(features), model.predict(X)
    for threshold, coverage, risk, cost in curve[1:]:
        answered = reluctance <= threshold
        assert coverage == pytest.approx(answered.mean())
        assert risk == pytest.approx(np.mean(labels[answered] != y[answered]))
        assert cost == pytest.approx(np.where(answered, labels != y, 0.3).mean())
    assert curve[0][1] == 0.0 and curve[-1][1] == 1.0
    assert values(data, "Mean cost")["this model"] == pytest.approx(model[-1].task_loss(features, y))
    chosen = section(data, "coverage")["chosen"]
    assert chosen["coverage"] == pytest.approx(values(data, "Coverage")["this model"])
    assert chosen["coverage"] == pytest.approx(np.mean(model[-1].predict_or_abstain(features) != -1))


def test_tags_and_phrases() -> None:
    X, y, _ = sequences(1)
    data = reports()["tagging"]
    assert values(data, "Wrong tags")["this model"] == pytest.approx(tagger().task_loss(X, y))
    assert values(data, "F1 of phrases")["this model"] == pytest.approx(phrase_f1(tagger().predict(X), y))
    assert [one["name"] for one in section(data, "comparison")["measures"]] == [
        "F1 of phrases",
        "Precision",
        "Recall",
        "Wrong tags",
    ]
    assert data["headline"].startswith("F1 of phrases") and data["cards"][0]["name"] == "F1 of phrases"
    shown = section(data, "sequences")
    wrong = [
        sum(a != b for a, b in zip(one, true, strict=True)) for one, true in zip(tagger().predict(X), y, strict=True)
    ]
    assert shown["n_wrong"] == np.count_nonzero(wrong)
    p = tagger().strategy(X)
    first = shown["items"][0]
    at = int(first["name"].split()[1]) - 1
    assert first["truth"] == y[at] and first["likely"][0][0][1] == pytest.approx(p[at][0].max(), abs=1e-3)


def test_tags_that_training_has_not_seen_count_as_wrong() -> None:
    X, y, tokens = sequences(1)
    strange = [[*tags[:-1], "I-ODD"] for tags in y]
    data = report.tagging_report_data(tagger(), X, strange, tokens=tokens)
    answers = np.concatenate(tagger().predict(X))
    truth = np.concatenate(strange)
    assert values(data, "Wrong tags")["this model"] == pytest.approx(np.mean(answers != truth))
    table = section(data, "confusion")
    assert table["labels"] == [*table["answers"], "I-ODD"]
    assert np.sum(table["counts"], axis=0)[-1] == len(y)
    assert table["total"]["cost"] == np.sum(answers != truth)


def test_heads() -> None:
    X, sentences = treebank(1)
    data, truth = reports()["parsing"], [sentence.heads for sentence in sentences]
    heads = parser().predict(X)
    assert values(data, "Right heads (UAS)")["this model"] == pytest.approx(attachment(heads, truth))
    assert values(data, "Complete trees")["this model"] == pytest.approx(complete_matches(heads, truth))
    relations = [["dep"] * len(one) for one in truth]
    labelled = attachment(heads, truth, relations, [sentence.deprels for sentence in sentences])
    assert values(data, "Right relations too (LAS)") == {
        "this model": pytest.approx(labelled),
        "previous word": None,
        "next word": None,
    }
    previous = [np.arange(len(one)) for one in truth]
    assert values(data, "Right heads (UAS)")["previous word"] == pytest.approx(attachment(previous, truth))
    assert sum(one["n"] for one in section(data, "lengths")["bins"]) == sum(map(len, truth))


def test_links() -> None:
    data = reports()["tracking"]
    assert values(data, "Wrong links")["this model"] == pytest.approx(matcher().task_loss(*track_examples(video(1))))
    item = section(data, "boxes")["items"][0]
    assert all(b < 0 or item["left_names"][i] == item["right_names"][b] for i, b in enumerate(item["truth"]))


def test_intervals_are_the_bootstrap() -> None:
    rng = np.random.default_rng(0)
    top = rng.integers(0, 4, size=(400, 2)).astype(float)
    bottom = np.ones((400, 2)) * rng.integers(3, 9, size=(400, 1))
    rows = comparison(["a", "b"], [Measure("ratio", top, bottom)], "rows", 0.9, 0)["measures"][0]["rows"]
    draws = rng.integers(0, 400, size=(4000, 400))
    ratios = top[draws].sum(axis=1) / bottom[draws].sum(axis=1)
    spread = ratios.std(axis=0).max()
    for j, row in enumerate(rows):
        assert [row["low"], row["high"]] == pytest.approx(np.percentile(ratios[:, j], [5, 95]), abs=0.2 * spread)
    apart = rows[1]["difference"]
    expected = np.percentile(ratios[:, 0] - ratios[:, 1], [5, 95])
    assert [apart["low"], apart["high"]] == pytest.approx(expected, abs=0.3 * spread)


def test_options_that_are_not_labels() -> None:
    X, y, X_new, y_new = flowers()
    costs = np.array([[0.0, 2.0, 2.0], [1.0, 0.0, 0.5]])
    model = NashClassifier(costs, alpha=1e-2).fit(X, y)
    peers = report.table_baselines(model, X, y)
    data = report.classification_report_data(model, X_new, y_new, baselines=peers, label_names={0: "keep", 1: "check"})
    assert values(data, "Mean cost")["this model"] == pytest.approx(model.task_loss(X_new, y_new))
    assert section(data, "confusion")["answers"] == ["keep", "check"]
    cheapest = {f"{name}, cheapest answer" for name in ("logistic regression", "gradient boosting")}
    assert set(peers) == {*cheapest, "always the same answer"}
    types = [one["type"] for one in data["sections"]]
    assert "thresholds" not in types and "reliability" in types


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.array([0, 1, 7])}, "7, which is not among"),
        ({"baselines": {"mine": [0, 1]}}, "mine gave 2 answers for 3 rows"),
        ({"texts": ["one"]}, "texts must hold one text for each of the 3 rows"),
        ({"confidence": 1.5}, "confidence must lie between 0 and 1"),
        ({"y": np.array([], dtype=int), "X": None}, "at least one row"),
    ],
)
def test_bad_input_is_refused(change: dict[str, Any], message: str) -> None:
    _, _, X, y = flowers()
    given = {"X": X.iloc[:3], "y": y[:3], **change}
    with pytest.raises(ValueError, match=message):
        report.classification_report_data(classifier(), **given)


def test_many_labels_are_cut_to_those_that_cost_most() -> None:
    rng = np.random.default_rng(0)
    k, n = 60, 5000
    labels, options = rng.integers(0, k, size=(2, n))
    labels[:2000] = options[:2000] = 7  # common, and always right
    options[2000:2600], labels[2000:2600] = 11, 13
    names = [f"class {j}" for j in range(k)]
    table = confusion(options, labels, names, names, 1.0 - np.eye(k), "rows", lambda rows: rows.tolist())
    assert len(table["labels"]) == len(table["answers"]) == 24 and table["total"]["hidden"] == k - 24
    assert {"class 11", "class 13"} <= set(table["labels"])
    i, j = table["answers"].index("class 11"), table["labels"].index("class 13")
    assert table["counts"][i][j] == np.sum((options == 11) & (labels == 13))
    assert len(table["classes"]) == k and table["total"]["cost"] == np.sum(options != labels)


def test_curves_keep_both_ends() -> None:
    points = thinned([[i] for i in range(5000)])
    assert len(points) <= 400 and points[0] == [0] and points[-1] == [4999]
