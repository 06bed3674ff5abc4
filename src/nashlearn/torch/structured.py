"""Losses of matchings and dependency trees: batched, with masks for padding, as :class:`GameLoss` solves them."""

from __future__ import annotations

from functools import partial

from torch import Tensor

from nashlearn import games
from nashlearn.torch.game_loss import GameLoss

__all__ = ["ArborescenceLoss", "MatchingLoss"]


class _ElementLoss(GameLoss):
    """A loss that is counted by element, and so is its mean: over those that are not padding."""

    def _count(self, scores: Tensor, mask: Tensor | None) -> int | Tensor:
        return scores.shape[0] * scores.shape[1] if mask is None else mask.sum()


class MatchingLoss(_ElementLoss):
    """The adversarial surrogate of the Hamming loss between complete matchings, for scores (b, n, n).

    ``target[i, j]`` is the column matched with row ``j``; padding takes the last rows and columns of an instance.
    Solved on the host, on as many threads as PyTorch uses: a device waits for two copies and for that.

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
        super().__init__(games.matching, smoothing=smoothing, tol=tol, reduction=reduction)


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
