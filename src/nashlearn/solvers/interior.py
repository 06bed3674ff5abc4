"""Bilinear games over rows of simplices cut by further constraints, by an interior point method.

Both players choose ``x >= 0`` over the same entries: each row of entries sums to 1, and each constraint ``k``
asks ``sum_{e in k} x_e = 1`` or ``>= 1`` (the columns of a matching, the cuts of a tree). The game is

.. math:: \\max_q \\min_p \\; \\langle r, q\\rangle + \\langle c, p\\rangle - \\langle p, W q\\rangle
          - \\tfrac{\\mu_q}{2} |q|^2 + \\tfrac{\\mu_p}{2} |p|^2, \\qquad W \\ge 0 \\text{ diagonal}.

Its optimality conditions are a monotone complementarity problem, followed along its central path with
Mehrotra's predictor and corrector. Eliminating slacks leaves a 2 x 2 block for each entry (its ``p`` and its
``q``), eliminating entries a 2 x 2 block for each row, eliminating rows one dense system for the constraints:
an iteration costs O(rows · constraints² + constraints³).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from nashlearn.solvers.interior_newton import direction, factor, new_point, new_system, sums

__all__ = ["Saddle", "saddle_point"]

_STALLS = 8  # iterations without progress after which rounding is taken to have won


class Saddle(NamedTuple):
    """A game, entry by entry: ``m`` entries, ``R`` rows, ``K`` constraints.

    Entries that no point of the polytope uses, and constraints that the others imply, must be left out:
    the polytope needs an interior.

    Attributes
    ----------
    reward, cost, weight : ndarray (m,)
        ``r``, ``c`` and the diagonal of ``W``.
    mu_p, mu_q : float
        Quadratic smoothing of either player; not negative.
    row : int ndarray (m,)
        The row of each entry, -1 for an entry in none.
    n_rows : int
        Number of rows.
    first, member : int ndarrays (m + 1,), (first[m],)
        Entry ``e`` occurs in the constraints ``member[first[e] : first[e + 1]]``.
    equality : bool ndarray (K,)
        Whether a constraint asks for 1, or for at least 1.
    """

    reward: np.ndarray
    cost: np.ndarray
    weight: np.ndarray
    mu_p: float
    mu_q: float
    row: np.ndarray
    n_rows: int
    first: np.ndarray
    member: np.ndarray
    equality: np.ndarray


@njit(cache=True, nogil=True)
def _reduced_costs(game, at, out):
    """The gradient of each entry for either player, less the potentials of its row and constraints."""
    for e in range(game.row.size):
        p, q, w = at.x[0, e], at.x[1, e], game.weight[e]
        price_p = price_q = 0.0
        if game.row[e] >= 0:
            price_p, price_q = at.y[0, game.row[e]], at.y[1, game.row[e]]
        for t in range(game.first[e], game.first[e + 1]):
            price_p += at.lam[0, game.member[t]]
            price_q += at.lam[1, game.member[t]]
        out[0, e] = game.mu_p * p - w * q + game.cost[e] - price_p
        out[1, e] = game.mu_q * q + w * p - game.reward[e] - price_q


@njit(cache=True, nogil=True)
def _start(game, at, warm):
    """An interior point: rows spread evenly, or the strategies and potentials of ``at`` moved off the boundary."""
    margin, least = (0.05, 0.05) if warm else (1.0, 0.3)
    size = np.zeros(game.n_rows)
    for e in range(game.row.size):
        if game.row[e] >= 0:
            size[game.row[e]] += 1.0
    for e in range(game.row.size):
        even = 1.0 / size[game.row[e]] if game.row[e] >= 0 else 1.0 / (1.0 + game.n_rows)
        for player in range(2):
            old = at.x[player, e] if warm else 0.0
            at.x[player, e] = max((1.0 - margin) * old + margin * even, 1e-4 * even)
    if not warm:
        at.y[:] = 0.0
        at.lam[:] = 0.0
    for k in range(game.equality.size):
        if not game.equality[k]:
            at.lam[:, k] = np.maximum(at.lam[:, k], margin)
            at.s[:, k] = margin
    _reduced_costs(game, at, at.z)
    if not warm:
        at.y[:] = np.inf
        for e in range(game.row.size):
            if game.row[e] >= 0:
                for player in range(2):
                    at.y[player, game.row[e]] = min(at.y[player, game.row[e]], at.z[player, e] - least)
        _reduced_costs(game, at, at.z)
    for e in range(game.row.size):
        for player in range(2):
            at.z[player, e] = max(at.z[player, e], least)


@njit(cache=True, nogil=True)
def _residuals(game, at, out):
    """Fill stationarity, rows and constraints of ``out``; answer the largest of each kind, and the complementarity."""
    _reduced_costs(game, at, out.x)
    sums(game, at.x, out.y, out.lam)
    dual = primal = total = 0.0
    for player in range(2):
        for e in range(game.row.size):
            out.x[player, e] -= at.z[player, e]
            dual = max(dual, abs(out.x[player, e]))
            total += at.x[player, e] * at.z[player, e]
        for i in range(game.n_rows):
            out.y[player, i] -= 1.0
            primal = max(primal, abs(out.y[player, i]))
        for k in range(game.equality.size):
            out.lam[player, k] -= 1.0
            if not game.equality[k]:
                out.lam[player, k] -= at.s[player, k]
                total += at.lam[player, k] * at.s[player, k]
            primal = max(primal, abs(out.lam[player, k]))
    return dual, primal, total


@njit(cache=True, nogil=True)
def _target(game, at, lack, step, centre, second_order):
    """Complementarity that a step should remove: all of it but ``centre``, and what the predictor ``step`` adds."""
    for player in range(2):
        for e in range(game.row.size):
            extra = step.x[player, e] * step.z[player, e] if second_order else 0.0
            lack.z[player, e] = centre - at.x[player, e] * at.z[player, e] - extra
        for k in range(game.equality.size):
            if not game.equality[k]:
                extra = step.lam[player, k] * step.s[player, k] if second_order else 0.0
                lack.s[player, k] = centre - at.lam[player, k] * at.s[player, k] - extra


@njit(cache=True, nogil=True)
def _longest(game, at, step):
    """The largest step, up to 2, that keeps everything positive."""
    length = 2.0
    for player in range(2):
        for e in range(game.row.size):
            if step.x[player, e] < 0.0:
                length = min(length, -at.x[player, e] / step.x[player, e])
            if step.z[player, e] < 0.0:
                length = min(length, -at.z[player, e] / step.z[player, e])
        for k in range(game.equality.size):
            if not game.equality[k]:
                if step.lam[player, k] < 0.0:
                    length = min(length, -at.lam[player, k] / step.lam[player, k])
                if step.s[player, k] < 0.0:
                    length = min(length, -at.s[player, k] / step.s[player, k])
    return length


@njit(cache=True, nogil=True)
def _complementarity_after(game, at, step, length):
    """Total complementarity after a step."""
    total = 0.0
    for player in range(2):
        for e in range(game.row.size):
            total += (at.x[player, e] + length * step.x[player, e]) * (at.z[player, e] + length * step.z[player, e])
        for k in range(game.equality.size):
            if not game.equality[k]:
                total += (at.lam[player, k] + length * step.lam[player, k]) * (
                    at.s[player, k] + length * step.s[player, k]
                )
    return total


@njit(cache=True, nogil=True)
def _move(at, step, length):
    for player in range(2):
        for e in range(at.x.shape[1]):
            at.x[player, e] += length * step.x[player, e]
            at.z[player, e] += length * step.z[player, e]
        at.y[player] += length * step.y[player]
        at.lam[player] += length * step.lam[player]
        at.s[player] += length * step.s[player]


@njit(cache=True, nogil=True)
def _follow(game, tol, max_iter, warm, x, y, lam):
    """Follow the central path; what :func:`saddle_point` says, from one start."""
    m, R, K = game.row.size, game.n_rows, game.equality.size
    at, lack, step, system = new_point(m, R, K), new_point(m, R, K), new_point(m, R, K), new_system(m, R, K)
    if warm:
        at.x[:], at.y[:], at.lam[:] = x, y, lam
    _start(game, at, warm)
    pairs = 2.0 * (m + (~game.equality).sum())
    scale = 1.0
    for e in range(m):
        scale = max(scale, abs(game.reward[e]), abs(game.cost[e]))
    best, last, stalls = np.inf, np.inf, 0
    for _ in range(max_iter):
        dual, primal, total = _residuals(game, at, lack)
        worst = max(dual, total) / scale
        worst = max(worst, primal) if total == total else np.inf
        if worst < best:
            best, stalls = worst, 0
            x[:], y[:], lam[:] = at.x, at.y, at.lam
        else:
            stalls += 1
        if best <= tol or stalls > _STALLS or not worst < np.inf or not factor(game, at, system):
            break
        _target(game, at, lack, step, 0.0, False)
        direction(game, at, lack, system, step)
        length = min(1.0, _longest(game, at, step))
        sigma = (_complementarity_after(game, at, step, length) / total) ** 3
        if worst > last:
            sigma = max(sigma, 0.1)
        last = worst
        _target(game, at, lack, step, sigma * total / pairs, True)
        direction(game, at, lack, system, step)
        # Almost to the boundary, the closer the nearer the end: 0.99 throughout would make convergence linear.
        _move(at, step, min(1.0, max(0.99, 1.0 - worst) * _longest(game, at, step)))
    return best


@njit(cache=True, nogil=True)
def saddle_point(game, tol, max_iter, warm, x, y, lam):
    """Write both players' strategies and potentials; answer how far they are from optimal.

    Parameters
    ----------
    game : Saddle
    tol : float
        Ends where the total complementarity, which bounds the gap of feasible strategies, and all residuals are
        below ``tol`` times the largest of 1, ``|reward|`` and ``|cost|``.
    max_iter : int
        Largest number of iterations.
    warm : bool
        Start from ``x``, ``y`` and ``lam``, moved into the interior; a new constraint starts at 0. A start that leads
        nowhere, as one in fifty does, is given up for a cold one.
    x : ndarray (2, m)
        ``p`` and ``q``.
    y, lam : ndarrays (2, R), (2, K)
        Potentials of rows and constraints: ``mu_p p - W q + c - y_row - sum lam >= 0``, with equality where
        ``p > 0``, and likewise ``mu_q q + W p - r``.

    Returns
    -------
    residual : float
        What ``tol`` bounds, at the best iterate, which is the one returned: above ``tol``, the answer is not
        converged, and ``inf`` says that there is none.
    """
    residual = np.inf
    for given in (warm, False):
        residual = _follow(game, tol, max_iter, given, x, y, lam)
        if residual <= tol or not given:
            break
    return residual
