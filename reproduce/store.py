"""Results as JSON lines: one line a cell, appended when the cell is done, so that a run can be taken up again."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["Store"]


class Store:
    """The cells of one table. A cell's ``key`` names it; of two with the same key the later counts."""

    def __init__(self, path: Path):
        self.path = path
        self._cells: dict[str, dict[str, Any]] = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                self._take(line)

    def _take(self, line: str) -> None:
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            return  # torn by an interruption: that cell is run again
        self._cells[self._name(record["key"])] = record

    @staticmethod
    def _name(key: Any) -> str:
        return json.dumps(key)

    def __contains__(self, key: Any) -> bool:
        return self._name(key) in self._cells

    def __getitem__(self, key: Any) -> dict[str, Any]:
        return self._cells[self._name(key)]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._cells.values())

    def add(self, record: dict[str, Any]) -> None:
        """Write one cell as one line, whole or not at all, and remember it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps(record)
        torn = self.path.exists() and self.path.read_bytes()[-1:] not in (b"", b"\n")
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(handle, (("\n" if torn else "") + line + "\n").encode())
            os.fsync(handle)
        finally:
            os.close(handle)
        self._take(line)
