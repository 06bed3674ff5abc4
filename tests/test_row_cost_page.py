"""What the page on costs of each row says of real data is what was measured."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from benchmarks import report
from benchmarks.empulse_sets import load
from benchmarks.row_costs import PAGE, SPLITS, _tables, compared, page, savings


def content() -> dict:
    return json.loads((report.RESULTS / "row_costs.json").read_text(encoding="utf-8"))


def test_the_page_shows_the_stored_results():
    text = PAGE.read_text(encoding="utf-8")
    assert text == page(text, content())


def test_tables_and_verdicts_follow_from_the_splits():
    found = content()
    for record in found["records"]:
        models = record["models"]
        assert all(len(one["savings"]) == SPLITS for one in models.values())
        for name, one in record["compared"].items():
            assert compared(models["nashlearn"]["savings"], models[name]["savings"]) == pytest.approx(one)
    assert _tables(found["records"]) == found["tables"]


def test_no_set_is_lost_to_logistic_regression():
    verdicts = {record["set"]: record["compared"]["logistic + cheapest"]["verdict"] for record in content()["records"]}
    assert set(verdicts.values()) <= {"tie", "better"}


def test_savings_are_relative_to_the_better_constant_answer():
    costs = np.array([[[0.0, 5.0], [1.0, 0.0]], [[0.0, 3.0], [2.0, 1.0]], [[0.0, 1.0], [4.0, 0.0]]])
    y = np.array([1, 1, 0])  # always 0 costs 8, always 1 costs 5
    assert savings(costs, y, np.array([1, 1, 0])) == pytest.approx(1 - 1 / 5)
    assert savings(costs, y, np.ones(3, dtype=int)) == 0.0


def test_a_missing_package_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "empulse", None)
    with pytest.raises(ImportError, match="pip install empulse"):
        next(load())
