"""Labels of tables: what a column of labels means, and whether a model knows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["class_labels", "known_labels", "shown"]

_MANY = 100  # different numbers from which a column is no set of classes


def class_labels(column: Any, order: Sequence[str] | None, name: str) -> tuple[np.ndarray, list[Any]]:
    """Labels to train on, and the classes they stand for: with ``order``, ranks in it, else the labels themselves."""
    labels = _plain_labels(column, name)
    if order is not None:
        position = {label: i for i, label in enumerate(order)}
        unknown = sorted({str(label) for label in labels.tolist()} - set(position))
        if unknown:
            raise ValueError(f"The column {name!r} holds {shown(unknown)}, which --order does not name.")
        unused = [label for label in order if label not in {str(one) for one in labels.tolist()}]
        if unused:
            raise ValueError(f"--order names {shown(unused)}, of which the column {name!r} has no row.")
        return np.array([position[str(label)] for label in labels.tolist()]), list(order)
    classes = np.unique(labels)
    if classes.dtype.kind == "f" and classes.size > 1:
        raise ValueError(
            f"The column {name!r} holds {classes.size:,} different numbers with decimals, which are no classes. "
            "Cut them into grades first."
        )
    if classes.dtype.kind in "iu" and classes.size > _MANY and classes.size > 0.1 * labels.size:
        raise ValueError(
            f"The column {name!r} holds {classes.size:,} different numbers in {labels.size:,} rows, which are no "
            "classes. Cut them into grades first."
        )
    if classes.size < 2:
        raise ValueError(f"The column {name!r} holds one class only, {classes[0]!r}; at least two are needed.")
    return labels, classes.tolist()


def known_labels(column: Any, classes: Sequence[Any], ranks: bool, name: str) -> np.ndarray:
    """Labels as a model was trained on them; an error names those that it does not know."""
    labels = _plain_labels(column, name).tolist()
    by_text = {str(label): i for i, label in enumerate(classes)}
    unknown = sorted({str(label) for label in labels} - set(by_text))
    if unknown:
        raise ValueError(
            f"The column {name!r} holds {shown(unknown)}, which the model was not trained on; it knows "
            f"{shown(list(map(str, classes)))}."
        )
    codes = np.array([by_text[str(label)] for label in labels])
    return codes if ranks else np.asarray(classes)[codes]


def _plain_labels(column: Any, name: str) -> np.ndarray:
    """Integers where all are whole numbers, else text, or numbers with decimals; none missing."""
    missing = column.isna().to_numpy()
    if missing.any():
        raise ValueError(
            f"The column {name!r} has no label in {int(missing.sum()):,} rows, the first of which is row "
            f"{int(missing.argmax()) + 1}. Remove these rows."
        )
    values = column.to_numpy()
    if values.dtype.kind in "iu":
        return values.astype(np.int64)
    if values.dtype.kind == "f":
        return values.astype(np.int64) if (values == np.floor(values)).all() else values.astype(np.float64)
    return np.array([str(value) for value in values.tolist()])


def shown(labels: Sequence[Any]) -> str:
    """Some labels in a line."""
    return ", ".join(repr(label) for label in labels[:8]) + (f" and {len(labels) - 8} more" if len(labels) > 8 else "")
