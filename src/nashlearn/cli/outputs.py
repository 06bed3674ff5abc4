"""Files that the commands write: checked before the work."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

__all__ = ["check_writable"]


def check_writable(*paths: Path | None, inputs: Iterable[str | Path | None] = ()) -> None:
    """Refuse, before any work, paths that could not be written to in the end, or that are needed for something else.

    ``inputs`` are what the command reads: files, ``-`` for standard input, or None.
    """
    read = {Path(one).resolve() for one in inputs if one is not None and str(one) != "-"}
    taken: dict[Path, Path] = {}
    for path in paths:
        if path is None:
            continue
        _check_place(path)
        place = path.resolve()
        if place in read:
            raise ValueError(f"{path} cannot be written: the command reads it. Choose another name.")
        if place in taken:
            raise ValueError(f"{path} cannot be written: {taken[place]} is the same file. Choose another name.")
        taken[place] = path


def _check_place(path: Path) -> None:
    if str(path) == "-":
        raise ValueError("- is no name of a file to write; predict writes to standard output where --out is left out.")
    folder = path.resolve().parent
    reasons = {
        f"there is no folder {folder}. Create it, or choose another.": not folder.is_dir(),
        "it is a folder. Choose the name of a file.": path.is_dir(),
        "it is a device or a pipe. Choose the name of a file.": path.exists() and not path.is_file(),
        "no permission. Choose another place.": path.exists() and not os.access(path, os.W_OK),
    }
    if any(reasons.values()):
        raise ValueError(f"{path} cannot be written: {next(why for why, holds in reasons.items() if holds)}")
    try:
        handle, name = tempfile.mkstemp(dir=folder)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ValueError(f"{path} cannot be written: {reason}. Choose another place.") from None
    os.close(handle)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name)
