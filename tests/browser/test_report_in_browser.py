"""Reports in a real browser: they render in silence, their controls work, their text can be read in both themes.

Pictures of the report of each task, at two widths and in both themes, are written to ``build/screenshots``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from reading import keep, overflow, unlabelled, unreachable, unreadable
from report_models import EVIL, reports
from report_showcase import KINDS as TASKS
from report_showcase import showcase

from nashlearn import NashClassifier, report

pytestmark = pytest.mark.slow

KINDS = ("classification", "ordinal", "abstention", "tagging", "parsing", "tracking")


def section_of(data: dict[str, Any], kind: str) -> dict[str, Any]:
    return next(one for one in data["sections"] if one["type"] == kind)


def percentage(text: str) -> float:
    return float(text.removesuffix("\u202f%").lstrip("<\u202f").replace("\u2212", "-")) / 100


def table_of(section: Any, label: str) -> list[list[str]]:
    """The cells of a table in the body of a section, opened or not."""
    rows = section.locator(f'[aria-label="{label}"] tbody tr').all()
    return [one.locator("td").all_text_contents() for one in rows]


def writer(kind: str) -> Any:
    return lambda path: report.write_report(path, reports()[kind])


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("task", TASKS)
def test_each_task_has_its_picture(visit: Any, task: str, width: int, theme: str) -> None:
    data = showcase()[task]
    assert len(report.report_html(data).encode()) < 500_000
    page = visit(lambda path: report.write_report(path, data), theme=theme, width=width)
    assert page.locator("main section h2").all_inner_texts() == [section["title"] for section in data["sections"]]
    assert overflow(page) == 0
    keep(page, f"{task}-{width}-{theme}")
    assert unlabelled(page) == [] and unreachable(page) == []
    assert unreadable(page) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_section_is_drawn_and_can_be_read(visit: Any, kind: str, theme: str) -> None:
    page = visit(writer(kind), theme=theme)
    titles = [section["title"] for section in reports()[kind]["sections"]]
    assert page.locator("main section h2").all_inner_texts() == titles
    for section in page.locator("main > section").all():
        assert section.locator("svg, table, .token").count() > 0, section.inner_text()
    assert reports()[kind]["headline"] in page.inner_text("header")
    assert "NaN" not in page.inner_text("body") and "undefined" not in page.inner_text("body")
    assert overflow(page) == 0
    assert unreadable(page) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_telephone_is_wide_enough(visit: Any, kind: str) -> None:
    page = visit(writer(kind), width=390)
    assert overflow(page) == 0
    assert unreadable(page) == []


def test_the_button_changes_the_theme(visit: Any) -> None:
    page = visit(writer("classification"), theme="dark")
    colour = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(colour)
    page.get_by_role("button", name="Change to the light theme").click()
    light = page.evaluate(colour)
    page.get_by_role("button", name="Change to the dark theme").click()
    assert light != dark and page.evaluate(colour) == dark
    page.get_by_role("button", name="Change to the light theme").click()
    assert unreadable(page) == []


def test_text_that_cannot_be_read_is_found(visit: Any) -> None:
    page = visit(writer("parsing"))
    page.evaluate("document.documentElement.style.setProperty('--muted', '#9a9a9a')")
    found = unreadable(page)
    assert any("<P caption>" in one for one in found) and any("<text" in one for one in found)


def test_labels_stay_text(visit: Any) -> None:
    page = visit(writer("classification"))
    assert page.evaluate("window.broken") is None
    assert page.inner_text("h1").endswith(EVIL)
    assert page.locator("table.matrix thead th").first.get_attribute("title") == EVIL


def test_measures_can_be_chosen(visit: Any) -> None:
    page = visit(writer("classification"))
    section = page.locator("section.comparison")
    assert "Mean cost" in section.locator(".caption").inner_text()
    section.get_by_role("button", name="Error rate").click()
    assert "Error rate, lower is better" in section.locator(".caption").inner_text()
    rows = reports()["classification"]["sections"][0]["measures"][1]["rows"]
    assert section.locator(".line .name").all_inner_texts() == [row["name"] for row in rows]


def test_cells_show_counts_costs_and_examples(visit: Any) -> None:
    page = visit(writer("classification"))
    section, data = page.locator("section.confusion"), reports()["classification"]["sections"][1]
    cells = section.locator("table.matrix button")

    def texts() -> list[str]:
        return cells.all_inner_texts()

    assert texts() == [str(n) if n else "·" for row in data["counts"] for n in row]
    section.get_by_role("button", name="Price of each").click()
    assert texts() == [f"{v:g}" for row in data["costs"] for v in row]
    section.get_by_role("button", name="Costs").click()
    paid = [
        n * v
        for row, prices in zip(data["counts"], data["costs"], strict=True)
        for n, v in zip(row, prices, strict=True)
    ]
    assert texts() == [f"{one:g}" if one else "·" for one in paid]
    cells.nth(4).click()
    assert "Answer versicolor & co, label versicolor & co" in section.locator(".panel").inner_text()
    assert section.locator(".panel li").count() == len(data["examples"]["1,1"])
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert "label virginica" in section.locator(".panel h3").inner_text()
    cells.nth(0).hover()
    assert "of all that was paid" in page.locator("#tip").inner_text()


def test_the_certificate_can_be_read_along_the_curve(visit: Any) -> None:
    page = visit(writer("classification"))
    section = page.locator("section.certificate")
    section.get_by_role("button", name="Iterations", exact=True).click()
    chart = section.locator(".chart svg")
    before = chart.inner_html()
    chart.focus()
    page.keyboard.press("End")
    said = page.locator("#tip").inner_text()
    last = next(s for s in reports()["classification"]["sections"] if s["type"] == "certificate")["history"][-1]
    assert f"iterations: {last[0]}" in said and "bound on the best objective" in said
    section.get_by_role("button", name="Gap").click()
    assert section.locator(".chart svg").inner_html() != before
    page.keyboard.press("Escape")
    assert page.locator("#tip").is_hidden()


def test_the_radius_moves_the_bound(visit: Any) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, size=2000)
    X = (2.0 * y - 1.0)[:, None] + 0.1 * rng.normal(size=(2000, 1))
    found = report.classification_report_data(NashClassifier(alpha=1e-2).fit(X, y), X, y)
    risk = section_of(found, "risk")
    page = visit(lambda path: report.write_report(path, found))
    section = page.locator("section.risk")
    slider = section.locator("input[type=range]")
    slider.fill("0")
    values = section.locator(".readout dd").all_inner_texts()
    assert float(values[0]) == 0 and percentage(values[1]) == pytest.approx(risk["points"][0][1], abs=6e-4)
    slider.fill(slider.get_attribute("max"))
    top = risk["points"][-1][1]
    assert percentage(section.locator(".readout dd").nth(1).inner_text()) == pytest.approx(top, abs=6e-4)


def test_curves_over_thresholds_have_tables_and_operating_points(visit: Any) -> None:
    page = visit(writer("classification"))
    section, data = page.locator("section.thresholds"), section_of(reports()["classification"], "thresholds")
    section.locator("select").select_option(label="virginica")
    event = next(one for one in data["events"] if one["name"] == "virginica")
    points = [p for curve in event["curves"] for p in curve["points"]]
    rows = table_of(section, "Curves")
    assert len(rows) == len(points)
    for cells, point in zip(rows, points, strict=True):
        assert percentage(cells[3]) == pytest.approx(point[2], abs=6e-4)
        assert percentage(cells[4]) == pytest.approx(point[3], abs=6e-4)
    own = event["curves"][0]["own"]
    shown = table_of(section, "Areas and operating points")[0]
    assert percentage(shown[4]) == pytest.approx(own[2], abs=6e-4)
    for name in ("ROC", "Precision and recall", "Cost"):
        section.get_by_role("button", name=name, exact=True).click()
        words = section.locator(".chart svg").get_attribute("aria-label")
        assert f"{name} of virginica" in words and f"recall {100 * own[2]:.1f}" in words
        assert section.locator(".chart svg circle").count() == len(event["curves"]) + 1
    slider = section.locator("input[type=range]")
    slider.fill(slider.get_attribute("max"))
    assert section.locator(".readout dd").nth(2).inner_text().startswith("100.0\u202f%")


def test_reliability_can_be_read_for_each_label(visit: Any) -> None:
    page = visit(writer("ordinal"))
    section, data = page.locator("section.reliability"), section_of(reports()["ordinal"], "reliability")
    for i, event in enumerate(data["events"]):
        section.locator("select").select_option(value=str(i))
        rows = table_of(section, "Reliability")
        assert [int(cells[4]) for cells in rows] == [one[4] for one in event["bins"]]
        assert [percentage(cells[1]) for cells in rows] == pytest.approx([one[1] for one in event["bins"]], abs=6e-4)
        assert section.locator(".chart svg .span").count() == len(event["bins"])


@pytest.mark.parametrize(("name", "label"), [("importances", "Importances"), ("weights", "Weights")])
def test_importances_and_weights_are_drawn_and_listed(visit: Any, name: str, label: str) -> None:
    page = visit(lambda path: report.write_report(path, showcase()["costs"]))
    section, data = page.locator(f"section.{name}"), section_of(showcase()["costs"], name)
    rows = table_of(section, label)
    if name == "importances":
        assert [cells[0] for cells in rows] == [row[0] for row in data["rows"]]
    else:
        assert [cells[0] for cells in rows] == data["names"]  # one direction: the largest first
    assert section.locator(".line .name").all_inner_texts() == [cells[0] for cells in rows[:15]]
    values = section.locator(".line .value").all_inner_texts()
    assert [one.split("\n")[0] for one in values] == [cells[1] for cells in rows[:15]]


def test_thirteen_tags_are_within_reach(visit: Any) -> None:
    for width in (1280, 400):
        page = visit(lambda path: report.write_report(path, showcase()["tags"]), width=width)
        head = page.locator("table.matrix thead th")
        assert head.count() == 13
        last = page.locator("table.matrix tbody tr").first.locator("button").last
        last.scroll_into_view_if_needed()
        box = last.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= width
        last.click()
        assert "label O" in page.locator("section.confusion .panel h3").inner_text()
        page.close()


def test_what_is_absent_is_named(visit: Any) -> None:
    found = {**reports()["ordinal"]}
    found["sections"] = [{**found["sections"][0], "absent": ["a peer"]}, *found["sections"][1:]]
    page = visit(lambda path: report.write_report(path, found))
    assert "not installed: a peer." in page.locator("section.comparison").inner_text()


def test_the_threshold_moves_along_coverage_and_risk(visit: Any) -> None:
    page = visit(writer("abstention"))
    section = page.locator("section.coverage")
    slider = section.locator("input[type=range]")
    slider.fill(slider.get_attribute("max"))
    points = next(s for s in reports()["abstention"]["sections"] if s["type"] == "coverage")["curves"][0]["points"]
    values = section.locator(".readout dd").all_inner_texts()
    assert values[1] == "100.0\u202f%" and values[2] == f"{100 * points[-1][2]:.1f}\u202f%"
    slider.fill("0")
    assert section.locator(".readout dd").nth(1).inner_text() == "0.0\u202f%"
    section.get_by_role("button", name="Mean cost").click()
    assert "mean cost per row" in section.locator(".chart").inner_text()


def test_bars_of_errors_show_rows(visit: Any) -> None:
    page = visit(writer("ordinal"))
    section = page.locator("section.errors")
    data = next(s for s in reports()["ordinal"]["sections"] if s["type"] == "errors")
    bar = section.locator("rect[role=button]").first
    bar.focus()
    page.keyboard.press("Enter")
    offset = next(d for d, n in zip(data["offsets"], data["series"][0]["counts"], strict=True) if n)
    assert section.locator(".panel li").count() == len(data["examples"][str(offset)])
    section.locator("select").select_option(label="linear SVM")
    assert "linear SVM" in section.locator(".legend").inner_text()


@pytest.mark.parametrize(
    ("kind", "name"), [("tagging", "sequences"), ("parsing", "trees"), ("tracking", "boxes")], ids=lambda one: one
)
def test_examples_can_be_gone_through(visit: Any, kind: str, name: str) -> None:
    page = visit(writer(kind))
    section = page.locator(f"section.{name}")
    data = next(s for s in reports()[kind]["sections"] if s["type"] == name)
    wrong = [item for item in data["items"] if item["truth"] != item["answer"]]
    assert wrong and len(wrong) < len(data["items"])
    place = section.locator(".controls [aria-live]")
    assert place.inner_text().startswith(f"1 of {len(wrong)}: {wrong[0]['name']}")
    previous, following = (section.get_by_role("button", name=one) for one in ("Previous", "Next"))
    assert previous.is_disabled()
    if len(wrong) > 1:
        following.click()
        assert place.inner_text().startswith(f"2 of {len(wrong)}: {wrong[1]['name']}")
        previous.focus()
        page.keyboard.press("ArrowLeft")
        assert place.inner_text().startswith("1 of")
    section.get_by_label("Only with mistakes").uncheck()
    assert place.inner_text().startswith(f"1 of {len(data['items'])}: {data['items'][0]['name']}")
    while following.is_enabled():
        following.click()
    assert place.inner_text().startswith(f"{len(data['items'])} of")


def test_a_token_shows_its_strategy(visit: Any) -> None:
    page = visit(writer("tagging"))
    section = page.locator("section.sequences")
    section.locator(".token").nth(1).click()
    item = next(
        one
        for one in next(s for s in reports()["tagging"]["sections"] if s["type"] == "sequences")["items"]
        if one["truth"] != one["answer"]
    )
    assert section.locator(".panel h3").inner_text() == item["tokens"][1]
    assert item["likely"][1][0][0] in section.locator(".panel p").inner_text()


def test_arcs_are_as_many_as_words_and_misses(visit: Any) -> None:
    page = visit(writer("parsing"))
    item = next(
        one
        for one in next(s for s in reports()["parsing"]["sections"] if s["type"] == "trees")["items"]
        if one["truth"] != one["answer"]
    )
    missed = sum(a != b for a, b in zip(item["truth"], item["answer"], strict=True))
    arcs = page.locator("section.trees path.arc")
    assert arcs.count() == len(item["words"]) + missed
    assert page.locator("section.trees path.arc.wrong").count() == missed


def test_a_report_without_history_and_baselines_is_drawn(visit: Any) -> None:
    data = {**reports()["ordinal"]}
    sections = [dict(section) for section in data["sections"]]
    for section in sections:
        if section["type"] == "certificate":
            section["history"] = []
        if section["type"] == "comparison":
            section["measures"] = [{**one, "rows": one["rows"][:1]} for one in section["measures"]]
        if section["type"] == "errors":
            section["series"] = section["series"][:1]
    page = visit(lambda path: report.write_report(path, {**data, "sections": sections}))
    assert "was not recorded" in page.locator("section.certificate").inner_text()
