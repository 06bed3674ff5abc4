"""Every figure of the README, and of pages that quote measurements, is that of a stored result."""

from __future__ import annotations

import functools
import re

import pytest

from benchmarks import quoted, quoted_evidence, report
from benchmarks.__main__ import PAGE
from benchmarks.figures import ROOT, Claim, Page
from benchmarks.readme import PAGES

pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path)


@pages
def test_figures_are_those_of_the_files(page):
    assert page.wrong() == [], "python -m benchmarks.readme puts the figures of the files in"


@pages
def test_every_number_is_quoted_or_known_to_be_no_measurement(page):
    assert page.unregistered() == []


@pages
def test_a_change_of_any_figure_is_noticed(page, tmp_path):
    text = (ROOT / page.path).read_text(encoding="utf-8")
    changed = 0
    claims = [Claim(claim.words, functools.cache(claim.figures)) for claim in page.claims]  # files are read once
    for claim in claims:
        match = claim.pattern.search(text)
        for group in range(1, match.re.groups + 1):
            first, last = match.span(group)
            (tmp_path / "page.md").write_text(text[:first] + "77" + text[last:], encoding="utf-8")
            other = Page(str(tmp_path / "page.md"), claims, page.others, page.start, page.end)
            assert len(other.wrong()) == 1, f"{claim.words}, figure {group}"
            changed += 1
    assert changed > 10


def test_a_claim_that_is_left_out_or_made_twice_is_noticed(tmp_path):
    path = tmp_path / "page.md"
    page = Page(str(path), [Claim("takes {} ms", lambda: ["5"])], [])
    for text, faults in (
        ("It takes 5\nms.", 0),
        ("It takes 5 s.", 1),
        ("takes 5 ms, takes 5 ms", 1),
        ("takes 6 ms", 1),
    ):
        path.write_text(text)
        assert len(page.wrong()) == faults, text


@pytest.mark.parametrize("number", ["12", "1.5", "3e-4", "1,000", "twice", "Seven", "½", "a third", "dozens", "n^2"])
def test_a_number_that_nobody_registered_is_noticed(number, tmp_path):
    path = tmp_path / "page.md"
    page = Page(str(path), [Claim("takes {} ms", lambda: ["5"])], ["Python 3"])
    path.write_text(f"It takes 5 ms with `k = 7` on Python\n3, [here](page-4.md).\n\n```\n9\n```\n and {number} more.")
    assert len(page.unregistered()) == 1


def test_figures_are_rewritten_from_the_files(tmp_path):
    path = tmp_path / "page.md"
    page = Page(str(path), [Claim("takes {} to {} ms", lambda: ["5", "16"]), Claim("and {} s.", lambda: ["2"])], [])
    path.write_text("It takes 44 to\n16 ms and 3 s.")
    assert page.rewrite() == 2
    assert path.read_text() == "It takes 5 to\n16 ms and 2 s."
    assert page.wrong() == []


def test_words_about_figures_are_true():
    """Who wins, where the README says so in words."""
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    ours, cheapest, weighted, plain = map(float, quoted.demo_costs())
    assert cheapest < ours < weighted < plain
    assert float(quoted_evidence.costs_row("logistic + cheapest")[4]) >= 0.05 and "**a tie** with logistic" in text
    for other in ("exact game", "logistic, class weights"):
        won, lost, p = map(float, quoted_evidence.costs_row(other)[2:])
        assert won > lost and p < 0.01 and "a clear win over class weights and over the exact game" in text
    assert "the best baseline of each row is a little ahead of us" in text
    for words in re.findall(r"^\| .* \| [\d.]+ \| ([\d.]+) \| ([\d.]+) \(", (ROOT / "README.md").read_text(), re.M):
        here, best = map(float, words)
        assert best > here if here > 1 else best < here
    kernels = [r["support"] for r in quoted.records("kernels") if "support" in r]
    assert all(count["ours"] < count["SVC"] for count in kernels) and "with fewer support vectors" in text


def test_the_page_of_benchmarks_is_that_of_the_files():
    assert (report.RESULTS / "README.md").read_text(encoding="utf-8") == report.page(PAGE)
