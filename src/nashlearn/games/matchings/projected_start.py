"""An equilibrium of complete matchings guessed from the projection of the scores, often exact for small scores.

The projection ``p`` of the scores makes every pair of its support ``S``, and no other, a best reply. The adversary's
``q = a_i + b_j`` on ``S`` with rows and columns that sum to 1 makes ``p`` a best answer if ``a_i + b_j >= 0`` for all
pairs, on ``S`` and off it: then both are an equilibrium of the Hamming loss. One linear system, the last of the
projection, finds ``a`` and ``b``. Where the condition fails, the pair is a good start.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from nashlearn.games.matchings.birkhoff import newton_step, project_matching

__all__ = ["projected_start"]


@njit(cache=True, nogil=True)
def projected_start(scores, x, y, lam):
    """Write strategies (2, n²) and potentials of rows (2, n) and of all columns but the last (2, n - 1).

    The best assignment's potentials must have been taken off ``scores`` (n, n). True where it is an equilibrium.
    """
    n = scores.shape[0]
    p, q = x[0].reshape(n, n), x[1].reshape(n, n)
    v, a, b = np.zeros(n), np.empty(n), np.ones(n)
    project_matching(scores, n, n, 1e-12, v, p)
    for i in range(n):
        size, u = 0.0, 0.0
        for j in range(n):
            if p[i, j] > 0.0:
                size += 1.0
                u += scores[i, j] - v[j] - p[i, j]
        y[1, i] = -1.0 - u / size - v[n - 1]
        for j in range(n):
            if p[i, j] > 0.0:
                b[j] -= 1.0 / size
    newton_step(p, n, n, 1e-11, b)
    for i in range(n):
        size, a[i] = 0.0, 1.0
        for j in range(n):
            if p[i, j] > 0.0:
                size += 1.0
                a[i] -= b[j]
        a[i] /= size
        y[0, i] = -a[i] - b[n - 1]
    for j in range(n - 1):
        lam[0, j], lam[1, j] = b[n - 1] - b[j], v[n - 1] - v[j]
    least = 0.0
    for i in range(n):
        for j in range(n):
            least = min(least, a[i] + b[j])
            q[i, j] = max(a[i] + b[j], 0.0) if p[i, j] > 0.0 else 0.0
    return least > -1e-10
