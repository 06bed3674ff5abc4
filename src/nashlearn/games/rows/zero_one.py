"""The zero-one game: ``L = 1 - I`` on the simplex, solved in O(k) without sorting.

With ``tau`` the sparsemax threshold of the scores, ``sum_j [f_j - tau]_+ = 1``, the value is
``F(f) = tau + 1``, the predictor plays ``p = [f - tau]_+`` and the adversary the uniform distribution on
the support of ``p`` ([fathony2016]_, Thm 1, whose maximising set is that support).

The proximal step that training takes decouples into two thresholds of the same kind: with
``sum_j [g_j - theta]_+ = 1 + a`` and ``sum_j [g_j - t]_+ = 1``,

    q = ([g - theta]_+ - [g - t]_+) / a,        p = [g - t]_+,

since capping ``q`` at its largest entry ``u = (t - theta) / a`` removes exactly what exceeds ``t``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from nashlearn.games.rows import kernels
from nashlearn.games.rows.kernels import implements, where
from nashlearn.solvers.matrix_game import largest

__all__ = ["ZeroOne", "shifted_threshold"]

_FAST = {"reassoc", "contract", "nsz"}  # lets LLVM vectorise sums; NaN and inf keep their meaning


class ZeroOne(NamedTuple):
    """Parameters of the zero-one loss: the number of labels. Its steps may be taken on a subset of them."""

    k: int

    @property
    def own_contenders(self) -> bool:
        """Steps may be taken on a subset of the labels."""
        return True

    @property
    def L(self) -> np.ndarray:
        """The cost matrix ``1 - I``."""
        return 1.0 - np.eye(self.k)


@njit(cache=True, nogil=True, fastmath=_FAST)
def _above(scores, m, top, t):
    """Sum and number of the first ``m`` entries of ``scores - top`` that exceed ``t``."""
    total, count = 0.0, 0
    for j in range(m):
        excess = np.float64(scores[j]) - top
        count += 1 if excess > t else 0
        total += excess if excess > t else 0.0
    return total, count


@njit(cache=True, nogil=True)
def shifted_threshold(scores, m, top, mass):
    """The ``t`` with ``sum_{j < m} [scores_j - top - t]_+ = mass``, where ``top`` is the largest score.

    Newton's iteration from ``t = -mass``: the sum is convex and falling in ``t``, so the iterates rise
    to the root and stop, exactly, once the support no longer shrinks. Working relative to ``top`` keeps
    full precision for scores of any size. Cost: O(k) for each of the few iterations.
    """
    t = -mass
    support = m + 1
    while True:
        total, count = _above(scores, m, top, t)
        if count >= support or count == 0:  # count 0: a NaN, or mass lost to rounding
            return t
        t = (total - mass) / count
        support = count


@where(kernels.reply, lambda kind: not hasattr(kind, "separate"))
def _projected(loss, reward, a):
    top = largest(reward)
    if a == 0.0:
        return top
    t = shifted_threshold(reward, reward.size, top, a)
    total = 0.0
    for j in range(reward.size):
        mass = max(reward[j] - top - t, 0.0) / a
        if mass > 0.0:
            total += mass * (reward[j] - top - 0.5 * a * mass)
    return top + total


@implements(kernels.equilibrium, ZeroOne)
def _equilibrium(loss, scores, q, p):
    top = largest(scores)
    t = shifted_threshold(scores, scores.size, top, 1.0)
    count = 0
    for j in range(scores.size):
        p[j] = max(np.float64(scores[j]) - top - t, 0.0)
        count += p[j] > 0.0
    for j in range(scores.size):
        q[j] = (1.0 / count if count else np.nan) if p[j] > 0.0 or count == 0 else 0.0
    return top + (t + 1.0)


@implements(kernels.gain, ZeroOne)
def _gain(loss, p, reward):
    total = 0.0
    for j in range(p.size):
        total += p[j]
    for j in range(p.size):
        reward[j] += total - p[j]
    return 0.0


@implements(kernels.risk, ZeroOne)
def _risk(loss, q):
    total, top = 0.0, 0.0
    for j in range(q.size):
        total += q[j]
        top = max(top, np.float64(q[j]))
    return total - top


@njit(cache=True, nogil=True, fastmath=_FAST)
def _within(scores, m, top, t, u):
    """Sum of ``top + t - scores_j`` over the first ``m`` entries where it lies in [0, u), and their number."""
    total, count = 0.0, 0
    for j in range(m):
        below = t - (np.float64(scores[j]) - top)
        free = below >= 0.0 and below < u
        count += 1 if free else 0
        total += below if free else 0.0
    return total, count


@njit(cache=True, nogil=True)
def _cap(scores, m, top, t, a):
    """The ``u`` with ``sum_{j < m} min([u + scores_j - top - t]_+, u) = a``: how far ``q`` rises, times ``a``.

    Newton's iteration from above, on the distances below the threshold alone, so that ``u`` stays exact where ``a`` is
    tiny beside the scores.
    """
    _, capped = _above(scores, m, top, t)
    u = a / capped
    reached = m + 1
    while True:
        total, free = _within(scores, m, top, t, u)
        if free >= reached:
            return u
        u = (a + total) / (capped + free)
        reached = free


@implements(kernels.prox, ZeroOne)
def _prox(loss, m, g, a, q, p):
    top = g[0]
    for j in range(1, m):
        top = max(top, g[j])
    t = shifted_threshold(g, m, top, 1.0)
    u = _cap(g, m, top, t, a)
    scale = 1.0 / a
    for j in range(m):
        excess = g[j] - top - t
        p[j] = max(excess, 0.0)
        q[j] = scale * min(max(excess + u, 0.0), u)


@implements(kernels.contenders, ZeroOne)
def _contenders(loss, g, a, q, near):
    lowest = np.inf
    for j in range(g.size):
        if q[j] > 0.0:
            lowest = min(lowest, g[j] - a * q[j])
    for j in range(g.size):
        near[j] = q[j] > 0.0 or g[j] > lowest - 0.02  # a label further off waits for the next full sweep


@implements(kernels.tangent, ZeroOne)
def _tangent(loss, a, q, p, jacobian):
    # (Cen_{q > 0} - Cen_{p > 0}) / a, with Cen_S = I_S - 1 1' / |S|: the entries at the cap move as one.
    support, capped = 0, 0
    for j in range(q.size):
        support += q[j] > 0.0
        capped += p[j] > 0.0
    if support == capped:
        return 0
    for i in range(q.size):
        for j in range(q.size):
            both = -1.0 / support if q[i] > 0.0 and q[j] > 0.0 else 0.0
            if p[i] > 0.0 and p[j] > 0.0:
                both += 1.0 / capped
            elif i == j and q[i] > 0.0:
                both += 1.0
            jacobian[i, j] = both / a
    return support
