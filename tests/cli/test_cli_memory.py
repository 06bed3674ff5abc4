"""A million rows of fifty numbers from Parquet: less than three times what they take, with progress shown."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")

ROWS, COLUMNS = 1_000_000, 50
# Not ru_maxrss: a process inherits it from the one that started it, a test worker of any size.
MEASURED = """
import sys
from nashlearn.cli import main
try:
    main()
finally:
    peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    print("peak", peak.split()[1], file=sys.stderr)
"""


def write(path):
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    w = rng.normal(size=(COLUMNS, 3))
    fields = [(f"x{j}", pa.float64()) for j in range(COLUMNS)] + [("y", pa.string())]
    with pq.ParquetWriter(path, pa.schema(fields)) as writer:
        for _ in range(10):
            X = rng.normal(size=(ROWS // 10, COLUMNS))
            y = np.array(["a", "b", "c"])[(X @ w + 3 * rng.normal(size=(len(X), 3))).argmax(axis=1)]
            writer.write_table(pa.table([*(X[:, j] for j in range(COLUMNS)), y], schema=pa.schema(fields)))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="/proc/self/status is Linux's")
def test_memory_of_training(tmp_path):
    write(tmp_path / "big.parquet")
    arguments = ["train", "big.parquet", "--target", "y", "--out", "big.model", "--json"]
    run = subprocess.run([sys.executable, "-c", MEASURED, *arguments], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert found["converged"] and found["rows"] == ROWS
    peak = int(re.search(r"peak (\d+)", run.stderr)[1]) * 1024
    assert peak < 3 * ROWS * COLUMNS * 8  # the interpreter and its libraries included
    assert re.search(r"training: iteration \d+ of at most \d+, gap", run.stderr) or found["seconds"] < 5
