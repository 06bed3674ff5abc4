"""Learn to find the same objects again in a second picture: the matching game beside the usual Hungarian + L1.

A network predicts from where an object stands, and from its noisy look, what the second picture will measure of it: its
new position, and four rough measures of the old one. Objects come in any order there. Pairs are scored by the
distance between what is predicted and what is measured. Three losses train the same network from the same pictures:

- *Hungarian + L1*, as detectors of sets do: the best assignment of predictions is found, and its distances shrink. It
  is not told which object is which.
- *L1 of true pairs*: distances between objects that belong together.
- *matching game*: ``MatchingLoss`` on the scores of all pairs, for the share of objects that are found again. Only here
  do weights of the six measures matter to the loss, and so they are learned.

What the game gains, it gains by these weights: without the rough measures it has no advantage over the other two.

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
MEASURES = 6  # of an object in the second picture: its position, and rough ones


def pictures(count: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Objects (b, n, 4), their measures in the second picture (b, n, 6) in any order, and who is who (b, n)."""
    place = 2 * torch.rand(count, OBJECTS, 2, generator=generator) - 1
    kind = 2 * torch.rand(count, OBJECTS, 1, generator=generator) - 1
    turn = math.pi * kind.squeeze(2)  # objects move by their kind, most of which their look tells
    moved = place + 0.5 * torch.stack([turn.cos(), turn.sin()], 2)
    moved = moved + 0.15 * torch.randn(moved.shape, generator=generator)
    rough = place[:, :, :1] + 2 * torch.randn(count, OBJECTS, MEASURES - 2, generator=generator)
    look = kind + 0.1 * torch.randn(kind.shape, generator=generator)
    order = torch.rand(count, OBJECTS, generator=generator).argsort(1)
    partner = order.argsort(1)  # object i is at partner[i] of the second picture
    seen = torch.cat([moved, rough], 2).gather(1, order[:, :, None].expand(-1, -1, MEASURES))
    return torch.cat([place, look, look.square()], 2), seen, partner


class Predictor(nn.Module):
    """What will be measured of objects, and how much each measure counts."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, MEASURES))
        self.weight = nn.Parameter(torch.zeros(MEASURES))

    def forward(self, objects: Tensor, seen: Tensor) -> tuple[Tensor, Tensor]:
        """L1 distances (b, n, n), and scores, which weigh them."""
        apart = (self.net(objects)[:, :, None] - seen[:, None]).abs()
        return apart.sum(3), -apart @ (5 * self.weight.exp())


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
        right = assigned(-net(objects, seen)[1]) == partner
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
