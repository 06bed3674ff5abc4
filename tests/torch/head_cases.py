"""Inputs of linear heads, and the losses on full scores that these are compared with."""

from __future__ import annotations

import pytest
import torch

import nashlearn.torch as nt

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
CUDA = pytest.param("cuda", marks=needs_cuda)
on_each_device = pytest.mark.parametrize("device", ["cpu", CUDA])
both_losses = pytest.mark.parametrize("smoothing", [0.0, 0.3])
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 2e-2, torch.float16: 4e-3}


def draw(n, d, k, spread=1.0, dtype=torch.float64, device="cpu", seed=0):
    """Features, weight, bias and target with scores N(0, spread²), more or less; every seventh target is ignored."""
    generator = torch.Generator().manual_seed(seed)
    h = torch.randn(n, d, generator=generator, dtype=torch.float64)
    weight = spread * torch.randn(k, d, generator=generator, dtype=torch.float64) / d**0.5
    bias = 0.1 * spread * torch.randn(k, generator=generator, dtype=torch.float64)
    target = torch.randint(0, k, (n,), generator=generator)
    target[::7] = -100
    leaves = [x.to(dtype).to(device).requires_grad_() for x in (h, weight, bias)]
    return (*leaves, target.to(device))


def tempered(scores, target, smoothing, weight=None, reduction="mean"):
    """The tempered loss by its definition: p = sparsemax by sorting, then a log-sum-exp; ``target`` -100 is ignored."""
    ordered = scores.detach().sort(1, descending=True).values
    rank = torch.arange(1, scores.shape[1] + 1, dtype=scores.dtype, device=scores.device)
    size = (1 + rank * ordered > ordered.cumsum(1)).sum(1, keepdim=True)
    tau = (ordered.cumsum(1).gather(1, size - 1) - 1) / size
    p = (scores.detach() - tau).clamp_min(0)
    counted = target != -100
    label = target.where(counted, 0)
    losses = smoothing * ((scores + 1 - p) / smoothing).logsumexp(1) - scores.gather(1, label[:, None])[:, 0]
    share = counted.to(scores.dtype) if weight is None else weight[label] * counted
    losses = losses * share
    return losses if reduction == "none" else losses.sum() / (share.sum() if reduction == "mean" else 1.0)


def reference(leaves, target, smoothing, weight=None, reduction="mean", grad=None):
    """Value and gradients in float64 on full scores: NashLoss, or the definition of the tempered loss."""
    h, w, b = (None if x is None else x.detach().double().requires_grad_() for x in leaves)
    scores = torch.nn.functional.linear(h, w, b)
    weight = None if weight is None else weight.double()
    if smoothing:
        value = tempered(scores, target, smoothing, weight, reduction)
    else:
        value = nt.functional.nash_loss(scores, target, weight=weight, reduction=reduction, smoothing=0.0)
    value.backward(None if grad is None else grad.double())
    return value.detach(), [None if x is None else x.grad for x in (h, w, b)]


def on_scores(leaves, target, smoothing):
    """Value and gradient by the scores, in float64 from the scores on, which are rounded as the leaves are."""
    scores = torch.nn.functional.linear(*leaves).detach().double().requires_grad_()
    value = tempered(scores, target, smoothing) if smoothing else nt.functional.nash_loss(scores, target, smoothing=0.0)
    return value.detach(), torch.autograd.grad(value, scores)[0]


def assert_near(ours, right, dtype, factor=1.0):
    difference = (ours.detach().double() - right).norm().item()
    assert difference <= factor * TOLERANCE[dtype] * max(right.norm().item(), 0.1)
