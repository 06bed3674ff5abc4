"""One autograd function behind the linear heads, and the operators that compiled code calls.

Without smoothing the forward pass leaves supports, from which the backward pass makes the gradients. With smoothing
the forward pass leaves the gradients of a reduced loss themselves, made while the scores were at hand; where they are
not reduced, or asked for a second time, scores are made again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from nashlearn.torch import linear_exact, linear_host, linear_tempered
from nashlearn.torch.checks import sum_type
from nashlearn.torch.linear_products import accumulator, primitives
from nashlearn.torch.operators import once, operator
from nashlearn.torch.ops import current

__all__ = ["linear_loss"]


def _filled(gradients: Sequence[Tensor | None], like: Tensor) -> tuple[Tensor, ...]:
    """Operators return tensors; an empty one stands for a gradient that nobody needs."""
    return tuple(like.new_empty(0) if gradient is None else gradient for gradient in gradients)


@contextmanager
def _as_given(device_type: str) -> Iterator[None]:
    """Without autocast, which has had its say."""
    enabled = torch.is_autocast_enabled(device_type)
    torch.set_autocast_enabled(device_type, False)
    try:
        yield
    finally:
        torch.set_autocast_enabled(device_type, enabled)


@torch.no_grad()
def _forward(
    h: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor, share: Tensor | None,
    smoothing: float, ignore_index: int, reduction: str, wide: bool, needs: list[bool],
) -> tuple[Tensor, ...]:  # fmt: skip
    """Loss, scale of the rows and its mass, bits and inverse sizes of the supports, gradients; what is not, is empty.

    The bits belong to the exact loss, the gradients to a tempered one that is reduced.
    """
    kind, mean, made = sum_type(h.dtype), reduction == "mean", smoothing > 0 and reduction != "none"
    at = primitives(h.device)
    gradients: Sequence[Tensor | None] = (None, None, None)
    with _as_given(h.device.type), current(h.device):
        scale, mass = at.scales(target, share, ignore_index, mean, kind)
        if smoothing > 0:
            bits, inverse = h.new_empty((0, 0), dtype=torch.uint8), h.new_empty(0, dtype=kind)
            by = (scale if _folded(h.dtype) else scale * mass) if made and any(needs) else None
            rows, *gradients = linear_tempered.losses_and_gradients(
                h, weight, bias, target, ignore_index, smoothing, by, needs
            )
        else:
            rows, bits, inverse = linear_exact.forward(h, weight, bias, target, ignore_index, any(needs))
        out_kind = kind if wide else h.dtype
        out = (rows * scale).to(out_kind) if reduction == "none" else at.dot(rows, scale, mass, mean, out_kind)
    return out, scale, mass, bits, inverse, *_filled(gradients, h)


def _folded(dtype: torch.dtype) -> bool:
    """Whether what scales gradients is part of them at once: not in float16, whose exponents do not reach so low."""
    return dtype != torch.float16


@torch.no_grad()
def _backward(
    grad: Tensor, h: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor,
    scale: Tensor, bits: Tensor, inverse: Tensor, smoothing: float, ignore_index: int, needs: list[bool],
) -> tuple[Tensor, ...]:  # fmt: skip
    by = (scale * grad.to(scale.dtype)).where(target != ignore_index, 0.0)
    gradients: Sequence[Tensor | None]
    with _as_given(h.device.type), current(h.device):
        if smoothing > 0:
            top = None if _folded(h.dtype) or not len(by) else by.abs().amax()
            if top is not None:
                top = top.where((top > 0) & top.isfinite(), 1.0)
                by = by / top
            found = linear_tempered.losses_and_gradients(h, weight, bias, target, ignore_index, smoothing, by, needs)
            made = (None if x is None else x if top is None else x * top for x in found[1:])
            gradients = [None if x is None else x.to(h.dtype) for x in made]
        else:
            gradients = linear_exact.backward(by, h, weight, target, ignore_index, bits, inverse, needs)
    return _filled(gradients, h)


def _fake_forward(
    h: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor, share: Tensor | None,
    smoothing: float, ignore_index: int, reduction: str, wide: bool, needs: list[bool],
) -> tuple[Tensor, ...]:  # fmt: skip
    (n, d), k = h.shape, weight.shape[0]
    out = h.new_empty((n,) if reduction == "none" else (), dtype=sum_type(h.dtype) if wide else h.dtype)
    exact = not smoothing > 0
    bits = h.new_empty((n, linear_host.row_bytes(k)) if exact and any(needs) else (0, 0), dtype=torch.uint8)
    inverse = h.new_empty((n,) if exact else (0,), dtype=sum_type(h.dtype))
    scale, mass = (h.new_empty((many,), dtype=sum_type(h.dtype)) for many in (n, 1))
    made = not exact and reduction != "none"
    kind = accumulator(h.dtype, n, k) if made else h.dtype
    shapes = ((n, d), (k, d), (k,))
    gradients = (
        h.new_empty(shape, dtype=kind) if made and need else h.new_empty((0,))
        for shape, need in zip(shapes, needs, strict=True)
    )
    return out, scale, mass, bits, inverse, *gradients


def _fake_backward(grad: Tensor, h: Tensor, weight: Tensor, *others: Any) -> tuple[Tensor, ...]:
    shapes = (h.shape, weight.shape, weight.shape[:1])
    return tuple(h.new_empty(shape if need else (0,)) for shape, need in zip(shapes, others[-1], strict=True))


# The backward pass reads a number from the device, which a CUDA graph cannot.
_TAGS = tuple(tag for tag in (getattr(torch.Tag, "cudagraph_unsafe", None),) if tag is not None)
_solve = operator(
    "linear_loss(Tensor h, Tensor weight, Tensor? bias, Tensor target, Tensor? share, float smoothing,"
    " int ignore_index, str reduction, bool wide, bool[] needs)"
    " -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    _forward,
    _fake_forward,
    tags=_TAGS,
)
_differentiate = operator(
    "linear_loss_backward(Tensor grad, Tensor h, Tensor weight, Tensor? bias, Tensor target, Tensor scale,"
    " Tensor bits, Tensor inverse, float smoothing, int ignore_index, bool[] needs) -> (Tensor, Tensor, Tensor)",
    _backward,
    _fake_backward,
    tags=_TAGS,
)


class _LinearLoss(torch.autograd.Function):
    """The loss of ``h Wᵀ + b`` with gradients by all three."""

    @staticmethod
    def forward(
        ctx: Any, h: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor, share: Tensor | None, settings: tuple
    ) -> Tensor:
        compiled = torch.compiler.is_compiling()
        out, scale, mass, bits, inverse, *made = _solve(h, weight, bias, target, share, *settings)
        ctx.save_for_backward(h, weight, bias, target, scale, bits, inverse, mass, *(made if compiled else ()))
        ctx.settings = settings
        ctx.made = None if compiled else made
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        kept = ctx.saved_tensors  # read once: checkpointing gives them out no second time
        (*saved, mass), made = kept[:8], kept[8:] or ctx.made
        smoothing, ignore_index, reduction, _, needs = ctx.settings
        ctx.made = None  # the gradients are handed over: who asks again has them made again
        h = saved[0]
        if smoothing > 0 and reduction != "none" and made is not None:
            found = _scaled(made, grad if _folded(h.dtype) else _over(grad, mass[0]), h.dtype)
        else:
            found = _differentiate(grad, *saved, smoothing, ignore_index, needs)
        gradients = (once(x, h) if need else None for x, need in zip(found, needs, strict=True))
        return *gradients, None, None, None


def _over(grad: Tensor, mass: Tensor) -> Tensor:
    """What arrives, divided by the mass; 0 for a mean over nothing, whose loss is NaN and whose gradients are 0."""
    return (grad.to(mass.dtype) / mass).where(mass != 0, 0.0)


def _scaled(gradients: Sequence[Tensor], factor: Tensor, dtype: torch.dtype) -> Sequence[Tensor]:
    """The gradients times a number on the device, in their own room where the type allows."""
    if torch.compiler.is_compiling() or any(x.dtype != dtype for x in gradients):
        return [(x * factor).to(dtype) for x in gradients]
    with current(factor.device):
        primitives(factor.device).scale(gradients, factor)
    return gradients


linear_loss = _LinearLoss.apply
