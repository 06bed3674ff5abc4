"""Compiled games on several threads: they release the interpreter's lock."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import joblib

__all__ = ["Run", "in_threads", "threads"]

Run = Callable[[Callable[..., Any], Iterable[tuple[Any, ...]]], list[Any]]


def threads(n_jobs: int) -> Run:
    """A function that calls another on many arguments, ``n_jobs`` at a time, and lists the answers in order."""
    if n_jobs == 1:
        return lambda function, arguments: [function(*one) for one in arguments]

    def run(function: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]) -> list[Any]:
        # Not by joblib, which takes longer to start than many a pass over the data takes in all.
        with ThreadPoolExecutor(n_jobs) as pool:
            return list(pool.map(lambda one: function(*one), arguments))

    return run


def in_threads(work: Callable[[int, int], object], count: int, n_jobs: int | None) -> None:
    """Call ``work(start, stop)`` on consecutive parts of ``range(count)``, one in each thread."""
    jobs = min(joblib.effective_n_jobs(n_jobs), max(count, 1))
    cuts = [count * i // jobs for i in range(jobs + 1)]
    threads(jobs)(work, itertools.pairwise(cuts))
