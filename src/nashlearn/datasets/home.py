"""Where the data lie."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from nashlearn.cache import user_cache

__all__ = ["VARIABLE", "bunch", "check_name", "data_home", "encoded", "find", "text_lines"]

VARIABLE = "NASHLEARN_DATA"


def data_home() -> Path:
    """The folder of the data: ``$NASHLEARN_DATA`` where set, else ``nashlearn`` in the user's cache directory.

    Raises
    ------
    FileNotFoundError
        Where that folder does not exist.
    """
    chosen = os.environ.get(VARIABLE)
    folder = Path(chosen).expanduser() if chosen else user_cache()
    if not folder.is_dir():
        state = f"is {chosen!r}" if chosen else "is not set"
        raise FileNotFoundError(
            f"No data: {folder} is not a folder. The variable {VARIABLE} {state}; point it at the data, or put them "
            f"into {user_cache()}. No data are shipped with nashlearn, nor downloaded."
        )
    return folder


def find(*parts: str) -> Path:
    """The file ``data_home()/parts``, which must exist."""
    path = data_home().joinpath(*parts)
    if not path.is_file():
        raise FileNotFoundError(
            f"No data file {path}. The variable {VARIABLE}, else {user_cache()}, names the folder that should hold "
            f"{'/'.join(parts)}."
        )
    return path


def check_name(what: str, name: str, names: Iterable[str]) -> None:
    """Refuse a name that is not among those known."""
    if name not in names:
        raise ValueError(f"No {what} is called {name!r}; choose from {', '.join(names)}.")


def bunch(**parts: Any) -> Any:
    """What loaders return: a ``sklearn.utils.Bunch``, imported when the first one is made."""
    from sklearn.utils import Bunch

    return Bunch(**parts)


def text_lines(path: str | os.PathLike[str]) -> Iterator[str]:
    """The lines of a text file in UTF-8, gzipped where its name ends in ``.gz``, one at a time.

    Raises
    ------
    ValueError
        With the path, and the number of the line: bytes that are not UTF-8, or a damaged archive.
    """
    path = Path(path)
    number = 1
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}, line {number}: not a text file in UTF-8: {error}.") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path}, line {number}: not a gzipped text file: {error}.") from None


def encoded(path: str | os.PathLike[str], text: str) -> bytes:
    """Text in UTF-8 as it stands in a file, gzipped where its name ends in ``.gz``; the same for the same text."""
    return gzip.compress(text.encode(), mtime=0) if Path(path).suffix == ".gz" else text.encode()
