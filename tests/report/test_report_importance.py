"""Importances are scikit-learn's, weights are the model's, and their intervals mean what the page says."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from report_models import COSTS, classifier, flowers, ordinal
from scipy.sparse import csr_array
from scipy.stats import t
from sklearn.base import clone
from sklearn.inspection import permutation_importance

from nashlearn import NashClassifier, report
from nashlearn.report.importance import feature_names, importances, jackknife, shuffles_for

PAGE = SimpleNamespace(confidence=0.9, random_state=0)


def section(data: dict[str, Any], kind: str) -> dict[str, Any]:
    return next(one for one in data["sections"] if one["type"] == kind)


def test_importances_are_scikit_learns() -> None:
    _, _, X, y = flowers()
    model = classifier()
    found = section(report.classification_report_data(model, X, y), "importances")
    plan, rows = found["plan"], np.random.default_rng(0).permutation(len(y))
    assert plan == {"columns": 4, "repeats": 10, "rows": 75, "blocks": 20, "of": 75}
    expected = permutation_importance(
        model,
        X.iloc[rows],
        y[rows],
        scoring=lambda m, A, b: -COSTS[m.predict(A), b].mean(),
        n_repeats=plan["repeats"],
        random_state=0,
    ).importances_mean
    assert {name: value for name, value, *_ in found["rows"]} == {
        name: pytest.approx(value) for name, value in zip(X.columns, expected, strict=True)
    }
    assert [row[1] for row in found["rows"]] == sorted((row[1] for row in found["rows"]), reverse=True)


class Sum:
    """A model that answers with the sign of its first two columns, and never looks at the third."""

    def fit(self, X: Any, y: Any) -> Sum:
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return (X[:, 0] + 0.5 * X[:, 1] > 0).astype(int)


def drawn(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=n) > 0).astype(int)


def wrong(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (Sum().predict(X) != y).astype(float)


def test_intervals_of_importances_hold_as_often_as_they_say() -> None:
    rng = np.random.default_rng(0)
    X, y = drawn(400_000, rng)
    true = []
    for j in range(3):
        shuffled = X.copy()
        shuffled[:, j] = rng.permutation(shuffled[:, j])
        true.append(wrong(shuffled, y).mean() - wrong(X, y).mean())
    held = np.zeros(2)
    trials = 120
    for seed in range(trials):
        found = importances(Sum(), *drawn(200, rng), wrong, SimpleNamespace(confidence=0.9, random_state=seed))
        rows = {row[0]: row for row in found["rows"]}
        assert rows["column 3"][1:] == [0.0, 0.0, 0.0]
        held += [rows[f"column {j + 1}"][2] <= true[j] <= rows[f"column {j + 1}"][3] for j in range(2)]
    # Of 120 at 90 %, 96 or fewer have a chance of 1 in 1,000.
    assert held.min() > 96


def test_time_is_bounded() -> None:
    for columns in (1, 4, 30, 100, 300):
        for rows in (4, 90, 2000, 10**6):
            for support in (0, 500, 20_000):
                plan = shuffles_for(columns, rows, support)
                assert plan.rows <= min(rows, 2000) and plan.repeats >= 3 and 2 <= plan.blocks <= 20
                assert plan.columns * plan.repeats * plan.rows <= max(1_000_000, 200 * columns * 3)
    assert shuffles_for(301, 1000) is None and shuffles_for(4, 3) is None
    with_kernel, without = (shuffles_for(10, 10**5, support) for support in (20_000, 0))
    assert with_kernel.repeats * with_kernel.rows == without.repeats * without.rows / 2


def test_many_columns_are_not_shuffled_and_sparse_rows_have_none() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 301))
    y = (X[:, 7] > 0).astype(int)
    model = NashClassifier(alpha=1e-2).fit(X, y)
    data = report.classification_report_data(model, X, y)
    assert section(data, "importances")["plan"] is None and section(data, "importances")["rows"] == []
    assert section(data, "weights")["names"][0] == "feature 8" and len(section(data, "weights")["names"]) == 100
    data = report.classification_report_data(model, csr_array(X), y)
    assert "importances" not in [one["type"] for one in data["sections"]]


def test_weights_are_the_models() -> None:
    X, y, X_new, y_new = flowers()
    model = classifier()
    found = section(report.classification_report_data(model, X_new, y_new, training=(X, y), confidence=0.9), "weights")
    order = [list(X.columns).index(name) for name in found["names"]]
    assert np.array(found["values"]) == pytest.approx(model[-1].coef_[:, order], rel=1e-4)
    error, rows = jackknife(model[-1], model[:-1].transform(X), y, 0)
    assert rows == {"rows": 75, "of": 75, "fits": 10} == found["spread"]
    assert np.array(found["halves"]) == pytest.approx(t.ppf(0.95, 9) * error[:, order], rel=1e-4)
    plain = section(report.classification_report_data(model, X_new, y_new), "weights")
    assert plain["halves"] is None and plain["spread"] is None
    single = section(report.ordinal_report_data(ordinal(), X_new, y_new), "weights")
    assert single["single"] and single["labels"] == ["2"] and len(single["values"]) == 1


def test_kernel_models_have_no_weights() -> None:
    X, y, X_new, y_new = flowers()
    model = NashClassifier(kernel="rbf", gamma=0.5, alpha=1e-2).fit(X, y)
    types = [one["type"] for one in report.classification_report_data(model, X_new, y_new, training=(X, y))["sections"]]
    assert "weights" not in types and "importances" in types


def test_errors_of_weights_are_those_of_other_samples() -> None:
    """The jackknife's error against the spread of weights over fresh samples of the same size."""
    rng = np.random.default_rng(0)
    model = NashClassifier(alpha=1e-2)

    def sample() -> tuple[np.ndarray, np.ndarray]:
        X = rng.normal(size=(400, 2))
        return X, (X @ [1.0, -0.5] + rng.logistic(size=400) > 0).astype(int)

    spread = np.std([clone(model).fit(*sample()).coef_[0] for _ in range(150)], axis=0)
    errors = []
    for _ in range(8):
        X, y = sample()
        errors.append(jackknife(clone(model).fit(X, y), X, y)[0][0])
    assert np.sqrt(np.mean(np.square(errors), axis=0)) == pytest.approx(spread, rel=0.25)


def test_errors_from_a_part_of_the_rows_are_scaled(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(4000, 2))
    y = (X @ [1.0, -0.5] + rng.logistic(size=4000) > 0).astype(int)
    model = NashClassifier(alpha=1e-2).fit(X, y)
    whole, _ = jackknife(model, X, y)
    monkeypatch.setattr("nashlearn.report.importance._ENTRIES", 2000)
    part, rows = jackknife(model, X, y)
    assert rows["rows"] == 1000 and rows["of"] == 4000
    assert np.linalg.norm(part) == pytest.approx(np.linalg.norm(whole), rel=0.6)


def test_classes_of_one_row_stay_in_every_fit() -> None:
    X, y, _, _ = flowers()
    y = np.where(np.arange(y.size) == 3, 9, y)
    model = NashClassifier(alpha=1e-1).fit(X, y)
    assert jackknife(model, X.to_numpy(), y)[0].shape == (4, 4)


def test_features_have_the_names_of_what_made_them() -> None:
    X, *_ = flowers()
    assert feature_names(None, X, 4) == list(X.columns) == feature_names(classifier()[:-1], X, 4)
    assert feature_names(None, X.to_numpy(), 2) == ["feature 1", "feature 2"]
    made = ["numbers__age", "numbers__a__b", "categories__colour_red", "words of note__great", "a__b"]
    encoder = SimpleNamespace(get_feature_names_out=lambda: np.array(made))
    table = SimpleNamespace(columns=["age", "a__b", "colour", "note"])
    assert feature_names(encoder, table, 5) == ["age", "a__b", "colour_red", "words of note: great", "a__b"]
