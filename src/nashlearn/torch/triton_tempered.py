"""The tempered head on CUDA: probabilities in place of scores, and products that skip blocks of zeros.

Probabilities below ``u / k`` are taken for 0, where ``u`` is the rounding unit of the type and ``k`` the number of
classes. What a row loses is then less than ``u`` of its probability, the error of one rounding: its part of ``dh`` is
off by less than ``u * share * max_j |W_j|``. A block of :data:`BLOCK` rows and as many classes is dead if all its
probabilities are 0 and no row has its label there; a product without it is the same product.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from nashlearn.torch.triton_entropy import long_rows
from nashlearn.torch.triton_rows import LOG2_E, halves, kernel, number

__all__ = ["BLOCK", "live_products", "scale", "temper"]

BLOCK = 128
_TILE = (4, 1024)  # rows and classes whose change one program makes


@kernel()
def _change(
    scores, numbers, target, share, live, least, n, ignore_index, low, high, K: tl.constexpr, COLUMNS: tl.constexpr,
    BLOCK: tl.constexpr, R: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    """``(q - y) * share`` in the place of the scores; ``live``, where asked for, of the blocks that a tile touches."""
    tiles: tl.constexpr = (K + C - 1) // C
    row = tl.program_id(0) // tiles * R + tl.arange(0, R)
    first = tl.program_id(0) % tiles * C
    j = first + tl.arange(0, C)
    inside = row < n
    y = tl.load(target + row, mask=inside, other=ignore_index)
    counted = inside & (y != ignore_index)
    top, t = tl.load(numbers + row, mask=inside, other=0.0), tl.load(numbers + n + row, mask=inside, other=0.0)
    one = tl.load(numbers + 2 * n + row, mask=inside, other=0.0)
    by = tl.load(share + row, mask=counted, other=0.0)
    place = scores + row.to(tl.int64)[:, None] * K + j[None, :]
    there = inside[:, None] & (j < K)[None, :]
    v = tl.load(place, mask=there, other=float("-inf")).to(top.dtype) - top[:, None]
    slope = LOG2_E / number(low, high, top.dtype)
    q = tl.exp2((tl.minimum(v, t[:, None], propagate_nan=tl.PropagateNan.ALL) - t[:, None]) * slope) * one[:, None]
    q = tl.where(q < least, 0.0, q)
    own = j[None, :] == y[:, None]
    change = tl.where(counted[:, None], (q - own.to(q.dtype)) * by[:, None], 0.0)
    tl.store(place, change.to(scores.dtype.element_ty), mask=there)
    if live is not None:
        alive = (counted[:, None] & there & ((q != 0.0) | own)).to(tl.int32)
        found = tl.max(tl.reshape(tl.max(alive, 0), (C // BLOCK, BLOCK)), 1)
        column = first // BLOCK + tl.arange(0, C // BLOCK)
        block = tl.program_id(0) // tiles * R // BLOCK
        tl.atomic_max(live + block * COLUMNS + column, found, mask=(found > 0) & (column < COLUMNS))


def temper(
    scores: Tensor, target: Tensor, ignore_index: int, smoothing: float, rows: Tensor, share: Tensor | None, look: bool
) -> Tensor | None:
    """The tempered loss of each row; with ``share`` the scores are overwritten by ``(q - y) * share``.

    If ``look``, then also which blocks are alive: 1 or 0 for each block of rows and of classes.
    """
    n, k = scores.shape
    numbers = rows.new_empty(3 * n)
    integers = (ignore_index, *halves(smoothing))
    long_rows(k, scores.dtype).forward(n, (scores, target, None, None, rows, None, numbers), integers, False)
    if share is None:
        return None
    columns = triton.cdiv(k, BLOCK)
    live = None
    if look and scores.dtype != torch.float64:  # products of doubles skip nothing
        live = torch.zeros((triton.cdiv(n, BLOCK), columns), dtype=torch.int32, device=scores.device)
    least = torch.finfo(scores.dtype).eps / 2 / k
    tile = _TILE if scores.element_size() < 8 else (1, BLOCK)
    grid = (triton.cdiv(n, tile[0]) * triton.cdiv(k, tile[1]),)
    _change[grid](scores, numbers, target, share, live, least, n, *integers, k, columns, BLOCK, *tile, num_warps=4)
    return live


@triton.jit
def _live_product(
    a, b, out, order, many, rows, inner, across, a_row, a_inner, ADD: tl.constexpr, IEEE: tl.constexpr,
    COLUMNS: tl.constexpr, BLOCK: tl.constexpr, N: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """``out (+)= a b``, where of block ``i`` of rows of ``a`` only the ``many[i]`` first columns in ``order`` count."""
    block = tl.program_id(1)
    row = block * BLOCK + tl.arange(0, BLOCK)
    column = tl.program_id(0) * N + tl.arange(0, N)
    deep = tl.arange(0, STEP)
    steps: tl.constexpr = BLOCK // STEP
    count = tl.load(many + block)
    PRECISION: tl.constexpr = "ieee" if IEEE else "tf32"
    total = tl.zeros((BLOCK, N), tl.float32)
    for i in range(count * steps):
        at = tl.load(order + block * COLUMNS + i // steps) * BLOCK + i % steps * STEP + deep
        x = tl.load(
            a + row.to(tl.int64)[:, None] * a_row + at.to(tl.int64)[None, :] * a_inner,
            mask=(row < rows)[:, None] & (at < inner)[None, :], other=0.0,
        )  # fmt: skip
        w = tl.load(
            b + at.to(tl.int64)[:, None] * across + column[None, :],
            mask=(at < inner)[:, None] & (column < across)[None, :], other=0.0,
        )  # fmt: skip
        total = tl.dot(x, w, total, input_precision=PRECISION)
    place = out + row.to(tl.int64)[:, None] * across + column[None, :]
    there = (row < rows)[:, None] & (column < across)[None, :]
    if ADD:
        if count > 0:
            total += tl.load(place, mask=there, other=0.0).to(tl.float32)
            tl.store(place, total.to(out.dtype.element_ty), mask=there)
    else:
        tl.store(place, total.to(out.dtype.element_ty), mask=there)


def _live_multiply(a: Tensor, b: Tensor, out: Tensor, live: Tensor, add: bool) -> None:
    """``out = a b``, or ``out += a b``, by the live blocks of ``a``."""
    order = live.sort(dim=1, descending=True, stable=True).indices.to(torch.int32)
    many = live.sum(1, dtype=torch.int32)
    (rows, inner), across = a.shape, b.shape[1]
    n = min(256 if a.element_size() == 2 else 64, max(16, triton.next_power_of_2(across)))
    _live_product[(triton.cdiv(across, n), len(live))](
        a, b, out, order, many, rows, inner, across, *a.stride(), add, a.dtype == torch.float32,
        live.shape[1], BLOCK, n, 64 if a.element_size() == 2 else 32, num_warps=8, num_stages=3,
    )  # fmt: skip


def live_products(
    change: Tensor, live: Tensor, h: Tensor, weight: Tensor, dh: Tensor | None, dw: Tensor | None
) -> None:
    """``dh = change W`` and ``dw += changeᵀ h``, without the blocks of ``change`` that are dead."""
    if dh is not None:
        _live_multiply(change, weight.contiguous(), dh, live, add=False)
    if dw is not None:
        _live_multiply(change.t(), h.contiguous(), dw, live.t().contiguous(), add=True)


@triton.jit
def _scale(x, factor, n, SIZE: tl.constexpr):
    WIDE: tl.constexpr = tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32
    by = tl.load(factor)
    if by != 1.0:
        at = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
        value = tl.load(x + at, mask=at < n).to(WIDE) * by.to(WIDE)
        tl.store(x + at, value.to(x.dtype.element_ty), mask=at < n)


def scale(x: Tensor, factor: Tensor) -> Tensor:
    """``x`` times a number on the device, in place; 1, the usual one, costs nothing."""
    if x.numel():
        _scale[(triton.cdiv(x.numel(), 8192),)](x, factor, x.numel(), 8192)
    return x
