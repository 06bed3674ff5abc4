"""The pipeline of a table: columns read, numbers scaled, categories and words encoded, gaps filled, a model."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import gen_batches

from nashlearn.tabular.columns import CATEGORY, NUMBER, TEXT, TableColumns
from nashlearn.tabular.guess import ID, Guess, guess_columns, used
from nashlearn.tabular.words import WordFeatures

__all__ = ["fit_table", "pipeline_of", "table_pipeline", "table_schema"]

_ROWS = 1 << 16  # scaled together


def _numeric_steps() -> list[tuple[str, Any]]:
    """Scaled first, so that the mean, which takes the place of missing numbers, is 0."""
    return [
        ("scale", StandardScaler()),
        ("impute", SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True)),
    ]


def table_pipeline(
    estimator: Any,
    X: Any,
    *,
    categorical: Iterable[str] = (),
    kinds: Mapping[str, str] | None = None,
    na: Collection[str] = (),
) -> Pipeline:
    """A pipeline for tables like the data frame ``X``: what its columns are is guessed, and can be said.

    Numbers are scaled, categories one-hot, dates numbers and parts, free text TF-IDF of its words; columns that name
    rows are left out. A missing number is taken for the mean. A missing category is a category of its own, and one that
    was not seen in training is none of them. :func:`guess_columns` tells what is guessed, and why.

    Parameters
    ----------
    estimator : classifier
    X : data frame
    categorical : names of columns
        Categories though they hold numbers.
    kinds : mapping of names to kinds, optional
        What columns are, where the guess is wrong; see :func:`guess_columns`.
    na : collection of str, default=()
        Texts that stand for a missing entry.
    """
    guesses = guess_columns(X, kinds={**dict.fromkeys(categorical, CATEGORY), **(kinds or {})}, na=na)
    for name, guess in guesses.items():
        if guess.kind == ID and name not in (kinds or {}):
            warnings.warn(
                f"The column {name!r} {guess.said}. Keep it with kinds={{{name!r}: {guess.overrule!r}}}, or say "
                f"kinds={{{name!r}: 'drop'}}.",
                stacklevel=2,
            )
    return pipeline_of(estimator, guesses, na)


def pipeline_of(estimator: Any, guesses: Mapping[str, Guess], na: Collection[str] = ()) -> Pipeline:
    """The pipeline for columns of which :func:`guess_columns` has told what they are."""
    kept = used(guesses)
    styles = {name: guess.style for name, guess in kept.items() if guess.style is not None}
    columns = TableColumns({name: guess.kind for name, guess in kept.items()}, styles or None, tuple(na))
    made = columns.made()
    numbers, categories, texts = ([name for name in made if made[name] == one] for one in (NUMBER, CATEGORY, TEXT))
    first = ("columns", columns)
    if not categories and not texts:
        return Pipeline([first, *_numeric_steps(), ("model", estimator)])
    parts: list[tuple[str, Any, Any]] = []
    if numbers:
        parts.append(("numbers", Pipeline(_numeric_steps()), numbers))
    if categories:
        parts.append(("categories", OneHotEncoder(handle_unknown="ignore"), categories))
    for name in texts:
        called = f"words of {name}".replace("__", "_")
        while called in {part for part, _, _ in parts}:
            called += "'"
        parts.append((called, WordFeatures(), name))
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
    """Names, kinds and styles of the columns that a pipeline of :func:`table_pipeline` reads, and their categories."""
    first = pipeline["columns"]
    columns: dict[str, dict[str, Any]] = {name: {"name": name, "kind": kind} for name, kind in first.kinds.items()}
    for name, style in (first.styles or {}).items():
        columns[name]["style"] = asdict(style)
    if hasattr(pipeline.named_steps.get("encode"), "transformers_"):
        encoder = pipeline["encode"].named_transformers_.get("categories")
        seen = [] if encoder is None else zip(encoder.feature_names_in_, encoder.categories_, strict=True)
        for name, categories in seen:
            if name in columns:  # and no part of a date
                columns[name]["categories"] = list(map(str, categories))
    return {"columns": list(columns.values())}
