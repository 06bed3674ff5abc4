"""The linear heads on a CUDA device: large sizes, skipped blocks, memory, graphs."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="needs the extra [torch]")

from head_cases import assert_near, both_losses, draw, needs_cuda, on_scores  # noqa: E402

import nashlearn.torch as nt  # noqa: E402
from nashlearn.torch import linear_products, linear_tempered  # noqa: E402


@needs_cuda
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_labels_out_of_range_give_nan_on_the_device(smoothing):
    head = nt.NashHead(4, 3, smoothing=smoothing, device="cuda")
    value = head(torch.zeros(2, 4, device="cuda"), torch.tensor([0, 3], device="cuda"))
    value.backward()
    assert value.isnan()


@needs_cuda
@both_losses
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("spread", [1e-6, 0.01, 0.3, 3.0])
@pytest.mark.parametrize(("n", "d", "k"), [(300, 200, 9001), (700, 96, 40000)])
def test_large_sizes_on_the_device(smoothing, dtype, spread, n, d, k):
    h, weight, bias, target = draw(n, d, k, spread, dtype, "cuda")
    value = nt.functional.linear_nash_loss(h, weight, target, bias, smoothing=smoothing)
    right, change = on_scores((h, weight, bias), target, smoothing)
    assert_near(value, right, dtype)
    scale = torch.tensor(2.0**12, dtype=dtype, device="cuda")
    dh, dw, db = torch.autograd.grad(value, (h, weight, bias), scale)
    if dtype != torch.float32 and spread < 0.1 and not smoothing:
        return  # supports then hang on single roundings of products, which chunks may take in another order
    for ours, theirs in ((dh, change @ weight.double()), (dw, change.t() @ h.double()), (db, change.sum(0))):
        # One more class in a support, by the order of a product's sums, moves a row by a few per cent.
        assert_near(ours, theirs * 2.0**12, dtype, 1 if dtype == torch.float32 or smoothing else 5)


@needs_cuda
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_dead_blocks_cost_at_most_one_rounding(dtype, monkeypatch):
    n, d, k = 600, 160, 3000
    h, weight, bias, target = draw(n, d, k, 0.3, dtype, "cuda")
    with torch.no_grad():  # rows like some blocks of classes and no others
        bias.sub_(40 * (torch.arange(k, device="cuda") // 256 % 4 != 1))
    target.copy_(target.where(target == -100, target % 256 + 256))
    leaves = (h, weight, bias)
    found, skipped, at = {}, [], linear_products.primitives(h.device)
    skipping = at.live_products
    monkeypatch.setattr(at, "live_products", lambda *given: skipped.append(share) or skipping(*given))
    monkeypatch.setattr(linear_tempered, "_WORTH_A_LOOK", 1)
    monkeypatch.setattr(linear_products, "_SMALLEST", 1)
    for share in (0.0, 2.0):
        monkeypatch.setattr(linear_tempered, "_WORTH_SKIPPING", share)
        value = nt.functional.linear_nash_loss(h, weight, target, bias, smoothing=0.3, reduction="sum")
        found[share] = torch.autograd.grad(value, leaves)
    assert skipped and set(skipped) == {2.0}
    unit = torch.finfo(dtype).eps
    largest = weight.detach().double().norm(dim=1).max()
    lost = (found[0.0][0] - found[2.0][0]).double().norm(dim=1)
    assert lost.max() <= unit * (largest + found[0.0][0].double().norm(dim=1).max()) * 8
    assert (found[0.0][1] - found[2.0][1]).double().norm() <= 8 * unit * found[0.0][1].double().norm()
    from nashlearn.torch import triton_tempered

    scores = torch.nn.functional.linear(h, weight, bias).detach()
    ones = torch.ones(n, device="cuda")
    some = triton_tempered.temper(scores.clone(), target, -100, 0.3, ones.clone(), ones, 2)
    live = triton_tempered.temper(scores, target, -100, 0.3, ones.clone(), ones, 1)
    assert 0 < live.float().mean() < 0.5
    assert torch.equal(some, live[::2])


@needs_cuda
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_no_more_than_a_rounding_unit_is_cut_off(dtype):
    from nashlearn.torch import triton_tempered

    n, k, smoothing = 40, 6000, 0.3
    unit = torch.finfo(dtype).eps / 2
    scores = (1.5 * torch.randn(n, k, generator=torch.Generator().manual_seed(0))).to(dtype).to("cuda")
    q = nt.functional.predict_proba(scores.double(), smoothing=smoothing)
    ones = torch.ones(n, device="cuda")
    triton_tempered.temper(scores, torch.zeros(n, dtype=torch.long, device="cuda"), -100, smoothing, ones, ones, 1)
    found, right = scores[:, 1:].double(), q[:, 1:]  # the first class is the label of all
    assert not found[right < 0.49 * unit / k].any()
    assert found[right > 1.01 * unit / k].all()
    assert (right < 0.49 * unit / k).any()


@needs_cuda
@both_losses
def test_the_device_keeps_no_scores(smoothing):
    n, d, k = 8192, 256, 32768
    h, weight, _, target = draw(n, d, k, 1.0, torch.bfloat16, "cuda")
    nt.functional.linear_nash_loss(h, weight, target, smoothing=smoothing).backward()
    h.grad = weight.grad = None
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    nt.functional.linear_nash_loss(h, weight, target, smoothing=smoothing).backward()
    assert torch.cuda.max_memory_allocated() - before < 1.02 * (n * k + n * d + k * d) * 2 / 2


@needs_cuda
@both_losses
def test_a_cuda_graph_records_it(smoothing):
    h, weight, bias, target = draw(200, 64, 9001, dtype=torch.float32, device="cuda")

    def step():
        value = nt.functional.linear_nash_loss(h, weight, target, bias, smoothing=smoothing)
        return value.detach(), *torch.autograd.grad(value, (h, weight, bias))

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        recorded = step()
    with torch.no_grad():
        h.copy_(draw(200, 64, 9001, dtype=torch.float32, device="cuda", seed=8)[0])
    graph.replay()
    for ours, theirs in zip(recorded, step(), strict=True):
        assert_near(ours, theirs.double(), torch.float32)


@needs_cuda
@both_losses
def test_a_cuda_graph_is_recorded_where_nothing_else_has_run(smoothing):
    """In a process of its own: other tests leave kernels and cuBLAS on the device, which recording cannot load."""
    one = f"{__file__}::test_a_cuda_graph_records_it[{smoothing}]"
    alone = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}  # of no worker
    line = [sys.executable, "-m", "pytest", "-q", one]
    done = subprocess.run(line, env=alone, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout
