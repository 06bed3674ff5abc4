"""The zero-one game with one weight for each true label: ``L_ij = w_j`` off the diagonal, in O(k).

The value ``V`` solves ``sum_j [1 - (V - f_j) / w_j]_+ = 1``; the predictor plays those terms, and the
adversary ``q_j`` proportional to ``1 / w_j`` on their support, which makes all its rows of ``L q`` equal.
With equal weights this is ([fathony2016]_, Thm 1) scaled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nashlearn.games.rows import kernels
from nashlearn.games.rows.kernels import implements
from nashlearn.solvers.matrix_game import largest

__all__ = ["WeightedZeroOne"]


class WeightedZeroOne(NamedTuple):
    """Weights of the labels, their inverses, and the cost matrix that they make."""

    weights: np.ndarray
    inverse: np.ndarray
    L: np.ndarray


@implements(kernels.equilibrium, WeightedZeroOne)
def _equilibrium(loss, scores, q, p):
    w, inverse, k = loss.weights, loss.inverse, scores.size
    top = largest(scores)
    # Newton from V = top, where the sum is at least 1: it is convex and falling, so the iterates rise
    # to the root and stop, exactly, once the support no longer shrinks. The mass is that of the last pass: at a
    # tie rounding may let a label in again, which is no worse a reply, but has to be counted.
    t, mass, support = 0.0, 0.0, k + 1
    while True:
        total, mass, count = -1.0, 0.0, 0
        for j in range(k):
            excess = np.float64(scores[j]) - top + w[j]
            if excess > t:
                total += excess * inverse[j]
                mass += inverse[j]
                count += 1
        if count >= support or count == 0:
            break
        t, support = total / mass, count
    for j in range(k):
        excess = np.float64(scores[j]) - top + w[j]
        p[j] = max((excess - t) * inverse[j], 0.0)
        q[j] = inverse[j] / mass if excess > t else 0.0
    if count == 0:
        q[:] = np.nan
        p[:] = np.nan
    return top + t


@implements(kernels.gain, WeightedZeroOne)
def _gain(loss, p, reward):
    total = 0.0
    for j in range(p.size):
        total += p[j]
    for j in range(p.size):
        reward[j] += loss.weights[j] * (total - p[j])
    return 0.0


@implements(kernels.risk, WeightedZeroOne)
def _risk(loss, q):
    total, top = 0.0, 0.0
    for j in range(q.size):
        total += loss.weights[j] * q[j]
        top = max(top, loss.weights[j] * q[j])
    return total - top
