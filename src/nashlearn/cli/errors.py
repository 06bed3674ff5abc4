"""The one place where expected errors become messages and exit codes."""

from __future__ import annotations

import csv
import errno
import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import typer
from typer.core import TyperGroup

from nashlearn.datasets.home import text_lines

__all__ = ["EXIT_CODES", "Commands", "named", "read_text", "reading"]

T = TypeVar("T", bound=Sized)

INTERRUPTED = 130
EXIT_CODES = (
    "Exit codes: 0 done; 1 the data, the model or a file is not as needed; 2 wrong usage; 130 interrupted. "
    "Set NASHLEARN_DEBUG=1 to see where an error comes from."
)


class Commands(TyperGroup):
    """A group whose commands end with a message of a line or two where something expected went wrong."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            print("interrupted: what was not complete was not written.", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None
        except (ValueError, OSError, MemoryError, ModuleNotFoundError) as error:
            if os.environ.get("NASHLEARN_DEBUG"):
                raise
            print(f"error: {_message(error)}", file=sys.stderr)
            raise typer.Exit(1) from None


def _message(error: BaseException) -> str:
    """What happened and what to do, in a line or two."""
    if isinstance(error, ModuleNotFoundError):
        return (
            f"{error.name} is not installed; pip install '.[cli,onnx,tracking]' in a clone of nashlearn has everything."
        )
    if isinstance(error, MemoryError):
        return f"not enough memory. {error} Use fewer rows, or a model without a kernel."
    if isinstance(error, OSError) and error.errno is not None:
        file = f"{error.filename}: " if error.filename else ""
        if error.errno == errno.ENOSPC:
            return f"{file}the disk is full; nothing was written. Free some space, or choose another place with --out."
        return f"{file}{(error.strerror or str(error)).lower()}."
    return " ".join(str(error).split())


def named(data: str) -> str:
    """What messages call a file of data."""
    return "standard input" if data == "-" else data


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Errors of text files with the name of the file in front."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} is not text in UTF-8: {error.reason} at byte {error.start}.") from None
    except csv.Error as error:
        raise ValueError(f"{name} is no CSV file: {error}.") from None


def read_text(data: str | Path, parse: Callable[[Iterable[str], str], T], what: str) -> T:
    """What ``parse`` makes of the lines of a file or of standard input, which must hold some ``what``."""
    name = named(str(data))
    with reading(name):
        lines = io.StringIO(sys.stdin.buffer.read().decode("utf-8-sig")) if str(data) == "-" else text_lines(data)
        found = parse(lines, name)
    if not len(found):
        raise ValueError(f"{name} is empty: it holds no {what}.")
    return found
