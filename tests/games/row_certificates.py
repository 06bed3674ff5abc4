"""The compiled certificates of rows, of strategies from elsewhere."""

from __future__ import annotations

from typing import Any

from cases import Certificate, Smoothed
from numba import njit

from nashlearn.games.rows import kernels

__all__ = ["rows_gap", "smoothed_gap"]


@njit
def _gap(loss, scores, p, q):
    reward = scores.copy()
    upper = kernels.gain(loss, p, reward) + kernels.reply(loss, reward, 0.0)
    return upper - kernels.risk(loss, q) - scores @ q


@njit
def _smoothed_gap(loss, g, a, p, q):
    reward = g.copy()
    upper = kernels.gain(loss, p, reward) + kernels.reply(loss, reward, a)
    return upper - kernels.risk(loss, q) - g @ q + 0.5 * a * (q @ q)


def rows_gap(params: Any) -> Certificate:
    """What a best reply to ``p`` gets beyond what ``q`` secures, for the loss ``params``."""
    return lambda theta, p, q: float(_gap(params, theta, p, q))


def smoothed_gap(params: Any) -> Smoothed:
    """The same with smoothing: what is taken off is ``smoothing (|q|^2 - <1, q>) / 2``."""
    return lambda theta, smoothing, p, q: float(_smoothed_gap(params, theta + 0.5 * smoothing, smoothing, p, q))
