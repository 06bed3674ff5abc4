"""The CUDA kernels of cost matrices, exact and tempered, played by the host, against the compiled games."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

torch = pytest.importorskip("torch", reason="needs the extra [torch]")

from cuda_on_host import HostKernel, needs_compiler  # noqa: E402
from loss_cases import draw, labels  # noqa: E402

from nashlearn import games  # noqa: E402
from nashlearn.torch import device_costs  # noqa: E402

pytestmark = needs_compiler
SIZES = [(1, 1), (1, 3), (3, 1), (3, 5), (10, 10), (16, 16), (17, 5), (30, 30), (33, 64), (64, 64)]
SMOOTHING = [0.0, 0.01, 0.3, 100.0]
NEAR = {torch.float64: 1e-9, torch.float32: 1e-5, torch.bfloat16: 1e-5, torch.float16: 1e-5}


@pytest.fixture(autouse=True)
def _by_the_host(monkeypatch):
    monkeypatch.setattr(device_costs, "Kernel", HostKernel)
    monkeypatch.setattr(device_costs, "game", device_costs.Game)


def play(L, scores, y, smoothing, *, weight=None, ignore_index=-100, reduce=False, seed=0, steps=None, passes=2):
    """Losses of rows, or sums of each block; ``q``, ``p``."""
    costs, n = torch.tensor(L, dtype=torch.float64), len(scores)
    (m, k), kind = costs.shape, torch.float64 if scores.dtype == torch.float64 else torch.float32
    game = device_costs.Game(k, m, scores.dtype, smoothing > 0)
    game.kernels = game.kernels[:passes]
    for kernel in game.kernels:
        kernel.seed = seed
        kernel.constants += () if steps is None else (("STEPS", steps),)
    out = torch.full((n,), 7.0, dtype=kind)
    numbers = torch.full((n * k + 1 + 2 * -(-n // game.rows),), 7.0, dtype=kind)
    p = torch.full((n, m), 7.0, dtype=kind)
    tensors = (scores, y, weight, costs, out, None, numbers)
    game(n, tensors, (ignore_index,), reduce, smoothing, p)
    sums = numbers[n * k + 1 :].view(2, -1)
    return (sums if reduce else out), numbers[: n * k].view(n, k), p


def checked(L, scores, value, q, p, smoothing, near):
    """Strategies are distributions without a gap, and the value is that of the game."""
    game = games.cost(L)
    x = scores.double().numpy()
    right = game.solve(x, smoothing=smoothing)
    assert np.abs(value - right.value).max() <= near * max(1.0, np.abs(x[np.isfinite(x)]).max(), right.value.max())
    q, p = q.double().numpy(), p.double().numpy()
    assert (q >= 0).all() and (p >= 0).all()
    assert np.abs(q.sum(1) - 1).max() <= near and np.abs(p.sum(1) - 1).max() <= near
    paid = (q @ L.T) * p
    least = (q @ L.T).min(axis=1)
    if smoothing:
        assert (paid.sum(1) - least).max() <= near * max(1.0, L.max())
        assert np.abs(q - right.q).max() <= near * max(1.0, L.max() / smoothing)
    else:
        assert (game.upper(x, p) - game.lower(x, q)).max() <= near * max(1.0, L.max())


@pytest.mark.parametrize("smoothing", SMOOTHING)
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_values_and_strategies_are_the_games(size, smoothing, dtype):
    k, m = size
    L = np.random.default_rng(k + m).uniform(0, 4, (m, k))
    many = 9 if m * k < 1000 else 3
    for spread in (0.0, 0.3, 8.0) if m * k < 1000 else (0.5,):
        scores, y = draw(many, k, dtype=dtype, spread=spread), labels(k, many)
        if k > 2:
            scores[::3, 1] = -torch.inf
            y[::3] = 0
        loss, q, p = play(L, scores, y, smoothing)
        value = loss.double().numpy() + scores.double().gather(1, y[:, None])[:, 0].numpy()
        checked(L, scores, value, q, p, smoothing, NEAR[dtype])


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("dtype", NEAR)
def test_scores_of_every_type(dtype, smoothing):
    L = np.random.default_rng(0).uniform(0, 2, (5, 4))
    scores, y = draw(70, 4, dtype=dtype, spread=2.0), labels(4, 70)
    scores[3, 1], scores[4, 2] = -torch.inf, 6e-5  # the last is subnormal in float16
    y[3] = 0
    loss, q, p = play(L, scores, y, smoothing)
    value = loss.double().numpy() + scores.double().gather(1, y[:, None])[:, 0].numpy()
    checked(L, scores, value, q, p, smoothing, NEAR[dtype])


@st.composite
def instances(draw):
    """Costs and scores on grids, where ties abound, or anywhere."""
    entry = st.integers(0, 3).map(float) | st.floats(0, 10, width=32)
    score = st.integers(-3, 3).map(float) | st.floats(-20, 20, width=32) | st.just(-np.inf)
    L, x = draw(arrays(float, (4, 5), elements=entry)), draw(arrays(float, (6, 5), elements=score))
    x[:, 0] = np.where(np.isfinite(x).any(axis=1), x[:, 0], 0.0)
    return L, x, draw(st.sampled_from([0.0, 1e-2, 1.0]))


@settings(deadline=None)
@given(instances())
def test_ties_and_anything(instance):
    L, x, smoothing = instance
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device_costs, "Kernel", HostKernel)
        best = torch.tensor(x.argmax(axis=1))
        loss, q, p = play(L, torch.tensor(x), best, smoothing)
    checked(L, torch.tensor(x), loss.numpy() + x.max(axis=1), q, p, smoothing, 1e-8)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_weights_ignored_labels_sums_and_strangers(smoothing):
    L = np.random.default_rng(0).uniform(0, 2, (6, 10))
    scores, y = draw(300, 10), labels(10, 300)
    weight = draw(300, seed=3).abs()
    y[::7] = -5
    each, q, _ = play(L, scores, y, smoothing, ignore_index=-5)
    assert not each[::7].any()
    sums = play(L, scores, y, smoothing, weight=weight, ignore_index=-5, reduce=True)[0]
    assert len(sums[0]) > 1
    counted = y != -5
    assert np.isclose(sums[0].sum(), (each * weight).sum(), rtol=1e-12)
    assert np.isclose(sums[1].sum(), weight[counted].sum(), rtol=1e-12)
    y[3], y[4] = 10, -1
    strange = play(L, scores, y, smoothing, ignore_index=-5)[0]
    assert strange.isnan().nonzero()[:, 0].tolist() == [3, 4]
    both = device_costs.strategies(scores, torch.tensor(L), smoothing)
    assert torch.equal(both[0], q)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_rows_without_a_value_are_nan_alone(smoothing):
    L, scores, y = 1.0 - np.eye(12), draw(40, 12), labels(12, 40)
    scores[7, 3], scores[9], scores[11, 2] = torch.nan, -torch.inf, torch.inf
    bad = torch.zeros(40, dtype=torch.bool)
    bad[[7, 9, 11]] = True
    for part in play(L, scores, y, smoothing):
        assert torch.equal(part.isnan().reshape(40, -1).any(1), bad)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("size", [(5, 5), (64, 33)], ids=str)
def test_nothing_depends_on_the_order_of_threads(size, smoothing):
    k, m = size
    L = np.random.default_rng(1).uniform(0, 2, (m, k))
    many = 300 // k
    scores, y = draw(many, k), labels(k, many)
    for reduce in (False, True):
        right = play(L, scores, y, smoothing, reduce=reduce)
        for seed in (1, 2, 3):
            for one, other in zip(play(L, scores, y, smoothing, reduce=reduce, seed=seed), right, strict=True):
                assert torch.equal(one, other)


def test_alike_and_free_options():
    """Options that are copies of one another, and costs that are all 0."""
    L = np.repeat(np.random.default_rng(2).uniform(0, 2, (2, 6)), 3, axis=0)
    scores, y = draw(15, 6), labels(6, 15)
    for costs in (L, np.zeros((3, 6)), np.full((3, 6), 2.5)):
        for smoothing in (0.0, 0.2):
            loss, q, p = play(costs, scores, y, smoothing)
            value = loss.numpy() + scores.gather(1, y[:, None])[:, 0].numpy()
            checked(costs, scores, value, q, p, smoothing, 1e-9)


@pytest.mark.parametrize("smoothing", [0.0, 0.05])
@pytest.mark.parametrize("steps", [0, 1, 2])
def test_strategies_that_are_no_equilibria_are_not_certified(smoothing, steps):
    """A method that is broken off: what still has a value has the game's, and the rest is NaN."""
    L = np.random.default_rng(4).uniform(0, 3, (9, 8))
    scores, y = draw(120, 8, spread=0.5), labels(8, 120)
    loss, q, p = play(L, scores, y, smoothing, steps=steps)
    lost = loss.isnan()
    assert lost.any()
    assert torch.equal(q.isnan().any(1), lost) and torch.equal(p.isnan().any(1), lost)
    if (~lost).any():
        right = games.cost(L).solve(scores[~lost].numpy(), smoothing=smoothing)
        value = (loss + scores.gather(1, y[:, None])[:, 0])[~lost].numpy()
        assert np.abs(value - right.value).max() <= 2e-6 * L.max()


def test_rows_that_single_precision_leaves_are_played_again():
    easy = np.random.default_rng(1).uniform(size=(10, 10))
    scores, y = draw(200, 10, dtype=torch.float32), labels(10, 200)
    assert not play(easy, scores, y, 0.0, passes=1)[0].isnan().any()
    L = np.exp(2 * np.random.default_rng(30).normal(size=(30, 30)))
    scores, y = draw(150, 30, dtype=torch.float32, spread=0.01 * L.max()), labels(30, 150)
    first = play(L, scores, y, 0.0, passes=1)[0]
    assert 0 < first.isnan().sum() < 75
    each, q, p = play(L, scores, y, 0.0)
    value = each.double().numpy() + scores.double().gather(1, y[:, None])[:, 0].numpy()
    checked(L, scores, value, q, p, 0.0, 2e-6 * L.max())
    sums = play(L, scores, y, 0.0, reduce=True)[0]
    assert np.isclose(sums[0].sum(), each.sum(), rtol=1e-5) and sums[1].sum() == 150
