"""The proximal step of any loss matrix, by a primal active-set method in the core of the game.

    max_q  <g, q> - a/2 |q|^2 + min_i (L q)_i   over the simplex

has few labels in its support ``R`` and few tight rows ``S``. Given both, the optimum lies where ``1'q = 1``
and ``(L_t - L_s) q = 0`` for the rows ``t`` of ``S`` and its first, ``s``; with ``W`` an orthonormal basis of
those normals on ``R`` and ``h = g + L_s``,

    q_R + d,    d = (I - W W') (h - a q_R) / a,

is that optimum from any ``q`` that meets the equations; its multipliers ``p_S`` solve a triangular system.
Each step costs O((|S|^2 + options) |R|). No step lowers the objective, so an ascent may stop early; after a
run of steps without length the first candidate in a fixed order is taken instead of the steepest, as in
Bland's rule.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["cost_prox", "cost_tangent"]

_EPS = 1e-13
_RATE = 1e-12  # a rate below this, relative to the direction, blocks nothing,
_NOISE = 1e-14  # nor one below this, relative to the simplex
_ARRIVED = 1e-13  # what is left of the way is rounding
_DEPENDENT = 1e-11  # a normal with less than this share of its own is one of the others
_PATIENCE = 12  # steps without length before the fixed order


@njit(cache=True, nogil=True)
def _deflate(W, m, x, r, coefficient):
    """Remove from ``x`` its components along the first ``m`` rows of ``W``; add them to ``coefficient``."""
    for i in range(m):
        dot = 0.0
        for j in range(r):
            dot += W[i, j] * x[j]
        coefficient[i] += dot
        for j in range(r):
            x[j] -= dot * W[i, j]


@njit(cache=True, nogil=True)
def _norm(x, r):
    total = 0.0
    for j in range(r):
        total += x[j] * x[j]
    return np.sqrt(total)


@njit(cache=True, nogil=True)
def _normals(L, R, r, S, s, W, T):
    """Orthonormal basis of the constraints' normals on ``R``: ``1`` and ``L_t - L_S[0] = sum_m T_tm W_m``.

    Returns how many rows of ``S`` are independent, counted up to the first that is not.
    """
    for j in range(r):
        W[0, j] = 1.0 / np.sqrt(r)
    for t in range(1, s):
        if t >= r:
            return t
        w = W[t]
        for j in range(r):
            w[j] = L[S[t], R[j]] - L[S[0], R[j]]
        before = _norm(w, r)
        T[t, :t] = 0.0
        _deflate(W, t, w, r, T[t])
        _deflate(W, t, w, r, T[t])  # twice is enough
        T[t, t] = _norm(w, r)
        if T[t, t] <= _DEPENDENT * before:
            return t
        for j in range(r):
            w[j] /= T[t, t]
    return s


@njit(cache=True, nogil=True)
def _core_solution(L, g, a, R, r, S, s, q, W, T, b, d, p_S):
    """Direction ``d`` to the optimum with support ``R`` and tight rows ``S``, signs ignored, and its ``p_S``.

    Returns the multiplier of ``1'q = 1`` and the spread of the scores on ``R``.
    """
    top, low = -np.inf, np.inf
    for j in range(r):
        d[j] = g[R[j]] + L[S[0], R[j]]
        top, low = max(top, d[j]), min(low, d[j])
    for j in range(r):
        d[j] -= top + a * q[R[j]]
    b[:s] = 0.0
    _deflate(W, s, d, r, b)
    _deflate(W, s, d, r, b)
    for j in range(r):
        d[j] = d[j] / a if s < r else 0.0
    p_S[0] = 1.0
    shift = b[0]
    for t in range(s - 1, 0, -1):
        p_S[t] = -b[t]
        for m in range(t + 1, s):
            p_S[t] -= p_S[m] * T[m, t]
        p_S[t] /= T[t, t]
        p_S[0] -= p_S[t]
        shift += p_S[t] * T[t, 0]
    return top + shift / np.sqrt(r), top - low


@njit(cache=True, nogil=True)
def _slacks(L, R, r, S, tight, q, d, slack, fall):
    """Slack of each row over ``L_S[0] q`` and how fast it falls along ``d``; tight rows do not move."""
    base, rate = 0.0, 0.0
    for j in range(r):
        base += L[S[0], R[j]] * q[R[j]]
        rate += L[S[0], R[j]] * d[j]
    for i in range(slack.size):
        slack[i], fall[i] = -base, rate
        if tight[i]:
            fall[i] = 0.0
            continue
        for j in range(r):
            slack[i] += L[i, R[j]] * q[R[j]]
            fall[i] -= L[i, R[j]] * d[j]


@njit(cache=True, nogil=True)
def _blocking(R, r, q, d, slack, fall, length, scale, ordered):
    """Largest step in [0, 1] along ``d``, and what stops it: label < 0, row > 0, or 0.

    The first pass lets each constraint give way by a rounding error; the second takes the fastest of those
    that would stop within (the first of them): nearly dependent constraints stay out of the core.
    """
    rounding = _RATE * length + _NOISE
    most = 1.0
    for j in range(r):
        if -d[j] > rounding:
            most = min(most, (q[R[j]] + _NOISE) / -d[j])
    for i in range(fall.size):
        if fall[i] > rounding * scale:
            most = min(most, (max(slack[i], 0.0) + _NOISE * scale) / fall[i])
    step, stop, speed = 1.0, 0, 0.0
    if most == 1.0:
        return step, stop
    for j in range(r):
        if -d[j] > rounding and q[R[j]] <= -d[j] * most:
            better = stop == 0 or R[j] < R[-stop - 1] if ordered else -d[j] > speed
            if better:
                step, stop, speed = q[R[j]] / -d[j], -(j + 1), -d[j]
    for i in range(fall.size):
        if fall[i] > rounding * scale and slack[i] <= fall[i] * most:
            better = stop == 0 if ordered else fall[i] > speed * scale
            if better:
                step, stop, speed = max(slack[i], 0.0) / fall[i], i + 1, fall[i] / scale
    return min(step, 1.0), stop


@njit(cache=True, nogil=True)
def _worst_row(S, s, p_S, tol, ordered):
    """Position in ``S`` of the most negative multiplier (of the first row with one), or -1."""
    worst, drop = -tol, -1
    for t in range(s):
        if p_S[t] < worst and not (ordered and drop >= 0 and S[t] > S[drop]):
            drop = t
            worst = -tol if ordered else p_S[t]
    return drop


@njit(cache=True, nogil=True)
def _entering(L, g, S, s, p_S, shift, inside, tol, ordered):
    """The label outside the support whose mass would gain most (the first that gains), or -1."""
    best, label = tol, -1
    for j in range(g.size):
        if not inside[j]:
            gain = g[j] - shift
            for t in range(s):
                gain += p_S[t] * L[S[t], j]
            if gain > best:
                best, label = gain, j
                if ordered:
                    break
    return label


@njit(cache=True, nogil=True)
def _first_row(L, R, r, q):
    """The row with the least cost at ``q``, and the largest entry met."""
    lowest, row, scale = np.inf, 0, 0.0
    for i in range(L.shape[0]):
        total = 0.0
        for j in range(r):
            total += L[i, R[j]] * q[R[j]]
            scale = max(scale, abs(L[i, R[j]]))
        if total < lowest:
            lowest, row = total, i
    return row, scale if scale > 0.0 else 1.0


@njit(cache=True, nogil=True)
def cost_prox(L, g, a, q, p):
    """Write the proximal step of ``L`` at ``g`` into ``q``, which holds a start, and its ``p``."""
    options, k = L.shape
    most = min(options, k) + 1
    room = np.empty(most * (k + most))
    W = room[: most * k].reshape(most, k)
    T = room[most * k : most * (k + most)].reshape(most, most)
    b, p_S = np.empty(most), np.empty(most)
    d, slack, fall = np.empty(k), np.empty(options), np.empty(options)
    names = np.empty(k + most, np.int64)
    R, S = names[:k], names[k:]
    marks = np.zeros(k + options, np.bool_)
    inside, tight = marks[:k], marks[k:]
    r = 0
    for j in range(k):
        if q[j] > 0.0:
            R[r], inside[j] = j, True
            r += 1
    S[0], scale = _first_row(L, R, r, q)
    s, idle, shift = 1, 0, 0.0
    tight[S[0]] = True
    for _ in range(50 * (k + options)):
        independent = _normals(L, R, r, S, s, W, T)
        if independent < s:  # it blocked by rounding: leave it out, and alone until the core changes
            s -= 1
            S[independent] = S[s]
            continue
        shift, spread = _core_solution(L, g, a, R, r, S, s, q, W, T, b, d, p_S)
        tol, ordered = _EPS * (scale + spread + a), idle > _PATIENCE
        length = 0.0
        for j in range(r):
            length = max(length, abs(d[j]))
        step, stop = 1.0, 0
        if length > _ARRIVED:
            _slacks(L, R, r, S, tight, q, d, slack, fall)
            step, stop = _blocking(R, r, q, d, slack, fall, length, scale, ordered)
        for j in range(r):
            q[R[j]] = max(q[R[j]] + step * d[j], 0.0)
        idle = idle + 1 if step * length <= 10.0 * _ARRIVED else 0
        if stop > 0:
            S[s], tight[stop - 1] = stop - 1, True
            s += 1
            continue
        if stop < 0:
            r -= 1
            out = R[-stop - 1]
            q[out], inside[out], R[-stop - 1] = 0.0, False, R[r]
        else:
            drop = _worst_row(S, s, p_S, tol / scale, ordered)
            label = _entering(L, g, S, s, p_S, shift, inside, tol, ordered) if drop < 0 else -1
            if drop >= 0:
                s -= 1
                S[drop] = S[s]
            elif label >= 0:
                R[r], inside[label] = label, True
                r += 1
            else:
                break
        tight[:] = False
        for t in range(s):
            tight[S[t]] = True
    p[:] = 0.0
    mass = 0.0
    for t in range(s):
        p_S[t] = max(p_S[t], 0.0)
        mass += p_S[t]
    for t in range(s):
        p[S[t]] = p_S[t] / mass if mass > 0.0 else 1.0 / s


@njit(cache=True, nogil=True)
def cost_tangent(L, a, q, p, jacobian):
    """Generalised Jacobian of the proximal step: a projector onto what ``R`` and ``S`` allow, over ``a``."""
    options, k = L.shape
    most = min(options, k) + 1
    R, S = np.empty(k, np.int64), np.empty(options, np.int64)
    r = s = 0
    for j in range(k):
        if q[j] > 0.0:
            R[r] = j
            r += 1
    for i in range(options):
        if p[i] > 0.0:
            S[s] = i
            s += 1
    W, T = np.empty((most, k)), np.empty((most, most))
    independent = _normals(L, R, r, S, s, W, T)
    while independent < s:  # rows of ``p`` may depend on each other once labels have left
        s -= 1
        S[independent] = S[s]
        independent = _normals(L, R, r, S, s, W, T)
    if s == r:
        return 0
    jacobian[:] = 0.0
    for i in range(r):
        for j in range(r):
            entry = 1.0 if i == j else 0.0
            for t in range(s):
                entry -= W[t, i] * W[t, j]
            jacobian[R[i], R[j]] = entry / a
    return r
