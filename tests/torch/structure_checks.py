"""Laws of the kernels of matchings and trees, wherever they run: on a CUDA device, or on the host in its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

import nashlearn.torch as nt
from nashlearn import games
from nashlearn.kernels.matchings import certify_matchings
from nashlearn.kernels.tree_cuts import violated_cuts
from nashlearn.kernels.tree_game import certify


class Case(NamedTuple):
    """A structure: its loss, its game of n elements, columns beside those, and what a gap is held to at ``tol``."""

    loss: Callable[..., Any]
    game: Callable[[int], Any]
    extra: int
    enough: Callable[[int, float, float], float]

    def target(self, rng, m):
        """A label of m elements."""
        return self.game(m).argmax(rng.standard_normal((1, m, m + self.extra)))[0]


def _trees(single_root):
    return Case(
        lambda *a, **s: nt.ArborescenceLoss(*a, single_root=single_root, **s),
        lambda n: games.arborescence(n, single_root=single_root),
        1,
        lambda n, mu, tol: 10 * tol * (1 + n * (1 + mu)),
    )


CASES = {
    "matchings": Case(nt.MatchingLoss, games.matching, 0, lambda n, mu, tol: tol * (1 + n)),
    "trees, one root": _trees(True),
    "trees": _trees(False),
}


def batch(case, lengths, n, spread, device, seed=0, dtype=torch.float64):
    """Padded scores, whose padding is NaN, targets and mask."""
    rng = np.random.default_rng(seed)
    scores, target = np.full((len(lengths), n, n + case.extra), np.nan), np.full((len(lengths), n), -5)
    for i, m in enumerate(lengths):
        scores[i, :m, : m + case.extra] = spread * rng.standard_normal((m, m + case.extra))
        if m:
            target[i, :m] = case.target(rng, m)
    mask = np.arange(n) < np.array(lengths)[:, None]
    return (torch.tensor(scores, dtype=dtype, device=device).requires_grad_(), torch.tensor(target, device=device),
            torch.tensor(mask, device=device))  # fmt: skip


def on_polytope(case, x, rounding):
    """Assert that x (m, m + extra) is a mixture of structures up to rounding."""
    m = len(x)
    assert x.min() >= 0
    assert np.abs(x.sum(1) - 1).max() <= rounding
    if not case.extra:
        assert np.abs(x.sum(0) - 1).max() <= rounding
        return
    assert not x[np.arange(m), np.arange(1, m + 1)].any()
    if case.game(m).labels.single_root:
        assert abs(x[:, 0].sum() - 1) <= rounding
    assert violated_cuts(np.ascontiguousarray(x), np.zeros((m, m), np.bool_), rounding) == 0


def bounds(case, scores, mu, p, q):
    """Upper and lower bound of a game's value from strategies, by best replies to them."""
    m = len(scores)
    if case.extra:
        theta = scores.copy()
        theta[np.arange(m), np.arange(1, m + 1)] = -np.inf
        return certify(*(np.ascontiguousarray(x)[..., None] if x.ndim == 2 else x for x in (theta, np.ones(m))),
                       mu, case.game(m).labels.single_root, p[..., None].copy(), q[..., None].copy())[:2]  # fmt: skip
    gap = np.empty(1)
    certify_matchings((scores + mu / 2)[None], np.ones((m, m)), False, mu, p[None].copy(), q[None].copy(), gap)
    best = case.game(m).argmax(q[None])
    lower = ((scores + mu / 2) * q).sum() + m - (case.game(m).vertex(best)[0] * q).sum() - mu / 2 * (q * q).sum()
    return lower + gap[0], lower


def values_and_gradients(case, device, lengths, n, spread, smoothing, dtype=torch.float64):
    """Losses are the NumPy game's up to both gaps; q - y is a subgradient within its gap, and 0 in the padding."""
    scores, target, mask = batch(case, lengths, n, spread, device, dtype=dtype)
    loss = case.loss(smoothing, reduction="none")
    value = loss(scores, target, mask)
    (2 * value.sum()).backward()
    found = loss.solve(scores, mask)
    assert not found.on_host.any()
    single = dtype != torch.float64
    near = 1e-9 + single * 1e-4 * (1 + spread)
    for i, m in enumerate(lengths):
        change = scores.grad[i].double().cpu().numpy() / 2
        assert not change[m:].any()
        assert not change[:, m + case.extra :].any()
        if not m:
            assert value[i] == 0
            continue
        game, own = case.game(m), np.s_[i, :m, : m + case.extra]
        x, y = scores.detach().double().cpu().numpy()[own], target.cpu().numpy()[i : i + 1, :m]
        right = game.solve(x[None], smoothing=smoothing)
        gap = found.gap[i].item()
        assert 0 <= gap <= case.enough(m, smoothing, loss.tol)
        assert abs(value[i].item() - game.loss_value(x[None], y, smoothing)[0]) <= gap + right.gap[0] + near
        assert abs(found.value[i].item() - right.value[0]) <= gap + right.gap[0] + near
        p, q = (part.double().cpu().numpy()[own].copy() for part in (found.p, found.q))
        for strategy in (p, q):
            on_polytope(case, strategy, 1e-6 if single else 1e-11)
        upper, lower = bounds(case, x, smoothing, p, q)
        assert upper - lower <= gap + near
        assert np.abs(change[:m, : m + case.extra] + game.vertex(y)[0] - q).max() <= 1e-6
        if smoothing:  # q is unique, up to the root of the gap
            assert np.abs(q - right.q[0]).max() <= 2 * np.sqrt((gap + right.gap[0]) / smoothing) + near


def ties(case, device):
    """Equal scores, and scores that leave several best structures."""
    for x in (torch.zeros(4, 4), torch.ones(4, 4).tril(), 3 * torch.eye(4), 3 * torch.eye(4).roll(1, 0)):
        scores = torch.cat([x.new_zeros(4, case.extra), x], 1)[None].double()
        found = case.loss().solve(scores.to(device))
        right = case.game(4).solve(scores.numpy())
        assert not found.on_host.any()
        assert abs(found.value.item() - right.value[0]) <= 1e-7


def what_the_kernel_leaves(case, device):
    """Forbidden parts, NaN and +inf are the host's, and counted as such; targets are refused by name."""
    scores, target, _ = batch(case, (3,) * 6, 3, 1.0, device)
    scores = scores.detach().clone()
    scores[1, 0, 2], scores[2, 2, 2], scores[3, 0, 0] = -torch.inf, torch.nan, torch.inf
    # A token is not its own head, whatever the score, unless that is no number.
    scores[4, 1, 2] = scores[4, 1, 2] if case.extra == 0 else -torch.inf
    scores[5, 1, 2] = torch.nan
    target[1] = torch.arange(3, device=device)  # the identity, or a chain of heads
    loss = case.loss(reduction="none")
    assert loss.solve(scores).on_host.tolist() == [False, True, True, True, False, True]
    value = loss(scores, target)
    assert value.isnan().tolist() == [False, False, True, True, False, True]
    forbidden = scores[1:2].cpu().numpy()
    right = case.game(3).solve(forbidden).value - np.trace(forbidden[0])
    assert abs(value[1].item() - right[0]) <= 1e-6
    wrong = target.clone()
    wrong[4] = torch.tensor([0, 2, 2] if case.extra == 0 else [2, 1, 0], device=device)
    impossible = scores[:2].clone()
    impossible[1, 0] = -torch.inf
    with pytest.raises(ValueError, match="forbid"):
        loss(impossible, target[:2])
    crooked = torch.ones(6, 3, dtype=torch.bool, device=device)
    crooked[4, 1] = False
    for bad, mask, name in (
        (wrong, None, r"target\[4\]"),
        (wrong - 1, None, r"target\["),
        (target, crooked, r"mask\["),
    ):
        with pytest.raises(ValueError, match=name):
            loss(scores, bad, mask)
