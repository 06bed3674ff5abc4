"""``nashlearn parse`` as it comes on English EWT, beside the parser of the README on the same treebank.

The commands are run as a user runs them, without options, in processes of their own: gold tags, the whole training
set. The README's parser is that of ``make reproduce TABLES=trees``: its alpha was chosen on the development set, ours
on a part of the training set.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import report
from nashlearn.datasets import data_home

__all__ = ["in_words", "readme_parser", "run"]

TREEBANK = "en_ewt-r2.3"
STORED = Path(__file__).parents[1] / "reproduce" / "results" / "full" / "laptop_parser.jsonl"
_MEASURES = ("uas_without_punctuation", "las_without_punctuation", "uas", "las", "complete_trees")


# A process counts as its own what the one that started it held, but for this line of the kernel's.
_MAIN = """
import sys
from nashlearn.cli import main
try:
    main()
finally:
    with open("/proc/self/status") as own:
        sys.stderr.writelines(line for line in own if line.startswith("VmHWM"))
"""


def _command(*arguments: Any) -> dict[str, Any]:
    """What a command says: its JSON, lines of standard error, CPU and wall seconds, and its largest memory."""
    line = [sys.executable, "-c", _MAIN, *map(str, arguments), "--json"]
    before, began = _cpu(), time.monotonic()
    with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile("w+") as told:
        process = subprocess.run(line, stdout=said, stderr=told, env=os.environ, check=False)
        wall = time.monotonic() - began
        said.seek(0), told.seek(0)
        output, heard = said.read(), told.read().splitlines()
    if process.returncode:
        raise RuntimeError("\n".join([f"{line} failed:", *heard]))
    *heard, peak = heard
    return {
        "found": json.loads(output),
        "heard": heard,
        "warnings": [one for one in heard if "warning" in one.lower()],
        "cpu_s": _cpu() - before,
        "wall_s": wall,
        "peak_mib": int(peak.split()[1]) / 1024.0,
    }


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def readme_parser() -> dict[str, Any]:
    """The stored record of the game: that of the alpha which is best on the development set."""
    records = [json.loads(line) for line in STORED.read_text().splitlines()]
    return max((one for one in records if one["key"][1] == "game"), key=lambda one: one["dev"])


def run() -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Train, judge on both held-out sets, and put the README's parser beside."""
    home = data_home() / "treebanks"
    train, dev, test = (home / f"{TREEBANK}-{part}.conllu.gz" for part in ("train", "dev", "test"))
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "en.model"
        trained = _command("parse", "train", train, "--out", model)
        megabytes = model.stat().st_size / 2**20
        judged = {name: _command("parse", "evaluate", model, path) for name, path in (("dev", dev), ("test", test))}
    made, readme = {name: value for name, value in trained["found"].items() if name != "model"}, readme_parser()
    scores = {name: {key: one["found"][key] for key in _MEASURES} for name, one in judged.items()}
    warnings = trained["warnings"] + [line for one in judged.values() for line in one["warnings"]]
    ours = [f"{100 * scores['test'][key]:.2f}" for key in _MEASURES[:2]]
    theirs = [f"{100 * readme[key]:.2f}" for key in ("uas", "las")]
    tables = [
        report.table(
            "English EWT through `nashlearn parse train`, no options",
            "UD English EWT 2.3, gold tags, the whole training set, one thread; test set without punctuation. CPU "
            "seconds of `parse` are those of the whole command: reading, choosing features and alpha, training, "
            "relations, saving. Those of the README's parser, from its stored record, are of training alone, on its "
            "machine.",
            ["parser", "UAS", "LAS", "alpha", "features", "gap", "passes", "warnings", "CPU"],
            [
                [
                    "`nashlearn parse`",
                    *ours,
                    f"{made['alpha']:.2g}",
                    f"{made['features']}, {made['bits']} bits",
                    f"{made['dual_gap']:.2g}",
                    str(made["iterations"]),
                    str(len(warnings)),
                    f"{trained['cpu_s']:.0f} s",
                ],
                [
                    "README (`make reproduce TABLES=trees`)",
                    *theirs,
                    f"{readme['key'][2]:.2g}",
                    "plain, 22 bits",
                    f"{readme['gap']:.2g}",
                    "10",
                    "–",
                    f"{readme['seconds']:.0f} s",
                ],
            ],
        )
    ]
    records = {
        "treebank": TREEBANK,
        "scores": scores,
        "readme": readme,
        "warnings": warnings,
        "made": made,
        "tried": [line.strip() for line in trained["heard"] if line.startswith("  features")],
        "cpu_s": trained["cpu_s"],
        "wall_s": trained["wall_s"],
        "peak_mib": trained["peak_mib"],
        "model_mib": megabytes,
    }
    return tables, records


def in_words(records: dict[str, Any]) -> str:
    """What the page on trees says of stored records."""
    made, readme, score = records["made"], records["readme"], records["scores"]["test"]
    return (
        f"On English EWT 2.3 (gold tags, {made['words']:,} words), `nashlearn parse train` without options chose "
        f"{made['features']} features and `alpha = {made['alpha']:.2g}`, and ended after {made['iterations']} passes "
        f"at a certified gap of {made['dual_gap']:.2g}, with {len(records['warnings']) or 'no'} warnings: UAS "
        f"{100 * score['uas_without_punctuation']:.1f} and LAS {100 * score['las_without_punctuation']:.1f} on the "
        "test set without punctuation. The parser that the README quotes, whose alpha was chosen on the development "
        f"set, has {100 * readme['uas']:.1f} and {100 * readme['las']:.1f}. The whole command took "
        f"{records['cpu_s']:.0f} CPU seconds and {records['peak_mib'] / 1024:.1f} GiB; the model has "
        f"{records['model_mib']:.0f} MiB (`python -m benchmarks treebank`)."
    )
