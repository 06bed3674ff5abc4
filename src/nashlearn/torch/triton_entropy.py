"""Tempered zero-one games on CUDA: the threshold of each row, then the probabilities below it.

The predictor plays ``p = [b - tau]_+ / w`` for ``b = f + w + mu log w``, ``w`` being 1 or the costs of the labels, and
the adversary ``q = exp(min(b, tau) / mu) / w``, normalised. All labels have their share, so that the backward pass
reads the scores again, as cross-entropy's does. Left for it are the largest score of a row, the threshold and one over
the sum of ``exp((min(b, tau) - tau) / mu) / w``.
"""

from __future__ import annotations

from functools import cache

import torch
import triton
import triton.language as tl

from nashlearn.torch import triton_rows as rows
from nashlearn.torch.triton_launches import Launcher
from nashlearn.torch.triton_rows import LOG2_E, Plan, kernel, number, tile
from nashlearn.torch.triton_thresholds import LANES, packed, row_threshold, tile_threshold

__all__ = ["long_rows", "plan", "row_game"]

_CHUNK = 2048  # classes whose gradient one program writes, of a long row


@triton.jit
def _store(
    scores, target, weight, costs, out, numbers, n, offset, row, live, top, t, mass, mu, ignore_index,
    REDUCE: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Write the outcome of rows and what the backward pass needs."""
    tl.store(numbers + row, top, mask=live)
    tl.store(numbers + n + row, t, mask=live)
    tl.store(numbers + 2 * n + row, 1.0 / mass, mask=live)
    above = t + mu * tl.log(mass)
    if costs is None:
        above += 1.0
    rows.store_outcome(
        scores, target, weight, out, numbers + 3 * n, offset, row, live, top, above, ignore_index, REDUCE, K
    )


@kernel()
def _tile_forward(
    scores, target, weight, costs, out, support, numbers, n, ignore_index, low, high, REDUCE: tl.constexpr,
    K: tl.constexpr, S: tl.constexpr, R: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    ACC: tl.constexpr = numbers.dtype.element_ty
    r, row, live = rows.of_program(n, R)
    j = tl.arange(0, S)[None, :, None] * C + tl.arange(0, C)[None, None, :]
    scores += tl.program_id(0).to(tl.int64) * (R * K)
    x = tl.load(scores + r[:, None, None] * K + j, mask=(j < K) & live[:, None, None], other=float("-inf")).to(ACC)
    mu = number(low, high, ACC)
    top, x, inverse, t, _, _ = tile_threshold(x, j, costs, mu, K, S, R, C)
    below = tl.minimum(x, t[:, None, None]) - t[:, None, None]
    mass = tl.sum(tl.sum(inverse * tl.exp2(below * (LOG2_E / mu)), 1), 1)
    _store(scores, target, weight, costs, out, numbers, n, r * K, row, live, top, t, mass, mu, ignore_index, REDUCE, K)


@triton.jit
def _row_mass(scores, top, t, costs, mu, K: tl.constexpr, LANES: tl.constexpr, ACC: tl.constexpr):
    """The sum of ``exp((min(b, tau) - tau) / mu) / w`` over a whole row, ``tau = top + t``."""
    lane = tl.arange(0, LANES)
    total = tl.zeros((LANES,), ACC)
    for start in range(0, K, LANES):
        j = start + lane
        v = tl.load(scores + j, mask=j < K, other=float("-inf")).to(ACC) - top
        total += _share(v, t, costs, mu, j, K)
    return tl.sum(total, 0)


@triton.jit
def _share(v, t, costs, mu, j, K: tl.constexpr):
    """What labels ``j`` with scores ``v`` above the largest have before they are normalised."""
    if costs is None:
        return tl.exp2((tl.minimum(v, t) - t) * (LOG2_E / mu))
    else:
        cost = tl.load(costs + j, mask=j < K, other=1.0).to(v.dtype)
        v += cost + mu * tl.log(cost)
        return tl.exp2((tl.minimum(v, t) - t) * (LOG2_E / mu)) / cost


@triton.jit
def _kept_mass(a, b, c, d, rest, some, top, t, steep):
    """The sum over a row of unweighted labels from the four largest of each lane and the rest, from ``some`` score."""
    a, b = tl.minimum(a - top, t) - t, tl.minimum(b - top, t) - t
    c, d = tl.minimum(c - top, t) - t, tl.minimum(d - top, t) - t
    kept = tl.exp2(a * steep) + tl.exp2(b * steep) + tl.exp2(c * steep) + tl.exp2(d * steep)
    return tl.sum(kept + rest * tl.exp2((some - top - t) * steep), 0)


@triton.jit
def row_game(scores, costs, mu, K: tl.constexpr, LANES: tl.constexpr, PACKED: tl.constexpr, ACC: tl.constexpr):
    """Largest score of a row, threshold less that, and the sum of ``exp((min(b, tau) - tau) / mu) / w``."""
    # What is not among the largest is summed as it is left, by its distance from some score of the row.
    lane = tl.arange(0, LANES)
    steep = LOG2_E / mu
    some = tl.max(tl.load(scores + lane, mask=lane < K, other=float("-inf")).to(ACC), 0)
    some = tl.where(tl.abs(some) < float("inf"), some, 0.0)
    top, t, above, again, a, b, c, d, rest = row_threshold(scores, costs, mu, some, steep, K, LANES, PACKED, ACC)
    mass = _kept_mass(a, b, c, d, rest, some, top, t, steep)
    if costs is None:  # all are above, as before training, and each has a share of 1
        again &= above != K
        mass = tl.where(above == K, above, mass)
    # Not if some of the largest were left, nor where powers of two may have run out of range.
    if again | (steep > 64.0) | (mass > 1e30) | (mass != mass):
        mass = _row_mass(scores, top, t, costs, mu, K, LANES, ACC)
    return top, t, mass


@kernel()
def _row_forward(
    scores, target, weight, costs, out, support, numbers, n, ignore_index, low, high, REDUCE: tl.constexpr,
    K: tl.constexpr, LANES: tl.constexpr, PACKED: tl.constexpr,
):  # fmt: skip
    ACC: tl.constexpr = numbers.dtype.element_ty
    pid = tl.program_id(0)
    scores += pid.to(tl.int64) * K
    mu = number(low, high, ACC)
    top, t, mass = row_game(scores, costs, mu, K, LANES, PACKED, ACC)
    one = tl.arange(0, 1)
    _store(
        scores, target, weight, costs, out, numbers, n, one, pid + one, one == 0, top, t, mass, mu,
        ignore_index, REDUCE, K,
    )  # fmt: skip


@kernel()
def _tile_backward(
    grad, scores, target, weight, costs, support, numbers, out, n, ignore_index, grad_stride, low, high,
    MEAN: tl.constexpr, K: tl.constexpr, S: tl.constexpr, R: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    ACC: tl.constexpr = numbers.dtype.element_ty
    program = tl.num_programs(0) - 1 - tl.program_id(0)  # the last rows read are the ones still in cache
    r = tl.arange(0, R)
    row = program * R + r
    live = row < n
    j = tl.arange(0, S)[:, None, None] * C + tl.arange(0, C)[None, None, :]
    scale, y = rows.row_scale(grad, grad_stride, numbers + 3 * n, target, weight, row, live, ignore_index, MEAN)
    top = tl.load(numbers + row, mask=live, other=0.0)
    t = tl.load(numbers + n + row, mask=live, other=0.0)
    main = tl.load(numbers + 2 * n + row, mask=live, other=0.0)
    begin = program.to(tl.int64) * (R * K)
    place, inside = r[None, :, None] * K + j, (j < K) & live[None, :, None]
    v = tl.load(scores + begin + place, mask=inside, other=float("-inf")).to(ACC) - top[None, :, None]
    q = _share(v, t[None, :, None], costs, number(low, high, ACC), j, K) * main[None, :, None]
    change = (q - (j == y[None, :, None]).to(ACC)) * scale[None, :, None]
    tl.store(out + begin + place, change.to(out.dtype.element_ty), mask=inside)


@kernel()
def _row_backward(
    grad, scores, target, weight, costs, support, numbers, out, n, ignore_index, grad_stride, low, high,
    MEAN: tl.constexpr, K: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    ACC: tl.constexpr = numbers.dtype.element_ty
    chunks: tl.constexpr = (K + CHUNK - 1) // CHUNK
    pid = tl.program_id(0)
    row = n - 1 - pid // chunks
    one = tl.arange(0, 1)
    whole = numbers + 3 * n
    scale, y = rows.row_scale(grad, grad_stride, whole, target, weight, row + one, one == 0, ignore_index, MEAN)
    top, t, main = tl.load(numbers + row), tl.load(numbers + n + row), tl.load(numbers + 2 * n + row)
    j = pid % chunks * CHUNK + tl.arange(0, CHUNK)
    begin = row.to(tl.int64) * K
    v = tl.load(scores + begin + j, mask=j < K, other=float("-inf")).to(ACC) - top
    q = _share(v, t, costs, number(low, high, ACC), j, K) * main
    change = (q - (j == y).to(ACC)) * scale
    tl.store(out + begin + j, change.to(out.dtype.element_ty), mask=j < K)


@cache
def long_rows(k: int, dtype: torch.dtype) -> Plan:
    """Rows of any length, one program each, that stream by; see :func:`plan`."""
    forward = Launcher(_row_forward, (k, LANES, packed()), tempered=True, num_warps=min(8, 4 * dtype.itemsize))
    backward = Launcher(_row_backward, (k, _CHUNK), parts=-(-k // _CHUNK), tempered=True, num_warps=4)
    return Plan(0, torch.uint8, 3, forward, backward)


def plan(k: int, dtype: torch.dtype) -> Plan:
    """Left are the largest score, the threshold and one over the mass of each row."""
    if k > rows.WIDEST:
        return long_rows(k, dtype)
    S, R, C, num_warps = tile(k, dtype.itemsize)
    forward = Launcher(_tile_forward, (k, S, R, C), rows=R, tempered=True, num_warps=num_warps)
    backward = Launcher(_tile_backward, (k, S, R, C), rows=R, tempered=True, num_warps=num_warps)
    return Plan(0, torch.uint8, 3, forward, backward)
