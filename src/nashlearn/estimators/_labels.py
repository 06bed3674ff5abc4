"""Labels and their positions among the classes, which need not be sorted."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["known_positions", "positions"]


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
