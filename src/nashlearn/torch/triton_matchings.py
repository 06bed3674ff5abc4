"""The game between complete matchings on CUDA: an interior point method, one program for each game.

Both players choose an n x n matrix ``x >= 0`` whose rows and columns sum to 1. The game and the method are those of
:mod:`nashlearn.kernels.interior`, with Mehrotra's predictor and corrector [mehrotra1992]_, in float64: entries are
eliminated by 2 x 2 blocks, then rows, then columns (:mod:`nashlearn.torch.triton_pivots`). It starts in the middle and
takes ten to twenty iterations of O(n³).

The certificate is computed from the strategies that are returned. Any potentials ``v`` of the columns bound the best
matching for rewards ``c``,

    max_y <c, y> <= sum_i max_j (c_ij + v_j) - sum_j v_j,

so that those of the method bound both players' best replies, and with them the gap, from above.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl

from nashlearn.torch.triton_pivots import eliminate, substitute
from nashlearn.torch.triton_rows import halves, number

__all__ = ["LARGEST", "Room", "solve"]

LARGEST = 32
_ITERATIONS = 60
_STALLS = tl.constexpr(6)  # iterations without progress after which rounding is taken to have won
_LEAST = tl.constexpr(0.3)  # multipliers at the start
_WARPS = {16: 1, 32: 4}


class Room(NamedTuple):
    """What a call writes: loss and gap (b,), ``q - y`` and ``p`` (b, n, n), and whether a game is solved (b,)."""

    loss: torch.Tensor
    gap: torch.Tensor
    change: torch.Tensor
    p: torch.Tensor
    solved: torch.Tensor


@triton.jit
def _direction(
    ip, iq, lack_p, lack_q, far_p, far_q, miss_p, miss_q, over_p, over_q, U, W, V, ra, rb, rc,
    factor, live, used, N: tl.constexpr,
):  # fmt: skip
    """Newton's step: both matrices, and the potentials of rows and columns."""
    g, h = lack_p * ip - far_p, lack_q * iq - far_q
    dp, dq = U * g + W * h, V * h - W * g
    row_p, row_q = -miss_p - tl.sum(dp, 1), -miss_q - tl.sum(dq, 1)
    yp, yq = ra * row_p + rb * row_q, rc * row_q - rb * row_p
    right_p = -over_p - tl.sum(dp + U * yp[:, None] + W * yq[:, None], 0)
    right_q = -over_q - tl.sum(dq + V * yq[:, None] - W * yp[:, None], 0)
    lp, lq = substitute(tl.where(used, right_p, 0.0), tl.where(used, right_q, 0.0), factor, live, N)
    paid_p = tl.sum(U * lp[None, :] + W * lq[None, :], 1)
    paid_q = tl.sum(V * lq[None, :] - W * lp[None, :], 1)
    yp -= ra * paid_p + rb * paid_q
    yq -= rc * paid_q - rb * paid_p
    g, h = yp[:, None] + lp[None, :], yq[:, None] + lq[None, :]
    return dp + U * g + W * h, dq + V * h - W * g, yp, yq, lp, lq


@triton.jit
def _factor(U, W, V, ra, rb, rc, factor, n, live, N: tl.constexpr):
    """Eliminate rows, whose inverse blocks are ``[[ra, rb], [-rb, rc]]``, one by one, then columns.

    Rows are read back from main memory, as the elimination of columns does, behind whose planes they are kept.
    """
    k = tl.arange(0, N)
    down, across = k[:, None], k[None, :]
    rows, blocks, plane = factor + 5 * N * N, factor + 8 * N * N, N * N
    tl.store(rows + down * N + across, U)
    tl.store(rows + plane + down * N + across, W)
    tl.store(rows + 2 * plane + down * N + across, V)
    tl.store(blocks + k, ra)
    tl.store(blocks + N + k, rb)
    tl.store(blocks + 2 * N + k, rc)
    # Near a vertex the difference below is all rounding: as much again keeps the system regular and its step small.
    A = tl.where(down == across, tl.sum(U, 0)[None, :] * (1.0 + 1e-15), 0.0)
    B = tl.where(down == across, tl.sum(W, 0)[None, :], 0.0)
    C = tl.where(down == across, tl.sum(V, 0)[None, :] * (1.0 + 1e-15), 0.0)
    D = -B
    tl.debug_barrier()
    i = 0
    while i < n:
        at = rows + i * N
        a, b, c = tl.load(blocks + i), tl.load(blocks + N + i), tl.load(blocks + 2 * N + i)
        column_u, row_u = tl.load(at + down), tl.load(at + across)
        column_w, row_w = tl.load(at + plane + down), tl.load(at + plane + across)
        column_v, row_v = tl.load(at + 2 * plane + down), tl.load(at + 2 * plane + across)
        upper, lower = a * row_u - b * row_w, -b * row_u - c * row_w
        A -= column_u * upper + column_w * lower
        D -= column_v * lower - column_w * upper
        upper, lower = a * row_w + b * row_v, c * row_v - b * row_w
        B -= column_u * upper + column_w * lower
        C -= column_v * lower - column_w * upper
        i += 1
    eliminate(A, B, D, C, factor, live, N)


@triton.jit
def _longest(ip, iq, zp, zq, dp, dq, dzp, dzq, inside):
    """The longest step, up to 2, that keeps entries positive; of the strategies it is given the reciprocals."""
    back = tl.maximum(tl.maximum(-dp * ip, -dq * iq), tl.maximum(-dzp / zp, -dzq / zq))
    return 1.0 / tl.maximum(tl.max(tl.where(inside, back, 0.0)), 0.5)


@triton.jit
def _step(
    p, q, zp, zq, far_p, far_q, miss_p, miss_q, over_p, over_q, total, worst, last, n, mu,
    inside, real, used, factor, live, N: tl.constexpr,
):  # fmt: skip
    """Predict and correct; the step, and how much of it to go."""
    ip, iq = 1.0 / p, 1.0 / q
    a, b = zp * ip, mu + zq * iq
    W = tl.where(inside, 1.0 / (a * b + 1.0), 0.0)
    U, V = b * W, a * W
    ra, rb, rc = tl.sum(U, 1), tl.sum(W, 1), tl.sum(V, 1)
    scale = tl.where(real, 1.0 / tl.where(real, ra * rc + rb * rb, 1.0), 0.0)
    ra, rb, rc = rc * scale, -rb * scale, ra * scale
    _factor(U, W, V, ra, rb, rc, factor, n, live, N)
    lack_p, lack_q = -p * zp, -q * zq
    dp, dq, dyp, dyq, dlp, dlq = _direction(
        ip, iq, lack_p, lack_q, far_p, far_q, miss_p, miss_q, over_p, over_q, U, W, V, ra, rb, rc,
        factor, live, used, N,
    )  # fmt: skip
    dzp, dzq = (lack_p - zp * dp) * ip, (lack_q - zq * dq) * iq
    length = tl.minimum(_longest(ip, iq, zp, zq, dp, dq, dzp, dzq, inside), 1.0)
    after = (p + length * dp) * (zp + length * dzp) + (q + length * dq) * (zq + length * dzq)
    share = tl.sum(tl.where(inside, after, 0.0)) / total
    share = share * share * share
    centre = tl.where(worst > last, tl.maximum(share, 0.1), share) * total / (2.0 * n * n)
    lack_p, lack_q = centre - p * zp - dp * dzp, centre - q * zq - dq * dzq
    dp, dq, dyp, dyq, dlp, dlq = _direction(
        ip, iq, lack_p, lack_q, far_p, far_q, miss_p, miss_q, over_p, over_q, U, W, V, ra, rb, rc,
        factor, live, used, N,
    )  # fmt: skip
    dzp, dzq = (lack_p - zp * dp) * ip, (lack_q - zq * dq) * iq
    # Almost to the boundary, the closer the nearer the end: 0.99 throughout would make convergence linear.
    length = tl.maximum(0.99, 1.0 - worst) * _longest(ip, iq, zp, zq, dp, dq, dzp, dzq, inside)
    return dp, dq, dzp, dzq, dyp, dyq, dlp, dlq, tl.minimum(length, 1.0)


@triton.jit
def _follow(r, n, mu, aim, most, keep, factor, tile, inside, real, N: tl.constexpr):
    """Follow the central path for rewards ``r``; store the best iterate in ``keep``, and return its residual."""
    column = tl.arange(0, N)
    live = n - 1  # that the last column sums to 1 follows from the others
    used = column < live
    p = tl.where(inside, 1.0 / tl.maximum(n, 1), 1.0).to(tl.float64)
    q = p
    lp = tl.where(used, 0.0, 0.0).to(tl.float64)
    lq = lp
    zp, zq = -q, mu * q + p - r
    yp = tl.min(tl.where(inside, zp, 1e300), 1) - _LEAST
    yq = tl.min(tl.where(inside, zq, 1e300), 1) - _LEAST
    zp = tl.where(inside, zp - yp[:, None], 1.0)
    zq = tl.where(inside, zq - yq[:, None], 1.0)
    best = tl.full((), float("inf"), tl.float64)
    last = best
    stalls = 0
    turn = 0
    running = most > 0
    while running:
        far_p = tl.where(inside, -q - yp[:, None] - lp[None, :] - zp, 0.0)
        far_q = tl.where(inside, mu * q + p - r - yq[:, None] - lq[None, :] - zq, 0.0)
        here_p, here_q = tl.where(inside, p, 0.0), tl.where(inside, q, 0.0)
        miss_p, miss_q = tl.where(real, tl.sum(here_p, 1) - 1.0, 0.0), tl.where(real, tl.sum(here_q, 1) - 1.0, 0.0)
        over_p, over_q = tl.where(used, tl.sum(here_p, 0) - 1.0, 0.0), tl.where(used, tl.sum(here_q, 0) - 1.0, 0.0)
        total = tl.sum(tl.where(inside, p * zp + q * zq, 0.0))
        rows = tl.max(tl.maximum(tl.abs(miss_p), tl.abs(miss_q)), 0)
        columns = tl.max(tl.maximum(tl.abs(over_p), tl.abs(over_q)), 0)
        worst = tl.maximum(tl.max(tl.maximum(tl.abs(far_p), tl.abs(far_q))), total / n)
        worst = tl.maximum(worst, tl.maximum(rows, columns))
        sound = (total >= 0.0) & (worst < 1e300)  # NaN is neither
        better = sound & (worst < best)
        stalls = tl.where(better, 0, stalls + 1)
        if better:
            best = worst
            tl.store(keep + tile, p)
            tl.store(keep + N * N + tile, q)
            tl.store(keep + 2 * N * N + column, lp)
            tl.store(keep + 2 * N * N + N + column, lq)
        running = sound & (best > aim) & (stalls < _STALLS) & (turn < most)
        turn += 1
        if running:
            dp, dq, dzp, dzq, dyp, dyq, dlp, dlq, length = _step(
                p, q, zp, zq, far_p, far_q, miss_p, miss_q, over_p, over_q, total, worst, last, n, mu,
                inside, real, used, factor, live, N,
            )  # fmt: skip
            p, q = tl.where(inside, p + length * dp, 1.0), tl.where(inside, q + length * dq, 1.0)
            zp, zq = tl.where(inside, zp + length * dzp, 1.0), tl.where(inside, zq + length * dzq, 1.0)
            yp, yq = yp + length * dyp, yq + length * dyq
            lp, lq = tl.where(used, lp + length * dlp, 0.0), tl.where(used, lq + length * dlq, 0.0)
            last = worst
            tl.debug_barrier()  # before the factor is written anew
    return best


@triton.jit
def _bound(c, v, inside, real):
    """A bound of the best matching's reward from potentials of the columns."""
    paid = tl.where(inside, c + v[None, :], float("-inf"))
    return tl.sum(tl.where(real, tl.max(paid, 1), 0.0), 0) - tl.sum(v, 0)


@triton.jit
def _play(
    scores, target, lengths, loss, gaps, change, reply, solved, keep, factor, size, low, high, tol, most,
    N: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0).to(tl.int64)
    mu = number(low, high, tl.float64)
    given = tl.load(lengths + pid).to(tl.int32)
    n = tl.maximum(given, 0)
    row = tl.arange(0, N)
    column = tl.arange(0, N)
    real = row < n
    inside = real[:, None] & (column < n)[None, :]
    place = pid * size * size + row[:, None] * size + column[None, :]
    tile = row[:, None] * N + column[None, :]
    keep += pid * (2 * N * N + 2 * N)
    factor += pid * (8 * N * N + 3 * N)
    theta = tl.load(scores + place, mask=inside, other=0.0).to(tl.float64)
    fit = (given >= 0) & (tl.sum((tl.abs(theta) < 1e300).to(tl.int32)) == N * N)
    # Rows and columns may be shifted: both strategies and the truth lose as much.
    theta = tl.where(inside & fit, theta, 0.0)
    theta = tl.where(inside, theta - tl.max(tl.where(inside, theta, -1e300), 1)[:, None], 0.0)
    theta = tl.where(inside, theta - tl.max(tl.where(inside, theta, -1e300), 0)[None, :], 0.0)
    r = tl.where(inside, theta + (1.0 + 0.5 * mu), 0.0)
    residual = _follow(r, n, mu, 0.1 * tol, tl.where(fit & (n > 0), most, 0), keep, factor, tile, inside, real, N)
    tl.debug_barrier()
    p = tl.where(inside, tl.load(keep + tile), 0.0)
    q = tl.where(inside, tl.load(keep + N * N + tile), 0.0)
    lp = tl.where(column < n, tl.load(keep + 2 * N * N + column), 0.0)
    lq = tl.where(column < n, tl.load(keep + 2 * N * N + N + column), 0.0)
    square = 0.5 * mu * tl.sum(q * q)
    upper = _bound(r - p - mu * q, lq, inside, real) + square
    lower = tl.sum(r * q) - _bound(q, lp, inside, real) - square
    gap = tl.where(n > 0, upper - lower, 0.0)
    y = tl.load(target + pid * size + row, mask=real, other=-1).to(tl.int32)
    chosen = inside & (column[None, :] == y[:, None])
    each = tl.sum(chosen.to(tl.int32), 0)
    fit = fit & (tl.sum((each == 1).to(tl.int32), 0) == n)
    found = fit & (gap <= tol * (1.0 + n)) & ((residual <= tol) | (n == 0))
    # What the scores of the truth are, shifted alike, without the 1 of each row and the smoothing's share.
    tl.store(loss + pid, lower - tl.sum(tl.where(chosen, theta, 0.0)))
    tl.store(gaps + pid, tl.maximum(gap, 0.0))
    tl.store(change + place, q - chosen.to(tl.float64), mask=inside)
    tl.store(reply + place, p, mask=inside)
    tl.store(solved + pid, found)


def solve(
    scores: torch.Tensor, target: torch.Tensor, lengths: torch.Tensor, smoothing: float, tol: float, room: Room
) -> None:
    """Play the games of ``scores`` (b, n, n), of which instances have ``lengths`` (b,), against ``target`` (b, n).

    A game is not solved, and what is written for it void, where its gap stays above ``tol (1 + n)``, where a score is
    not finite, where the target is no matching, or where the length is negative. Padding is not written.
    """
    b, size = scores.shape[:2]
    N = max(16, 1 << (size - 1).bit_length())
    keep = scores.new_empty((b, 2 * N * N + 2 * N), dtype=torch.float64)
    factor = scores.new_empty((b, 8 * N * N + 3 * N), dtype=torch.float64)
    _play[(b,)](
        scores, target, lengths, *room, keep, factor, size, *halves(smoothing), tol, _ITERATIONS, N,
        num_warps=_WARPS[N],
    )  # fmt: skip
