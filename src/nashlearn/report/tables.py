"""What the report of a classifier holds: one label for each row, with costs, grades or the right to abstain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np

from nashlearn.certificates import Losses, price_range
from nashlearn.report.baselines import Stakes, split
from nashlearn.report.sections import Measure, confusion, likely, positions, strings, thinned
from nashlearn.report.summary import Page, PageOptions

__all__ = ["abstention_report_data", "classification_report_data", "ordinal_report_data"]

_COLUMNS, _LETTERS = 6, 240  # of a row that is shown as an example, at most


class TableOptions(PageOptions, total=False):
    """Arguments that every report of rows takes."""

    baselines: Mapping[str, Any] | None
    label_names: Mapping[Any, str] | None
    texts: Sequence[str] | None


class _Table(Stakes):
    """Answers of a model and of its baselines to rows with labels, as positions in its costs."""

    def __init__(
        self,
        model: Any,
        X: Any,
        y: Any,
        title: str,
        baselines: Any = None,
        label_names: Any = None,
        texts: Any = None,
        **page: Unpack[PageOptions],
    ):
        self.model, self.X, self.page = model, X, Page(title, **page)
        _, self.estimator = split(model)
        super().__init__(self.estimator)
        self.labels = self._labels(y, "y")
        if self.labels.size == 0:
            raise ValueError("X and y must hold at least one row.")
        self.answerers = {"this model": model, **(baselines or {})}
        self.options = np.column_stack([self._answers(name, one) for name, one in self.answerers.items()])
        self.label_names, self.answer_names = (strings(label_names, one) for one in (self.classes, self.possible))
        if hasattr(self.estimator, "abstain_label"):
            self.answer_names[-1] = "abstain"
        if texts is not None and len(texts) != self.labels.size:
            raise ValueError(f"texts must hold one text for each of the {self.labels.size} rows; got {len(texts)}.")
        self.texts = texts
        self.p = self._strategies()

    def _answers(self, name: str, answerer: Any) -> np.ndarray:
        """Positions of answers: those that are given, or what ``answerer`` predicts."""
        answer = answerer
        if hasattr(answerer, "predict"):
            last, features = self._behind(answerer)
            answer = getattr(last, "predict_or_abstain", last.predict)(features)
        who = "model" if answerer is self.model else name
        given, why = np.asarray(answer, dtype=object).tolist(), "is not among the answers of the model"
        found = positions(given, self.possible, f"{who} holds", why)
        if found.size != self.labels.size:
            raise ValueError(f"{who} gave {found.size} answers for {self.labels.size} rows.")
        return found

    def _labels(self, labels: Any, name: str) -> np.ndarray:
        why = "is not among the classes of the model"
        return positions(np.asarray(labels).tolist(), self.classes, f"{name} holds", why)

    def _behind(self, answerer: Any) -> tuple[Any, Any]:
        """The last step of a model, and what the steps before it make of the rows."""
        before, last = split(answerer)
        return last, self.X if before is None else before.transform(self.X)

    def _strategies(self) -> np.ndarray:
        """The equilibrium strategy (n, options) of the model for each row."""
        last, features = self._behind(self.model)
        return np.asarray(last.strategy(features))

    def ranking(self, answerer: Any) -> tuple[np.ndarray, np.ndarray] | None:
        """Positions of the labels that it would give, and by what it abstains (largest first), or None."""
        if hasattr(answerer, "ranking"):
            labels, reluctance = answerer.ranking(self.X)
        else:
            if not hasattr(split(answerer)[1], "abstain_proba"):
                return None
            last, features = self._behind(answerer)
            labels, reluctance = last.predict(features), last.abstain_proba(features)
        return self._labels(labels, "labels"), reluctance

    def measure(self, name: str, costs: np.ndarray, percent: bool = False) -> Measure:
        """The mean of ``costs[answer, label]`` for each model."""
        paid = costs[self.options, self.labels[:, None]].astype(np.float64)
        return Measure(name, paid, np.ones_like(paid), percent=percent)

    def error(self) -> Measure:
        """The share of rows that are not given their label; abstentions count as errors."""
        return self.measure("Error rate", 1.0 - np.eye(*self.costs.shape), percent=True)

    def examples(self, rows: np.ndarray) -> list[dict[str, Any]]:
        """What is shown of rows: their text and the likely answers."""
        names = self.answer_names
        return [{"row": int(i), "text": self._text(int(i)), "likely": likely(self.p[i], names)} for i in rows]

    def _text(self, i: int) -> str:
        text = ""
        if self.texts is not None:
            text = str(self.texts[i])
        elif hasattr(self.X, "iloc"):
            row = self.X.iloc[i]
            parts = [f"{name} = {_short(value)}" for name, value in zip(self.X.columns, row, strict=True)]
            text = ", ".join(parts[:_COLUMNS]) + (", …" if len(parts) > _COLUMNS else "")
        return text if len(text) <= _LETTERS else text[: _LETTERS - 1] + "…"

    def report(self, kind: str, measures: list[Measure], unit: str, own: list[Any]) -> dict[str, Any]:
        """The whole report, in which sections of its own stand before the confusion."""
        expected = float(np.einsum("nm,mn->", self.p, self.costs[:, self.labels]) / self.labels.size)
        names, costs = (self.answer_names, self.label_names), self.costs
        matrix = confusion(self.options[:, 0], self.labels, *names, costs, "rows", self.examples, self.aligned)
        worst = (unit, expected, float(costs.max()))
        losses = Losses(costs[self.options[:, 0], self.labels], *price_range(costs))
        return self.page.report(kind, self.estimator, self.answerers, measures, "rows", [*own, matrix], worst, losses)


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)


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
    title, facts, confidence, random_state
        As in :mod:`nashlearn.report`.
    """
    table = _Table(model, X, y, title, **options)
    measures = [] if table.zero_one else [table.measure("Mean cost", table.costs)]
    if table.aligned:
        measures.append(table.error())
    unit = "error per row" if table.zero_one else "cost per row"
    return table.report("classification", measures, unit, [])


def ordinal_report_data(
    model: Any, X: Any, y: Any, *, title: str = "Ordinal report", **options: Unpack[TableOptions]
) -> dict[str, Any]:
    """The report of ordered labels, with a histogram of errors: of a :class:`nashlearn.NashOrdinalClassifier`, or of a
    :class:`nashlearn.NashClassifier` whose loss is a distance between ranks. As :func:`classification_report_data`.
    """
    table = _Table(model, X, y, title, **options)
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
    unit = "grades off per row" if absolute else "cost per row"
    return table.report("ordinal", measures, unit, [_errors(table)])


def _errors(table: _Table) -> dict[str, Any]:
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
    table = _Table(model, X, y, title, **options)
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
    return table.report("abstention", measures, "cost per row", [_coverage(table)])


def _coverage(table: _Table) -> dict[str, Any]:
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


def _curve(table: _Table, name: str, best: np.ndarray, reluctance: np.ndarray) -> dict[str, Any]:
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
