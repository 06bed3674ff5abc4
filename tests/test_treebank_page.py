"""What the page on trees says of `nashlearn parse` on EWT was measured, and is no worse than the README's parser."""

from __future__ import annotations

import json
import textwrap

from benchmarks import report, treebank
from benchmarks.figures import ROOT

RECORDS = json.loads((report.RESULTS / "treebank.json").read_text(encoding="utf-8"))["records"]


def test_the_page_says_what_was_measured():
    page = (ROOT / "docs" / "tasks" / "parsing.md").read_text(encoding="utf-8")
    assert "\n".join(textwrap.wrap(treebank.in_words(RECORDS), 120, break_on_hyphens=False)) in page


def test_defaults_are_no_worse_than_the_parser_of_the_readme():
    stored = treebank.readme_parser()
    assert RECORDS["readme"] == stored and RECORDS["warnings"] == []
    assert RECORDS["made"]["converged"] and RECORDS["made"]["dual_gap"] <= RECORDS["made"]["tol"]
    for ours, theirs in (("uas_without_punctuation", "uas"), ("las_without_punctuation", "las")):
        assert RECORDS["scores"]["test"][ours] >= stored[theirs]
