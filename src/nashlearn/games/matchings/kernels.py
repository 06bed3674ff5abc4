"""Games between matchings, one after another, in compiled code.

A game is a matrix of scores. Its rows and columns sum to 1; in a partial matching the last column (leaving) and the
last row (entering) need not, and their common corner is void. Smoothing takes ``mu/2 (|q|² - <1, q>)`` off what the
adversary gets: ``mu/2`` joins the scores, and the square is the solver's.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from nashlearn.games.matchings.admissible import admissible_pairs
from nashlearn.games.matchings.assignment import best_matching, matching_score
from nashlearn.games.matchings.birkhoff import project_matching
from nashlearn.games.matchings.projected_start import projected_start
from nashlearn.solvers.interior import Saddle, saddle_point

__all__ = ["argmax_each", "project_each", "solve_matchings"]

_MAX_ITER = 100


@njit(cache=True, nogil=True)
def _shift(scores, rows, columns, u, v, out):
    """Scores less the potentials of the best matching: 0 on its pairs, whatever rounding says, and never positive."""
    rounding = 1e-15 * (rows + columns)
    for i in range(scores.shape[0]):
        for j in range(scores.shape[1]):
            of_row, of_column = u[i] if i < rows else 0.0, v[j] if j < columns else 0.0
            below = scores[i, j] - of_row - of_column
            tight = below > -rounding * (abs(scores[i, j]) + abs(of_row) + abs(of_column))
            out[i, j] = 0.0 if tight and scores[i, j] > -np.inf else below


@njit(cache=True, nogil=True)
def _saddle(relative, floor, weights, rows, columns, smoothing, keep, free):
    """The game over the pairs of ``keep`` and the columns of ``free``."""
    m = keep.sum()
    reward, weight = np.empty(m), np.empty(m)
    row, first, member = np.empty(m, np.int64), np.zeros(m + 1, np.int64), np.empty(m, np.int64)
    number = np.cumsum(free) - 1
    e = filled = 0
    for i in range(keep.shape[0]):
        for j in range(keep.shape[1]):
            if not keep[i, j]:
                continue
            reward[e], weight[e] = max(relative[i, j], floor) + weights[i, j], weights[i, j]
            row[e] = i if i < rows else -1
            if j < columns and free[j]:
                member[filled] = number[j]
                filled += 1
            e += 1
            first[e] = filled
    equality = np.ones(free.sum(), np.bool_)
    return Saddle(reward, np.zeros(m), weight, 0.0, smoothing, row, rows, first, member[:filled], equality)


@njit(cache=True, nogil=True)
def _certificate(relative, weights, rows, smoothing, p, q, work, column, u, v):
    """What ``q`` secures, its entropy and risk ``min_p <p, L q>``, and how much more ``p`` may lose: two matchings."""
    square = spread = secured = risk = 0.0
    for i in range(q.shape[0]):
        for j in range(q.shape[1]):
            if q[i, j] > 0.0:
                square += q[i, j] * q[i, j]
                spread += q[i, j] * (1.0 - q[i, j])
                secured += relative[i, j] * q[i, j]
                risk += weights[i, j] * q[i, j]
            allowed = relative[i, j] > -np.inf
            work[i, j] = weights[i, j] * q[i, j] if allowed else -np.inf
    best_matching(work, rows, column, u, v)
    risk -= matching_score(work, rows, column)
    secured += risk - 0.5 * smoothing * square
    for i in range(q.shape[0]):
        for j in range(q.shape[1]):
            work[i, j] = relative[i, j] + weights[i, j] * (1.0 - p[i, j]) - smoothing * q[i, j]
    best_matching(work, rows, column, u, v)
    reached = matching_score(work, rows, column) + 0.5 * smoothing * square
    return secured, risk + 0.5 * smoothing * spread, risk, max(reached - secured, 0.0)


@njit(cache=True, nogil=True)
def _solve_one(scores, weights, rows, columns, smoothing, tol, q, p):
    """Value, entropy, risk and gap of a game, strategies in ``q`` and ``p``; a gap of inf says that nothing matches."""
    N1, N2 = scores.shape
    column, u, v = np.empty(rows, np.int64), np.empty(rows), np.empty(columns)
    if not best_matching(scores, rows, column, u, v):
        return 0.0, 0.0, 0.0, np.inf
    worth = matching_score(scores, rows, column)
    # A matching that is further than this from the best is not worth the adversary's while, however much further.
    floor = -1.0 - (smoothing + weights.max()) * (rows + columns)
    relative, work = np.empty((N1, N2)), np.empty((N1, N2))
    _shift(scores, rows, columns, u, v, relative)
    keep, free = np.empty((N1, N2), np.bool_), np.ones(columns, np.bool_)
    forbidden = 0
    for i in range(N1):
        for j in range(N2):
            void = i == rows and j == columns
            keep[i, j] = scores[i, j] > -np.inf and not void
            forbidden += not (keep[i, j] or void)
    if forbidden:
        admissible_pairs(scores, rows, columns, column, keep, free)
    elif rows == N1:
        free[columns - 1] = False
    game = _saddle(relative, floor, weights, rows, columns, smoothing, keep, free)
    x, y, lam = np.empty((2, game.row.size)), np.empty((2, rows)), np.empty((2, game.equality.size))
    guessed = not forbidden and rows == N1 and weights.min() == 1.0 and weights.max() == 1.0
    exact = guessed and projected_start(relative, x, y, lam)
    if not exact or smoothing > 0.0:
        saddle_point(game, 0.1 * tol, _MAX_ITER, guessed, x, y, lam)
    e = 0
    for i in range(N1):
        for j in range(N2):
            q[i, j] = p[i, j] = 0.0
            if keep[i, j]:
                p[i, j] = x[0, e]
                q[i, j] = x[1, e] if relative[i, j] > floor else 0.0
                e += 1
    secured, entropy, risk, gap = _certificate(relative, weights, rows, smoothing, p, q, work, column, u, v)
    return worth + secured, entropy, risk, gap


@njit(cache=True, nogil=True)
def solve_matchings(scores, weights, partial, smoothing, tol, start, stop, value, q, p, gap, entropy, risk):
    """Equilibria of the matrices ``start`` to ``stop`` of ``scores`` (b, N1, N2); ``weights`` (N1, N2) are all games'.

    A gap of ``inf`` says that no matching is allowed; a matrix with NaN gives NaN.
    """
    rows, columns = scores.shape[1] - partial, scores.shape[2] - partial
    for b in range(start, stop):
        if np.isnan(scores[b]).any():
            value[b] = gap[b] = entropy[b] = risk[b] = np.nan
            q[b] = p[b] = np.nan
            continue
        theta = scores[b] + 0.5 * smoothing
        found = _solve_one(theta, weights, rows, columns, smoothing, tol, q[b], p[b])
        value[b], entropy[b], risk[b], gap[b] = found


@njit(cache=True, nogil=True)
def argmax_each(scores, partial, column):
    """The best matching of each matrix of ``scores`` (b, N1, N2); return the first without one, or -1."""
    rows, columns = scores.shape[1] - partial, scores.shape[2] - partial
    u, v = np.empty(rows), np.empty(columns)
    for b in range(scores.shape[0]):
        if not best_matching(scores[b], rows, column[b], u, v):
            return b
    return -1


@njit(cache=True, nogil=True)
def project_each(scores, partial, tol, x, residual):
    """The projection of each matrix of ``scores`` (b, N1, N2); return the first without a matching, or -1."""
    rows, columns = scores.shape[1] - partial, scores.shape[2] - partial
    column, u, v = np.empty(rows, np.int64), np.empty(rows), np.empty(columns)
    for b in range(scores.shape[0]):
        if not best_matching(scores[b], rows, column, u, v):
            return b
        residual[b] = project_matching(scores[b], rows, columns, tol, v, x[b])
    return -1
