"""Pages are whole, self-contained and closed to what labels say. How they look and work: tests/browser."""

from __future__ import annotations

import json
import os
import re
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_models import EVIL, reports

from nashlearn import NashClassifier, report
from nashlearn.report.page import plain
from nashlearn.report.summary import figure

KINDS = ("classification", "ordinal", "abstention", "tagging", "parsing", "tracking")
NAMESPACE = "http://www.w3.org/2000/svg"  # a name, which is not fetched


class Elements(HTMLParser):
    """The elements of a page, and the text of its scripts."""

    def __init__(self, page: str):
        super().__init__()
        self.elements: list[tuple[str, dict[str, Any]]] = []
        self.scripts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.elements and self.elements[-1][0] == "script":
            self.scripts.append(data)


def page_of(kind: str) -> str:
    return report.explorer_html() if kind == "explorer" else report.report_html(reports()[kind])


@pytest.mark.parametrize("kind", [*KINDS, "explorer"])
def test_pages_stand_alone(kind: str) -> None:
    page = page_of(kind)
    found = Elements(page)
    tags = [tag for tag, _ in found.elements]
    assert tags.count("script") == 2
    assert not {"iframe", "object", "embed", "img", "base"} & set(tags)
    for tag, attributes in found.elements:
        assert "src" not in attributes
        assert tag != "link" or attributes["href"] == "data:,"
    program = found.scripts[1:]
    assert set(re.findall(r"""https?://[^"'\s]+""", "".join(program))) == {NAMESPACE}
    assert "@import" not in page and "url(http" not in page
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", "".join(program))
    assert len(page.encode()) < 500_000


@pytest.mark.parametrize("kind", KINDS)
def test_data_arrive_as_they_were(kind: str) -> None:
    found = Elements(page_of(kind))
    assert json.loads(found.scripts[0]) == reports()[kind]


def test_labels_cannot_break_out() -> None:
    page = page_of("classification")
    assert EVIL not in page and "<img" not in page
    assert "&lt;/script&gt;" in page  # in the title
    assert EVIL in json.loads(Elements(page).scripts[0])["title"]


def test_long_texts_and_many_labels_stay_light() -> None:
    rng = np.random.default_rng(0)
    X = np.eye(40)[rng.integers(0, 40, size=3000)]
    y = np.where(rng.random(3000) < 0.6, X.argmax(axis=1), rng.integers(0, 40, size=3000))
    model = NashClassifier(alpha=1e-3).fit(X, y)
    data = report.classification_report_data(model, X, y, texts=["a long text " * 1000] * 3000)
    assert len(report.report_html(data).encode()) < 500_000


def test_numbers_and_the_unknown_become_plain() -> None:
    given = {"a": np.float32(0.5), 1: np.array([1.0, np.nan, -np.inf]), "b": (np.int64(3), True, None), "c": Path("x")}
    assert plain(given) == {"a": 0.5, "1": [1.0, None, None], "b": [3, True, None], "c": "x"}


@pytest.mark.parametrize(
    ("value", "percent", "text"),
    [
        (0.12345, False, "0.123"),
        (-0.5, False, "\u22120.5"),
        (1234567.0, False, "1,234,567"),
        (3.2e-6, False, "3.2e\u22126"),
        (0.0, True, "0.0 %"),
        (0.1234, True, "12.3 %"),
        (3e-4, True, "0.03 %"),
        (1e-9, True, "< 0.001 %"),
    ],
)
def test_figures(value: float, percent: bool, text: str) -> None:
    assert figure(value, percent) == text


def test_writing_is_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "page.html"
    report.write_explorer(path)
    assert path.read_text(encoding="utf-8") == report.explorer_html()
    report.write_report(path, reports()["ordinal"])
    before = path.read_bytes()

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        report.write_explorer(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["page.html"]


def test_a_folder_that_is_absent_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        report.write_explorer(tmp_path / "absent" / "page.html")


def test_assets_are_in_the_package() -> None:
    names = {asset.name for asset in resources.files("nashlearn.report").joinpath("assets").iterdir()}
    assert {"frame.html", "page.css", "page.js", "charts.js", "game.js", "report.js", "explorer.js"} <= names
