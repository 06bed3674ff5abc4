"""What the tests of the command line share: calling it, and small data of every kind."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from nashlearn.cli.app import app


def call(*arguments, code: int = 0, stdin=None):
    """Run a command in this process; the result, whose exit code must be ``code``."""
    result = CliRunner().invoke(app, [str(one) for one in arguments], input=stdin)
    assert result.exit_code == code, f"{result.exit_code}: {result.stdout}{result.stderr}"
    return result


def answer(*arguments, code: int = 0, stdin=None):
    """The JSON that a command prints: nothing else may stand on standard output."""
    return json.loads(call(*arguments, "--json", code=code, stdin=stdin).stdout)


def complaint(*arguments, stdin=None) -> str:
    """The error of a command that fails for an expected reason: one or two lines, no traceback, no output."""
    result = call(*arguments, code=1, stdin=stdin)
    assert result.stdout == ""
    lines = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1 and "Traceback" not in result.stderr, result.stderr
    assert len(lines[0]) < 500
    return lines[0].removeprefix("error: ")


def flowers(n: int = 120, seed: int = 0) -> pd.DataFrame:
    """A table of numbers and text with gaps, and a column of labels that both tell of."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(3, size=n)
    colour = np.where(rng.random(n) < 0.8, np.array(["red", "white", "blue"])[kind], "green").astype(object)
    height = kind + 0.4 * rng.standard_normal(n)
    height[rng.random(n) < 0.1] = np.nan
    colour[rng.random(n) < 0.1] = None
    names = np.array(["daisy", "rose", "tulip"])[kind]
    return pd.DataFrame({"height": height, "colour": colour, "petals": rng.integers(4, 9, size=n), "kind": names})


def columns(folder: Path, name: str = "tags.txt", n: int = 40) -> Path:
    """Sentences whose tags follow from words and their neighbours, in CoNLL columns."""
    rng = np.random.default_rng(0)
    lines = []
    for _ in range(n):
        for noun in rng.choice(["cat", "dog", "bird"], size=rng.integers(1, 4)):
            lines += [f"the DT B-NP\n{noun} NN I-NP", f"{rng.choice(['sees', 'eats'])} VB O"]
        lines.append("")
    path = folder / name
    path.write_text("\n".join(lines))
    return path


def treebank(folder: Path, name: str = "trees.conllu", n: int = 30) -> Path:
    """Sentences "the NOUN VERB the NOUN ." whose verbs are the roots."""
    rng = np.random.default_rng(1)
    text = ""
    for _ in range(n):
        subject, thing = rng.choice(["cat", "dog", "bird"]), rng.choice(["fish", "bone"])
        rows = [
            ("the", "DET", 2, "det"),
            (subject, "NOUN", 3, "nsubj"),
            (rng.choice(["sees", "eats"]), "VERB", 0, "root"),
            ("the", "DET", 5, "det"),
            (thing, "NOUN", 3, "obj"),
            (".", "PUNCT", 3, "punct"),
        ]
        for i, (form, tag, head, relation) in enumerate(rows, start=1):
            text += "\t".join([str(i), form, form, tag, "_", "_", str(head), relation, "_", "_"]) + "\n"
        text += "\n"
    path = folder / name
    path.write_text(text)
    return path


def video(folder: Path, name: str, frames: int = 12, seed: int = 0) -> None:
    """Three objects that walk apart, as a folder of the MOT challenge."""
    rng = np.random.default_rng(seed)
    truth, detections = [], []
    for frame in range(1, frames + 1):
        for number, (x, step) in enumerate([(50, 4), (200, -3), (350, 2)], start=1):
            left = x + step * frame
            truth.append(f"{frame},{number},{left},100,40,80,1,-1,-1,-1")
            noise = rng.normal(size=2)
            detections.append(f"{frame},-1,{left + noise[0]:.2f},{100 + noise[1]:.2f},40,80,0.9,-1,-1,-1")
    for kind, lines in (("gt", truth), ("det", detections)):
        place = folder / name / kind
        place.mkdir(parents=True)
        (place / f"{kind}.txt").write_text("\n".join(lines) + "\n")
