"""What the columns of a table hold: guessed from their entries, said in a line each, overruled by one word."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from nashlearn.datasets.files import check_present
from nashlearn.tabular.columns import CATEGORY, DATE, NUMBER, TEXT
from nashlearn.tabular.dates import DATE_FORMATS, DateStyle, find_date_style, with_parts
from nashlearn.tabular.entries import RowError, as_days, plain_numbers
from nashlearn.tabular.numbers import NumberStyle, find_number_style
from nashlearn.tabular.texts import FEW, Texts, cut, refuse_some, texts_of

__all__ = ["KINDS", "Guess", "check_kinds", "column_kinds", "guess_columns", "used"]

ID, DROP, EMPTY, REFUSED = "id", "drop", "empty", "refused"
_LEFT_OUT = (ID, DROP, EMPTY, REFUSED)
_FEW_ROWS = 20  # below which nothing is taken for free text, nor for the names of rows
_NAMES_ROWS = 0.9  # share of different texts from which they do
_IDS = re.compile(r"(?:^|[\W_])(?i:ids?|uuid|guid|key|index|idx|nr|no|num|number|row)$|[a-z]I[dD]$|^Unnamed: \d+$|^$")
_WORD = re.compile(r"[^\W\d_]{2,}")
_WORDS = 2.5  # in a text, on average, from which it is free
_MOSTLY = 0.95  # share of entries that are read from which the others are mistakes
_NOTHING = "no entries: left out"
_NUMERIC = ("decimal", "integer", "mixed-integer-float", "floating")  # objects that are numbers
_CODE = re.compile(r"\s*0\d+\s*")


@dataclass(frozen=True)
class Guess:
    """What a column holds.

    Parameters
    ----------
    kind : {"number", "category", "date", "text", "id", "drop", "empty", "refused"}
        The last four are left out.
    style : NumberStyle, DateStyle or None
        How numbers and dates that are text are written.
    said : str
        What is worth saying about it, in a line; empty where nothing is.
    overrule : str
        The kind to say where the guess is wrong.
    decimal : str
        The mark before decimals, where the entries have one that tells.
    """

    kind: str
    style: Any = None
    said: str = ""
    overrule: str = CATEGORY
    decimal: str = ""


def guess_columns(
    X: Any, *, kinds: Mapping[str, str] | None = None, na: Collection[str] = (), refuse: bool = True
) -> dict[str, Guess]:
    """What each column of a data frame holds, those that are left out too.

    Columns of one thousand different texts and more are looked at in samples before all of their entries are.

    Parameters
    ----------
    X : data frame
    kinds : mapping of names to kinds, optional
        What columns are, where the guess is wrong: "number", "category", "date", "text", "id" or "drop"; and, where a
        column does not tell, "decimal-comma", "decimal-point", "day-first" or "month-first".
    na : collection of str, default=()
        Texts that stand for a missing entry.
    refuse : bool, default=True
        Whether a column that cannot be read is an error; else its kind is "refused", and what is said of it the error.

    Raises
    ------
    ValueError
        There is no such column or kind; a column of numbers or dates has a few other entries, the first of which is
        named with its row; all columns are left out.
    """
    given, words = dict(kinds or {}), frozenset(na)
    check_present(given, list(map(str, X.columns)), "The table")
    check_kinds(given.values())
    found = {}
    for name, column in X.items():
        decide = _GIVEN[given[str(name)]] if str(name) in given else _guess
        try:
            found[str(name)] = decide(column, words) if column.notna().any() else Guess(EMPTY, said=_NOTHING)
        except RowError as error:
            if refuse:
                raise
            found[str(name)] = Guess(REFUSED, said=str(error))
    if {guess.decimal for guess in found.values()} - {""} == {","}:  # as the whole table is written
        found |= {name: _with_comma(X[name], guess, words) for name, guess in found.items() if name not in given}
    if refuse and not used(found):
        if all(guess.kind == EMPTY for guess in found.values()):
            raise ValueError("All columns are empty: there is nothing to learn from.")
        left = ", ".join(repr(name) for name, guess in found.items() if guess.kind != EMPTY)
        raise ValueError(
            f"All columns are left out ({left} as names of rows): say what they are, as --as COLUMN=number."
        )
    return found


def used(guesses: Mapping[str, Guess]) -> dict[str, Guess]:
    """Those of the columns that a model reads."""
    return {name: guess for name, guess in guesses.items() if guess.kind not in _LEFT_OUT}


def check_kinds(kinds: Iterable[str]) -> None:
    """Refuse kinds that there are not, with the nearest one that there is."""
    for kind in kinds:
        if kind not in _GIVEN:
            near = difflib.get_close_matches(str(kind), KINDS, n=1, cutoff=0.5)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"There is no kind of column {kind!r}.{hint} Kinds are {', '.join(KINDS)}.")


def column_kinds(
    X: Any, categorical: Iterable[str] = (), *, kinds: Mapping[str, str] | None = None, na: Collection[str] = ()
) -> dict[str, str]:
    """What each column of a data frame that a model reads holds: "number", "category", "date" or "text".

    Columns without any entry, and those that name rows, are left out; see :func:`guess_columns`.

    Parameters
    ----------
    categorical : names of columns
        Categories though they hold numbers, or numbers among text.
    """
    guesses = guess_columns(X, kinds={**dict.fromkeys(categorical, CATEGORY), **(kinds or {})}, na=na)
    return {name: guess.kind for name, guess in used(guesses).items()}


def _guess(column: Any, na: frozenset[str]) -> Guess:
    from pandas.api import types

    if types.is_datetime64_any_dtype(column.dtype):
        return _date_guess(column, na)
    if types.is_timedelta64_dtype(column.dtype):
        return Guess(NUMBER, said="durations, read as seconds", overrule=DROP)
    if types.is_numeric_dtype(column.dtype) or types.infer_dtype(column, skipna=True) in _NUMERIC:
        return _of_numbers(column)
    texts = texts_of(column, na)
    if not texts.texts:
        return Guess(EMPTY, said=f"no entries{texts.with_gaps()}: left out")
    if _IDS.search(str(column.name)) and _names_rows(texts):
        return _id_guess(texts)
    plain = np.isfinite(plain_numbers(texts.texts))
    if plain.all():
        return _as_plain_numbers(texts)
    found = _as_written_numbers(texts) or _as_written_dates(texts)
    if found is None:
        _refuse_mistakes(texts, plain)
    return found or _as_words(texts)


def _of_numbers(column: Any) -> Guess:
    """Numbers, but whole ones that are all different name rows if the column has a name as identifiers have."""
    from pandas.api import types

    whole = types.is_integer_dtype(column.dtype) and len(column) >= _FEW_ROWS and not column.isna().any()
    if not (whole and column.is_unique):
        return Guess(NUMBER, decimal="." if _has_decimals(column) else "")
    if _IDS.search(str(column.name)):
        return Guess(ID, said="holds whole numbers that name rows: left out", overrule=NUMBER)
    counts = int(column.max()) - int(column.min()) == len(column) - 1
    said = "whole numbers, one for each row without a gap, taken for numbers" if counts else ""
    return Guess(NUMBER, said=said, overrule=ID)


def _has_decimals(column: Any) -> bool:
    values = column.dropna().to_numpy()
    return values.dtype.kind == "f" and bool((np.isfinite(values) & (values != np.floor(values))).any())


def _names_rows(texts: Texts) -> bool:
    return texts.n >= _FEW_ROWS and len(texts.texts) >= _NAMES_ROWS * texts.n


def _id_guess(texts: Texts) -> Guess:
    return Guess(ID, said=f"names rows, as {cut(texts.texts[0])!r} does: left out")


def _as_plain_numbers(texts: Texts) -> Guess:
    """Texts that are numbers to Python: numbers among gaps, which made them texts, else categories; 01 is a code."""
    if texts.gaps and not any(map(_CODE.fullmatch, texts.texts)):
        return Guess(NUMBER, said=f"numbers{texts.with_gaps()}")
    return Guess(CATEGORY, said="holds numbers written as text, which are taken for categories", overrule=NUMBER)


def _as_written_numbers(texts: Texts) -> Guess | None:
    """Numbers in one style throughout."""
    found = find_number_style(texts.texts)
    if found is None or not np.isfinite(found.style.parse(texts.texts)).all():
        return None
    said = found.style.words(_example(texts, found.style)) + texts.with_gaps()
    overrule = "decimal-comma" if found.ambiguous else CATEGORY
    return Guess(NUMBER, found.style, said, overrule, found.style.decimal if found.decided else "")


def _with_comma(column: Any, guess: Guess, na: frozenset[str]) -> Guess:
    """A guess in a table whose decimals all have a comma: numbers that do not tell are written so, too."""
    from pandas.api import types

    if guess.kind != NUMBER or guess.decimal:
        return guess
    if guess.style is None:
        return replace(guess, style=NumberStyle(",", ".")) if types.is_integer_dtype(column.dtype) else guess
    texts = texts_of(column, na)
    found = find_number_style(texts.texts, ",")
    if found is None:
        return guess
    said = f"{found.style.words(_example(texts, found.style))} as other columns have it{texts.with_gaps()}"
    return replace(guess, style=found.style, said=said, overrule="decimal-point")


def _example(texts: Texts, style: NumberStyle) -> str:
    """A text that shows its style: one with a mark between thousands, if there is any."""
    return next((text for text in texts.texts if style.thousands in text or style.decimal in text), texts.texts[0])


def _as_written_dates(texts: Texts) -> Guess | None:
    found = find_date_style(texts.texts)
    if found is None or DateStyle(found[0]).parse(texts.texts).isna().any():
        return None
    return _date_guess(texts.column, texts.na, *found, texts)


def _date_guess(
    column: Any, na: frozenset[str], format: str = DATE_FORMATS[0], ambiguous: bool = False, texts: Texts | None = None
) -> Guess:
    style = with_parts(format, as_days(column, DateStyle(format), na))
    example = texts.texts[0] if texts else str(column.dropna().iloc[0])
    said, overrule = style.words(example) + (texts.with_gaps() if texts else ""), DROP
    if ambiguous:
        month = format.find("%m") < format.find("%d")
        said += f"; the {'month' if month else 'day'} is taken to be first"
        overrule = "day-first" if month else "month-first"
    return Guess(DATE, style, said, overrule)


def _refuse_mistakes(texts: Texts, plain: np.ndarray) -> None:
    """Refuse columns of numbers or dates with a few other entries, and say what to do about them."""
    if texts.share(plain) >= 0.5:
        refuse_some(texts, plain, "mixes numbers and text")
    number, date = find_number_style(texts.texts), find_date_style(texts.texts)
    for what, read in (
        ("numbers", None if number is None else np.isfinite(number.style.parse(texts.texts))),
        ("dates", None if date is None else ~np.asarray(DateStyle(date[0]).parse(texts.texts).isna())),
    ):
        if read is not None and texts.share(read) >= _MOSTLY and (~read).sum() <= FEW:
            refuse_some(texts, read, f"mixes {what} and text")


def _as_words(texts: Texts) -> Guess:
    """Free text, names of rows or categories."""
    different, n = len(texts.texts), texts.n
    sample = texts.texts[:: max(1, different // 1000)]
    if different > max(_FEW_ROWS, 0.1 * n) and np.mean([len(_WORD.findall(text)) for text in sample]) >= _WORDS:
        return Guess(
            TEXT, said=f"free text such as {cut(texts.texts[0])!r}, read as TF-IDF of its words", overrule=DROP
        )
    if _names_rows(texts):
        return _id_guess(texts)
    if different > max(50, 0.5 * n):
        return Guess(CATEGORY, said=f"{different:,} different texts, taken for categories", overrule=DROP)
    return Guess(CATEGORY)


def _given_number(column: Any, na: frozenset[str], decimals: str = ".,") -> Guess:
    from pandas.api import types

    if types.is_numeric_dtype(column.dtype):
        return Guess(NUMBER)
    texts = texts_of(column, na)
    plain, found = np.isfinite(plain_numbers(texts.texts)), find_number_style(texts.texts, decimals)
    if decimals != "," and plain.all():
        return Guess(NUMBER)
    read = plain if found is None else np.isfinite(found.style.parse(texts.texts))
    if not read.all():
        refuse_some(texts, read, "does not hold numbers throughout")
    return Guess(NUMBER, None if found is None else found.style)


def _given_date(column: Any, na: frozenset[str], first: str = "") -> Guess:
    from pandas.api import types

    if types.is_datetime64_any_dtype(column.dtype):
        return Guess(DATE, _date_guess(column, na).style)
    texts = texts_of(column, na)
    late = {"%d": "%m", "%m": "%d"}.get(first, "")
    formats = [one for one in DATE_FORMATS if not late or -1 < one.find(first) < one.find(late)]
    found = find_date_style(texts.texts, formats)
    if found is None or found[0] not in formats:
        refuse_some(texts, np.zeros(len(texts.texts), dtype=bool), "holds no dates in one of the known formats")
    format = formats[0] if found is None else found[0]
    read = ~np.asarray(DateStyle(format).parse(texts.texts).isna())
    if not read.all():
        refuse_some(texts, read, "does not hold dates throughout")
    return Guess(DATE, _date_guess(column, na, format, texts=texts).style)


def _given(kind: str) -> Callable[[Any, frozenset[str]], Guess]:
    return lambda column, na: Guess(kind)


# What a user may say of a column.
_GIVEN: dict[str, Callable[[Any, frozenset[str]], Guess]] = {
    NUMBER: _given_number,
    CATEGORY: _given(CATEGORY),
    DATE: _given_date,
    TEXT: _given(TEXT),
    ID: _given(ID),
    DROP: _given(DROP),
    "decimal-comma": partial(_given_number, decimals=","),
    "decimal-point": partial(_given_number, decimals="."),
    "day-first": partial(_given_date, first="%d"),
    "month-first": partial(_given_date, first="%m"),
}
KINDS = tuple(_GIVEN)
