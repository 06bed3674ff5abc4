"""Learn to find the same objects again in a second picture: the matching game beside the usual Hungarian + L1.

A network predicts from where an object stands, and from its noisy look, where it will stand in a second picture, whose
objects come in any order. Pairs are scored by the distance between predicted and seen positions. Three losses train
the same network from the same pairs of pictures:

- *Hungarian + L1*, as detectors of sets do: the best assignment of predictions is found, and its distances shrink. It
  is not told which object is which.
- *L1 of true pairs*: distances between objects that belong together.
- *matching game*: ``MatchingLoss`` on the scores of all pairs, for the share of objects that are found again.

    python examples/torch/set_matching.py [steps] [cpu | cuda]
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn

import nashlearn.torch as nt

OBJECTS = 8
MOVE = 0.5  # how far objects go


def pictures(count: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Objects (b, n, 4), their positions in the second picture (b, n, 2) in any order, and who is who (b, n)."""
    place = 2 * torch.rand(count, OBJECTS, 2, generator=generator) - 1
    kind = 2 * torch.rand(count, OBJECTS, 1, generator=generator) - 1
    turn = math.pi * kind.squeeze(2)  # objects move by their kind, most of which their look tells
    moved = place + MOVE * torch.stack([turn.cos(), turn.sin()], 2)
    moved = moved + 0.15 * torch.randn(moved.shape, generator=generator)
    look = kind + 0.1 * torch.randn(kind.shape, generator=generator)
    order = torch.rand(count, OBJECTS, generator=generator).argsort(1)
    partner = order.argsort(1)  # object i is at partner[i] of the second picture
    seen = moved.gather(1, order[:, :, None].expand(-1, -1, 2))
    return torch.cat([place, look, look.square()], 2), seen, partner


class Predictor(nn.Module):
    """Where objects will stand, and how much distances count."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
        self.scale = nn.Parameter(torch.zeros(()))

    def forward(self, objects: Tensor, seen: Tensor) -> tuple[Tensor, Tensor]:
        """L1 distances (b, n, n), and scores."""
        distance = (self.net(objects)[:, :, None] - seen[:, None]).abs().sum(3)
        return distance, -5 * self.scale.exp() * distance


def assigned(distance: Tensor) -> Tensor:
    """Best partners (b, n), by the Hungarian method on the host."""
    found = np.array([linear_sum_assignment(one)[1] for one in distance.detach().cpu().numpy()])
    return torch.as_tensor(found, device=distance.device)


def _of_pairs(distance: Tensor, partner: Tensor) -> Tensor:
    return distance.gather(2, partner[:, :, None]).mean()


_GAME = nt.MatchingLoss(smoothing=0.1, tol=1e-5)
LOSSES: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "Hungarian + L1": lambda distance, scores, partner: _of_pairs(distance, assigned(distance)),
    "L1 of true pairs": lambda distance, scores, partner: _of_pairs(distance, partner),
    "matching game": lambda distance, scores, partner: _GAME(scores, partner),
}


def train(name: str, steps: int, device: str = "cpu", seed: int = 0, batch: int = 64) -> tuple[float, float]:
    """The share of objects found again in new pictures, and seconds of a step."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed + 1)
    net = Predictor().to(device)
    optimiser = torch.optim.Adam(net.parameters(), lr=3e-3)
    begin = time.perf_counter()
    for _ in range(steps):
        objects, seen, partner = (x.to(device) for x in pictures(batch, generator))
        optimiser.zero_grad()
        LOSSES[name](*net(objects, seen), partner).backward()
        optimiser.step()
    seconds = (time.perf_counter() - begin) / max(steps, 1)
    objects, seen, partner = (x.to(device) for x in pictures(500, torch.Generator().manual_seed(99)))
    with torch.no_grad():
        right = assigned(net(objects, seen)[0]) == partner
    return right.float().mean().item(), seconds


def main() -> None:
    """Train with each loss and print what comes of it."""
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    device = sys.argv[2] if len(sys.argv) > 2 else "cuda" if torch.cuda.is_available() else "cpu"
    for name in LOSSES:
        runs = [train(name, steps, device, seed) for seed in range(3)]
        shares = ", ".join(f"{100 * share:.1f}" for share, _ in runs)
        took = min(seconds for _, seconds in runs)
        print(f"{name:>16}: {shares} % found again, {1e3 * took:.1f} ms a step")


if __name__ == "__main__":
    main()
