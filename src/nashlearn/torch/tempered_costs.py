"""The predictor of a tempered game of costs by tensor operations, all rows at once: Newton's method on few options.

What is minimised over the options' probabilities ``p`` is ``phi(p) = mu log sum exp((f + L' p) / mu)``, whose gradient
is ``L q``. A row works on the options that it plays and the cheapest one, ``argmin L q``. A step goes along Newton's
direction of these, as far as ``phi`` falls, but no further than where an option is no longer played; that one is then
left out. The row is done when what it pays, ``<p, L q>``, is that of the cheapest option: its gap is then 0. Rows that
are done are left out of the tensors, and so are options that no row can have at work.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["GAP", "strategies"]

GAP = 1e-6  # the largest that a row may leave, where costs are at most 1
_DONE = 1e-11  # the gap at which a row rests
_ENTRIES = 1 << 25  # of the strategies, and of the costs of options at work, that are at hand at once
_LOOK = 4  # steps between two looks at whether any row still moves, since a look waits for the device
_TRIALS = 16  # of how far to go
_RIDGE, _FLAT = 1e-12, 1e-12  # curvature that is added, of its largest entry and at least: options may be alike


def strategies(scores: Tensor, costs: Tensor, mu: float) -> Tensor:
    """Strategies (n, m) for ``scores`` (n, k) and ``costs`` (m, k), in float64; NaN where the gap is not certified.

    A step takes O(m k + s^2 (k + s)) a row, where ``s`` options are at work. Rows take a few steps where ``mu`` is as
    large as the costs, and more, up to about twice as many as they play options, where it is small.
    """
    L = costs - costs.amin(0)
    scale = L.amax()
    scale = scale.where(scale > 0, 1.0)
    L, f, heat = L / scale, (scores + costs.amin(0)) / scale, mu / scale
    some = max(1, _ENTRIES // sum(L.shape))
    return torch.cat([_descended(part, L, heat) for part in f.split(some)])


def _descended(f: Tensor, L: Tensor, mu: Tensor) -> Tensor:
    m = len(L)
    best = torch.nn.functional.one_hot(((f / mu).softmax(1) @ L.T).argmin(1), m).to(f.dtype)
    x, p, rows, most = f, best.clone(), torch.arange(len(f), device=f.device), 1
    for step in range(20 + 10 * m):
        reward, q, cost, gap = _played(p, x, L, mu)
        if step % _LOOK == 0:
            best[rows] = p
            left = (gap > _DONE).nonzero()[:, 0]
            if not len(left):
                break
            rows, x, p, reward, q, cost, gap = (one[left] for one in (rows, x, p, reward, q, cost, gap))
            most = _fullest(p)
        cheapest = cost.argmin(1, keepdim=True)
        # One more option may be at work after each step since the look.
        work = min(m, most + 1 + step % _LOOK)
        d = _direction(p, q, cost, (p > 0).scatter(1, cheapest, True), work, L, mu)
        # Where the cheapest option would have to leave, or rounding has spoilt the direction: from the dearest to it.
        dearest = cost.masked_fill(p == 0, -torch.inf).argmax(1, keepdim=True)
        swap = torch.zeros_like(d).scatter(1, dearest, -1.0).scatter(1, cheapest, 1.0)
        good = ((d * cost).sum(1, keepdim=True) < 0) & ((d >= 0) | (p > 0)).all(1, keepdim=True)
        d = d.where(good, swap).where((gap > _DONE)[:, None], 0.0)  # no step of those that are done is downhill
        p = _moved(p, d, _length(p, d, reward, L, mu))
    else:
        best[rows] = p
    # The gap is the square of what q lacks: a last full step brings that down too.
    _, q, cost, gap = _played(best, f, L, mu)
    last = _moved(best, _direction(best, q, cost, best > 0, _fullest(best), L, mu), torch.ones_like(gap))
    better = _played(last, f, L, mu)[3]
    best, gap = last.where((better < gap)[:, None], best), torch.minimum(better, gap)
    return best.masked_fill(~(gap <= GAP)[:, None], torch.nan)


def _fullest(p: Tensor) -> int:
    """The largest number of options that a row plays, 1 at least."""
    return max(1, int((p > 0).sum(1).amax())) if len(p) else 1


def _played(p: Tensor, f: Tensor, L: Tensor, mu: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Rewards over ``mu``, the ``q`` that they make, the cost of each option under it, and the gap."""
    reward = (f + p @ L) / mu
    q = reward.softmax(1)
    cost = q @ L.T
    return reward, q, cost, (p * cost).sum(1) - cost.amin(1)


def _direction(p: Tensor, q: Tensor, cost: Tensor, at_work: Tensor, most: int, L: Tensor, mu: Tensor) -> Tensor:
    """``d`` on the options at work, of sum 0, that minimises ``<cost, d> + <d, L C L' d> / 2 mu``, ``C`` of ``q``.

    What the heaviest option gets is minus the sum of the others, whose costs are taken less its own. At most ``most``
    options of a row are at work.
    """
    heaviest = p.argmax(1, keepdim=True)
    others, chosen = at_work.scatter(1, heaviest, False).to(p.dtype).topk(most, sorted=False)
    slope = (cost - cost.gather(1, heaviest)).gather(1, chosen) * others
    some = max(1, _ENTRIES // (most * L.shape[1]))
    parts = zip(*(x.split(some) for x in (chosen, heaviest, others, slope, q)), strict=True)
    found = torch.cat([_solved(L, mu, *part) for part in parts])
    d = torch.zeros_like(p).scatter(1, chosen, found)
    return d.scatter(1, heaviest, -found.sum(1, keepdim=True))


def _solved(
    L: Tensor, mu: Tensor, chosen: Tensor, heaviest: Tensor, others: Tensor, slope: Tensor, q: Tensor
) -> Tensor:
    """The direction on the ``chosen`` options, 0 on those that are not among the ``others``."""
    apart = (L[chosen] - L[heaviest]) * others[:, :, None]
    H = ((apart * q[:, None, :]) @ apart.mT - slope[:, :, None] * slope[:, None, :]) / mu
    ridge = _RIDGE * H.diagonal(dim1=1, dim2=2).amax(1, keepdim=True) + _FLAT
    H = H + torch.diag_embed(ridge.where(others > 0, 1.0))
    # Not by Cholesky: rounding may leave a curvature that is a hair below 0.
    return torch.linalg.solve(H, -slope).nan_to_num(0.0, 0.0, 0.0) * others


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
