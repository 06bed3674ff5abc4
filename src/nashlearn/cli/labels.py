"""Labels of tables: what a column of labels means, and whether a model knows them."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from nashlearn.datasets.files import whole_number
from nashlearn.tabular.entries import row_number

__all__ = ["class_labels", "known_labels", "labels_of", "number", "shown"]

_MANY = 100  # different numbers from which a column is no set of classes
_GAPS = {"na", "n/a", "#n/a", "nan", "null", "none"}  # among numbers


def labels_of(column: Any, na: Collection[str]) -> Any:
    """The column, with the texts that stand for missing entries missing."""
    return column.mask(column.isin(na)) if na else column


def class_labels(column: Any, order: Sequence[str] | None, name: str) -> tuple[np.ndarray, list[Any]]:
    """Labels to train on, and the classes they stand for: with ``order``, ranks in it, else the labels themselves."""
    codes, texts = _coded(column, name)
    values = _values(texts, name)
    if order is not None:
        found = [str(value) for value in values.tolist()]
        unknown = sorted(set(found) - set(order))
        if unknown:
            raise ValueError(f"The column {name!r} holds {shown(unknown)}, which --order does not name.")
        unused = [label for label in order if label not in found]
        if unused:
            raise ValueError(f"--order names {shown(unused)}, of which the column {name!r} has no row.")
        return np.array([order.index(label) for label in found])[codes], list(order)
    labels = values[codes]
    classes = np.unique(labels)
    decimals = classes.dtype.kind == "f" and classes.size > 1
    if decimals or (classes.dtype.kind in "iu" and classes.size > _MANY and classes.size > 0.1 * labels.size):
        which = "with decimals" if decimals else f"in {labels.size:,} rows"
        raise ValueError(
            f"The column {name!r} holds {classes.size:,} different numbers {which}, which are no classes. Cut them "
            "into grades first."
        )
    if classes.size < 2:
        raise ValueError(f"The column {name!r} holds one class only, {classes.tolist()[0]!r}; at least two are needed.")
    return labels, classes.tolist()


def known_labels(column: Any, classes: Sequence[Any], ranks: bool, name: str) -> np.ndarray:
    """Labels as a model was trained on them; an error names those that it does not know."""

    codes, texts = _coded(column, name)
    by_text = {str(label): i for i, label in enumerate(classes)}
    known = [text if text in by_text else whole_number(text) or text for text in texts]
    unknown = sorted(set(known) - set(by_text))
    if unknown:
        raise ValueError(
            f"The column {name!r} holds {shown(unknown)}, which the model was not trained on; it knows "
            f"{shown(list(map(str, classes)))}."
        )
    positions = np.array([by_text[text] for text in known])[codes]
    return positions if ranks else np.asarray(classes)[positions]


def _coded(column: Any, name: str) -> tuple[np.ndarray, list[str]]:
    """Labels as positions in a list of the different texts; none missing."""
    missing = column.isna().to_numpy()
    if missing.any():
        raise ValueError(
            f"The column {name!r} has no label in {int(missing.sum()):,} rows, the first of which is row "
            f"{row_number(column, int(missing.argmax()))}. Leave these rows out with --drop-unlabelled."
        )
    codes, different = column.factorize()
    return np.asarray(codes), [_text(label) for label in different.tolist()]


def _text(label: Any) -> str:
    whole = isinstance(label, float | Decimal) and math.isfinite(label) and label == int(label)
    return str(int(label)) if whole else str(label)


def _values(texts: list[str], name: str) -> np.ndarray:
    """Integers where all are whole numbers, numbers where all are and some have decimals, else the texts: 01 is one."""

    whole = [whole_number(text) for text in texts]
    if None not in whole:
        values = [int(str(text)) for text in whole]
        wide = [value for value in values if not -(2**63) <= value < 2**63]
        if wide:
            raise ValueError(f"The column {name!r} holds {wide[0]}; whole numbers as labels must fit in 64 bits.")
        return np.array(values)
    numbers = {text: value for text in texts if (value := number(text)) is not None}
    rest = [text for text in texts if text not in numbers]
    if numbers and rest and all(text.strip().lower() in _GAPS for text in rest):
        raise ValueError(
            f"The column {name!r} has {shown(rest)} among numbers, which is no label. Take "
            f"{'it' if len(rest) == 1 else 'them'} for missing with --na {','.join(rest)}, and leave these rows out "
            "with --drop-unlabelled."
        )
    infinite = [text for text, value in numbers.items() if math.isinf(value)]
    if infinite and not rest:
        raise ValueError(f"The column {name!r} holds {infinite[0]!r}; numbers as labels must be finite.")
    if not rest and not all(value.is_integer() for value in numbers.values()):
        return np.array([numbers[text] for text in texts])
    return np.array(texts)


def number(text: str) -> float | None:
    """The number that a text is; None for other text, and for NaN."""
    try:
        number = float(text)
    except ValueError:
        return None
    return None if math.isnan(number) else number


def shown(labels: Sequence[Any]) -> str:
    """Some labels in a line."""
    return ", ".join(repr(label) for label in labels[:8]) + (f" and {len(labels) - 8} more" if len(labels) > 8 else "")
