"""Laws of the matchings' kernel, on a CUDA device or, as a script with TRITON_INTERPRET=1, by Triton's interpreter.

The interpreter runs the kernel's own code on the processor, entry by entry, so that sizes are small there.
"""

from __future__ import annotations

import numpy as np
import torch

import nashlearn.torch as nt
from nashlearn import games
from nashlearn.kernels.matchings import certify_matchings


def batch(lengths, n, spread, device, seed=0, dtype=torch.float64):
    """Padded scores, whose padding is NaN, targets and mask."""
    rng = np.random.default_rng(seed)
    scores, target = np.full((len(lengths), n, n), np.nan), np.full((len(lengths), n), -5)
    for i, m in enumerate(lengths):
        scores[i, :m, :m] = spread * rng.standard_normal((m, m))
        target[i, :m] = rng.permutation(m)
    mask = np.arange(n) < np.array(lengths)[:, None]
    return (torch.tensor(scores, dtype=dtype, device=device).requires_grad_(), torch.tensor(target, device=device),
            torch.tensor(mask, device=device))  # fmt: skip


def values_and_gradients(device, lengths, n, spread, smoothing, dtype=torch.float64):
    """Losses are the NumPy game's up to both gaps; q - y is a subgradient within its gap, and 0 in the padding."""
    scores, target, mask = batch(lengths, n, spread, device, dtype=dtype)
    loss = nt.MatchingLoss(smoothing, reduction="none")
    value = loss(scores, target, mask)
    (2 * value.sum()).backward()
    found = loss.solve(scores, mask)
    assert not found.on_host.any()
    near = 1e-9 if dtype == torch.float64 else 1e-4 * (1 + spread)
    for i, m in enumerate(lengths):
        change = scores.grad[i].double().cpu().numpy() / 2
        assert not change[m:].any()
        assert not change[:, m:].any()
        if not m:
            assert value[i] == 0
            continue
        game, own = games.matching(m), np.s_[i : i + 1, :m, :m]
        x, y = scores.detach().double().cpu().numpy()[own], target.cpu().numpy()[i : i + 1, :m]
        right = game.solve(x, smoothing=smoothing)
        gap = found.gap[i].item()
        assert 0 <= gap <= 1e-7 * (1 + m)
        assert abs(value[i].item() - game.loss_value(x, y, smoothing)[0]) <= gap + right.gap[0] + near
        assert abs(found.value[i].item() - right.value[0]) <= gap + right.gap[0] + near
        p, q = (part.double().cpu().numpy()[own].copy() for part in (found.p, found.q))
        for strategy in (p, q):
            assert strategy.min() >= 0
            assert np.abs(strategy.sum(1) - 1).max() <= 2e-8 + (dtype != torch.float64) * 1e-6
            assert np.abs(strategy.sum(2) - 1).max() <= 2e-8 + (dtype != torch.float64) * 1e-6
        certified = np.empty(1)
        certify_matchings(x + smoothing / 2, np.ones((m, m)), False, smoothing, p, q, certified)
        assert certified[0] <= gap + near + (dtype != torch.float64) * 1e-4
        assert np.abs(change[:m, :m] + game.vertex(y)[0] - q[0]).max() <= 1e-6
        if smoothing:  # q is unique, up to the root of the gap
            assert np.abs(q - right.q).max() <= 2 * np.sqrt((gap + right.gap[0]) / smoothing) + near


def ties(device):
    """Equal scores, and scores that leave several best matchings."""
    for x in (torch.zeros(1, 4, 4), torch.ones(1, 4, 4).tril(), torch.eye(4)[None].repeat(2, 1, 1) * 3):
        found = nt.MatchingLoss().solve(x.double().to(device))
        right = games.matching(4).solve(x.double().numpy())
        assert not found.on_host.any()
        assert np.abs(found.value.cpu().numpy() - right.value).max() <= 1e-8


def what_the_kernel_leaves(device):
    """Forbidden pairs, NaN, +inf and huge scores are the host's, and counted as such; targets are refused by name."""
    scores, target, _ = batch((3,) * 5, 3, 1.0, device)
    scores = scores.detach().clone()
    scores[1, 0, 1], scores[2, 2, 2], scores[3, 0, 0] = -torch.inf, torch.nan, torch.inf
    target[1] = torch.tensor([0, 1, 2], device=device)
    loss = nt.MatchingLoss(reduction="none")
    assert loss.solve(scores).on_host.tolist() == [False, True, True, True, False]
    value = loss(scores, target)
    assert value.isnan().tolist() == [False, False, True, True, False]
    forbidden, label = scores[1:2].cpu().numpy(), target[1:2].cpu().numpy()
    right = games.matching(3).solve(forbidden).value - np.take_along_axis(forbidden[0], label.T, 1).sum()
    assert abs(value[1].item() - right[0]) <= 1e-6
    wrong = target.clone()
    wrong[4] = torch.tensor([0, 2, 2], device=device)
    for bad in (wrong, wrong - 1):
        try:
            loss(scores, bad)
        except ValueError as error:
            assert "target[" in str(error)
            assert bad is not wrong or "target[4]" in str(error)
        else:
            raise AssertionError("a target that is no matching went through")


def main() -> None:
    """The laws by the interpreter."""
    from nashlearn.torch import ops

    ops.on_device = lambda device_type: True
    for smoothing in (0.0, 0.5):
        values_and_gradients("cpu", (3, 1, 0), 4, 1.0, smoothing)
    values_and_gradients("cpu", (3,), 3, 30.0, 0.0, torch.float32)
    ties("cpu")
    what_the_kernel_leaves("cpu")
    print("all laws hold")


if __name__ == "__main__":
    main()
