"""The tempered PyTorch losses against the NumPy games, on the CPU and, where there is one, on a CUDA device."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra [torch]")

from head_cases import tempered as by_definition  # noqa: E402
from loss_cases import (  # noqa: E402
    FOUR,
    TOLERANCE,
    assert_near,
    draw,
    every_loss,
    labels,
    module,
    on_each_device,
)

import nashlearn.torch as nt  # noqa: E402
from nashlearn import games  # noqa: E402
from nashlearn.torch import tempered  # noqa: E402

every_smoothing = pytest.mark.parametrize("smoothing", [1e-2, 0.3, 1.0, 30.0])


def solved(game, scores, smoothing):
    """The equilibrium of rows in float64 by the NumPy game, certified."""
    found = game.solve(scores.detach().double().cpu().numpy(), smoothing=smoothing)
    assert found.gap.max(initial=0.0) <= 1e-9 * max(1.0, game.largest)
    return found


@on_each_device
@every_loss
@every_smoothing
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_values_and_gradients_are_the_tempered_games(name, smoothing, dtype, device):
    game = FOUR[name][1]
    scores = draw(65, 4, dtype=dtype, device=device, spread=2.0).requires_grad_()
    y = labels(4, 65, device=device)
    loss = module(name, reduction="none", smoothing=smoothing).to(device)
    value = loss(scores, y)
    assert value.dtype == dtype
    found = solved(game, scores, smoothing)
    factor = max(1.0, game.costs.max() / smoothing)  # what rounding of a score does to a probability
    truth = scores.detach().double().cpu().numpy()[np.arange(65), y.cpu()]
    assert np.abs(value.detach().double().cpu().numpy() - (found.value - truth)).max() <= 40 * TOLERANCE[dtype]
    value.sum().backward()
    change = found.q - np.eye(4)[y.cpu()]
    assert np.abs(scores.grad.double().cpu().numpy() - change).max() <= TOLERANCE[dtype] * factor
    q = loss.predict_proba(scores)
    assert q.dtype == dtype
    assert np.abs(q.double().cpu().numpy() - found.q).max() <= TOLERANCE[dtype] * factor


@on_each_device
@every_loss
@every_smoothing
def test_strategies_are_certified_and_the_loss_is_a_cost_and_a_log_loss(name, smoothing, device):
    """``F - f_y = <p, L_y> - mu log q_y``, and ``p`` takes options of least cost under ``q``."""
    game = FOUR[name][1]
    scores, y = draw(65, 4, device=device, spread=2.0), labels(4, 65, device=device)
    loss = module(name, reduction="none", smoothing=smoothing).to(device)
    p, q = loss.strategy(scores), loss.predict_proba(scores)
    assert p.shape == (65, game.n_options)
    assert_near(p.sum(1), np.ones(65), torch.float64)
    L = torch.as_tensor(game.costs, device=device)
    cost = q @ L.T
    assert ((p * cost).sum(1) - cost.amin(1)).max() <= 1e-9 * L.max()
    sure = q.gather(1, y[:, None])[:, 0]
    some = sure > 1e-200  # below, the logarithm has no digits left
    both = (p @ L).gather(1, y[:, None])[:, 0] - smoothing * sure.log()
    assert (loss(scores, y) - both)[some].abs().max() <= 1e-9 * max(1.0, smoothing)
    assert torch.equal(loss.predict(scores), p.argmax(1))


@on_each_device
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("k", [1, 2, 7, 33, 100, 1000, 9001])
@pytest.mark.parametrize("spread", [0.01, 1.0, 5.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_zero_one_of_every_class_count(k, spread, dtype, weighted, device):
    if weighted and device == "cpu":
        k = min(k, 2001)  # games with weights keep their matrix of costs on the host
    scores = draw(12, k, dtype=dtype, device=device, spread=spread)
    scores[3, 1:] = -torch.inf
    scores.requires_grad_()
    y = labels(k, 12, device=device)
    y[3] = 0
    weights = np.random.default_rng(k).uniform(0.3, 3.0, k) if weighted else None
    game = games.zero_one(k, weights)
    for smoothing in (0.3, 5.0):
        value = nt.functional.nash_loss(scores, y, game, reduction="none", smoothing=smoothing)
        found = solved(game, scores, smoothing)
        truth = scores.detach().double().cpu().numpy()[np.arange(12), y.cpu()]
        assert_near(value, found.value - truth, dtype)
        change = torch.autograd.grad(value.sum(), scores)[0]
        assert_near(change, found.q - (np.arange(k) == y.cpu().numpy()[:, None]), dtype)
        assert not change[3, 1:].any()


@on_each_device
@every_smoothing
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("offset", [0.0, 300.0, -300.0])
def test_long_rows_of_all_kinds(smoothing, dtype, offset, device):
    """Rows whose first scores say nothing of the rest, so that sums taken while they stream by run out of range."""
    k = 20000
    scores = draw(8, k, dtype=torch.float32, spread=3.0)
    scores[1, :3000] -= 200.0
    scores[2, -1] += 500.0
    scores[3, :5] += 500.0
    scores[4] = scores[4].round()
    scores[5] *= 1e-3
    scores[6, ::2] = -torch.inf
    scores = (scores + offset).to(dtype).to(device).requires_grad_()
    y = labels(k, 8).to(device)
    y[6] = 1
    value = nt.functional.nash_loss(scores, y, smoothing=smoothing, reduction="none")
    change = torch.autograd.grad(value.sum(), scores)[0].double().cpu()
    exact = scores.detach().double().cpu().requires_grad_()
    right = by_definition(exact, y.cpu(), smoothing, reduction="none")
    assert_near(value, right.detach().numpy(), dtype)
    slope = torch.autograd.grad(right.sum(), exact)[0]
    assert (change - slope).abs().max() <= TOLERANCE[dtype] + 2e-5 / smoothing


@on_each_device
@every_loss
@pytest.mark.parametrize("smoothing", [0.1, 1.0])
def test_gradcheck_everywhere(name, smoothing, device):
    """The tempered loss is differentiable, ties or not."""
    scores = draw(6, 4, device=device, spread=0.7, seed=3)
    scores[0] = 0.0
    y = labels(4, 6, device=device)
    loss = module(name, smoothing=smoothing).to(device)
    assert torch.autograd.gradcheck(lambda s: loss(s, y), scores.requires_grad_(), eps=1e-6, atol=1e-5)


@on_each_device
@every_loss
def test_both_limits(name, device):
    """No smoothing is the exact game; much smoothing is cross-entropy of the scores over it, plus a constant cost."""
    scores, y = draw(30, 4, device=device), labels(4, 30, device=device)
    exact, little = (module(name, smoothing=s, reduction="none").to(device)(scores, y) for s in (0.0, 1e-4))
    assert (little - exact).min() >= -1e-12
    assert (little - exact).max() <= 1e-4 * np.log(4) + 1e-12
    x = (1e4 * scores).requires_grad_()
    change = torch.autograd.grad(module(name, smoothing=1e4, reduction="sum").to(device)(x, y), x)[0]
    x = scores.clone().requires_grad_()
    right = torch.autograd.grad(torch.nn.functional.cross_entropy(x, y, reduction="sum"), x)[0]
    assert (change - right).abs().max() <= 1e-2


@on_each_device
@every_loss
def test_weights_ignored_targets_and_reductions(name, device):
    scores, y = draw(64, 4, device=device), labels(4, 64, device=device)
    y[::5] = -7
    weight = torch.tensor([1.0, 0.5, 2.0, 3.0], dtype=torch.float64, device=device)
    each = draw(64, device=device, seed=5).abs()
    found = solved(FOUR[name][1], scores, 0.3)
    one = np.eye(4)[y.clamp_min(0).cpu()]
    right = found.value - (scores.cpu().numpy() * one).sum(1)
    counted = (y != -7).cpu().numpy()
    share = counted * weight.cpu().numpy()[y.clamp_min(0).cpu()] * each.cpu().numpy()
    for reduction, wanted in (
        ("none", right * share),
        ("sum", (right * share).sum()),
        ("mean", (right * share).sum() / share.sum()),
    ):
        loss = module(name, reduction=reduction, ignore_index=-7, weight=weight, smoothing=0.3).to(device)
        x = scores.clone().requires_grad_()
        value = loss(x, y, sample_weight=each)
        assert np.abs(value.detach().cpu().numpy() - wanted).max() <= 1e-8
        value.sum().backward()
        scale = share / share.sum() if reduction == "mean" else share
        assert np.abs(x.grad.cpu().numpy() - scale[:, None] * (found.q - one)).max() <= 1e-8
        assert not x.grad[y == -7].any()


@on_each_device
@every_loss
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_bad_score_spoils_its_row_alone(name, bad, device):
    scores = draw(9, 4, device=device)
    scores[3, 1] = bad
    scores[5] = -float("inf")
    scores.requires_grad_()
    value = module(name, reduction="none", smoothing=0.3).to(device)(scores, labels(4, 9, device=device))
    value.sum().backward()
    spoilt = torch.zeros(9, dtype=torch.bool, device=device)
    spoilt[3] = spoilt[5] = True
    assert torch.equal(value.isnan(), spoilt)
    assert torch.equal(scores.grad.isnan().any(1), spoilt)


@on_each_device
@every_loss
def test_nothing_to_learn_from(name, device):
    loss = module(name, smoothing=0.3, reduction="sum").to(device)
    empty = torch.zeros(0, 4, device=device, requires_grad=True)
    value = loss(empty, torch.zeros(0, dtype=torch.long, device=device))
    assert value.item() == 0
    value.backward()
    assert empty.grad.shape == (0, 4)
    assert loss.predict_proba(empty).shape == (0, 4)
    assert loss.strategy(empty).shape == (0, FOUR[name][1].n_options)


@pytest.mark.parametrize("smoothing", [1e-3, 1e-2, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("shape", [(1, 3), (3, 1), (3, 3), (5, 4), (4, 12), (20, 20), (70, 66)])
def test_newtons_method_on_tensors_is_certified(shape, smoothing):
    """What CUDA runs for cost matrices, here on the CPU: feasible, and with no gap that certifies anything else."""
    rng = np.random.default_rng(shape[0])
    costs = torch.tensor(rng.lognormal(sigma=1.0, size=shape))
    scale = costs.max()
    for spread in (0.1, 1.0, 10.0):
        scores = draw(20, shape[1], spread=spread * scale.item(), seed=7)
        value, q, p = tempered.solve(scores, costs.flatten(), "cost", 0.0, smoothing * scale.item(), keep_p=True)
        assert (p >= 0).all()
        assert (p.sum(1) - 1).abs().max() <= 1e-12
        cost = q @ costs.T
        assert ((p * cost).sum(1) - cost.amin(1)).max() <= 1e-9 * scale
        upper = smoothing * scale * ((scores + p @ costs) / (smoothing * scale)).logsumexp(1)
        assert (upper - value).abs().max() <= 1e-9 * scale


def test_rows_that_are_done_stay_so_while_others_move():
    """However costs are rounded: a step from the optimum leads nowhere but away from it."""
    rng = np.random.default_rng(70)
    costs, scores = torch.tensor(rng.lognormal(size=(70, 66))), draw(20, 66, spread=0.1, seed=7)
    costs /= costs.max()
    for _ in range(40):
        rounded = costs * (1.0 + torch.tensor(rng.normal(scale=1e-15, size=costs.shape)))
        _, q, p = tempered.solve(scores, rounded.flatten(), "cost", 0.0, 1e-3, keep_p=True)
        cost = q @ rounded.T
        assert ((p * cost).sum(1) - cost.amin(1)).max() <= 1e-10


@pytest.mark.parametrize("smoothing", [1e-2, 0.3, 10.0])
@pytest.mark.parametrize("price", [0.0, 0.2, 0.5, 0.6, 2 / 3, 0.95, 1.0, 3.0])
@pytest.mark.parametrize("k", [1, 2, 3, 9])
def test_abstention_at_any_price_on_tensors(k, price, smoothing):
    game = games.abstain(k, price)
    for spread in (0.0, 0.3, 3.0):
        scores = draw(40, k, spread=spread)
        value, q, p = tempered.solve(scores, torch.empty(0), "abstain", price, smoothing, keep_p=True)
        assert (p.sum(1) - 1).abs().max() <= 1e-12
        assert (p >= 0).all()
        cost = q @ torch.as_tensor(game.costs).T
        assert ((p * cost).sum(1) - cost.amin(1)).max() <= 1e-10
        assert np.abs(value.numpy() - solved(game, scores, smoothing).value).max() <= 1e-9


@pytest.mark.parametrize("smoothing", [1e-2, 0.3, 10.0])
def test_weighted_labels_on_tensors(smoothing):
    weights = np.array([0.2, 1.0, 3.0, 0.7])
    game = games.zero_one(4, weights)
    scores = draw(40, 4, spread=2.0)
    value, q, p = tempered.solve(scores, torch.tensor(weights), "zero_one", 0.0, smoothing, keep_p=True)
    found = solved(game, scores, smoothing)
    assert np.abs(value.numpy() - found.value).max() <= 1e-10
    assert np.abs(q.numpy() - found.q).max() <= 1e-8
    assert np.abs(p.numpy() - found.p).max() <= 1e-8  # unique: the rows of the costs are independent
