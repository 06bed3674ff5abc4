"""Peers that reports hold models against, phrases by kind, and learning curves."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from report_models import classifier, flowers, ordinal, reports, sequences, tagger
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier

from nashlearn import NashClassifier, report
from nashlearn.datasets import Sentence


def section(data: dict[str, Any], kind: str) -> dict[str, Any]:
    return next(one for one in data["sections"] if one["type"] == kind)


def test_gradient_boosting_is_scikit_learns() -> None:
    X, y, X_new, _ = flowers()
    model = NashClassifier(alpha=1e-2).fit(X, y)
    peer = report.table_baselines(model, X, y)["gradient boosting"]
    expected = HistGradientBoostingClassifier(random_state=0).fit(X, y)
    assert peer.predict(X_new).tolist() == expected.predict(X_new).tolist()
    assert peer.predict_proba(X_new) == pytest.approx(expected.predict_proba(X_new))


def test_large_data_are_cut_and_names_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, _, _ = flowers()
    monkeypatch.setattr("nashlearn.report.baselines._ROWS", 60)
    monkeypatch.setattr("nashlearn.report.baselines._NUMBERS", 4 * 3 * 50)
    monkeypatch.setattr("nashlearn.report.baselines._HISTOGRAMS", 4 * 3 * 7)
    monkeypatch.setattr("nashlearn.report.baselines._FEW", 50)
    model = NashClassifier(alpha=1e-2).fit(X, y)
    assert list(report.table_baselines(model, X, y)) == [
        "logistic regression (60 rows)",
        "gradient boosting (7 rounds) (50 rows)",
        "linear SVM (60 rows)",
        "always the same answer",
    ]
    monkeypatch.setattr("nashlearn.report.baselines._FEW", 51)
    assert not any("boosting" in name for name in report.table_baselines(model, X, y))


def test_mord_judges_grades_or_is_said_to_be_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, X_new, y_new = flowers()
    name = "ordinal logistic regression (mord)"
    peers = report.table_baselines(ordinal(), X, y)
    if peers[name] is not None:
        assert np.mean(np.array(peers[name].predict(X_new)) == y_new) > 0.7
    monkeypatch.setitem(sys.modules, "mord", None)
    peers = report.table_baselines(ordinal(), X, y)
    compared = section(report.ordinal_report_data(ordinal(), X_new, y_new, baselines=peers), "comparison")
    assert peers[name] is None and compared["absent"] == [name]
    assert name not in [row["name"] for row in compared["measures"][0]["rows"]]
    assert name not in report.table_baselines(classifier(), X, y)  # its costs are no distances


def test_the_random_field_sees_the_same_features() -> None:
    pycrfsuite = pytest.importorskip("pycrfsuite")
    X, y, _ = sequences(0)
    X_new, y_new, _ = sequences(1)
    (peer,) = report.tagging_baselines(X, y).values()
    answers = peer.predict(X_new)
    assert [len(one) for one in answers] == [len(one) for one in y_new]
    assert np.mean(np.concatenate(answers) == np.concatenate(y_new)) > 0.85
    named = [[[f"{k}={v}" for k, v in token.items()] for token in one] for one in X]
    assert isinstance(pycrfsuite.ItemSequence(named[0]), pycrfsuite.ItemSequence)
    (by_name,) = report.tagging_baselines(named, y).values()
    names_new = [[[f"{k}={v}" for k, v in token.items()] for token in one] for one in X_new]
    assert [one.tolist() for one in by_name.predict(names_new)] == [one.tolist() for one in answers]


def test_the_random_field_may_be_absent_or_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, tokens = sequences(0)
    assert report.tagging_baselines([np.zeros((3, 2))], [["a", "b", "a"]]) == {}
    pytest.importorskip("pycrfsuite")
    with monkeypatch.context() as patch:
        patch.setattr("nashlearn.report.text_peers._TOKENS", 40)
        (name,) = report.tagging_baselines(X, y)
        assert 30 < int(name.split("(")[2].split()[0]) <= 40
    monkeypatch.setitem(sys.modules, "pycrfsuite", None)
    peers = report.tagging_baselines(X, y)
    assert list(peers.values()) == [None]
    data = report.tagging_report_data(tagger(), X, y, tokens=tokens, baselines=peers)
    assert section(data, "comparison")["absent"] == ["conditional random field (python-crfsuite)"]


def sentence(tags: str, heads: list[int]) -> Sentence:
    rows = [
        [str(i + 1), "w", "_", tag, "_", "_", str(head), "dep", "_", "_"]
        for i, (tag, head) in enumerate(zip(tags.split(), heads, strict=True))
    ]
    return Sentence(rows)


def test_rules_of_parts_of_speech() -> None:
    learnt = [sentence("DET NOUN VERB DET NOUN", [2, 3, 0, 5, 3])] * 2 + [sentence("NOUN VERB", [2, 0])]
    new = [sentence("DET ADJ NOUN VERB", [3, 3, 4, 0]), sentence("VERB NOUN", [0, 1]), sentence("NOUN", [0])]
    (heads,) = report.parsing_baselines(learnt, new).values()
    # The usual head of a noun is a verb to its right: where there is none, the word before.
    assert [one.tolist() for one in heads] == [[3, 1, 4, 0], [0, 1], [0]]


def test_phrases_of_each_kind_are_counted() -> None:
    X, y, tokens = sequences(1)
    changed = [["B-ODD" if tag == "B-NP" and i == 0 else tag for i, tag in enumerate(one)] for one in y]
    rows = {
        row[0]: row[1:]
        for row in section(report.tagging_report_data(tagger(), X, changed, tokens=tokens), "phrases")["rows"]
    }

    def found(tags: list[Any]) -> list[tuple[str, int, int]]:
        text = [str(tag) for tag in tags]
        starts = [
            i for i, tag in enumerate(text) if tag != "O" and (tag[0] == "B" or i == 0 or text[i - 1][2:] != tag[2:])
        ]
        return [
            (text[i][2:], i, next((j for j in range(i + 1, len(text)) if text[j] != f"I-{text[i][2:]}"), len(text)))
            for i in starts
        ]

    counts = {"NP": [0, 0, 0], "ODD": [0, 0, 0]}
    for answer, true in zip(tagger().predict(X), changed, strict=True):
        ours, theirs = found(list(answer)), found(true)
        for place, some in enumerate((theirs, ours, [one for one in ours if one in theirs])):
            for kind, *_ in some:
                counts[kind][place] += 1
    assert rows == counts and counts["ODD"][0] > 0 and counts["ODD"][1:] == [0, 0]


def test_a_learning_curve_ends_with_the_model() -> None:
    X, y, X_new, y_new = flowers()
    model = classifier()
    calls: list[int] = []
    curve = report.learning_curve(
        model, X, y, X_new, y_new, shares=(0.4, 0.2), draws=2, advance=lambda: calls.append(1)
    )
    assert [point[0] for point in curve["points"]] == [15, 30, 75] and len(calls) == 4
    features, new = (model[:-1].transform(one) for one in (X, X_new))
    own = [model[-1].task_loss(features, y), model[-1].task_loss(new, y_new)]
    assert curve["points"][-1] == [75, *own * 3]
    for _, *rest in curve["points"]:
        means, least, most = np.reshape(rest, (3, 2))
        assert np.all(least <= means + 1e-12) and np.all(means <= most + 1e-12)
    data = report.classification_report_data(model, X_new, y_new, learning=curve)
    assert section(data, "learning")["loss"] == {"name": "cost per row", "percent": False}
    assert "learning" not in [one["type"] for one in reports()["classification"]["sections"]]
    for wrong in ({"shares": (0.5, 1.0)}, {"draws": 0}):
        with pytest.raises(ValueError, match="must"):
            report.learning_curve(model, X, y, X_new, y_new, **wrong)


def test_a_learning_curve_refits_what_it_says() -> None:
    X, y, X_new, y_new = flowers()
    fits: list[Any] = []

    def fit(one: Any, part: Any, labels: Any) -> None:
        fits.append((clone(one).fit(part, labels), len(labels), set(labels.tolist())))
        one.fit(part, labels)

    model = NashClassifier(alpha=1e-2).fit(X, y)
    curve = report.learning_curve(model, X, y, X_new, y_new, shares=(0.1,), draws=3, fit=fit)
    assert all(labels == {0, 1, 2} for *_, labels in fits)
    assert curve["points"][0][2] == pytest.approx(np.mean([one.task_loss(X_new, y_new) for one, *_ in fits]))
