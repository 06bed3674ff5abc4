"""Losses for PyTorch over the same games, on the CPU and on CUDA. Needs the extra ``torch``."""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        "nashlearn.torch needs PyTorch: pip install torch, or pip install '.[torch]' in a clone of nashlearn"
    ) from error

from nashlearn.torch import functional
from nashlearn.torch.game_loss import GameLoss
from nashlearn.torch.head import NashHead
from nashlearn.torch.losses import NashLoss
from nashlearn.torch.markov import MarkovLoss
from nashlearn.torch.structured import ArborescenceLoss, MatchingLoss

__all__ = [
    "ArborescenceLoss",
    "GameLoss",
    "MarkovLoss",
    "MatchingLoss",
    "NashHead",
    "NashLoss",
    "functional",
]
