"""What several losses check and reduce alike."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["check_settings", "lengths_of", "reduced", "sum_type"]

_REDUCTIONS = ("mean", "sum", "none")


def sum_type(dtype: torch.dtype) -> torch.dtype:
    """The type in which values of ``dtype`` are summed: float64 for itself, float32 for all others."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def check_settings(reduction: str, smoothing: float = 0.0, tol: float = 0.0) -> None:
    """Raise a ``ValueError`` for a setting that means nothing."""
    if reduction not in _REDUCTIONS:
        raise ValueError(f"reduction must be one of {', '.join(_REDUCTIONS)}; got {reduction!r}")
    if not 0 <= smoothing < float("inf"):
        raise ValueError(f"smoothing must be a finite number, not negative; got {smoothing!r}")
    if not tol >= 0:
        raise ValueError(f"tol must not be negative; got {tol!r}")


def lengths_of(mask: Tensor) -> Tensor:
    """How many elements (b,) each row of ``mask`` (b, n) has, which are its first."""
    lengths = mask.sum(1)
    straight = (mask == (torch.arange(mask.shape[1], device=mask.device) < lengths[:, None])).all(1)
    if not straight.all():
        i = int((~straight).nonzero()[0, 0])
        raise ValueError(f"mask must be True first and False in the padding, which is at the end; mask[{i}] is not")
    return lengths


def reduced(values: Tensor, reduction: str, count: int | Tensor, scores: Tensor) -> Tensor:
    """Losses (b,) by ``reduction``, the mean being over ``count``; in the type of ``scores`` but under autocast."""
    if reduction != "none":
        values = values.sum()
    if reduction == "mean":
        values = values / count
    return values if torch.is_autocast_enabled(scores.device.type) else values.to(scores.dtype)
