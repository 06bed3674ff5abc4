"""The tempered head on CUDA: probabilities in place of scores, and products that skip blocks of zeros.

Probabilities below ``u / k``, or half of that, are taken for 0, where ``u`` is the rounding unit of the type and ``k``
the number of classes. What a row loses is then less than ``u`` of its probability, the error of one rounding: its part
of ``dh`` is off by less than ``u * share * max_j |W_j|``. In float16 what is stored loses more where classes are so
many that most probabilities lie below 6e-8, the least number of that type. A block of :data:`BLOCK` rows and as many
classes is dead if all its probabilities are 0 and no row has its label there; a product without it is the same product.
"""

from __future__ import annotations

from functools import cache

import torch
import triton
import triton.language as tl
from torch import Tensor

from nashlearn.torch.triton_entropy import row_game
from nashlearn.torch.triton_launches import Launcher
from nashlearn.torch.triton_rows import LOG2_E, kernel, number, outcome
from nashlearn.torch.triton_thresholds import LANES, packed

__all__ = ["BLOCK", "live_products", "temper"]

BLOCK = 128
_CLASSES = 2048  # whose change a program makes at a time
_LONG = 2**16  # classes
_RANGE = tl.constexpr(64.0)  # of exponents: more than lie between 1 and what is negligible
_REGISTERS = 64  # of a thread at most: more programs at once then hide the loads


@triton.jit
def _saturated(x, slope, begin):
    """``begin + slope x``, cut off at 0 and 1; 0 where it is not a number."""
    return tl.inline_asm_elementwise(
        "fma.rn.sat.f32 $0, $1, $2, $3;", "=f,f,f,f", [x, slope, begin], tl.float32, True, 1
    )


@triton.jit
def _shares(v, steep, level, least, main, FLUSH: tl.constexpr):
    """``2^min(v steep - level, 0) main``, 0 where the power is below ``2^least``.

    ``FLUSH`` has the device make both cuts while it computes: the exponent is kept within its bounds as a number
    between 0 and 1, and moved to where numbers that are too small vanish. Then nothing that is not a number arrives
    but by ``main``.
    """
    if FLUSH:
        below = _saturated(v, steep * (-1.0 / _RANGE), level * (1.0 / _RANGE))
        return tl.exp2(tl.fma(below, -_RANGE, -126.0 - least)) * tl.exp2(126.0 + least) * main
    else:
        e = tl.exp2(tl.minimum(v * steep - level, 0.0, propagate_nan=tl.PropagateNan.ALL))
        return tl.where((e < tl.exp2(least)) | (main == 0.0), 0.0, e * main)


@triton.jit
def _change(
    scores, live, seen, y, first, top, steep, level, least, main, LOOK: tl.constexpr, K: tl.constexpr,
    COLUMNS: tl.constexpr, BLOCK: tl.constexpr, C: tl.constexpr, MASKED: tl.constexpr, FLUSH: tl.constexpr,
):  # fmt: skip
    """Write ``q * share`` in the place of the scores of ``C`` classes; if ``seen``, mark the blocks that are alive."""
    j = first + tl.arange(0, C)
    if MASKED:
        x = tl.load(scores + j, mask=j < K, other=float("-inf"))
    else:
        x = tl.load(scores + j)
    change = _shares(x.to(main.dtype) - top, steep, level, least, main, FLUSH)
    if MASKED:
        tl.store(scores + j, change.to(scores.dtype.element_ty), mask=j < K)
    else:
        tl.store(scores + j, change.to(scores.dtype.element_ty))
    if LOOK:  # noqa: SIM102 - which is known when this is compiled
        if seen:
            found = ((j < K) & ((change != 0.0) | (j == y))).to(tl.int32)
            found = tl.max(tl.reshape(found, (C // BLOCK, BLOCK)), 1)
            column = first // BLOCK + tl.arange(0, C // BLOCK)
            tl.atomic_max(live + column, found, mask=(found > 0) & (column < COLUMNS), sem="relaxed")


@kernel()
def _temper(
    scores, target, share, rows, live, n, ignore_index, many, low, high, LOOK: tl.constexpr,
    K: tl.constexpr, LEAST: tl.constexpr, LANES: tl.constexpr, PACKED: tl.constexpr, COLUMNS: tl.constexpr,
    BLOCK: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    """The loss of a row and ``(q - y) * share`` in the place of its scores, which are read again from the cache."""
    ACC: tl.constexpr = rows.dtype.element_ty
    row = tl.program_id(0)
    scores += row.to(tl.int64) * K
    mu = number(low, high, ACC)
    top, t, mass = row_game(scores, None, mu, K, LANES, PACKED, ACC)
    one = tl.arange(0, 1)
    here = one == 0
    above = t + mu * tl.log(mass) + 1.0
    loss, _ = outcome(scores, target, None, one, row + one, here, top, above, ignore_index, K)
    tl.store(rows + row + one, loss, mask=here)
    if share is not None:
        FLUSH: tl.constexpr = PACKED and scores.dtype.element_ty != ACC
        y = tl.load(target + row)
        counted = y != ignore_index
        by = tl.where(counted, tl.load(share + row), 0.0)
        # A row that does not count has a change of 0, whatever its scores are.
        steep = tl.where(counted, LOG2_E / mu, 0.0)
        level = tl.where(counted, t * steep, 0.0)
        least = tl.where(counted, tl.floor(tl.log2(LEAST * mass)), 0.0)
        main = tl.where(counted, by / mass, 0.0)
        known = (y >= 0) & (y < K)
        label = tl.where(known, y, 0)
        own = tl.load(scores + label).to(ACC) - top
        seen = counted & (row // BLOCK % many == 0)
        if LOOK:
            live += row // BLOCK // many * COLUMNS
        tl.debug_barrier()  # the label's score has been read
        last: tl.constexpr = K // C * C
        if last < K:
            _change(
                scores, live, seen, y, last, top, steep, level, least, main, LOOK, K, COLUMNS, BLOCK, C, True, FLUSH
            )  # fmt: skip
        for back in range(0, last, C):  # the last scores read are the ones still in cache
            _change(
                scores, live, seen, y, last - C - back, top, steep, level, least, main,
                LOOK, K, COLUMNS, BLOCK, C, False, FLUSH,
            )  # fmt: skip
        tl.debug_barrier()  # the label's place has been written
        change = _shares(own, steep, level, least, main, FLUSH) - by
        tl.store(scores + label, change.to(scores.dtype.element_ty), mask=counted & known)


@cache
def _launcher(k: int, dtype: torch.dtype) -> Launcher:
    least = torch.finfo(dtype).eps / 2 / k
    long = k >= _LONG and dtype.itemsize == 2
    lanes = LANES if long or dtype.itemsize > 2 else LANES // 2
    constants = (k, least, lanes, packed(), triton.cdiv(k, BLOCK), BLOCK, _CLASSES)
    # Of very long rows fewer at once, which the cache then holds until they are read again.
    warps = 16 if long else min(8, 4 * dtype.itemsize)
    return Launcher(_temper, constants, tempered=True, num_warps=warps, maxnreg=_REGISTERS)


def temper(
    scores: Tensor, target: Tensor, ignore_index: int, smoothing: float, rows: Tensor, share: Tensor | None, every: int
) -> Tensor | None:
    """The tempered loss of each row; with ``share`` the scores are overwritten by ``(q - y) * share``.

    Unless ``every`` is 0 also which blocks are alive: 1 or 0 for one in so many blocks of rows, all blocks of classes.
    """
    n, k = scores.shape
    live = None
    if every and share is not None and scores.dtype != torch.float64:  # products of doubles skip nothing
        blocks = triton.cdiv(n, BLOCK * every), triton.cdiv(k, BLOCK)
        live = torch.zeros(blocks, dtype=torch.int32, device=scores.device)
    tensors = (scores, target, share, rows, live)
    _launcher(k, scores.dtype)(n, tensors, (ignore_index, max(1, every)), live is not None, smoothing)
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
