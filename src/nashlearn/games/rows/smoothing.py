"""Rows with quadratic smoothing: the game less ``smoothing Omega(q)``, ``Omega(q) = (|q|^2 - <1, q>) / 2``.

``Omega`` is 0 at every vertex of the simplex and of the cube, and negative elsewhere. The adversary's strategy is one
proximal step of the loss (:func:`nashlearn.games.rows.kernels.prox`). The certificate is that of the two strategies:
what ``q`` secures, and what a best reply to ``p``, the projection of its rewards, would earn.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from nashlearn.games.rows import kernels

__all__ = ["smooth_rows"]


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
        upper = kernels.gain(loss, y, g) + kernels.reply(loss, g, smoothing)
        gap[i] = max(upper - lower, 0.0)
