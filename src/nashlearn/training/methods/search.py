"""Steps along a direction: the first of a shrinking series that lowers a function enough."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["first_descent"]

_SUFFICIENT = 1e-4  # of what the slope promises


def first_descent(
    trial: Callable[[float], tuple[Any, ...]],
    value: float,
    slope: float,
    *,
    shortest: float,
    least: float = 0.05,
    slack: float = 1e-15,
) -> tuple[float, tuple[Any, ...]] | None:
    """The first step that satisfies Armijo's condition, and what ``trial`` returned there; None where none does.

    Each step is where the parabola through both values and the slope has its minimum, kept within sensible bounds.

    Parameters
    ----------
    trial : callable
        Maps a step to a tuple that begins with the function's value there; NaN is too large.
    value, slope : float
        Of the function at step 0.
    shortest : float
        Steps below this are not tried.
    least : float
        Ratio of two steps at least; at most it is 1/2.
    slack : float
        Relative rounding of values.
    """
    step = 1.0
    while step >= shortest:
        found = trial(step)
        if found[0] <= value + _SUFFICIENT * step * slope + slack * abs(value):
            return step, found
        curve = found[0] - value - step * slope
        factor = -0.5 * step * slope / curve if np.isfinite(curve) and curve > 0.0 else 0.5
        step *= min(max(factor, least), 0.5)
    return None
