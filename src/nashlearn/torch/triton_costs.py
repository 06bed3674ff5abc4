"""The gradient of a game of costs on CUDA, from the adversary's ``q`` that :mod:`nashlearn.torch.device_costs` left."""

from __future__ import annotations

from functools import cache

import triton
import triton.language as tl

from nashlearn.torch.triton_launches import Launcher
from nashlearn.torch.triton_rows import kernel, of_program, row_scale

__all__ = ["gradient"]

_ENTRIES = 1024  # of the gradient that a program writes


@kernel()
def _backward(
    grad, scores, target, weight, costs, support, numbers, out, n, ignore_index, grad_stride, MEAN: tl.constexpr,
    K: tl.constexpr, R: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    ACC: tl.constexpr = numbers.dtype.element_ty
    _, row, live = of_program(n, R)
    j = tl.arange(0, C)[None, :]
    whole = numbers + n.to(tl.int64) * K
    scale, y = row_scale(grad, grad_stride, whole, target, weight, row, live, ignore_index, MEAN)
    place = row.to(tl.int64)[:, None] * K + j
    inside = (j < K) & live[:, None]
    q = tl.load(numbers + place, mask=inside, other=0.0)
    change = (q - (j == y[:, None]).to(ACC)) * scale[:, None]
    tl.store(out + place, change.to(out.dtype.element_ty), mask=inside)


@cache
def gradient(k: int) -> Launcher:
    """The backward pass for rows of ``k`` scores."""
    C = triton.next_power_of_2(k)
    return Launcher(_backward, (k, _ENTRIES // C, C), rows=_ENTRIES // C, num_warps=4)
