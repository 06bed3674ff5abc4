"""Small sums and products of the linear heads on CUDA, one launch each: for small batches launches are what counts.

:mod:`nashlearn.torch.linear_host` says what each function returns.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from nashlearn.torch import linear_host
from nashlearn.torch.triton_launches import Launcher
from nashlearn.torch.triton_rows import kernel

__all__ = ["dot", "scale", "scales"]

_ROWS = 4096  # that the one program of a sum takes at a time
_ENTRIES = 8192  # that a program scales at a time
_PROGRAMS = 1024


@triton.jit
def _weights(target, share, i, n, ignore_index, ACC: tl.constexpr):
    """Which of rows ``i`` count, and their weights."""
    counted = (i < n) & (tl.load(target + i, mask=i < n, other=ignore_index) != ignore_index)
    weight = tl.full(i.shape, 1.0, ACC)
    if share is not None:
        weight = tl.load(share + i, mask=counted, other=0.0).to(ACC)
    return counted, weight


@kernel()
def _scales(target, share, scale, mass, n, ignore_index, MEAN: tl.constexpr, ROWS: tl.constexpr):
    ACC: tl.constexpr = scale.dtype.element_ty
    lane = tl.arange(0, ROWS)
    total = tl.full((), 1.0, ACC)
    if MEAN:
        sums = tl.zeros((ROWS,), ACC)
        for start in range(0, n, ROWS):
            counted, weight = _weights(target, share, start + lane, n, ignore_index, ACC)
            sums += tl.where(counted, weight, 0.0)
        total = tl.sum(sums, 0)
    for start in range(0, n, ROWS):
        counted, weight = _weights(target, share, start + lane, n, ignore_index, ACC)
        tl.store(scale + start + lane, tl.where(counted, weight / total, 0.0), mask=start + lane < n)
    tl.store(mass, total)


@kernel()
def _dot(rows, scale, mass, out, n, MEAN: tl.constexpr, ROWS: tl.constexpr):
    lane = tl.arange(0, ROWS)
    sums = tl.zeros((ROWS,), rows.dtype.element_ty)
    for start in range(0, n, ROWS):
        i = start + lane
        sums += tl.load(rows + i, mask=i < n, other=0.0) * tl.load(scale + i, mask=i < n, other=0.0)
    result = tl.sum(sums, 0)
    if MEAN:
        result = tl.where(tl.load(mass) == 0.0, float("nan"), result)
    tl.store(out, result.to(out.dtype.element_ty))


@cache
def _alone(function: Any) -> Launcher:
    """The launcher of a kernel of one program."""
    return Launcher(function, (_ROWS,), rows=2**31, num_warps=16)


def scales(
    target: Tensor, share: Tensor | None, ignore_index: int, mean: bool, kind: torch.dtype
) -> tuple[Tensor, Tensor]:
    """What multiplies the loss of each row, and the mass by which that is divided."""
    n = len(target)
    if n == 0:
        return linear_host.scales(target, share, ignore_index, mean, kind)
    scale, mass = target.new_empty(n, dtype=kind), target.new_empty(1, dtype=kind)
    _alone(_scales)(n, (target, share, scale, mass), (ignore_index,), mean)
    return scale, mass


def dot(rows: Tensor, scale: Tensor, mass: Tensor, mean: bool, kind: torch.dtype) -> Tensor:
    """The sum of ``rows * scale``, NaN for a mean over nothing."""
    if len(rows) == 0:
        return linear_host.dot(rows, scale, mass, mean, kind)
    out = rows.new_empty((), dtype=kind)
    _alone(_dot)(len(rows), (rows, scale, mass, out), (), mean)
    return out


@triton.jit
def _scaled(x, count, by, ENTRIES: tl.constexpr):
    WIDE: tl.constexpr = tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32
    for first in range(tl.program_id(0), (count + ENTRIES - 1) // ENTRIES, tl.num_programs(0)):
        at = tl.cast(first, tl.int64) * ENTRIES + tl.arange(0, ENTRIES)
        value = tl.load(x + at, mask=at < count).to(WIDE) * by.to(WIDE)
        tl.store(x + at, value.to(x.dtype.element_ty), mask=at < count)


@kernel()
def _scale(x, y, z, factor, n, many, room, CHOICE: tl.constexpr, ENTRIES: tl.constexpr):
    by = tl.load(factor)
    if by != 1.0:
        _scaled(x, n, by, ENTRIES)
        if y is not None:
            _scaled(y, many, by, ENTRIES)
        if z is not None:
            _scaled(z, room, by, ENTRIES)


@cache
def _scaler() -> Launcher:
    return Launcher(_scale, (_ENTRIES,), rows=2**31, parts=_PROGRAMS)


def scale(tensors: Sequence[Tensor], factor: Tensor) -> None:
    """Up to three tensors times a number on the device, in place; 1, the usual one, costs nothing."""
    some = [x for x in tensors if x.numel()]
    if some:
        counts = [x.numel() for x in some] + [0] * (3 - len(some))
        given = (*some, *([None] * (3 - len(some))), factor)
        _scaler()(counts[0], given, tuple(counts[1:]), False)
