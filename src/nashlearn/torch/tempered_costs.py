"""The predictor of a tempered game of costs by tensor operations, all rows at once: Newton's method on few options.

What is minimised over the options' probabilities ``p`` is ``phi(p) = mu log sum exp((f + L' p) / mu)``, whose gradient
is ``L q``. A row works on the options that it plays and the cheapest one, ``argmin L q``. A step goes along Newton's
direction of these, as far as ``phi`` falls, but no further than where an option is no longer played; that one is then
left out. The row is done when what it pays, ``<p, L q>``, is that of the cheapest option: its gap is then 0.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["GAP", "strategies"]

GAP = 1e-6  # the largest that a row may leave, where costs are at most 1
_DONE = 1e-11  # the gap at which a row rests
_ENTRIES = 1 << 25  # of the curvatures that are at work at once
_LOOK = 4  # steps between two looks at whether any row still moves, since a look waits for the device
_TRIALS = 16  # of how far to go
_RIDGE, _FLAT = 1e-12, 1e-12  # curvature that is added, of its largest entry and at least: options may be alike


def strategies(scores: Tensor, costs: Tensor, mu: float) -> Tensor:
    """Strategies (n, m) for ``scores`` (n, k) and ``costs`` (m, k), in float64; NaN where the gap is not certified.

    Each step takes O(m^2 (k + m)) a row. Rows take a few where ``mu`` is as large as the costs, and more, up to about
    twice as many as they play options, where it is small.
    """
    L = costs - costs.amin(0)
    scale = L.amax()
    scale = scale.where(scale > 0, 1.0)
    L, f, heat = L / scale, (scores + costs.amin(0)) / scale, mu / scale
    some = max(1, _ENTRIES // (L.shape[0] * max(L.shape)))
    return torch.cat([_descended(part, L, heat) for part in f.split(some)])


def _descended(f: Tensor, L: Tensor, mu: Tensor) -> Tensor:
    m = len(L)
    p = torch.nn.functional.one_hot(((f / mu).softmax(1) @ L.T).argmin(1), m).to(f.dtype)
    for step in range(20 + 10 * m):
        reward, q, cost, gap = _played(p, f, L, mu)
        if step % _LOOK == 0 and not bool((gap > _DONE).any()):
            break
        cheapest = cost.argmin(1, keepdim=True)
        d = _direction(p, q, cost, (p > 0).scatter(1, cheapest, True), L, mu)
        # Where the cheapest option would have to leave, or rounding has spoilt the direction: from the dearest to it.
        dearest = cost.masked_fill(p == 0, -torch.inf).argmax(1, keepdim=True)
        swap = torch.zeros_like(d).scatter(1, dearest, -1.0).scatter(1, cheapest, 1.0)
        good = ((d * cost).sum(1, keepdim=True) < 0) & ((d >= 0) | (p > 0)).all(1, keepdim=True)
        d = d.where(good, swap).where((gap > _DONE)[:, None], 0.0)
        p = _moved(p, d, _length(p, d, reward, L, mu))
    # The gap is the square of what q lacks: a last full step brings that down too.
    _, q, cost, gap = _played(p, f, L, mu)
    last = _moved(p, _direction(p, q, cost, p > 0, L, mu), torch.ones_like(gap))
    better = _played(last, f, L, mu)[3]
    p, gap = last.where((better < gap)[:, None], p), torch.minimum(better, gap)
    return p.masked_fill(~(gap <= GAP)[:, None], torch.nan)


def _played(p: Tensor, f: Tensor, L: Tensor, mu: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Rewards over ``mu``, the ``q`` that they make, the cost of each option under it, and the gap."""
    reward = (f + p @ L) / mu
    q = reward.softmax(1)
    cost = q @ L.T
    return reward, q, cost, (p * cost).sum(1) - cost.amin(1)


def _direction(p: Tensor, q: Tensor, cost: Tensor, at_work: Tensor, L: Tensor, mu: Tensor) -> Tensor:
    """``d`` on the options at work, of sum 0, that minimises ``<cost, d> + <d, L C L' d> / 2 mu``, ``C`` of ``q``.

    What the heaviest option gets is minus the sum of the others, whose costs are taken less its own.
    """
    heaviest = p.argmax(1, keepdim=True)
    others = at_work.scatter(1, heaviest, False)
    apart = (L - L[heaviest]) * others[:, :, None]
    slope = (cost - cost.gather(1, heaviest)) * others
    H = ((apart * q[:, None, :]) @ apart.mT - slope[:, :, None] * slope[:, None, :]) / mu
    ridge = _RIDGE * H.diagonal(dim1=1, dim2=2).amax(1, keepdim=True) + _FLAT
    H = H + torch.diag_embed(ridge.where(others, 1.0))
    # Not by Cholesky: rounding may leave a curvature that is a hair below 0.
    d = torch.linalg.solve(H, -slope).nan_to_num(0.0, 0.0, 0.0) * others
    return d.scatter(1, heaviest, -d.sum(1, keepdim=True))


def _length(p: Tensor, d: Tensor, reward: Tensor, L: Tensor, mu: Tensor) -> Tensor:
    """How far along ``d`` the value falls inside the simplex: Newton's iteration between brackets."""
    room = (-p / d).masked_fill(d >= 0, torch.inf).amin(1)
    slope = d @ L / mu
    least, most = torch.zeros_like(room), room.where(room.isfinite(), 0.0)
    s = most.clamp_max(1.0)
    untried = torch.ones_like(room, dtype=torch.bool)  # the far end
    for _ in range(_TRIALS):
        q = (reward + s[:, None] * slope).softmax(1)
        rise = (q * slope).sum(1)
        bend = (q * (slope - rise[:, None]) ** 2).sum(1)
        falls = rise <= 0
        least, most, untried = s.where(falls, least), most.where(falls, s), untried & falls
        following = s - rise / bend
        aside = most.where(untried & (following >= most), 0.5 * (least + most))
        s = following.where((following > least) & (following < most), aside)
    return s


def _moved(p: Tensor, d: Tensor, s: Tensor) -> Tensor:
    p = (p + s[:, None] * d).clamp_min(0.0)
    p = p.masked_fill(p < 1e-15, 0.0)
    return p / p.sum(1, keepdim=True)
