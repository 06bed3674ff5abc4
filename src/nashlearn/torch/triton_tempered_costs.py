"""The tempered game of a cost matrix on CUDA, for up to 64 labels and options, by Newton's method on few options.

That is the method of :mod:`nashlearn.torch.tempered_costs`, with the direction by conjugate gradients: what curvature
there is along the options at work, ``d -> L C L' d / mu``, takes two sums over the table of costs and no matrix of its
own. Each direction descends, however few steps it is given. A program takes some rows one after the other, in float64.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
import triton
import triton.language as tl

from nashlearn.torch.tempered_costs import DONE, FLAT, GAP, RIDGE
from nashlearn.torch.triton_costs import WIDEST, gradient, units
from nashlearn.torch.triton_rows import Launcher, Plan, halves, kernel, largest, number, outcome, store_sums

__all__ = ["plan", "strategies"]

_ROWS = 8  # of a program, which reads the costs once
_REST, _CERTIFIED, _TILTED, _LEVEL = tl.constexpr(DONE), tl.constexpr(GAP), tl.constexpr(RIDGE), tl.constexpr(FLAT)
_TRIALS = tl.constexpr(16)  # of how far to go
_ENOUGH = tl.constexpr(0.05)  # of the first slope that may be left there


@triton.jit
def _reply(L, f, p, mu, K: tl.constexpr, LABELS: tl.constexpr):
    """Rewards over ``mu`` less the largest, ``q``, the costs of the options under it, and log of the sum of powers."""
    j = tl.arange(0, LABELS)
    reward = tl.where(j < K, (f + tl.sum(L * p[None, :], 1)) / mu, float("-inf"))
    best = tl.max(reward, 0)
    reward = reward - best
    e = tl.exp(reward)
    total = tl.sum(e, 0)
    q = e / total
    return reward, q, tl.sum(L * q[:, None], 0), best + tl.log(total)


@triton.jit
def _direction(apart, q, slope, others, steps, mu):
    """``d`` on the ``others``, near the root of ``H d = -slope`` for ``H = (apart' Q apart - slope slope') / mu``."""
    diagonal = (tl.sum(apart * apart * q[:, None], 0) - slope * slope) / mu
    ridge = _TILTED * tl.max(tl.where(others, diagonal, 0.0), 0) + _LEVEL
    inverse = tl.where(others, 1.0 / (tl.maximum(diagonal, 0.0) + ridge), 0.0)
    d = tl.zeros_like(slope)
    left = -slope
    z = left * inverse
    way = z
    size = tl.sum(left * z, 0)
    enough = size * 1e-20
    step = tl.full((), 0, tl.int32)
    while (step < steps) & (size > enough):
        u = tl.sum(apart * way[None, :], 1)
        bent = (tl.sum(apart * (q * u)[:, None], 0) - slope * tl.sum(slope * way, 0)) / mu + ridge * way
        bent = tl.where(others, bent, 0.0)
        curve = tl.sum(way * bent, 0)
        far = tl.where(curve > 0.0, size / curve, 0.0)
        d += far * way
        left -= far * bent
        z = left * inverse
        following = tl.sum(left * z, 0)
        way = z + way * (following / size)
        step = tl.where(curve > 0.0, step + 1, steps)
        size = following
    return d


@triton.jit
def _length(reward, p, d, apart, mu):
    """How far along ``d`` the value falls inside the simplex: Newton's iteration between brackets."""
    room = tl.min(tl.where(d < 0.0, -p / d, float("inf")), 0)
    slope = tl.sum(apart * d[None, :], 1) / mu
    least, most = tl.zeros_like(room), tl.where(room < float("inf"), room, 0.0)
    s = tl.minimum(most, 1.0)
    untried = least == least  # the far end
    trial = tl.full((), 0, tl.int32)
    e = tl.exp(reward)
    first = tl.sum(e * slope, 0) / tl.sum(e, 0)
    while trial < _TRIALS:
        x = reward + s * slope
        e = tl.exp(x - tl.max(x, 0))
        q = e / tl.sum(e, 0)
        rise = tl.sum(q * slope, 0)
        bend = tl.sum(q * (slope - rise) * (slope - rise), 0)
        falls = rise <= 0.0
        least, most = tl.where(falls, s, least), tl.where(falls, most, s)
        untried = untried & falls
        done = (tl.abs(rise) <= -_ENOUGH * first) | (falls & (s >= most))
        following = s - rise / bend
        aside = tl.where(untried & (following >= most), most, 0.5 * (least + most))
        inside = (following > least) & (following < most)
        s = tl.where(done, s, tl.where(inside, following, aside))
        trial = tl.where(done, _TRIALS, trial + 1)
    return s


@triton.jit
def _moved(p, d, s):
    p = tl.maximum(p + s * d, 0.0)
    p = tl.where(p < 1e-15, 0.0, p)
    return p / tl.sum(p, 0)


@triton.jit
def _descended(L, f, mu, K: tl.constexpr, M: tl.constexpr, LABELS: tl.constexpr, OPTIONS: tl.constexpr):
    """``p``, ``q``, the value over ``mu`` and the gap, for rewards ``f`` and costs (labels, options) in [0, 1]."""
    i = tl.arange(0, OPTIONS)
    there = i < M
    p = tl.zeros((OPTIONS,), tl.float64)
    reward, q, cost, value = _reply(L, f, p, mu, K, LABELS)
    p = (i == tl.argmin(tl.where(there, cost, float("inf")), 0)).to(tl.float64)
    reward, q, cost, value = _reply(L, f, p, mu, K, LABELS)
    gap = tl.sum(p * cost, 0) - tl.min(tl.where(there, cost, float("inf")), 0)
    step, most = tl.full((), 0, tl.int32), 20 + 10 * M
    while step <= most:
        done = (gap <= _REST) | (step == most)  # then one full step more, since the gap is the square of what q lacks
        cheapest = i == tl.argmin(tl.where(there, cost, float("inf")), 0)
        heaviest = i == tl.argmax(p, 0)
        joining = tl.where(cheapest, gap, 0.0) > _REST
        others = ((p > 0.0) | joining) & (heaviest == 0)
        base = tl.sum(tl.where(heaviest[None, :], L, 0.0), 1)
        apart = tl.where(others[None, :], L - base[:, None], 0.0)
        slope = tl.where(others, cost - tl.sum(tl.where(heaviest, cost, 0.0), 0), 0.0)
        d = _direction(apart, q, slope, others, tl.sum(others.to(tl.int32), 0) + 2, mu)
        d = tl.where(heaviest, -tl.sum(d, 0), d)
        bad = (tl.sum(d * cost, 0) >= 0.0) | (tl.max(((d < 0.0) & (p <= 0.0)).to(tl.int32), 0) > 0)
        if bad:  # from the dearest to the cheapest
            dearest = i == tl.argmax(tl.where(p > 0.0, cost, float("-inf")), 0)
            d = cheapest.to(tl.float64) - dearest.to(tl.float64)
        s = tl.full((), 1.0, tl.float64)
        if gap > _REST:
            s = _length(reward, p, d, tl.where(there[None, :], L, 0.0), mu)
        tried = _moved(p, d, s)
        reward_2, q_2, cost_2, value_2 = _reply(L, f, tried, mu, K, LABELS)
        gap_2 = tl.sum(tried * cost_2, 0) - tl.min(tl.where(there, cost_2, float("inf")), 0)
        keep = done & ((gap_2 < gap) == 0)
        p, q, cost = tl.where(keep, p, tried), tl.where(keep, q, q_2), tl.where(keep, cost, cost_2)
        reward, value = tl.where(keep, reward, reward_2), tl.where(keep, value, value_2)
        gap = tl.where(keep, gap, gap_2)
        step = tl.where(done, most + 1, step + 1)
    return p, q, value, gap


@triton.jit
def _solve(
    scores, row, n, L, floor, unit, mu,
    K: tl.constexpr, M: tl.constexpr, LABELS: tl.constexpr, OPTIONS: tl.constexpr,
):  # fmt: skip
    """Largest score, what the value is above it, ``p`` and ``q`` of one row; NaN where no value is certified."""
    j = tl.arange(0, LABELS)
    x = tl.load(scores + row.to(tl.int64) * K + j, mask=(j < K) & (row < n), other=float("-inf")).to(tl.float64)
    top = largest(x, 0)
    finite = tl.abs(top) < float("inf")
    f = tl.where(j < K, tl.where(finite, x - top, 0.0) + floor, 0.0)
    p, q, value, gap = _descended(L, f / unit, mu / unit, K, M, LABELS, OPTIONS)
    good = finite & (gap <= _CERTIFIED)
    above = tl.where(good, mu * value, float("nan"))
    return top, above, tl.where(good, p, float("nan")), tl.where(good, q, float("nan"))


@kernel()
def _forward(
    scores, target, weight, costs, out, support, numbers, n, ignore_index, low, high, REDUCE: tl.constexpr,
    K: tl.constexpr, M: tl.constexpr, LABELS: tl.constexpr, OPTIONS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    ACC: tl.constexpr = numbers.dtype.element_ty
    mu = number(low, high, tl.float64)
    L, floor, unit = units(costs, K, M, LABELS, OPTIONS)
    j, one = tl.arange(0, LABELS), tl.arange(0, 1)
    losses, shares = tl.zeros((1,), ACC), tl.zeros((1,), ACC)
    for r in range(ROWS):
        row = tl.program_id(0) * ROWS + r
        live = row < n
        begin = row.to(tl.int64) * K
        top, above, _, q = _solve(scores, row, n, L, floor, unit, mu, K, M, LABELS, OPTIONS)
        tl.store(numbers + begin + j, q.to(ACC), mask=(j < K) & live)
        here = live & (one == 0)
        loss, share = outcome(
            scores + begin, target, weight, one, row + one, here, top.to(ACC), above.to(ACC), ignore_index, K
        )
        losses += loss.to(ACC)
        shares += share.to(ACC)
        if not REDUCE:
            tl.store(out + row + one, loss, mask=here)
    if REDUCE:
        store_sums(losses, shares, numbers + n.to(tl.int64) * K)


@kernel()
def _backward(
    grad, scores, target, weight, costs, support, numbers, out, n, ignore_index, grad_stride, low, high,
    MEAN: tl.constexpr, K: tl.constexpr, R: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    gradient(grad, target, weight, numbers, out, n, ignore_index, grad_stride, MEAN, K, R, C)


@kernel()
def _strategies(
    scores, costs, p, q, n, low, high, ALWAYS: tl.constexpr,
    K: tl.constexpr, M: tl.constexpr, LABELS: tl.constexpr, OPTIONS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    mu = number(low, high, tl.float64)
    L, floor, unit = units(costs, K, M, LABELS, OPTIONS)
    i, j = tl.arange(0, OPTIONS), tl.arange(0, LABELS)
    for r in range(ROWS):
        row = tl.program_id(0) * ROWS + r
        _, _, mine, theirs = _solve(scores, row, n, L, floor, unit, mu, K, M, LABELS, OPTIONS)
        begin = row.to(tl.int64)
        tl.store(p + begin * M + i, mine.to(p.dtype.element_ty), mask=(i < M) & (row < n))
        tl.store(q + begin * K + j, theirs.to(q.dtype.element_ty), mask=(j < K) & (row < n))


@cache
def _launcher(function: Any, k: int, m: int) -> Launcher:
    small = max(k, m) <= 16
    labels, options = (triton.next_power_of_2(max(size, 2)) if small else WIDEST for size in (k, m))
    return Launcher(function, (k, m, labels, options, _ROWS), rows=_ROWS, num_warps=1 if small else 4)


def plan(k: int, m: int) -> Plan:
    """Left is ``q``; both passes take the halves of the smoothing after their integers."""
    C = triton.next_power_of_2(k)
    backward = Launcher(_backward, (k, 1024 // C, C), rows=1024 // C, num_warps=4)
    return Plan(0, torch.int32, k, _launcher(_forward, k, m), backward)


def strategies(scores: torch.Tensor, costs: torch.Tensor, smoothing: float) -> tuple[torch.Tensor, torch.Tensor]:
    """``p`` (n, options) and ``q`` (n, labels) for ``scores`` (n, labels) and ``costs`` (options, labels)."""
    (m, k), n = costs.shape, len(scores)
    p, q = scores.new_empty(n, m), scores.new_empty(n, k)
    if n:
        tensors = (scores.contiguous(), costs.contiguous(), p, q)
        _launcher(_strategies, k, m)(n, tensors, halves(smoothing), True)
    return p, q
