"""Which columns each table has: ours, a live baseline where a package gives one, and the papers' figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nashlearn.datasets import multiclass_names, ordinal_names
from reproduce.papers import PAPERS

__all__ = ["GROUPS", "TABLES", "Column", "Table"]

Losses = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def _zero_one(answers: np.ndarray, classes: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """1 for a wrong label, 1/2 for none."""
    return np.where(answers < 0, 0.5, classes[answers] != truth)


def _absolute(answers: np.ndarray, classes: np.ndarray, truth: np.ndarray) -> np.ndarray:
    return np.abs(classes[answers] - truth).astype(float)


@dataclass(frozen=True)
class Column:
    """A heading, the method that fills it (None: quoted only) and its name in the paper's table (None: not there)."""

    heading: str
    method: str | None
    paper: str | None


@dataclass(frozen=True)
class Table:
    """A table: its sets, columns, loss, and how losses are shown. ``margin``: how far an average may fall behind."""

    key: str
    title: str
    room: str
    sets: tuple[str, ...]
    columns: tuple[Column, ...]
    losses: Losses
    accuracy: bool = False
    margin: float = 0.0

    @property
    def methods(self) -> list[str]:
        """The methods that are run."""
        return [column.method for column in self.columns if column.method is not None]

    @property
    def paper(self) -> dict[str, Any]:
        """The published table."""
        return PAPERS[self.key]

    def shown(self, loss: np.ndarray | float) -> Any:
        """A loss in the unit of the table."""
        return 100.0 * (1.0 - loss) if self.accuracy else loss


_MULTICLASS, _ORDINAL = multiclass_names(), ordinal_names()

TABLES: dict[str, Table] = {
    "table2_linear": Table(
        "II",
        "Zero-one loss, linear: accuracy in percent",
        "multiclass",
        _MULTICLASS,
        (
            Column("AL0-1", "al01", "AL linear"),
            Column("CS", "cs", "CS linear"),
            Column("logistic", "logistic", None),
            Column("WW", None, "WW linear"),
            Column("LLW", None, "LLW linear"),
        ),
        _zero_one,
        accuracy=True,
        margin=0.3,
    ),
    "table2_gaussian": Table(
        "II",
        "Zero-one loss, Gaussian kernel: accuracy in percent",
        "multiclass",
        _MULTICLASS,
        (
            Column("AL0-1", "al01-rbf", "AL gaussian"),
            Column("SVC 1-vs-1", "svc-rbf", None),
            Column("WW", None, "WW gaussian"),
            Column("CS", None, "CS gaussian"),
            Column("LLW", None, "LLW gaussian"),
        ),
        _zero_one,
        accuracy=True,
        margin=0.3,
    ),
    "table4": Table(
        "IV",
        "Ordinal classification, linear: mean absolute error",
        "ordinal",
        _ORDINAL,
        (
            Column("AL-th", "ord-th", "AL^ord-th"),
            Column("AL-mc", "ord-mc", "AL^ord-mc"),
            Column("AT", "mord-at", "AT"),
            Column("IT", "mord-it", "IT"),
            *(Column(name, None, name) for name in ("RED^th", "RED^mc", "CSOSR", "CSOVO", "CSOVA")),
        ),
        _absolute,
        margin=0.01,
    ),
    "table5": Table(
        "V",
        "Ordinal classification, Gaussian kernel: mean absolute error",
        "ordinal",
        _ORDINAL[:8],
        (
            Column("AL-th", "ord-th-rbf", "AL^ord-th"),
            Column("SVORIM", "svorim-rbf", "SVORIM"),
            Column("SVOREX", "svorex-rbf", "SVOREX"),
            Column("REDSVM", "redsvm-rbf", None),
        ),
        _absolute,
        margin=0.01,
    ),
    "table6_linear": Table(
        "VI",
        "Abstention at cost 1/2, linear: loss and percent abstained",
        "multiclass",
        _MULTICLASS,
        (
            Column("AL-abstain", "abstain", "AL linear"),
            Column("OVA", "ova-abstain", "OVA linear"),
            Column("CS", "cs-abstain", "CS linear"),
        ),
        _zero_one,
        margin=0.01,
    ),
    "table6_gaussian": Table(
        "VI",
        "Abstention at cost 1/2, Gaussian kernel: loss and percent abstained",
        "multiclass",
        _MULTICLASS,
        (
            Column("AL-abstain", "abstain-rbf", "AL gaussian"),
            Column("OVA", "ova-abstain-rbf", "OVA gaussian"),
            Column("CS", None, "CS gaussian"),
        ),
        _zero_one,
        margin=0.01,
    ),
}

GROUPS = {
    "II": ("table2_linear", "table2_gaussian"),
    "1": ("table1",),
    "IV": ("table4",),
    "V": ("table5",),
    "VI": ("table6_linear", "table6_gaussian"),
    "XII": ("table12",),
    "XIII": ("table13",),
    "tracking": ("tracking",),
    "MANA": ("hidden_chain", "sudoku"),
    "AGM": ("sentiment", "roles"),
    "labelling": ("labelling",),
    "trees": ("tree_figures", "parsers", "laptop_parser"),
    "sensitivity": ("sensitivity",),
}
