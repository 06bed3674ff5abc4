"""The compiled certificates of rows, of strategies from elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
from cases import Certificate, Smoothed
from scipy.special import entr

from nashlearn.kernels.loss import risk_rows

__all__ = ["binary_gap", "rows_gap", "tempered_gap"]


def _gap(params: Any, f: np.ndarray, mu: float, p: np.ndarray, q: np.ndarray, entropy: float) -> float:
    """What a best reply to ``p`` gets beyond what ``q`` secures, where ``mu`` times an entropy is paid."""
    loss, risk = params.compiled(), np.empty(1)
    f, p, q = (np.ascontiguousarray(x, dtype=np.float64) for x in (f, p, q))
    risk_rows(loss, q[None, :], risk)
    return float(loss.earned(f, p, mu) - risk[0] - f @ q - mu * entropy)


def rows_gap(params: Any) -> Certificate:
    """What a best reply to ``p`` gets beyond what ``q`` secures, for the loss ``params``."""
    return lambda theta, p, q: _gap(params, theta, 0.0, p, q, 0.0)


def tempered_gap(params: Any) -> Smoothed:
    """The same with the entropy of the label added."""
    return lambda theta, mu, p, q: _gap(params, theta, mu, p, q, entr(q).sum())


def binary_gap(params: Any) -> Smoothed:
    """The same with the entropy of independent coordinates added."""
    return lambda theta, mu, p, q: _gap(params, theta, mu, p, q, entr(q).sum() + entr(1.0 - q).sum())
