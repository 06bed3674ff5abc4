"""Dates and times as people write them, and what a model reads in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

__all__ = ["DATE_FORMATS", "DateStyle", "find_date_style", "with_parts"]

ISO = "ISO8601"
_DAYS = ["%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d", "%m-%d-%Y", "%d-%m-%Y", "%d.%m.%y", "%m/%d/%y", "%d/%m/%y"]
_DAYS += ["%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%d-%b-%y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y", "%B %d %Y", "%Y%m%d"]
_TIMES = ("%H:%M", "%H:%M:%S", "%I:%M %p")
DATE_FORMATS = (ISO, *(" ".join(filter(None, both)) for both in product(_DAYS, ("", *_TIMES))), *_TIMES)
_SWAPPED = {"%m/%d": "%d/%m", "%d/%m": "%m/%d", "%m-%d": "%d-%m", "%d-%m": "%m-%d"}
_CODES = {"%d": "day", "%m": "month", "%b": "month", "%B": "month", "%Y": "year", "%y": "year"}
_CODES |= {"%H": "hour", "%I": "hour", "%M": "minute", "%S": "second", "%p": "am or pm"}
_LONGEST = 40  # of the texts that are dates
_SAMPLE = 200

# What is read in a date beside the days since 1970: whether it is a number or a category, and how.
_WEEK = np.array(["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"], dtype=object)
_PARTS: dict[str, tuple[str, Callable[[Any], np.ndarray]]] = {
    "year": ("number", lambda days: days.year.to_numpy(np.float64, na_value=np.nan)),
    "month": ("category", lambda days: _padded(days.month)),
    "day of week": ("category", lambda days: _named(days.day_of_week)),
    "hour": ("category", lambda days: _padded(days.hour)),
}


@dataclass(frozen=True)
class DateStyle:
    """How the dates of one column are written, and which of their parts differed in training.

    Parameters
    ----------
    format : str
        "ISO8601", where times with a zone become UTC, or as for ``datetime.strptime``.
    parts : names among "year", "month", "day of week", "hour"
    """

    format: str = ISO
    parts: tuple[str, ...] = ()

    def parse(self, texts: Sequence[str]) -> Any:
        """A ``DatetimeIndex``, NaT where a text is no date in this style."""
        import pandas

        found = pandas.to_datetime(
            pandas.Index(list(texts), dtype=object), format=self.format, errors="coerce", utc=self.format == ISO
        )
        return found.tz_localize(None)

    def features(self, days: Any) -> dict[str, tuple[str, np.ndarray]]:
        """What a model reads: "elapsed", in days, and the parts, each with its kind, "number" or "category"."""
        since = np.asarray((days - _epoch()).total_seconds(), dtype=np.float64) / 86400.0
        return {"elapsed": ("number", since), **{part: (_PARTS[part][0], _PARTS[part][1](days)) for part in self.parts}}

    def kinds(self) -> dict[str, str]:
        """The kinds of what :meth:`features` returns."""
        return {"elapsed": "number", **{part: _PARTS[part][0] for part in self.parts}}

    def words(self, example: str) -> str:
        """The style in words."""
        return f"dates such as {example!r} ({self.order()}), read as {', '.join(self.kinds())}"

    def order(self) -> str:
        """The format in words."""
        if self.format == ISO:
            return "year-month-day"
        return re.sub("%.", lambda code: _CODES[code[0]], self.format)


def with_parts(format: str, days: Any) -> DateStyle:
    """The style whose parts are those that differ among these dates."""
    known = days[~days.isna()]
    return DateStyle(format, tuple(part for part, (_, read) in _PARTS.items() if np.unique(read(known)).size > 1))


def _epoch() -> Any:
    import pandas

    return pandas.Timestamp(1970, 1, 1)


def _padded(numbers: Any) -> np.ndarray:
    values = numbers.to_numpy(np.float64, na_value=np.nan)
    texts = np.array([f"{i:02d}" for i in range(24)] + [""], dtype=object)
    return texts[np.where(np.isnan(values), -1, values).astype(np.int64)]


def _named(days: Any) -> np.ndarray:
    values = days.to_numpy(np.float64, na_value=np.nan)
    return np.append(_WEEK, "")[np.where(np.isnan(values), -1, values).astype(np.int64)]


def find_date_style(texts: Sequence[str], formats: Iterable[str] = DATE_FORMATS) -> tuple[str, bool] | None:
    """The first format that reads nearly all of these texts, and whether days and months could change places.

    Where they could, as in a column of 01/02/2020 alone, the month is taken to be first, or the first that ``formats``
    names.
    """
    sample = list(texts[:: max(1, len(texts) // _SAMPLE)])
    likely = [text for text in sample if len(text) <= _LONGEST and any(map(str.isdigit, text)) and len(text) >= 4]
    if len(likely) < 0.5 * len(sample):
        return None
    best, most = None, 0.5 * len(sample)
    for format in formats:
        if DateStyle(format).parse(likely[:5]).isna().all():
            continue
        read = int(np.sum(~DateStyle(format).parse(likely).isna()))
        if read > most:
            best, most = format, read
    if best is None:
        return None
    swapped = next((best.replace(one, other) for one, other in _SWAPPED.items() if one in best), None)
    if swapped is None:
        return best, False
    mine, theirs = DateStyle(best).parse(texts), DateStyle(swapped).parse(texts)
    if theirs.isna().sum() < mine.isna().sum():
        return swapped, False
    return best, bool((theirs.isna() == mine.isna()).all() and (mine != theirs)[~mine.isna()].any())
