"""A real browser, where there is one: Chromium of the system, or the one that Playwright has installed."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "report"))  # the models that are reported on

NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium without a window; its absence skips the tests and says what to install."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is absent: pip install nashlearn[slow]")
    path = next(filter(None, map(shutil.which, NAMES)), None)
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    with api.sync_playwright() as playwright:
        try:
            started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"] if root else [])
        except api.Error as error:
            why = str(error).splitlines()[0]
            pytest.skip(f"no browser: install Debian's chromium or run playwright install chromium ({why})")
        yield started
        started.close()


class Visit:
    """A page that is open, and what it has said and asked for."""

    def __init__(self, page: Any, path: Path):
        self.page, self.path = page, path
        self.said: list[str] = []
        self.asked: list[str] = []
        page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        page.on("request", lambda request: self.asked.append(request.url))

    def open(self, fragment: str = "") -> Any:
        self.page.goto(self.path.as_uri() + fragment)
        self.page.wait_for_selector("main section h2")
        self.page.wait_for_timeout(150)  # charts are drawn when their width is known
        return self.page

    def check(self) -> None:
        """Nothing on the console, no request but for the file itself."""
        assert self.said == []
        assert [url for url in self.asked if not url.startswith(("file:", "data:"))] == []


@pytest.fixture
def visit(browser: Any, tmp_path: Path) -> Iterator[Any]:
    """Open the page that ``write`` writes, in a theme and a width; check console and network in the end."""
    visits = []

    def make(write: Any, *, theme: str = "light", width: int = 1200, fragment: str = "") -> Any:
        path = tmp_path / "page.html"
        write(path)
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=theme)
        visits.append(Visit(page, path))
        return visits[-1].open(fragment)

    yield make
    for one in visits:
        one.check()
        one.page.close()
