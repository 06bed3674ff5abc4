"""The predictor's strategies that have closed forms, as tensor operations: for devices without the host's kernels.

The formulas are those of :mod:`nashlearn.games`: zero-one and its weights, absolute loss, abstaining at up to 1/2.
Rows without a largest finite score give NaN.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

__all__ = ["CLOSED", "absolute", "abstain", "zero_one"]


def _checked(p: Tensor, top: Tensor) -> Tensor:
    return p.masked_fill_(~top.isfinite()[:, None], torch.nan)


def zero_one(scores: Tensor, params: Tensor, price: float, above: Tensor) -> Tensor:
    """``[f + w - F]_+ / w``: weights ``w`` of the labels, and the value ``F``, ``above`` the largest score."""
    top = scores.amax(1)
    w = params.to(scores) if params.numel() else scores.new_ones(scores.shape[1])
    p = (scores - top[:, None] + (w - above[:, None])).clamp_(min=0.0).div_(w)
    return _checked(p.div_(p.sum(1, keepdim=True)), top)


def absolute(scores: Tensor, params: Tensor, price: float, above: Tensor) -> Tensor:
    """The point ``(B - A) / 2``, ``A = max f - t`` and ``B = max f + t``, between the positions ``t`` beside it."""
    k = scores.shape[1]
    top = scores.amax(1)
    if k == 1:
        return _checked(torch.ones_like(scores), top)
    t = params.to(scores) if params.numel() else torch.arange(k, device=scores.device, dtype=scores.dtype)
    t = t - t.mean()
    x = scores - top[:, None]
    c = 0.5 * ((x + t).amax(1) - (x - t).amax(1))
    low = torch.searchsorted(t[1:-1].contiguous(), c)
    share = ((c - t[low]) / (t[low + 1] - t[low])).clamp(0.0, 1.0)
    p = torch.zeros_like(scores)
    p.scatter_(1, low[:, None], 1.0 - share[:, None])
    return _checked(p.scatter_(1, low[:, None] + 1, share[:, None]), top)


def abstain(scores: Tensor, params: Tensor, price: float, above: Tensor) -> Tensor:
    """The lead of the best label over the next, up to 1, on that label, the rest on abstaining, which comes last."""
    n, k = scores.shape
    best, label = scores.topk(min(2, k), dim=1)
    lead = (best[:, 0] - best[:, -1]).clamp(max=1.0) if k > 1 else torch.ones_like(best[:, 0])
    if price == 0.0:
        lead = torch.zeros_like(lead)
    p = scores.new_zeros(n, k + 1)
    p.scatter_(1, label[:, :1], lead[:, None])
    p[:, k] = 1.0 - lead
    return _checked(p, best[:, 0].masked_fill(scores.isnan().any(1), torch.nan))


CLOSED: dict[str, Callable[[Tensor, Tensor, float, Tensor], Tensor]] = {
    "zero_one": zero_one,
    "absolute": absolute,
    "abstain": abstain,
}
