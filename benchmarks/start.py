"""Start-up: the first fit ever on a machine, for each kind of loss, and that of each later process."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from typing import Any

from benchmarks import report

__all__ = ["run"]

# What any user of scikit-learn and Numba pays anyhow comes first and is timed apart.
SCRIPT = """
import json, sys, time
begin = time.perf_counter()
import numba, sklearn.linear_model
from sklearn.datasets import load_iris
X, y = load_iris(return_X_y=True)
loaded = time.perf_counter()
from nashlearn import NashClassifier
imported = time.perf_counter()
NashClassifier(json.loads(sys.argv[1])).fit(X, y)
print(json.dumps([loaded - begin, imported - loaded, time.perf_counter() - imported]))
"""
LOSSES: dict[str, Any] = {
    "zero-one": "zero_one",
    "absolute": "absolute",
    "cost matrix": [[0, 1, 5], [1, 0, 1], [2, 1, 0]],
}


def _process(cache: str, loss: Any) -> dict[str, float]:
    """One fresh interpreter; wall-clock seconds of its three steps."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    command = [sys.executable, "-c", SCRIPT, json.dumps(loss)]
    printed = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
    return dict(zip(("libraries", "import", "fit"), json.loads(printed), strict=True))


def _start(loss: Any, repeats: int) -> dict[str, dict[str, float]]:
    """One process without compiled code, and the median of ``repeats`` later ones."""
    with tempfile.TemporaryDirectory() as cache:
        cold = _process(cache, loss)
        later = [_process(cache, loss) for _ in range(repeats)]
    return {"cold": cold, "warm": {step: statistics.median(one[step] for one in later) for step in cold}}


def run(repeats: int = 5) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Tables and records of each loss, which has a cache of compiled code for itself."""
    records = {name: _start(loss, repeats) for name, loss in LOSSES.items()}
    rows = []
    for name, record in records.items():
        for process, when in (("first ever, nothing compiled", "cold"), ("later, compiled code on disk", "warm")):
            times = record[when]
            ours = times["import"] + times["fit"]
            rows.append([name, process, *(report.seconds(times[step]) for step in times), report.seconds(ours)])
    note = "Wall clock of a first fit on iris in a fresh interpreter; ours is import and fit together."
    columns = ("loss", "process", "scikit-learn and Numba", "import nashlearn", "fit", "ours")
    return [report.table("Start-up", note, columns, rows)], records
