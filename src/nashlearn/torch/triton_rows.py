"""What the Triton kernels share: the shape of a tile, the loss of a row, sums over rows, the gradient's scale.

Scores of a class count up to :data:`WIDEST` are held in registers: a program takes ``R`` rows as a tile (R, S, C),
class ``s C + c``. With that order of axes a row lies in as few lanes as 32 registers in each allow, one for up to
32 classes, so that reductions over a row take few shuffles or none. Gradients are written as a tile (S, R, C), which
spreads a row over many lanes: coalesced stores. Beyond, a program streams over one row.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

from nashlearn.torch.triton_launches import Launch, Launcher, usual

__all__ = [
    "LOG2_E",
    "WIDEST",
    "Plan",
    "Tile",
    "accumulator",
    "kernel",
    "larger",
    "largest",
    "newton",
    "number",
    "of_program",
    "outcome",
    "root",
    "row_gradient",
    "row_scale",
    "store_outcome",
    "store_row_outcome",
    "store_sums",
    "sums",
    "tile",
    "tile_gradient",
    "total",
    "usual",
]

WIDEST = 8192
LOG2_E = tl.constexpr(1.4426950408889634)
_CHUNK = 2048  # classes whose gradient one program writes, of a long row
_PER_LANE = 32


class Tile(NamedTuple):
    """Shape of a tile and the warps that hold it: ``S * C`` classes, padded, of ``R`` rows."""

    S: int
    R: int
    C: int
    num_warps: int


# Integers that kernels take are not worth machine code of their own for each value.
_INTEGERS = ["n", "start", "many", "room", "ignore_index", "grad_stride", "low", "high"]
# No argument may be called params, options, specialization or backend: Triton's own code of a launch has these names.
kernel = partial(triton.jit, do_not_specialize=_INTEGERS)


class Plan(NamedTuple):
    """How rows of some number of classes and type are solved, and what that leaves for the backward pass.

    ``forward`` takes the tensors scores, target, weight, params, out, support and numbers, the integer ignore_index,
    whether to reduce, and the smoothing; ``backward`` grad, scores, target, weight, params, support, numbers and out,
    ignore_index and grad's stride, whether the mean was taken, and the smoothing. The support has ``words`` of this
    ``kind`` for each row. Of ``numbers`` there are so many for each row, one kind after another; if losses are
    reduced, then follow the denominator, and losses and weights summed over the rows of each program.
    """

    words: int
    kind: torch.dtype
    numbers: int
    forward: Any
    backward: Any

    def length(self, n: int, reduce: bool) -> int:
        """How many numbers there are for ``n`` rows."""
        return self.numbers * n + (1 + 2 * -(-n // self.forward.rows) if reduce else 0)


def _power_of_two(n: int) -> int:
    """The smallest that is at least ``n``."""
    return 1 << (n - 1).bit_length()


def tile(k: int, itemsize: int) -> Tile:
    """The tile for rows of ``k`` scores: 16-byte loads where the rows' alignment allows.

    One warp, which spares the barriers of reductions, unless a row needs more.
    """
    vector = min(k & -k, 16 // itemsize)
    lanes = min(_power_of_two(-(-k // _PER_LANE)), _power_of_two(-(-k // vector)))
    width = lanes * vector
    steps = _power_of_two(-(-k // width))
    warps = max(1, lanes // 32)
    return Tile(steps, 32 * warps // lanes, width, warps)


@triton.jit
def number(low, high, ACC: tl.constexpr):
    """The number of which these are the :func:`halves`."""
    bits = (high.to(tl.int64) << 32) | (low.to(tl.int64) & 0xFFFFFFFF)
    return bits.to(tl.float64, bitcast=True).to(ACC)


def accumulator(dtype: torch.dtype) -> tl.dtype:
    """float64 for float64, float32 for all others."""
    return tl.float64 if dtype == torch.float64 else tl.float32


@triton.jit
def larger(a, b):
    """The larger, or NaN."""
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def largest(x, axis: tl.constexpr):
    """The largest entries along an axis, or NaN where there is one."""
    return tl.reduce(x, axis, larger)


@triton.jit
def _add(a, b, c, d):
    return a + c, b + d


@triton.jit
def sums(a, b, axis: tl.constexpr):
    """Two sums in one reduction."""
    return tl.reduce((a, b), axis, _add)


@triton.jit
def newton(t, support, count, excess, slope):
    """A step to where entries exceed ``t`` by 1 in all, while fewer are above: whether it was taken, and both anew."""
    shrinks = (count < support) & (count > 0)
    return shrinks, tl.where(shrinks, (excess - 1.0) / slope, t), tl.where(shrinks, count, support)


@triton.jit
def root(v, t, MOST: tl.constexpr):
    """Where the at most ``MOST`` entries of ``v`` exceed it by 1 in all, from a ``t`` below."""
    support = tl.full((), MOST + 1, v.dtype)
    shrinking = True
    while shrinking:
        above = (v > t).to(v.dtype)
        count, excess = sums(above, v * above, 0)
        shrinking, t, support = newton(t, support, count, excess, count)
    return t


@triton.jit
def of_program(n, R: tl.constexpr):
    """The ``R`` rows of this program: their places in its tile, their numbers, and which of them there are."""
    r = tl.arange(0, R)
    row = tl.program_id(0) * R + r
    return r, row, row < n


@triton.jit
def outcome(scores, target, weight, offset, row, live, top, above, ignore_index, K: tl.constexpr):
    """Weighted loss and weight of rows whose value is ``top + above``; ``offset`` is where each begins.

    A label outside 0..K-1 that is not ignored gives NaN.
    """
    ACC: tl.constexpr = top.dtype
    y = tl.load(target + row, mask=live, other=ignore_index)
    counted = live & (y != ignore_index)
    label = tl.where((y >= 0) & (y < K), y, 0).to(tl.int32)
    score = tl.load(scores + offset + label, mask=counted & (y == label), other=float("nan")).to(ACC)
    share = tl.full(row.shape, 1.0, ACC)
    if weight is not None:
        share = tl.load(weight + row, mask=live, other=0.0).to(ACC)
    loss = ((top - score) + above) * share
    return tl.where(counted, loss, 0.0), tl.where(counted, share, 0.0)


@triton.jit
def store_sums(loss, share, whole):
    """Write a program's sums of losses and weights."""
    tl.store(whole + 1 + tl.program_id(0), tl.sum(loss, 0))
    tl.store(whole + 1 + tl.num_programs(0) + tl.program_id(0), tl.sum(share, 0))


@triton.jit
def store_outcome(
    scores, target, weight, out, whole, offset, row, live, top, above, ignore_index,
    REDUCE: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Write the loss of each row into ``out``, or its program's sums of losses and weights into ``whole``."""
    loss, share = outcome(scores, target, weight, offset, row, live, top, above, ignore_index, K)
    if REDUCE:
        store_sums(loss, share, whole)
    else:
        tl.store(out + row, loss, mask=live)


@triton.jit
def store_row_outcome(
    scores, target, weight, out, whole, top, above, ignore_index, REDUCE: tl.constexpr, K: tl.constexpr
):  # fmt: skip
    """The same for a program of one row, whose scores begin there."""
    one = tl.arange(0, 1)
    row, live = tl.program_id(0) + one, one == 0
    store_outcome(scores, target, weight, out, whole, one, row, live, top, above, ignore_index, REDUCE, K)


@triton.jit
def row_scale(grad, grad_stride, whole, target, weight, row, live, ignore_index, MEAN: tl.constexpr):
    """What multiplies ``q - y`` in each row, and the row's label."""
    ACC: tl.constexpr = whole.dtype.element_ty
    y = tl.load(target + row, mask=live, other=ignore_index)
    scale = tl.load(grad + row.to(tl.int64) * grad_stride, mask=live, other=0.0).to(ACC)
    if MEAN:
        scale = scale / tl.load(whole)
    if weight is not None:
        scale = scale * tl.load(weight + row, mask=live, other=0.0).to(ACC)
    return tl.where(y == ignore_index, 0.0, scale), y.to(tl.int32)


@kernel()
def _tile_backward(
    grad, scores, target, weight, given, support, numbers, out, n, ignore_index, grad_stride, MEAN: tl.constexpr,
    STRATEGY: tl.constexpr, K: tl.constexpr, S: tl.constexpr, R: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    ACC: tl.constexpr = numbers.dtype.element_ty
    r, row, live = of_program(n, R)
    j = tl.arange(0, S)[:, None, None] * C + tl.arange(0, C)[None, None, :]
    scale, y = row_scale(grad, grad_stride, numbers + n, target, weight, row, live, ignore_index, MEAN)
    q = STRATEGY(given, support, numbers, n, r, row, live, j, K, C)
    change = (q - (j == y[None, :, None]).to(ACC)) * scale[None, :, None]
    out += tl.program_id(0).to(tl.int64) * (R * K)
    tl.store(out + r[None, :, None] * K + j, change.to(out.dtype.element_ty), mask=(j < K) & live[None, :, None])


@kernel()
def _row_backward(
    grad, scores, target, weight, given, support, numbers, out, n, ignore_index, grad_stride, MEAN: tl.constexpr,
    STRATEGY: tl.constexpr, NUMBERS: tl.constexpr, K: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    ACC: tl.constexpr = numbers.dtype.element_ty
    chunks: tl.constexpr = (K + CHUNK - 1) // CHUNK
    pid = tl.program_id(0)
    row = n - 1 - pid // chunks  # the last rows read are the ones still in cache
    one = tl.arange(0, 1)
    whole = numbers + NUMBERS * n
    scale, y = row_scale(grad, grad_stride, whole, target, weight, row + one, one == 0, ignore_index, MEAN)
    j = pid % chunks * CHUNK + tl.arange(0, CHUNK)
    begin = row.to(tl.int64) * K
    q = STRATEGY(scores + begin, given, support, numbers, n, row, j, K)
    change = (q - (j == y).to(ACC)) * scale
    tl.store(out + begin + j, change.to(out.dtype.element_ty), mask=j < K)


def tile_gradient(strategy: Any, k: int, shape: Tile) -> Launcher:
    """The backward pass of rows in tiles, whose adversary's ``q`` a function on the device reads from what was left."""
    S, R, C, num_warps = shape
    return Launcher(_tile_backward, (strategy, k, S, 2 * R, C), rows=2 * R, num_warps=num_warps)


def row_gradient(strategy: Any, k: int, numbers: int) -> Launcher:
    """The same for long rows, of each of which so many ``numbers`` were left."""
    return Launcher(_row_backward, (strategy, numbers, k, _CHUNK), parts=-(-k // _CHUNK), num_warps=4)


@kernel()
def _total(numbers, out, n, start, MEAN: tl.constexpr, BLOCK: tl.constexpr):
    numbers += start
    lane = tl.arange(0, BLOCK)
    loss = tl.zeros((BLOCK,), numbers.dtype.element_ty)
    share = tl.zeros((BLOCK,), numbers.dtype.element_ty)
    for first in range(1, n + 1, BLOCK):
        inside = first + lane <= n
        loss += tl.load(numbers + first + lane, mask=inside, other=0.0)
        share += tl.load(numbers + n + first + lane, mask=inside, other=0.0)
    result, whole = tl.sum(loss, 0), tl.sum(share, 0)
    if MEAN:
        result = result / whole
        tl.store(numbers, whole)
    tl.store(out, result.to(out.dtype.element_ty))


@cache
def _adder(block: int) -> Launcher:
    return Launcher(_total, (block,), rows=2**31, num_warps=min(32, block // 128))  # one program


def _adding(numbers: torch.Tensor, out: torch.Tensor, n: int, plan: Plan, mean: bool) -> tuple[Launcher, tuple]:
    """Who sums the programs' parts of ``n`` rows, and from what."""
    parts = -(-n // plan.forward.rows)
    adder = _adder(min(16384, max(128, _power_of_two(parts))))
    return adder, (parts, (numbers, out), (plan.numbers * n,), mean)


def total(numbers: torch.Tensor, out: torch.Tensor, n: int, plan: Plan, mean: bool) -> None:
    """Sum the programs' parts of ``n`` rows, always in the same order."""
    adder, given = _adding(numbers, out, n, plan, mean)
    adder(*given)


class Step(NamedTuple):
    """The launches of a reduced loss and its gradient, over rows like those of an earlier step."""

    forward: Launch
    total: Launch
    backward: Launch


def step(plan: Plan, tensors: tuple, ignore_index: int, mean: bool, smoothing: float) -> Step | None:
    """The step with tensors like these of a forward pass; None if one of its launches has not been before.

    What arrives in the backward pass is like ``out``.
    """
    scores, target, weight, given, out, support, numbers = tensors
    n = len(scores)
    adder, parts = _adding(numbers, out, n, plan, mean)
    back = (out, scores, target, weight, given, support, numbers, scores)  # the gradient is like scores
    forward = plan.forward.known(n, tensors, (ignore_index,), True, smoothing)
    total = adder.known(*parts)
    backward = plan.backward.known(n, back, (ignore_index, 0), mean, smoothing)
    return None if forward is None or total is None or backward is None else Step(forward, total, backward)
