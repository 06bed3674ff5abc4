"""Options that several commands share, and commands made of a task's fields."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from copy import copy
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer

Model = Annotated[Path, typer.Argument(help="A saved model.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]
Folds = Annotated[int, typer.Option("--folds", min=2, help="Parts of the cross-validation of --tune.")]
Tune = Annotated[bool, typer.Option("--tune", help="Choose parameters by cross-validation on the loss itself.")]
As = Annotated[
    list[str] | None,
    typer.Option(
        "--as",
        metavar="COLUMN=KIND",
        help="What a column holds, where the guess is wrong: number, category, date, text, id, drop, decimal-comma, "
        "decimal-point, day-first, month-first. May be given again.",
    ),
]
Missing = Annotated[
    list[str] | None,
    typer.Option("--na", metavar="TEXT,TEXT", help="Texts that stand for missing entries, as unknown,?,-."),
]


class Tuning(StrEnum):
    """How parameters are chosen."""

    FAST = "fast"
    OFF = "off"
    FULL = "full"


Search = Annotated[
    Tuning,
    typer.Option(
        "--tune",
        help="fast: choose parameters that are not given on a held-out part, then train on everything. off: take the "
        "defaults. full: cross-validate a grid of them.",
    ),
]
TuneTime = Annotated[
    float, typer.Option("--tune-time", min=0.0, help="CPU seconds after which --tune fast tries nothing new.")
]
ON_THESE = "Write an HTML report on these data."


def pairs(given: Sequence[str] | None) -> dict[str, str]:
    """Columns and kinds of ``--as``; a name may hold =."""
    found: dict[str, str] = {}
    for one in given or ():
        name, equals, kind = one.rpartition("=")
        if not equals or not name:
            raise ValueError(f"--as needs a column and a kind, as in --as zip=category; got {one!r}.")
        if found.setdefault(name, kind) != kind:
            raise ValueError(f"--as says two things of the column {name!r}: {found[name]} and {kind}.")
    return found


def listed(given: Sequence[str] | None) -> list[str]:
    """Texts with commas between them, of all times that an option was given."""
    return list(dict.fromkeys(part.strip() for one in given or () for part in one.split(",")))


def positive(text: str) -> float:
    """A number above 0, or an error that names the option."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise typer.BadParameter(f"must be a number above 0; got {text!r}.")
    return number


class Command:
    """A command on a task, as a decorator of a method whose docstring is its help.

    Parameters
    ----------
    names : str
        Fields of the task with spaces between them, in the order of the help page: those that must be given, a bar, and
        those that may, to which ``json`` and ``quiet`` are added.
    **words : str
        Help of options that this command words in its own way.
    """

    def __init__(self, names: str, **words: str):
        self.required, self.optional = (part.split() for part in f"{names} json quiet".split("|"))
        self.words = words
        self.help: str | None = None

    def __call__(self, described: Callable[..., None]) -> Command:
        self.help = described.__doc__
        return self

    def on(self, task: Callable[..., Any], run: Callable[[Any], None]) -> Callable[..., None]:
        """The function that Typer turns into a command: it makes the task of the options and hands it to ``run``."""
        hints, fields = get_type_hints(task, include_extras=True), inspect.signature(task).parameters

        def parameter(name: str) -> inspect.Parameter:
            kind, info = get_args(hints[name])
            info = copy(info)
            info.help = self.words.get(name, info.help)
            default = inspect.Parameter.empty if name in self.required else fields[name].default
            return fields[name].replace(default=default, annotation=Annotated[kind, info])

        def call(**given: Any) -> None:
            run(task(**given))

        call.__doc__ = self.help
        signature = inspect.Signature([parameter(name) for name in self.required + self.optional])
        call.__signature__ = signature  # type: ignore[attr-defined]
        return call
