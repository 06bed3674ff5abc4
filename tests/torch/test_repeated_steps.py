"""Steps like earlier ones, whose launches on CUDA lack nothing but addresses, give what the first one gives."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra [torch]")

from loss_cases import COSTS, TOLERANCE, draw, labels, needs_cuda, on_each_device  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

import nashlearn.torch as nt  # noqa: E402
from nashlearn.torch import ops, repeated  # noqa: E402

LOSSES = {"zero_one": "zero_one", "absolute": "absolute", "squared": "squared", "abstain": "abstain", "cost": COSTS}
STEPS = 4  # the first ones find the launches


def both(loss, scores, y, **given):
    """The loss, and its gradient."""
    scores = scores.detach().requires_grad_()
    value = loss(scores, y, **given)
    return value.detach(), torch.autograd.grad(value, scores)[0]


def host(loss, smoothing, reduction):
    return nt.NashLoss(loss, smoothing=smoothing, reduction=reduction, ignore_index=2)


def assert_same(found, right, dtype):
    for ours, theirs in zip(found, right, strict=True):
        error = (ours.double().cpu() - theirs.double()).abs().max()
        assert error <= TOLERANCE[dtype] * max(1.0, theirs.abs().max())


@on_each_device
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("smoothing", [0.0, 0.5])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_step_is_right(name, smoothing, reduction, weighted, device):
    loss = host(LOSSES[name], smoothing, reduction)
    ours = host(LOSSES[name], smoothing, reduction).to(device)
    for seed in range(STEPS):
        scores, y = draw(50, 4, dtype=torch.float32, seed=seed), labels(4, 50, seed=seed)
        weight = draw(50, dtype=torch.float32, seed=seed + 9).abs() if weighted else None
        there = None if weight is None else weight.to(device)
        found = both(ours, scores.to(device), y.to(device), sample_weight=there)
        exact = None if weight is None else weight.double()
        assert_same(found, both(loss, scores.double(), y, sample_weight=exact), torch.float32)


@on_each_device
@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_steps_that_are_not_as_usual_are_right_too(smoothing, device):
    loss, ours = host("zero_one", smoothing, "mean"), host("zero_one", smoothing, "mean").to(device)
    scores, y = draw(50, 4, dtype=torch.float32), labels(4, 50)
    right = both(loss, scores.double(), y)
    for _ in range(STEPS):
        assert_same(both(ours, scores.to(device), y.to(device)), right, torch.float32)
    across = scores.t().contiguous().t().to(device)
    assert not across.is_contiguous()
    assert_same(both(ours, across, y.to(device)), right, torch.float32)
    beside = torch.cat([torch.zeros(1), scores.flatten()]).to(device)[1:].view(50, 4)  # begins four bytes later
    assert_same(both(ours, beside, y.to(device)), right, torch.float32)
    assert_same(both(ours, scores.to(device), y.to(device, torch.int32)), right, torch.float32)
    # What arrives is the third entry of another gradient.
    own = scores.to(device).requires_grad_()
    parts = [ours(own.detach(), y.to(device))] * 2 + [ours(own, y.to(device))]
    gradient = torch.autograd.grad(torch.stack(parts) @ torch.arange(1.0, 4.0, device=device), own)[0]
    assert_same([gradient], [3 * right[1]], torch.float32)


@on_each_device
def test_a_tensor_that_changed_since_is_refused(device):
    ours, y = nt.NashLoss().to(device), labels(4, 50, device=device)
    for _ in range(STEPS):
        scores = draw(50, 4, dtype=torch.float32, device=device).requires_grad_()
        own = scores * 1.0
        value = ours(own, y)
        value.backward(retain_graph=True)
    own.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        value.backward()


@on_each_device
@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_what_is_saved_for_the_gradient_may_be_kept_elsewhere(smoothing, device):
    loss, ours = host("zero_one", smoothing, "mean"), host("zero_one", smoothing, "mean").to(device)
    scores, y = draw(500, 40, dtype=torch.float32), labels(40, 500)
    right = both(loss, scores.double(), y)
    for _ in range(STEPS):
        own = scores.to(device).requires_grad_()
        with torch.autograd.graph.saved_tensors_hooks(lambda x: (x.device, x.cpu()), lambda kept: kept[1].to(kept[0])):
            value = ours(own * 1.0, y.to(device))
        spoilt = [torch.full_like(own, torch.nan) for _ in range(8)]  # in the room of what is not kept there
        assert_same([value.detach(), torch.autograd.grad(value, own)[0]], right, torch.float32)
        del spoilt


@on_each_device
@pytest.mark.parametrize("name", ["target", "sample_weight"])
def test_tensors_that_lie_elsewhere_are_refused_after_any_number_of_steps(name, device):
    ours, elsewhere = nt.NashLoss().to(device), "cpu" if device == "cuda" else "meta"
    for where in [device] * STEPS + [elsewhere]:
        scores = draw(50, 4, dtype=torch.float32, device=device).requires_grad_()
        given = {"target": labels(4, 50).to(device), "sample_weight": torch.ones(50, device=device)}
        given[name] = given[name].to(where)
        if where == device:
            ours(scores, **given).backward()
        else:
            with pytest.raises(ValueError, match=f"{name} must be on {device}"):
                ours(scores, **given)


class HostStep:
    """A step whose launches are operations of the host: what surrounds it is then tested without a device."""

    device = -1

    def __init__(self, settings):
        self.settings = settings

    def usual(self, addresses):
        return True

    def forward(self, scores, target, share):
        return ops._forward(scores, target, share, torch.empty(0), *self.settings)

    def backward(self, grad, scores, target, share, support, numbers):
        kept = (grad, scores, target, share, torch.empty(0), support, numbers)
        return ops._backward(*kept, *self.settings[:5])


@pytest.fixture
def steps(device, monkeypatch):
    """The steps that are kept, none to begin with; on the host those of float32, which no right answer is made in."""
    kept = {}
    monkeypatch.setattr(repeated, "_STEPS", kept)
    if device == "cpu":
        monkeypatch.setattr(torch.cuda, "current_device", lambda: HostStep.device)

        def known(scores, target, share, settings):
            if scores.dtype == torch.float32:
                kept[repeated._key(scores, target, share, settings)] = HostStep(settings)
            return True

        monkeypatch.setattr(repeated, "known", known)
    return kept


@on_each_device
@pytest.mark.parametrize("smoothing", [0.0, 0.5])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_a_forward_pass_that_is_repeated_saves_what_the_first_one_saved(smoothing, reduction, device, steps):
    h, w = (draw(*shape, dtype=torch.float32, seed=seed).to(device) for seed, shape in enumerate(((32, 8), (10, 8))))
    y = labels(10, 32).to(device)
    h.requires_grad_()

    def part(h, y):
        return nt.functional.nash_loss(h @ w.T, y, smoothing=smoothing, reduction=reduction)

    right = torch.autograd.grad(sum(part(a, b) for a, b in zip(h.chunk(4), y.chunk(4), strict=True)), h)[0]
    steps.clear()
    for _ in range(2):
        several = [checkpoint(part, a, b, use_reentrant=False) for a, b in zip(h.chunk(4), y.chunk(4), strict=True)]
        assert_same(torch.autograd.grad(sum(several), h), [right.cpu()], torch.float32)
    assert steps


@on_each_device
def test_a_step_is_kept_and_its_gradient_is_the_same_twice(device, steps):
    ours, scores, y = nt.NashLoss().to(device), draw(50, 4, dtype=torch.float32), labels(4, 50)
    right = both(nt.NashLoss(), scores.double(), y)
    for step in range(STEPS):
        assert bool(steps) == (step > 0)
        own = scores.to(device).requires_grad_()
        value = ours(own, y.to(device))
        for _ in range(2):
            gradient = torch.autograd.grad(value, own, retain_graph=True)[0]
            assert_same([value.detach(), gradient], right, torch.float32)
    assert len(steps) == 1


@on_each_device
def test_steps_that_differ_in_a_setting_alone_are_different(device, steps):
    scores, y = draw(50, 4, dtype=torch.float32), labels(4, 50)
    for _ in range(STEPS):
        for ignore_index in (1, 2):
            for price in (0.2, 0.4):
                settings = {"abstain_cost": price, "ignore_index": ignore_index, "smoothing": 0.0}
                right = both(nt.NashLoss("abstain", **settings), scores.double(), y)
                found = both(nt.NashLoss("abstain", **settings).to(device), scores.to(device), y.to(device))
                assert_same(found, right, torch.float32)
    assert len(steps) == 4


@needs_cuda
@pytest.mark.parametrize("device", ["cuda"])
def test_steps_under_autocast_are_others(device, steps):
    half, y = draw(50, 4, dtype=torch.float16).to(device), labels(4, 50).to(device)
    for _ in range(STEPS):
        for enabled, kind in ((True, torch.float32), (False, torch.float16)):
            own = half.detach().requires_grad_()
            with torch.autocast(device, enabled=enabled):
                value = nt.functional.nash_loss(own, y)
            value.backward()
            assert value.dtype == kind
    assert len(steps) == 2


@on_each_device
def test_settings_that_cannot_be_part_of_a_key_are_checked_like_others(device):
    scores, y = draw(5, 4, device=device), labels(4, 5, device=device)
    array = nt.functional.nash_loss(scores, y, smoothing=np.array(0.5))
    assert array == nt.functional.nash_loss(scores, y, smoothing=0.5)
    with pytest.raises(ValueError, match="reduction"):
        nt.functional.nash_loss(scores, y, reduction=["mean"])
