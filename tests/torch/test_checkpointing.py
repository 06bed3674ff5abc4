"""Losses inside ``torch.utils.checkpoint``, which gives out what a forward pass has saved only once."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs the extra [torch]")

from loss_cases import draw, labels, on_each_device  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

import nashlearn.torch as nt  # noqa: E402
from nashlearn import games  # noqa: E402


def _head(**options):
    def make(device):
        weight, target = draw(7, 4, seed=1).to(device), labels(7, 9).to(device)
        loss = lambda h: nt.functional.linear_nash_loss(h, weight, target, **options)  # noqa: E731
        return loss, draw(9, 4).to(device)

    return make


def _structured(loss, shape, target):
    return lambda device: (lambda scores: loss.to(device)(scores, target.to(device)), draw(*shape).to(device))


def _chain(device):
    edge_scores, target = draw(2, 3, 3, seed=1).to(device), torch.tensor([[0, 1, 2], [2, 2, 0]]).to(device)
    loss = nt.MarkovLoss(smoothing=0.5).to(device)
    return lambda scores: loss(scores, edge_scores[0], target), draw(2, 3, 3).to(device)


CASES = {
    "rows": _structured(nt.NashLoss(), (9, 4), labels(4, 9)),
    "head, exact": _head(smoothing=0.0),
    "head, tempered": _head(smoothing=0.1),
    "head, each row": _head(smoothing=0.1, reduction="none"),
    "matchings": _structured(nt.MatchingLoss(), (3, 4, 4), torch.arange(4).repeat(3, 1)),
    "trees": _structured(nt.ArborescenceLoss(), (3, 4, 5), torch.arange(4).repeat(3, 1)),
    "chains": _chain,
    "a game": _structured(nt.GameLoss(games.cost([[0, 1, 2], [1, 0, 1]])), (5, 3), torch.tensor([0, 1, 2, 1, 0])),
}


@on_each_device
@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_gradients_are_the_same_with_a_forward_pass_that_is_repeated(name, reentrant, device):
    loss, x = CASES[name](device)
    x.requires_grad_()
    right = torch.autograd.grad(loss(x).sum(), x)[0]
    checkpoint(loss, x, use_reentrant=reentrant).sum().backward()
    assert torch.equal(x.grad, right)
