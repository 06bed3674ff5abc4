"""The page of benchmarks shows what version 0.1 had."""

import json

from benchmarks import before, report
from benchmarks.before import beside


def test_columns_of_the_version_before_stand_behind_their_own():
    table = {
        "title": "Kernels",
        "columns": ["γ", "C", "ours / SVC", "ours / one-vs-rest", "predict, ours / SVC", "gap"],
    }
    rows = [["0.1", "10", "1.50", "0.50", "0.08", "3e-04"], ["7", "10", "1.00", "0.40", "0.09", "1e-04"]]
    found = beside("kernels", {**table, "note": "", "rows": rows})
    assert found["columns"][2:4] == ["ours / SVC", "ours / SVC, 0.1"]
    assert found["rows"][0] == ["0.1", "10", "1.50", "5.77", "0.50", "1.57", "0.08", "0.09", "3e-04"]
    assert found["rows"][1] == ["7", "10", "1.00", "–", "0.40", "–", "0.09", "–", "1e-04"]
    assert rows[0] == ["0.1", "10", "1.50", "0.50", "0.08", "3e-04"]


def test_other_tables_stay_as_they_are():
    table = {"title": "Kernels, tuned", "note": "", "columns": ["model"], "rows": [["ours"]]}
    assert beside("kernels", table) is table


def test_all_columns_that_are_shown_again_are_there():
    for part, title in before._AGAIN:
        content = json.loads((report.RESULTS / f"{part}.json").read_text(encoding="utf-8"))
        table = next(table for table in content["tables"] if table["title"] == title)
        assert any(column.endswith(", 0.1") for column in beside(part, table)["columns"])
