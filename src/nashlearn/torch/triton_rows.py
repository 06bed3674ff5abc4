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

__all__ = [
    "WIDEST",
    "Launcher",
    "Tile",
    "accumulator",
    "kernel",
    "larger",
    "largest",
    "outcome",
    "row_scale",
    "store_outcome",
    "sums",
    "tile",
    "total",
]

WIDEST = 8192
_PER_LANE = 32


class Tile(NamedTuple):
    """Shape of a tile and the warps that hold it: ``S * C`` classes, padded, of ``R`` rows."""

    S: int
    R: int
    C: int
    num_warps: int


# Integers that kernels take are not worth machine code of their own for each value.
kernel = partial(triton.jit, do_not_specialize=["n", "ignore_index", "grad_stride"])


class Launcher:
    """A kernel, found again by what its machine code depends on: a third of the time that Triton's own look-up takes.

    That is the types of tensors, all aligned to 16 bytes as PyTorch allocates them, the width of integers, and
    constants. ``options`` must follow from those.
    """

    def __init__(self, kernel: Any):
        self.kernel = kernel
        self._compiled: dict[Any, Any] = {}

    def __call__(self, programs: int, tensors: tuple, integers: tuple, constants: tuple, **options: Any) -> None:
        """Launch ``kernel(*tensors, *integers, *constants)`` on the current stream."""
        places, key = 0, [tensors[0].get_device(), constants]
        for tensor in tensors:
            if tensor is not None:
                places |= tensor.data_ptr()
                key.append(tensor.dtype)
            else:
                key.append(None)
        for integer in integers:
            places |= abs(integer) >> 31 != 0
        if places & 15 or torch.version.hip:  # there sizes of tensors count too
            self.kernel[(programs,)](*tensors, *integers, *constants, **options)
            return
        found = self._compiled.get(tuple(key))
        if found is None:
            self._compiled[tuple(key)] = self.kernel[(programs,)](*tensors, *integers, *constants, **options)
        else:
            found[(programs, 1, 1)](*tensors, *integers, *constants)


def _power_of_two(n: int) -> int:
    """The smallest that is at least ``n``."""
    return 1 << (n - 1).bit_length()


@cache
def tile(k: int, itemsize: int, rows: int = 1) -> Tile:
    """The tile for rows of ``k`` scores: 16-byte loads where the rows' alignment allows.

    One warp, which spares the barriers of reductions, unless a row needs more; ``rows`` multiplies those that it takes.
    """
    vector = min(k & -k, 16 // itemsize)
    lanes = min(_power_of_two(-(-k // _PER_LANE)), _power_of_two(-(-k // vector)))
    width = lanes * vector
    steps = _power_of_two(-(-k // width))
    warps = max(1, lanes // 32)
    return Tile(steps, rows * (32 * warps // lanes), width, warps)


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
def outcome(scores, target, weight, offset, row, live, top, above, ignore_index, K: tl.constexpr, ACC: tl.constexpr):
    """Weighted loss and weight of rows whose value is ``top + above``; ``offset`` is where each begins.

    A label outside 0..K-1 that is not ignored gives NaN.
    """
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
def store_outcome(loss, share, out, row, live, REDUCE: tl.constexpr):
    """Write the loss of each row, or its program's sums of losses and weights, as two rows of ``out``."""
    if REDUCE:
        tl.store(out + tl.program_id(0), tl.sum(loss, 0))
        tl.store(out + tl.num_programs(0) + tl.program_id(0), tl.sum(share, 0))
    else:
        tl.store(out + row, loss, mask=live)


@triton.jit
def row_scale(grad, grad_stride, denominator, target, weight, row, live, ignore_index, ACC: tl.constexpr):
    """What multiplies ``q - y`` in each row, and the row's label."""
    y = tl.load(target + row, mask=live, other=ignore_index)
    scale = tl.load(grad + row.to(tl.int64) * grad_stride, mask=live, other=0.0).to(ACC)
    if denominator is not None:
        scale = scale / tl.load(denominator).to(ACC)
    if weight is not None:
        scale = scale * tl.load(weight + row, mask=live, other=0.0).to(ACC)
    return tl.where(y == ignore_index, 0.0, scale), y.to(tl.int32)


@Launcher
@kernel()
def _total(parts, out, denominator, n, MEAN: tl.constexpr, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    loss = tl.zeros((BLOCK,), parts.dtype.element_ty)
    share = tl.zeros((BLOCK,), parts.dtype.element_ty)
    for start in range(0, n, BLOCK):
        loss += tl.load(parts + start + lane, mask=start + lane < n, other=0.0)
        share += tl.load(parts + n + start + lane, mask=start + lane < n, other=0.0)
    result, whole = tl.sum(loss, 0), tl.sum(share, 0)
    if MEAN:
        result = result / whole
        tl.store(denominator, whole)
    tl.store(out, result.to(out.dtype.element_ty))


def total(parts: torch.Tensor, out: torch.Tensor, denominator: torch.Tensor | None) -> None:
    """Sum the programs' ``parts`` (2, programs), always in the same order; a denominator asks for the mean."""
    n = parts.shape[1]
    block = min(16384, max(128, _power_of_two(n)))
    constants = (denominator is not None, block)
    _total(1, (parts, out, denominator), (n,), constants, num_warps=min(32, block // 128))
