"""What the reports of structured models share: answers in parts, and the examples that are shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from nashlearn.certificates import Losses
from nashlearn.report.sections import Measure, Unit
from nashlearn.report.summary import Page

__all__ = ["Structured", "answered"]

_WRONG, _RIGHT = 40, 20  # examples with mistakes and without that are shown, at most


class Structured:
    """Answers of a model, which come first, and of its baselines, against the truth, part by part.

    Parameters
    ----------
    page : Page
        Of the report.
    model : fitted estimator
    truth : sequence of ndarrays
        The true parts of each example.
    answers : mapping of names to sequences of ndarrays
    unit : str
        What examples are called.
    """

    def __init__(self, page: Page, model: Any, truth: Sequence[np.ndarray], answers: Mapping[str, Any], unit: str):
        self.page, self.model, self.truth, self.answers, self.unit = page, model, truth, answers, unit
        self.top, self.bottom = self.stacked(self._wrong)
        self.mistakes = self.top[:, 0]

    def _wrong(self, answer: Sequence[np.ndarray]) -> tuple[Any, Any]:
        pairs = zip(answer, self.truth, strict=True)
        return [float(np.count_nonzero(a != b)) for a, b in pairs], [float(len(one)) for one in self.truth]

    def stacked(self, measure: Callable[[Any], tuple[Any, Any]]) -> tuple[np.ndarray, np.ndarray]:
        """Numerators and denominators (examples, models) of a measure of each model's answers."""
        top, bottom = zip(*(measure(answer) for answer in self.answers.values()), strict=True)
        return np.column_stack(top), np.column_stack(bottom)

    def wrong(self, name: str) -> Measure:
        """Parts that differ from the truth."""
        return Measure(name, self.top, self.bottom, percent=True)

    def faultless(self, name: str) -> Measure:
        """Examples without a wrong part."""
        right = (self.top == 0).astype(float)
        return Measure(name, right, np.ones_like(right), lower_is_better=False, percent=True)

    def shown(self, kind: str, title: str, draw: Callable[[Any], list[Any]]) -> dict[str, Any]:
        """Examples as ``draw`` makes them of positions, drawn from those with mistakes and from those without."""
        rng = np.random.default_rng(self.page.random_state)
        kinds = (np.flatnonzero(self.mistakes > 0), _WRONG), (np.flatnonzero(self.mistakes == 0), _RIGHT)
        rows = np.sort(np.concatenate([rng.permutation(rows)[:limit] for rows, limit in kinds]))
        section = {"type": kind, "title": title, "unit": self.unit, "n": self.mistakes.size}
        return {**section, "n_wrong": int((self.mistakes > 0).sum()), "items": draw(rows)}

    def shares(self) -> Losses:
        """The share of parts of each example that differ from the truth."""
        parts = self.bottom[:, 0]
        return Losses(self.mistakes[parts > 0] / parts[parts > 0], 0.0, 1.0)

    def report(
        self, kind: str, measures: Any, sections: list[Any], unit: Unit, losses: Losses | None
    ) -> dict[str, Any]:
        """The whole report; ``losses`` are those of examples, in ``unit``."""
        return self.page.report(kind, self.model, self.answers, measures, self.unit, sections, None, losses, unit)


def answered(model: Any, baselines: Mapping[str, Any] | None, X: Any, sizes: list[int]) -> dict[str, list[np.ndarray]]:
    """The answers of each to each example, given or predicted, one for each of its parts."""
    found = {}
    for name, answerer in {"this model": model, **(baselines or {})}.items():
        given = answerer.predict(X) if hasattr(answerer, "predict") else answerer
        found[name] = [np.asarray(one) for one in given]
        if [len(one) for one in found[name]] != sizes:
            who = "model" if answerer is model else name
            raise ValueError(f"{who} must give {len(sizes)} answers, each as long as its example.")
    return found
