"""The different texts of a column, and errors about those that do not fit in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nashlearn.tabular.entries import RowError, distinct, is_gap, row_number

__all__ = ["FEW", "Texts", "cut", "refuse_some", "texts_of"]

FEW = 10  # texts that may be mistakes
_LONGEST = 40  # of a text that is shown


@dataclass(frozen=True)
class Texts:
    """The different texts of a column but for gaps.

    ``codes`` has the place of each row's text, -1 for gaps; ``counts`` how often each is found; ``gaps`` the texts that
    stand for missing entries; ``na`` those that the user has named.
    """

    column: Any
    codes: np.ndarray
    texts: list[str]
    counts: np.ndarray
    gaps: tuple[str, ...]
    na: frozenset[str]

    @property
    def n(self) -> int:
        """Entries that are not missing."""
        return int(self.counts.sum())

    def share(self, read: np.ndarray) -> float:
        """The share of entries whose texts were read."""
        return float(self.counts[read].sum() / self.n)

    def row_of(self, text: str) -> int:
        """The number of the first row that has a text."""
        return row_number(self.column, int(np.argmax(self.codes == self.texts.index(text))))

    def with_gaps(self) -> str:
        """The end of a line about the column that names its gaps."""
        return f"; {', '.join(map(repr, self.gaps[:3]))} taken for missing" if self.gaps else ""


def texts_of(column: Any, na: frozenset[str]) -> Texts:
    """The texts of a column, which may hold numbers."""
    codes, texts = distinct(column)
    counts = np.bincount(codes[codes >= 0], minlength=len(texts))
    gap = np.array([is_gap(text, na) for text in texts], dtype=bool)
    place = np.append(np.where(gap, -1, np.cumsum(~gap) - 1), -1)
    gaps = tuple(text for text, one in zip(texts, gap, strict=True) if one)
    kept = [text for text, one in zip(texts, gap, strict=True) if not one]
    return Texts(column, place[codes], kept, counts[~gap], gaps, na)


def refuse_some(texts: Texts, read: np.ndarray, what: str) -> None:
    """Refuse a column for the texts that were not read: with the first row that has one, and what to do."""
    strange = [text for text, known in zip(texts.texts, read, strict=True) if not known]
    if not strange:  # all entries are gaps
        raise ValueError(f"The column {texts.column.name!r} {what}: all of its entries are missing.")
    name, row = texts.column.name, texts.row_of(strange[0])
    them = "it" if len(strange) == 1 else f"these {len(strange)} texts"
    few = f"take {them} for missing (--na {_listed(strange)}), or " if len(strange) <= FEW else ""
    raise RowError(
        f"The column {name!r} {what}: row {row} has {cut(strange[0])!r}. Correct it, or {few}take the column for "
        f"categories (--as {name}=category).",
        row,
    )


def cut(text: str) -> str:
    """A text, short enough for a line."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _listed(strange: Sequence[str]) -> str:
    """Texts as ``--na`` takes them."""
    listed = ",".join(map(cut, strange[:3])) + (",…" if len(strange) > 3 else "")
    return f"'{listed}'" if re.search(r"[^\w,.-]", listed) else listed
