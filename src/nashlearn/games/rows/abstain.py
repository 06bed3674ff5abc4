"""The zero-one game with one more option: to abstain, at a cost ``c`` whatever the label. O(k).

The Bayes risk is ``min(c, 1 - max q)``. Let ``s`` be the largest integer below ``1 / (1 - c)`` (all labels if
``c >= 1``), ``tau_1`` the sparsemax threshold of the scores and ``f_(s+1)`` the score of rank ``s + 1``. With

    tau = max(tau_1, f_(s+1)),    M = sum_j [f_j - tau]_+,

the value is ``F(f) = c + (1 - c) M + tau``, the predictor plays ``[f - tau]_+`` and abstains with the rest
``1 - M``. The adversary is uniform on the support if ``tau = tau_1``; otherwise it puts ``1 - c`` on each of
the first ``s`` labels and the rest on the next. For ``c <= 1/2`` this is thesis (2.53) and (2.62), which stop
there: ``F = c + min_M (1 - c) M + tau_M`` with ``d tau_M / dM = -1 / |support|`` proves it for every cost.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from nashlearn.games.rows import kernels
from nashlearn.games.rows.kernels import implements
from nashlearn.games.rows.zero_one import shifted_threshold
from nashlearn.solvers.matrix_game import largest

__all__ = ["Abstain", "abstain_params"]


class Abstain(NamedTuple):
    """Cost of abstaining, the integer ``s`` that it sets, and the cost matrix."""

    cost: float
    s: int
    L: np.ndarray


def abstain_params(L: np.ndarray, cost: float) -> Abstain:
    """Parameters for a finite ``cost >= 0`` and the matrix ``L`` (k + 1, k) that it makes."""
    k = L.shape[1]
    s = k if cost >= 1.0 else min(k, int(np.ceil(1.0 / (1.0 - cost))) - 1)
    return Abstain(cost, s, L)


@njit(cache=True, nogil=True)
def _ranked(scores, s, scratch):
    """The score of rank ``s + 1``, by insertion into the largest so far. Expected O(k + s^2 log k)."""
    for j in range(scores.size):
        if j > s and scores[j] <= scratch[s]:
            continue
        i = min(j, s)
        while i > 0 and scratch[i - 1] < scores[j]:
            scratch[i] = scratch[i - 1]
            i -= 1
        scratch[i] = scores[j]
    return np.float64(scratch[s])


@implements(kernels.equilibrium, Abstain)
def _equilibrium(loss, scores, q, p):
    k, s, c = scores.size, loss.s, loss.cost
    top = largest(scores)
    if np.isnan(top):
        q[:] = np.nan
        p[:] = np.nan
        return top
    tau = shifted_threshold(scores, scores.size, top, 1.0)
    support = 0
    for j in range(k):
        support += np.float64(scores[j]) - top > tau
    certain = support <= s
    if not certain:
        tau = _ranked(scores, s, q) - top
    mass, above = 0.0, 0
    for j in range(k):
        p[j] = max(np.float64(scores[j]) - top - tau, 0.0)
        mass += p[j]
        above += p[j] > 0.0
    p[k] = 0.0 if certain else max(1.0 - mass, 0.0)
    level = s - above  # labels at tau that complete the first s
    for j in range(k):
        if p[j] > 0.0:
            q[j] = 1.0 / support if certain else 1.0 - c
        elif not certain and level >= 0 and np.float64(scores[j]) - top == tau:
            q[j] = 1.0 - c if level > 0 else 1.0 - s * (1.0 - c)
            level -= 1
        else:
            q[j] = 0.0
    return top + (1.0 + tau if certain else c + (1.0 - c) * mass + tau)


@implements(kernels.gain, Abstain)
def _gain(loss, p, reward):
    total = 0.0
    for j in range(reward.size):
        total += p[j]
    for j in range(reward.size):
        reward[j] += total - p[j]
    return loss.cost * p[reward.size]


@implements(kernels.risk, Abstain)
def _risk(loss, q):
    total, top = 0.0, 0.0
    for j in range(q.size):
        total += q[j]
        top = max(top, np.float64(q[j]))
    return min(loss.cost * total, total - top)
