"""One autograd function behind every multiclass loss, and the operators that compiled code calls.

``nashlearn::loss`` solves the game of each row and returns, beside the reduced loss, the adversary's strategy in the
smallest form that its backward needs, a support and numbers; ``nashlearn::loss_backward`` turns these into ``(q - y)``
times what arrives.
In main memory the strategy is ``q`` itself, from the compiled games. On CUDA the closed forms are Triton kernels, and
so are zero-one games with smoothing; all others are games of their cost matrix, in CUDA C++ for up to 64 labels and
options (:mod:`nashlearn.torch.device_costs`) and by tensor operations beyond (:mod:`nashlearn.torch.pivots`,
:mod:`nashlearn.torch.tempered`). Scores on other devices are copied to the host, where the games are compiled.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from nashlearn.torch import device_costs, host, nvrtc, pivots, repeated, replies, tempered
from nashlearn.torch.checks import counted_labels, shares, sum_type
from nashlearn.torch.operators import once, operator, transformed

__all__ = ["current", "each", "kernels", "loss", "on_device", "probabilities", "strategy"]

_AS_IT_IS = nullcontext()


@cache
def kernels(name: str) -> Any:
    """The module of Triton kernels of this name."""
    import importlib

    return importlib.import_module(f"nashlearn.torch.triton_{name}")


@cache
def on_device(device_type: str) -> bool:
    """Whether Triton kernels run on devices of this type."""
    return device_type == "cuda" and find_spec("triton") is not None


@cache
def _plan(device_type: str, loss: str, price: float, k: int, dtype: torch.dtype, n_params: int, smooth: bool) -> Any:
    """The kernels for rows of ``k`` scores on devices of this type; None where there are none."""
    if not on_device(device_type):
        return None
    if loss == "zero_one":
        return kernels("entropy").plan(k, dtype) if smooth else kernels("thresholds").plan(k, dtype, loss, price)
    if not (smooth or _by_matrix(loss, price)):
        return kernels("pairs").plan(k, dtype, loss, price)
    m = {"cost": n_params // k, "abstain": k + 1}.get(loss, k)
    if not _fits(device_type, m, k):
        return None
    play = device_costs.game(k, m, dtype, smooth)
    return kernels("rows").Plan(0, torch.int32, k, play, kernels("costs").gradient(k))


def _fits(device_type: str, m: int, k: int) -> bool:
    """Whether a kernel takes the costs of so many options and labels."""
    return on_device(device_type) and nvrtc.available(device_type) and max(m, k) <= device_costs.WIDEST


def _by_matrix(loss: str, price: float) -> bool:
    """Whether the adversary has no closed form, so that the game is that of its cost matrix."""
    return loss == "cost" or (loss == "abstain" and price > 0.5)


def _matrix(scores: Tensor, params: Tensor, loss: str, price: float) -> Tensor:
    """The cost matrix (options, labels) of a loss that has no closed form, or whose strategies have none."""
    k = scores.shape[1]
    params = params.to(scores.device, torch.float64)
    if loss == "cost":
        return params.reshape(-1, k)
    if loss in ("absolute", "squared"):
        t = params if params.numel() else torch.arange(k, device=scores.device, dtype=torch.float64)
        far = t[:, None] - t
        return far.abs() if loss == "absolute" else far * far
    wrong = 1.0 - torch.eye(k, device=scores.device, dtype=torch.float64)
    return torch.cat([wrong, torch.full_like(wrong[:1], price)])


def _given(scores: Tensor, params: Tensor, loss: str, price: float, smooth: bool) -> Tensor | None:
    """What kernels read of a loss."""
    if _by_matrix(loss, price) or (smooth and loss != "zero_one"):
        return _matrix(scores, params, loss, price).contiguous()
    return params if params.numel() else None


def _outputs(scores: Tensor, plan: Any, reduction: str, wide: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Room for the three outputs: the loss, the adversary's support and its numbers."""
    n, k = scores.shape
    acc = sum_type(scores.dtype)
    reduce = reduction != "none"
    out = scores.new_empty(() if reduce else (n,), dtype=acc if wide else scores.dtype)
    if plan is None:
        return out, scores.new_empty((n, k), dtype=acc), scores.new_empty((int(reduction == "mean"),), dtype=acc)
    support = scores.new_empty((n * plan.words,), dtype=plan.kind)
    return out, support, scores.new_empty((plan.length(n, reduce),), dtype=acc)


def _rows_forward(
    scores: Tensor, target: Tensor, weight: Tensor | None, params: Tensor, loss: str, price: float,
    smoothing: float, ignore_index: int, reduction: str, wide: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """All rows' values and ``q`` first, then what is left to do, as tensor operations."""
    if on_device(scores.device.type):
        if smoothing:
            value, q, _ = tempered.solve(scores, params, loss, price, smoothing)
        else:
            value, q, _ = pivots.solve(scores, _matrix(scores, params, loss, price))
        target = target.to(torch.int64)
        counted, label = target != ignore_index, target.clamp(0, scores.shape[1] - 1)
        value = value.masked_fill(counted & (label != target), torch.nan)
    else:
        counted, label = counted_labels(target.cpu(), ignore_index, scores.shape[1])
        value, q, _ = host.solve(scores, params, loss, price, smoothing)
    value, q, label, counted = (part.to(scores.device) for part in (value, q, label, counted))
    rows = value - scores.detach().gather(1, label[:, None]).squeeze(1).to(value.dtype)
    share, mass = shares(counted, weight, reduction, value.dtype)
    rows = (rows * share).where(counted, 0.0)
    out = rows if reduction == "none" else rows.sum() / mass[0]
    kind = value.dtype if wide else scores.dtype
    return out.to(kind), q, mass[: int(reduction == "mean")]


def _forward(
    scores: Tensor, target: Tensor, weight: Tensor | None, params: Tensor, loss: str, price: float,
    smoothing: float, ignore_index: int, reduction: str, wide: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    n, k = scores.shape
    plan = _plan(scores.device.type, loss, price, k, scores.dtype, params.numel(), smoothing > 0)
    if plan is None:
        return _rows_forward(scores, target, weight, params, loss, price, smoothing, ignore_index, reduction, wide)
    out, support, numbers = outputs = _outputs(scores, plan, reduction, wide)
    if n == 0:  # a mean over nothing is NaN
        out.fill_(torch.nan if reduction == "mean" else 0.0)
        return outputs
    given = _given(scores, params, loss, price, smoothing > 0)
    tensors = (scores.contiguous(), target.contiguous(), weight, given, out, support, numbers)
    reduce = reduction != "none"
    with current(scores.device):
        plan.forward(n, tensors, (ignore_index,), reduce, smoothing)
        if reduce:
            kernels("rows").total(numbers, out, n, plan, reduction == "mean")
    return outputs


def current(device: torch.device) -> Any:
    """Triton launches on the current device: make that the tensors' own, if it is not."""
    here = device.type != "cuda" or device.index == torch.cuda.current_device()
    return _AS_IT_IS if here else torch.cuda.device(device)


def _backward(
    grad: Tensor, scores: Tensor, target: Tensor, weight: Tensor | None, params: Tensor,
    support: Tensor, numbers: Tensor, loss: str, price: float, smoothing: float, ignore_index: int, reduction: str,
) -> Tensor:  # fmt: skip
    n, k = scores.shape
    plan = _plan(scores.device.type, loss, price, k, scores.dtype, params.numel(), smoothing > 0)
    mean = reduction == "mean"
    if plan is None:
        scale = grad.to(support.dtype) / numbers[0] if mean else grad.to(support.dtype)
        counted = target != ignore_index
        scale = scale.expand(n) if weight is None else scale * weight.to(support.dtype)
        change = support.clone()
        label = target.to(torch.int64).where(counted, 0).clamp(0, k - 1)[:, None]
        change.scatter_add_(1, label, change.new_full((1, 1), -1.0).expand(n, 1))
        return change.mul_(scale.where(counted, 0.0)[:, None]).to(scores.dtype)
    out = torch.empty_like(scores, memory_format=torch.contiguous_format)
    if n:
        given = params if params.numel() else None
        tensors = (grad, scores.contiguous(), target.contiguous(), weight, given, support, numbers, out)
        with current(out.device):
            stride = grad.stride(0) if grad.dim() else 0
            plan.backward(n, tensors, (ignore_index, stride), mean, smoothing)
    return out


def _played(scores: Tensor, params: Tensor, loss: str, price: float, smoothing: float) -> tuple[Tensor, Tensor] | None:
    """Both strategies by the kernel that takes any costs; None where there is none, or other ways are shorter."""
    k = scores.shape[1]
    if (loss == "zero_one") or not _fits(scores.device.type, k, k):
        return None
    costs = _matrix(scores, params, loss, price)
    if max(costs.shape) > device_costs.WIDEST:
        return None
    with current(scores.device):
        return device_costs.strategies(scores, costs, smoothing)


def _strategy(scores: Tensor, params: Tensor, loss: str, price: float, smoothing: float) -> Tensor:
    stays, by_matrix = on_device(scores.device.type) and len(scores) > 0, _by_matrix(loss, price)
    if loss == "zero_one" and not params.numel():
        smoothing = 0.0  # it has the same strategy
    p: Tensor | None
    if stays and not smoothing and loss in replies.CLOSED and not by_matrix:
        x = scores.to(sum_type(scores.dtype))
        above = _forward(x, x.argmax(1), None, params.to(x.device), loss, price, 0.0, -100, "none", True)[0]
        p = replies.CLOSED[loss](x, params, price, above)
    elif stays and (both := _played(scores, params, loss, price, smoothing)):
        p = both[1]
    elif stays and smoothing:
        p = tempered.solve(scores, params, loss, price, smoothing, keep_p=True)[2]
    elif stays and by_matrix:
        p = pivots.solve(scores, _matrix(scores, params, loss, price), keep_p=True)[2]
    else:
        p = host.solve(scores, params, loss, price, smoothing, keep_p=True)[2]
    assert p is not None
    return p.to(scores.device, scores.dtype)


def _probabilities(scores: Tensor, params: Tensor, loss: str, price: float, smoothing: float) -> Tensor:
    """The adversary's ``q`` of tempered games."""
    if not on_device(scores.device.type):
        q = host.solve(scores, params, loss, price, smoothing)[1]
    elif loss == "zero_one" and not params.numel():
        x = scores.to(sum_type(scores.dtype))
        q = tempered.reply(x, _strategy(x, params, loss, price, smoothing), params, loss, price, smoothing)
    elif both := _played(scores, params, loss, price, smoothing):
        q = both[0]
    else:
        q = tempered.solve(scores, params, loss, price, smoothing)[1]
    return q.to(scores.device, scores.dtype)


def _fake_strategy(scores: Tensor, params: Tensor, loss: str, price: float, smoothing: float) -> Tensor:
    n, k = scores.shape
    options = {"abstain": k + 1, "cost": params.numel() // k}.get(loss, k)
    return scores.new_empty((n, options))


def _fake_probabilities(scores: Tensor, params: Tensor, loss: str, price: float, smoothing: float) -> Tensor:
    return torch.empty_like(scores, memory_format=torch.contiguous_format)


def _fake_forward(
    scores: Tensor, target: Tensor, weight: Tensor | None, params: Tensor, loss: str, price: float,
    smoothing: float, ignore_index: int, reduction: str, wide: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    k, count = int(scores.shape[1]), int(params.numel())
    plan = _plan(scores.device.type, loss, price, k, scores.dtype, count, smoothing > 0)
    return _outputs(scores, plan, reduction, wide)


def _fake_backward(grad: Tensor, scores: Tensor, *others: Any) -> Tensor:
    return torch.empty_like(scores, memory_format=torch.contiguous_format)


_solve = operator(
    "loss(Tensor scores, Tensor target, Tensor? weight, Tensor params, str loss, float price, float smoothing,"
    " int ignore_index, str reduction, bool wide) -> (Tensor, Tensor, Tensor)",
    _forward,
    _fake_forward,
)
_differentiate = operator(
    "loss_backward(Tensor grad, Tensor scores, Tensor target, Tensor? weight, Tensor params, Tensor support,"
    " Tensor numbers, str loss, float price, float smoothing, int ignore_index, str reduction) -> Tensor",
    _backward,
    _fake_backward,
)
_GAME = "Tensor scores, Tensor params, str loss, float price, float smoothing"
operator(f"strategy({_GAME}) -> Tensor", _strategy, _fake_strategy)
operator(f"probabilities({_GAME}) -> Tensor", _probabilities, _fake_probabilities)


class _Loss(torch.autograd.Function):
    """``F(scores) - scores_y`` with gradient ``q - y``."""

    @staticmethod
    def forward(
        ctx: Any, scores: Tensor, target: Tensor, weight: Tensor | None, params: Tensor, settings: tuple
    ) -> Tensor:  # fmt: skip
        out, support, numbers = _solve(scores, target, weight, params, *settings)
        some = params if params.numel() else None  # an empty tensor lies on one device or the other
        ctx.save_for_backward(scores, target, weight, some, support, numbers)
        ctx.settings = settings
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        settings = ctx.settings
        scores, target, weight, params, support, numbers = ctx.saved_tensors
        params = scores.new_empty((0,)) if params is None else params
        saved = scores, target, weight, params, support, numbers
        change = _differentiate(grad, *saved, *settings[:5])
        if not torch.compiler.is_compiling() and not repeated.known(scores, target, weight, settings):
            (loss, price, smoothing, *_), k = settings, scores.shape[1]
            plan = _plan(scores.device.type, loss, price, k, scores.dtype, params.numel(), smoothing > 0)
            if plan is not None:
                repeated.remember(plan, kernels("rows"), grad, saved, settings)
        return once(change, saved[0]), None, None, None, None


def loss(scores: Tensor, target: Tensor, weight: Tensor | None, params: Tensor, settings: tuple) -> Tensor:
    """Losses of rows; ``settings`` are name, price, smoothing, ignore_index, reduction, and if the result is wide."""
    if not params.numel() and (answer := repeated.again(scores, target, weight, settings)) is not None:
        return answer
    return _Loss.apply(scores, target, weight, params, settings)


class _Each(torch.autograd.Function):
    """The same for each row, unweighted, as the transforms of :mod:`torch.func` want it: the gradient is an output."""

    @staticmethod
    def forward(scores: Tensor, target: Tensor, params: Tensor, settings: tuple) -> tuple[Tensor, Tensor]:
        out, support, numbers = _forward(scores, target, None, params, *settings)
        return out, _backward(torch.ones_like(out), scores, target, None, params, support, numbers, *settings[:5])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: tuple[Tensor, Tensor]) -> None:
        ctx.save_for_backward(inputs[0], output[1])
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Any) -> tuple[Tensor | None, ...]:
        scores, change = ctx.saved_tensors
        return once((grad[:, None] * change).to(scores.dtype), scores), None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple, scores: Tensor, target: Tensor, params: Tensor, settings: tuple) -> tuple:
        many = info.batch_size
        scores, target = (
            x.expand(many, *x.shape) if dim is None else x.movedim(dim, 0)
            for x, dim in zip((scores, target), in_dims, strict=False)
        )
        found = _Each.apply(scores.flatten(0, 1), target.flatten(0, 1), params, settings)
        return tuple(x.unflatten(0, (many, -1)) if x.numel() else x.reshape(many, 0, *x.shape[1:]) for x in found), (
            0,
            0,
        )


def each(scores: Tensor, target: Tensor, params: Tensor, game: tuple) -> Tensor:
    """Losses of rows in the type of sums, without weights; ``game`` is name, price, smoothing and ignore_index."""
    settings = (*game, "none", True)
    if transformed():
        return _Each.apply(scores, target, params, settings)[0]
    return loss(scores, target, None, params, settings)


strategy = torch.ops.nashlearn.strategy
probabilities = torch.ops.nashlearn.probabilities
