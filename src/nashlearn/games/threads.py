"""Compiled games on several threads: they release the interpreter's lock."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np

__all__ = ["in_threads"]


def in_threads(work: Callable[[int, int], object], count: int, n_jobs: int) -> None:
    """Call ``work(start, stop)`` on consecutive parts of ``range(count)``, one in each thread."""
    jobs = min(joblib.effective_n_jobs(n_jobs), max(count, 1))
    if jobs == 1:
        work(0, count)
        return
    cuts = np.linspace(0, count, jobs + 1).astype(int).tolist()
    # Not by joblib, which takes longer to start than many a pass over the data takes in all.
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(work, cuts[:-1], cuts[1:]))
