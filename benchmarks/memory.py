"""Peak memory of a fit, beyond what the process held before it, in a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import measure, report
from benchmarks.datasets import text_like
from nashlearn import NashClassifier

__all__ = ["run"]

CASES = ("dense", "sparse")


def _data(case: str) -> tuple[Any, np.ndarray, int]:
    """Training data and the bytes it takes."""
    if case == "sparse":
        X, y = text_like(100_000, 20_000, 20)
        return X, y, X.data.nbytes + X.indices.nbytes + X.indptr.nbytes + y.nbytes
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200_000, 50))
    y = np.argmax(X @ rng.standard_normal((50, 10)) + 3.0 * rng.gumbel(size=(200_000, 10)), axis=1)
    return X, y, X.nbytes + y.nbytes


def _measure(case: str, pipe: Any) -> None:
    """Fit once on a little data, so that compiled code is loaded, then on all while the kernel watches."""
    X, y, input_bytes = _data(case)
    k = int(y.max()) + 1
    model = NashClassifier("zero_one", alpha=1.0 / len(y), smoothing=0.0, intercept_scaling=1.0, random_state=0)
    model.fit(X[:1000], y[:1000])
    before = measure.resident("VmRSS")
    # Writing 5 here makes the kernel forget the peak that making the data left behind.
    Path("/proc/self/clear_refs").write_text("5")
    model.fit(X, y)
    grown = measure.resident("VmHWM") - before
    allowed = 3 * len(y) * k * 8
    shape = f"{X.shape[0]:,} × {X.shape[1]:,}, k = {k}"
    pipe.send({"case": case, "shape": shape, "input": input_bytes, "grown": grown, "allowed": allowed})


def run() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Tables and records of a dense and a CSR case."""
    records = [measure.in_fresh_process(_measure, case) for case in CASES]
    rows = [
        [r["case"], r["shape"]]
        + [f"{r[name] / 2**20:.0f} MiB" for name in ("input", "grown", "allowed")]
        + [f"{r['grown'] / r['allowed']:.2f}"]
        for r in records
    ]
    note = (
        "Growth is the peak resident size during `fit` less the size before it, when the input was there already; "
        "the yardstick is 3 n k doubles."
    )
    columns = ("data", "shape", "input", "growth", "yardstick", "growth / yardstick")
    return [report.table("Memory", note, columns, rows)], records
