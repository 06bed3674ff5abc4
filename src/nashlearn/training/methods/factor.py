"""Cholesky's factor of what is positive definite but for rounding."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg as sl

__all__ = ["shifted_factor"]


def shifted_factor(
    matrix: Callable[[], np.ndarray], shift: float, damping: float = 0.0, typical: float = 0.0
) -> np.ndarray:
    """The lower factor of a matrix, of which the lower triangle is read, plus ``shift`` and damping on the diagonal.

    Damping is relative to the mean of the diagonal, or to ``typical`` where that is more. Where rounding has made the
    matrix indefinite it is made anew, as the factor takes its room, and is damped more; beyond 1 it is left alone.
    """
    H = matrix()
    if not H.size:
        return H
    diagonal = np.einsum("jj->j", H)
    diagonal += shift + max(damping, 1e-14) * max(diagonal.mean(), typical)
    try:
        return sl.cho_factor(H, lower=True, overwrite_a=True, check_finite=False)[0]
    except np.linalg.LinAlgError:  # features, or values of a kernel, of very different sizes
        if damping > 1.0:
            return np.sqrt(diagonal.max()) * np.eye(len(H))
        return shifted_factor(matrix, shift, max(100.0 * damping, 1e-12), typical)
