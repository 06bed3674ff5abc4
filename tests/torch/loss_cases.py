"""Inputs of the multiclass losses, and the games that they are compared with."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import nashlearn.torch as nt
from nashlearn import games

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
CUDA = pytest.param("cuda", marks=needs_cuda)
on_each_device = pytest.mark.parametrize("device", ["cpu", CUDA])

COSTS = np.array([[0.0, 2.0, 1.0, 3.0], [1.0, 0.0, 4.0, 1.0], [5.0, 1.0, 0.0, 2.0], [2.0, 2.0, 2.0, 0.0], [1.0] * 4])
POSITIONS = [-1.0, 0.5, 2.0, 6.0]
# For four classes: what the module is given, and the game it stands for.
FOUR = {
    "zero_one": (("zero_one", {}), games.zero_one(4)),
    "absolute": (("absolute", {}), games.absolute(4)),
    "absolute, values": (("absolute", {"values": POSITIONS}), games.absolute(4, POSITIONS)),
    "squared": (("squared", {}), games.squared(4)),
    "squared, values": (("squared", {"values": POSITIONS}), games.squared(4, POSITIONS)),
    "abstain": (("abstain", {"abstain_cost": 0.3}), games.abstain(4, 0.3)),
    "abstain, dear": (("abstain", {"abstain_cost": 0.7}), games.abstain(4, 0.7)),
    "abstain, free": (("abstain", {"abstain_cost": 0.0}), games.abstain(4, 0.0)),
    "cost": ((COSTS, {}), games.cost(COSTS)),
    "cost, as a tensor": ((torch.tensor(COSTS), {}), games.cost(COSTS)),
    "weighted game": ((games.zero_one(4, [1.0, 2.0, 0.5, 3.0]), {}), games.zero_one(4, [1.0, 2.0, 0.5, 3.0])),
    "ordinal game": ((games.squared(4, POSITIONS), {}), games.squared(4, POSITIONS)),
    "abstention game": ((games.abstain(4, 0.4), {}), games.abstain(4, 0.4)),
    "other game": ((games.abstain(4, [0.1, 0.2, 0.3, 0.4]), {}), games.abstain(4, [0.1, 0.2, 0.3, 0.4])),
}
every_loss = pytest.mark.parametrize("name", FOUR)
NAMED = {
    "zero_one": games.zero_one,
    "absolute": games.absolute,
    "squared": games.squared,
    "abstain": games.abstain,
}
TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-6, torch.bfloat16: 2e-2, torch.float16: 2e-3}


def module(name: str, smoothing: float = 0.0, **settings):
    loss, own = FOUR[name][0]
    return nt.NashLoss(loss, smoothing=smoothing, **own, **settings)


def draw(*shape, dtype=torch.float64, device="cpu", spread=1.0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return (spread * torch.randn(*shape, generator=generator, dtype=torch.float64)).to(dtype).to(device)


def labels(k, *shape, device="cpu", seed=1):
    return torch.randint(0, k, shape, generator=torch.Generator().manual_seed(seed)).to(device)


def expected(game, scores, y):
    """Losses and strategies of rows, in float64, by the NumPy game."""
    rows = scores.detach().double().cpu().numpy()
    return game.loss_value(rows, y.cpu().numpy()), game.solve(rows).q


def assert_near(tensor, array, dtype):
    array = np.asarray(array)
    error = np.abs(tensor.detach().double().cpu().numpy() - array).max(initial=0.0)
    assert error <= TOLERANCE[dtype] * max(1.0, np.abs(array).max(initial=0.0))
