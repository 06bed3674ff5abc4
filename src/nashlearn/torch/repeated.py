"""Steps of training like earlier ones, on CUDA: what has been checked and found once is not looked for again.

Where kernels are shorter than their launches all that Python does counts, most of all in the backward pass, which
PyTorch runs in a thread of its own. So the launches of a reduced loss and its gradient are kept, by all that they and
the checks before them depend on, and a step like an earlier one lacks nothing but the addresses of its tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nashlearn.torch.operators import once, transformed

__all__ = ["again", "known", "remember"]

Key = tuple[Any, ...]


class Step(NamedTuple):
    """Room and launches of a reduced loss and its gradient.

    ``out`` is like the loss, ``left`` like what the forward pass leaves: numbers, and the adversary's support from byte
    ``support`` on. ``usual`` tells whether addresses are such as launches may be repeated with.
    """

    device: int
    out: Tensor
    left: Tensor
    support: int
    usual: Callable[..., bool]
    launches: Any

    def forward(self, scores: Tensor, target: Tensor, share: Tensor | None) -> tuple[Tensor, Tensor]:
        """The loss, and what the backward pass needs."""
        out, left = torch.empty_like(self.out), torch.empty_like(self.left)
        value, numbers = out.data_ptr(), left.data_ptr()
        given = scores.data_ptr(), target.data_ptr(), 0 if share is None else share.data_ptr(), 0
        self.launches.forward((*given, value, numbers + self.support, numbers))
        self.launches.total((numbers, value))
        return out, left

    def backward(self, grad: Tensor, scores: Tensor, target: Tensor, share: Tensor | None, left: Tensor) -> Tensor:
        """The gradient."""
        if grad.data_ptr() & 15:  # part of another tensor
            grad = grad.clone()
        change, numbers = torch.empty_like(scores), left.data_ptr()
        given = scores.data_ptr(), target.data_ptr(), 0 if share is None else share.data_ptr(), 0
        self.launches.backward((grad.data_ptr(), *given, numbers + self.support, numbers, change.data_ptr()))
        return change


class _Again(torch.autograd.Function):
    """``F(scores) - scores_y`` with gradient ``q - y``, by a step that is known."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, target: Tensor, share: Tensor | None, step: Step) -> Tensor:
        out, left = step.forward(scores, target, share)
        ctx.save_for_backward(scores, target, share, left)
        ctx.step = step
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        return once(ctx.step.backward(grad, *saved), saved[0]), None, None, None


_STEPS: dict[Key, Step] = {}
_MOST = 1024


def _key(scores: Tensor, target: Tensor, share: Tensor | None, settings: tuple) -> Key:
    """What a step depends on."""
    weights = None if share is None else (share.dtype, share.get_device())
    places = scores.get_device(), target.get_device()
    return scores.shape, target.shape, scores.dtype, target.dtype, places, weights, settings


def known(scores: Tensor, target: Tensor, share: Tensor | None, settings: tuple) -> bool:
    """Whether a step like this has been kept."""
    return _key(scores, target, share, settings) in _STEPS


def again(scores: Tensor, target: Tensor, share: Tensor | None, settings: tuple) -> Tensor | None:
    """The loss of a step like one before; None where there has been none, or tensors are not as usual.

    ``settings`` are name, price, smoothing, ignore_index, reduction, and whether autocast is on.
    """
    if torch.compiler.is_compiling():
        return None
    step = _STEPS.get(_key(scores, target, share, settings))
    if step is None or type(scores) is not Tensor or transformed() or step.device != torch.cuda.current_device():
        return None
    straight = scores.is_contiguous() and target.is_contiguous() and (share is None or share.is_contiguous())
    addresses = scores.data_ptr(), target.data_ptr(), 0 if share is None else share.data_ptr()
    if not (straight and step.usual(addresses)):
        return None
    return _Again.apply(scores, target, share, step)


def remember(plan: Any, rows: Any, grad: Tensor, saved: tuple, settings: tuple) -> None:
    """Keep a step that has just been taken by ``plan``: ``saved`` for its backward pass, at which ``grad`` arrived.

    ``rows`` is the module of kernels of rows. Steps with parameters of their own are not kept.
    """
    scores, target, share, params, support, numbers = saved
    *_, smoothing, ignore_index, reduction, _ = settings
    if params.numel() or reduction == "none" or not len(scores):
        return
    tensors = (scores, target, share, None, grad, support, numbers)
    launches = rows.step(plan, tensors, ignore_index, reduction == "mean", smoothing)
    if launches is None:
        return
    if len(_STEPS) >= _MOST:
        _STEPS.clear()
    size = numbers.element_size()
    first = -(-numbers.numel() * size // 16) * 16  # bytes of the numbers; what follows is aligned as they are
    count = -(-(first + support.numel() * support.element_size()) // size)
    like = numbers.new_empty(1).expand(count), torch.empty_like(grad, memory_format=torch.contiguous_format)
    _STEPS[_key(scores, target, share, settings)] = Step(
        scores.get_device(), like[1].detach(), like[0], first, rows.usual, launches
    )
