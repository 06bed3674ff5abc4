"""How often certificates on new data hold: in draws from populations that are known, and as the page on them says."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks import coverage, report
from benchmarks.coverage import CALIBRATIONS, DRAWS, PAGE, POOLS, PROMISES, calibrated, covered, page, tables

FAST = ("costs 0 to 10", "tagged sequences", "nasty: 1 % lose all", "nasty: all or nothing, not known to be")


@pytest.mark.parametrize("name", FAST)
def test_coverage_in_few_draws(name):
    found = covered(POOLS[name].make(), 40, 120, seed=1)
    assert found.coverage >= 0.95 - 2.6 * np.sqrt(0.05 * 0.95 / 120)


def test_only_draws_that_can_miss_need_an_interval(monkeypatch):
    losses = POOLS["nasty: few rows"].make()
    monkeypatch.setattr(coverage, "WIDTHS", 1)
    quick = covered(losses, 20, 120, confidence=0.5)
    monkeypatch.setattr(coverage, "WIDTHS", 120)
    monkeypatch.setattr(coverage, "_suspects", lambda *given: False)
    whole = covered(losses, 20, 120, confidence=0.5)
    assert quick[1:4] == whole[1:4] and quick.above > 0.05 and quick.below > 0.05


@pytest.mark.slow
@pytest.mark.parametrize("name", POOLS)
def test_coverage_in_ten_thousand_draws(name):
    losses = POOLS[name].make()
    found = covered(losses, POOLS[name].sizes[0], 10_000)
    assert found.coverage >= 0.95 - 2.6 * np.sqrt(0.05 * 0.95 / 10_000)
    assert found.width <= 1.07 * found.binomial


def test_calibrate_is_not_tempted_by_prices_that_are_all_too_high():
    _, n, prices = PROMISES[-1]
    found = calibrated(None, n, 60, prices=prices)
    assert found.kept >= 0.95 - 2.6 * np.sqrt(0.05 * 0.95 / 60) and found.kept == found.refused


def test_calibrate_keeps_its_promise_in_few_draws():
    found = calibrated(0.15, 400, 40, seed=2)
    assert found.kept >= 0.95 - 2.6 * np.sqrt(0.05 * 0.95 / 40)


@pytest.mark.slow
@pytest.mark.parametrize(("max_loss", "n", "prices"), PROMISES)
def test_calibrate_keeps_its_promise_in_a_thousand_draws(max_loss, n, prices):
    found = calibrated(max_loss, n, 1000, prices=prices)
    assert found.kept >= 0.95 and (max_loss is None or found.refused < 0.9)


def content() -> dict:
    return json.loads((report.RESULTS / "coverage.json").read_text(encoding="utf-8"))


def test_the_page_shows_the_stored_results():
    text = PAGE.read_text(encoding="utf-8")
    assert text == page(text, content())
    assert "| errors of a classifier | 500 | binomial |" in text


def test_tables_follow_from_the_records():
    found = content()
    assert tables(found["records"]) == found["tables"]


def test_all_draws_of_all_pools_were_made():
    records = content()["records"]
    assert (records["draws"], records["calibrations"]) == (DRAWS, CALIBRATIONS)
    assert [(one["pool"], one["n"]) for one in records["coverage"]] == [
        (name, n) for name, pool in POOLS.items() for n in pool.sizes
    ]
    assert [(one["max_loss"], one["n"]) for one in records["calibrate"]] == [promise[:2] for promise in PROMISES]


def test_promises_were_kept():
    records = content()["records"]
    for one in records["coverage"]:
        assert one["coverage"] >= 0.95
        assert one["coverage"] == pytest.approx(1 - one["above"] - one["below"])
    assert all(one["kept"] >= 0.95 for one in records["calibrate"])


def test_widths_are_what_the_page_says():
    """Of betting with 500 examples: beside standard errors, and beside the exact interval of as many errors."""
    seen = [one for one in content()["records"]["coverage"] if one["n"] == 500 and not one["exact"] and one["normal"]]
    wider = {one["pool"]: one["width"] / one["normal"] for one in seen}
    assert 2.5 < wider.pop("costs of each row") < 3.0
    assert len(wider) >= 6 and 1.0 < min(wider.values()) <= max(wider.values()) < 1.35
    assert all(one["width"] < 1.05 * one["binomial"] for one in seen)
