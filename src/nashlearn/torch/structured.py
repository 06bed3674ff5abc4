"""Losses of matchings and dependency trees: batched, with masks for padding, as :class:`GameLoss` solves them."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from nashlearn import games
from nashlearn.torch import ops
from nashlearn.torch.checks import sum_type
from nashlearn.torch.game_loss import GameLoss

__all__ = ["ArborescenceLoss", "MatchingLoss", "SolvedMatchings"]

_LARGEST = 32  # elements that the Triton kernel takes


class _MatchingsOnDevice:
    """Matchings of up to 32 elements on CUDA, where Triton is installed."""

    def takes(self, scores: Tensor, target: Tensor) -> bool:
        """Whether scores are there, and not too large; a target that does not fit them is the host's to refuse."""
        counted = not (target.is_floating_point() or target.is_complex() or target.dtype == torch.bool)
        there = ops.on_device(scores.device.type) and target.device == scores.device
        return (
            there
            and counted
            and target.shape == scores.shape[:2]
            and scores.numel() > 0
            and scores.shape[1] <= _LARGEST
        )

    def play(
        self, scores: Tensor, target: Tensor, mask: Tensor | None, smoothing: float, tol: float
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Losses and gaps (b,), ``q - y`` and ``p`` shaped as scores, and which instances (b,) are solved."""
        (b, n), kind = scores.shape[:2], sum_type(scores.dtype)
        loss, gap = scores.new_empty(b, dtype=kind), scores.new_empty(b, dtype=torch.float64)
        change, p = scores.new_zeros(2, b, n, n, dtype=kind).unbind()
        room = loss, gap, change, p, torch.empty(b, dtype=torch.bool, device=scores.device)
        with ops.current(scores.device):
            lengths = _lengths(scores, mask)
            ops.kernels("matchings").solve(scores.contiguous(), target.contiguous(), lengths, smoothing, tol, room)
        return room


def _lengths(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Lengths (b,), -1 where the mask is not True first and False after."""
    b, n = scores.shape[:2]
    if mask is None:
        return torch.full((b,), n, device=scores.device)
    lengths = mask.sum(1)
    straight = mask == (torch.arange(n, device=scores.device) < lengths[:, None])
    return lengths.where(straight.all(1), -1)


class SolvedMatchings(NamedTuple):
    """Equilibria of matchings as tensors: value and gap (b,), strategies (b, n, n), and who solved them."""

    value: Tensor
    q: Tensor
    p: Tensor
    gap: Tensor
    on_host: Tensor


class _ElementLoss(GameLoss):
    """A loss that is counted by element, and so is its mean: over those that are not padding."""

    _compiled = True

    def _count(self, scores: Tensor, mask: Tensor | None) -> int | Tensor:
        return scores.shape[0] * scores.shape[1] if mask is None else mask.sum()


class MatchingLoss(_ElementLoss):
    """The adversarial surrogate of the Hamming loss between complete matchings, for scores (b, n, n).

    ``target[i, j]`` is the column matched with row ``j``; padding takes the last rows and columns of an instance.
    On CUDA instances of up to 32 elements are solved where they are, in float64, by an interior point method, each with
    a certified gap (``nashlearn.torch.triton_matchings``). Those whose gap stays above ``tol (1 + n)``, those
    with pairs forbidden by -inf and larger ones are finished on the host, on as many threads as PyTorch uses, as all
    are without Triton; :meth:`solve` tells which.

    Parameters
    ----------
    smoothing : float
        ``mu`` in ``mu/2 (<1, q> - |q|²)``, which is added; 0 is the exact game.
    tol : float
        Gap of an instance to aim at.
    reduction : {"mean", "sum", "none"}
        The mean is over elements that are not padding; ``"none"`` gives one loss an instance.
    """

    def __init__(self, smoothing: float = 0.0, *, tol: float = 1e-7, reduction: str = "mean"):
        kernel = _MatchingsOnDevice()
        super().__init__(games.matching, smoothing=smoothing, tol=tol, reduction=reduction, kernel=kernel)

    @torch.no_grad()
    def solve(self, scores: Tensor, mask: Tensor | None = None) -> SolvedMatchings:
        """The equilibria of scores (b, n, n), zero in the padding, with their gaps, and which the host solved."""
        self._table.whole(scores, mask)
        b, n = scores.shape[:2]
        kernel, kind = self._table.kernel, sum_type(scores.dtype)
        # The loss against the identity, with what the scores of that are, is the value.
        same = torch.arange(n, device=scores.device).expand(b, n).contiguous()
        if kernel is not None and kernel.takes(scores, same):
            value, gap, q, p, solved = kernel.play(scores, same, mask, self.smoothing, self.tol)
            here = torch.ones(b, n, dtype=torch.bool, device=scores.device) if mask is None else mask
            q.diagonal(dim1=1, dim2=2).add_(here.to(kind))
            value = value + scores.diagonal(dim1=1, dim2=2).to(kind).where(here, 0.0).sum(1)
        else:
            value, gap = scores.new_zeros(2, b, dtype=torch.float64).unbind()
            q, p = scores.new_zeros(2, b, n, n, dtype=kind).unbind()
            solved = torch.zeros(b, dtype=torch.bool, device=scores.device)
        if not solved.all():
            rows = (~solved).nonzero()[:, 0]
            rest = self._solve_on_host(scores[rows], None if mask is None else mask[rows])
            for whole, part in zip((value, q, p, gap), rest, strict=True):
                whole[rows] = part.to(whole)
        return SolvedMatchings(value.to(kind), q, p, gap, ~solved)

    def predict_proba(self, scores: Tensor, mask: Tensor | None = None) -> Tensor:
        """The predictor's strategy ``p`` (b, n, n), zero in the padding."""
        return self.solve(scores, mask).p.to(scores.dtype)


class ArborescenceLoss(_ElementLoss):
    """The adversarial surrogate of wrong heads in dependency trees, for scores (b, n, n + 1).

    ``scores[:, d, h]`` is for token ``d`` with head ``h``, 0 the root and ``h`` token ``h - 1``; ``target`` are heads.
    Solved on the host, on as many threads as PyTorch uses: a device waits for two copies and for that.

    Parameters
    ----------
    smoothing : float
        ``mu`` in ``mu/2 (<1, q> - |q|²)``, which is added; 0 is the exact game.
    single_root : bool
        Whether exactly one token hangs from the root.
    tol : float
        Gap of an instance to aim at.
    reduction : {"mean", "sum", "none"}
        The mean is over tokens that are not padding; ``"none"`` gives one loss an instance.
    """

    def __init__(self, smoothing: float = 0.0, *, single_root: bool = True, tol: float = 1e-9, reduction: str = "mean"):
        game = partial(games.arborescence, single_root=single_root)
        super().__init__(game, smoothing=smoothing, tol=tol, reduction=reduction)
