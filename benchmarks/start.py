"""Start-up: what a first fit and a first command cost beyond the same again, and what importing the library costs.

Each fit runs in a fresh interpreter, with empty folders where libraries keep caches, and then again in the same one:
the difference is what a user waits for once. A command cannot be run again in its process: its second run is another
process, which finds what the first one may have kept.
"""

from __future__ import annotations

import compileall
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nashlearn
from benchmarks import report
from benchmarks.first_fits import FITS, rows

__all__ = ["COMMANDS", "run"]

LATER = 3  # fits after the first one, of which the median counts

# What any user of scikit-learn pays anyhow comes first and is timed apart.
SCRIPT = f"""
import json, statistics, sys, time
clock = time.perf_counter
marks = [clock()]
import sklearn.linear_model
marks.append(clock())
from nashlearn import NashClassifier
marks.append(clock())
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from benchmarks.first_fits import FITS
fits = []
for _ in range(1 + {LATER}):
    model, X, y = FITS[sys.argv[1]]()
    begin, cpu = clock(), time.process_time()
    model.fit(X, y)
    fits.append((clock() - begin, time.process_time() - cpu))
print(json.dumps({{
    "scikit-learn": marks[1] - marks[0],
    "import": marks[2] - marks[1],
    "first": fits[0][0],
    "again": statistics.median(wall for wall, _ in fits[1:]),
    "first CPU": fits[0][1],
    "again CPU": statistics.median(cpu for _, cpu in fits[1:]),
}}))
"""
CALL = "from nashlearn.cli import main; main()"


def _table(folder: Path) -> list[str]:
    X, y = rows()
    lines = ["a,b,c,d,kind", *(",".join(map(str, (*row, "xyz"[label]))) for row, label in zip(X, y, strict=True))]
    (folder / "rows.csv").write_text("\n".join(lines) + "\n")
    return ["train", str(folder / "rows.csv"), "--target", "kind", "--out", str(folder / "rows.model")]


def _tags(folder: Path) -> list[str]:
    words = [("the DT B-NP", f"{noun} NN I-NP", "sees VB O") for noun in ("cat", "dog", "bird")]
    text = "\n".join("\n".join(words[i % 3] + words[i % 2]) + "\n" for i in range(30))
    (folder / "tags.txt").write_text(text)
    return ["tag", "train", str(folder / "tags.txt"), "--out", str(folder / "tags.model")]


def _trees(folder: Path) -> list[str]:
    sentences = []
    for i in range(20):
        words = [("the", "DET", 2, "det"), (("cat", "dog")[i % 2], "NOUN", 3, "nsubj"), ("sees", "VERB", 0, "root")]
        words += [("the", "DET", 5, "det"), (("fish", "bone")[i % 2], "NOUN", 3, "obj")]
        lines = [f"{j}\t{w}\t{w}\t{t}\t_\t_\t{head}\t{name}\t_\t_" for j, (w, t, head, name) in enumerate(words, 1)]
        sentences.append("\n".join(lines) + "\n\n")
    (folder / "trees.conllu").write_text("".join(sentences))
    options = ["--bits", "14", "--alpha", "1e-2", "--tol", "0.05"]
    return ["parse", "train", str(folder / "trees.conllu"), "--out", str(folder / "trees.model"), *options]


def _costs(folder: Path) -> list[str]:
    (folder / "costs.csv").write_text(",x,y,z\nx,0,1,5\ny,1,0,1\nz,2,1,0\n")
    return ["explain-cost", str(folder / "costs.csv")]


COMMANDS: dict[str, Callable[[Path], list[str]]] = {
    "nashlearn train": _table,
    "nashlearn tag train": _tags,
    "nashlearn parse train": _trees,
    "nashlearn explain-cost": _costs,
}


def _process(command: list[str], caches: Path) -> tuple[str, float]:
    """What a fresh interpreter prints, and its wall-clock seconds; libraries keep their caches in ``caches``."""
    homes = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "MPLCONFIGDIR"), str(caches))
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *command],
        env={**os.environ, **homes},
        capture_output=True,
        text=True,
    )
    took = time.perf_counter() - begin
    if done.returncode:
        raise RuntimeError(f"{command[-1]} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout, took


def _fit(name: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as caches:
        printed, _ = _process(["-c", SCRIPT, name], Path(caches))
    return json.loads(printed)


def _command(name: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as caches:
        arguments = COMMANDS[name](Path(folder))
        first, again = (_process(["-c", CALL, *arguments], Path(caches))[1] for _ in range(2))
    return {"first": first, "again": again}


def _medians(found: list[dict[str, float]]) -> dict[str, float]:
    """Of each step; and of the difference between first and again, which pairs that belong together have."""
    steps = {step: statistics.median(one[step] for one in found) for step in found[0]}
    return steps | {"start": statistics.median(one["first"] - one["again"] for one in found)}


def run(repeats: int = 5, names: list[str] | None = None) -> tuple[list[dict[str, Any]], dict[str, dict[str, float]]]:
    """Tables and records of all fits and commands, or of those of some names."""
    # As pip leaves an installation; a checkout may not have been imported yet.
    compileall.compile_dir(str(Path(nashlearn.__file__).parent), quiet=2)
    chosen = [name for name in (*FITS, *COMMANDS) if names is None or name in names]
    found: dict[str, list[dict[str, float]]] = {name: [] for name in chosen}
    for _ in range(repeats):  # in turns, so that a slow minute hurts all alike
        for name in chosen:
            found[name].append(_fit(name) if name in FITS else _command(name))
    records = {name: _medians(times) for name, times in found.items()}
    table = [
        [name, *(report.seconds(max(times[step], 0.0)) for step in ("first", "again", "start"))]
        for name, times in records.items()
    ]
    note = (
        "Wall clock, medians: fits of small data in a fresh interpreter with empty caches and again in the same one; "
        "commands, with their start of Python, and a second run."
    )
    tables = [report.table("Start-up", note, ("what", "first", "again", "difference"), table)]
    imports = [one for name in chosen if name in FITS for one in found[name]]
    if imports:
        library, own = (statistics.median(one[step] for one in imports) for step in ("scikit-learn", "import"))
        records["import"] = {"scikit-learn": library, "import": own}
        row = [report.seconds(library), report.seconds(own)]
        columns = ("import sklearn.linear_model", "then from nashlearn import NashClassifier")
        tables.append(report.table("Import", "Wall clock, medians of fresh interpreters.", columns, [row]))
    return tables, records
