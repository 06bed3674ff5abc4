"""Answers of a model and of its baselines to the rows of a table, and the sections that every report of rows has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np

from nashlearn.certificates import Losses, price_range
from nashlearn.report import curves, importance
from nashlearn.report.baselines import Stakes, split
from nashlearn.report.sections import Measure, Unit, confusion, likely, positions, present, smoothing_of, strings
from nashlearn.report.summary import Page, PageOptions

__all__ = ["JudgedRows", "TableOptions"]

_COLUMNS, _LETTERS = 6, 240  # of a row that is shown as an example, at most


class TableOptions(PageOptions, total=False):
    """Arguments that every report of rows takes."""

    baselines: Mapping[str, Any] | None
    label_names: Mapping[Any, str] | None
    texts: Sequence[str] | None
    training: tuple[Any, Any] | None


class JudgedRows(Stakes):
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
        training: Any = None,
        **page: Unpack[PageOptions],
    ):
        peers, absent = present(baselines)
        self.model, self.X, self.page, self.training = model, X, Page(title, absent=absent, **page), training
        self.before, self.estimator = split(model)
        super().__init__(self.estimator)
        self.labels = self._labels(y, "y")
        if self.labels.size == 0:
            raise ValueError("X and y must hold at least one row.")
        self.answerers = {"this model": model, **peers}
        self.options = np.column_stack([self._answers(name, one) for name, one in self.answerers.items()])
        self.label_names, self.answer_names = (strings(label_names, one) for one in (self.classes, self.possible))
        if hasattr(self.estimator, "abstain_label"):
            self.answer_names[-1] = "abstain"
        if texts is not None and len(texts) != self.labels.size:
            raise ValueError(f"texts must hold one text for each of the {self.labels.size} rows; got {len(texts)}.")
        self.texts = texts
        self.p = np.asarray(self.estimator.strategy(self._features(X)))

    def _features(self, X: Any) -> Any:
        """What the first steps of the model make of rows."""
        return X if self.before is None else self.before.transform(X)

    def _answers(self, name: str, answerer: Any) -> np.ndarray:
        """Positions of answers: those that are given, or what ``answerer`` predicts."""
        answer = answerer
        if hasattr(answerer, "predict"):
            last, features = self._behind(answerer)
            answer = getattr(last, "predict_or_abstain", last.predict)(features)
        who = "model" if answerer is self.model else name
        found = self._places(answer, who)
        if found.size != self.labels.size:
            raise ValueError(f"{who} gave {found.size} answers for {self.labels.size} rows.")
        return found

    def _places(self, answer: Any, who: str) -> np.ndarray:
        given, why = np.asarray(answer, dtype=object).tolist(), "is not among the answers of the model"
        return positions(given, self.possible, f"{who} holds", why)

    def _labels(self, labels: Any, name: str) -> np.ndarray:
        why = "is not among the classes of the model"
        return positions(np.asarray(labels).tolist(), self.classes, f"{name} holds", why)

    def _behind(self, answerer: Any) -> tuple[Any, Any]:
        """The last step of a model, and what the steps before it make of the rows."""
        before, last = split(answerer)
        return last, self.X if before is None else before.transform(self.X)

    def paid(self, X: Any, labels: np.ndarray) -> np.ndarray:
        """What the model's answers to rows cost, given the positions of their labels."""
        answered = getattr(self.estimator, "predict_or_abstain", self.estimator.predict)(self._features(X))
        return self.costs[self._places(answered, "model"), labels]

    def _opinion(self, name: str, options: np.ndarray) -> curves.Opinion | None:
        """What one of the answerers thinks of the rows; None where it only answers."""
        answerer = self.answerers[name]
        if hasattr(answerer, "probabilities"):
            q = answerer.probabilities(self.X)
            return curves.Opinion(name, options, q, q)
        if not hasattr(answerer, "predict_proba"):
            return None
        last, features = self._behind(answerer)
        if last is self.estimator and not smoothing_of(last):  # it has scores; what it plays are no probabilities
            scores = np.asarray(last.decision_function(features))
            return curves.Opinion(name, options, None, scores if scores.ndim == 2 else np.stack([-scores, scores], 1))
        seen = np.asarray(last.classes_).tolist()
        q = np.zeros((self.labels.size, len(self.classes)))
        q[:, [self.classes.index(label) for label in seen]] = last.predict_proba(features)
        return curves.Opinion(name, options, q, q, self.p if last is self.estimator else None)

    def opinions(self) -> list[curves.Opinion]:
        """The model's own and those of baselines, each once: the same probabilities may be answered by in two ways."""
        found: list[curves.Opinion] = []
        for j, name in enumerate(self.answerers):
            one = self._opinion(name, self.options[:, j])
            if one is not None and not any(np.array_equal(one.scores, other.scores) for other in found):
                found.append(one)
        return found

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

    def _probable(self, ordered: bool) -> list[Any]:
        """Curves over thresholds where answers are labels, and reliability where there are probabilities."""
        opinions, confidence = self.opinions(), self.page.confidence
        events = curves.events_of(self.label_names, self.labels, len(self.possible), ordered)
        found = []
        if self.aligned and events:
            found.append(curves.thresholds(opinions, events, self.labels, self.costs, confidence))
        if opinions[0].q is not None:
            found.append(curves.reliability(opinions, events, self.labels, confidence))
        return found

    def _weights(self) -> dict[str, Any] | None:
        """The weights of a linear model, with intervals where the training data are known."""
        coef, spread, page = getattr(self.estimator, "coef_", None), None, self.page
        if coef is None:
            return None
        if self.training is not None:
            X, y = self.training
            spread = importance.jackknife(self.estimator, self._features(X), y, page.random_state)
        names = importance.feature_names(self.before, self.X, coef.shape[1])
        return importance.weights(self.estimator, names, self.label_names, spread, page.confidence)

    def report(
        self, kind: str, measures: list[Measure], unit: Unit, own: list[Any], ordered: bool = False
    ) -> dict[str, Any]:
        """The whole report, in which sections of its own stand before the confusion."""
        expected = float(np.einsum("nm,mn->", self.p, self.costs[:, self.labels]) / self.labels.size)
        names, costs = (self.answer_names, self.label_names), self.costs
        sections = [
            *own,
            confusion(self.options[:, 0], self.labels, *names, costs, "rows", self.examples, self.aligned),
            *self._probable(ordered),
            importance.importances(self.model, self.X, self.labels, self.paid, self.page),
            self._weights(),
        ]
        losses = Losses(costs[self.options[:, 0], self.labels], *price_range(costs))
        page, answerers = self.page, self.answerers
        return page.report(kind, self.estimator, answerers, measures, "rows", sections, expected, losses, unit)


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)
