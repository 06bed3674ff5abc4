"""What the report of a classifier holds: one label for each row, with costs, grades or the right to abstain."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from nashlearn.report.rows import JudgedRows, TableOptions
from nashlearn.report.sections import Measure, Unit, thinned

__all__ = ["abstention_report_data", "classification_report_data", "ordinal_report_data"]


def classification_report_data(
    model: Any, X: Any, y: Any, *, title: str = "Classification report", **options: Unpack[TableOptions]
) -> dict[str, Any]:
    """The report of a :class:`nashlearn.NashClassifier` with any loss or cost matrix, as plain data.

    Parameters
    ----------
    model : fitted estimator or pipeline
    X, y : rows and their labels, as the model takes them
        Not those that it was trained on. The columns of a data frame are shown in examples.
    baselines : mapping of names to fitted estimators or to answers, optional
        See :func:`table_baselines`. Where options are not labels (a cost matrix that is not square) they answer with
        indices of options, as the model does.
    label_names : mapping, optional
        Texts for labels.
    texts : sequence of str, optional
        What is shown of each row as an example.
    training : (X, y), optional
        What the model was trained on, without weights of rows: then weights of features have intervals, which takes ten
        fits to at most ``2e7`` numbers.
    title, facts, confidence, random_state, learning
        As in :mod:`nashlearn.report`.
    """
    table = JudgedRows(model, X, y, title, **options)
    measures = [] if table.zero_one else [table.measure("Mean cost", table.costs)]
    if table.aligned:
        measures.append(table.error())
    unit = Unit("errors", percent=True) if table.zero_one else Unit("cost per row")
    return table.report("classification", measures, unit, [])


def ordinal_report_data(
    model: Any, X: Any, y: Any, *, title: str = "Ordinal report", **options: Unpack[TableOptions]
) -> dict[str, Any]:
    """The report of ordered labels, with a histogram of errors: of a :class:`nashlearn.NashOrdinalClassifier`, or of a
    :class:`nashlearn.NashClassifier` whose loss is a distance between ranks. As :func:`classification_report_data`.
    """
    table = JudgedRows(model, X, y, title, **options)
    k = len(table.classes)
    if not table.aligned or table.costs.shape != (k, k):
        raise ValueError(f"An ordinal report needs a cost for each pair of grades; got costs {table.costs.shape}.")
    ranks = np.arange(k)
    distance = np.abs(ranks[:, None] - ranks)
    absolute = np.array_equal(table.costs, distance)
    measures = [] if absolute else [table.measure("Mean cost", table.costs)]
    measures += [
        table.measure("Mean absolute error", distance),
        table.error(),
        table.measure("Off by more than one", (distance > 1).astype(float), percent=True),
    ]
    unit = Unit("grades off per row" if absolute else "cost per row")
    return table.report("ordinal", measures, unit, [_errors(table)], ordered=True)


def _errors(table: JudgedRows) -> dict[str, Any]:
    """How many grades answers are too high or too low, for each model."""
    off = table.options - table.labels[:, None]
    low, high = min(int(off.min()), -1), max(int(off.max()), 1)
    offsets = np.arange(low, high + 1)
    first = off[:, 0]
    return {
        "type": "errors",
        "title": "How far off",
        "offsets": offsets,
        "series": [
            {"name": name, "counts": np.bincount(off[:, j] - low, minlength=offsets.size)}
            for j, name in enumerate(table.answerers)
        ],
        "examples": {
            int(d): table.examples(np.flatnonzero(first == d)[:6]) for d in offsets if d and (first == d).any()
        },
        "labels": table.label_names,
    }


def abstention_report_data(
    model: Any, X: Any, y: Any, *, title: str = "Abstention report", **options: Unpack[TableOptions]
) -> dict[str, Any]:
    """The report of a :class:`nashlearn.NashAbstainer`, with the curve of coverage and risk.

    As :func:`classification_report_data`. The model is judged by ``predict_or_abstain``; a baseline by that where it
    has it, else by ``predict``, whose answers may include the model's ``abstain_label``.
    """
    table = JudgedRows(model, X, y, title, **options)
    if not hasattr(table.estimator, "abstain_label"):
        raise ValueError(f"An abstention report needs a model that may abstain; got {type(table.estimator).__name__}.")
    k = len(table.classes)
    answered = (table.options < k).astype(float)
    wrong = (table.options < k) & (table.options != table.labels[:, None])
    measures = [
        table.measure("Mean cost", table.costs),
        Measure("Error rate where it answers", wrong.astype(float), answered, percent=True),
        Measure("Coverage", answered, np.ones_like(answered), lower_is_better=False, percent=True),
    ]
    return table.report("abstention", measures, Unit("cost per row"), [_coverage(table)])


def _coverage(table: JudgedRows) -> dict[str, Any]:
    """Coverage, error where it answers and mean cost, when rows are answered up to each threshold."""
    rankings = {name: table.ranking(peer) for name, peer in table.answerers.items()}
    curves = [_curve(table, name, *ranking) for name, ranking in rankings.items() if ranking is not None]
    k = len(table.classes)
    own = table.options[:, 0]
    given = own < k
    return {
        "type": "coverage",
        "title": "Coverage and risk",
        "price": table.costs[-1],
        "curves": curves,
        "chosen": {
            "coverage": given.mean(),
            "risk": (own[given] != table.labels[given]).mean() if given.any() else 0.0,
            "cost": table.costs[own, table.labels].mean(),
        },
        "n": table.labels.size,
    }


def _curve(table: JudgedRows, name: str, best: np.ndarray, reluctance: np.ndarray) -> dict[str, Any]:
    n = reluctance.size
    order = np.argsort(reluctance, kind="stable")
    wrong = table.costs[best, table.labels][order]
    price = table.costs[-1, table.labels][order]
    ends = np.flatnonzero(np.append(np.diff(reluctance[order]) > 0, True)) + 1  # rows answered at each threshold
    errors, saved = np.cumsum(wrong)[ends - 1], np.cumsum(price)[ends - 1]
    points = np.column_stack(
        [reluctance[order][ends - 1], ends / n, errors / ends, (errors + price.sum() - saved) / n]
    ).tolist()
    return {"name": name, "points": thinned([[float("-inf"), 0.0, 0.0, float(price.mean())], *points])}
