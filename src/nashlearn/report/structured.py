"""What the reports of structured models share: answers in parts, and the examples that are shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from nashlearn.report.sections import Measure

__all__ = ["Structured", "answered"]

_WRONG, _RIGHT = 40, 20  # examples with mistakes and without that are shown, at most


class Structured:
    """Answers of a model, which come first, and of its baselines, against the truth, part by part.

    Parameters
    ----------
    model : fitted estimator
    truth : sequence of ndarrays
        The true parts of each example.
    answers : mapping of names to sequences of ndarrays
    unit : str
        What examples are called.
    """

    def __init__(self, model: Any, truth: Sequence[np.ndarray], answers: Mapping[str, Any], unit: str):
        self.model, self.truth, self.answers, self.unit = model, truth, answers, unit
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

    def shown(self, kind: str, title: str, draw: Callable[[Any], list[Any]], random_state: int) -> dict[str, Any]:
        """Examples as ``draw`` makes them of positions, drawn from those with mistakes and from those without."""
        rng = np.random.default_rng(random_state)
        kinds = (np.flatnonzero(self.mistakes > 0), _WRONG), (np.flatnonzero(self.mistakes == 0), _RIGHT)
        rows = np.sort(np.concatenate([rng.permutation(rows)[:limit] for rows, limit in kinds]))
        section = {"type": kind, "title": title, "unit": self.unit, "n": self.mistakes.size}
        return {**section, "n_wrong": int((self.mistakes > 0).sum()), "items": draw(rows)}


def answered(name: str, answerer: Any, X: Any, sizes: Sequence[int]) -> list[np.ndarray]:
    """The answers to each example, given or predicted, one for each of its parts."""
    given = answerer.predict(X) if hasattr(answerer, "predict") else answerer
    answers = [np.asarray(one) for one in given]
    if [len(one) for one in answers] != list(sizes):
        raise ValueError(f"{name} must give {len(sizes)} answers, each as long as its example.")
    return answers
