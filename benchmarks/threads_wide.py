"""Threads on a machine with many cores: the part ``threads``, kept apart from that of the machine of all other parts.

python -m benchmarks threads_wide
"""

from __future__ import annotations

from typing import Any

from benchmarks import threads

__all__ = ["run"]


def run() -> tuple[list[dict[str, Any]], Any]:
    """The same jobs; their table says where it was made."""
    (table,), records = threads.run()
    return [{**table, "title": "Threads, many cores"}], records
