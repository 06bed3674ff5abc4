"""What the page of F-scores says was measured, and its table is that of the stored results."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import fscore, report

PAGE = Path(__file__).resolve().parents[2] / "docs/fscore.md"


def results():
    return json.loads((report.RESULTS / "fscore.json").read_text())


def test_the_page_has_the_table_of_the_results():
    text = PAGE.read_text(encoding="utf-8")
    assert fscore.table() in text
    flowing = " ".join(text.split())
    assert fscore.times() in flowing
    assert fscore.peer() in flowing
    large = results()["large"]
    assert (
        f"is {large['fixed_point']:.3f} there, while its predictions score {large['NashFScore']['score']:.3f}."
        in flowing
    )


def test_verdicts_follow_from_the_figures():
    found = results()["sets"]
    assert len(found["sets"]) >= 11
    for how in ("default", "tuned"):
        figures = {name: own[how] for name, own in found["sets"].items()}
        for one in found[how]:
            again = fscore.compared(figures, one["one"], one["other"])
            for name in ("wins", "losses", "verdict"):
                assert again[name] == one[name]
            assert [*again["means"], again["p"]] == pytest.approx([*one["means"], one["p"]])
    assert found["time"]["worst"] <= 10.0


def test_the_best_threshold_is_the_best_of_all():
    rng = np.random.default_rng(0)
    y, proba = rng.integers(0, 2, 40), rng.integers(0, 9, 40) / 8
    best, level = fscore.best_threshold(y, proba)
    every = [2 * (y & (proba >= t)).sum() / (y.sum() + (proba >= t).sum()) for t in np.unique(proba)]
    assert best == pytest.approx(max(every))
    assert 2 * (y & (proba >= level)).sum() / (y.sum() + (proba >= level).sum()) == pytest.approx(best)
