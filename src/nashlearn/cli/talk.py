"""What the commands say: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from nashlearn.report.page import plain
from nashlearn.training.heartbeat import PATIENCE, beating

__all__ = ["Talk", "Trained"]

_EVERY = 5.0  # seconds between two lines where standard error is no terminal
_INTERRUPTED = "Training was interrupted"


@dataclass
class Trained:
    """How a training ended."""

    seconds: float = 0.0
    interrupted: bool = False


class Talk:
    """The voice of one command.

    Parameters
    ----------
    json : bool
        Whether standard output is one JSON object and nothing else.
    quiet : bool
        Whether to leave out progress and notes; warnings stay.
    """

    def __init__(self, json: bool = False, quiet: bool = False):
        self.json, self.quiet = json, quiet
        self.err = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)

    def note(self, text: str) -> None:
        if not self.quiet:
            self.err.print(text, markup=False)

    def warn(self, text: str) -> None:
        self.err.print(f"warning: {text}", markup=False, style="yellow")

    def result(self, data: Mapping[str, Any], show: Callable[[], Iterable[str | Table]] | None = None) -> None:
        """The answer of a command: as JSON, or as ``show`` gives it, by default name and value a line."""
        if self.json:
            print(json.dumps(plain(data), ensure_ascii=False))
            return
        width = max(map(len, data), default=0)
        lines = (f"{name.replace('_', ' '):{width}}  {figure(value)}" for name, value in data.items())
        out = Console(highlight=False, soft_wrap=True, emoji=False)
        for one in lines if show is None else show():
            out.print(one, markup=False)

    @contextmanager
    def counting(self, what: str, total: int) -> Iterator[Callable[[], None]]:
        """A bar with the time left; calls advance it by one."""
        began, done = time.monotonic(), 0
        with self._bar(what, f"0 of {total}") as show:

            def advance() -> None:
                nonlocal done
                done += 1
                left = (time.monotonic() - began) * (total - done) / done
                show(done / total, f"{done} of {total}, {_left(left)}")

            yield advance

    @contextmanager
    def training(self, what: str, tol: float, max_iter: int) -> Iterator[tuple[Callable[[Any], None], Trained]]:
        """A bar of the certificate's way to ``tol``: a callback for the estimator, and how the training ended."""
        trained, began, way = Trained(), time.monotonic(), _Way(tol, max_iter)
        with (
            warnings.catch_warnings(record=True) as caught,
            self._bar(what, "starting") as show,
        ):
            warnings.simplefilter("always")

            def callback(now: Any) -> None:
                share, left = way.share(now)
                show(share, f"iteration {now.n_iter}, gap {now.gap:.1e}, {100 * share:.0f} %, {left}")

            yield callback, trained
        trained.seconds, trained.interrupted = time.monotonic() - began, silently_interrupted(caught)
        messages = [str(warning.message) for warning in caught if issubclass(warning.category, UserWarning)]
        for message in dict.fromkeys(messages):
            if not message.startswith(_INTERRUPTED):
                self.warn(message)
        if trained.interrupted:
            self.warn("interrupted: the best model so far is kept.")

    @contextmanager
    def _bar(self, what: str, state: str) -> Iterator[Callable[[float, str], None]]:
        """A bar that is shown a share and a state in words; now and then a line where there is no terminal."""
        if self.quiet:
            yield lambda share, state: None
            return
        if not self.err.is_terminal:
            lines = _Lines(what, state, self.note)
            with beating(lines.pulse):
                yield lines.hear
            return
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[state]}"))
        with Progress(*columns, TimeElapsedColumn(), console=self.err, transient=True) as bar:
            task = bar.add_task(what, total=1.0, state=state)
            yield lambda share, state: bar.update(task, completed=share, state=state)


class _Lines:
    """States in words as lines: the first one after a second, then one in five, also where nothing new is heard."""

    def __init__(self, what: str, state: str, note: Callable[[str], None]):
        self.what, self.state, self.note = what, state, note
        self.heard = time.monotonic()
        self.due = self.heard + PATIENCE

    def hear(self, share: float, state: str) -> None:
        """Take note of a state, and say it if a line is due."""
        self.state, self.heard = state, time.monotonic()
        self.pulse()

    def pulse(self) -> None:
        """Say the state if a line is due, and how old it is."""
        now = time.monotonic()
        if now < self.due:
            return
        self.due = now + _EVERY
        ago = now - self.heard
        self.note(f"{self.what}: {self.state}" + (f" ({ago:.0f} s ago)" if ago >= PATIENCE else ""))


class _Way:
    """How far training has come: the gap from the first one to ``tol``, on a logarithmic scale, or the iterations."""

    def __init__(self, tol: float, max_iter: int):
        self.tol, self.max_iter = tol, max_iter
        self.first: tuple[float, float] | None = None

    def share(self, now: Any) -> tuple[float, str]:
        """The share of the way, and the time left at this pace, in words."""
        iterations = min(now.n_iter / self.max_iter, 1.0)
        if math.isfinite(now.gap) and self.tol > 0:
            gap, seconds = self.first = self.first or (max(now.gap, self.tol), now.seconds)
            whole = math.log(gap / self.tol)
            done = 1.0 if whole == 0 or now.gap <= self.tol else max(math.log(gap / now.gap) / whole, 0.0)
            if done >= iterations:
                return done, _at_pace(now.seconds - seconds, done)
        return iterations, _at_pace(now.seconds, iterations)


def _at_pace(seconds: float, share: float) -> str:
    """The time that the rest takes if a share took so many seconds."""
    return "time left not known yet" if share < 0.02 else _left(seconds * (1.0 - share) / share)


def _left(seconds: float) -> str:
    if seconds < 90:
        return f"about {math.ceil(seconds)} s left"
    return f"about {math.ceil(seconds / 60)} min left"


def figure(value: Any) -> str:
    """A value as it is read."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {figure(entry)}" for name, entry in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(figure, value))
    return str(value)


def grid(title: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    """A table for the terminal; the first column is text. Names are shown as they are, brackets too."""
    table = Table(title=Text(title, style="table.title"), title_justify="left")
    for j, name in enumerate(header):
        table.add_column(Text(name), justify="left" if j == 0 else "right")
    for row in rows:
        table.add_row(*(Text(figure(entry)) for entry in row))
    return table


def silently_interrupted(caught: Sequence[Any]) -> bool:
    """Whether a fit among these warnings swallowed an interruption."""
    return any(str(warning.message).startswith(_INTERRUPTED) for warning in caught)
