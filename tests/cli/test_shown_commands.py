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
PAGES = ("quickstart", "which-loss", "command-line")


def shown(page: str) -> list[list[str]]:
    """The words of each command of a page; those of a pipe begin with ``cat FILE |``."""
    blocks = re.findall(r"^```console\n(.*?)^```$", (DOCS / f"{page}.md").read_text(encoding="utf-8"), re.M | re.S)
    lines = [line.removeprefix("$ ") for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return [shlex.split(line, comments=True) for line in lines if "nashlearn " in line]


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
    commands = shown(page)
    assert commands
    for words in commands:
        source = None
        if words[:1] == ["cat"]:
            source, words = Path(words[1]).read_text(), words[3:]
        call(*words[1:], stdin=source)
        if "--out" in words:
            assert Path(words[words.index("--out") + 1]).stat().st_size > 0
