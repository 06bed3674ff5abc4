"""Tables for the classifiers: a pipeline that scales numbers, encodes categories and fills what is missing.

from nashlearn import NashClassifier, datasets, tabular

features, target = datasets.read_table("wine.csv", target="quality")
model = tabular.table_pipeline(NashClassifier(), features)
tabular.fit_table(model, features, target.to_numpy())
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, time, timedelta
from numbers import Number
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import gen_batches

from nashlearn.datasets.files import check_present, whole_number

__all__ = ["TableColumns", "column_kinds", "fit_table", "table_pipeline", "table_schema"]

_ROWS = 1 << 16  # scaled together
_NUMBERS, _CATEGORIES = "number", "category"
_TRUTHS = {"true": "True", "TRUE": "True", "false": "False", "FALSE": "False"}  # as columns of truth values have them


def column_kinds(X: Any, categorical: Iterable[str] = ()) -> dict[str, str]:
    """What each column of a data frame holds, "number" or "category"; columns without any entry are left out.

    Parameters
    ----------
    categorical : names of columns
        Categories though they hold numbers, or numbers among text.
    """
    chosen = set(categorical)
    check_present(chosen, list(map(str, X.columns)), "The table")
    filled = [(name, column) for name, column in X.items() if column.notna().any()]
    kinds = {str(name): _CATEGORIES if name in chosen else _kind(column) for name, column in filled}
    if not kinds:
        raise ValueError("All columns are empty: there is nothing to learn from.")
    return kinds


def _kind(column: Any) -> str:
    from pandas.api import types

    present = column.dropna()
    numbers = (isinstance(entry, Number) and not isinstance(entry, bool) for entry in present)  # decimals, say
    if types.is_numeric_dtype(column.dtype) or (types.is_object_dtype(column.dtype) and all(numbers)):
        return _NUMBERS
    if isinstance(present.iloc[0], date | time | timedelta | np.datetime64 | np.timedelta64):
        raise ValueError(f"The column {column.name!r} holds dates or times; drop it, or turn it into numbers.")
    _refuse_decimal_commas(column)
    row, share = _first_text(column)
    if 0.5 <= share < 1.0:
        raise ValueError(
            f"The column {column.name!r} mixes numbers and text: row {row + 1} has {column.iloc[row]!r}. Correct it, "
            "or name the column as categorical."
        )
    return _CATEGORIES


def _refuse_decimal_commas(column: Any) -> None:
    import pandas

    different = [entry for entry in column.dropna().unique() if isinstance(entry, str)]
    comma = next((entry for entry in different if "," in entry), None)
    points = pandas.Series([entry.replace(",", ".") for entry in different])
    if comma is not None and pandas.to_numeric(points, errors="coerce").notna().all():
        raise ValueError(
            f"The column {column.name!r} has numbers with a decimal comma, as {comma!r}. Write them with a point, or "
            "name the column as categorical."
        )


class TableColumns(TransformerMixin, BaseEstimator):
    """The columns of a data frame that a model was trained on, found by name and checked.

    Numbers become floats, categories text, empty where missing. Other columns are left out.

    Parameters
    ----------
    kinds : mapping of names to {"number", "category"}
        See :func:`column_kinds`.
    """

    def __init__(self, kinds: Mapping[str, str]):
        self.kinds = kinds

    def fit(self, X: Any, y: Any = None) -> TableColumns:
        """Nothing is learnt."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def transform(self, X: Any) -> Any:
        """An array (n, columns) where all are numbers, else a data frame."""
        names, present = list(self.kinds), list(map(str, X.columns))
        check_present(names, present, "The table")
        if all(kind == _NUMBERS for kind in self.kinds.values()):
            return _all_numbers(X if present == names else X[names])
        import pandas

        made = {
            name: _as_numbers(X[name]) if kind == _NUMBERS else _as_text(X[name]) for name, kind in self.kinds.items()
        }
        return pandas.DataFrame(made, index=X.index)


def _all_numbers(X: Any) -> np.ndarray:
    """All columns as one array; that of the data frame itself where it has one."""
    dtypes = set(X.dtypes)
    if len(dtypes) == 1 and next(iter(dtypes)) in (np.float32, np.float64):
        values = X.to_numpy()
        if not np.isfinite(values.sum(dtype=np.float64)):
            _refuse_infinite(values, list(X.columns))
        return values
    return np.column_stack([_as_numbers(X[name]) for name in X.columns])


def _first_text(column: Any) -> tuple[int, float]:
    """The first row that is no number, and the share of numbers among entries that are not missing."""
    import pandas

    present = column.notna().to_numpy()
    number = pandas.to_numeric(column, errors="coerce").notna().to_numpy()
    wrong = np.flatnonzero(present & ~number)
    return (int(wrong[0]) if wrong.size else -1), float(number[present].mean())


def _as_numbers(column: Any) -> np.ndarray:
    from pandas.api import types

    if not types.is_numeric_dtype(column.dtype):
        row, _ = _first_text(column) if column.notna().any() else (-1, 1.0)
        if row >= 0:
            raise ValueError(
                f"The column {column.name!r} must hold numbers, as in training; row {row + 1} has {column.iloc[row]!r}."
            )
    values = column.astype(np.float64).to_numpy(np.float64, na_value=np.nan)
    _refuse_infinite(values[:, None], [str(column.name)])
    return values


def _as_text(column: Any) -> np.ndarray:
    """Text, the same for 3 and 3.0, as a column with gaps has it, and for true and True; empty where missing."""
    return np.array([_text(entry) for entry in column.astype(object).where(column.notna(), None)], dtype=object)


def _text(entry: Any) -> str:
    if entry is None:
        return ""
    if isinstance(entry, str):
        return _TRUTHS.get(entry) or whole_number(entry) or entry
    return str(int(entry)) if isinstance(entry, float | np.floating) and float(entry).is_integer() else str(entry)


def _refuse_infinite(values: np.ndarray, names: list[str]) -> None:
    for j, name in enumerate(names):
        wrong = np.isinf(values[:, j])
        if wrong.any():
            raise ValueError(
                f"The column {name!r} holds infinity in row {int(wrong.argmax()) + 1}; numbers must be finite."
            )


def _numeric_steps() -> list[tuple[str, Any]]:
    """Scaled first, so that the mean, which takes the place of missing numbers, is 0."""
    return [
        ("scale", StandardScaler()),
        ("impute", SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True)),
    ]


def table_pipeline(estimator: Any, X: Any, *, categorical: Iterable[str] = ()) -> Pipeline:
    """A pipeline for tables like the data frame ``X``: numbers scaled, categories one-hot, missing entries filled.

    A missing number is taken for the mean. A missing category is a category of its own, and one that was not seen in
    training is none of them.
    """
    kinds = column_kinds(X, categorical)
    numbers, categories = ([name for name, kind in kinds.items() if kind == one] for one in (_NUMBERS, _CATEGORIES))
    first = ("columns", TableColumns(kinds))
    if not categories:
        return Pipeline([first, *_numeric_steps(), ("model", estimator)])
    parts: list[tuple[str, Any, list[str]]] = [("categories", OneHotEncoder(handle_unknown="ignore"), categories)]
    if numbers:
        parts.insert(0, ("numbers", Pipeline(_numeric_steps()), numbers))
    return Pipeline([first, ("encode", ColumnTransformer(parts)), ("model", estimator)])


def fit_table(pipeline: Pipeline, X: Any, y: Any, *, in_place: bool = False) -> Pipeline:
    """Fit a pipeline of :func:`table_pipeline`.

    Parameters
    ----------
    in_place : bool, default=False
        Scale the numbers where they lie, so that training needs no second copy of a table of numbers: ``X`` is not to
        be used afterwards.
    """
    if not (in_place and "scale" in pipeline.named_steps):
        return pipeline.fit(X, y)
    values = pipeline["columns"].transform(X)
    values.flags.writeable = True  # pandas hands out its own array, locked; the caller has given it up
    scaler, imputer = pipeline["scale"], pipeline["impute"]
    _fit_scaler(scaler, values)
    imputer.fit(values[:_ROWS])
    for rows in gen_batches(len(values), _ROWS):
        values[rows] = imputer.transform(scaler.transform(values[rows]))
    pipeline[-1].fit(values, y)
    return pipeline


def _fit_scaler(scaler: StandardScaler, values: np.ndarray) -> None:
    """Column by column, as a batch of rows may have no entry of a column, which ``partial_fit`` takes for NaN."""
    parts = [clone(scaler).fit(values[:, [j]]) for j in range(values.shape[1])]
    for name in ("mean_", "var_", "scale_"):
        setattr(scaler, name, np.concatenate([getattr(part, name) for part in parts]))
    scaler.n_samples_seen_ = np.concatenate([np.atleast_1d(part.n_samples_seen_) for part in parts])
    scaler.n_features_in_ = len(parts)


def table_schema(pipeline: Pipeline) -> dict[str, Any]:
    """Names, kinds and categories of the columns that a fitted pipeline of :func:`table_pipeline` reads."""
    columns = {name: {"name": name, "kind": kind} for name, kind in pipeline["columns"].kinds.items()}
    if "encode" in pipeline.named_steps:
        encoder = pipeline["encode"].named_transformers_["categories"]
        for name, seen in zip(encoder.feature_names_in_, encoder.categories_, strict=True):
            columns[name]["categories"] = list(map(str, seen))
    return {"columns": list(columns.values())}
