"""A table's stored cells put together: means, deviations, tests, averages. No layout here."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import wilcoxon

from reproduce.methods import METHODS
from reproduce.store import Store
from reproduce.tables import Column, Table

__all__ = ["Cell", "Summary", "explanation", "summarise"]

_LEVEL = 0.05
_EXPLANATIONS = Path(__file__).parent / "explanations.json"


@dataclass(frozen=True)
class Cell:
    """A method on a set: what each split gave, in the unit of the table, and the parameters that were tuned."""

    values: np.ndarray
    abstained: float
    strength: float
    gamma: float

    @property
    def mean(self) -> float:
        """Over the splits."""
        return float(self.values.mean())

    @property
    def sd(self) -> float:
        """Over the splits, of the sample."""
        return float(self.values.std(ddof=1)) if self.values.size > 1 else 0.0


@dataclass(frozen=True)
class Summary:
    """All finished cells of a table, with the seconds they took, the largest gap and the number of unconverged fits."""

    table: Table
    cells: dict[tuple[str, str], Cell]
    seconds: float
    gap: float
    warned: int

    @property
    def sets(self) -> list[str]:
        """Sets of the table for which any method is finished."""
        return [name for name in self.table.sets if any(name == known for known, _ in self.cells)]

    def paper(self, column: Column, name: str) -> tuple[float, float] | None:
        """The published mean and standard deviation."""
        if column.paper is None:
            return None
        printed = self.table.paper
        position = printed["sets"].index(name)
        return tuple(printed["columns"][column.paper][what][position] for what in ("mean", "sd"))

    def deviation(self, column: Column, name: str) -> float | None:
        """Distance from the published mean in published standard deviations; positive is better than published."""
        published, cell = self.paper(column, name), self.cells.get((name, column.method))
        if published is None or cell is None:
            return None
        sign = 1.0 if self.table.accuracy else -1.0
        return sign * (cell.mean - published[0]) / published[1]

    def average(self, column: Column) -> float | None:
        """Mean over the sets, where all that any method has are there."""
        if column.method is None or any((name, column.method) not in self.cells for name in self.sets):
            return None
        return float(np.mean([self.cells[name, column.method].mean for name in self.sets]))

    def paper_average(self, column: Column) -> float | None:
        """The published figures' mean over the same sets; over all of them, the average as printed."""
        if column.paper is None:
            return None
        if len(self.sets) == len(self.table.paper["sets"]):
            return self.table.paper["columns"][column.paper]["average"]
        return float(np.mean([self.paper(column, name)[0] for name in self.sets]))

    def best(self, name: str) -> set[str]:
        """Live methods that are best on a set, or not significantly worse (Wilcoxon signed-rank, 0.05)."""
        live = {method: cell for (known, method), cell in self.cells.items() if known == name}
        sign = 1.0 if self.table.accuracy else -1.0
        leader = max(live, key=lambda method: sign * live[method].mean)
        return {method for method in live if not _worse(live[method].values, live[leader].values)}


def _worse(values: np.ndarray, best: np.ndarray) -> bool:
    n = min(values.size, best.size)  # in a run that is not complete
    difference = values[:n] - best[:n]
    return bool(np.any(difference)) and float(wilcoxon(difference).pvalue) < _LEVEL


def summarise(table: Table, store: Store) -> Summary:
    """The cells of a store whose splits are judged."""
    grouped: dict[tuple[str, str], dict[int, dict[str, Any]]] = {}
    for record in store:
        _, name, method, step, split, *_ = record["key"]
        if step == "split":
            grouped.setdefault((name, method), {})[split] = record
    cells = {}
    for pair, splits in grouped.items():
        records = [splits[split] for split in sorted(splits)]
        cells[pair] = Cell(
            np.array([table.shown(record["loss"]) for record in records]),
            100.0 * float(np.mean([record["abstained"] for record in records])),
            records[-1]["key"][6],
            records[-1]["key"][5],
        )
    ours = [
        record
        for pair, splits in grouped.items()
        if METHODS[pair[1]].package == "nashlearn"
        for record in splits.values()
    ]
    return Summary(
        table,
        cells,
        sum(record["seconds"] for record in store),
        max((record["gap"] for record in ours), default=0.0),
        sum(bool(record["warned"]) for record in ours),
    )


def explanation(table_name: str, name: str, method: str) -> str:
    """The line that explains a deviation, from ``explanations.json``."""
    known = json.loads(_EXPLANATIONS.read_text(encoding="utf-8")) if _EXPLANATIONS.exists() else {}
    return known.get(table_name, {}).get(name, {}).get(method, "not explained yet")
