"""A fit on a file that is much larger than the memory: a mapped float32 matrix of 10 GB, held to 2 GB.

    python -m benchmarks out_of_core

Not one of the parts that run by default: it writes the file to the folder for temporary files (``TMPDIR``). The limit
is that of a control group, which counts the file's own pages in memory too; making one takes root's rights.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import measure, report
from nashlearn import NashClassifier

__all__ = ["run"]

ROWS, FEATURES, CLASSES = 2_500_000, 1000, 5
LIMIT = 2 * 10**9
BLOCK = 50_000
FITS: dict[str, dict[str, Any]] = {
    "tempered, smoothing 1": {"smoothing": 1.0, "tol": 1e-3},
    "exact, to 1e-2": {"smoothing": 0.0, "tol": 1e-2},
    "exact, to 1e-3": {"smoothing": 0.0, "tol": 1e-3},
}
_GROUPS = (  # where control groups of memory are, and the files of its limit and its peak: two versions
    (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes", "memory.max_usage_in_bytes"),
    (Path("/sys/fs/cgroup"), "memory.max", "memory.peak"),
)


def _write(path: Path) -> np.ndarray:
    """Write rows of which a linear model explains a little, block by block; their labels."""
    rng = np.random.default_rng(0)
    W = rng.standard_normal((FEATURES, CLASSES)) * (3.0 / np.sqrt(FEATURES))
    mapped = np.memmap(path, np.float32, "w+", shape=(ROWS, FEATURES))
    labels = np.empty(ROWS, np.int8)
    for start in range(0, ROWS, BLOCK):
        X = rng.standard_normal((BLOCK, FEATURES), dtype=np.float32)
        mapped[start : start + BLOCK] = X
        labels[start : start + BLOCK] = (X @ W + 3.0 * rng.gumbel(size=(BLOCK, CLASSES))).argmax(axis=1)
        mapped.flush()
    return labels


def _forget(path: Path) -> None:
    """Drop the file's pages from memory: those that were read before would not count to a group that reads them."""
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


@contextmanager
def _group() -> Iterator[tuple[Path, str]]:
    """A new control group held to the limit, and the name of the file that tells its peak."""
    for root, limit, peak in _GROUPS:
        group = root / f"nashlearn-{os.getpid()}"
        try:
            group.mkdir()
            (group / limit).write_text(str(LIMIT))
        except OSError:
            if group.is_dir():
                group.rmdir()
            continue
        try:
            yield group, peak
        finally:
            group.rmdir()
        return
    raise SystemExit("out_of_core needs the right to make a control group with a limit of memory")


def _fit(path: str, labels: str, group: str, peak: str, options: dict[str, Any], pipe: Any) -> None:
    """Fit in this process, which joins the group first."""
    Path(group, "cgroup.procs").write_text(str(os.getpid()))
    X, y = np.memmap(path, np.float32, "r", shape=(ROWS, FEATURES)), np.load(labels)
    model = NashClassifier(alpha=1e-3, random_state=0, **options)
    start, cpu = time.perf_counter(), time.process_time()
    model.fit(X, y)
    seconds = {"wall": time.perf_counter() - start, "cpu": time.process_time() - cpu}
    pipe.send(
        {**seconds, "gap": model.dual_gap_, "iterations": model.n_iter_, "peak": int(Path(group, peak).read_text())}
    )


def run() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The table and its records."""
    records = []
    with tempfile.TemporaryDirectory() as folder:
        path, labels = Path(folder, "X"), Path(folder, "y.npy")
        np.save(labels, _write(path))
        for name, options in FITS.items():
            _forget(path)
            with _group() as (group, peak):
                found = measure.in_fresh_process(_fit, str(path), str(labels), str(group), peak, options)
            records.append({"fit": name, **found})
    rows = [
        [r["fit"], f"{r['wall']:.0f} s", f"{r['cpu']:.0f} s", f"{r['gap']:.1e}", str(r["iterations"]),
         f"{r['peak'] / 1e9:.2f} GB"]
        for r in records
    ]  # fmt: skip
    note = (
        f"{ROWS:,} × {FEATURES} float32 in a mapped file of {ROWS * FEATURES * 4 / 1e9:.0f} GB, {CLASSES} classes, on "
        f"one thread, in a control group of {LIMIT / 1e9:.0f} GB. The peak is that of the group, pages of the file "
        "included, which is why it comes to the limit."
    )
    columns = ("game", "wall clock", "CPU", "gap", "iterations", "peak")
    return [report.table("Out of core", note, columns, rows)], records
