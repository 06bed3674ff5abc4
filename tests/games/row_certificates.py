"""The compiled certificates of rows, of strategies from elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
from cases import Certificate, Smoothed

from nashlearn.kernels.loss import risk_rows

__all__ = ["rows_gap", "smoothed_gap"]


def _gap(params: Any, g: np.ndarray, a: float, p: np.ndarray, q: np.ndarray) -> float:
    """What a best reply to ``p`` gets beyond what ``q`` secures, where ``a/2 |q|^2`` is taken off."""
    loss, risk = params.compiled(), np.empty(1)
    g, p, q = (np.ascontiguousarray(x, dtype=np.float64) for x in (g, p, q))
    risk_rows(loss, q[None, :], risk)
    return float(loss.earned(g, p, a) - risk[0] - g @ q + 0.5 * a * (q @ q))


def rows_gap(params: Any) -> Certificate:
    """What a best reply to ``p`` gets beyond what ``q`` secures, for the loss ``params``."""
    return lambda theta, p, q: _gap(params, theta, 0.0, p, q)


def smoothed_gap(params: Any) -> Smoothed:
    """The same with smoothing: what is taken off is ``smoothing (|q|^2 - <1, q>) / 2``."""
    return lambda theta, smoothing, p, q: _gap(params, theta + 0.5 * smoothing, smoothing, p, q)
