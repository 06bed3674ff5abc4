"""The folder of this library in the user's cache directory."""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["user_cache"]

_CACHES = {"win32": ("LOCALAPPDATA", "AppData/Local"), "darwin": ("XDG_CACHE_HOME", "Library/Caches")}


def user_cache() -> Path:
    """Where the system keeps what programs can make again; the folder need not exist."""
    variable, default = _CACHES.get(sys.platform, ("XDG_CACHE_HOME", ".cache"))
    return Path(os.environ.get(variable) or Path.home() / default) / "nashlearn"
