"""Rows with quadratic smoothing: the game less ``smoothing Omega(q)``, ``Omega(q) = (|q|^2 - <1, q>) / 2``.

``Omega`` is 0 at every vertex of the simplex and of the cube, and negative elsewhere. The adversary's strategy is one
proximal step of the loss (:func:`nashlearn.games.rows.kernels.prox`). The certificate is that of the two strategies:
what ``q`` secures, and what a best reply to ``p``, the projection of its rewards, would earn.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numba.extending import overload

from nashlearn.games.rows import kernels
from nashlearn.games.rows.zero_one import ZeroOne, shifted_threshold

__all__ = ["smooth_reply", "smooth_rows"]


def smooth_reply(loss, g, a, p):  # pragma: no cover - compiled
    """Return ``max_q <g, q> + <p, L q> - a/2 |q|^2``: what the best adversary gets against ``p``."""
    raise NotImplementedError


@njit(cache=True, nogil=True)
def _projected(reward, a):
    """``max_q <reward, q> - a/2 |q|^2`` over the simplex."""
    top = reward[0]
    for j in range(1, reward.size):
        top = max(top, reward[j])
    t = shifted_threshold(reward, reward.size, top, a)
    total = 0.0
    for j in range(reward.size):
        mass = max(reward[j] - top - t, 0.0) / a
        if mass > 0.0:
            total += mass * (reward[j] - top - 0.5 * a * mass)
    return top + total


@overload(smooth_reply)
def _matrix_reply(loss, g, a, p):
    if "L" not in loss.instance_class._fields:
        return None

    def reply(loss, g, a, p):
        reward = g.copy()
        for i in range(p.size):
            if p[i] > 0.0:
                for j in range(g.size):
                    reward[j] += p[i] * loss.L[i, j]
        return _projected(reward, a)

    return reply


@overload(smooth_reply)
def _zero_one_reply(loss, g, a, p):
    if loss.instance_class is not ZeroOne:
        return None

    def reply(loss, g, a, p):
        total = 0.0
        for j in range(p.size):
            total += p[j]
        return _projected(g + (total - p), a)

    return reply


@njit(cache=True, nogil=True)
def _begin(scores, start, q):
    """Write ``start`` into ``q`` where the scores allow it, else the vertex of the largest score."""
    best, mass = 0, 0.0
    for j in range(scores.size):
        if scores[j] > scores[best]:
            best = j
        q[j] = start[j] if scores[j] > -np.inf else 0.0
        mass += q[j]
    if not abs(mass - 1.0) < 1e-9:
        q[:] = 0.0
        q[best] = 1.0


@njit(cache=True, nogil=True)
def smooth_rows(loss, scores, smoothing, value, q, p, gap, entropy, risk):
    """Equilibria of all rows of ``scores`` with ``smoothing > 0``, written into the last six arguments.

    ``q`` holds strategies to begin with, or NaN.
    """
    k = scores.shape[1]
    g, x, y = np.empty(k), np.empty(k), np.empty(p.shape[1])
    for i in range(scores.shape[0]):
        total = 0.0
        for j in range(k):
            total += scores[i, j]
        if np.isnan(total):
            q[i], p[i] = np.nan, np.nan
            value[i] = gap[i] = entropy[i] = risk[i] = np.nan
            continue
        top = kernels.common(loss, scores[i])
        for j in range(k):
            g[j] = np.float64(scores[i, j]) - top + 0.5 * smoothing
        _begin(scores[i], q[i], x)
        kernels.prox(loss, k, g, smoothing, x, y)
        q[i], p[i] = x, y
        least, lower, omega = kernels.risk(loss, x), 0.0, 0.0
        for j in range(k):
            if x[j] > 0.0:  # 0 * -inf must count as 0
                lower += (g[j] - 0.5 * smoothing) * x[j]
                omega += 0.5 * (x[j] - 1.0) * x[j]
        risk[i], entropy[i] = least, least - smoothing * omega
        lower += least - smoothing * omega
        value[i] = top + lower
        gap[i] = max(smooth_reply(loss, g, smoothing, y) - lower, 0.0)
