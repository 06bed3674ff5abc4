"""Checks of the factories' arguments."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

__all__ = ["cost_matrix", "label_count", "label_values", "label_weights"]


def label_count(k: Any) -> int:
    """``k`` as a positive int."""
    if isinstance(k, bool) or not isinstance(k, numbers.Integral) or k < 1:
        raise ValueError(f"k must be a positive integer, the number of labels; got {k!r}")
    return int(k)


def _vector(name: str, values: Any, k: int) -> np.ndarray:
    vector = np.array(values, dtype=np.float64)
    if vector.shape != (k,):
        raise ValueError(f"{name} must hold one number for each of the {k} labels; got shape {vector.shape}")
    if not np.isfinite(vector).all():
        raise ValueError(f"{name} must be finite; got {values!r}")
    return vector


def label_weights(weights: Any, k: int) -> np.ndarray:
    """One positive weight for each label."""
    vector = _vector("weights", weights, k)
    if not (vector > 0).all():
        raise ValueError(f"weights must be positive; got {weights!r}")
    return vector


def label_values(values: Any, k: int) -> np.ndarray:
    """Increasing positions of the labels, centred: a loss of distances does not see the shift."""
    vector = _vector("values", np.arange(k) if values is None else values, k)
    if not (np.diff(vector) > 0).all():
        raise ValueError(f"values must be strictly increasing; got {values!r}")
    return vector - (0.5 * vector[0] + 0.5 * vector[-1])


def cost_matrix(L: Any) -> np.ndarray:
    """A nonempty, finite matrix without negative entries."""
    matrix = np.array(L, dtype=np.float64)
    if matrix.ndim != 2 or matrix.size == 0:
        raise ValueError(f"L must be a matrix, options by labels, and not empty; got shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise ValueError("L must be finite; it holds NaN or infinite entries")
    if (matrix < 0).any():
        raise ValueError(f"L must not be negative, as a loss is not; its smallest entry is {matrix.min():g}")
    return matrix
