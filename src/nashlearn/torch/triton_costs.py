"""The game of a cost matrix on CUDA, for up to 64 labels and options: the method of :mod:`nashlearn.torch.pivots`.

A program takes some rows one after the other, each as a table of labels by options in registers, in float64.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
import triton
import triton.language as tl

from nashlearn.torch.pivots import GAP, TILT, TINY
from nashlearn.torch.triton_rows import Launcher, Plan, kernel, largest, of_program, outcome, row_scale, store_sums

__all__ = ["WIDEST", "plan", "replies"]

WIDEST = 64  # labels and options of a table in registers
_ROWS = 16  # of a program, which reads the costs once
_TINY, _TILT, _GAP = tl.constexpr(TINY), tl.constexpr(TILT), tl.constexpr(GAP)
_GOLDEN = tl.constexpr(0.5 * 5**0.5 - 0.5)


@triton.jit
def _units(costs, K: tl.constexpr, M: tl.constexpr, LABELS: tl.constexpr, OPTIONS: tl.constexpr):
    """Costs (labels, options) beyond the least of their label, in units of the largest; the least ones, the unit."""
    j, i = tl.arange(0, LABELS), tl.arange(0, OPTIONS)
    inside = (j[:, None] < K) & (i[None, :] < M)
    L = tl.load(costs + i[None, :] * K + j[:, None], mask=inside, other=float("inf")).to(tl.float64)
    floor = tl.where(j < K, tl.min(L, 1), 0.0)
    L = tl.where(inside, L - floor[:, None], 0.0)
    unit = tl.max(tl.max(L, 1), 0)
    unit = tl.where(unit > 0.0, unit, 1.0)
    return L / unit, floor, unit


@triton.jit
def _exchanged(L, reward, K: tl.constexpr, M: tl.constexpr, LABELS: tl.constexpr, OPTIONS: tl.constexpr):
    """``p`` (options,) and ``q`` (labels,) for rewards (labels,) in [-2, 0] and costs (labels, options) in [0, 1]."""
    j, i = tl.arange(0, LABELS), tl.arange(0, OPTIONS)
    T = tl.where((j[:, None] < K) & (i[None, :] < M), L + reward[:, None] + 3.0, 0.0)
    turn = (j + 1).to(tl.float64) * _GOLDEN
    tilted = 1.0 + _TILT * (turn - tl.floor(turn))
    gain = tl.where(i < M, 1.0, 0.0).to(tl.float64)
    options, labels = i, j + OPTIONS
    most, enter = tl.max(gain, 0, return_indices=True)
    step = tl.full((), 0, tl.int32)
    while (most > _TINY) & (step < 50 * (K + M)):
        entering = i == enter
        column = tl.sum(tl.where(entering[None, :], T, 0.0), 1)
        ratio = tl.where(column > _TINY, tilted / column, float("inf"))
        least, leave = tl.min(ratio, 0, return_indices=True)
        leaving = j == leave
        pivot = tl.sum(tl.where(leaving, column, 0.0), 0)
        row = tl.sum(tl.where(leaving[:, None], T, 0.0), 0)
        label = tl.sum(tl.where(leaving, labels, 0), 0)
        option = tl.sum(tl.where(entering, options, 0), 0)
        column = tl.where(leaving, pivot - 1.0, column)
        row = tl.where(entering, pivot + 1.0, row) * (1.0 / pivot)
        T -= column[:, None] * row[None, :]
        tilted -= column * least
        gain -= row * most
        labels, options = tl.where(leaving, option, labels), tl.where(entering, label, options)
        most, enter = tl.max(gain, 0, return_indices=True)
        step += 1
    # The true right-hand sides are those of the columns that labels have, and 1 where a label has kept its row.
    right = tl.sum(tl.where((options >= OPTIONS)[None, :], T, 0.0), 1) + tl.where(labels >= OPTIONS, 1.0, 0.0)
    u = tl.sum(tl.where(labels[:, None] == i[None, :], tl.maximum(right, 0.0)[:, None], 0.0), 0)
    x = tl.sum(tl.where(options[None, :] == j[:, None] + OPTIONS, tl.maximum(-gain, 0.0)[None, :], 0.0), 1)
    return u * (1.0 / tl.sum(u, 0)), x * (1.0 / tl.sum(x, 0))


@triton.jit
def _solve(
    scores, row, n, L, floor, unit,
    K: tl.constexpr, M: tl.constexpr, LABELS: tl.constexpr, OPTIONS: tl.constexpr,
):  # fmt: skip
    """Largest score, what the value is above it, ``p`` and ``q`` of one row; NaN where no value is certified."""
    j, i = tl.arange(0, LABELS), tl.arange(0, OPTIONS)
    x = tl.load(scores + row.to(tl.int64) * K + j, mask=(j < K) & (row < n), other=float("-inf")).to(tl.float64)
    top = largest(x, 0)
    finite = tl.abs(top) < float("inf")
    reward = tl.where(j < K, tl.where(finite, x - top, 0.0) + floor, float("-inf"))
    best = tl.max(reward, 0)
    reward = tl.maximum((reward - best) * (1.0 / unit), -2.0)  # below, no label can gain
    p, q = _exchanged(L, reward, K, M, LABELS, OPTIONS)
    cost = tl.sum(L * q[:, None], 0)
    secured = tl.sum(reward * q, 0) + tl.min(tl.where(i < M, cost, float("inf")), 0)
    most = tl.max(tl.where(j < K, reward + tl.sum(L * p[None, :], 1), float("-inf")), 0)
    good = finite & (most - secured <= _GAP)
    above = tl.where(good, best + unit * secured, float("nan"))
    return top, above, tl.where(good, p, float("nan")), tl.where(good, q, float("nan"))


@kernel()
def _forward(
    scores, target, weight, costs, out, support, numbers, n, ignore_index, REDUCE: tl.constexpr,
    K: tl.constexpr, M: tl.constexpr, LABELS: tl.constexpr, OPTIONS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    ACC: tl.constexpr = numbers.dtype.element_ty
    L, floor, unit = _units(costs, K, M, LABELS, OPTIONS)
    j, one = tl.arange(0, LABELS), tl.arange(0, 1)
    losses, shares = tl.zeros((1,), ACC), tl.zeros((1,), ACC)
    for r in range(ROWS):
        row = tl.program_id(0) * ROWS + r
        live = row < n
        begin = row.to(tl.int64) * K
        top, above, _, q = _solve(scores, row, n, L, floor, unit, K, M, LABELS, OPTIONS)
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
def _replies(
    scores, costs, p, n, ALWAYS: tl.constexpr,
    K: tl.constexpr, M: tl.constexpr, LABELS: tl.constexpr, OPTIONS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    L, floor, unit = _units(costs, K, M, LABELS, OPTIONS)
    i = tl.arange(0, OPTIONS)
    for r in range(ROWS):
        row = tl.program_id(0) * ROWS + r
        _, _, reply, _ = _solve(scores, row, n, L, floor, unit, K, M, LABELS, OPTIONS)
        tl.store(p + row.to(tl.int64) * M + i, reply.to(p.dtype.element_ty), mask=(i < M) & (row < n))


@kernel()
def _backward(
    grad, scores, target, weight, costs, support, numbers, out, n, ignore_index, grad_stride, MEAN: tl.constexpr,
    K: tl.constexpr, R: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    ACC: tl.constexpr = numbers.dtype.element_ty
    _, row, live = of_program(n, R)
    j = tl.arange(0, C)[None, :]
    whole = numbers + n.to(tl.int64) * K
    scale, y = row_scale(grad, grad_stride, whole, target, weight, row, live, ignore_index, MEAN)
    place = row.to(tl.int64)[:, None] * K + j
    inside = (j < K) & live[:, None]
    q = tl.load(numbers + place, mask=inside, other=0.0)
    change = (q - (j == y[:, None]).to(ACC)) * scale[:, None]
    tl.store(out + place, change.to(out.dtype.element_ty), mask=inside)


def _launcher(function: Any, k: int, m: int) -> Launcher:
    # Two sizes of tables only: one of 32 by 32 in a single warp has stopped with an illegal instruction (Triton 3.6).
    small = max(k, m) <= 16
    labels, options = (triton.next_power_of_2(max(size, 2)) if small else WIDEST for size in (k, m))
    return Launcher(function, (k, m, labels, options, _ROWS), rows=_ROWS, num_warps=1 if small else 4)


def plan(k: int, m: int) -> Plan:
    """Left is ``q``."""
    C = triton.next_power_of_2(k)
    backward = Launcher(_backward, (k, 1024 // C, C), rows=1024 // C, num_warps=4)
    return Plan(0, torch.int32, k, _launcher(_forward, k, m), backward)


_replier = cache(_launcher)


def replies(scores: torch.Tensor, costs: torch.Tensor) -> torch.Tensor:
    """The predictor's strategies (n, options) for ``scores`` (n, labels) and ``costs`` (options, labels)."""
    (m, k), n = costs.shape, len(scores)
    p = scores.new_empty(n, m)
    if n:
        tensors = (scores.contiguous(), costs.contiguous(), p)
        _replier(_replies, k, m)(n, tensors, (), True)
    return p
