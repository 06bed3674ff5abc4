"""Timing and memory: CPU seconds of one thread, interleaved repeats, capped children, processes that are asked."""

from __future__ import annotations

import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["Timed", "Worker", "capped", "in_fresh_process", "interleaved", "per_call", "resident"]

Timed = tuple[float, Any]


def _send(pipe: Any, function: Callable[[], Any], then: Callable[[Any], Any], short: float) -> None:
    took, calls = 0.0, 0
    while calls == 0 or (calls == 1 and took < short):
        start = time.process_time()
        result = function()
        took = time.process_time() - start
        calls += 1
    pipe.send((took, then(result)))
    pipe.close()


def capped(
    function: Callable[[], Any], seconds: float, *, then: Callable[[Any], Any] = bool, warm: bool = False
) -> Timed | None:
    """CPU seconds of ``function()`` in a forked child, and ``then`` of its result; None if over the cap.

    The child inherits the data, so that nothing but the call is timed; a library that cannot be
    interrupted is killed with it. ``warm`` times the second of two calls where the first is short, so that
    loading compiled code is not counted. ``then`` is not timed; what it returns must pickle.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_send, args=(sender, function, then, 5.0 if warm else 0.0))
    child.start()
    sender.close()
    # The cap is on the wall clock, half as long again so that a loaded machine does not cut runs short.
    arrived = receiver.poll(1.5 * seconds + (5.0 if warm else 0.0))
    answer: Timed | None = None
    if arrived:
        try:
            answer = receiver.recv()
        except EOFError:
            child.join()
            raise RuntimeError(f"the measured call died with exit code {child.exitcode}") from None
    else:
        child.kill()
    child.join()
    return answer if answer is not None and answer[0] <= seconds else None


def interleaved(runs: dict[str, Callable[[], float | None]], repeats: int) -> dict[str, float | None]:
    """Median of ``repeats`` answers of each run, taken in turns so that a slow minute hurts all alike.

    A run answers its own seconds, or None once it was over the cap, after which it is not repeated.
    """
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    given_up: set[str] = set()
    for _ in range(repeats):
        for name, run in runs.items():
            if name in given_up:
                continue
            took = run()
            if took is None:
                given_up.add(name)
            else:
                seconds[name].append(took)
    return {name: None if name in given_up else statistics.median(s) for name, s in seconds.items()}


def per_call(function: Callable[[], Any], *, least: float = 0.05) -> float:
    """CPU seconds of one warm call, averaged over enough calls to fill ``least`` seconds."""
    function()
    calls = 1
    while True:
        start = time.process_time()
        for _ in range(calls):
            function()
        took = time.process_time() - start
        if took >= least:
            return took / calls
        calls = max(2 * calls, int(calls * least / max(took, 1e-6)))


def resident(field: str = "VmRSS") -> int:
    """Bytes of this process's ``VmRSS`` or ``VmHWM`` (peak), from the kernel."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"{field} is not reported by this kernel")


def in_fresh_process(work: Callable[..., None], *arguments: Any) -> Any:
    """What ``work(*arguments, pipe)`` sends from a process of its own, which starts without this one's memory."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=work, args=(*arguments, sender))
    child.start()
    sender.close()
    try:
        answer = receiver.recv()
    except EOFError:
        child.join()
        raise RuntimeError(f"the measured process died with exit code {child.exitcode}") from None
    child.join()
    return answer


class Worker:
    """An interpreter that is asked for one thing at a time, in lines of JSON, and answers each with another line."""

    def __init__(self, arguments: list[str], environment: dict[str, str]):
        self._process = subprocess.Popen(
            [sys.executable, *arguments],
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, what: Any) -> None:
        """Ask, and do not wait."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()

    def said(self) -> Any:
        """Wait for the next answer."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the process that runs a job has ended; what it said is above")
        return json.loads(line)

    def told(self, what: Any) -> Any:
        """Ask, and wait for the answer."""
        self.ask(what)
        return self.said()

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
