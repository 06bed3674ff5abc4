"""One autograd function behind the linear heads, and the operators that compiled code calls.

Without smoothing the forward pass leaves supports, from which the backward pass makes the gradients. With smoothing
the forward pass leaves the gradients of a reduced loss themselves, made while the scores were at hand; where they are
not reduced, or asked for a second time, scores are made again.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from nashlearn.torch import linear_exact, linear_host, linear_tempered
from nashlearn.torch.checks import shares, sum_type
from nashlearn.torch.linear_products import accumulator, primitives
from nashlearn.torch.operators import once, operator
from nashlearn.torch.ops import current

__all__ = ["linear_loss"]


def _filled(gradients: tuple[Tensor | None, ...], like: Tensor) -> tuple[Tensor, ...]:
    """Operators return tensors; an empty one stands for a gradient that nobody needs."""
    return tuple(like.new_empty(0) if gradient is None else gradient for gradient in gradients)


@torch.no_grad()
def _forward(
    h: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor, share: Tensor | None,
    smoothing: float, ignore_index: int, reduction: str, wide: bool, needs: list[bool],
) -> tuple[Tensor, ...]:  # fmt: skip
    """Loss, mass of the rows, bits and inverse sizes of the supports, gradients: the ones there are, the rest empty."""
    bits, inverse = h.new_empty((0, 0), dtype=torch.uint8), h.new_empty(0, dtype=sum_type(h.dtype))
    gradients: tuple[Tensor | None, ...] = (None, None, None)
    with torch.autocast(h.device.type, enabled=False), current(h.device):
        if smoothing > 0:
            weights, mass = shares(target != ignore_index, share, reduction, sum_type(h.dtype))
            scale = weights / mass if _folded(h.dtype) else weights
            made = scale if any(needs) and reduction != "none" else None
            rows, *found = linear_tempered.losses_and_gradients(
                h, weight, bias, target, ignore_index, smoothing, made, needs
            )
            gradients = tuple(found)
        else:
            rows, bits, inverse = linear_exact.forward(h, weight, bias, target, ignore_index, any(needs))
            # Asked for while the device is at work.
            weights, mass = shares(target != ignore_index, share, reduction, sum_type(h.dtype))
    out = rows * weights if reduction == "none" else (rows * weights).sum() / mass[0]
    return out.to(sum_type(h.dtype) if wide else h.dtype), mass, bits, inverse, *_filled(gradients, h)


def _folded(dtype: torch.dtype) -> bool:
    """Whether gradients are divided by the mass at once: not in float16, whose exponents do not reach so low."""
    return dtype != torch.float16


@torch.no_grad()
def _backward(
    grad: Tensor, h: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor, share: Tensor | None,
    mass: Tensor, bits: Tensor, inverse: Tensor,
    smoothing: float, ignore_index: int, reduction: str, wide: bool, needs: list[bool],
) -> tuple[Tensor, ...]:  # fmt: skip
    counted = target != ignore_index
    weights, _ = shares(counted, share, "sum", sum_type(h.dtype))
    scale = (weights * grad.to(weights.dtype) / mass).where(counted, 0.0)
    gradients: tuple[Tensor | None, ...]
    with torch.autocast(h.device.type, enabled=False), current(h.device):
        if smoothing > 0:
            _, *found = linear_tempered.losses_and_gradients(
                h, weight, bias, target, ignore_index, smoothing, scale, needs
            )
            gradients = tuple(None if x is None else x.to(h.dtype) for x in found)
        else:
            gradients = linear_exact.backward(scale, h, weight, target, ignore_index, bits, inverse, needs)
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
    mass = h.new_empty((1,), dtype=sum_type(h.dtype))
    made = not exact and reduction != "none"
    kind = accumulator(h.dtype, n, k) if made else h.dtype
    shapes = ((n, d), (k, d), (k,))
    gradients = (
        h.new_empty(shape, dtype=kind) if made and need else h.new_empty((0,))
        for shape, need in zip(shapes, needs, strict=True)
    )
    return out, mass, bits, inverse, *gradients


def _fake_backward(grad: Tensor, h: Tensor, weight: Tensor, *others: Any) -> tuple[Tensor, ...]:
    shapes = (h.shape, weight.shape, weight.shape[:1])
    return tuple(h.new_empty(shape if need else (0,)) for shape, need in zip(shapes, others[-1], strict=True))


# The backward pass reads a number from the device, which a CUDA graph cannot.
_TAGS = tuple(tag for tag in (getattr(torch.Tag, "cudagraph_unsafe", None),) if tag is not None)
_SETTINGS = "float smoothing, int ignore_index, str reduction, bool wide, bool[] needs"
_solve = operator(
    f"linear_loss(Tensor h, Tensor weight, Tensor? bias, Tensor target, Tensor? share, {_SETTINGS})"
    " -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    _forward,
    _fake_forward,
    tags=_TAGS,
)
_differentiate = operator(
    "linear_loss_backward(Tensor grad, Tensor h, Tensor weight, Tensor? bias, Tensor target, Tensor? share,"
    f" Tensor mass, Tensor bits, Tensor inverse, {_SETTINGS}) -> (Tensor, Tensor, Tensor)",
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
        out, mass, bits, inverse, *made = _solve(h, weight, bias, target, share, *settings)
        ctx.save_for_backward(h, weight, bias, target, share, mass, bits, inverse, *(made if compiled else ()))
        ctx.settings = settings
        ctx.made = None if compiled else made
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        saved, (smoothing, _, reduction, _, needs) = ctx.saved_tensors, ctx.settings
        made = saved[8:] if torch.compiler.is_compiling() else ctx.made
        ctx.made = None  # the gradients are handed over: who asks again has them made again
        if smoothing > 0 and reduction != "none" and made is not None:
            h, mass = saved[0], saved[5]
            factor = grad if _folded(h.dtype) else grad.to(mass.dtype) / mass[0]
            found = tuple(_scaled(x, factor, h.dtype) for x in made)
        else:
            found = _differentiate(grad, *saved[:8], *ctx.settings)
        gradients = (once(x, saved[0]) if need else None for x, need in zip(found, needs, strict=True))
        return *gradients, None, None, None


def _scaled(gradient: Tensor, factor: Tensor, dtype: torch.dtype) -> Tensor:
    """The gradient times a number on the device, in its own room where the type allows."""
    if torch.compiler.is_compiling() or gradient.dtype != dtype:
        return (gradient * factor).to(dtype)
    return primitives(gradient.device).scale(gradient, factor)


linear_loss = _LinearLoss.apply
