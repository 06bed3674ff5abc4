"""Losses of matchings and dependency trees: batched, with masks for padding, as :class:`GameLoss` solves them."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from nashlearn import games
from nashlearn.torch import device_games
from nashlearn.torch.checks import sum_type
from nashlearn.torch.game_loss import GameLoss

__all__ = ["ArborescenceLoss", "MatchingLoss", "SolvedGames"]


class SolvedGames(NamedTuple):
    """Equilibria as tensors: values and gaps (b,), strategies shaped as the scores, and which the host solved (b,)."""

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

    @torch.no_grad()
    def solve(self, scores: Tensor, mask: Tensor | None = None) -> SolvedGames:
        """The equilibria of scores, zero in the padding, with their gaps, and which the host solved."""
        self._table.whole(scores, mask)
        b, n = scores.shape[:2]
        kernel, kind = self._table.kernel, sum_type(scores.dtype)
        # The loss against the identity, or the chain of tokens from the root on, is the value less what that scores.
        same = torch.arange(n, device=scores.device).expand(b, n).contiguous()
        if kernel is not None and kernel.takes(scores, same):
            value, gap, q, p, solved = kernel.play(scores, same, mask, self.smoothing, self.tol)
            here = torch.ones(b, n, dtype=torch.bool, device=scores.device) if mask is None else mask
            q.diagonal(dim1=1, dim2=2).add_(here.to(kind))
            value = value + scores.diagonal(dim1=1, dim2=2).to(kind).where(here, 0.0).sum(1)
        else:
            value, gap = scores.new_zeros(2, b, dtype=torch.float64).unbind()
            q, p = scores.new_zeros(2, *scores.shape, dtype=kind).unbind()
            solved = torch.zeros(b, dtype=torch.bool, device=scores.device)
        if not solved.all():
            rows = (~solved).nonzero()[:, 0]
            rest = self._solve_on_host(scores[rows], None if mask is None else mask[rows])
            for whole, part in zip((value, q, p, gap), rest, strict=True):
                whole[rows] = part.to(whole)
        return SolvedGames(value.to(kind), q, p, gap, ~solved)

    def predict_proba(self, scores: Tensor, mask: Tensor | None = None) -> Tensor:
        """The predictor's strategy ``p``, shaped as scores, zero in the padding."""
        return self.solve(scores, mask).p.to(scores.dtype)


class MatchingLoss(_ElementLoss):
    """The adversarial surrogate of the Hamming loss between complete matchings, for scores (b, n, n).

    ``target[i, j]`` is the column matched with row ``j``; padding takes the last rows and columns of an instance.
    On CUDA instances of up to 64 elements are solved where they are, in float64, by an interior point method, each with
    a certified gap (``nashlearn.torch.device_games``); those of more than 40 where the device has shared memory enough,
    as H100 has for all. Those whose gap stays above ``tol (1 + n)``, those with pairs forbidden by -inf and larger ones
    are finished on the host, on as many threads as PyTorch uses; :meth:`solve` tells which.

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
        kernel = device_games.matchings
        super().__init__(games.matching, smoothing=smoothing, tol=tol, reduction=reduction, kernel=kernel)


class ArborescenceLoss(_ElementLoss):
    """The adversarial surrogate of wrong heads in dependency trees, for scores (b, n, n + 1).

    ``scores[:, d, h]`` is for token ``d`` with head ``h``, 0 the root and ``h`` token ``h - 1``; ``target`` are heads.
    On CUDA sentences of up to 64 tokens are solved where they are, as matchings are, with the cuts that they turn out
    to need (``nashlearn.torch.device_games``). Those whose gap stays above ``10 tol (1 + n (1 + smoothing))``, at which
    the host aims too, those with arcs forbidden by -inf and longer ones are finished on the host, on as many threads as
    PyTorch uses; :meth:`solve` tells which.

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
        kernel = device_games.trees(single_root)
        super().__init__(game, smoothing=smoothing, tol=tol, reduction=reduction, kernel=kernel)
