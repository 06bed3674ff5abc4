"""The documentation is true: code runs, commands exist, pages build without a warning, links lead somewhere."""

from __future__ import annotations

import ast
import doctest
import html.parser
import importlib
import os
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
GENERATED = ("gallery", "api/generated")
PAGES = sorted(path for path in DOCS.rglob("*.md") if not path.relative_to(DOCS).as_posix().startswith(GENERATED))
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
# Pages whose code needs optional packages.
NEEDS = {
    "pytorch": ["torch"],
    "saved-models": ["skops"],
    "quickstart": ["skops"],
    "containers": ["skops"],
    "extreme": ["torch"],
    "moving": ["torch"],
    "troubleshooting": ["pandas"],
    "own-polytope": ["skops", "torch"],
}
# Written by a benchmark; its code is for a cluster, and tests/distributed runs the like of it.
FOR_A_CLUSTER = DOCS / "scale.md"


def name_of(page: Path) -> str:
    return page.relative_to(DOCS).with_suffix("").as_posix()


def fences(page: Path, kind: str) -> list[tuple[int, str]]:
    """Line and text of each fenced block of a kind."""
    text = page.read_text(encoding="utf-8")
    blocks = re.finditer(rf"^(`{{3,}}){re.escape(kind)}\n(.*?)^\1$", text, flags=re.DOTALL | re.MULTILINE)
    return [(text[: block.start(2)].count("\n"), block.group(2)) for block in blocks]


@pytest.mark.parametrize("page", [p for p in PAGES if fences(p, "python") and p != FOR_A_CLUSTER], ids=name_of)
def test_code_gives_what_it_shows(page, tmp_path, monkeypatch):
    for package in NEEDS.get(name_of(page), []):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    parser, examples = doctest.DocTestParser(), []
    for line, block in fences(page, "python"):
        assert block.startswith(">>> "), f"{page}:{line + 1}: code without prompts is not run"
        for example in parser.get_examples(block, name_of(page)):
            example.lineno += line
            examples.append(example)
    said: list[str] = []
    test = doctest.DocTest(examples, {"__name__": "__main__"}, name_of(page), str(page), 0, page.read_text())
    doctest.DocTestRunner(optionflags=FLAGS).run(test, out=said.append, clear_globs=False)
    assert not said, "".join(said)


@pytest.mark.parametrize("page", [FOR_A_CLUSTER, *(p for p in PAGES if fences(p, "{code-block} python"))], ids=name_of)
def test_code_that_is_not_run_is_python(page):
    """Code of other libraries, and code that needs what tests do not have."""
    blocks = fences(page, "python" if page == FOR_A_CLUSTER else "{code-block} python")
    assert blocks
    for _, block in blocks:
        ast.parse(block)


def commands() -> list[tuple[str, list[str]]]:
    shown = []
    for page in PAGES:
        for _, block in fences(page, "console"):
            for line in block.replace("\\\n", " ").splitlines():
                for part in line.removeprefix("$ ").split(" | ") if line.startswith("$ ") else ():
                    words = shlex.split(part, comments=True)
                    if words[0] == "nashlearn":
                        shown.append((f"{name_of(page)}: {part}", words[1:]))
    return shown


def test_every_command_and_option_shown_exists():
    typer = pytest.importorskip("typer")
    from nashlearn.cli.app import app

    assert len(commands()) > 10
    for where, words in commands():
        command = typer.main.get_command(app)
        while words and words[0] in getattr(command, "commands", {}):
            command, words = command.commands[words[0]], words[1:]
        assert not getattr(command, "commands", {}) or words[0] == "--version", where
        known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
        assert {word for word in words if re.match("--?[a-z]", word)} <= {*known, "--help"}, where


@pytest.mark.parametrize("module", ["nashlearn", "nashlearn.games", "nashlearn.torch"])
def test_reference_lists_every_public_name(module):
    if module == "nashlearn.torch":
        pytest.importorskip("torch")
    page = (DOCS / "api/index.rst").read_text(encoding="utf-8")
    listed = {f"nashlearn.{name}" for name in re.findall(r"^   ([\w.]+)$", page, re.M)}
    public = {f"{module}.{name}" for name in importlib.import_module(module).__all__}
    assert public - listed <= {"nashlearn.__version__"}


def test_docs_extra_covers_what_the_configuration_loads():
    text = (DOCS / "conf.py").read_text(encoding="utf-8")
    loaded = {name for name in re.findall(r'^    "(\w+)', text, re.M) if name.startswith(("myst", "sphinx_"))}
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["docs"]
    named = {re.match(r"[\w-]+", entry).group().replace("-", "_") for entry in extra}
    assert loaded <= named and "furo" in named


class Anchors(html.parser.HTMLParser):
    """What a page can be linked at, and what it links to."""

    def __init__(self):
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if "id" in given:
            self.ids.add(given["id"])
        self.links += [given[name] for name in ("href", "src") if given.get(name)]


def broken_links(folder: Path) -> list[str]:
    """Links of the built pages that lead to no file, or to no place in it."""
    pages = {}
    for path in folder.rglob("*.html"):
        pages[path] = Anchors()
        pages[path].feed(path.read_text(encoding="utf-8"))
    found = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                found.append(f"{path.relative_to(folder)}: {link}")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids:
                found.append(f"{path.relative_to(folder)}: {link} has no such place")
    return found


@pytest.mark.parametrize("path", sorted((ROOT / "examples/gallery").glob("plot_*.py")), ids=lambda path: path.stem)
def test_gallery_runs(path, monkeypatch):
    """Each example alone, without a display; the build below also looks at the pages made of them."""
    plt = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.setenv("MPLBACKEND", "agg")
    plt.switch_backend("agg")
    runpy.run_path(str(path), run_name="__main__")
    assert plt.get_fignums()
    plt.close("all")


def test_broken_links_are_noticed(tmp_path):
    (tmp_path / "a.html").write_text('<a id="x" href="b.html#y">b</a><a href="#x">x</a><a href="https://e.org/">e</a>')
    assert broken_links(tmp_path) == ["a.html: b.html#y"]
    (tmp_path / "b.html").write_text("<p>b</p>")
    assert broken_links(tmp_path) == ["a.html: b.html#y has no such place"]


@pytest.mark.slow
def test_pages_build_without_a_warning_and_links_resolve(tmp_path):
    """The whole build, gallery included, with warnings as errors."""
    pytest.importorskip("sphinx")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "-d", str(tmp_path / "trees")]
    command += [str(DOCS), str(tmp_path / "html")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "MPLBACKEND": "agg"})
    assert done.returncode == 0, done.stderr[-5000:]
    shown = {path.stem for path in (tmp_path / "html").rglob("*.html")}
    assert {page.stem for page in PAGES} <= shown
    assert {path.stem for path in (ROOT / "examples/gallery").glob("plot_*.py")} <= shown
    assert broken_links(tmp_path / "html") == []
