"""Cost matrices whose rows and columns have names: data frames, and dictionaries of dictionaries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from nashlearn.games._check import cost_matrix

__all__ = ["NamedCosts", "named_costs"]


def _array(names: Iterable[Hashable]) -> np.ndarray:
    """Names as an array that leaves them as they are: numbers beside words stay numbers."""
    names = list(names)
    words = {isinstance(name, str) for name in names}
    if len(words) == 1:
        return np.array(names)
    array = np.empty(len(names), dtype=object)
    array[:] = names
    return array


class NamedCosts(NamedTuple):
    """Costs (options, labels) with the names of both."""

    options: np.ndarray
    labels: np.ndarray
    matrix: np.ndarray

    def arranged(self, classes: np.ndarray) -> NamedCosts:
        """The same costs with the columns of ``classes`` first, in their order, and the rows of classes too.

        Other columns follow: a part of the data may lack their labels. A class without a column is an error.
        """
        columns, unknown = _first(classes, self.labels)
        if unknown:
            others = self.labels[columns[classes.size - len(unknown) :]].tolist()
            raise ValueError(
                f"loss must have a column for each label of y; it has none for {unknown}"
                + (f", and columns that y does not hold: {others}." if others else ".")
            )
        rows, _ = _first(classes, self.options)
        options, labels = self.options[rows], self.labels[columns]
        if len(options) == classes.size and (options == classes).all():
            options = classes  # of the same type
        return NamedCosts(options, labels, self.matrix[np.ix_(rows, columns)])


def _first(classes: np.ndarray, names: np.ndarray) -> tuple[list[int], list[Any]]:
    """Positions of ``names``, those of the classes first and in their order; and the classes that are no names."""
    at = {name: i for i, name in enumerate(names.tolist())}
    unknown = [name for name in classes.tolist() if name not in at]
    own = [at.pop(name) for name in classes.tolist() if name in at]
    return [*own, *at.values()], unknown


def named_costs(loss: Any) -> NamedCosts | None:
    """The costs of a data frame or a dictionary ``{option: {label: cost}}``; None for whatever has no names.

    Names that occur twice, or options that lack a label of others, are an error that names them.
    """
    if isinstance(loss, Mapping):
        rows = {option: dict(costs) for option, costs in loss.items() if isinstance(costs, Mapping)}
        if len(rows) < len(loss) or not rows:
            raise ValueError(f"loss must be a dictionary of dictionaries, option: label: cost; got {loss!r:.200}.")
        labels = list(dict.fromkeys(label for costs in rows.values() for label in costs))
        for option, costs in rows.items():
            if lacking := [label for label in labels if label not in costs]:
                raise ValueError(f"loss has no cost of the option {option!r} for the labels {lacking}.")
        options, values = list(rows), [[costs[label] for label in labels] for costs in rows.values()]
    elif all(hasattr(loss, name) for name in ("index", "columns", "to_numpy")):
        options, labels, values = loss.index.tolist(), loss.columns.tolist(), loss.to_numpy()
        for what, names in (("row", options), ("column", labels)):
            if twice := [name for name, times in Counter(names).items() if times > 1]:
                raise ValueError(f"loss must have one {what} for each name; it has several for {twice}.")
    else:
        return None
    return NamedCosts(_array(options), _array(labels), cost_matrix(values, "loss"))
