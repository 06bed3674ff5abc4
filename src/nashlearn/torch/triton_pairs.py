"""Games on CUDA whose adversary plays at most two labels: absolute, squared, and abstention at a cost of up to 1/2.

The gradient is written from the pair and its shares, without reading the scores again.

The squared game is solved through its predictor. Between neighbours ``l`` and ``l + 1`` with mean ``c`` the predictor
pays ``(t_j - c)^2 + (c - t_l)(t_{l+1} - c)`` for label ``j``, so that

    F(f) = min_c  max_j (f_j + (t_j - c)^2) + (c - t_l)(t_{l+1} - c):

linear pieces in ``c``, one for each label, plus a convex function. Kept are one label on each side of the minimum;
their pieces meet at the next ``c``, and the best label there replaces the one on its side, until it is one of the two.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from nashlearn.torch import triton_rows as rows
from nashlearn.torch.triton_launches import Launcher
from nashlearn.torch.triton_rows import Plan, kernel, larger, largest, tile

__all__ = ["SOLVERS", "plan"]

_LANES = 2048
# More registers would leave too few warps to hide latency.
_LIMIT: dict[str, Any] = {} if torch.version.hip else {"maxnreg": 128}


@triton.jit
def _position(values, j, K: tl.constexpr, ACC: tl.constexpr):
    """Positions of the labels ``j``: as given, or 0..K-1, centred."""
    if values is None:
        return j.to(ACC) - (K - 1) / 2
    else:
        return tl.load(values + j, mask=j < K, other=0.0).to(ACC)


@triton.jit
def _best(x):
    return tl.max(tl.max(x, 1), 1)


@triton.jit
def _first(x, best, j, K: tl.constexpr):
    """The first label that reaches ``best``; the last one possible where none does, as with NaN."""
    return tl.min(tl.min(tl.where(x == best[:, None, None], j, K - 1), 1), 1)


@triton.jit
def _last(x, best, j):
    return tl.max(tl.max(tl.where(x == best[:, None, None], j, 0), 1), 1)


@triton.jit
def _tile_absolute(x, j, scores, offset, top, values, PRICE: tl.constexpr, K: tl.constexpr, ACC: tl.constexpr):
    t = _position(values, j, K, ACC)
    A, B = _best(x - t), _best(x + t)
    return 0.5 * (A + B), _first(x - t, A, j, K), _last(x + t, B, j), tl.full(A.shape, 0.5, ACC)


@triton.jit
def _tile_abstain(x, j, scores, offset, top, values, PRICE: tl.constexpr, K: tl.constexpr, ACC: tl.constexpr):
    first = _first(x, _best(x), j, K)
    others = tl.where(j == first[:, None, None], float("-inf"), x)
    runner_up = _best(others)
    doubt = tl.maximum(1.0 + runner_up, 0.0)
    price = tl.full((), PRICE, ACC)  # a constant alone would be float32
    return price * doubt, first, _first(others, runner_up, j, K), tl.where(doubt > 0.0, price, 0.0)


@triton.jit
def _meet(xu, xv, tu, tv):
    """Where the pieces of two labels meet, and the same moved to between their positions."""
    raw = 0.5 * (xv - xu) / (tv - tu) + 0.5 * (tu + tv)
    raw = tl.where(raw == raw, raw, 0.5 * (tu + tv))
    return raw, tl.minimum(tl.maximum(raw, tu), tv)


@triton.jit
def _narrowed(new, label, position, score, c, u, v, tu, tv, xu, xv):
    """The pair with a ``new`` label in the place of the one on its side of ``c``, and where their pieces meet."""
    left = new & (position <= c)
    right = new & (position > c)
    u, v = tl.where(left, label, u), tl.where(right, label, v)
    tu, tv = tl.where(left, position, tu), tl.where(right, position, tv)
    xu, xv = tl.where(left, score, xu), tl.where(right, score, xv)
    raw, c = _meet(xu, xv, tu, tv)
    return u, v, tu, tv, xu, xv, raw, c


@triton.jit
def _settle(xu, xv, tu, tv, raw, c, lower, upper):
    """Value, and share of the upper label, at the minimum ``c`` between the positions ``lower`` and ``upper``."""
    value = tl.maximum(xu + (tu - c) * (tu - c), xv + (tv - c) * (tv - c)) + (c - lower) * (upper - c)
    share = tl.minimum(tl.maximum((0.5 * (lower + upper) - tu) / (tv - tu), 0.0), 1.0)
    return value, tl.where(raw <= tu, 0.0, tl.where(raw >= tv, 1.0, share))


@triton.jit
def _tile_squared(x, j, scores, offset, top, values, PRICE: tl.constexpr, K: tl.constexpr, ACC: tl.constexpr):
    u = tl.zeros(top.shape, tl.int32)
    if K == 1:
        return top * 0.0, u, u, top * 0.0
    else:
        t = _position(values, j, K, ACC)
        v = u + (K - 1)
        tu, tv = _position(values, u, K, ACC), _position(values, v, K, ACC)
        xu = tl.load(scores + offset + u).to(ACC) - top
        xv = tl.load(scores + offset + v).to(ACC) - top
        raw, c = _meet(xu, xv, tu, tv)
        moving = True
        while moving:
            far = t - c[:, None, None]
            reward = x + far * far
            label = _first(reward, _best(reward), j, K)
            new = (label > u) & (label < v)
            position = _position(values, label, K, ACC)
            score = tl.load(scores + offset + label).to(ACC) - top
            u, v, tu, tv, xu, xv, raw, c = _narrowed(new, label, position, score, c, u, v, tu, tv, xu, xv)
            moving = tl.max(new.to(tl.int32), 0) > 0
        if values is None:
            lower = tl.minimum(tl.floor(c + (K - 1) / 2), K - 2) - (K - 1) / 2
            upper = lower + 1.0
        else:
            below = (t <= c[:, None, None]) & (j < K)
            lower = _best(tl.where(below, t, float("-inf")))
            upper = -_best(tl.where(below | (j >= K), float("-inf"), -t))
            upper = tl.minimum(upper, tv)
        value, share = _settle(xu, xv, tu, tv, raw, c, lower, upper)
        return value, u, v, share


@kernel()
def _tile_forward(
    scores, target, weight, values, out, pair, numbers, n, ignore_index, REDUCE: tl.constexpr,
    SOLVE: tl.constexpr, PRICE: tl.constexpr, K: tl.constexpr, S: tl.constexpr, R: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    ACC: tl.constexpr = numbers.dtype.element_ty
    r, row, live = rows.of_program(n, R)
    j = tl.arange(0, S)[None, :, None] * C + tl.arange(0, C)[None, None, :]
    scores += tl.program_id(0).to(tl.int64) * (R * K)
    offset = tl.where(live, r * K, 0)
    x = tl.load(scores + r[:, None, None] * K + j, mask=(j < K) & live[:, None, None], other=float("-inf")).to(ACC)
    top = largest(largest(x, 1), 1)
    top = tl.where(tl.abs(top) < float("inf"), top, float("nan"))
    x -= top[:, None, None]
    above, first, second, share = SOLVE(x, j, scores, offset, top, values, PRICE, K, ACC)
    tl.store(pair + row, first, mask=live)
    tl.store(pair + n + row, second, mask=live)
    tl.store(numbers + row, tl.where(top == top, share, float("nan")), mask=live)
    whole = numbers + n
    rows.store_outcome(scores, target, weight, out, whole, offset, row, live, top, above, ignore_index, REDUCE, K)


@triton.jit
def _lane_first(value, label, K: tl.constexpr):
    """Best of the lanes, and the first label that reaches it."""
    best = tl.max(value, 0)
    return best, tl.min(tl.where(value == best, label, K - 1), 0)


@triton.jit
def _row_absolute(scores, values, PRICE: tl.constexpr, K: tl.constexpr, LANES: tl.constexpr, ACC: tl.constexpr):
    lane = tl.arange(0, LANES)
    A = tl.full((LANES,), float("-inf"), ACC)
    B, seen = A, A
    first, last = tl.zeros((LANES,), tl.int32), tl.zeros((LANES,), tl.int32)
    for start in range(0, K, LANES):
        j = start + lane
        x = tl.load(scores + j, mask=j < K, other=float("-inf")).to(ACC)
        t = _position(values, j, K, ACC)
        seen = larger(seen, x)
        first = tl.where(x - t > A, j, first)
        A = tl.maximum(A, x - t)
        last = tl.where(x + t >= B, j, last)
        B = tl.maximum(B, x + t)
    best, one = _lane_first(A, first, K)
    top = tl.max(B, 0)
    other = tl.max(tl.where(top == B, last, 0), 0)
    return 0.5 * (best + top), one, other, tl.full((), 0.5, ACC), largest(seen, 0)


@triton.jit
def _row_abstain(scores, values, PRICE: tl.constexpr, K: tl.constexpr, LANES: tl.constexpr, ACC: tl.constexpr):
    lane = tl.arange(0, LANES)
    a = tl.full((LANES,), float("-inf"), ACC)
    b, seen = a, a
    ja, jb = lane, lane
    for start in range(0, K, LANES):
        j = start + lane
        x = tl.load(scores + j, mask=j < K, other=float("-inf")).to(ACC)
        seen = larger(seen, x)
        jb = tl.where(x > a, ja, tl.where(x > b, j, jb))
        b = tl.maximum(b, tl.minimum(a, x))
        ja = tl.where(x > a, j, ja)
        a = tl.maximum(a, x)
    top, first = _lane_first(a, ja, K)
    runner_up, second = _lane_first(tl.where(ja == first, b, a), tl.where(ja == first, jb, ja), K)
    doubt = tl.maximum(1.0 + (runner_up - top), 0.0)
    price = tl.full((), PRICE, ACC)  # a constant alone would be float32
    return top + price * doubt, first, second, tl.where(doubt > 0.0, price, 0.0), largest(seen, 0)


@triton.jit
def _row_squared(scores, values, PRICE: tl.constexpr, K: tl.constexpr, LANES: tl.constexpr, ACC: tl.constexpr):
    lane = tl.arange(0, LANES)
    u = tl.full((), 0, tl.int32)
    v = tl.full((), K - 1, tl.int32)
    tu, tv = _position(values, u, K, ACC), _position(values, v, K, ACC)
    xu, xv = tl.load(scores + u).to(ACC), tl.load(scores + v).to(ACC)
    raw, c = _meet(xu, xv, tu, tv)
    seen = tl.full((LANES,), float("-inf"), ACC)
    moving = True
    while moving:
        best = tl.full((LANES,), float("-inf"), ACC)
        labels = tl.zeros((LANES,), tl.int32)
        for start in range(0, K, LANES):
            j = start + lane
            x = tl.load(scores + j, mask=j < K, other=float("-inf")).to(ACC)
            seen = larger(seen, x)
            far = _position(values, j, K, ACC) - c
            reward = x + far * far
            labels = tl.where(reward > best, j, labels)
            best = tl.maximum(best, reward)
        _, label = _lane_first(best, labels, K)
        moving = (label > u) & (label < v)
        position = _position(values, label, K, ACC)
        score = tl.load(scores + label).to(ACC)
        u, v, tu, tv, xu, xv, raw, c = _narrowed(moving, label, position, score, c, u, v, tu, tv, xu, xv)
    if values is None:
        lower = tl.minimum(tl.floor(c + (K - 1) / 2), K - 2) - (K - 1) / 2
        upper = lower + 1.0
    else:
        under = tl.full((LANES,), float("-inf"), ACC)
        over = tl.full((LANES,), float("inf"), ACC)
        for start in range(0, K, LANES):
            j = start + lane
            t = _position(values, j, K, ACC)
            under = tl.where((j < K) & (t <= c), tl.maximum(under, t), under)
            over = tl.where((j < K) & (t > c), tl.minimum(over, t), over)
        lower = tl.max(under, 0)
        upper = tl.minimum(tl.min(over, 0), tv)
    value, share = _settle(xu, xv, tu, tv, raw, c, lower, upper)
    return value, u, v, share, largest(seen, 0)


@kernel()
def _row_forward(
    scores, target, weight, values, out, pair, numbers, n, ignore_index, REDUCE: tl.constexpr,
    SOLVE: tl.constexpr, PRICE: tl.constexpr, K: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    ACC: tl.constexpr = numbers.dtype.element_ty
    pid = tl.program_id(0)
    scores += pid.to(tl.int64) * K
    value, first, second, share, top = SOLVE(scores, values, PRICE, K, LANES, ACC)
    value = tl.where(tl.abs(top) < float("inf"), value, float("nan"))
    tl.store(pair + pid, first)
    tl.store(pair + n + pid, second)
    tl.store(numbers + pid, tl.where(value == value, share, float("nan")))
    zero = tl.zeros((1,), ACC)
    rows.store_row_outcome(scores, target, weight, out, numbers + n, value, zero, ignore_index, REDUCE, K)


@triton.jit
def _tile_strategy(values, pair, numbers, n, r, row, live, j, K: tl.constexpr, C: tl.constexpr):
    ACC: tl.constexpr = numbers.dtype.element_ty
    first = tl.load(pair + row, mask=live, other=0)
    second = tl.load(pair + n + row, mask=live, other=0)
    share = tl.load(numbers + row, mask=live, other=0.0)
    q = (j == first[None, :, None]).to(ACC) * (1.0 - share)[None, :, None]
    return q + (j == second[None, :, None]).to(ACC) * share[None, :, None]


@triton.jit
def _row_strategy(scores, values, pair, numbers, n, row, j, K: tl.constexpr):
    ACC: tl.constexpr = numbers.dtype.element_ty
    share = tl.load(numbers + row)
    return (j == tl.load(pair + row)).to(ACC) * (1.0 - share) + (j == tl.load(pair + n + row)).to(ACC) * share


SOLVERS = {
    "absolute": (_tile_absolute, _row_absolute),
    "squared": (_tile_squared, _row_squared),
    "abstain": (_tile_abstain, _row_abstain),
}


def plan(k: int, dtype: torch.dtype, loss: str, price: float) -> Plan:
    """Left are the pair of labels and the second's share."""
    in_tile, in_row = SOLVERS[loss]
    if k > rows.WIDEST:
        forward = Launcher(_row_forward, (in_row, price, k, _LANES), num_warps=4)
        backward = rows.row_gradient(_row_strategy, k, 1)
    else:
        S, R, C, num_warps = shape = tile(k, dtype.itemsize)
        forward = Launcher(_tile_forward, (in_tile, price, k, S, R, C), rows=R, num_warps=num_warps, **_LIMIT)
        backward = rows.tile_gradient(_tile_strategy, k, shape)
    return Plan(2, torch.int32, 1, forward, backward)
