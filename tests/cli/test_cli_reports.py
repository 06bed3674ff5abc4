"""Reports of the commands: learning curves on demand, peers, features by name."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from commands import answer, columns, complaint, flowers


def sections(path: Path) -> dict[str, Any]:
    text = re.search(r'<script type="application/json" id="data">(.*?)</script>', path.read_text(), re.S).group(1)
    return {one["type"]: one for one in json.loads(text)["sections"]}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "flowers.csv"
    flowers().to_csv(path, index=False)
    return path


def test_a_learning_curve_on_demand(table: Path, tmp_path: Path) -> None:
    options = ("-t", "kind", "-o", tmp_path / "m", "--report", tmp_path / "r.html")
    made = answer("train", table, *options, "--learning-curve")
    found = sections(tmp_path / "r.html")
    assert [point[0] for point in found["learning"]["points"]] == [10, 19, 38, 67, 96]
    assert found["learning"]["points"][-1][2] == pytest.approx(made["held_out"]["task_loss"])
    assert 0 < made["report_seconds"] < 600
    assert {row[0] for row in found["importances"]["rows"]} == {"height", "colour", "petals"}
    assert {"colour_red", "height"} <= set(found["weights"]["names"]) and found["weights"]["spread"]["rows"] == 96
    said = complaint("train", table, "-t", "kind", "-o", tmp_path / "m", "--learning-curve")
    assert said.startswith("--learning-curve is a part of the report")


def test_reports_of_models_without_their_training_data(table: Path, tmp_path: Path) -> None:
    answer("train", table, "-t", "kind", "-o", tmp_path / "m")
    answer("evaluate", tmp_path / "m", table, "--report", tmp_path / "r.html")
    found = sections(tmp_path / "r.html")
    assert found["weights"]["halves"] is None and len(found["comparison"]["measures"][0]["rows"]) == 1


def test_taggers_are_held_against_a_random_field(tmp_path: Path) -> None:
    path = columns(tmp_path)
    options = ("--tune", "off", "--report", tmp_path / "r.html", "--learning-curve")
    answer("tag", "train", path, "-o", tmp_path / "m", *options)
    found = sections(tmp_path / "r.html")
    names = [row["name"] for row in found["comparison"]["measures"][0]["rows"]] + found["comparison"]["absent"]
    assert names[:2] == ["this model", "most frequent tag of the word"]
    assert names[2].startswith("conditional random field (python-crfsuite)")
    assert len(found["learning"]["points"]) == 5
