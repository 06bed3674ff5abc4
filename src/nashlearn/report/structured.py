"""What the reports of structured models share: answers in parts, and the examples that are shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = ["answered", "selection", "shown", "stacked", "wrong_parts"]

_WRONG, _RIGHT = 40, 20  # examples with mistakes and without that are shown, at most


def selection(mistakes: np.ndarray, random_state: int) -> np.ndarray:
    """Examples to show, in their order: drawn from those with mistakes and from those without."""
    rng = np.random.default_rng(random_state)
    kinds = (np.flatnonzero(mistakes > 0), _WRONG), (np.flatnonzero(mistakes == 0), _RIGHT)
    return np.sort(np.concatenate([rng.permutation(rows)[:limit] for rows, limit in kinds]))


def shown(kind: str, title: str, unit: str, mistakes: np.ndarray, items: list[Any]) -> dict[str, Any]:
    return {
        "type": kind,
        "title": title,
        "unit": unit,
        "n": mistakes.size,
        "n_wrong": int((mistakes > 0).sum()),
        "items": items,
    }


def stacked(measure: Callable[[Any], tuple[np.ndarray, np.ndarray]], answers: Sequence[Any]) -> tuple[Any, Any]:
    """Numerators and denominators (examples, models) of a measure of each model's answers."""
    parts = [measure(answer) for answer in answers]
    return np.column_stack([top for top, _ in parts]), np.column_stack([bottom for _, bottom in parts])


def answered(name: str, answerer: Any, X: Any, sizes: Sequence[int]) -> list[np.ndarray]:
    """The answers to each example, given or predicted, one for each of its parts."""
    given = answerer.predict(X) if hasattr(answerer, "predict") else answerer
    answers = [np.asarray(one) for one in given]
    if [len(one) for one in answers] != list(sizes):
        raise ValueError(f"{name} must give {len(sizes)} answers, each as long as its example.")
    return answers


def wrong_parts(truth: Sequence[np.ndarray]) -> Callable[[Sequence[np.ndarray]], tuple[np.ndarray, np.ndarray]]:
    """The measure that counts the parts of each example that differ from ``truth``, against all its parts."""
    sizes = np.array([float(len(one)) for one in truth])

    def wrong(answer: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        return np.array([float(np.count_nonzero(a != b)) for a, b in zip(answer, truth, strict=True)]), sizes

    return wrong
