"""The linear heads on CUDA: supports as bits, lists of entries, and sums of gathered rows.

:mod:`nashlearn.torch.linear_host` says what each function returns; here are the kernels behind the same names.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra import libdevice

from nashlearn.torch.linear_host import row_bytes, width
from nashlearn.torch.triton_launches import Launcher
from nashlearn.torch.triton_rows import kernel
from nashlearn.torch.triton_scales import dot, scale, scales
from nashlearn.torch.triton_tempered import live_products, temper
from nashlearn.torch.triton_thresholds import long_rows

__all__ = ["bags", "dot", "entries", "expand", "live_products", "scale", "scales", "support", "temper"]

_WORDS = 1024  # of 32 bits, that a program lists at a time
_PIECE = 512  # entries that one program sums, of a class that many rows play


@triton.jit
def _support(scores, numbers, bits, inverse, n, K: tl.constexpr, BYTES: tl.constexpr, W: tl.constexpr):
    row = n - 1 - tl.program_id(0)  # the last rows read are the ones still in cache
    top, t = tl.load(numbers + row), tl.load(numbers + n + row)
    step = tl.arange(0, 8)[:, None]
    lane = tl.arange(0, W)
    scores += row.to(tl.int64) * K
    bits += row.to(tl.int64) * BYTES
    size = tl.zeros((W,), tl.int32)
    for first in range(0, BYTES, W):
        j = 8 * first + step * W + lane[None, :]
        v = tl.load(scores + j, mask=j < K, other=float("-inf")).to(top.dtype) - top
        played = (v > t).to(tl.int32)
        tl.store(bits + first + lane, tl.sum(played << step, 0).to(tl.uint8))
        size += tl.sum(played, 0)
    tl.store(inverse + row, tl.where(t == t, 1.0 / tl.sum(size, 0).to(top.dtype), float("nan")))


def support(
    scores: Tensor, target: Tensor, ignore_index: int, rows: Tensor, bits: Tensor | None, inverse: Tensor
) -> None:  # fmt: skip
    """The zero-one game of each row: its loss, the adversary's support as bits, and one over its size."""
    n, k = scores.shape
    numbers = rows.new_empty(3 * n)
    long_rows(k, scores.dtype).forward(n, (scores, target, None, None, rows, None, numbers), (ignore_index,), False)
    if bits is None:
        inverse.copy_(numbers[2 * n :])
        return
    _support[(n,)](scores, numbers, bits, inverse, n, k, row_bytes(k), width(k), num_warps=4)
    _load_expand(k, scores.dtype, inverse.dtype, target.dtype, scores.device)


@kernel()
def _entries(
    bits, inverse, scale, target, pointer, label, rows, value, n, ignore_index, room, WIDE: tl.constexpr,
    K: tl.constexpr, WORDS: tl.constexpr, W: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    y = tl.load(target + row)
    if (y != ignore_index) & (tl.load(pointer + n) <= room):
        at = tl.load(pointer + row)
        share, one = tl.load(scale + row), tl.load(inverse + row)
        lane = tl.arange(0, LANES)
        bits += row.to(tl.int64) * WORDS
        for first in range(0, WORDS, LANES):
            word = tl.load(bits + first + lane, mask=first + lane < WORDS, other=0)
            ones = libdevice.popc(word)
            place = at + tl.cumsum(ones, 0) - ones
            at += tl.sum(ones, 0)
            byte = (first + lane) * 4
            while tl.max((word != 0).to(tl.int32), 0) > 0:
                there = word != 0
                bit = libdevice.ffs(word) - 1
                mine = byte + bit // 8
                j = mine // W * (8 * W) + bit % 8 * W + mine % W
                tl.store(label + place, j, mask=there)
                tl.store(rows + place, row, mask=there)
                tl.store(value + place, share * one, mask=there)
                place += there.to(tl.int32)
                word &= word - 1
        known = (y >= 0) & (y < K)
        tl.store(label + at, tl.where(known, y, 0).to(tl.int32))
        tl.store(rows + at, row)
        tl.store(value + at, tl.where(known & (one == one), -share, float("nan")))


@cache
def _lister(k: int, words: int) -> Launcher:
    lanes = min(_WORDS, triton.next_power_of_2(words))
    return Launcher(_entries, (k, words, width(k), lanes), num_warps=max(1, min(4, lanes // 128)))


def entries(
    bits: Tensor, inverse: Tensor, scale: Tensor, target: Tensor, ignore_index: int, pointer: Tensor, k: int,
    room: int,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Class, row and value of each entry of ``(q - y) * scale``, row by row as ``pointer`` says; the label comes last.

    A label that is also in the support has two entries. There is ``room`` for so many: what is left of it has
    class ``k``; if there are more, the lists hold nothing.
    """
    label = torch.full((room,), k, dtype=torch.int32, device=bits.device)
    rows = torch.empty_like(label)
    value = torch.empty(room, dtype=scale.dtype, device=bits.device)
    words = bits.view(torch.int32)
    tensors = (words, inverse, scale, target, pointer, label, rows, value)
    if len(target):
        _lister(k, words.shape[1])(len(target), tensors, (ignore_index, room), scale.dtype == torch.float64)
    return label, rows, value


@triton.jit
def _gathered(source, index, value, first, last, lane, D: tl.constexpr, BLOCK: tl.constexpr):
    """The sum of ``value[e] * source[index[e]]`` from ``first`` to ``last``, four rows in flight."""
    ACC: tl.constexpr = value.dtype.element_ty
    total = tl.zeros((BLOCK,), ACC)
    for e in range(first, last, 4):
        for i in tl.static_range(4):
            there = e + i < last
            row = tl.load(index + e + i, mask=there, other=0).to(tl.int64)
            v = tl.load(value + e + i, mask=there, other=0.0)
            x = tl.load(source + row * D + lane, mask=(lane < D) & there, other=0.0)
            total += v * x.to(ACC)
    return total


@kernel()
def _pieces(
    source, index, value, owner, partial, n, many, WIDE: tl.constexpr,
    D: tl.constexpr, BLOCK: tl.constexpr, PARTS: tl.constexpr, PIECE: tl.constexpr,
):  # fmt: skip
    piece = tl.program_id(0) // PARTS
    first = piece * PIECE
    whose = tl.load(owner + first)
    if (whose < many) & (whose == tl.load(owner + first + PIECE - 1)):
        lane = tl.program_id(0) % PARTS * BLOCK + tl.arange(0, BLOCK)
        total = _gathered(source, index, value, first, first + PIECE, lane, D, BLOCK)
        tl.store(partial + piece.to(tl.int64) * D + lane, total, mask=lane < D)


@kernel()
def _bags(
    source, index, value, pointer, partial, out, n, room, SPLIT: tl.constexpr,
    D: tl.constexpr, BLOCK: tl.constexpr, PARTS: tl.constexpr, PIECE: tl.constexpr,
):  # fmt: skip
    if tl.load(pointer + n) <= room:
        row = tl.program_id(0) // PARTS
        first, last = tl.load(pointer + row), tl.load(pointer + row + 1)
        lane = tl.program_id(0) % PARTS * BLOCK + tl.arange(0, BLOCK)
        if SPLIT:
            begin = tl.where(last - first > 2 * PIECE, (first + PIECE - 1) // PIECE * PIECE, last)
            total = _gathered(source, index, value, first, begin, lane, D, BLOCK)
            for piece in range(begin // PIECE, tl.where(begin < last, last, begin) // PIECE):
                total += tl.load(partial + tl.cast(piece, tl.int64) * D + lane, mask=lane < D, other=0.0)
            rest = tl.where(begin < last, last // PIECE * PIECE, last)
            total += _gathered(source, index, value, rest, last, lane, D, BLOCK)
        else:
            total = _gathered(source, index, value, first, last, lane, D, BLOCK)
        tl.store(out + row.to(tl.int64) * D + lane, total.to(out.dtype.element_ty), mask=lane < D)


@cache
def _summer(function: Any, d: int) -> Launcher:
    block = min(2048, triton.next_power_of_2(d))
    parts = triton.cdiv(d, block)
    return Launcher(function, (d, block, parts, _PIECE), parts=parts, num_warps=max(1, min(4, block // 256)))


def bags(source: Tensor, index: Tensor, value: Tensor, pointer: Tensor, owner: Tensor | None = None) -> Tensor:
    """Row ``r`` is the sum of ``value[e] * source[index[e]]`` over ``pointer[r] <= e < pointer[r + 1]``.

    Where ``owner[e]`` says to which ``r`` each entry belongs, long sums are taken in pieces, always the same, so that
    a class that many rows share is not the work of one program. If the lists hold fewer entries than ``pointer`` says,
    the result holds nothing.
    """
    n, d = len(pointer) - 1, source.shape[1]
    source, out = source.contiguous(), source.new_empty((n, d))
    pieces = None
    if owner is not None:
        pieces = value.new_empty((len(index) // _PIECE, d))
        if len(pieces):
            _summer(_pieces, d)(len(pieces), (source, index, value, owner, pieces), (n,), False)
    if n:
        tensors = (source, index, value, pointer, pieces, out)
        _summer(_bags, d)(n, tensors, (len(index),), owner is not None)
    return out


@triton.jit(do_not_specialize=["first", "many", "ignore_index"])
def _expand(
    bits, inverse, scale, target, out, first, many, ignore_index, EVEN: tl.constexpr, BYTES: tl.constexpr,
    W: tl.constexpr,
):  # fmt: skip
    if EVEN:  # rows of the result are aligned, and so are whole vectors of what is stored
        many = many // 16 * 16
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * W
    lane = tl.arange(0, W)[None, :]
    step = tl.arange(0, 8)[:, None]
    y = tl.load(target + row)
    share = tl.where(y == ignore_index, 0.0, tl.load(scale + row))
    one = tl.where(y == ignore_index, 0.0, tl.load(inverse + row))
    word = tl.load(bits + row * BYTES + first // 8 + at + lane).to(tl.int32)
    place = 8 * at + step * W + lane
    q = ((word >> step) & 1).to(one.dtype) * one
    change = (q - (first + place == y).to(one.dtype)) * share
    tl.store(out + row * many + place, change.to(out.dtype.element_ty), mask=place < many)


def expand(
    bits: Tensor, inverse: Tensor, scale: Tensor, target: Tensor, ignore_index: int, classes: range, k: int,
    dtype: torch.dtype,
) -> Tensor:  # fmt: skip
    """``(q - y) * scale`` of some ``classes``, which begin and end with whole tiles of bits or with the last class."""
    out = torch.empty((len(bits), len(classes)), dtype=dtype, device=bits.device)
    grid = (len(bits), triton.cdiv(len(classes), 8 * width(k)))
    where = (classes.start, len(classes), ignore_index, len(classes) % 16 == 0)
    _expand[grid](bits, inverse, scale, target, out, *where, row_bytes(k), width(k), num_warps=4)
    return out


@cache
def _load_expand(k: int, dtype: torch.dtype, wide: torch.dtype, label: torch.dtype, device: torch.device) -> None:
    """Bring the kernels of :func:`expand` onto the device.

    A CUDA graph records them even where the steps before it had nothing to expand, and while a graph is recorded
    nothing can be loaded. A ``target`` at an odd address would need others, which nobody has loaded.
    """
    bits = torch.zeros((1, row_bytes(k)), dtype=torch.uint8, device=device)
    target, one = torch.zeros(1, dtype=label, device=device), torch.ones(1, dtype=wide, device=device)
    tile = 8 * width(k)
    for classes in (range(min(k, tile)), range(k - k % tile, k)):  # whole tiles, and what is left of the last
        if classes:
            expand(bits, one, one, target, -100, classes, k, dtype)
