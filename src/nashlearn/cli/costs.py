"""Cost matrices in CSV files: a row for each answer, a column for each true label."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nashlearn.cli.errors import reading
from nashlearn.cli.labels import number, shown

__all__ = ["Costs", "costs_path", "explained", "loss_or_costs", "read_costs"]


class Costs(NamedTuple):
    """Costs (options, labels) with their names; None where the file has only numbers."""

    matrix: np.ndarray
    options: list[str] | None
    labels: list[str] | None

    def aligned(self, classes: Sequence[Any], name: str) -> tuple[np.ndarray, list[str] | None]:
        """The matrix with columns, and rows where these are the labels too, in the order of ``classes``.

        The second part names the options where they are not the labels.
        """
        k = len(classes)
        if self.labels is None or self.options is None:
            if self.matrix.shape[1] != k:
                raise ValueError(
                    f"{name} has {self.matrix.shape[1]} columns, but the data have {k} labels: {shown(classes)}."
                )
            square = self.matrix.shape[0] == k
            return self.matrix, None if square else [f"option {i + 1}" for i in range(self.matrix.shape[0])]
        texts = [str(label) for label in classes]
        if sorted(texts) != sorted(self.labels):
            raise ValueError(f"{name} has columns for {shown(self.labels)}, but the data have {shown(texts)}.")
        matrix = self.matrix[:, [self.labels.index(text) for text in texts]]
        if sorted(self.options) == sorted(texts):
            return matrix[[self.options.index(text) for text in texts]], None
        if len(self.options) == k:
            raise ValueError(
                f"{name} is square, so its rows must be the labels {shown(texts)}; it has {shown(self.options)}. Other "
                "answers need more rows, or fewer."
            )
        return matrix, self.options


def costs_path(loss: str | None) -> Path | None:
    """The file of costs that ``--loss`` names; None where it is the name of a loss."""
    from nashlearn.games.catalogue import LOSSES

    return None if loss is None or loss in LOSSES else Path(loss)


def loss_or_costs(loss: str, classes: Sequence[Any], known: str) -> tuple[str | np.ndarray, list[str] | None]:
    """The loss that ``--loss`` names, or the costs in the file that it names, and the answers that are no labels.

    ``known`` says in words what else the command takes.
    """
    from nashlearn.games.catalogue import LOSSES, suggested_name

    path = costs_path(loss)
    if path is None:
        return loss, None
    if not path.is_file():
        names = f"{', '.join(LOSSES)}{known}"
        raise ValueError(f"--loss must be {names} or a file of costs; {loss!r} is none of these.{suggested_name(loss)}")
    return read_costs(path).aligned(classes, str(path))


def read_costs(path: Path) -> Costs:
    """A cost matrix: numbers alone, or with the labels above and the answers at the left."""
    with reading(str(path)), path.open(newline="", encoding="utf-8-sig") as file:
        rows = [[entry.strip() for entry in row] for row in csv.reader(file) if any(entry.strip() for entry in row)]
    if not rows:
        raise ValueError(f"{path} is empty; a cost matrix is needed.")
    sign = next((sign for sign in (";", "\t") if len(rows[0]) == 1 and sign in rows[0][0]), None)
    if sign is not None:
        raise ValueError(f"{path} has {sign!r} between its columns; a file of costs needs commas.")
    named = any(number(entry) is None for entry in rows[0])
    labels = rows[0][1:] if named else None
    options = [row[0] for row in rows[1:]] if named else None
    body = [row[1:] for row in rows[1:]] if named else rows
    width = len(body[0]) if body else 0
    if not body or width == 0 or any(len(row) != width for row in body) or (labels and len(labels) != width):
        raise ValueError(f"{path} is no matrix: its rows have different lengths, or there are none.")
    wrong = [(i, j) for i, row in enumerate(body) for j, entry in enumerate(row) if number(entry) is None]
    if wrong:
        i, j = wrong[0]
        raise ValueError(f"{path}: row {i + 1}, column {j + 1} of the costs is {body[i][j]!r}, which is no number.")
    matrix = np.array(body, dtype=np.float64)
    if not (np.isfinite(matrix).all() and (matrix >= 0).all()):
        raise ValueError(f"{path}: costs must be finite and not negative.")
    for what, names in (("labels", labels), ("answers", options)):
        if names is not None and len(set(names)) != len(names):
            raise ValueError(f"{path}: two {what} have the same name.")
    return Costs(matrix, options, labels)


def explained(costs: Costs) -> dict[str, Any]:
    """What each answer costs, in words, and the play of one who knows nothing: the game at scores 0."""
    from nashlearn import games

    m, k = costs.matrix.shape
    labels = costs.labels or [f"label {j + 1}" for j in range(k)]
    options = costs.options or (labels if m == k else [f"answer {i + 1}" for i in range(m)])
    unit = costs.matrix[costs.matrix > 0].min(initial=np.inf)
    mistakes: list[dict[str, Any]] = []
    for j, label in enumerate(labels):
        for i, option in enumerate(options):
            cost = float(costs.matrix[i, j])
            if option == label and cost == 0:
                continue
            more = f", {cost / unit:.3g} times the smallest cost" if cost > unit else ""
            if cost == 0:
                more = ": as good as the label itself"
            words = f"answering {option!r} when the truth is {label!r} costs {cost:g}{more}"
            mistakes.append({"answer": option, "truth": label, "cost": cost, "words": words})
    mistakes.sort(key=lambda one: -one["cost"])
    blind = games.cost(costs.matrix).solve(np.zeros((1, k)))
    return {
        "labels": labels,
        "answers": options,
        "costs": costs.matrix.tolist(),
        "mistakes": mistakes,
        "knowing_nothing": {
            "answer": {option: round(float(p), 6) for option, p in zip(options, blind.p[0], strict=True) if p > 1e-9},
            "cost_at_worst": float(blind.value[0]),
        },
    }
