"""The PyTorch losses against the NumPy games, on the CPU and, where there is one, on a CUDA device."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra [torch]")

from loss_cases import (  # noqa: E402
    FOUR,
    NAMED,
    TOLERANCE,
    assert_near,
    draw,
    every_loss,
    expected,
    labels,
    module,
    needs_cuda,
    on_each_device,
)

import nashlearn.torch as nt  # noqa: E402
from nashlearn import games  # noqa: E402


@on_each_device
@every_loss
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_values_gradients_and_predictions_are_the_games(name, dtype, device):
    game = FOUR[name][1]
    scores = draw(257, 4, dtype=dtype, device=device).requires_grad_()
    y = labels(4, 257, device=device)
    loss = module(name, reduction="none").to(device)
    value = loss(scores, y)
    assert value.dtype == dtype
    right, q = expected(game, scores, y)
    assert_near(value, right, dtype)
    (3 * value.sum()).backward()
    assert scores.grad.dtype == dtype
    # Half precision makes ties, where a game has many gradients: there the inequality below is the test.
    if dtype in (torch.float64, torch.float32):
        assert_near(scores.grad, 3 * (q - np.eye(4)[y.cpu()]), dtype)
    p = loss.predict_proba(scores)
    assert_near(p.sum(1), np.ones(257), dtype)
    upper = game.upper(scores.detach().double().cpu().numpy(), p.double().cpu().numpy())
    assert_near(torch.as_tensor(upper), right + scores.detach().double().cpu().numpy()[np.arange(257), y.cpu()], dtype)
    assert torch.equal(loss.predict(scores), p.argmax(1) if name != "zero_one" else scores.argmax(1))


@on_each_device
@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("k", [1, 2, 7, 33, 100, 1000])
@pytest.mark.parametrize("spread", [0.01, 1.0, 5.0])
def test_every_class_count(name, k, spread, device):
    scores = draw(37, k, device=device, spread=spread).requires_grad_()
    y = labels(k, 37, device=device)
    value = nt.functional.nash_loss(scores, y, name, reduction="sum", smoothing=0.0)
    value.backward()
    right, q = expected(NAMED[name](k), scores, y)
    assert_near(value, right.sum(), torch.float64)
    assert_near(scores.grad, q - np.eye(k)[y.cpu()], torch.float64)


@needs_cuda
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", ["zero_one", "abstain"])
@pytest.mark.parametrize("k", [8192, 9001, 40000])
@pytest.mark.parametrize("spread", [0.01, 1.0, 5.0])
def test_long_rows_on_cuda(name, k, spread, dtype):
    scores = draw(6, k, dtype=dtype, device="cuda", spread=spread).requires_grad_()
    y = labels(k, 6, device="cuda")
    value = nt.functional.nash_loss(scores, y, name, reduction="none", smoothing=0.0)
    value.sum().backward()
    on_host = scores.detach().double().cpu().requires_grad_()
    right = nt.functional.nash_loss(on_host, y.cpu(), reduction="none", smoothing=0.0) if name == "zero_one" else None
    if right is None:
        top = on_host.detach().topk(2, 1).values
        right = top[:, 0] + 0.5 * (1 - top[:, 0] + top[:, 1]).clamp_min(0) - on_host.gather(1, y.cpu()[:, None])[:, 0]
    assert_near(value, right.detach().numpy(), dtype)
    assert_near(scores.grad.double().sum(1), np.zeros(6), dtype)


@on_each_device
@every_loss
@pytest.mark.parametrize("shape", [(), (5,), (5, 3), (5, 3, 2)])
def test_shapes_are_those_of_cross_entropy(name, shape, device):
    full = (4,) if not shape else (shape[0], 4, *shape[1:])
    scores = draw(*full, device=device).requires_grad_()
    y = labels(4, *shape, device=device)
    loss = module(name, reduction="none").to(device)
    value = loss(scores, y)
    assert value.shape == torch.nn.functional.cross_entropy(scores, y, reduction="none").shape
    rows = scores.detach().movedim(-1 if not shape else 1, -1).reshape(-1, 4)
    right, q = expected(FOUR[name][1], rows, y.reshape(-1))
    assert_near(value.reshape(-1), right, torch.float64)
    value.sum().backward()
    change = torch.as_tensor(q - np.eye(4)[y.reshape(-1).cpu()])
    assert_near(scores.grad.movedim(-1 if not shape else 1, -1).reshape(-1, 4), change, torch.float64)
    assert loss.predict(scores).shape == y.shape
    options = FOUR[name][1].n_options
    assert loss.predict_proba(scores).shape == ((options,) if not shape else (shape[0], options, *shape[1:]))


@on_each_device
@every_loss
def test_gradcheck_off_ties(name, device):
    scores = draw(6, 4, device=device, spread=0.7, seed=3).requires_grad_()
    y = labels(4, 6, device=device)
    assert torch.autograd.gradcheck(lambda s: module(name).to(device)(s, y), scores, eps=1e-6, atol=1e-6)


@on_each_device
@every_loss
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_subgradient_inequality_at_ties(name, dtype, device):
    tied = (draw(200, 4).mul(2).round() / 2).to(dtype).to(device).requires_grad_()
    elsewhere = (draw(200, 4, seed=9).mul(4).round() / 4).to(dtype).to(device)
    y = labels(4, 200, device=device)
    loss = module(name, reduction="none").to(device)
    value = loss(tied, y)
    value.sum().backward()
    plane = value.double() + (tied.grad.double() * (elsewhere - tied).double()).sum(1)
    assert (loss(elsewhere.double(), y) - plane).min() >= -TOLERANCE[dtype] * 20


@on_each_device
@every_loss
def test_weights_ignored_targets_and_reductions(name, device):
    scores = draw(64, 4, device=device)
    y = labels(4, 64, device=device)
    y[::5] = -7
    weight = torch.tensor([1.0, 0.5, 2.0, 3.0], dtype=torch.float64, device=device)
    each = draw(64, device=device, seed=5).abs()
    right, q = expected(FOUR[name][1], scores, y.clamp_min(0))
    counted = (y != -7).cpu().numpy()
    share = counted * weight.cpu().numpy()[y.clamp_min(0).cpu()] * each.cpu().numpy()
    for reduction, wanted in (
        ("none", right * share),
        ("sum", (right * share).sum()),
        ("mean", (right * share).sum() / share.sum()),
    ):
        loss = module(name, reduction=reduction, ignore_index=-7, weight=weight).to(device)
        x = scores.clone().requires_grad_()
        value = loss(x, y, sample_weight=each)
        assert_near(value, wanted, torch.float64)
        value.sum().backward()
        scale = share / share.sum() if reduction == "mean" else share
        assert_near(x.grad, scale[:, None] * (q - np.eye(4)[y.clamp_min(0).cpu()]), torch.float64)
        assert not x.grad[y == -7].any()


@on_each_device
@pytest.mark.parametrize("name", NAMED)
def test_nothing_to_learn_from(name, device):
    empty = torch.zeros(0, 4, device=device, requires_grad=True)
    none = torch.zeros(0, dtype=torch.long, device=device)
    assert nt.functional.nash_loss(empty, none, name, smoothing=0.0, reduction="sum").item() == 0
    assert nt.functional.nash_loss(empty, none, name, smoothing=0.0).isnan()
    assert nt.functional.nash_loss(empty, none, name, smoothing=0.0, reduction="none").shape == (0,)
    nt.functional.nash_loss(empty, none, name, smoothing=0.0, reduction="sum").backward()
    assert empty.grad.shape == (0, 4)
    ignored = torch.full((3,), -100, device=device)
    scores = torch.zeros(3, 4, device=device, requires_grad=True)
    assert nt.functional.nash_loss(scores, ignored, name, smoothing=0.0).isnan()
    nt.functional.nash_loss(scores, ignored, name, smoothing=0.0, reduction="sum").backward()
    assert not scores.grad.any()


@on_each_device
@every_loss
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_bad_score_spoils_its_row_alone(name, bad, device):
    scores = draw(9, 4, device=device)
    scores[3, 1] = bad
    scores[5] = -float("inf")
    scores.requires_grad_()
    value = module(name, reduction="none").to(device)(scores, labels(4, 9, device=device))
    value.sum().backward()
    spoilt = torch.zeros(9, dtype=torch.bool, device=device)
    spoilt[3] = spoilt[5] = True
    assert torch.equal(value.isnan(), spoilt)
    assert torch.equal(scores.grad.isnan().any(1), spoilt)


@on_each_device
@every_loss
def test_minus_infinity_rules_a_class_out(name, device):
    scores = draw(50, 4, device=device)
    scores[::2, 2] = -float("inf")
    y = labels(2, 50, device=device)
    right, _ = expected(FOUR[name][1], scores, y)
    scores.requires_grad_()
    value = module(name, reduction="none").to(device)(scores, y)
    assert_near(value, right, torch.float64)
    value.sum().backward()
    assert not scores.grad[::2, 2].any()


@on_each_device
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_gradients_at_ties_of_weighted_labels_have_no_mass(dtype, device):
    """``q`` and ``y`` are distributions, so their difference sums to 0, whichever labels rounding lets in."""
    scores = torch.tensor([[0.0, -1.0]], dtype=dtype, device=device)
    for weight in range(1, 200):
        x = scores.clone().requires_grad_()
        nt.NashLoss(games.zero_one(2, [float(weight), 1.0]), smoothing=0.0)(
            x, torch.tensor([0], device=device)
        ).backward()
        assert abs(x.grad.sum().item()) <= 4 * torch.finfo(dtype).eps
        assert x.grad.abs().max().item() <= 1.0


@on_each_device
@pytest.mark.parametrize("k", [3, 100, 9000])
def test_gradients_at_ties_have_no_mass(k, device):
    """Scores on a grid: many labels lie at the threshold, up to rounding, of short rows and of long ones."""
    rng = np.random.default_rng(k)
    scores = torch.tensor(rng.integers(-30, 1, size=(64, k)) / rng.integers(1, 30, size=(64, 1)), device=device)
    for loss in ("zero_one", games.zero_one(k, rng.integers(1, 50, size=k).astype(float))):
        x = scores.clone().requires_grad_()
        nt.NashLoss(loss, reduction="sum", smoothing=0.0)(
            x, torch.zeros(64, dtype=torch.int64, device=device)
        ).backward()
        assert x.grad.sum(1).abs().max().item() <= 1e-12
