"""What the losses' operators share: how they are registered, who calls them, and gradients of whole instances.

Eager code calls functions, without the dispatcher; what is compiled sees operators, without a graph break.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

__all__ = ["by_instance", "once", "operator", "transformed"]

_LIBRARY = torch.library.Library("nashlearn", "DEF")


def operator(schema: str, function: Callable, fake: Callable, **options: Any) -> Callable[..., Any]:
    """Register an operator; what is returned calls it in compiled code, and ``function`` itself in eager code."""
    name = schema.partition("(")[0]
    _LIBRARY.define(schema, **options)
    _LIBRARY.impl(name, function, "CompositeExplicitAutograd")
    torch.library.register_fake(f"nashlearn::{name}", fake, lib=_LIBRARY)
    registered = getattr(torch.ops.nashlearn, name)

    def call(*arguments: Any) -> Any:
        return registered(*arguments) if torch.compiler.is_compiling() else function(*arguments)

    return call


class _Once(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(change: Tensor, scores: Tensor) -> Tensor:
        return change.view_as(change)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Tensor) -> None:
        """Keep nothing: PyTorch asks for this method, and there is no derivative to come."""

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> None:
        raise RuntimeError(
            "nashlearn losses have no second derivative to give, so they cannot be differentiated twice "
            "(create_graph=True)"
        )


def transformed() -> bool:
    """Whether a transform of :mod:`torch.func` is at work, which takes functions without hidden outputs only."""
    return not torch.compiler.is_compiling() and torch._C._are_functorch_transforms_active()


def once(change: Tensor, scores: Tensor) -> Tensor:
    """The gradient by ``scores``; where someone asked for its graph, one that says why there is none."""
    asked = torch.is_grad_enabled() and not torch.compiler.is_compiling()
    return _Once.apply(change, scores) if asked else change


def by_instance(solve: Callable[..., tuple[Tensor, ...]]) -> Callable[..., Tensor]:
    """The losses (b,) of ``solve``, with gradients ``q - y`` by as many of its first arguments as it returns beside.

    An argument that all instances share has no axis of instances, and the sum of their gradients.
    """

    class Loss(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *arguments: Any) -> Tensor:
            loss, *changes = solve(*arguments)
            ctx.save_for_backward(*arguments[: len(changes)], *changes)
            return loss

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
            saved = ctx.saved_tensors  # read once: checkpointing gives them out no second time
            count = len(saved) // 2
            gradients: list[Tensor | None] = [None] * len(ctx.needs_input_grad)
            for i in range(count):
                scores, change = saved[i], saved[count + i].flatten(1)
                if ctx.needs_input_grad[i]:
                    shared = scores.dim() < saved[count + i].dim()
                    total = grad @ change if shared else change * grad[:, None]
                    gradients[i] = once(total.reshape(scores.shape).to(scores.dtype), scores)
            return tuple(gradients)

    return Loss.apply
