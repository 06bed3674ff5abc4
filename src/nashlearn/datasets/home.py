"""Where the data lie."""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["VARIABLE", "data_home", "find"]

VARIABLE = "NASHLEARN_DATA"
_CACHES = {"win32": ("LOCALAPPDATA", "AppData/Local"), "darwin": ("XDG_CACHE_HOME", "Library/Caches")}


def _user_cache() -> Path:
    variable, default = _CACHES.get(sys.platform, ("XDG_CACHE_HOME", ".cache"))
    return Path(os.environ.get(variable) or Path.home() / default) / "nashlearn"


def data_home() -> Path:
    """The folder of the data: ``$NASHLEARN_DATA`` where set, else ``nashlearn`` in the user's cache directory.

    Raises
    ------
    FileNotFoundError
        Where that folder does not exist.
    """
    chosen = os.environ.get(VARIABLE)
    folder = Path(chosen).expanduser() if chosen else _user_cache()
    if not folder.is_dir():
        state = f"is {chosen!r}" if chosen else "is not set"
        raise FileNotFoundError(
            f"No data: {folder} is not a folder. The variable {VARIABLE} {state}; point it at the data, or put them "
            f"into {_user_cache()}. No data are shipped with nashlearn, nor downloaded."
        )
    return folder


def find(*parts: str) -> Path:
    """The file ``data_home()/parts``, which must exist."""
    path = data_home().joinpath(*parts)
    if not path.is_file():
        raise FileNotFoundError(
            f"No data file {path}. The variable {VARIABLE}, else {_user_cache()}, names the folder that should hold "
            f"{'/'.join(parts)}."
        )
    return path
