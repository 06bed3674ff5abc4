"""Start-up: the first fit ever on a machine, and that of each later process."""

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
import json, time
begin = time.perf_counter()
import numba, sklearn.linear_model
from sklearn.datasets import load_iris
X, y = load_iris(return_X_y=True)
loaded = time.perf_counter()
from nashlearn import NashClassifier
imported = time.perf_counter()
NashClassifier("zero_one").fit(X, y)
print(json.dumps([loaded - begin, imported - loaded, time.perf_counter() - imported]))
"""


def _process(cache: str) -> dict[str, float]:
    """One fresh interpreter; wall-clock seconds of its three steps."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    command = [sys.executable, "-c", SCRIPT]
    printed = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
    return dict(zip(("libraries", "import", "fit"), json.loads(printed), strict=True))


def run(repeats: int = 5) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Tables and records of one cold process and the median of ``repeats`` later ones."""
    with tempfile.TemporaryDirectory() as cache:
        cold = _process(cache)
        later = [_process(cache) for _ in range(repeats)]
    warm = {step: statistics.median(one[step] for one in later) for step in cold}
    rows = []
    for name, times in (("first ever, nothing compiled", cold), ("later, compiled code on disk", warm)):
        ours = times["import"] + times["fit"]
        rows.append([name, *(report.seconds(times[step]) for step in times), report.seconds(ours)])
    note = "Wall clock of a first fit on iris in a fresh interpreter; ours is import and fit together."
    columns = ("process", "scikit-learn and Numba", "import nashlearn", "fit", "ours")
    return [report.table("Start-up", note, columns, rows)], {"cold": cold, "warm": warm}
