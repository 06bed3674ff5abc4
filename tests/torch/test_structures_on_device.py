"""Matchings and trees by their kernels, on a CUDA device and on the host in its place, and the host's part of the work.

The host plays the threads of a block one after the other, so that sizes are small there.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra [torch]")

import structure_checks as checks  # noqa: E402
from cuda_on_host import HostKernel, needs_compiler  # noqa: E402
from head_cases import needs_cuda  # noqa: E402

import nashlearn.torch as nt  # noqa: E402
from nashlearn.torch import device_games, game_loss, nvrtc  # noqa: E402

HOPPER = nvrtc.Memory(232448, 233472, 132)
every_case = pytest.mark.parametrize("name", checks.CASES)


def play_on_host(monkeypatch, memory=HOPPER, threads=64, **constants):
    """Kernels run on tensors in main memory, with so many threads in a block, compiled for constants of their own."""
    launches, trees = [device_games.Launch(n, threads, 1) for n in (32, 64)], device_games.trees
    more = tuple(constants.items())

    def changed(own):
        return replace(own, launches=tuple(launches), constants=own.constants + more) if threads else own

    monkeypatch.setattr(nvrtc, "available", lambda device_type: True)
    monkeypatch.setattr(nvrtc, "memory", lambda device: memory)
    monkeypatch.setattr(nvrtc, "Kernel", HostKernel)
    monkeypatch.setattr(device_games, "matchings", changed(device_games.matchings))
    monkeypatch.setattr(device_games, "trees", lambda single_root: changed(trees(single_root)))


@pytest.fixture(params=[pytest.param("cpu", marks=needs_compiler), pytest.param("cuda", marks=needs_cuda)])
def device(request, monkeypatch):
    """Where kernels run."""
    device_games._kernel.cache_clear()
    if request.param == "cpu":
        play_on_host(monkeypatch)
    yield request.param
    device_games._kernel.cache_clear()


@pytest.fixture
def host(monkeypatch):
    """Kernels run on the host, as the arguments say."""
    device_games._kernel.cache_clear()
    yield lambda *a, **b: play_on_host(monkeypatch, *a, **b)
    device_games._kernel.cache_clear()


@every_case
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 2.0])
@pytest.mark.parametrize(("lengths", "n"), [((1,), 1), ((2, 5, 1, 0, 7), 8)])
@pytest.mark.parametrize("spread", [0.1, 1.0, 10.0])
def test_values_gradients_and_gaps(name, device, lengths, n, spread, smoothing):
    checks.values_and_gradients(checks.CASES[name], device, lengths, n, spread, smoothing)


@every_case
@pytest.mark.parametrize(("lengths", "n"), [((35,), 35)])
def test_more_elements_than_a_warp_has_lanes(name, device, lengths, n):
    checks.values_and_gradients(checks.CASES[name], device, lengths, n, 0.3, 0.0)


@needs_cuda
@every_case
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize(("lengths", "n"), [((20, 17, 32, 2), 32), ((64, 33, 50), 64)])
@pytest.mark.parametrize("spread", [0.1, 1.0, 10.0])
def test_larger_games(name, lengths, n, spread, smoothing):
    checks.values_and_gradients(checks.CASES[name], "cuda", lengths, n, spread, smoothing)


@every_case
def test_single_precision_ties_and_what_the_kernel_leaves(name, device):
    case = checks.CASES[name]
    checks.values_and_gradients(case, device, (6, 3), 6, 1.0, 0.1, torch.float32)
    checks.ties(case, device)
    checks.what_the_kernel_leaves(case, device)


@every_case
@pytest.mark.parametrize("spread", [100.0, 1e4, 1e8])
def test_large_scores_are_right_whoever_solves_them(name, device, spread):
    case = checks.CASES[name]
    scores, _, mask = checks.batch(case, (7, 8, 5), 8, spread, device)
    found = case.loss(reduction="none").solve(scores, mask)
    right = nt.GameLoss(case.game)._solve_on_host(scores.cpu(), mask.cpu())[0]
    assert (found.value.cpu() - right).abs().max() <= 1e-5 + 1e-13 * spread
    assert spread > 1e4 or not found.on_host.any()


@pytest.mark.parametrize("structure", ["cycle", "cycles of two", "a tree"])
@pytest.mark.parametrize("name", ["trees, one root", "trees"])
def test_cuts_that_many_trees_need(name, device, structure):
    """Scores that would have cycles, and those of a margin: cuts are missing from the start, or none is."""
    case, n, rng = checks.CASES[name], 8, np.random.default_rng(0)
    head = {"cycle": np.arange(n) % n + 2, "cycles of two": (np.arange(n) ^ 1) + 1, "a tree": np.arange(n)}[structure]
    head[head > n] = 1
    x = rng.standard_normal((3, n, n + 1)) * np.array([0.1, 1.0, 1.0])[:, None, None]
    x[:, np.arange(n), head] += np.array([4.0, 4.0, 20.0])[:, None]
    found = case.loss().solve(torch.tensor(x, device=device))
    right = case.game(n).solve(x, tol=1e-9)
    assert not found.on_host.any()
    assert (np.abs(found.value.cpu().numpy() - right.value) <= found.gap.cpu().numpy() + right.gap + 1e-9).all()


def test_a_path_that_cuts_have_bent_begins_again_with_them(device):
    scores = 10.0 * torch.randn(400, 32, 33, generator=torch.Generator().manual_seed(3))[153:154]
    found = nt.ArborescenceLoss(tol=1e-9).solve(scores.to(device))
    assert not found.on_host.any()  # on the host in the device's place the first path ends with a gap of 1.1e-6
    assert found.gap.max() <= 1e-8 * (1 + 32)


@every_case
def test_more_than_the_kernel_takes_goes_to_the_host(name, device):
    case = checks.CASES[name]
    scores, target, _ = checks.batch(case, (65,), 65, 0.1, device)
    loss = case.loss()
    assert not loss._table.kernel.takes(scores, target)
    assert not loss._table.kernel.takes(scores[:, :8, : 8 + case.extra], target[:, :8].double())
    assert loss.solve(scores).on_host.all()


@needs_compiler
@every_case
def test_any_order_of_threads_and_any_place_of_the_strategies_give_the_same_bits(name, host, monkeypatch):
    case = checks.CASES[name]
    scores, _, mask = checks.batch(case, (7, 4), 7, 2.0, "cpu")
    found = []
    little = nvrtc.Memory(case.loss()._table.kernel.shared(7)[0], 10**9, 1)
    for seed, memory in ((0, HOPPER), (1, HOPPER), (2, HOPPER), (0, little)):
        host(memory, threads=0)
        monkeypatch.setattr(HostKernel, "seed", seed)
        found.append(case.loss(0.1).solve(scores, mask))
    for other in found[1:]:
        assert all(map(torch.equal, found[0], other))
    host(nvrtc.Memory(little.block - 16, 10**9, 1), threads=0)
    assert case.loss().solve(scores, mask).on_host.all()


@needs_compiler
@every_case
@pytest.mark.parametrize("iterations", [0, 1, 3])
@pytest.mark.parametrize("smoothing", [0.0, 0.5])
@pytest.mark.parametrize("seed", range(4))
def test_a_method_that_ends_early_knows_its_gap(name, host, iterations, smoothing, seed):
    case = checks.CASES[name]
    host(ITERATIONS=iterations)
    scores, target, mask = checks.batch(case, (6, 3, 2, 5), 6, 1.0 + seed, "cpu", seed)
    kernel = case.loss()._table.kernel
    loss, gap, change, p, solved = (x.detach().numpy() for x in kernel.play(scores, target, mask, smoothing, 1e-9))
    assert iterations > 1 or not solved.any()
    for i, m in enumerate((6, 3, 2, 5)):
        own = np.s_[i, :m, : m + case.extra]
        x, y = scores.detach().numpy()[own], case.game(m).vertex(target.numpy()[i : i + 1, :m])[0]
        right = case.game(m).solve(x[None], smoothing=smoothing)
        for strategy in (change[own] + y, p[own]):
            checks.on_polytope(case, np.maximum(strategy, 0.0), 1e-11)
        value = right.value[0] - (x * y).sum()
        assert loss[i] <= value + right.gap[0] + 1e-9
        assert loss[i] + gap[i] >= value - 1e-9
        upper, lower = checks.bounds(case, x, smoothing, p[own], change[own] + y)
        assert gap[i] >= upper - lower - 1e-9


@pytest.mark.parametrize("make", [nt.MatchingLoss, nt.ArborescenceLoss])
def test_the_host_takes_one_copy_each_way_and_shares_the_games_out(make, monkeypatch):
    copies, calls = [], []
    there, back, solve = game_loss.on_host, game_loss.from_host, game_loss._solve
    monkeypatch.setattr(game_loss, "on_host", lambda x: copies.append("to") or there(x))
    monkeypatch.setattr(game_loss, "from_host", lambda x, device: copies.append("from") or back(x, device))
    monkeypatch.setattr(game_loss, "_solve", lambda *a: calls.append((a[1].shape[1], len(a[1]))) or solve(*a))
    extra = make is nt.ArborescenceLoss
    lengths = [3, 5] * 12 + [2]
    scores = torch.randn(25, 5, 5 + extra, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    target = torch.arange(5).expand(25, 5)  # a chain of heads from the root, or the identity
    mask = torch.arange(5) < torch.tensor(lengths)[:, None]
    values, strategies = [], []
    for jobs, wanted in ((1, [(2, 1), (3, 12), (5, 12)]), (2, [(2, 1), *[(3, 3)] * 4, *[(5, 3)] * 4])):
        monkeypatch.setattr(torch, "get_num_threads", lambda jobs=jobs: jobs)
        copies.clear()
        calls.clear()
        values.append(make(0.1, reduction="none")(scores, target, mask))
        assert sorted(copies) == ["from", "to", "to", "to"]  # scores, target and mask
        assert sorted(calls) == wanted
        copies.clear()
        strategies.append(make(0.1).predict_proba(scores, mask))
        assert sorted(copies) == ["from", "to", "to"]
    assert torch.equal(*values)
    assert torch.equal(*strategies)
