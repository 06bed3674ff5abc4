"""Names of a package that are imported on first use."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["lazily"]


def lazily(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The functions ``__getattr__`` and ``__dir__`` of a package whose names live in other modules.

    Parameters
    ----------
    package : str
        The package's ``__name__``.
    homes : mapping of str to str
        The module of each name. A name whose module is ``package.name`` is that module itself.
    """

    def find(name: str) -> Any:
        """Import ``name`` from its room, once: later look-ups find it in the package's namespace."""
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        room = importlib.import_module(homes[name])
        value = room if room.__name__ == f"{package}.{name}" else getattr(room, name)
        setattr(sys.modules[package], name, value)
        return value

    return find, lambda: sorted({*vars(sys.modules[package]), *homes})
