"""A sign of life from calls that take long between two things to say."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["PATIENCE", "beating"]

PATIENCE = 0.7  # seconds of silence, so that a call speaks within a second of its start
_OFTEN = 0.2  # seconds between two looks at the clock


@contextmanager
def beating(pulse: Callable[[], object]) -> Iterator[None]:
    """Call ``pulse`` every fifth of a second from another thread; kernels release the interpreter's lock."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(_OFTEN):
            pulse()

    thread = threading.Thread(target=beat, name="nashlearn-heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
