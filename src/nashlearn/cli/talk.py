"""What the commands say: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

__all__ = ["Talk", "Trained"]

_EVERY = 5.0  # seconds between two lines where standard error is no terminal
_INTERRUPTED = "Training was interrupted"


@dataclass
class Trained:
    """How a training ended."""

    seconds: float = 0.0
    interrupted: bool = False
    warnings: list[str] = field(default_factory=list)


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

    def result(self, data: Mapping[str, Any], show: Callable[[Console], None] | None = None) -> None:
        """The answer of a command: as JSON, or as ``show`` prints it, by default name and value a line."""
        if self.json:
            print(json.dumps(_plain(data), ensure_ascii=False))
            return
        out = Console(highlight=False, soft_wrap=True, emoji=False)
        if show is not None:
            show(out)
            return
        width = max(map(len, data), default=0)
        for name, value in data.items():
            out.print(f"{name.replace('_', ' '):{width}}  {figure(value)}", markup=False)

    @contextmanager
    def counting(self, what: str, total: int) -> Iterator[Callable[[], None]]:
        """A bar with the time left; calls advance it by one."""
        if self.quiet or not self.err.is_terminal:
            yield self._lines(what, total)
            return
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, TextColumn("left"), console=self.err, transient=True) as bar:
            task = bar.add_task(what, total=total)
            yield lambda: bar.advance(task)

    def _lines(self, what: str, total: int) -> Callable[[], None]:
        began = spoke = time.monotonic()
        done = 0

        def advance() -> None:
            nonlocal done, spoke
            done += 1
            now = time.monotonic()
            if now - spoke >= _EVERY:
                spoke = now
                self.note(f"{what}: {done} of {total}, {_left((now - began) * (total - done) / done)}")

        return advance

    @contextmanager
    def training(self, what: str, tol: float, max_iter: int) -> Iterator[tuple[Callable[[Any], None], Trained]]:
        """A bar of the certificate's way to ``tol``: a callback for the estimator, and how the training ended."""
        trained, began = Trained(), time.monotonic()
        with (
            warnings.catch_warnings(record=True) as caught,
            self._certificate_bar(what, _Way(tol, max_iter)) as callback,
        ):
            warnings.simplefilter("always")
            yield callback, trained
        trained.seconds = time.monotonic() - began
        messages = [str(warning.message) for warning in caught if issubclass(warning.category, UserWarning)]
        trained.interrupted = any(message.startswith(_INTERRUPTED) for message in messages)
        trained.warnings = [message for message in messages if not message.startswith(_INTERRUPTED)]
        for message in dict.fromkeys(trained.warnings):
            self.warn(message)
        if trained.interrupted:
            self.warn("interrupted: the best model so far is kept.")

    @contextmanager
    def _certificate_bar(self, what: str, way: _Way) -> Iterator[Callable[[Any], None]]:
        if self.quiet or not self.err.is_terminal:
            spoke = time.monotonic()

            def speak(now: Any) -> None:
                nonlocal spoke
                share, left = way.share(now)
                if time.monotonic() - spoke >= _EVERY:
                    spoke = time.monotonic()
                    self.note(f"{what}: {_state(now)}, {100 * share:.0f} %, {left}")

            yield speak
            return
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[state]}"))
        with Progress(*columns, TimeElapsedColumn(), console=self.err, transient=True) as bar:
            task = bar.add_task(what, total=1.0, state="starting (the first run compiles for a minute or two)")

            def show(now: Any) -> None:
                share, left = way.share(now)
                bar.update(task, completed=share, state=f"{_state(now)}, {left}")

            yield show


def _state(now: Any) -> str:
    return f"iteration {now.n_iter}, gap {now.gap:.1e}"


class _Way:
    """How far training has come: the gap from the first one to ``tol``, on a logarithmic scale, or the iterations."""

    def __init__(self, tol: float, max_iter: int):
        self.tol, self.max_iter = tol, max_iter
        self.first: tuple[float, float] | None = None

    def share(self, now: Any) -> tuple[float, str]:
        """The share of the way, and the time left at this pace, in words."""
        iterations = min(now.n_iter / self.max_iter, 1.0)
        if not math.isfinite(now.gap):
            return iterations, _at_pace(now.seconds, iterations)
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


def _plain(value: Any) -> Any:
    """``value`` with NumPy's numbers as Python's, and null for numbers that are not finite."""
    from nashlearn.report.page import plain

    return plain(value)


def silently_interrupted(caught: Sequence[Any]) -> bool:
    """Whether a fit among these warnings swallowed an interruption."""
    return any(str(warning.message).startswith(_INTERRUPTED) for warning in caught)
