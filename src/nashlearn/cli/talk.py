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
from nashlearn.training.outlook import Seen, outlook

__all__ = ["Talk", "Trained"]

_ENOUGH = 0.02  # of the iterations that are allowed, before their pace tells a time
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
                gap = f"gap {now.gap:.1e}" if math.isfinite(now.gap) else "no certificate yet"
                show(share, f"iteration {now.n_iter} of at most {max_iter}, {gap}, {100 * share:.0f} %, {left}")

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
        self.seen: list[Seen] = []

    def share(self, now: Any) -> tuple[float, str]:
        """The share of the way, and the time left in words: drawn from the gaps, never more than iterations allow."""
        self.seen.append(Seen(now.n_iter, now.seconds, now.gap))
        share = iterations = min(now.n_iter / self.max_iter, 1.0)
        first = next((one for one in self.seen if math.isfinite(one.gap)), None)
        if first is not None and self.tol > 0:
            whole = math.log(max(first.gap, self.tol) / self.tol)
            arrived = whole == 0 or now.gap <= self.tol
            share = max(iterations, 1.0 if arrived else math.log(first.gap / now.gap) / whole)
        return share, "about 0 s left" if share == 1.0 else self._left(now, iterations)

    def _left(self, now: Any, iterations: float) -> str:
        # What comes before the first round, reading and laying out, says nothing of the pace.
        start, ahead = self.seen[0], outlook(self.seen, self.tol)
        steps = now.n_iter - start.n_iter
        most = (now.seconds - start.seconds) * (self.max_iter - now.n_iter) / steps if steps > 0 else math.inf
        if ahead is not None:
            return _left(min(ahead.seconds, most))
        known = math.isfinite(most) and iterations >= _ENOUGH
        return f"at most {_left(most)}" if known else "time left not known yet"


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
