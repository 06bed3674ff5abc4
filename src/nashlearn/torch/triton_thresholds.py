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

from nashlearn.torch import triton_rows
from nashlearn.torch.triton_rows import (
    Launcher,
    Plan,
    kernel,
    larger,
    largest,
    outcome,
    row_scale,
    store_outcome,
    sums,
    tile,
)

__all__ = ["plan", "streamed"]

_LOG2_E = tl.constexpr(1.4426950408889634)
_LANES = 2048
_CHUNK = 2048


@kernel()
def _tile_forward(
    scores, target, weight, costs, out, bits, numbers, n, ignore_index, REDUCE: tl.constexpr,
    K: tl.constexpr, S: tl.constexpr, R: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    ACC: tl.constexpr = numbers.dtype.element_ty
    pid = tl.program_id(0)
    r = tl.arange(0, R)
    row = pid * R + r
    live = row < n
    step = tl.arange(0, S)[None, :, None]
    j = step * C + tl.arange(0, C)[None, None, :]
    scores += pid.to(tl.int64) * (R * K)
    x = tl.load(scores + r[:, None, None] * K + j, mask=(j < K) & live[:, None, None], other=float("-inf")).to(ACC)
    best = largest(x, 1)
    top = largest(best, 1)
    top = tl.where(tl.abs(top) < float("inf"), top, float("nan"))
    # What lies this far below the lowest threshold is never played; cut off there, all sums stay finite.
    if costs is None:
        inverse = tl.full((1, 1, 1), 1.0, ACC)
        x = tl.maximum(x - top[:, None, None], -2.0)
        everyone = tl.sum(tl.sum(x, 1), 1) + 2.0 * (S * C - K)
        mass = tl.full((R,), K, ACC)
        low = -1.0
    else:
        cost = tl.load(costs + j, mask=j < K, other=1.0).to(ACC)
        inverse = tl.where(j < K, 1.0 / cost, 0.0)
        x = tl.maximum(x - top[:, None, None] + cost, -2.0)
        everyone = tl.sum(tl.sum(x * inverse, 1), 1)
        mass = tl.full((R,), 0.0, ACC) + tl.sum(tl.sum(inverse, 1), 1)
        low = 0.0
    t = tl.where(top == top, tl.maximum((everyone - 1.0) / mass, low), float("nan"))
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
    support = tl.full((R,), K + 1, ACC)
    count = support
    shrinking = True
    while shrinking:
        above = (x > t[:, None, None]).to(ACC)
        if costs is None:
            count, excess = sums(tl.sum(above, 1), tl.sum(x * above, 1), 1)
            slope = count
        else:
            count = tl.sum(tl.sum(above, 1), 1)
            slope, excess = sums(tl.sum(inverse * above, 1), tl.sum(x * inverse * above, 1), 1)
        shrinks = (count < support) & (count > 0)
        t = tl.where(shrinks, (excess - 1.0) / slope, t)
        mass = tl.where(count > 0, slope, mass)
        support = tl.where(shrinks, count, support)
        shrinking = tl.max(shrinks.to(tl.int32), 0) > 0
    bit = (x > t[:, None, None]).to(tl.int32) << step
    word = r[:, None] * C + tl.arange(0, C)[None, :]
    bits += pid.to(tl.int64) * (R * C)
    tl.store(bits + word, tl.sum(bit, 1).to(bits.dtype.element_ty), mask=live[:, None])
    tl.store(numbers + row, tl.where(count > 0, 1.0 / mass, float("nan")), mask=live)
    above_top = t + 1.0 if costs is None else t
    loss, share = outcome(scores, target, weight, r * K, row, live, top, above_top, ignore_index, K, ACC)
    store_outcome(loss, share, out, numbers + n, row, live, REDUCE)


@kernel()
def _tile_backward(
    grad, scores, target, weight, costs, bits, numbers, out, n, ignore_index, grad_stride, MEAN: tl.constexpr,
    K: tl.constexpr, S: tl.constexpr, R: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    ACC: tl.constexpr = numbers.dtype.element_ty
    pid = tl.program_id(0)
    r = tl.arange(0, R)
    row = pid * R + r
    live = row < n
    step = tl.arange(0, S)[:, None, None]
    c = tl.arange(0, C)
    j = step * C + c[None, None, :]
    scale, y = row_scale(grad, grad_stride, numbers + n, target, weight, row, live, ignore_index, MEAN, ACC)
    main = tl.load(numbers + row, mask=live, other=0.0)
    bits += pid.to(tl.int64) * (R * C)
    word = tl.load(bits + r[:, None] * C + c[None, :], mask=live[:, None], other=0).to(tl.int32)
    q = ((word[None, :, :] >> step) & 1).to(ACC) * main[None, :, None]
    if costs is not None:
        q /= tl.load(costs + j, mask=j < K, other=1.0).to(ACC)
    change = (q - (j == y[None, :, None]).to(ACC)) * scale[None, :, None]
    out += pid.to(tl.int64) * (R * K)
    tl.store(out + r[None, :, None] * K + j, change.to(out.dtype.element_ty), mask=(j < K) & live[None, :, None])


@triton.jit
def _larger(a, b, PACKED: tl.constexpr):
    """The larger, or NaN; two halves an instruction where ``PACKED``."""
    if PACKED and a.dtype == tl.bfloat16:
        return tl.inline_asm_elementwise("max.NaN.bf16x2 $0, $1, $2;", "=r,r,r", [a, b], a.dtype, True, 2)
    elif PACKED and a.dtype == tl.float16:
        return tl.inline_asm_elementwise("max.NaN.f16x2 $0, $1, $2;", "=r,r,r", [a, b], a.dtype, True, 2)
    else:
        return larger(a, b)


@triton.jit
def _smaller(a, b, PACKED: tl.constexpr):
    if PACKED and a.dtype == tl.bfloat16:
        return tl.inline_asm_elementwise("min.bf16x2 $0, $1, $2;", "=r,r,r", [a, b], a.dtype, True, 2)
    elif PACKED and a.dtype == tl.float16:
        return tl.inline_asm_elementwise("min.f16x2 $0, $1, $2;", "=r,r,r", [a, b], a.dtype, True, 2)
    else:
        return tl.minimum(a, b)


@triton.jit
def _insert(a, b, c, d, x, PACKED: tl.constexpr):
    """The four largest of five, where the first four are sorted, and the one that is left."""
    x, a = _smaller(a, x, PACKED), _larger(a, x, PACKED)
    x, b = _smaller(b, x, PACKED), _larger(b, x, PACKED)
    x, c = _smaller(c, x, PACKED), _larger(c, x, PACKED)
    return a, b, c, _larger(d, x, PACKED), _smaller(d, x, PACKED)


@triton.jit
def _above(v, t):
    """Number and sum of the entries above ``t``, lane by lane."""
    over = (v > t).to(v.dtype)
    return over, v * over


@triton.jit
def _pass(scores, top, t, costs, K: tl.constexpr, LANES: tl.constexpr, ACC: tl.constexpr):
    """Excess, slope and number of a whole row's entries above ``t``."""
    lane = tl.arange(0, LANES)
    excess = tl.zeros((LANES,), ACC)
    slope = tl.zeros((LANES,), ACC)
    count = tl.zeros((LANES,), ACC)
    for start in range(0, K, LANES):
        j = start + lane
        v = tl.load(scores + j, mask=j < K, other=float("-inf")).to(ACC) - top
        inverse = tl.full((LANES,), 1.0, ACC)
        if costs is not None:
            cost = tl.load(costs + j, mask=j < K, other=1.0).to(ACC)
            inverse = 1.0 / cost
            v += cost
        over = v > t
        excess += tl.where(over, v * inverse, 0.0)
        slope += tl.where(over, inverse, 0.0)
        count += over.to(ACC)
    return tl.sum(excess, 0), tl.sum(slope, 0), tl.sum(count, 0)


@triton.jit
def _tempered_mass(scores, top, t, slope, K: tl.constexpr, LANES: tl.constexpr, ACC: tl.constexpr):
    """The sum of ``2^((min(f, tau) - tau) slope)`` over a whole row, ``tau = top + t``."""
    lane = tl.arange(0, LANES)
    total = tl.zeros((LANES,), ACC)
    for start in range(0, K, LANES):
        v = tl.load(scores + start + lane, mask=start + lane < K, other=float("-inf")).to(ACC) - top
        total += tl.exp2((tl.minimum(v, t) - t) * slope)
    return tl.sum(total, 0)


@kernel()
def _row_forward(
    scores, target, weight, costs, out, heat, numbers, n, ignore_index, REDUCE: tl.constexpr,
    K: tl.constexpr, LANES: tl.constexpr, PACKED: tl.constexpr, TEMPERED: tl.constexpr,
):  # fmt: skip
    ACC: tl.constexpr = numbers.dtype.element_ty
    pid = tl.program_id(0)
    scores += pid.to(tl.int64) * K
    lane = tl.arange(0, LANES)
    if TEMPERED:
        # What is not among the largest is summed as it is left, by its distance from some score of the row.
        steep = _LOG2_E / tl.load(heat)
        some = tl.max(tl.load(scores + lane, mask=lane < K, other=float("-inf")).to(ACC), 0)
        some = tl.where(tl.abs(some) < float("inf"), some, 0.0)
        rest = tl.zeros((LANES,), ACC)
    a = tl.full((LANES,), float("-inf"), ACC).to(scores.dtype.element_ty)
    b, c, d = a, a, a
    for start in range(0, K, 4 * LANES):  # four loads in flight
        j = start + lane
        w = tl.load(scores + j, mask=j < K, other=float("-inf"))
        x = tl.load(scores + j + LANES, mask=j + LANES < K, other=float("-inf"))
        y = tl.load(scores + j + 2 * LANES, mask=j + 2 * LANES < K, other=float("-inf"))
        z = tl.load(scores + j + 3 * LANES, mask=j + 3 * LANES < K, other=float("-inf"))
        a, b, c, d, w = _insert(a, b, c, d, w, PACKED)
        a, b, c, d, x = _insert(a, b, c, d, x, PACKED)
        a, b, c, d, y = _insert(a, b, c, d, y, PACKED)
        a, b, c, d, z = _insert(a, b, c, d, z, PACKED)
        if TEMPERED:
            rest += tl.exp2((w.to(ACC) - some) * steep) + tl.exp2((x.to(ACC) - some) * steep)
            rest += tl.exp2((y.to(ACC) - some) * steep) + tl.exp2((z.to(ACC) - some) * steep)
    top = largest(a.to(ACC), 0)
    top = tl.where(tl.abs(top) < float("inf"), top, float("nan"))
    mass = tl.full((), 0.0, ACC)
    count = mass
    support = tl.full((), K + 1, ACC)
    missed = True
    if costs is None:
        # Nothing two below the top is ever played; cut off there, the sums stay finite.
        va, vb = tl.maximum(a.to(ACC) - top, -2.0), tl.maximum(b.to(ACC) - top, -2.0)
        vc, vd = tl.maximum(c.to(ACC) - top, -2.0), tl.maximum(d.to(ACC) - top, -2.0)
        t = tl.where(top == top, tl.full((), -1.0, ACC), float("nan"))
        # First the largest of each lane, a good bound, then all that were kept.
        shrinking = True
        while shrinking:
            na, sa = _above(va, t)
            count, excess = sums(na, sa, 0)
            shrinking = (count < support) & (count > 0)
            t = tl.where(shrinking, (excess - 1.0) / count, t)
            support = tl.where(shrinking, count, support)
        support = tl.full((), K + 1, ACC)
        shrinking = True
        while shrinking:
            na, sa = _above(va, t)
            nb, sb = _above(vb, t)
            nc, sc = _above(vc, t)
            nd, sd = _above(vd, t)
            count, excess = sums(na + nb + nc + nd, sa + sb + sc + sd, 0)
            shrinking = (count < support) & (count > 0)
            t = tl.where(shrinking, (excess - 1.0) / count, t)
            support = tl.where(shrinking, count, support)
        mass = count  # not support: at a tie rounding may have let labels in again
        missed = tl.max(vd, 0) > t
    else:
        t = tl.where(top == top, tl.full((), 0.0, ACC), float("nan"))
        missed = t == t
    first = True
    again = missed
    while missed:
        excess, slope, count = _pass(scores, top, t, costs, K, LANES, ACC)
        # At first the true support is at least the one kept: equal, and nothing was missed.
        moved = (count > 0) & ((count < support) | (first & (count != support)))
        t = tl.where(moved, (excess - 1.0) / slope, t)
        mass = tl.where(count > 0, slope, mass)
        support = tl.where(moved, count, support)
        missed = moved
        first = False
    above_top = t + 1.0 if costs is None else t
    if TEMPERED:
        va, vb = tl.minimum(a.to(ACC) - top, t) - t, tl.minimum(b.to(ACC) - top, t) - t
        vc, vd = tl.minimum(c.to(ACC) - top, t) - t, tl.minimum(d.to(ACC) - top, t) - t
        kept = tl.exp2(va * steep) + tl.exp2(vb * steep) + tl.exp2(vc * steep) + tl.exp2(vd * steep)
        mass = tl.sum(kept + rest * tl.exp2((some - top - t) * steep), 0)
        # Not if some of the largest were left, nor where powers of two may have run out of range.
        if again | (steep > 64.0) | (mass > 1e30) | (mass != mass):
            mass = _tempered_mass(scores, top, t, steep, K, LANES, ACC)
        above_top += tl.log(mass) * tl.load(heat)
    tl.store(numbers + pid, top)
    tl.store(numbers + n + pid, t)
    tl.store(numbers + 2 * n + pid, tl.where(t == t, 1.0 / mass, float("nan")))
    one = tl.arange(0, 1)
    loss, share = outcome(scores, target, weight, one, pid + one, one == 0, top, above_top, ignore_index, K, ACC)
    store_outcome(loss, share, out, numbers + 3 * n, pid + one, one == 0, REDUCE)


@kernel()
def _row_backward(
    grad, scores, target, weight, costs, support, numbers, out, n, ignore_index, grad_stride, MEAN: tl.constexpr,
    K: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    ACC: tl.constexpr = numbers.dtype.element_ty
    chunks: tl.constexpr = (K + CHUNK - 1) // CHUNK
    pid = tl.program_id(0)
    row = n - 1 - pid // chunks  # the last rows read are the ones still in cache
    one = tl.arange(0, 1)
    whole = numbers + 3 * n
    scale, y = row_scale(grad, grad_stride, whole, target, weight, row + one, one == 0, ignore_index, MEAN, ACC)
    top, t, main = tl.load(numbers + row), tl.load(numbers + n + row), tl.load(numbers + 2 * n + row)
    j = pid % chunks * CHUNK + tl.arange(0, CHUNK)
    scores += row.to(tl.int64) * K
    out += row.to(tl.int64) * K
    v = tl.load(scores + j, mask=j < K, other=float("-inf")).to(ACC) - top
    if costs is None:
        q = (v > t).to(ACC) * main
    else:
        cost = tl.load(costs + j, mask=j < K, other=1.0).to(ACC)
        q = (v + cost > t).to(ACC) * (main / cost)
    change = (q - (j == y).to(ACC)) * scale
    tl.store(out + j, change.to(out.dtype.element_ty), mask=j < K)


@cache
def _packed() -> bool:
    """Whether two halves fit an instruction: on NVIDIA's chips since Ampere."""
    return torch.version.cuda is not None and torch.cuda.is_available() and torch.cuda.get_device_capability() >= (8, 0)


@cache
def streamed(k: int, dtype: torch.dtype, tempered: bool = False) -> Plan:
    """Rows of any length, one program each: left are top, threshold and the mass on each label of the support.

    ``tempered`` ones take the smoothing, a number on the device, in the place of the support. Their loss is the
    tempered one, and the third number one over the sum of ``exp((min(f, tau) - tau) / smoothing)``.
    """
    warps = min(8, (2 + 2 * tempered) * dtype.itemsize)
    forward = Launcher(_row_forward, (k, _LANES, _packed(), tempered), num_warps=warps)
    return Plan(0, torch.uint8, 3, forward, Launcher(_row_backward, (k, _CHUNK), parts=-(-k // _CHUNK), num_warps=4))


def plan(k: int, dtype: torch.dtype, loss: str, price: float) -> Plan:
    """Left are bits of the support and the mass on each label; of long rows what :func:`streamed` leaves."""
    if k > triton_rows.WIDEST:
        return streamed(k, dtype)
    S, R, C, num_warps = tile(k, dtype.itemsize)
    kind = torch.uint8 if S <= 8 else torch.int16 if S <= 16 else torch.int32
    forward = Launcher(_tile_forward, (k, S, R, C), rows=R, num_warps=num_warps)
    return Plan(C, kind, 1, forward, Launcher(_tile_backward, (k, S, 2 * R, C), rows=2 * R, num_warps=num_warps))
