"""The commands of the documentation run, page by page and in order, on small files of the names that are shown."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import call, columns, treebank, video

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = (
    "quickstart", "which-loss", "command-line", "messy-tables", "named-entities", "reading-the-report", "saved-models",
    "new-user", "tasks/parsing",
)  # fmt: skip


def shown(page: str) -> list[list[str]]:
    """The words of each command of a page; those of a pipe begin with ``cat FILE |``."""
    blocks = re.findall(r"^ *```console\n(.*?)^ *```$", (DOCS / f"{page}.md").read_text(encoding="utf-8"), re.M | re.S)
    lines = [line.strip().removeprefix("$ ") for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return [shlex.split(line, comments=True) for line in lines if re.match(r"(cat .*\| )?nashlearn ", line)]


def _loans() -> None:
    """A table with prices, dates, codes and remarks, and tables of two classes for the other commands of its page."""
    rng = np.random.default_rng(0)
    n, words = 60, ["late", "again", "called", "paid", "in", "full", "asked", "for", "time"]
    paid = rng.integers(0, 2, n)
    table = pd.DataFrame(
        {
            "amount": [f"${value:,.0f}" for value in 1e4 + 3e4 * paid + 5e3 * rng.random(n)],
            "since": [f"20{value:02d}-03-{value:02d}" for value in rng.integers(1, 20, n)],
            "zip": rng.integers(10_000, 10_020, n),
            "remark": [" ".join(rng.choice(words, 5)) for _ in range(n)],
            "paid": np.array(["no", "yes"])[paid],
        }
    )
    for name in ("loans.csv", "new.csv"):
        table.to_csv(name, index=False)
    Path("messy").mkdir()
    for name in ("houses", "wine", "reviews", "blocks"):
        for end in (".csv", ".test.csv"):
            table.rename(columns={"paid": "label"}).to_csv(f"messy/{name}{end}", index=False)


def _names() -> None:
    """Sentences with persons, words and tags between tabs, and lists of names."""
    sentence = "Ada\tB-PER\nLovelace\tI-PER\nsleeps\tO\n\nthe\tO\ncat\tO\nsees\tO\nAda\tB-PER\n\n"
    for name in ("names.tsv", "names.test.tsv"):
        Path(name).write_text(20 * sentence)
    Path("new.txt").write_text("Ada\nsleeps\n\n")
    Path("people.txt").write_text("Ada Lovelace\n")
    Path("places.txt").write_text("New York\n")


def _cancer() -> None:
    """Two classes and what their confusion costs."""
    rng = np.random.default_rng(0)
    code = rng.integers(0, 2, 90)
    names = np.array(["benign", "malignant"])[code]
    pd.DataFrame({"size": code + rng.normal(size=90), "diagnosis": names}).to_csv("cancer.csv", index=False)
    Path("costs.csv").write_text("answer,benign,malignant\nbenign,0,10\nmalignant,1,0\n")


def _saved() -> None:
    pytest.importorskip("onnx", exc_type=ImportError)
    call("train", "wine.csv", "--target", "cultivar", "--out", "wine.model")


def _grades() -> None:
    """The wines of a new user, with grades."""
    rng = np.random.default_rng(0)
    quality = rng.integers(3, 9, 120)
    for name in ("wine.csv", "test.csv", "new.csv"):
        pd.DataFrame({"alcohol": quality + rng.normal(size=120), "quality": quality}).to_csv(name, index=False)


OWN = {
    "messy-tables": _loans, "named-entities": _names, "reading-the-report": _cancer, "saved-models": _saved,
    "new-user": _grades,
}  # fmt: skip


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Files as the pages name them."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    n = 90
    x, code = rng.normal(size=(n, 2)), rng.integers(0, 3, n)
    table = pd.DataFrame({"weight": x[:, 0] + code, "length": x[:, 1] - code})

    def write(name, **labels):
        table.assign(**{column: np.array(names)[code] for column, names in labels.items()}).to_csv(name, index=False)

    for name in ("wine.csv", "test.csv", "new.csv"):
        write(name, cultivar=["red", "rose", "white"])
    write("reviews.csv", stars=[1, 2, 3], mood=["low", "medium", "high"])
    write("scans.csv", finding=["none", "cyst", "tumour"])
    write("claims.csv", kind=["dog", "wolf", "cat"])
    Path("costs.csv").write_text("answer,dog,wolf,cat\ndog,0,10,1\nwolf,1,0,1\ncat,1,10,0\n")
    for name in ("chunks.train.txt", "chunks.test.txt"):
        columns(tmp_path, name)
    Path("new.txt").write_text("the DT\ncat NN\nsees VB\n\n")
    for name in ("en.train.conllu", "en.dev.conllu", "en.test.conllu", "new.conllu"):
        treebank(tmp_path, name, n=12)
    for part, name in (("train", "TUD-Campus"), ("train", "TUD-Stadtmitte"), ("test", "PETS09-S2L2")):
        video(tmp_path / "MOT15" / part, name, frames=6)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # a report's baselines on a few rows
@pytest.mark.parametrize("page", PAGES)
def test_commands_run_as_shown(page, files):
    OWN.get(page, lambda: None)()
    commands = shown(page)
    assert commands
    for words in commands:
        source = None
        if words[:1] == ["cat"]:
            source, words = Path(words[1]).read_text(), words[3:]
        call(*words[1:], stdin=source)
        if "--out" in words:
            assert Path(words[words.index("--out") + 1]).stat().st_size > 0
