"""One autograd function behind every multiclass loss, and the operators that compiled code calls.

``nashlearn::loss`` solves the game of each row and returns, beside the reduced loss, the adversary's strategy in the
smallest form that its backward needs; ``nashlearn::loss_backward`` turns it into ``(q - y)`` times what arrives.
In main memory the strategy is ``q`` itself, from the compiled games. On CUDA the closed forms are Triton kernels.
Games without one there (cost matrices, abstaining at a cost above 1/2) are solved on the host: one copy of the
scores each way, and a wait for it. That happens in :func:`_host_forward` alone.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from nashlearn.torch import host, replies

__all__ = ["current", "kernels", "loss", "on_device", "once", "strategy"]

_LIBRARY = torch.library.Library("nashlearn", "DEF")
_LIBRARY.define(
    "loss(Tensor scores, Tensor target, Tensor? weight, Tensor params, str loss, float price, int ignore_index,"
    " str reduction, bool wide) -> (Tensor, Tensor, Tensor, Tensor)"
)
_LIBRARY.define(
    "loss_backward(Tensor grad, Tensor denominator, Tensor scores, Tensor target, Tensor? weight, Tensor params,"
    " Tensor support, Tensor rows, str loss, float price, int ignore_index) -> Tensor"
)
_LIBRARY.define("strategy(Tensor scores, Tensor params, str loss, float price) -> Tensor")


@cache
def kernels(name: str) -> Any:
    """The module of Triton kernels of this name."""
    import importlib

    return importlib.import_module(f"nashlearn.torch.triton_{name}")


@cache
def on_device(device_type: str) -> bool:
    """Whether Triton kernels run on devices of this type."""
    return device_type == "cuda" and find_spec("triton") is not None


def _family(scores_device: torch.device, loss: str, price: float) -> str:
    """Which kernels solve ``loss`` on this device: "thresholds", "pairs", or "host"."""
    if not on_device(scores_device.type) or loss == "cost" or (loss == "abstain" and price > 0.5):
        return "host"
    return "thresholds" if loss == "zero_one" else "pairs"


def _wide(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype == torch.float64 else torch.float32


def _outputs(scores: Tensor, loss: str, price: float, reduction: str, wide: bool) -> tuple[Tensor, ...]:
    """Room for the four outputs: loss, denominator, support and numbers for each row."""
    n, k = scores.shape
    acc = _wide(scores.dtype)
    out = scores.new_empty((n,) if reduction == "none" else (), dtype=acc if wide else scores.dtype)
    denominator = scores.new_empty(() if reduction == "mean" else (0,), dtype=acc)
    family = _family(scores.device, loss, price)
    if family == "host":
        return out, denominator, scores.new_empty((n, k), dtype=acc), scores.new_empty((0,), dtype=acc)
    shape, kind, numbers = kernels(family).strategy_shape(n, k, scores.dtype)
    return out, denominator, scores.new_empty(shape, dtype=kind), scores.new_empty(numbers, dtype=acc)


def _host_forward(
    scores: Tensor, target: Tensor, weight: Tensor | None, params: Tensor, loss: str, price: float,
    ignore_index: int, reduction: str, wide: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    k = scores.shape[1]
    labels = target.to("cpu", torch.int64)
    counted = labels != ignore_index
    wrong = counted & ((labels < 0) | (labels >= k))
    if bool(wrong.any()):
        raise IndexError(f"target must hold labels 0..{k - 1} or ignore_index={ignore_index}; got {labels[wrong][0]}")
    value, q, _ = host.solve(scores, params, loss, price)
    label = labels.where(counted, 0)
    value, q = value.to(scores.device), q.to(scores.device)
    label, counted = label.to(scores.device), counted.to(scores.device)
    rows = value - scores.detach().gather(1, label[:, None]).squeeze(1).to(value.dtype)
    share = counted.to(value.dtype) if weight is None else weight.to(value.dtype).where(counted, 0.0)
    rows = (rows * share).where(counted, 0.0)
    out, denominator = rows, value.new_empty((0,))
    if reduction != "none":
        out = rows.sum()
    if reduction == "mean":
        denominator = share.sum()
        out = out / denominator
    kind = value.dtype if wide else scores.dtype
    return (out.clone() if out.dtype == kind else out.to(kind)), denominator, q, value.new_empty((0,))


def _forward(
    scores: Tensor, target: Tensor, weight: Tensor | None, params: Tensor, loss: str, price: float,
    ignore_index: int, reduction: str, wide: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    family = _family(scores.device, loss, price)
    n = scores.shape[0]
    if family == "host" or n == 0:
        answer = _host_forward(scores, target, weight, params, loss, price, ignore_index, reduction, wide)
        if family == "host":
            return answer
        room = _outputs(scores, loss, price, reduction, wide)
        return answer[0], answer[1], room[2], room[3]
    out, denominator, support, rows = _outputs(scores, loss, price, reduction, wide)
    scores, target = scores.contiguous(), target.contiguous()
    reduce = reduction != "none"
    with current(scores.device):
        own = kernels(family)
        parts = out
        if reduce:
            parts = rows.new_empty((2, own.programs(n, scores.shape[1], scores.element_size())))
        given = params if params.numel() else None
        buffers = (scores, target, weight, given, parts, support, rows, ignore_index)
        if family == "thresholds":
            own.forward(*buffers, reduce=reduce)
        else:
            own.forward(*buffers, loss=loss, price=price, reduce=reduce)
        if reduce:
            kernels("rows").total(parts, out, denominator if reduction == "mean" else None)
    return out, denominator, support, rows


def current(device: torch.device) -> Any:
    """Triton launches on the current device: make that the tensors' own, if it is not."""
    return nullcontext() if device.index == torch.cuda.current_device() else torch.cuda.device(device)


def _backward(
    grad: Tensor, denominator: Tensor, scores: Tensor, target: Tensor, weight: Tensor | None, params: Tensor,
    support: Tensor, rows: Tensor, loss: str, price: float, ignore_index: int,
) -> Tensor:  # fmt: skip
    family, n = _family(scores.device, loss, price), scores.shape[0]
    mean = denominator if denominator.dim() == 0 else None
    if family == "host":
        scale = grad.to(support.dtype) if mean is None else grad.to(support.dtype) / mean
        counted = target != ignore_index
        scale = scale.expand(n) if weight is None else scale * weight.to(support.dtype)
        change = support.clone()
        label = target.to(torch.int64).where(counted, 0)[:, None]
        change.scatter_add_(1, label, change.new_full((1, 1), -1.0).expand(n, 1))
        return change.mul_(scale.where(counted, 0.0)[:, None]).to(scores.dtype)
    out = torch.empty_like(scores, memory_format=torch.contiguous_format)
    if not n:
        return out
    scores = scores.contiguous()
    given = params if params.numel() else None
    target = target.contiguous()
    with current(out.device):
        if family == "thresholds":
            kernels(family).backward(grad, mean, scores, target, weight, given, support, rows, out, ignore_index)
        else:
            kernels(family).backward(grad, mean, target, weight, support, rows, out, ignore_index)
    return out


def _strategy(scores: Tensor, params: Tensor, loss: str, price: float) -> Tensor:
    if loss in replies.CLOSED and _family(scores.device, loss, price) != "host" and len(scores):
        x = scores.to(_wide(scores.dtype))
        above = _forward(x, x.argmax(1), None, params.to(x.device), loss, price, -100, "none", True)[0]
        return replies.CLOSED[loss](x, params, price, above).to(scores.dtype)
    _, _, p = host.solve(scores, params, loss, price, keep_p=True)
    assert p is not None
    return p.to(scores.device, scores.dtype)


def _fake_strategy(scores: Tensor, params: Tensor, loss: str, price: float) -> Tensor:
    n, k = scores.shape
    options = {"abstain": k + 1, "cost": params.numel() // k}.get(loss, k)
    return scores.new_empty((n, options))


def _fake_backward(grad: Tensor, denominator: Tensor, scores: Tensor, *others: Any) -> Tensor:
    return torch.empty_like(scores, memory_format=torch.contiguous_format)


class _Once(torch.autograd.Function):
    """The gradient, where someone asked for its graph: it says why there is none."""

    @staticmethod
    def forward(ctx: Any, change: Tensor, scores: Tensor) -> Tensor:
        return change.view_as(change)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> None:
        raise RuntimeError(
            "nashlearn losses are piecewise linear in the scores: they have no second derivative to give, so they "
            "cannot be differentiated twice (create_graph=True)"
        )


class _Loss(torch.autograd.Function):
    """``F(scores) - scores_y`` with gradient ``q - y``: the only place where the two meet.

    Eager code calls the functions above; what is compiled sees the operators, without a graph break.
    """

    @staticmethod
    def forward(
        ctx: Any, scores: Tensor, target: Tensor, weight: Tensor | None, params: Tensor, loss: str, price: float,
        ignore_index: int, reduction: str, wide: bool,
    ) -> Tensor:  # fmt: skip
        solve = torch.ops.nashlearn.loss if torch.compiler.is_compiling() else _forward
        arguments = (scores, target, weight, params, loss, price, ignore_index, reduction, wide)
        out, denominator, support, rows = solve(*arguments)
        ctx.save_for_backward(denominator, scores, target, weight, params, support, rows)
        ctx.spec = (loss, price, ignore_index)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        arguments = (grad, *ctx.saved_tensors, *ctx.spec)
        if torch.compiler.is_compiling():
            change = torch.ops.nashlearn.loss_backward(*arguments)
        else:
            change = _backward(*arguments)
            if torch.is_grad_enabled():
                change = once(change, ctx.saved_tensors[1])
        return change, None, None, None, None, None, None, None, None


_LIBRARY.impl("loss", _forward, "CompositeExplicitAutograd")
_LIBRARY.impl("loss_backward", _backward, "CompositeExplicitAutograd")
_LIBRARY.impl("strategy", _strategy, "CompositeExplicitAutograd")
torch.library.register_fake(
    "nashlearn::loss",
    lambda scores, target, weight, params, loss, price, ignore_index, reduction, wide: _outputs(
        scores, loss, price, reduction, wide
    ),
    lib=_LIBRARY,
)
torch.library.register_fake("nashlearn::loss_backward", _fake_backward, lib=_LIBRARY)
torch.library.register_fake("nashlearn::strategy", _fake_strategy, lib=_LIBRARY)
loss = _Loss.apply
once = _Once.apply
strategy = torch.ops.nashlearn.strategy
