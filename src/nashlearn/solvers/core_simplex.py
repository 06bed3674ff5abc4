"""The primal simplex method for matrix games, carrying only the core of its basis.

The adversary's programme is

    max_{v, q}  v + <f, q>    s.t.  L q >= v,  1'q = 1,  q >= 0.

A basis is a support ``R`` of labels and as many tight rows ``S`` of ``L``; everything about it is in the
inverse ``N`` of the core ``[[0, 1'], [-1, L_SR]]``: its first column is ``(v, q_R)``, and ``y = N'(1, f_R)``
holds the value and ``-p_S``. A pivot swaps a column, swaps a row, grows or shrinks the core, each in
O(r^2) with ``r = |R| = |S|``, and prices in O(r (options + labels)). The scores enter the objective only,
so the basis of one row of scores stays feasible for the next. Dantzig's rule chooses what enters; ties in
what leaves are broken as if the rows read ``L q >= v - tilt`` with infinitesimal, generic tilts, which cannot
cycle [charnes1952]_ and, unlike Bland's rule, is fast where many rows tie. What a column of ``L`` costs
whatever the option is part of its label's score; the rest is scaled to a largest entry of 1, and scores are
taken relative to the largest: tolerances are absolute.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from nashlearn.solvers.dense import lu_factor, lu_solve

__all__ = ["Core", "new_core", "optimise"]

_GAIN = 5e-14  # a gain below this is rounding
_RATE = 1e-11  # a rate below this blocks nothing: as a pivot it would ruin N
_STEEP = 1e4  # a pivot beyond this leaves a nearly singular core
_TIE = 1e-14  # variables that differ by less reach zero together
_DRIFT = 1e-11  # residual of N's first column that asks for a new start
_REFRESH = 60  # pivots after which N is computed anew


class Core(NamedTuple):
    """The basis that one row of scores leaves for the next, and room to work."""

    N: np.ndarray
    R: np.ndarray
    S: np.ndarray
    inside: np.ndarray
    tight: np.ndarray
    state: np.ndarray  # size of the core (0: none yet), pivots since N was computed
    f: np.ndarray
    y: np.ndarray
    u: np.ndarray
    t: np.ndarray
    slack: np.ndarray
    rate: np.ndarray
    gain: np.ndarray


@njit(cache=True, nogil=True)
def new_core(options, k):
    """Room for a core of any size, holding no basis."""
    most = min(options, k) + 2
    return Core(
        np.empty((most, most)),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.zeros(k, np.bool_),
        np.zeros(options, np.bool_),
        np.zeros(2, np.int64),
        np.empty(k),
        np.empty(most),
        np.empty(most),
        np.empty(most),
        np.empty(options),
        np.empty(options),
        np.empty(k),
    )


@njit(cache=True, nogil=True)
def _refresh(loss, core):
    """Compute ``N`` and the slacks anew from ``R`` and ``S``; False where the core is singular."""
    size = core.state[0] + 1
    B, column, pivot = np.zeros((size, size)), np.empty(size), np.empty(size, np.int64)
    for i in range(1, size):
        B[0, i], B[i, 0] = 1.0, -1.0
        for j in range(1, size):
            B[i, j] = loss.rows[core.S[i - 1], core.R[j - 1]]
    if not lu_factor(B, pivot) or np.abs(np.diag(B)).min() < 1e-14:
        return False
    N = core.N
    for c in range(size):
        column[:] = 0.0
        column[c] = 1.0
        lu_solve(B, pivot, column)
        N[:size, c] = column
    core.state[1] = 0
    _slacks(loss, core)
    for i in range(1, size):
        if N[i, 0] < -_DRIFT:
            return False
    return core.slack.min() >= -_DRIFT


@njit(cache=True, nogil=True)
def _slacks(loss, core):
    core.slack[:] = -core.N[0, 0]
    for m in range(core.state[0]):
        mass, column = core.N[m + 1, 0], loss.columns[core.R[m]]
        for i in range(column.size):
            core.slack[i] += mass * column[i]


@njit(cache=True, nogil=True)
def _start(loss, core):
    """The better of the basis at hand and the best pure strategy with the option that answers it."""
    label = np.argmax(core.f)
    if core.state[0] > 0:
        secured = core.N[0, 0]
        for m in range(core.state[0]):
            secured += core.f[core.R[m]] * core.N[m + 1, 0]
        if secured >= core.f[label] and (core.state[1] <= _REFRESH or _refresh(loss, core)):
            return
    option = loss.lowest[label]
    core.inside[:] = False
    core.tight[:] = False
    core.inside[label] = core.tight[option] = True
    core.R[0], core.S[0] = label, option
    core.N[0, 0], core.N[0, 1] = 0.0, -1.0
    core.N[1, 0], core.N[1, 1] = 1.0, 0.0
    core.state[0], core.state[1] = 1, 0
    core.slack[:] = loss.columns[label]


@njit(cache=True, nogil=True)
def _price(loss, core):
    """What enters the basis: label ``j`` as ``j``, the slack of row ``S[s]`` as ``k + s``, nothing as -1."""
    N, y, gain = core.N, core.y, core.gain
    r, k = core.state[0], core.f.size
    for c in range(r + 1):
        y[c] = N[0, c]
    for m in range(r):
        score = core.f[core.R[m]]
        for c in range(r + 1):
            y[c] += score * N[m + 1, c]
    for j in range(k):
        gain[j] = core.f[j] - y[0]
    for s in range(r):
        p, row = -y[s + 1], loss.rows[core.S[s]]
        for j in range(k):
            gain[j] += p * row[j]
    best, entering = _GAIN, -1
    for j in range(k):
        if gain[j] > best and not core.inside[j]:
            best, entering = gain[j], j
    for s in range(r):
        if y[s + 1] > best:
            best, entering = y[s + 1], k + s
    return entering


@njit(cache=True, nogil=True)
def _direction(loss, core, entering):
    """How ``(v, q_R)`` and the slacks move as the entering variable grows, into ``u`` and ``rate``."""
    N, u, rate = core.N, core.u, core.rate
    r, k = core.state[0], core.f.size
    if entering < k:
        column = loss.columns[entering]
        for c in range(r + 1):
            u[c] = -N[c, 0]
            for s in range(r):
                u[c] -= N[c, s + 1] * column[core.S[s]]
        for i in range(rate.size):
            rate[i] = column[i] - u[0]
    else:
        for c in range(r + 1):
            u[c] = N[c, entering - k + 1]
        rate[:] = -u[0]
    for m in range(r):
        move, column = u[m + 1], loss.columns[core.R[m]]
        for i in range(rate.size):
            rate[i] += move * column[i]


@njit(cache=True, nogil=True)
def _leaving(loss, core):
    """First variable to reach zero: support position ``m`` as ``m``, row ``i`` as ``-1 - i``; and the step.

    The first pass finds the step, give or take a tie; the second the one of those within it that the
    tilted rows would stop first.
    """
    N, u, t = core.N, core.u, core.t
    r = core.state[0]
    most, ties, leaving = np.inf, 0, core.R.size
    for m in range(r):
        if -u[m + 1] > _RATE:
            most = min(most, (max(N[m + 1, 0], 0.0) + _TIE) / -u[m + 1])
    for i in range(core.rate.size):
        if -core.rate[i] > _RATE and not core.tight[i]:
            most = min(most, (max(core.slack[i], 0.0) + _TIE) / -core.rate[i])
    for m in range(r):
        if -u[m + 1] > _RATE and N[m + 1, 0] <= -u[m + 1] * most:
            ties, leaving = ties + 1, m
    for i in range(core.rate.size):
        if -core.rate[i] > _RATE and not core.tight[i] and core.slack[i] <= -core.rate[i] * most:
            ties, leaving = ties + 1, -1 - i
    if ties > 1:
        for c in range(r + 1):  # how (v, q_R) answers the tilts
            t[c] = 0.0
            for s in range(r):
                t[c] -= N[c, s + 1] * loss.tilt[core.S[s]]
        first = np.inf
        for m in range(r):
            if -u[m + 1] > _RATE and N[m + 1, 0] <= -u[m + 1] * most and t[m + 1] / -u[m + 1] < first:
                first, leaving = t[m + 1] / -u[m + 1], m
        for i in range(core.rate.size):
            if -core.rate[i] > _RATE and not core.tight[i] and core.slack[i] <= -core.rate[i] * most:
                tilted = loss.tilt[i] - t[0]
                for m in range(r):
                    tilted += loss.rows[i, core.R[m]] * t[m + 1]
                if tilted / -core.rate[i] < first:
                    first, leaving = tilted / -core.rate[i], -1 - i
    if leaving == core.R.size:
        return leaving, 0.0
    if leaving >= 0:
        return leaving, max(N[leaving + 1, 0], 0.0) / -u[leaving + 1]
    return leaving, max(core.slack[-1 - leaving], 0.0) / -core.rate[-1 - leaving]


@njit(cache=True, nogil=True)
def _bordering(loss, core, option):
    """``t = (-1, L_iR) N`` for a row ``i`` that is to become tight."""
    N, t = core.N, core.t
    r = core.state[0]
    for c in range(r + 1):
        t[c] = -N[0, c]
    for m in range(r):
        entry = loss.rows[option, core.R[m]]
        for c in range(r + 1):
            t[c] += entry * N[m + 1, c]


@njit(cache=True, nogil=True)
def _enter_label(loss, core, label, leaving):
    """Update the core for a label that enters: swap it with one of the support, or grow by a tight row."""
    N, u, t = core.N, core.u, core.t
    r = core.state[0]
    if leaving >= 0:
        m = leaving + 1
        for c in range(r + 1):
            N[m, c] /= -u[m]
        for i in range(r + 1):
            if i != m:
                for c in range(r + 1):
                    N[i, c] += u[i] * N[m, c]
        core.inside[core.R[leaving]] = False
        core.R[leaving] = label
    else:
        option = -1 - leaving
        _bordering(loss, core, option)
        schur = core.rate[option]
        for i in range(r + 1):
            factor = u[i] / schur
            for c in range(r + 1):
                N[i, c] -= factor * t[c]
            N[i, r + 1] = factor
        for c in range(r + 1):
            N[r + 1, c] = -t[c] / schur
        N[r + 1, r + 1] = 1.0 / schur
        core.R[r], core.S[r] = label, option
        core.tight[option] = True
        core.state[0] = r + 1
    core.inside[label] = True


@njit(cache=True, nogil=True)
def _release_row(loss, core, s, leaving):
    """Update the core for a tight row that is released: shrink by a label, or swap it with another row."""
    N, u, t = core.N, core.u, core.t
    r = core.state[0]
    core.tight[core.S[s]] = False
    if leaving >= 0:
        m = leaving + 1
        for c in range(r + 1):
            t[c] = N[m, c] / u[m]
        for i in range(r + 1):
            if i != m:
                for c in range(r + 1):
                    N[i, c] -= u[i] * t[c]
        for c in range(r + 1):  # the last row and column fill the holes
            N[m, c] = N[r, c]
        for i in range(r + 1):
            N[i, s + 1] = N[i, r]
        core.inside[core.R[leaving]] = False
        core.R[leaving], core.S[s] = core.R[r - 1], core.S[r - 1]
        core.state[0] = r - 1
    else:
        option = -1 - leaving
        _bordering(loss, core, option)
        for i in range(r + 1):
            N[i, s + 1] = u[i] / t[s + 1]
            for c in range(r + 1):
                if c != s + 1:
                    N[i, c] -= t[c] * N[i, s + 1]
        core.S[s] = option
        core.tight[option] = True


@njit(cache=True, nogil=True)
def _polish(loss, core):
    """One step of iterative refinement of ``y`` and of ``(v, q_R)``; returns the residual of the latter."""
    N, y, u, t = core.N, core.y, core.u, core.t
    r = core.state[0]
    u[0], t[0] = 1.0, 1.0
    for s in range(r):
        u[0] -= N[s + 1, 0]
        t[0] += y[s + 1]
        u[s + 1], t[s + 1] = N[0, 0], core.f[core.R[s]] - y[0]
        for m in range(r):
            u[s + 1] -= loss.rows[core.S[s], core.R[m]] * N[m + 1, 0]
            t[s + 1] -= loss.rows[core.S[m], core.R[s]] * y[m + 1]
    drift = 0.0
    for c in range(r + 1):
        drift = max(drift, abs(u[c]))
        for i in range(r + 1):
            y[c] += N[i, c] * t[i]
    for c in range(r + 1):
        fix = 0.0
        for i in range(r + 1):
            fix += N[c, i] * u[i]
        N[c, 0] += fix
    return drift


@njit(cache=True, nogil=True)
def optimise(loss, core):
    """Pivot until nothing gains, from the basis at hand or a pure strategy."""
    _start(loss, core)
    k = core.f.size
    for _ in range(50 * (k + core.slack.size)):
        entering = _price(loss, core)
        if entering < 0:
            if _polish(loss, core) <= _DRIFT:
                return
            if not _refresh(loss, core):
                core.state[0] = 0
                _start(loss, core)
            continue
        _direction(loss, core, entering)
        leaving, step = _leaving(loss, core)
        if leaving == core.R.size:  # only rounding moves along this direction
            return
        pivot = core.u[leaving + 1] if leaving >= 0 else core.rate[-1 - leaving]
        if entering < k:
            _enter_label(loss, core, entering, leaving)
        else:
            _release_row(loss, core, entering - k, leaving)
        core.state[1] += 1
        for i in range(core.slack.size):
            core.slack[i] += step * core.rate[i]
        if pivot < -_STEEP and not _refresh(loss, core):  # N was nearly singular: shed its errors
            core.state[0] = 0
            _start(loss, core)
