"""Losses of whole structures, solved on the host: matchings and dependency trees, batched, with masks for padding.

Scores on another device are copied to the host once and strategies back once; instances are spread over as many
threads as PyTorch uses. Instances of one size are solved together.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nashlearn import games
from nashlearn.torch.ops import once

__all__ = ["ArborescenceLoss", "MatchingLoss"]

_LIBRARY = torch.library.Library("nashlearn", "FRAGMENT")
_LIBRARY.define(
    "structured(Tensor scores, Tensor lengths, str kind, float smoothing, float tol) -> (Tensor, Tensor, Tensor)"
)

# A game for n elements, and how many columns their scores have.
_KINDS: dict[str, tuple[Any, int]] = {
    "matching": (games.matching, 0),
    "arborescence": (lambda n: games.arborescence(n, single_root=False), 1),
    "arborescence, single root": (lambda n: games.arborescence(n, single_root=True), 1),
}


@lru_cache(maxsize=256)
def _game(kind: str, n: int) -> Any:
    return _KINDS[kind][0](n)


def _solve(scores: Tensor, lengths: Tensor, kind: str, smoothing: float, tol: float) -> tuple[Tensor, Tensor, Tensor]:
    """Value (b,), q and p (b, n, columns), zero in the padding; in float64 for float64, else float32."""
    x = scores.detach().to("cpu", torch.float64 if scores.dtype == torch.float64 else torch.float32).numpy()
    sizes, extra = lengths.cpu().numpy(), _KINDS[kind][1]
    value, q, p = np.zeros(len(x), x.dtype), np.zeros_like(x), np.zeros_like(x)
    for n in np.unique(sizes[sizes > 0]).tolist():
        rows = np.flatnonzero(sizes == n)
        found = _game(kind, n).solve(
            np.ascontiguousarray(x[rows, :n, : n + extra]), smoothing=smoothing, tol=tol, n_jobs=torch.get_num_threads()
        )
        value[rows] = found.value
        q[rows, :n, : n + extra], p[rows, :n, : n + extra] = found.q, found.p
    made = (torch.from_numpy(array).to(scores.device) for array in (value, q, p))
    return next(made), next(made), next(made)


def _fake(scores: Tensor, lengths: Tensor, kind: str, smoothing: float, tol: float) -> tuple[Tensor, Tensor, Tensor]:
    kept = torch.float64 if scores.dtype == torch.float64 else torch.float32
    like = torch.empty_like(scores, dtype=kept, memory_format=torch.contiguous_format)
    return scores.new_empty(scores.shape[0], dtype=kept), like, torch.empty_like(like)


_LIBRARY.impl("structured", _solve, "CompositeExplicitAutograd")
torch.library.register_fake("nashlearn::structured", _fake, lib=_LIBRARY)


class _Structured(torch.autograd.Function):
    """``F(scores) - <scores, y>`` of each instance with gradient ``q - y``."""

    @staticmethod
    def forward(
        ctx: Any, scores: Tensor, y: Tensor, lengths: Tensor, kind: str, smoothing: float, tol: float
    ) -> Tensor:
        solve = torch.ops.nashlearn.structured if torch.compiler.is_compiling() else _solve
        value, q, _ = solve(scores, lengths, kind, smoothing, tol)
        ctx.save_for_backward(scores, y, q)
        chosen = scores.detach().to(value.dtype).masked_fill(~y, 0.0)
        return value - chosen.sum((1, 2))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        scores, y, q = ctx.saved_tensors
        change = ((q - y.to(q.dtype)) * grad[:, None, None]).to(scores.dtype)
        if torch.is_grad_enabled() and not torch.compiler.is_compiling():
            change = once(change, scores)
        return change, None, None, None, None, None


class _MatrixLoss(torch.nn.Module):
    """What both losses share: scores (b, n, columns), one column for each row as target."""

    kind: str

    def __init__(self, smoothing: float, tol: float, reduction: str):
        super().__init__()
        if reduction not in ("mean", "sum", "none"):
            raise ValueError(f"reduction must be one of mean, sum, none; got {reduction!r}")
        if not 0 <= smoothing < float("inf"):
            raise ValueError(f"smoothing must be a finite number, not negative; got {smoothing!r}")
        self.smoothing, self.tol, self.reduction = float(smoothing), float(tol), reduction

    def _lengths(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        extra = _KINDS[self.kind][1]
        if scores.dim() != 3 or scores.shape[2] != scores.shape[1] + extra or not scores.is_floating_point():
            wanted = "(b, n, n + 1)" if extra else "(b, n, n)"
            raise ValueError(f"scores must be floating point of shape {wanted}; got {tuple(scores.shape)}")
        if mask is None:
            return torch.full(scores.shape[:1], scores.shape[1], device=scores.device)
        if mask.shape != scores.shape[:2] or mask.dtype != torch.bool:
            raise ValueError(f"mask must be boolean of shape {tuple(scores.shape[:2])}; got {tuple(mask.shape)}")
        return mask.sum(1)

    def _refuse(self, target: Tensor, lengths: Tensor, mask: Tensor | None, real: Tensor) -> None:
        """Raise where padding is not at the end, or a target is no structure: its loss would mean nothing."""
        if mask is not None and not torch.equal(mask, real):
            i = int((mask != real).any(1).nonzero()[0, 0])
            raise ValueError(f"mask must be True first and False in the padding, which is at the end; mask[{i}] is not")
        for i, (y, n) in enumerate(zip(target.cpu().numpy(), lengths.tolist(), strict=True)):
            try:
                if n:
                    _game(self.kind, n).labels.checked_labels(y[None, :n])
            except ValueError as error:
                raise ValueError(f"target[{i}] is no {self.kind} of its {n} elements: {error}") from None

    def forward(self, scores: Tensor, target: Tensor, mask: Tensor | None = None) -> Tensor:
        """The loss for ``target`` (b, n), the column of each row; ``mask`` (b, n) is True for what is not padding.

        Padding is at the end. ``"mean"`` is over elements that are not padding, ``"none"`` gives one loss an instance.
        Targets and masks are checked, but not in compiled code.
        """
        lengths = self._lengths(scores, mask)
        if target.shape != scores.shape[:2] or target.is_floating_point():
            raise ValueError(f"target must hold integers of shape {tuple(scores.shape[:2])}; got {tuple(target.shape)}")
        real = torch.arange(scores.shape[1], device=scores.device) < lengths[:, None]
        if not torch.compiler.is_compiling():  # compiled code must not depend on values
            self._refuse(target, lengths, mask, real)
        column = torch.arange(scores.shape[2], device=scores.device)
        y = (target[:, :, None] == column) & real[:, :, None]
        values = _Structured.apply(scores, y, lengths, self.kind, self.smoothing, self.tol)
        if self.reduction == "mean":
            values = values.sum() / lengths.sum()
        elif self.reduction == "sum":
            values = values.sum()
        return values if torch.is_autocast_enabled(scores.device.type) else values.to(scores.dtype)

    def predict_proba(self, scores: Tensor, mask: Tensor | None = None) -> Tensor:
        """The predictor's marginals ``p`` (b, n, columns), zero in the padding."""
        lengths = self._lengths(scores, mask)
        found = torch.ops.nashlearn.structured(scores.detach(), lengths, self.kind, self.smoothing, self.tol)
        return found[2].to(scores.dtype)

    @torch.no_grad()
    def predict(self, scores: Tensor, mask: Tensor | None = None) -> Tensor:
        """The best structure (b, n), as the column of each row; -1 in the padding."""
        lengths, extra = self._lengths(scores, mask).cpu(), _KINDS[self.kind][1]
        x = scores.cpu().double().numpy()
        best = torch.full(scores.shape[:2], -1)
        for i, n in enumerate(lengths.tolist()):
            if n:
                best[i, :n] = torch.as_tensor(_game(self.kind, n).argmax(x[i : i + 1, :n, : n + extra])[0])
        return best.to(scores.device)

    def extra_repr(self) -> str:
        """Shown in the module's representation."""
        return f"smoothing={self.smoothing:g}, reduction={self.reduction!r}"


class MatchingLoss(_MatrixLoss):
    """The adversarial surrogate of the Hamming loss between complete matchings, for scores (b, n, n).

    ``target[i, j]`` is the column matched with row ``j``; padding takes the last rows and columns of an instance.
    Solved on the host, on as many threads as PyTorch uses: a device waits for two copies and for that.

    Parameters
    ----------
    smoothing : float
        ``mu`` in ``- mu/2 |q|²``; 0 is the exact game.
    tol : float
        Gap to aim at, relative to the number of elements.
    reduction : {"mean", "sum", "none"}
    """

    kind = "matching"

    def __init__(self, smoothing: float = 0.0, *, tol: float = 1e-7, reduction: str = "mean"):
        super().__init__(smoothing, tol, reduction)


class ArborescenceLoss(_MatrixLoss):
    """The adversarial surrogate of wrong heads in dependency trees, for scores (b, n, n + 1).

    ``scores[:, d, h]`` is for token ``d`` with head ``h``, 0 the root and ``h`` token ``h - 1``; ``target`` are heads.
    Solved on the host, on as many threads as PyTorch uses: a device waits for two copies and for that.

    Parameters
    ----------
    smoothing : float
        ``mu`` in ``- mu/2 |q|²``; 0 is the exact game.
    single_root : bool
        Whether exactly one token hangs from the root.
    tol : float
        Accuracy of the interior point method.
    reduction : {"mean", "sum", "none"}
    """

    def __init__(self, smoothing: float = 0.0, *, single_root: bool = True, tol: float = 1e-9, reduction: str = "mean"):
        super().__init__(smoothing, tol, reduction)
        self.kind = "arborescence, single root" if single_root else "arborescence"
