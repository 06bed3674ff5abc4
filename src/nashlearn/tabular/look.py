"""A look at a table before any training: what its columns hold, gaps, classes, and what is suspicious."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from nashlearn.tabular.columns import CATEGORY, DATE, NUMBER, TEXT
from nashlearn.tabular.entries import as_days, as_numbers, distinct
from nashlearn.tabular.guess import Guess, used

__all__ = ["look_at"]

_ROWS = 20_000  # that leakage is looked for in
_LEAVES = 8  # of a tree on one column
_GAPS = 0.5  # share of missing entries that is worth a word
_TELLS = 0.02  # share of rows whose label one column gets wrong, below which it tells too much,
_LIFT = 0.25  # and of what answering with the largest class gets wrong
_RARE = 0.1  # of the rows that a class would have, were all equal
_FEW_CODES = 10
_FEW_ROWS = 50  # below which leakage is not looked for
_MANY_COPIES = 0.01
_LABEL = "the label, under a name that no column has\0"


def look_at(X: Any, y: Any, guesses: Mapping[str, Guess], na: Collection[str] = ()) -> dict[str, Any]:
    """What there is to know about a table before training.

    A column is suspected of telling the label where it alone, by a small tree of its numbers or by the most frequent
    label of its categories, gets at most 2 % of the labels wrong, and a quarter of what the largest class gets wrong;
    it is learnt on one half of at most 20,000 rows and judged on the other. Cost O(rows log rows) for each column.

    Parameters
    ----------
    X : data frame
    y : array (n,) of labels
    guesses : mapping of names to Guess
        As :func:`guess_columns` returns them.
    na : collection of str, default=()
        Texts that stand for a missing entry.

    Returns
    -------
    dict
        ``rows``; ``columns``, a list of name, kind, missing and different entries, what was said of it, and the kind to
        say where that is wrong; ``classes``, a list of labels, rows and shares; ``suspicious``, lines of text.
    """
    y = np.asarray(y)
    values = {name: _values(X[name], guess, frozenset(na)) for name, guess in guesses.items()}
    columns = [
        {
            "name": name,
            "kind": guess.kind,
            "missing": int(np.isnan(values[name]).sum()),
            "different": int(np.unique(values[name][~np.isnan(values[name])]).size),
            "said": guess.said,
            "overrule": guess.overrule,
        }
        for name, guess in guesses.items()
    ]
    labels, counts = np.unique(y, return_counts=True)
    classes = [
        {"label": label, "rows": int(count), "share": float(count / y.size)}
        for label, count in zip(labels.tolist(), counts, strict=True)
    ]
    kept = {name: values[name] for name in used(guesses)}
    suspicious = _odd_columns(columns, len(X)) + _leaks(kept, guesses, y) + _copies(kept, y)
    return {
        "rows": len(X),
        "columns": columns,
        "classes": classes,
        "suspicious": suspicious + _rare_classes(classes, y.size),
    }


def _values(column: Any, guess: Guess, na: frozenset[str]) -> np.ndarray:
    """Numbers, days, or a number for each different text; NaN where missing."""
    if guess.kind == NUMBER:
        return as_numbers(column, guess.style, na)
    if guess.kind == DATE:
        return guess.style.features(as_days(column, guess.style, na))["elapsed"][1]
    codes = distinct(column, na)[0].astype(np.float64)
    codes[codes < 0] = np.nan
    return codes


def _odd_columns(columns: list[dict[str, Any]], n: int) -> list[str]:
    found = []
    for one in columns:
        name, missing, different = one["name"], one["missing"], one["different"]
        if different == 1:
            found.append(f"{name!r} has the same entry in every row that has one; --drop {name} loses nothing.")
        if missing >= _GAPS * n and different:
            found.append(f"{name!r} is missing in {missing / n:.0%} of the rows.")
        if one["kind"] == NUMBER and 2 < different <= _FEW_CODES and not one["said"]:
            found.append(f"{name!r} has {different} different numbers; if they are codes, say --as {name}=category.")
    return found


def _leaks(values: Mapping[str, np.ndarray], guesses: Mapping[str, Guess], y: np.ndarray) -> list[str]:
    """Columns that tell nearly every label on their own."""
    rows = np.random.default_rng(0).permutation(y.size)[:_ROWS]
    labels = np.unique(y[rows], return_inverse=True)[1]
    blind = 1.0 - np.bincount(labels).max() / labels.size
    found = []
    for name, entries in values.items():
        if guesses[name].kind == TEXT or labels.size < _FEW_ROWS:
            continue
        wrong = _mistaken(entries[rows], labels, guesses[name].kind == CATEGORY)
        if wrong <= min(_TELLS, _LIFT * blind):
            found.append(
                f"{name!r} alone tells {1 - wrong:.1%} of the labels. If it is known only after the label, it leaks: "
                f"--drop {name}."
            )
    return found


def _mistaken(values: np.ndarray, labels: np.ndarray, categories: bool) -> float:
    """The share of the second half of the labels that one column gets wrong, learnt on the first half."""
    from sklearn.preprocessing import OneHotEncoder
    from sklearn.tree import DecisionTreeClassifier

    half, k = labels.size // 2, int(labels.max()) + 1
    X = values[:, None]
    if categories:
        seen = OneHotEncoder(handle_unknown="ignore").fit(X[:half])
        counts = seen.transform(X[:half]).T @ np.eye(k)[labels[:half]]
        guess = (seen.transform(X[half:]) @ counts).argmax(axis=1)
    else:
        tree = DecisionTreeClassifier(max_leaf_nodes=max(_LEAVES, 2 * k), random_state=0)
        guess = tree.fit(X[:half], labels[:half]).predict(X[half:])
    return float(np.mean(guess != labels[half:]))


def _copies(values: Mapping[str, np.ndarray], y: np.ndarray) -> list[str]:
    """Columns that are the same but for the names of their entries, and rows that are copies."""
    import pandas

    codes = {name: pandas.factorize(entries)[0] for name, entries in values.items()}
    seen: dict[bytes, str] = {}
    found = []
    for name, one in codes.items():
        first = seen.setdefault(one.tobytes(), name)
        if first != name and one.max() > 0:
            found.append(f"{name!r} and {first!r} hold the same in other words; --drop {name} loses nothing.")
    table = pandas.DataFrame({**codes, _LABEL: pandas.factorize(y)[0]})
    copies, few = int(table.duplicated().sum()), table.drop(columns=_LABEL).duplicated()
    if copies >= _MANY_COPIES * y.size:
        found.append(f"{copies:,} rows are copies of others, label included; a held-out part may share them.")
    torn = int(few.sum()) - copies
    if torn >= _MANY_COPIES * y.size:
        found.append(f"{torn:,} rows equal others but for the label: no model can tell them apart.")
    return found


def _rare_classes(classes: list[dict[str, Any]], n: int) -> list[str]:
    rare = [one for one in classes if one["rows"] < _RARE * n / len(classes)]
    if not rare:
        return []
    named = ", ".join(f"{one['label']!r} ({one['rows']:,})" for one in rare[:5]) + (", …" if len(rare) > 5 else "")
    return [f"rare classes: {named}. --balanced weighs classes alike, a file of costs says what mistakes cost."]
