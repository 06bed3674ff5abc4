"""Games of cost matrices by exchanges, in tensor operations and in kernels, against the compiled games of the host."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

torch = pytest.importorskip("torch", reason="needs the extra [torch]")

from loss_cases import draw, labels, needs_cuda, on_each_device  # noqa: E402

import nashlearn.torch as nt  # noqa: E402
from nashlearn import games  # noqa: E402
from nashlearn.torch import pivots  # noqa: E402

SIZES = [(1, 1), (1, 3), (3, 2), (10, 10), (16, 16), (17, 5), (30, 30), (33, 64), (64, 64), (65, 3), (90, 90)]


def costs_of(k, m, seed=0):
    return np.random.default_rng(seed).uniform(0, 4, (m, k))


def certified(game, scores, q, p, near):
    """Whether both strategies are distributions that leave no gap but rounding."""
    x, q, p = (part.detach().double().cpu().numpy() for part in (scores, q, p))
    assert (q >= 0).all() and (p >= 0).all()
    assert np.abs(q.sum(1) - 1).max() < near and np.abs(p.sum(1) - 1).max() < near
    assert (game.upper(x, p) - game.lower(x, q)).max() < near


@st.composite
def instances(draw):
    """Costs and scores on grids, where ties abound, or anywhere; some labels ruled out."""
    m, k, n = (draw(st.integers(1, size)) for size in (5, 6, 4))
    entry = st.integers(0, 3).map(float) | st.floats(0, 10, width=32)
    score = st.integers(-3, 3).map(float) | st.floats(-20, 20, width=32) | st.just(-np.inf)
    L, x = draw(arrays(float, (m, k), elements=entry)), draw(arrays(float, (n, k), elements=score))
    x[:, 0] = np.where(np.isfinite(x).any(axis=1), x[:, 0], 0.0)
    return L, x


@given(instances())
def test_exchanges_solve_any_game(instance):
    L, x = instance
    game = games.cost(L)
    value, q, p = pivots.solve(torch.tensor(x), torch.tensor(L), keep_p=True)
    assert np.abs(value.numpy() - game.solve(x).value).max() < 1e-9
    certified(game, torch.tensor(x), q, p, 1e-9)


def test_rows_are_split_where_tables_are_large(monkeypatch):
    L, x = torch.tensor(costs_of(5, 4)), draw(23, 5)
    right = pivots.solve(x, L, keep_p=True)
    monkeypatch.setattr(pivots, "_ENTRIES", 60)
    for one, other in zip(pivots.solve(x, L, keep_p=True), right, strict=True):
        assert torch.allclose(one, other, atol=1e-12)


@needs_cuda
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("spread", [0.01, 0.3, 30.0])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_values_gradients_and_strategies_on_cuda(size, spread, dtype):
    k, m = size
    L = costs_of(k, m)
    game, loss = games.cost(L), nt.NashLoss(L, reduction="none", smoothing=0.0).cuda()
    scores = draw(67, k, dtype=dtype, device="cuda", spread=spread)
    if k > 2:
        scores[::3, 1] = -torch.inf
    scores.requires_grad_()
    y = labels(k, 67, device="cuda") * 0
    value = loss(scores, y)
    value.sum().backward()
    x = scores.detach().double().cpu().numpy()
    near = {torch.float64: 1e-9, torch.float32: 1e-5, torch.bfloat16: 2e-2}[dtype] * max(1.0, spread)
    assert np.abs(value.detach().double().cpu().numpy() - game.loss_value(x, y.cpu().numpy())).max() < near
    q = (scores.grad + torch.nn.functional.one_hot(y, k)).clamp_min(0)
    certified(game, scores, q, loss.predict_proba(scores), 4 * near * (1 if dtype != torch.bfloat16 else k))


@on_each_device
def test_ties_and_rows_without_a_value(device):
    L = 1.0 - np.eye(12)
    scores = (draw(300, 12).mul(2).round() / 2).to(device)
    scores[7, 3], scores[9], scores[11, 2] = torch.nan, -torch.inf, torch.inf
    value, q, p = pivots.solve(scores, torch.tensor(L), keep_p=True)
    loss = nt.NashLoss(L, reduction="none", smoothing=0.0).to(device)
    y = labels(12, 300, device=device)
    found = loss(scores, y)
    bad = torch.zeros(300, dtype=torch.bool, device=device)
    bad[[7, 9, 11]] = True
    assert torch.equal(found.isnan(), bad) and torch.equal(value.isnan(), bad)
    assert torch.equal(loss.predict_proba(scores).isnan().any(1), bad)
    certified(games.cost(L), scores[~bad], q[~bad], p[~bad], 1e-9)
    right = games.cost(L).loss_value(scores[~bad].cpu().numpy(), y[~bad].cpu().numpy())
    assert np.abs(found[~bad].cpu().numpy() - right).max() < 1e-9


@needs_cuda
@pytest.mark.parametrize("size", [(10, 10), (70, 3)], ids=str)
def test_a_label_out_of_range_gives_nan_on_cuda(size):
    scores = draw(4, size[0], device="cuda")
    value = nt.NashLoss(costs_of(*size), reduction="none", smoothing=0.0).cuda()(
        scores, torch.tensor([0, 99, -100, 1], device="cuda")
    )
    assert value.isnan().tolist() == [False, True, False, False] and value[2] == 0


@needs_cuda
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_a_cuda_graph_replays_it_without_a_copy_to_the_host(reduction):
    loss = nt.NashLoss(costs_of(10, 10), reduction=reduction, smoothing=0.0).cuda()
    scores, y = draw(100, 10, device="cuda").requires_grad_(), labels(10, 100, device="cuda")

    def step():
        value = loss(scores, y)
        return value.detach(), torch.autograd.grad(value.sum(), scores)[0], loss.predict_proba(scores)

    step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):  # an error where the host is waited for
        recorded = step()
    with torch.no_grad():
        scores.copy_(draw(100, 10, device="cuda", seed=8))
    graph.replay()
    for one, other in zip(recorded, step(), strict=True):
        assert torch.equal(one, other)


@needs_cuda
@pytest.mark.parametrize("loss", ["squared", "abstain"])
@pytest.mark.parametrize("k", [2, 9, 64])
def test_strategies_without_a_closed_form_stay_on_cuda(loss, k):
    scores = draw(50, k, device="cuda")
    p = nt.functional.predict_proba(scores, loss, abstain_cost=0.8, smoothing=0.0)
    game = games.squared(k) if loss == "squared" else games.abstain(k, 0.8)
    x = scores.double().cpu().numpy()
    assert np.abs(game.upper(x, p.cpu().numpy()) - game.solve(x).value).max() < 1e-9 * k**2
