"""Labels and their positions among the classes, which need not be sorted."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

__all__ = ["known_positions", "positions", "refuse_none", "warn_of_words"]


def refuse_none(y: Any) -> None:
    """Refuse labels (n,) of which some are None, naming the first."""
    if isinstance(y, (list, tuple)) or getattr(y, "dtype", None) == np.dtype(object):
        gone = [i for i, label in enumerate(y) if label is None]
        if gone:
            raise ValueError(
                f"y holds None in {len(gone)} of {len(y)} rows, the first of them row {gone[0]}; each row needs a "
                "label. Leave rows without one out: keep = [label is not None for label in y]."
            )


def warn_of_words(labels: np.ndarray, advice: str, level: int) -> None:
    """Warn where ordered labels are words, sorted by the alphabet; ``level`` calls above this one is the user's."""
    if labels.size > 2 and all(isinstance(label, str) for label in labels.tolist()):
        warnings.warn(
            f"y holds words and no order: the grades are taken to be {labels.tolist()}, from low to high, which is the "
            f"order of the alphabet. If that is wrong, {advice}.",
            UserWarning,
            stacklevel=level + 1,
        )


def positions(classes: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the labels ``y`` (n,) stand among ``classes``, and which of them are none of these; O(n log k)."""
    order = np.argsort(classes, kind="stable")
    at = order[np.searchsorted(classes, y, sorter=order).clip(max=classes.size - 1)]
    return at.astype(np.int64), classes[at] != y


def known_positions(classes: np.ndarray, y: Any, where: str, of: str = "y") -> np.ndarray:
    """As :func:`positions`; a label that is no class is an error, which says ``where`` it should have been."""
    y = np.asarray(y)
    at, wrong = positions(classes, y)
    if np.any(wrong):
        raise ValueError(f"{of} holds the label {y[wrong].tolist()[0]!r}, which {where}: {classes}.")
    return at
