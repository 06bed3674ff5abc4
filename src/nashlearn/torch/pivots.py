"""The game of a cost matrix by tensor operations, all rows at once, on any device.

With ``A = L + f`` made positive the predictor's side is the linear programme ``max <1, u>`` over ``u >= 0`` with
``A' u <= 1``: ``p = u / <1, u>``, and the multipliers of the constraints, one for each label, are ``q`` up to scale.
The simplex method starts at ``u = 0`` and exchanges one option and one label at a time in a table of labels by options.
Right-hand sides that differ in the eleventh digit, carried beside the true ones, decide ties, so that it cannot cycle.
About as many exchanges as labels count, each O(labels options); numbers are float64 throughout.
"""

from __future__ import annotations

import torch
from torch import Tensor

from nashlearn.torch.checks import sum_type

__all__ = ["GAP", "TILT", "TINY", "solve"]

TINY = 1e-9  # what counts as 0 in a table whose entries begin between 1 and 4
TILT = 1e-11  # how far right-hand sides are moved: less than what two scores that differ do, more than rounding
GAP = 1e-6  # the largest that a row may leave, where costs are at most 1; rounding leaves 1e-13 but for near ties
_ENTRIES = 1 << 26  # of the tables that are at work at once
_LOOK = 8  # exchanges between two looks at whether any row still moves, since a look waits for the device


def _tilts(k: int) -> list[float]:
    """Right-hand sides near 1, one for each label."""
    return [1.0 + TILT * ((j + 1) * (0.5 * 5**0.5 - 0.5) % 1.0) for j in range(k)]


def solve(scores: Tensor, costs: Tensor, *, keep_p: bool = False) -> tuple[Tensor, Tensor, Tensor | None]:
    """Value (n,), q (n, k) and on request p (n, m) of ``scores`` (n, k), for ``costs`` (m, k) of options and labels.

    In float64 for float64, else float32. Rows with NaN or +inf, or with -inf throughout, give NaN; so would rows
    whose gap is not certified.
    """
    kind, L = sum_type(scores.dtype), costs.to(scores.device, torch.float64)
    floor = L.amin(0)
    scale = (L - floor).amax()
    scale = scale.where(scale > 0, 1.0)
    unit = ((L - floor) / scale).T.contiguous()
    some = max(1, _ENTRIES // L.numel())
    parts = [_solve(rows.to(torch.float64), unit, floor, scale) for rows in scores.detach().split(some)]
    value, q, p = (torch.cat(found).to(kind) for found in zip(*parts, strict=True))
    return value, q, p if keep_p else None


def _solve(scores: Tensor, unit: Tensor, floor: Tensor, scale: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    top = scores.amax(1, keepdim=True) if len(scores) else scores[:, :1]
    lost = ~top.isfinite()
    reward = (scores - top).masked_fill(lost, 0.0) + floor
    best = reward.amax(1, keepdim=True) if len(scores) else reward[:, :1]
    reward = ((reward - best) / scale).clamp_min(-2.0)  # below, no label can gain
    p, q = _exchanged(unit, reward)
    secured = (reward * q).sum(1) + (q @ unit).amin(1)
    gap = (reward + p @ unit.T).amax(1) - secured
    lost |= ~(gap <= GAP)[:, None]
    value = (top + best)[:, 0] + scale * secured
    return value.masked_fill(lost[:, 0], torch.nan), q.masked_fill(lost, torch.nan), p.masked_fill(lost, torch.nan)


def _exchanged(unit: Tensor, reward: Tensor) -> tuple[Tensor, Tensor]:
    """``p`` and ``q`` of rows of ``reward`` (n, k) in [-2, 0], for costs ``unit`` (k, m) in [0, 1]."""
    n, (k, m) = len(reward), unit.shape
    T = unit + reward[:, :, None] + 3.0
    right = reward.new_ones(n, k, 2)  # the true right-hand sides, and the tilted ones
    right[:, :, 1] = reward.new_tensor(_tilts(k))
    gain, options, labels = reward.new_ones(n, m), _numbers(0, m, reward), _numbers(m, k, reward)
    for step in range(50 * (k + m)):
        most, i = gain.max(1, keepdim=True) if n else (gain[:, :1], options[:, :1])
        moving = most > TINY
        if step % _LOOK == 0 and not bool(moving.any()):
            break
        column = T.gather(2, i[:, :, None].expand(n, k, 1))[:, :, 0]
        j = (right[:, :, 1] / column).masked_fill(column <= TINY, torch.inf).argmin(1, keepdim=True)
        pivot = column.gather(1, j)
        row = T.gather(1, j[:, :, None].expand(n, 1, m))[:, 0]
        # With these two entries one product exchanges row and column as it updates all others.
        column.scatter_(1, j, pivot - 1.0)
        row = (row.scatter(1, i, pivot + 1.0) / pivot).masked_fill(~moving, 0.0)
        T.baddbmm_(column[:, :, None], row[:, None], alpha=-1.0)
        share = right.gather(1, j[:, :, None].expand(n, 1, 2)) / pivot[:, :, None]
        right -= column[:, :, None] * share.masked_fill(~moving[:, :, None], 0.0)
        gain -= row * most
        label, option = labels.gather(1, j), options.gather(1, i)
        labels.scatter_(1, j, option.where(moving, label))
        options.scatter_(1, i, label.where(moving, option))
    room = reward.new_zeros(n, m + k)
    u = room.scatter(1, labels, right[:, :, 0].clamp_min(0.0))[:, :m]
    x = room.scatter(1, options, (-gain).clamp_min(0.0))[:, m:]
    return u / u.sum(1, keepdim=True), x / x.sum(1, keepdim=True)


def _numbers(first: int, count: int, like: Tensor) -> Tensor:
    return torch.arange(first, first + count, device=like.device).repeat(len(like), 1)
