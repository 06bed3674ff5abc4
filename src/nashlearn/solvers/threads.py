"""Compiled games on several threads: they release the interpreter's lock."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from threading import Event, Lock, Thread
from typing import Any

import joblib

__all__ = ["Run", "add_in_order", "in_threads", "threads"]

Run = Callable[[Callable[..., Any], Iterable[tuple[Any, ...]]], list[Any]]


def threads(n_jobs: int) -> Run:
    """A function that calls another on many arguments, ``n_jobs`` at a time, and lists the answers in order.

    The calling thread is one of them. Each takes the next argument when it is done with one; the first error ends all.
    """
    if n_jobs == 1:
        return lambda function, arguments: [function(*one) for one in arguments]

    # Not by joblib or a pool of executors, whose bookkeeping takes as long as many a pass over the data.
    def run(function: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]) -> list[Any]:
        given = list(arguments)
        found: list[Any] = [None] * len(given)
        failed: list[BaseException] = []
        order, lock = iter(range(len(given))), Lock()

        def work() -> None:
            try:
                while not failed:
                    with lock:
                        at = next(order, None)
                    if at is None:
                        return
                    found[at] = function(*given[at])
            except BaseException as error:  # raised again by the caller
                failed.append(error)

        def assist(ended: Event) -> None:
            work()
            ended.set()

        # Events, since a thread whose join was interrupted passes for ended.
        events = [Event() for _ in range(min(n_jobs, len(given)) - 1)]
        others = [Thread(target=assist, args=(ended,), daemon=True) for ended in events]
        try:
            for other in others:
                other.start()
            work()
            for ended in events:
                ended.wait()
        except BaseException as interrupt:  # from outside, while this thread starts others or waits for them
            failed.append(interrupt)
            for other, ended in zip(others, events, strict=True):
                if other.ident is not None:
                    ended.wait()
            raise
        if failed:
            raise failed[0]
        return found

    return run


def in_threads(work: Callable[[int, int], object], count: int, n_jobs: int | None) -> None:
    """Call ``work(start, stop)`` on consecutive parts of ``range(count)``, one in each thread."""
    if n_jobs == 1:  # asking joblib takes as long as a small game
        work(0, count)
        return
    jobs = min(joblib.effective_n_jobs(n_jobs), max(count, 1))
    cuts = [count * i // jobs for i in range(jobs + 1)]
    threads(jobs)(work, itertools.pairwise(cuts))


def add_in_order(
    run: Run, make: Callable[..., Any], arguments: Iterable[tuple[Any, ...]], add: Callable[[Any], object]
) -> None:
    """Call ``add`` with ``make(*one)`` for each of ``arguments``, in their order and one at a time.

    Sums are then the same for any number of threads. A term is added as soon as those before it are there, so that
    hardly more of them are kept than there are threads.
    """
    lock, waiting, due = Lock(), dict[int, Any](), 0

    def one(at: int, *argument: Any) -> None:
        nonlocal due
        made = make(*argument)
        with lock:
            waiting[at] = made
            while due in waiting:
                add(waiting.pop(due))
                due += 1

    run(one, ((at, *argument) for at, argument in enumerate(arguments)))
