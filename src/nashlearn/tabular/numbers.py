"""Numbers as people write them: $32,500, 12 kg, 45 %, 1.234,5, (1,200)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

__all__ = ["FoundStyle", "NumberStyle", "find_number_style"]

_PERCENT = "%"
_CODES = [
    "usd",
    "eur",
    "gbp",
    "jpy",
    "chf",
    "cad",
    "aud",
    "nzd",
    "cny",
    "inr",
    "brl",
    "sek",
    "nok",
    "dkk",
    "pln",
    "czk",
]
_CODES += ["huf", "try", "zar", "mxn", "krw", "rub", "kr", "rs", "us$", "r$", "a$", "c$", "hk$"]
# Signs of currencies may stand before a number; other units stand behind it, else Q1 and A4 would be numbers.
_CURRENCY = rf"(?:{'|'.join(map(re.escape, sorted(_CODES, key=len, reverse=True)))}|[$¢-¥֏฿₠-⃀])\.?"
_UNIT = r"[^\W\d_][^\d\s,;:()+\-]{0,11}|[%‰°µ′″$¢-¥₠-⃀][^\d\s,;:()+\-]{0,5}"
_LOOSE = re.compile(
    rf"\(?\s*[-+]?\s*(?P<before>{_CURRENCY})?\s*[-+]?\s*(?P<body>\d(?:[\d.,' ]*\d)?[.,]?|[.,]\d+)(?:e[-+]?\d+)?"
    rf"\s*(?P<behind>{_UNIT})?\s*\)?",
    re.IGNORECASE,
)
# Signs that mean the same: minus, spaces that do not break, apostrophes of Swiss numbers.
_ALIKE = str.maketrans(
    {"−": "-", "–": "-", "\u00a0": " ", "\u2007": " ", "\u2009": " ", "\u202f": " ", "’": "'", "ʼ": "'", "٪": "%"}
)
_MARKS = ((".", ","), (".", " "), (".", "'"), (",", "."), (",", " "), (",", "'"))  # of decimals and of thousands
_SAMPLE = 500


@dataclass(frozen=True)
class NumberStyle:
    """How the numbers of one column are written; the same for every entry.

    Parameters
    ----------
    decimal, thousands : str
        The mark before decimals, and the one between groups of three digits, which may be left out.
    unit : str
        A currency or unit, in lower case and without a plural s. It may be left out, but for ``%``, which divides the
        number by 100.
    """

    decimal: str = "."
    thousands: str = ","
    unit: str = ""

    def parse(self, texts: Sequence[str]) -> np.ndarray:
        """Numbers (n,), NaN where a text is none in this style. The entry alone decides, not its neighbours."""
        match, found = _pattern(self).fullmatch, np.full(len(texts), np.nan)
        for i, text in enumerate(texts):
            entry = match(text.translate(_ALIKE).strip())
            if entry is not None:
                found[i] = self._value(entry)
        return found

    def _value(self, entry: re.Match[str]) -> float:
        signs = (entry["first"] or "") + (entry["second"] or "")
        if len(signs) > 1 or bool(entry["open"]) != bool(entry["close"]):
            return float("nan")
        digits = entry["body"].replace(self.thousands, "").replace(self.decimal, ".")
        power = int(entry["power"] or 0) - (2 if self.unit == _PERCENT else 0)
        value = float(f"{digits}e{power}")
        return -value if signs == "-" or entry["open"] else value

    def words(self, example: str) -> str:
        """The style in words, with an entry and the number that it is."""
        what = "percentages" if self.unit == _PERCENT else "numbers"
        unit = f", in {self.unit!r}" if self.unit not in ("", _PERCENT) else ""
        comma = ", with a decimal comma" if self.decimal == "," else ""
        return f"{what} such as {example!r}, read as {self.parse([example])[0]:.15g}{unit}{comma}"


@lru_cache(maxsize=256)
def _pattern(style: NumberStyle) -> re.Pattern[str]:
    decimal, thousands = re.escape(style.decimal), re.escape(style.thousands)
    groups = rf"\d{{1,3}}(?:{thousands}\d{{3}})+"
    if style.thousands == ",":
        groups += r"|\d{1,2}(?:,\d{2})+,\d{3}"  # 12,34,567, as in India
    unit = rf"(?:{re.escape(style.unit)}s?\.?)" if style.unit else "(?:)"
    before = unit if re.fullmatch(_CURRENCY, style.unit, re.IGNORECASE) else "(?:)"
    behind = unit if style.unit == _PERCENT else f"{unit}?"
    return re.compile(
        rf"(?P<open>\()?\s*(?P<first>[-+])?\s*{before}?\s*(?P<second>[-+])?\s*"
        rf"(?P<body>(?:{groups}|\d+)(?:{decimal}\d*)?|{decimal}\d+)(?:e(?P<power>[-+]?\d{{1,3}}))?\s*{behind}\s*(?P<close>\))?",
        re.IGNORECASE,
    )


class FoundStyle(NamedTuple):
    """A style that reads most of some texts.

    ``decided`` says that the other mark of decimals does not read them all, ``ambiguous`` that it reads other numbers.
    """

    style: NumberStyle
    decided: bool
    ambiguous: bool


def find_number_style(texts: Sequence[str], decimals: str = ".,") -> FoundStyle | None:
    """The style that reads most of these texts; None where they are no numbers.

    In a column of 1,234 and 5,678 alone, commas are taken for marks of thousands, which is ambiguous.

    Parameters
    ----------
    decimals : str
        Marks of decimals to choose from, the preferred one first.
    """
    sample = [text.translate(_ALIKE).strip() for text in _spread(texts)]
    entries = [entry for entry in map(_LOOSE.fullmatch, sample) if entry is not None]
    if len(entries) < 0.5 * len(sample):
        return None
    units = Counter(_unit(entry["before"] or entry["behind"] or "") for entry in entries)
    unit = max((one for one in units if one), key=lambda one: units[one], default="")
    best = [one for mark in decimals if (one := _best(sample, mark, unit)) is not None]
    if not best:
        return None
    first = max(best, key=lambda style: np.isfinite(style.parse(sample)).sum())
    mine = first.parse(texts)
    other = _best(sample, "," if first.decimal == "." else ".", unit)
    theirs = np.full(len(texts), np.nan) if other is None else other.parse(texts)
    if other in best and np.isfinite(theirs).sum() > np.isfinite(mine).sum():  # the sample was too small to tell
        first, mine, theirs = other, theirs, mine
    decided = bool((np.isfinite(mine) & ~np.isfinite(theirs)).any())
    return FoundStyle(first, decided, not decided and bool((mine != theirs)[np.isfinite(mine)].any()))


def _best(sample: Sequence[str], decimal: str, unit: str) -> NumberStyle | None:
    """Of the styles with a mark of decimals the one that reads most, None where none reads anything."""
    styles = [NumberStyle(*marks, unit) for marks in _MARKS if marks[0] == decimal]
    read = [np.isfinite(style.parse(sample)).sum() for style in styles]
    return styles[int(np.argmax(read))] if max(read) else None


def _spread(texts: Sequence[str]) -> list[str]:
    """Some hundred of the texts, from all over."""
    return list(texts[:: max(1, len(texts) // _SAMPLE)])


def _unit(text: str) -> str:
    unit = text.lower().rstrip(".")
    return unit[:-1] if len(unit) > 2 and unit.endswith("s") else unit
