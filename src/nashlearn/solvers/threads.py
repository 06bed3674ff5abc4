"""Compiled games on several threads: they release the interpreter's lock."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable
from functools import partial
from queue import SimpleQueue
from threading import Condition, Lock, Thread
from typing import Any

import joblib

__all__ = ["Run", "add_in_order", "in_threads", "threads"]

Run = Callable[[Callable[..., Any], Iterable[tuple[Any, ...]]], list[Any]]


class _Team:
    """Threads that wait for work: to start one takes as long as many a pass over the data. The process has one team."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start anew, in a forked process too: the threads do not exist there."""
        self._lock, self._calls, self._size = Lock(), SimpleQueue[Callable[[], None]](), 0

    def ask(self, call: Callable[[], None], times: int) -> None:
        """Have so many threads call a function, each as soon as it is free; it must not raise."""
        with self._lock:
            for _ in range(self._size, times):
                Thread(target=self._serve, args=(self._calls,), daemon=True).start()
            self._size = max(self._size, times)
        for _ in range(times):
            self._calls.put(call)

    @staticmethod
    def _serve(calls: SimpleQueue[Callable[[], None]]) -> None:
        while True:
            calls.get()()


_team = _Team()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_team.forget)


class _Call:
    """A function to be called on many arguments by whoever comes; the first error ends all."""

    def __init__(self, function: Callable[..., Any], given: list[tuple[Any, ...]]):
        self._function, self._given, self._order = function, given, iter(range(len(given)))
        self.found: list[Any] = [None] * len(given)
        self.failed: list[BaseException] = []
        self._state, self._assisting, self._over = Condition(), 0, False

    def work(self) -> None:
        """Take the next argument until there is none."""
        while not self.failed:
            with self._state:
                at = next(self._order, None)
            if at is None:
                return
            self.found[at] = self._function(*self._given[at])

    def assist(self) -> None:
        """Work beside the caller, unless it is done."""
        with self._state:
            if self._over:
                return
            self._assisting += 1
        try:
            self.work()
        except BaseException as error:  # raised again by the caller
            self.failed.append(error)
        with self._state:
            self._assisting -= 1
            self._state.notify_all()

    def close(self) -> None:
        """Wait for those who have begun to assist, and let nobody else begin."""
        with self._state:
            self._over = True
            self._state.wait_for(lambda: not self._assisting)


def threads(n_jobs: int) -> Run:
    """A function that calls another on many arguments, ``n_jobs`` at a time, and lists the answers in order.

    The calling thread is one of them. Each takes the next argument when it is done with one; the first error ends all.
    """
    return _in_turn if n_jobs == 1 else partial(_together, n_jobs)


def _in_turn(function: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]) -> list[Any]:
    return [function(*one) for one in arguments]


# Not by joblib or a pool of executors, whose bookkeeping takes as long as many a pass over the data.
def _together(n_jobs: int, function: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]) -> list[Any]:
    call = _Call(function, list(arguments))
    try:
        _team.ask(call.assist, min(n_jobs, len(call.found)) - 1)
        call.work()
        call.close()
    except BaseException as error:  # of the function, or an interrupt from outside
        call.failed.append(error)
        call.close()
        raise
    if call.failed:
        raise call.failed[0]
    return call.found


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
