"""What several losses check and reduce alike."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

__all__ = [
    "as_array",
    "check_settings",
    "counted_labels",
    "lengths_of",
    "lengths_there",
    "reduced",
    "shares",
    "sum_type",
]

_REDUCTIONS = ("mean", "sum", "none")


def sum_type(dtype: torch.dtype) -> torch.dtype:
    """The type in which values of ``dtype`` are summed: float64 for itself, float32 for all others."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def check_settings(
    reduction: str, smoothing: float = 0.0, tol: float = 0.0, max_iter: int = 1, label_smoothing: float = 0.0
) -> None:
    """Raise a ``ValueError`` for a setting that means nothing."""
    if reduction not in _REDUCTIONS:
        raise ValueError(f"reduction must be one of {', '.join(_REDUCTIONS)}; got {reduction!r}")
    if not 0 <= smoothing < float("inf"):
        raise ValueError(f"smoothing must be a finite number, not negative; got {smoothing!r}")
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"label_smoothing must be between 0 and 1; got {label_smoothing!r}")
    if not tol >= 0:
        raise ValueError(f"tol must not be negative; got {tol!r}")
    if max_iter < 1:
        raise ValueError(f"max_iter must be at least 1; got {max_iter!r}")


def as_array(x: Any) -> Any:
    """A tensor as an array in main memory; anything else as it is."""
    return x.detach().cpu().numpy() if isinstance(x, Tensor) else x


def counted_labels(target: Tensor, ignore_index: int, k: int) -> tuple[Tensor, Tensor]:
    """Which rows count, and their labels 0..k-1; 0 elsewhere."""
    target = target.to(torch.int64)
    counted = target != ignore_index
    wrong = counted & ((target < 0) | (target >= k))
    if bool(wrong.any()):
        raise IndexError(f"target must hold labels 0..{k - 1} or ignore_index={ignore_index}; got {target[wrong][0]}")
    return counted, target.where(counted, 0)


def shares(counted: Tensor, weight: Tensor | None, reduction: str, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """What multiplies the loss of each row, 0 where it is not ``counted``, and what divides their sum."""
    share = counted.to(dtype) if weight is None else weight.to(dtype).where(counted, 0.0)
    return share, share.sum(0, keepdim=True) if reduction == "mean" else share.new_ones(1)


def lengths_of(mask: Tensor) -> Tensor:
    """How many elements (b,) each row of ``mask`` (b, n) has, which are its first."""
    lengths = mask.sum(1)
    straight = (mask == (torch.arange(mask.shape[1], device=mask.device) < lengths[:, None])).all(1)
    if not straight.all():
        i = int((~straight).nonzero()[0, 0])
        raise ValueError(f"mask must be True first and False in the padding, which is at the end; mask[{i}] is not")
    return lengths


def lengths_there(scores: Tensor, mask: Tensor | None) -> Tensor:
    """The same for scores (b, n, ...), all n without a mask, and -1 where a row is not so: nothing is asked back."""
    b, n = scores.shape[:2]
    if mask is None:
        return torch.full((b,), n, device=scores.device)
    lengths = mask.sum(1)
    straight = mask == (torch.arange(n, device=scores.device) < lengths[:, None])
    return lengths.where(straight.all(1), -1)


def reduced(values: Tensor, reduction: str, count: int | Tensor, scores: Tensor) -> Tensor:
    """Losses (b,) by ``reduction``, the mean being over ``count``; in the type of ``scores`` but under autocast."""
    if reduction != "none":
        values = values.sum()
    if reduction == "mean":
        values = values / count
    return values if torch.is_autocast_enabled(scores.device.type) else values.to(scores.dtype)
