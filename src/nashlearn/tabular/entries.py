"""Entries of a column: missing ones, the different texts, numbers, dates, and errors that name the row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

import numpy as np

from nashlearn.datasets.files import whole_number
from nashlearn.tabular.dates import DateStyle
from nashlearn.tabular.numbers import NumberStyle

__all__ = [
    "GAPS",
    "RowError",
    "as_days",
    "as_numbers",
    "as_text",
    "distinct",
    "is_gap",
    "refuse_infinite",
    "row_number",
]

# Words for a missing entry among numbers and dates, in lower case.
GAPS = frozenset(
    {
        "",
        "?",
        "-",
        "--",
        "---",
        ".",
        "…",
        "unknown",
        "unk",
        "missing",
        "none",
        "null",
        "nil",
        "na",
        "n/a",
        "n.a.",
        "nan",
    }
    | {"nat", "#n/a", "#na", "not available", "not applicable", "not known", "undefined", "tbd", "n.d.", "#value!"}
)
_TRUTHS = {"true": "True", "TRUE": "True", "false": "False", "FALSE": "False"}  # as columns of truth values have them


class RowError(ValueError):
    """An entry that a model cannot take; ``row`` is the number of its row, from 1."""

    def __init__(self, message: str, row: int):
        super().__init__(message)
        self.row = row


def row_number(column: Any, position: int) -> int:
    """The number of a row, from 1: what an index called "row" says, as the commands give it, else its position."""
    return int(column.index[position]) if column.index.name == "row" else position + 1


def is_gap(text: str, na: Collection[str] = ()) -> bool:
    """Whether a text among numbers or dates stands for a missing entry."""
    return text.strip() in na or text.strip().lower() in GAPS


def distinct(column: Any, na: Collection[str] = ()) -> tuple[np.ndarray, list[str]]:
    """The different texts of a column, and for each row the place of its own; -1 where it is missing, or in ``na``."""
    import pandas

    whole = pandas.api.types.is_numeric_dtype(column.dtype)
    if not whole and pandas.api.types.infer_dtype(column, skipna=True) not in ("string", "empty"):
        column = pandas.Series(as_text(column, blank=None), index=column.index, dtype=object)
    codes, found = pandas.factorize(column)
    texts = [_text(entry) for entry in found.tolist()] if whole else list(map(str, found))
    if na:
        gone = np.array([*(text.strip() in na for text in texts), False])
        codes = np.where(gone[codes], -1, codes)
    return np.asarray(codes), texts


def as_text(column: Any, na: Collection[str] = (), blank: str | None = "") -> np.ndarray:
    """Text, the same for 3 and 3.0, as a column with gaps has it, and for true and True; ``blank`` where missing."""
    import pandas

    types = pandas.api.types
    if types.is_numeric_dtype(column.dtype) or types.infer_dtype(column, skipna=True) == "string":
        codes, texts = distinct(column, na)
        return np.array([*map(_text, texts), blank], dtype=object)[codes]
    entries = column.astype(object).where(column.notna(), None)
    every = (None if entry is None else _text(entry) for entry in entries)
    return np.array([blank if text is None or text in na else text for text in every], dtype=object)


def _text(entry: Any) -> str:
    if isinstance(entry, str):
        return _TRUTHS.get(entry) or whole_number(entry) or entry
    return str(int(entry)) if isinstance(entry, float | np.floating) and float(entry).is_integer() else str(entry)


def plain_numbers(texts: Iterable[str]) -> np.ndarray:
    """Numbers as Python writes them, NaN for other texts."""
    import pandas

    return pandas.to_numeric(pandas.Series(list(texts), dtype=object), errors="coerce").to_numpy(np.float64)


def as_numbers(column: Any, style: NumberStyle | None = None, na: Collection[str] = ()) -> np.ndarray:
    """Floats (n,), NaN where missing; an error names the first row that holds something else.

    A column that holds numbers already is taken as it is, whatever the style of those written as text.
    """
    from pandas.api import types

    if types.is_timedelta64_dtype(column.dtype):
        return column.dt.total_seconds().to_numpy(np.float64)
    if types.is_numeric_dtype(column.dtype):
        values = column.astype(np.float64).to_numpy(np.float64, na_value=np.nan)
    else:
        what = "numbers" if style is None else f"numbers written as {_example(style)}"
        values = _parsed(column, na, style.parse if style else plain_numbers, what, np.append, np.nan)
    refuse_infinite(values[:, None], [str(column.name)], column)
    return values


def _example(style: NumberStyle) -> str:
    """A number in a style."""
    number = f"1{style.thousands}234{style.decimal}5"
    return repr(f"{number} {style.unit}".strip())


def as_days(column: Any, style: DateStyle, na: Collection[str] = ()) -> Any:
    """A ``DatetimeIndex``, NaT where missing; an error names the first row that holds something else."""
    import pandas
    from pandas.api import types

    if types.is_datetime64_any_dtype(column.dtype):
        days = pandas.DatetimeIndex(column)
        return days if days.tz is None else days.tz_convert("UTC").tz_localize(None)
    what = f"dates written as {style.order()}"
    return _parsed(
        column, na, style.parse, what, lambda days, gap: days.append(pandas.DatetimeIndex([gap])), pandas.NaT
    )


def _parsed(column: Any, na: Collection[str], parse: Callable[..., Any], what: str, add: Any, gap: Any) -> Any:
    """What ``parse`` makes of the different texts, row by row."""
    import pandas

    codes, texts = distinct(column, na)
    values = parse(texts)
    strange = [i for i, bad in enumerate(pandas.isna(values)) if bad and not is_gap(texts[i], na)]
    wrong = np.flatnonzero(np.isin(codes, strange))
    if wrong.size:
        row = row_number(column, int(wrong[0]))
        raise RowError(
            f"The column {column.name!r} must hold {what}, as in training; row {row} has {texts[codes[wrong[0]]]!r}.",
            row,
        )
    return add(values, gap)[codes]


def refuse_infinite(values: np.ndarray, names: list[str], rows: Any) -> None:
    """An error that names the column and the row of the first infinity; ``rows`` has the index of the table."""
    for j, name in enumerate(names):
        wrong = np.isinf(values[:, j])
        if wrong.any():
            row = row_number(rows, int(wrong.argmax()))
            raise RowError(f"The column {name!r} holds infinity in row {row}; numbers must be finite.", row)
