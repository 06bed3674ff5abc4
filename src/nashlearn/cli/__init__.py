"""The command line: ``nashlearn train``, ``predict``, ``evaluate``, … Needs the extra ``cli``."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """What the console script ``nashlearn`` calls."""
    try:
        from nashlearn.cli.app import app
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("typer", "rich"):
            raise
        sys.exit(f"The command line needs {error.name}: pip install '.[cli]' in a clone of nashlearn.")
    app()
