"""Zero-one games on CUDA: the threshold of each row by Newton's iteration, without sorting.

Newton's iteration for ``sum_j [f_j - tau]_+ = 1`` rises to the root from every lower bound. Two are at hand,
``max - 1`` and the exact root if all labels were in play, ``(sum f - 1) / k``; a third, for long rows, is the root
of any subset of the labels. The subset that costs nothing is the :data:`_DEPTH` largest scores of each of many
lanes, gathered while the row streams by once: unless the last of them is itself above the root, nothing above the
root was missed and the root is that of the whole row. Otherwise Newton goes on over the row.

The adversary is uniform on the support (inverse to the weights, for weighted losses): as one bit for each label
where the row was in registers, so that the gradient is written without reading the scores again; else as threshold.
"""

from __future__ import annotations

from functools import cache

import torch
import triton
import triton.language as tl

from nashlearn.torch import triton_rows as rows
from nashlearn.torch.triton_launches import Launcher
from nashlearn.torch.triton_rows import Plan, kernel, larger, largest, sums, tile

__all__ = ["LANES", "long_rows", "packed", "plan", "row_threshold", "tile_threshold"]

LANES = 2048


@triton.jit
def tile_threshold(
    x, j, costs, mu, K: tl.constexpr, S: tl.constexpr, R: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    """Thresholds of a tile of scores: their largest ``top``, the scores less it, one over the costs, and more.

    That is the threshold ``t``, how many labels are above it and the sum of their inverse costs. With ``mu`` each
    label has ``mu`` times the logarithm of its cost added.
    """
    ACC: tl.constexpr = x.dtype
    best = largest(x, 1)
    top = largest(best, 1)
    top = tl.where(tl.abs(top) < float("inf"), top, float("nan"))
    x = x - top[:, None, None]
    # What lies below the lowest possible threshold is never played; cut off there, all sums stay finite.
    if costs is None:
        inverse = tl.full((1, 1, 1), 1.0, ACC)
        low = tl.full((R,), -1.0, ACC)
        v = tl.maximum(x, -2.0)
        everyone = tl.sum(tl.sum(v, 1), 1) + 2.0 * (S * C - K)
        mass = tl.full((R,), K, ACC)
    else:
        cost = tl.load(costs + j, mask=j < K, other=1.0).to(ACC)
        inverse = tl.where(j < K, 1.0 / cost, 0.0)
        low = tl.full((R,), 0.0, ACC)
        if mu is not None:
            x += mu * tl.log(cost)
            low = largest(largest(x, 1), 1)
        x += cost
        v = tl.maximum(x, low[:, None, None] - 2.0)
        everyone = tl.sum(tl.sum(v * inverse, 1), 1)
        mass = tl.full((R,), 0.0, ACC) + tl.sum(tl.sum(inverse, 1), 1)
    of_all = (everyone - 1.0) / mass
    t = tl.where(top == top, tl.maximum(of_all, low), float("nan"))
    if costs is None and S * C > 64:
        # The root for the largest of each column, in a fraction of the registers, is a third bound.
        best = tl.maximum(best - top[:, None], -2.0)
        support = tl.full((R,), K + 1, ACC)
        rising = True
        while rising:
            above = (best > t[:, None]).to(ACC)
            count, excess = sums(above, best * above, 1)
            next_t = (excess - 1.0) / count
            rises = (count < support) & (next_t > t)
            t = tl.where(rises, next_t, t)
            support = tl.where(rises, count, support)
            rising = tl.max(rises.to(tl.int32), 0) > 0
    # The root for all labels need not be found again where all turn out to be above it.
    support = tl.where(t == of_all, 1.0 * K, 1.0 + K).to(ACC)
    count = support
    shrinking = True
    while shrinking:
        above = (v > t[:, None, None]).to(ACC)
        if costs is None:
            count, excess = sums(tl.sum(above, 1), tl.sum(v * above, 1), 1)
            slope = count
        else:
            count = tl.sum(tl.sum(above, 1), 1)
            slope, excess = sums(tl.sum(inverse * above, 1), tl.sum(v * inverse * above, 1), 1)
        shrinks, t, support = rows.newton(t, support, count, excess, slope)
        mass = tl.where(count > 0, slope, mass)
        shrinking = tl.max(shrinks.to(tl.int32), 0) > 0
    return top, x, inverse, t, count, mass


@kernel()
def _tile_forward(
    scores, target, weight, costs, out, bits, numbers, n, ignore_index, REDUCE: tl.constexpr,
    K: tl.constexpr, S: tl.constexpr, R: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    ACC: tl.constexpr = numbers.dtype.element_ty
    pid = tl.program_id(0)
    r, row, live = rows.of_program(n, R)
    step = tl.arange(0, S)[None, :, None]
    j = step * C + tl.arange(0, C)[None, None, :]
    scores += pid.to(tl.int64) * (R * K)
    x = tl.load(scores + r[:, None, None] * K + j, mask=(j < K) & live[:, None, None], other=float("-inf")).to(ACC)
    top, x, _, t, count, mass = tile_threshold(x, j, costs, None, K, S, R, C)
    bit = (x > t[:, None, None]).to(tl.int32) << step
    word = r[:, None] * C + tl.arange(0, C)[None, :]
    bits += pid.to(tl.int64) * (R * C)
    tl.store(bits + word, tl.sum(bit, 1).to(bits.dtype.element_ty), mask=live[:, None])
    tl.store(numbers + row, tl.where(count > 0, 1.0 / mass, float("nan")), mask=live)
    above_top = t + 1.0 if costs is None else t
    whole = numbers + n
    rows.store_outcome(scores, target, weight, out, whole, r * K, row, live, top, above_top, ignore_index, REDUCE, K)


@triton.jit
def _tile_strategy(costs, bits, numbers, n, r, row, live, j, K: tl.constexpr, C: tl.constexpr):
    main = tl.load(numbers + row, mask=live, other=0.0)
    step = tl.arange(0, j.shape[0])[:, None, None]
    bits += tl.program_id(0).to(tl.int64) * (r.shape[0] * C)
    word = tl.load(bits + r[:, None] * C + tl.arange(0, C)[None, :], mask=live[:, None], other=0).to(tl.int32)
    q = ((word[None, :, :] >> step) & 1).to(main.dtype) * main[None, :, None]
    if costs is not None:
        q /= tl.load(costs + j, mask=j < K, other=1.0).to(main.dtype)
    return q


@triton.jit
def _larger(a, b, PACKED: tl.constexpr):
    """The larger, or NaN; two halves an instruction where ``PACKED``."""
    if PACKED and a.dtype == tl.bfloat16:
        return tl.inline_asm_elementwise("max.NaN.bf16x2 $0, $1, $2;", "=r,r,r", [a, b], a.dtype, True, 2)
    elif PACKED and a.dtype == tl.float16:
        return tl.inline_asm_elementwise("max.NaN.f16x2 $0, $1, $2;", "=r,r,r", [a, b], a.dtype, True, 2)
    else:
        return larger(a, b).to(a.dtype)  # bfloat16 would come back as float32


@triton.jit
def _smaller(a, b, PACKED: tl.constexpr):
    if PACKED and a.dtype == tl.bfloat16:
        return tl.inline_asm_elementwise("min.bf16x2 $0, $1, $2;", "=r,r,r", [a, b], a.dtype, True, 2)
    elif PACKED and a.dtype == tl.float16:
        return tl.inline_asm_elementwise("min.f16x2 $0, $1, $2;", "=r,r,r", [a, b], a.dtype, True, 2)
    else:
        return tl.minimum(a, b).to(a.dtype)


@triton.jit
def _insert(a, b, c, d, x, PACKED: tl.constexpr):
    """The four largest of five, where the first four are sorted, and the one that is left."""
    x, a = _smaller(a, x, PACKED), _larger(a, x, PACKED)
    x, b = _smaller(b, x, PACKED), _larger(b, x, PACKED)
    x, c = _smaller(c, x, PACKED), _larger(c, x, PACKED)
    return a, b, c, _larger(d, x, PACKED), _smaller(d, x, PACKED)


@triton.jit
def _insert_step(
    scores, a, b, c, d, rest, some, steep, start, K: tl.constexpr, LANES: tl.constexpr, PACKED: tl.constexpr,
    TEMPERED: tl.constexpr, MASKED: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """The next four scores of each lane, all loads in flight before the first is used."""
    j = start + tl.arange(0, LANES)
    if MASKED:
        w = tl.load(scores + j, mask=j < K, other=float("-inf"))
        x = tl.load(scores + j + LANES, mask=j + LANES < K, other=float("-inf"))
        y = tl.load(scores + j + 2 * LANES, mask=j + 2 * LANES < K, other=float("-inf"))
        z = tl.load(scores + j + 3 * LANES, mask=j + 3 * LANES < K, other=float("-inf"))
    else:
        w, x = tl.load(scores + j), tl.load(scores + j + LANES)
        y, z = tl.load(scores + j + 2 * LANES), tl.load(scores + j + 3 * LANES)
    a, b, c, d, w = _insert(a, b, c, d, w, PACKED)
    a, b, c, d, x = _insert(a, b, c, d, x, PACKED)
    a, b, c, d, y = _insert(a, b, c, d, y, PACKED)
    a, b, c, d, z = _insert(a, b, c, d, z, PACKED)
    if TEMPERED:
        rest += tl.exp2((w.to(ACC) - some) * steep) + tl.exp2((x.to(ACC) - some) * steep)
        rest += tl.exp2((y.to(ACC) - some) * steep) + tl.exp2((z.to(ACC) - some) * steep)
    return a, b, c, d, rest


@triton.jit
def _four_largest(
    scores, some, steep, K: tl.constexpr, LANES: tl.constexpr, PACKED: tl.constexpr, TEMPERED: tl.constexpr,
    ACC: tl.constexpr,
):  # fmt: skip
    """The four largest of each lane, sorted; if ``TEMPERED`` also the sum of ``2^((f - some) steep)`` of the rest."""
    rest = tl.zeros((LANES,), ACC)
    a = tl.full((LANES,), float("-inf"), ACC).to(scores.dtype.element_ty)
    b, c, d = a, a, a
    whole: tl.constexpr = K // (4 * LANES) * (4 * LANES)
    for start in range(0, whole, 4 * LANES):
        a, b, c, d, rest = _insert_step(
            scores, a, b, c, d, rest, some, steep, start, K, LANES, PACKED, TEMPERED, False, ACC
        )
    if whole < K:
        a, b, c, d, rest = _insert_step(
            scores, a, b, c, d, rest, some, steep, whole, K, LANES, PACKED, TEMPERED, True, ACC
        )
    return a.to(ACC), b.to(ACC), c.to(ACC), d.to(ACC), rest


@triton.jit
def _above(v, t):
    """Number and sum of the entries above ``t``, lane by lane."""
    over = (v > t).to(v.dtype)
    return over, v * over


@triton.jit
def _root_of_four(a, b, c, d, top, K: tl.constexpr, ACC: tl.constexpr):
    """The threshold of four scores a lane, less ``top``; how many are above it, and were; if one of ``d`` is."""
    # Nothing two below the top is ever played; cut off there, the sums stay finite.
    a, b = tl.maximum(a - top, -2.0), tl.maximum(b - top, -2.0)
    c, d = tl.maximum(c - top, -2.0), tl.maximum(d - top, -2.0)
    # First the largest of each lane, a good bound, then all that were kept.
    t = rows.root(a, tl.where(top == top, tl.full((), -1.0, ACC), float("nan")), K)
    support = tl.full((), K + 1, ACC)
    count = support
    shrinking = True
    while shrinking:
        na, sa = _above(a, t)
        nb, sb = _above(b, t)
        nc, sc = _above(c, t)
        nd, sd = _above(d, t)
        count, excess = sums(na + nb + nc + nd, sa + sb + sc + sd, 0)
        shrinking, t, support = rows.newton(t, support, count, excess, count)
    return t, count, support, tl.max(d, 0) > t


@triton.jit
def _pass(scores, top, t, costs, mu, K: tl.constexpr, LANES: tl.constexpr, ACC: tl.constexpr):
    """Excess, slope and number of a whole row's entries above ``t``, and the least entry of all."""
    lane = tl.arange(0, LANES)
    excess = tl.zeros((LANES,), ACC)
    slope = tl.zeros((LANES,), ACC)
    count = tl.zeros((LANES,), ACC)
    least = tl.full((LANES,), float("inf"), ACC)
    for start in range(0, K, LANES):
        j = start + lane
        v = tl.load(scores + j, mask=j < K, other=float("-inf")).to(ACC) - top
        inverse = tl.full((LANES,), 1.0, ACC)
        if costs is not None:
            cost = tl.load(costs + j, mask=j < K, other=1.0).to(ACC)
            inverse = 1.0 / cost
            v += cost
            if mu is not None:
                v += mu * tl.log(cost)
        over = v > t
        excess += tl.where(over, v * inverse, 0.0)
        slope += tl.where(over, inverse, 0.0)
        count += over.to(ACC)
        least = tl.minimum(least, tl.where(j < K, v, float("inf")))
    return tl.sum(excess, 0), tl.sum(slope, 0), tl.sum(count, 0), tl.min(least, 0)


@triton.jit
def _lowest(scores, top, costs, mu, K: tl.constexpr, LANES: tl.constexpr, ACC: tl.constexpr):
    """A threshold that no row of weighted labels falls below."""
    lane = tl.arange(0, LANES)
    low = tl.full((LANES,), float("-inf"), ACC)
    for start in range(0, K, LANES):
        j = start + lane
        v = tl.load(scores + j, mask=j < K, other=float("-inf")).to(ACC) - top
        low = tl.maximum(low, v + mu * tl.log(tl.load(costs + j, mask=j < K, other=1.0).to(ACC)))
    return tl.max(low, 0)


@triton.jit
def row_threshold(
    scores, costs, mu, some, steep, K: tl.constexpr, LANES: tl.constexpr, PACKED: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """A row's largest score, its threshold less that, the mass above, whether the four largest did not suffice.

    And the four largest scores of each lane with the sum of ``2^((f - some) steep)`` over the rest, where ``mu``, in
    whose stead :func:`tile_threshold` explains, is given.
    """
    a, b, c, d, rest = _four_largest(scores, some, steep, K, LANES, PACKED, mu is not None, ACC)
    top = largest(a, 0)
    top = tl.where(tl.abs(top) < float("inf"), top, float("nan"))
    if costs is None:
        # The mass is what is above, not the support: at a tie rounding may have let labels in again.
        t, mass, support, missed = _root_of_four(a, b, c, d, top, K, ACC)
    else:
        low = tl.full((), 0.0, ACC)
        if mu is not None:
            low = _lowest(scores, top, costs, mu, K, LANES, ACC)
        t = tl.where(top == top, low, float("nan"))
        mass = tl.full((), 0.0, ACC)
        support = tl.full((), K + 1, ACC)
        missed = t == t
    first = True
    again = missed
    while missed:
        excess, slope, count, least = _pass(scores, top, t, costs, mu, K, LANES, ACC)
        # At first the true support is at least the one kept: equal, and nothing was missed.
        moved = (count > 0) & ((count < support) | (first & (count != support)))
        t = tl.where(moved, (excess - 1.0) / slope, t)
        mass = tl.where(count > 0, slope, mass)
        support = tl.where(moved, count, support)
        # The root for all labels, as before training: where all are above it, another pass would find the same.
        missed = moved & ((count < K) | (least <= t))
        first = False
    return top, t, mass, again, a, b, c, d, rest


@kernel()
def _row_forward(
    scores, target, weight, costs, out, support, numbers, n, ignore_index, REDUCE: tl.constexpr,
    K: tl.constexpr, LANES: tl.constexpr, PACKED: tl.constexpr,
):  # fmt: skip
    ACC: tl.constexpr = numbers.dtype.element_ty
    pid = tl.program_id(0)
    scores += pid.to(tl.int64) * K
    top, t, mass, _, _, _, _, _, _ = row_threshold(scores, costs, None, None, None, K, LANES, PACKED, ACC)
    above_top = t + 1.0 if costs is None else t
    tl.store(numbers + pid, top)
    tl.store(numbers + n + pid, t)
    tl.store(numbers + 2 * n + pid, tl.where(t == t, 1.0 / mass, float("nan")))
    rows.store_row_outcome(scores, target, weight, out, numbers + 3 * n, top, above_top, ignore_index, REDUCE, K)


@triton.jit
def _row_strategy(scores, costs, support, numbers, n, row, j, K: tl.constexpr):
    ACC: tl.constexpr = numbers.dtype.element_ty
    top, t, main = tl.load(numbers + row), tl.load(numbers + n + row), tl.load(numbers + 2 * n + row)
    v = tl.load(scores + j, mask=j < K, other=float("-inf")).to(ACC) - top
    if costs is None:
        return (v > t).to(ACC) * main
    else:
        cost = tl.load(costs + j, mask=j < K, other=1.0).to(ACC)
        return (v + cost > t).to(ACC) * (main / cost)


@cache
def packed() -> bool:
    """Whether two halves fit an instruction: on NVIDIA's chips since Ampere."""
    return torch.version.cuda is not None and torch.cuda.is_available() and torch.cuda.get_device_capability() >= (8, 0)


@cache
def long_rows(k: int, dtype: torch.dtype) -> Plan:
    """Rows of any length, one program each: left are top, threshold and the mass on each label of the support."""
    forward = Launcher(_row_forward, (k, LANES, packed()), num_warps=min(8, 2 * dtype.itemsize))
    return Plan(0, torch.uint8, 3, forward, rows.row_gradient(_row_strategy, k, 3))


def plan(k: int, dtype: torch.dtype, loss: str, price: float) -> Plan:
    """Left are bits of the support and the mass on each label; of long rows what :func:`long_rows` leaves."""
    if k > rows.WIDEST:
        return long_rows(k, dtype)
    S, R, C, num_warps = shape = tile(k, dtype.itemsize)
    kind = torch.uint8 if S <= 8 else torch.int16 if S <= 16 else torch.int32
    forward = Launcher(_tile_forward, (k, S, R, C), rows=R, num_warps=num_warps)
    return Plan(C, kind, 1, forward, rows.tile_gradient(_tile_strategy, k, shape))
