"""Newton's step of the interior point method for games over rows and constraints, by elimination.

The unknowns of an entry, its ``p`` and its ``q``, couple through the loss only: a 2 x 2 block [[a, -w], [w, b]].
Entries are eliminated first, then rows, whose blocks have the same form; the constraints' dense system is factored
once for the predictor and the corrector.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from nashlearn.solvers.dense import lu_factor, lu_solve

__all__ = ["Point", "direction", "factor", "new_point", "new_system", "sums"]


class Point(NamedTuple):
    """An iterate, a direction or a residual: entry 0 of each array is the predictor's, entry 1 the adversary's."""

    x: np.ndarray  # (2, m) strategies; of a residual: stationarity
    z: np.ndarray  # (2, m) their multipliers, >= 0; of a residual: complementarity of x and z
    y: np.ndarray  # (2, R) potentials of the rows; of a residual: sums of the rows
    lam: np.ndarray  # (2, K) potentials of the constraints, >= 0 for inequalities; of a residual: their sums
    s: np.ndarray  # (2, K) slacks of the inequalities; of a residual: complementarity of lam and s


class _System(NamedTuple):
    """The eliminated Newton system; (u, w, v) stands for the block [[u, w], [-w, v]]."""

    inverse: np.ndarray  # (2, m) 1 / x
    entry: np.ndarray  # (3, m) inverse blocks of the entries
    row: np.ndarray  # (3, R) inverse blocks of the rows
    coupling: np.ndarray  # (2K, 2R) constraints by rows
    schur: np.ndarray  # (2K, 2K) factors of the constraints' system
    pivot: np.ndarray  # (2K,)


@njit(cache=True, nogil=True)
def new_point(m, R, K):
    return Point(np.zeros((2, m)), np.zeros((2, m)), np.zeros((2, R)), np.zeros((2, K)), np.zeros((2, K)))


@njit(cache=True, nogil=True)
def new_system(m, R, K):
    return _System(
        np.empty((2, m)),
        np.empty((3, m)),
        np.empty((3, R)),
        np.empty((2 * K, 2 * R)),
        np.empty((2 * K, 2 * K)),
        np.empty(2 * K, np.int64),
    )


@njit(cache=True, nogil=True)
def sums(game, x, rows, constraints):
    """What the rows and the constraints sum to."""
    rows[:] = 0.0
    constraints[:] = 0.0
    for e in range(game.row.size):
        p, q, i = x[0, e], x[1, e], game.row[e]
        if i >= 0:
            rows[0, i] += p
            rows[1, i] += q
        for t in range(game.first[e], game.first[e + 1]):
            k = game.member[t]
            constraints[0, k] += p
            constraints[1, k] += q


@njit(cache=True, nogil=True)
def factor(game, at, system):
    """Eliminate entries and rows at an iterate, and factor what is left; False where it is singular."""
    R, K = game.n_rows, game.equality.size
    inverse, entry, row, coupling, schur = system.inverse, system.entry, system.row, system.coupling, system.schur
    row[:] = 0.0
    coupling[:] = 0.0
    schur[:] = 0.0
    for e in range(game.row.size):
        inverse[0, e], inverse[1, e] = 1.0 / at.x[0, e], 1.0 / at.x[1, e]
        a = game.mu_p + at.z[0, e] * inverse[0, e]
        b = game.mu_q + at.z[1, e] * inverse[1, e]
        w = game.weight[e]
        scale = 1.0 / (a * b + w * w)
        u, w, v = b * scale, w * scale, a * scale
        entry[0, e], entry[1, e], entry[2, e] = u, w, v
        i = game.row[e]
        if i >= 0:
            row[0, i] += u
            row[1, i] += w
            row[2, i] += v
        for t in range(game.first[e], game.first[e + 1]):
            k = game.member[t]
            if i >= 0:
                coupling[k, i] += u
                coupling[k, R + i] += w
                coupling[K + k, i] -= w
                coupling[K + k, R + i] += v
            for other in range(game.first[e], game.first[e + 1]):
                c = game.member[other]
                schur[k, c] += u
                schur[k, K + c] += w
                schur[K + k, c] -= w
                schur[K + k, K + c] += v
    for i in range(R):
        scale = 1.0 / (row[0, i] * row[2, i] + row[1, i] * row[1, i])
        row[0, i], row[1, i], row[2, i] = row[2, i] * scale, -row[1, i] * scale, row[0, i] * scale
    if K == 0:
        return True
    # Rows by constraints is the transpose with the signs of w changed; times the inverse blocks of the rows.
    through = np.empty((2 * R, 2 * K))
    for k in range(K):
        for i in range(R):
            u, w, v = coupling[k, i], coupling[k, R + i], coupling[K + k, R + i]
            through[i, k] = row[0, i] * u - row[1, i] * w
            through[i, K + k] = row[0, i] * w + row[1, i] * v
            through[R + i, k] = -row[1, i] * u - row[2, i] * w
            through[R + i, K + k] = -row[1, i] * w + row[2, i] * v
    # Near a vertex the difference below is all rounding: as much again keeps the system regular and its step small.
    for k in range(2 * K):
        schur[k, k] *= 1.0 + 1e-15
    schur -= np.dot(coupling, through)
    for k in range(K):
        if not game.equality[k]:
            schur[k, k] += at.s[0, k] / at.lam[0, k]
            schur[K + k, K + k] += at.s[1, k] / at.lam[1, k]
    return lu_factor(schur, system.pivot)


@njit(cache=True, nogil=True)
def direction(game, at, lack, system, step):
    """Newton's step towards what ``lack`` names, by back substitution; ``lack`` is kept."""
    R, K = game.n_rows, game.equality.size
    # Entries: h = D^-1 (complementarity / x - stationarity), and what rows and constraints then miss.
    for e in range(game.row.size):
        g = lack.z[0, e] * system.inverse[0, e] - lack.x[0, e]
        h = lack.z[1, e] * system.inverse[1, e] - lack.x[1, e]
        step.x[0, e] = system.entry[0, e] * g + system.entry[1, e] * h
        step.x[1, e] = -system.entry[1, e] * g + system.entry[2, e] * h
    sums(game, step.x, step.y, step.lam)
    right = np.empty(2 * K)
    for i in range(R):
        g, h = -lack.y[0, i] - step.y[0, i], -lack.y[1, i] - step.y[1, i]
        step.y[0, i] = system.row[0, i] * g + system.row[1, i] * h
        step.y[1, i] = -system.row[1, i] * g + system.row[2, i] * h
    for k in range(2 * K):
        player, c = k // K, k % K
        right[k] = -lack.lam[player, c] - step.lam[player, c]
        if not game.equality[c]:
            right[k] += lack.s[player, c] / at.lam[player, c]
        for i in range(R):
            right[k] -= system.coupling[k, i] * step.y[0, i] + system.coupling[k, R + i] * step.y[1, i]
    lu_solve(system.schur, system.pivot, right)
    for k in range(K):
        step.lam[0, k], step.lam[1, k] = right[k], right[K + k]
    # Back to the rows, to the entries, to multipliers and slacks.
    paid = np.zeros((2, R))
    for k in range(K):
        for i in range(R):
            u, w, v = system.coupling[k, i], system.coupling[k, R + i], system.coupling[K + k, R + i]
            paid[0, i] += u * right[k] + w * right[K + k]
            paid[1, i] += -w * right[k] + v * right[K + k]
    for i in range(R):
        step.y[0, i] -= system.row[0, i] * paid[0, i] + system.row[1, i] * paid[1, i]
        step.y[1, i] -= -system.row[1, i] * paid[0, i] + system.row[2, i] * paid[1, i]
    for e in range(game.row.size):
        g = h = 0.0
        if game.row[e] >= 0:
            g, h = step.y[0, game.row[e]], step.y[1, game.row[e]]
        for t in range(game.first[e], game.first[e + 1]):
            g += step.lam[0, game.member[t]]
            h += step.lam[1, game.member[t]]
        step.x[0, e] += system.entry[0, e] * g + system.entry[1, e] * h
        step.x[1, e] += -system.entry[1, e] * g + system.entry[2, e] * h
        for player in range(2):
            left = lack.z[player, e] - at.z[player, e] * step.x[player, e]
            step.z[player, e] = left * system.inverse[player, e]
    for k in range(K):
        if not game.equality[k]:
            for player in range(2):
                step.s[player, k] = (lack.s[player, k] - at.s[player, k] * step.lam[player, k]) / at.lam[player, k]
