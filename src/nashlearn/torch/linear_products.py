"""What both linear heads share: scores in chunks of rows, products with wide sums, and which device does the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from nashlearn.torch import linear_host, ops

__all__ = ["accumulator", "add_product", "arriving", "capturing", "primitives", "row_chunks", "score_chunks", "scores"]

_ROWS, _TILE = 128, 256  # of a chunk at least; whose multiples suit matrix products
_SMALLEST, _LARGEST = 2**27, 2**29  # bytes of the scores of a chunk
_ROUNDINGS = 8  # that a sum over chunks may take in half precision


def primitives(device: torch.device) -> Any:
    """The module whose functions read scores, supports and lists on this device."""
    return ops.kernels("linear") if ops.on_device(device.type) else linear_host


def capturing(device: torch.device) -> bool:
    """Whether a CUDA graph is being recorded, in which nothing can be read from the device."""
    return device.type == "cuda" and torch.cuda.is_current_stream_capturing()


def arriving(x: Tensor) -> Callable[[], float]:
    """Send a tensor of one number to the host; the function that is returned waits for it."""
    if not x.is_cuda:
        return x.item
    there = torch.empty((), dtype=x.dtype, pin_memory=True)
    there.copy_(x, non_blocking=True)
    event = torch.cuda.Event()
    event.record()

    def wait() -> float:
        event.synchronize()
        return there.item()

    return wait


def row_chunks(n: int, k: int, itemsize: int, rows: int) -> Iterator[slice]:
    """Rows 0..n-1 in chunks of ``rows`` or a few less: of fewer where scores take too much room, more if too little."""
    row = max(1, k * itemsize)
    rows = max(_ROWS, min(_LARGEST // row, max(_SMALLEST // row, rows)))
    rows -= rows % (_ROWS if rows < 2 * _TILE else _TILE)
    return (slice(start, min(start + rows, n)) for start in range(0, n, rows))


def accumulator(dtype: torch.dtype, n: int, k: int) -> torch.dtype:
    """The type in which gradients are summed over chunks of rows.

    float16 has too few exponents for probabilities over a batch; bfloat16 rounds once a chunk, which a few chunks bear.
    """
    narrow = dtype == torch.float16 or (dtype == torch.bfloat16 and n * k * dtype.itemsize > _ROUNDINGS * _LARGEST)
    return torch.float32 if narrow else dtype


def score_chunks(h: Tensor, weight: Tensor, bias: Tensor | None, rows: int) -> Iterator[tuple[slice, Tensor]]:
    """The parts of :func:`row_chunks` and their scores, one after the other in the same room."""
    n, k, room = len(h), len(weight), None
    for part in row_chunks(n, k, h.element_size(), rows):
        room = h.new_empty(len(h[part]) * k) if room is None else room
        yield part, scores(h[part], weight, bias, room)


def scores(h: Tensor, weight: Tensor, bias: Tensor | None, room: Tensor | None = None) -> Tensor:
    """``h Wᵀ + b``, in ``room`` if given."""
    out = None if room is None else room[: h.shape[0] * weight.shape[0]].view(h.shape[0], weight.shape[0])
    return torch.mm(h, weight.t(), out=out) if bias is None else torch.addmm(bias, h, weight.t(), out=out)


def add_product(total: Tensor, a: Tensor, b: Tensor, first: bool) -> None:
    """``total += a b``, or ``total = a b`` where it is the ``first``; ``total`` may be wider than the factors."""
    if total.dtype == a.dtype:
        if first:
            torch.mm(a, b, out=total)
        else:
            total.addmm_(a, b)
        return
    if a.is_cuda and first:
        torch.mm(a, b, out_dtype=total.dtype, out=total)
    elif a.is_cuda:
        torch.addmm(total, a, b, out_dtype=total.dtype, out=total)
    else:
        wide = a.to(total.dtype), b.to(total.dtype)
        total.copy_(wide[0] @ wide[1]) if first else total.addmm_(*wide)
