"""Tempered games by tensor operations, all rows at once, on any device.

    F(f) = max_q <f, q> + min_p <p, L q> + mu H(q) = min_p mu log sum exp((f + L' p) / mu)

Each loss has its own ``p``; then ``q = softmax((f + L' p) / mu)``. Numbers are float64 throughout. Rows without a
largest finite score give NaN, and so do rows of a cost matrix whose gap ``<p, L q> - min(L q)`` is not certified.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from nashlearn.torch import tempered_costs
from nashlearn.torch.checks import sum_type

__all__ = ["gains", "reply", "solve"]

_HALVINGS = 60  # of the interval in which the mean of a squared game's predictor lies


def solve(
    scores: Tensor, params: Tensor, loss: str, price: float, smoothing: float, *, keep_p: bool = False
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Value (n,), q (n, k) and on request p (n, options) of ``scores`` (n, k), in float64 for float64, else float32."""
    kind = sum_type(scores.dtype)
    if not len(scores):
        options = {"abstain": scores.shape[1] + 1, "cost": params.numel() // scores.shape[1]}
        p = scores.new_empty(0, options.get(loss, scores.shape[1]), dtype=kind)
        return scores.new_empty(0, dtype=kind), scores.to(kind), p if keep_p else None
    x, numbers = scores.detach().to(torch.float64), params.to(scores.device, torch.float64)
    top = x.amax(1, keepdim=True)
    x = (x - top).masked_fill(~top.isfinite(), 0.0)
    p = _PREDICTORS[loss](x, numbers, price, smoothing)
    reward = (x + gains(p, numbers, loss, price)) / smoothing
    above, q = smoothing * reward.logsumexp(1), reward.softmax(1)
    lost = ~top.isfinite() | p.isnan().any(1, keepdim=True)
    value, q = (top[:, 0] + above).masked_fill(lost[:, 0], torch.nan), q.masked_fill(lost, torch.nan)
    return value.to(kind), q.to(kind), p.masked_fill(lost, torch.nan).to(kind) if keep_p else None


def reply(scores: Tensor, p: Tensor, params: Tensor, loss: str, price: float, smoothing: float) -> Tensor:
    """The adversary's best reply ``softmax((f + L' p) / smoothing)`` to ``p``."""
    gain = gains(p, params.to(p), loss, price)
    return ((scores.to(p.dtype) + gain) / smoothing).softmax(1)


def gains(p: Tensor, params: Tensor, loss: str, price: float) -> Tensor:
    """``L' p`` (n, k), what ``p`` (n, options) loses to each label."""
    if loss == "zero_one":
        return (1.0 - p) * (params if params.numel() else 1.0)
    if loss == "abstain":
        return p[:, :-1].sum(1, keepdim=True) - p[:, :-1] + price * p[:, -1:]
    if loss == "cost":
        return p @ params.reshape(p.shape[1], -1)
    far = (_positions(p, params)[:, None] - _positions(p, params)).abs()
    return p @ (far if loss == "absolute" else far * far)


def _positions(x: Tensor, params: Tensor) -> Tensor:
    """Those of ordered labels: as given, or 0..k-1; moved to have mean 0."""
    t = params if params.numel() else torch.arange(x.shape[1], device=x.device, dtype=x.dtype)
    return t - t.mean()


def _zero_one(x: Tensor, weights: Tensor, price: float, mu: float) -> Tensor:
    """``[b - tau]_+ / w`` with ``b = f + w + mu log w`` and the ``tau`` at which that sums to 1."""
    w = weights if weights.numel() else x.new_ones(x.shape[1])
    b, order = (x + (w + mu * w.log())).sort(1, descending=True)
    inverse = (1.0 / w)[order]
    # Where -inf has been added up, no threshold is: those labels never play.
    tau = ((b.masked_fill(b.isneginf(), 0.0) * inverse).cumsum(1) - 1.0) / inverse.cumsum(1)
    size = ((b > tau) & b.isfinite()).sum(1, keepdim=True)
    p = (b - tau.gather(1, size - 1)).clamp_min(0.0) * inverse
    p = torch.zeros_like(p).scatter(1, order, p)
    return p / p.sum(1, keepdim=True)


def _abstain(x: Tensor, params: Tensor, price: float, mu: float) -> Tensor:
    """``[f - tau]_+`` and the rest on abstaining, if that is not less than nothing; else as if nobody could abstain.

    The ``j`` labels that ``p`` takes have probability ``1 - c`` each, beside the others' ``exp(f / mu)``:
    ``exp(tau / mu) (1 - j (1 - c)) = (1 - c) sum_rest exp(f / mu)``.
    """
    n, k = x.shape
    alone = torch.cat([_zero_one(x, params, price, mu), x.new_zeros(n, 1)], 1)
    if price >= 1.0:
        return alone
    f = x.sort(1, descending=True).values / mu
    rest = torch.cat([f.flip(1).logcumsumexp(1).flip(1), f.new_full((n, 1), -torch.inf)], 1)
    most = min(k, math.ceil(1.0 / (1.0 - price)) - 1)  # labels of probability 1 - c that leave some for the others
    left = 1.0 - (1.0 - price) * torch.arange(most + 1, device=x.device, dtype=x.dtype)
    tau = math.log1p(-price) + rest[:, : most + 1] - left.log()
    following = torch.cat([f, f.new_full((n, 1), -torch.inf)], 1)[:, : most + 1]
    last = following.new_zeros(n, most + 1, dtype=torch.bool)
    last[:, -1] = True
    j = ((following <= tau) | last).to(torch.int8).argmax(1, keepdim=True)
    p = (x - mu * tau.gather(1, j)).clamp_min(0.0)
    idle = 1.0 - p.sum(1, keepdim=True)
    return torch.cat([p, idle], 1).where(idle >= 0.0, alone)


def _absolute(x: Tensor, params: Tensor, price: float, mu: float) -> Tensor:
    """The two positions beside ``c = (V_j - U_j) / 2``: ``U_j = mu log sum_{i <= j} exp((f_i - t_i) / mu)``,

    ``V_j = mu log sum_{i > j} exp((f_i + t_i) / mu)``, ``j`` the first for which ``c`` is not beyond the next label.
    """
    t = _positions(x, params)
    if len(t) == 1:
        return torch.ones_like(x)
    U = mu * ((x - t) / mu).logcumsumexp(1)[:, :-1]
    V = mu * ((x + t) / mu).flip(1).logcumsumexp(1).flip(1)[:, 1:]
    c = 0.5 * (V - U)
    reached = c <= t[1:]
    reached[:, -1] = True
    low = reached.to(torch.int8).argmax(1, keepdim=True)
    return _between(c.gather(1, low)[:, 0], low[:, 0], t, x)


def _squared(x: Tensor, params: Tensor, price: float, mu: float) -> Tensor:
    """The two positions beside the ``c`` at which ``q`` has its mean halfway between them, by halving.

    To a predictor of mean ``c`` the adversary replies by ``q`` of ``f + t^2 - 2 c t``, whose mean falls as ``c`` rises.
    """
    t = _positions(x, params)
    if len(t) == 1:
        return torch.ones_like(x)
    least, most = t[:1].expand(len(x)), t[-1:].expand(len(x))
    for _ in range(_HALVINGS):
        c = 0.5 * (least + most)
        mean = ((x + t * (t - 2.0 * c[:, None])) / mu).softmax(1) @ t
        low = torch.searchsorted(t[1:-1].contiguous(), c)
        higher = mean > 0.5 * (t[low] + t[low + 1])
        least, most = c.where(higher, least), most.where(higher, c)
    c = 0.5 * (least + most)
    return _between(c, torch.searchsorted(t[1:-1].contiguous(), c), t, x)


def _between(c: Tensor, low: Tensor, t: Tensor, like: Tensor) -> Tensor:
    """The strategy on the positions ``low`` and ``low + 1`` with mean ``c``, or nearest to it."""
    share = ((c - t[low]) / (t[low + 1] - t[low])).clamp(0.0, 1.0)[:, None]
    p = torch.zeros_like(like).scatter(1, low[:, None], 1.0 - share)
    return p.scatter(1, low[:, None] + 1, share)


def _cost(x: Tensor, params: Tensor, price: float, mu: float) -> Tensor:
    return tempered_costs.strategies(x, params.reshape(-1, x.shape[1]), mu)


_PREDICTORS: dict[str, Callable[[Tensor, Tensor, float, float], Tensor]] = {
    "zero_one": _zero_one,
    "abstain": _abstain,
    "absolute": _absolute,
    "squared": _squared,
    "cost": _cost,
}
