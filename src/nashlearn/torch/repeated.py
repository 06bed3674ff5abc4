"""Steps of training like earlier ones, on CUDA: what has been checked and found once is not looked for again.

Where kernels are shorter than their launches all that Python does counts, most of all in the backward pass, which
PyTorch runs in a thread of its own. So the launches of a reduced loss and its gradient are kept, by all that they and
the checks before them depend on, and a step like an earlier one lacks nothing but the addresses of its tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nashlearn.torch.operators import once, transformed

__all__ = ["again", "known", "remember"]

Key = tuple[Any, ...]


def _addresses(tensors: Sequence[Any]) -> list[int]:
    return [0 if x is None else x.data_ptr() for x in tensors]


class Step(NamedTuple):
    """Room and launches of a reduced loss and its gradient.

    ``out`` is like the loss, ``support`` and ``numbers`` like what the forward pass leaves of the adversary's strategy.
    ``usual`` tells whether addresses are such as launches may be repeated with.
    """

    device: int
    out: Tensor
    support: Tensor
    numbers: Tensor
    usual: Callable[..., bool]
    launches: Any

    def forward(self, scores: Tensor, target: Tensor, share: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """The loss, and what the backward pass needs."""
        out, support, numbers = (torch.empty_like(x) for x in (self.out, self.support, self.numbers))
        *given, value, kept, left = _addresses((scores, target, share, None, out, support, numbers))
        self.launches.forward((*given, value, kept, left))
        self.launches.total((left, value))
        return out, support, numbers

    def backward(
        self, grad: Tensor, scores: Tensor, target: Tensor, share: Tensor | None, support: Tensor, numbers: Tensor
    ) -> Tensor:
        """The gradient."""
        given: Sequence[Tensor | None] = (grad, scores, target, share, None, support, numbers)
        addresses, change = _addresses(given), torch.empty_like(scores)
        if reduce(or_, addresses) & 15:  # parts of other tensors, as hooks of saved tensors may return
            given = [None if x is None else x.clone() for x in given]
            addresses = _addresses(given)
        self.launches.backward((*addresses, change.data_ptr()))
        return change


class _Again(torch.autograd.Function):
    """``F(scores) - scores_y`` with gradient ``q - y``, by a step that is known.

    It saves the same tensors as the first step did: checkpointing counts and compares those of a repeated forward pass.
    """

    @staticmethod
    def forward(ctx: Any, scores: Tensor, target: Tensor, share: Tensor | None, step: Step) -> Tensor:
        out, support, numbers = step.forward(scores, target, share)
        ctx.save_for_backward(scores, target, share, None, support, numbers)
        ctx.step = step
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        scores, target, share, _, support, numbers = ctx.saved_tensors
        return once(ctx.step.backward(grad, scores, target, share, support, numbers), scores), None, None, None


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
    if torch.compiler.is_compiling() or type(scores) is not Tensor or type(target) is not Tensor:
        return None
    try:
        step = _STEPS.get(_key(scores, target, share, settings))
    except TypeError:  # a setting that cannot be part of a key: it has not been checked yet
        return None
    if step is None or transformed() or step.device != torch.cuda.current_device():
        return None
    straight = scores.is_contiguous() and target.is_contiguous() and (share is None or share.is_contiguous())
    if not (straight and step.usual(_addresses((scores, target, share)))):
        return None
    return _Again.apply(scores, target, share, step)


def remember(plan: Any, rows: Any, grad: Tensor, saved: tuple, settings: tuple) -> None:
    """Keep a step that has just been taken by ``plan``: ``saved`` for its backward pass, at which ``grad`` arrived.

    ``rows`` is the module of kernels of rows. Steps with parameters of their own are not kept.
    """
    scores, target, share, params, support, numbers = saved
    *_, smoothing, ignore_index, reduction, _ = settings
    if params.numel() or reduction == "none" or not len(scores) or torch.cuda.is_current_stream_capturing():
        return  # a graph that is being recorded would keep what is allocated here
    tensors = (scores, target, share, None, grad, support, numbers)
    launches = rows.step(plan, tensors, ignore_index, reduction == "mean", smoothing)
    if launches is None:
        return
    if len(_STEPS) >= _MOST:
        _STEPS.clear()
    like = torch.empty_like(grad, memory_format=torch.contiguous_format).detach(), _like(support), _like(numbers)
    key = _key(scores, target, share, settings)
    _STEPS[key] = Step(scores.get_device(), *like, rows.usual, launches)


def _like(x: Tensor) -> Tensor:
    """A tensor in hardly any room of which ``torch.empty_like`` makes one like ``x``, which has one dimension."""
    return x.new_empty(min(1, x.numel())).expand(x.shape)
