"""Compiled kernels, one row, one node or one tree at a time.

Each module is compiled for several levels of the processor from the same C; this package's path gets the folder that
suits the machine: ``v3`` where there are AVX2, FMA and BMI2, else ``v2``; ``default`` where the processor is no x86-64.
The environment variable NASHLEARN_CPU forces one by its name. Results depend on the level by rounding only.
"""

from __future__ import annotations

import os
from pathlib import Path

from nashlearn.kernels.cpu import runs_v3

__all__ = ["level"]


def _chosen(made: set[str], wanted: str) -> str:
    """The folder to load from, among those that were made."""
    if wanted:
        if wanted not in made:
            raise ImportError(f"NASHLEARN_CPU must be one of {', '.join(sorted(made))}; got {wanted!r}.")
        if wanted == "v3" and not runs_v3():
            raise ImportError("NASHLEARN_CPU asks for v3, but this processor lacks AVX2, FMA or BMI2.")
        return wanted
    for name in ("v3", "v2", "default"):
        if name in made and (name != "v3" or runs_v3()):
            return name
    raise ImportError("the kernels of nashlearn are not compiled: run `pip install -e .` in the checkout again.")


def _levels() -> set[str]:
    names = ("v2", "v3", "default", "sanitized")
    return {name for folder in __path__ for name in names if any(Path(folder, name).glob("loss.*"))}


level = _chosen(_levels(), os.environ.get("NASHLEARN_CPU", ""))
"""The level in use."""
__path__ = [*__path__, *(str(Path(folder, level)) for folder in __path__)]
