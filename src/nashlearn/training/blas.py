"""One thread of linear algebra in each thread of a training, which has as many as linear algebra had.

Threads of linear algebra wake too late to help with products of few columns, and round otherwise than one does. NumPy
and SciPy also bring a pool each, and the two hold each other up.

The number of threads belongs to the whole process, not to a thread of it. So trainings that overlap are counted:
the first one notes how many threads there were, and the last one puts them back. A limit set around a training is
kept. One that another thread sets during a training and lifts after it returns to what it found, which is one thread.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import joblib
from threadpoolctl import ThreadpoolController

__all__ = ["allowed_threads", "one_thread"]


@functools.cache
def _pools() -> list[Any]:
    """The libraries of linear algebra with one number of threads for the process; a search takes milliseconds.

    OpenMP keeps a number for each thread instead, which cannot be put back from another one.
    """
    loaded = ThreadpoolController().select(user_api="blas").lib_controllers
    return [pool for pool in loaded if getattr(pool, "threading_layer", None) != "openmp"]


def _set(pool: Any, threads: int) -> None:
    """Set a number, and let other threads set it later: since 3.8 threadpoolctl gives the right to one at a time."""
    pool.set_num_threads(threads)
    if hasattr(pool, "clear_controlling_thread"):
        pool.clear_controlling_thread()


class _Holders:
    """Who needs the limit now, and what was found before the first of them. The process has one such object."""

    def __init__(self) -> None:
        self._lock, self._tokens, self._found = threading.Lock(), set[object](), list[tuple[Any, int]]()

    def add(self, token: object) -> None:
        """Limit the pools for ``token``."""
        pools = _pools()
        with self._lock:
            self._tokens.add(token)
            if not self._found:
                self._found = [(pool, pool.get_num_threads()) for pool in pools]  # noted before anything is changed
                for pool in pools:
                    _set(pool, 1)

    def drop(self, token: object) -> None:
        """Put the threads back if nobody but ``token`` needs the limit."""
        with self._lock:
            if self._tokens <= {token}:
                self._restore()
            self._tokens.discard(token)

    def _restore(self) -> None:
        for pool, threads in self._found:
            if pool.get_num_threads() == 1:  # or else somebody has chosen another number meanwhile
                _set(pool, threads)
        self._found = []

    def forget(self) -> None:
        """Start anew in a forked process: the threads that were training do not exist there."""
        self._lock = threading.Lock()
        self._tokens.clear()
        self._restore()


_holders = _Holders()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_holders.forget)


@contextmanager
def one_thread() -> Iterator[None]:
    """Linear algebra on one thread inside the block, and as it was when no such block is left."""
    token = object()
    try:  # before the limit is set, since an interrupt may come while it is
        _holders.add(token)
        yield
    finally:
        _holders.drop(token)


def allowed_threads() -> int:
    """Threads that linear algebra may use now, no more than there are cores: variables and limits say how many."""
    return max(1, min([joblib.cpu_count(), *(pool.get_num_threads() for pool in _pools())]) if _pools() else 1)
