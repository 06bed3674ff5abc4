"""Matchings by their kernel, on a CUDA device and by Triton's interpreter, and the host's part of the work."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra [torch]")

import matching_checks as checks  # noqa: E402
from head_cases import needs_cuda  # noqa: E402

import nashlearn.torch as nt  # noqa: E402
from nashlearn.torch import game_loss  # noqa: E402


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")
def test_the_kernels_code_keeps_the_laws():
    here = Path(checks.__file__)
    environment = os.environ | {"TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
    run = subprocess.run([sys.executable, "-W", "ignore", here], env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "all laws hold" in run.stdout


@needs_cuda
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 2.0])
@pytest.mark.parametrize(("lengths", "n"), [((1,), 1), ((5, 1, 0, 16, 9), 16), ((20, 17, 32, 2), 32)])
@pytest.mark.parametrize("spread", [0.1, 1.0, 10.0])
def test_values_gradients_and_gaps(lengths, n, spread, smoothing):
    checks.values_and_gradients("cuda", lengths, n, spread, smoothing)


@needs_cuda
def test_single_precision_ties_and_what_the_kernel_leaves():
    checks.values_and_gradients("cuda", (20, 7, 12), 20, 1.0, 0.1, torch.float32)
    checks.ties("cuda")
    checks.what_the_kernel_leaves("cuda")


@needs_cuda
@pytest.mark.parametrize("spread", [100.0, 1e4, 1e8])
def test_large_scores_are_right_whoever_solves_them(spread):
    scores, target, mask = checks.batch((12, 20, 5), 20, spread, "cuda")
    value = nt.MatchingLoss(reduction="none")(scores, target, mask)
    right = nt.MatchingLoss(reduction="none")(scores.cpu(), target.cpu(), mask.cpu())
    assert (value.cpu() - right).abs().max() <= 1e-5 + 1e-13 * spread


@needs_cuda
def test_larger_ones_than_the_kernel_takes_go_to_the_host():
    scores, target, _ = checks.batch((40,), 40, 1.0, "cuda")
    loss = nt.MatchingLoss()
    assert loss.solve(scores).on_host.all()
    assert loss(scores, target).isfinite()


@pytest.mark.parametrize("make", [nt.MatchingLoss, nt.ArborescenceLoss])
def test_the_host_takes_one_copy_each_way_and_one_call_a_size(make, monkeypatch):
    copies, calls = [], []
    there, back, solve = game_loss.on_host, game_loss.from_host, game_loss._solve
    monkeypatch.setattr(game_loss, "on_host", lambda x: copies.append("to") or there(x))
    monkeypatch.setattr(game_loss, "from_host", lambda x, device: copies.append("from") or back(x, device))
    monkeypatch.setattr(game_loss, "_solve", lambda *a: calls.append(len(a[1])) or solve(*a))
    extra = make is nt.ArborescenceLoss
    lengths = np.array([3, 5, 3, 5, 5, 2])
    scores = torch.randn(6, 5, 5 + extra, generator=torch.Generator().manual_seed(0))
    target = torch.arange(5).expand(6, 5)  # a chain of heads from the root, or the identity
    make()(scores, target, torch.arange(5) < torch.tensor(lengths)[:, None])
    assert sorted(copies) == ["from", "to", "to", "to"]  # scores, target and mask
    assert sorted(calls) == [1, 2, 3]
