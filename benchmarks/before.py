"""What version 0.1 had, beside what is measured now: more columns for tables of the page.

The tables of 0.1 are kept in ``results/version-0.1.json`` as they were measured then, on another day and a machine of
the same kind. So columns are shown again that hold ratios to a peer in the same run, exponents or memory, and one time,
of a fit that takes minutes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

__all__ = ["beside"]

_FILE = Path(__file__).parent / "results" / "version-0.1.json"


class _Again(NamedTuple):
    """How many columns name a row, which columns are shown again, and their names in 0.1 where those differ."""

    keys: int
    columns: Sequence[str]
    then: Mapping[str, str] = MappingProxyType({})


_AGAIN = {
    ("losses", "Closed forms and published algorithms"): _Again(3, ["theirs / ours"]),
    ("costs", "Random cost matrices"): _Again(1, ["HiGHS / ours"]),
    ("training", "Training time, ratios"): _Again(
        2,
        ["ours / LIBLINEAR at 1e-3", "at 1e-6", "ours 1e-3 / its default"],
        {"ours 1e-3 / its default": "ours 1e-3 / LogisticRegression"},
    ),
    ("kernels", "Kernels"): _Again(2, ["ours / SVC", "ours / one-vs-rest", "predict, ours / SVC"]),
    ("kernels", "Kernels, 20,000 rows"): _Again(0, ["fit", "peak memory of the process"]),
    ("growth", "Growth"): _Again(1, ["exponent"]),
    ("memory", "Memory"): _Again(2, ["growth / yardstick"]),
    ("matching", "The exact game"): _Again(1, ["HiGHS simplex / ours", "HiGHS interior point / ours"]),
    ("trees", "Projection onto trees with one root"): _Again(2, ["Frank-Wolfe / ours"]),
    ("trees", "Games over trees with one root"): _Again(2, ["/ ours"]),
    ("markov", "One evaluation and one crfsuite iteration"): _Again(1, ["ours / crfsuite"]),
}


@cache
def _tables() -> dict[tuple[str, str], dict[str, Any]]:
    kept = json.loads(_FILE.read_text(encoding="utf-8"))
    return {(part, table["title"]): table for part, tables in kept.items() for table in tables}


def beside(part: str, table: dict[str, Any]) -> dict[str, Any]:
    """The table with a column behind each of those that 0.1 had too; rows that it had not have none."""
    again, old = _AGAIN.get((part, table["title"])), _tables().get((part, table["title"]))
    if again is None or old is None:
        return table
    known = {tuple(row[: again.keys]): row for row in old["rows"]}
    columns, rows = list(table["columns"]), [list(row) for row in table["rows"]]
    for name in again.columns:
        at, before = columns.index(name) + 1, old["columns"].index(again.then.get(name, name))
        columns.insert(at, f"{name}, 0.1")
        for row in rows:
            there = known.get(tuple(row[: again.keys]))
            row.insert(at, there[before] if there else "–")
    return {**table, "columns": columns, "rows": rows}
