"""The published figures, from ``papers.json``: the only numbers in this package that were not computed here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["PAPERS", "train_size"]

PAPERS: dict[str, Any] = json.loads((Path(__file__).parent / "papers.json").read_text(encoding="utf-8"))
_SIZES = {"multiclass": "1", "ordinal": "III"}


def train_size(room: str, name: str) -> int:
    """Training rows of a split, as the papers' tables of sizes have it."""
    sizes = PAPERS[_SIZES[room]]
    return sizes["columns"]["train"][sizes["sets"].index(name)]
