"""Checks of the factories' arguments, and of scores of structures."""

from __future__ import annotations

import numbers
import warnings
from typing import Any

import numpy as np

__all__ = [
    "cost_matrices",
    "cost_matrix",
    "element_count",
    "label_count",
    "label_values",
    "label_weights",
    "not_negative",
    "pair_weights",
    "refuse_nan",
    "row_factors",
    "score_size",
    "structured_scores",
    "warn_missed",
]


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


def cost_matrix(L: Any, name: str = "L") -> np.ndarray:
    """A nonempty, finite matrix without negative entries; an error calls it ``name``, and names the first bad entry."""
    try:
        matrix = np.array(L, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must be a matrix of numbers, options by labels; got {L!r:.100}") from None
    if matrix.ndim != 2 or matrix.size == 0:
        raise ValueError(f"{name} must be a matrix, options by labels, and not empty; got shape {matrix.shape}")
    for what, wrong in (("be finite", ~np.isfinite(matrix)), ("not be negative", matrix < 0)):
        if wrong.any():
            i, j = np.argwhere(wrong)[0].tolist()
            raise ValueError(f"{name} must {what}; entry [{i}, {j}] is {matrix[i, j]:g}")
    return matrix


def cost_matrices(costs: Any, name: str = "costs") -> np.ndarray:
    """Finite matrices (n, options, labels) without negative entries; an error names the first row that has others."""
    try:
        matrices = np.asarray(costs, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers of shape (n, options, labels); got {costs!r:.100}") from None
    if matrices.ndim != 3 or 0 in matrices.shape[1:]:
        raise ValueError(f"{name} must have shape (n, options, labels); got {matrices.shape}")
    _refuse_rows(name, matrices)
    return matrices


def row_factors(factors: Any, n: int | None = None, name: str = "factors") -> np.ndarray:
    """One finite factor, not negative, for each of ``n`` rows; an error names the first row that has another."""
    try:
        vector = np.asarray(factors, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be one number for each row; got {factors!r:.100}") from None
    if vector.ndim != 1 or n not in (None, vector.size):
        raise ValueError(f"{name} must have shape {'(n,)' if n is None else (n,)}; got {vector.shape}")
    _refuse_rows(name, vector)
    return vector


def _refuse_rows(name: str, array: np.ndarray) -> None:
    """Refuse rows with entries that are NaN, infinite or negative."""
    for what, wrong in (("finite", ~np.isfinite(array)), ("not negative", array < 0)):
        if wrong.any():
            row = int(np.argmax(wrong.reshape(len(array), -1).any(axis=1)))
            raise ValueError(f"{name} must be {what}; row {row} holds {array[row][wrong[row]].flat[0]:g}")


def element_count(name: str, n: Any, least: int) -> int:
    """A number of elements as an int."""
    if isinstance(n, bool) or not isinstance(n, numbers.Integral) or n < least:
        raise ValueError(f"{name} must be an integer, at least {least}, the number of elements; got {n!r}")
    return int(n)


def pair_weights(weights: Any, n1: int, shape: tuple[int, int]) -> np.ndarray:
    """A cost for each entry of ``shape``: those of each left element spread along its row, 1 where none are given."""
    costs = np.zeros(shape)
    costs[:n1] = 1.0
    if weights is not None:
        given = np.array(weights, dtype=np.float64)
        if given.shape not in ((n1,), shape):
            raise ValueError(f"weights must have shape ({n1},) or {shape}; got {given.shape}")
        if not (np.isfinite(given).all() and (given >= 0).all()):
            raise ValueError(f"weights must be finite and not negative; got {weights!r}")
        if given.ndim == 2:
            return given
        costs[:n1] *= given[:, None]
    return costs


def not_negative(name: str, value: Any) -> float:
    """``value`` as a float, or an error that names the argument."""
    if not (isinstance(value, numbers.Real) and 0 <= float(value) < np.inf):
        raise ValueError(f"{name} must be a finite number, not negative; got {value!r}")
    return float(value)


def structured_scores(scores: Any, shape: tuple[int, ...], void: Any, fill: float, one: str, part: str) -> np.ndarray:
    """A copy of ``scores`` as C-ordered float32 or float64 of shape (b, \\*shape), with ``fill`` at the index ``void``.

    ``one`` and ``part`` are what errors call an instance and an entry.
    """
    scores = np.asarray(scores)
    if scores.dtype.kind not in "biuf":
        raise ValueError(f"scores must be real numbers; got dtype {scores.dtype}")
    if scores.shape[1:] != shape or scores.ndim != 1 + len(shape):
        hint = f"; use scores[None] for a single {one}" if scores.ndim == len(shape) else ""
        raise ValueError(f"scores must have shape (b, {', '.join(map(str, shape))}); got {scores.shape}{hint}")
    scores = np.array(scores, dtype=np.float32 if scores.dtype == np.float32 else np.float64, order="C")
    scores[:, *void] = fill
    infinite = scores == np.inf
    if infinite.any():
        b = infinite.reshape(len(scores), -1).any(axis=1).argmax()
        raise ValueError(f"scores must be finite, or -inf for a forbidden {part}; scores[{b}] holds +inf")
    return scores


def refuse_nan(scores: np.ndarray, what: str) -> None:
    """Refuse scores that are not numbers where ``what`` is asked for."""
    if np.isnan(scores).any():
        raise ValueError(f"scores must not be NaN where {what} is asked for")


def score_size(scores: np.ndarray) -> np.ndarray:
    """The largest finite score, in absolute value, of each instance."""
    return np.where(np.isfinite(scores), np.abs(scores), 0.0).reshape(len(scores), -1).max(axis=1, initial=0.0)


def warn_missed(missed: np.ndarray, distance: np.ndarray, what: str, tol: float) -> None:
    """Warn of what ended further from its goal than ``tol``; a line of the caller's caller is blamed."""
    if missed.any():
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(
            f"{missed.sum()} of {missed.size} {what} stopped at a gap of {distance[missed].max():.1e}, "
            f"above tol={tol:g}",
            ConvergenceWarning,
            stacklevel=3,
        )
