"""The games of ordered labels at real positions ``t_1 < ... < t_k``, each solved in one pass, O(k).

Absolute loss ``|t_i - t_j|``. With ``A = max_i f_i - t_i`` and ``B = max_j f_j + t_j``,

    F(f) = (A + B) / 2,    q = half on each maximiser,    p = the point c = (B - A) / 2,

"the point c" being its interpolation between the two positions beside it: ``f_j <= min(A + t_j, B - t_j)``
says ``F - f_j >= |t_j - c|``, and the interpolation's expected distance to every position is ``|t_j - c|``
([fathony2017]_, Thm 1; thesis (2.32)).

Squared loss ``(t_i - t_j)^2``. With ``h`` the upper concave hull of the points ``(t_j, f_j + t_j^2)``,

    F(f) = max_x  h(x) + min_l (t_l^2 - 2 t_l x),

which is concave and bends only at positions and at midpoints of neighbours, so one pass along the hull
finds it; the thesis's formula (2.37) takes O(k^3). At a midpoint, ``q`` is the pair of hull vertices around
it and ``p`` the pair of neighbours with mean half the hull's slope; at a position both are pure.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from nashlearn.games.rows import kernels
from nashlearn.games.rows.kernels import implements
from nashlearn.solvers.matrix_game import largest

__all__ = ["Absolute", "Squared"]


class Absolute(NamedTuple):
    """Positions of the labels, increasing and centred, and the cost matrix ``|t_i - t_j|``."""

    t: np.ndarray
    L: np.ndarray


class Squared(NamedTuple):
    """Positions of the labels, increasing and centred, and the cost matrix ``(t_i - t_j)^2``."""

    t: np.ndarray
    L: np.ndarray


@njit(cache=True, nogil=True)
def _interpolate(t, low, c, p):
    """Put mass on ``t[low]`` and ``t[low + 1]`` so that the mean is ``c``, which lies between them."""
    share = min(max((c - t[low]) / (t[low + 1] - t[low]), 0.0), 1.0)
    p[low] = 1.0 - share
    p[low + 1] = share


@implements(kernels.equilibrium, Absolute)
def _absolute_equilibrium(loss, scores, q, p):
    t, k = loss.t, scores.size
    top = largest(scores)
    A, B, first, last = -np.inf, -np.inf, 0, 0
    for j in range(k):
        excess = np.float64(scores[j]) - top
        q[j] = p[j] = 0.0
        if excess - t[j] > A:
            A, first = excess - t[j], j
        if excess + t[j] >= B:
            B, last = excess + t[j], j
    if np.isnan(top):
        q[:] = np.nan
        p[:] = np.nan
        return top
    q[first] += 0.5
    q[last] += 0.5
    c, low = 0.5 * (B - A), 0
    while low < k - 2 and t[low + 1] < c:
        low += 1
    if k == 1:
        p[0] = 1.0
    else:
        _interpolate(t, low, c, p)
    return top + 0.5 * (A + B)


@implements(kernels.gain, Absolute)
def _absolute_gain(loss, p, reward):
    t = loss.t
    distance, right, left = 0.0, 0.0, 0.0
    for i in range(p.size):
        distance += p[i] * (t[i] - t[0])
        right += p[i]
    for j in range(p.size):
        if j > 0:
            distance += (left - right) * (t[j] - t[j - 1])
        reward[j] += distance
        left += p[j]
        right -= p[j]
    return 0.0


@implements(kernels.risk, Absolute)
def _absolute_risk(loss, q):
    t = loss.t
    distance, right, left = 0.0, 0.0, 0.0
    for j in range(q.size):
        distance += q[j] * (t[j] - t[0])
        right += q[j]
    least = np.inf
    for i in range(q.size):
        if i > 0:
            distance += (left - right) * (t[i] - t[i - 1])
        least = min(least, distance)
        left += q[i]
        right -= q[i]
    return least


@njit(cache=True, nogil=True)
def _hull(t, scores, top, hull):
    """Upper concave hull of ``(t_j, f_j - top + t_j^2)`` by a monotone chain; returns its size.

    Labels that lie more than the widest squared distance below the top are never played: left out, they
    cannot spoil the precision of the others.
    """
    width = t[t.size - 1] - t[0]
    size = 0
    for j in range(t.size):
        if not np.float64(scores[j]) - top >= -width * width:
            continue
        height = np.float64(scores[j]) - top + t[j] * t[j]
        while size > 1:
            b, a = hull[size - 1], hull[size - 2]
            height_a = np.float64(scores[a]) - top + t[a] * t[a]
            height_b = np.float64(scores[b]) - top + t[b] * t[b]
            if (height_b - height_a) * (t[j] - t[b]) > (height - height_b) * (t[b] - t[a]):
                break
            size -= 1
        hull[size] = j
        size += 1
    return size


@implements(kernels.equilibrium, Squared)
def _squared_equilibrium(loss, scores, q, p):
    t, k = loss.t, scores.size
    best = np.argmax(scores)
    top = np.float64(scores[best])
    if np.isnan(top):
        q[:] = np.nan
        p[:] = np.nan
        return top
    hull = np.empty(k, np.int64)
    size = _hull(t, scores, top, hull)
    value, at, low, slope_at = 0.0, -1, 0, 0.0
    edge, height, slope = -1, 0.0, 0.0
    for m in range(k - 1):  # midpoint of t[m] and t[m + 1]
        x = 0.5 * (t[m] + t[m + 1])
        if size < 2 or x < t[hull[0]] or x > t[hull[size - 1]]:
            continue
        while edge < 0 or t[hull[edge + 1]] < x:
            edge += 1
            a, b = hull[edge], hull[edge + 1]
            height = np.float64(scores[a]) - top + t[a] * t[a]
            slope = (np.float64(scores[b]) - top + t[b] * t[b] - height) / (t[b] - t[a])
        here = height + slope * (x - t[hull[edge]]) - t[m] * t[m + 1]
        if here > value:
            value, at, low, slope_at = here, edge, m, slope
    q[:] = 0.0
    p[:] = 0.0
    if at < 0:
        q[best] = p[best] = 1.0
    else:
        a, b = hull[at], hull[at + 1]
        share = (0.5 * (t[low] + t[low + 1]) - t[a]) / (t[b] - t[a])
        q[a], q[b] = 1.0 - share, share
        _interpolate(t, low, 0.5 * slope_at, p)
    return top + value


@njit(cache=True, nogil=True)
def _moments(t, x):
    """Mass, mean and mass times variance of ``x`` over the positions."""
    mass, mean, spread = 0.0, 0.0, 0.0
    for j in range(x.size):
        mass += x[j]
        mean += x[j] * t[j]
    mean /= mass
    for j in range(x.size):
        spread += x[j] * (t[j] - mean) * (t[j] - mean)
    return mass, mean, spread


@implements(kernels.gain, Squared)
def _squared_gain(loss, p, reward):
    mass, mean, spread = _moments(loss.t, p)
    for j in range(p.size):
        distance = loss.t[j] - mean
        reward[j] += mass * distance * distance
    return spread


@implements(kernels.risk, Squared)
def _squared_risk(loss, q):
    mass, mean, spread = _moments(loss.t, q)
    least = np.inf
    for i in range(q.size):
        distance = loss.t[i] - mean
        least = min(least, mass * distance * distance)
    return least + spread
