"""The columns that a model reads: found by name, checked, turned into numbers, categories and texts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from nashlearn.datasets.files import check_present
from nashlearn.tabular.dates import DateStyle
from nashlearn.tabular.entries import as_days, as_numbers, as_text, refuse_infinite

__all__ = ["CATEGORY", "DATE", "NUMBER", "TEXT", "TableColumns"]

NUMBER, CATEGORY, DATE, TEXT = "number", "category", "date", "text"

Parts = Iterator[tuple[str, str, np.ndarray]]  # what a column becomes: the name of each part, its kind, its entries


def _numbers(column: Any, style: Any, na: Collection[str]) -> Parts:
    yield "", NUMBER, as_numbers(column, style, na)


def _categories(column: Any, style: Any, na: Collection[str]) -> Parts:
    yield "", CATEGORY, as_text(column, na)


def _texts(column: Any, style: Any, na: Collection[str]) -> Parts:
    yield "", TEXT, as_text(column, na)


def _dates(column: Any, style: Any, na: Collection[str]) -> Parts:
    style = style or DateStyle()
    for part, (kind, values) in style.features(as_days(column, style, na)).items():
        yield part, kind, values


_READERS: dict[str, Callable[[Any, Any, Collection[str]], Parts]] = {
    NUMBER: _numbers,
    CATEGORY: _categories,
    TEXT: _texts,
    DATE: _dates,
}


class TableColumns(TransformerMixin, BaseEstimator):
    """The columns of a data frame that a model was trained on, found by name and checked.

    Numbers become floats, categories and texts strings, empty where missing; a date becomes the days since 1970 and its
    parts. Other columns are left out. Every row is read by itself.

    Parameters
    ----------
    kinds : mapping of names to {"number", "category", "date", "text"}
        See :func:`column_kinds`.
    styles : mapping of names to NumberStyle or DateStyle, optional
        How numbers and dates that are text are written. Entries that are written otherwise are refused, with their row.
    na : collection of str, default=()
        Texts that stand for a missing entry, in every column.
    """

    def __init__(self, kinds: Mapping[str, str], styles: Mapping[str, Any] | None = None, na: Collection[str] = ()):
        self.kinds, self.styles, self.na = kinds, styles, na

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({"styles": None, "na": (), **state})  # models of 0.1 have kinds only

    def fit(self, X: Any, y: Any = None) -> TableColumns:
        """Nothing is learnt."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def made(self) -> dict[str, str]:
        """What :meth:`transform` gives: names, and whether they are "number", "category" or "text"."""
        found: dict[str, str] = {}
        styles = self.styles or {}
        for name, kind in self.kinds.items():
            parts = styles.get(name, DateStyle()).kinds() if kind == DATE else {"": kind}
            found |= {self._called(name, part): one for part, one in parts.items()}
        return found

    def _called(self, name: str, part: str) -> str:
        """The name of a part of a column, which no column has."""
        called = f"{name} ({part})" if part else name
        while part and called in self.kinds:
            called += "'"
        return called

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The names of what :meth:`transform` gives."""
        return np.array(list(self.made()), dtype=object)

    def transform(self, X: Any) -> Any:
        """An array (n, columns) where all are numbers, else a data frame."""
        names, present = list(self.kinds), list(map(str, X.columns))
        check_present(names, present, "The table")
        styles, only_numbers = self.styles or {}, all(kind == NUMBER for kind in self.kinds.values())
        if only_numbers:
            whole = _all_numbers(X if present == names else X[names])
            if whole is not None:
                return whole
        made = {
            self._called(name, part): values
            for name, kind in self.kinds.items()
            for part, _, values in _READERS[kind](X[name], styles.get(name), frozenset(self.na))
        }
        if only_numbers:
            return np.column_stack(list(made.values()))
        import pandas

        return pandas.DataFrame(made, index=X.index)


def _all_numbers(X: Any) -> np.ndarray | None:
    """The array of a data frame itself, where it has one of floats."""
    dtypes = set(X.dtypes)
    if len(dtypes) != 1 or next(iter(dtypes)) not in (np.float32, np.float64):
        return None
    values = X.to_numpy()
    if not np.isfinite(values.sum(dtype=np.float64)):
        refuse_infinite(values, list(X.columns), X)
    return values
