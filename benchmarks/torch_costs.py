"""Cost matrices on a CUDA device: the game and its gradient beside the zero-one loss there and the games of the host.

    python -m benchmarks torch_costs

The exact game and the tempered one. Steps on the device are timed as CUDA graphs where they can be recorded: up to 64
classes. Larger matrices are solved by tensor operations, which ask now and then whether any row still moves. The host's
time includes both copies. Copies to the host during a step are counted by the profiler.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

from benchmarks import report
from benchmarks.torch_losses import _graphed, _inputs, _step, interleaved

__all__ = ["run"]

SIZES = ((2**20, 10), (2**17, 30), (2**15, 64), (4096, 200))
SPREADS = (0.3, 1.0, 3.0)
SMOOTHINGS = (0.0, 0.1, 1.0)
HOST_ROWS = 2**12
WIDEST = 64


def _measured(b: int, k: int, spread: float, smoothing: float, repeats: int) -> dict[str, Any]:
    import numpy as np
    import torch

    import nashlearn.torch as nt

    L = np.random.default_rng(k).uniform(size=(k, k))
    np.fill_diagonal(L, 0.0)
    inputs = _inputs(b, k, spread, torch.float32)
    game, zero_one = (nt.NashLoss(loss, smoothing=smoothing).cuda() for loss in (L, "zero_one"))
    step = _step(game, inputs)
    found = _graphed(step, len(inputs)) if k <= WIDEST else step
    steps = {"cost matrix": found, "zero-one": _graphed(_step(zero_one, inputs), len(inputs))}
    with torch.no_grad():
        steps["predict_proba"] = lambda i: game.predict_proba(inputs[i % len(inputs)][0])
    took = interleaved(steps, repeats)
    some = [(x.detach()[:HOST_ROWS], y[:HOST_ROWS]) for x, y in inputs[:1]]
    on_host = nt.NashLoss(L, smoothing=smoothing)

    def by_host() -> Any:
        x = some[0][0].cpu().requires_grad_()
        return torch.autograd.grad(on_host(x, some[0][1].cpu()), x)[0].cuda()

    by_host()
    begin = time.perf_counter()
    for _ in range(3):
        by_host()
    torch.cuda.synchronize()
    took["host"] = (time.perf_counter() - begin) / 3 * b / HOST_ROWS
    each = nt.NashLoss(L, reduction="none", smoothing=smoothing).cuda()(some[0][0], some[0][1]).double().cpu()
    right = nt.NashLoss(L, reduction="none", smoothing=smoothing)(some[0][0].cpu().double(), some[0][1].cpu())
    record: dict[str, Any] = {"b": b, "k": k, "spread": spread, "smoothing": smoothing, "seconds": took}
    return record | {"error": float((each - right).abs().max()), "copies": _copies(step)}


def _copies(step: Callable[[int], Any]) -> int:
    """Copies from the device to the host during a step."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as watched:
        step(0)
        torch.cuda.synchronize()
    return sum(event.count for event in watched.key_averages() if "DtoH" in event.key)


def run(repeats: int = 5) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Tables and records of all sizes and spreads; needs a CUDA device."""
    import torch

    if not torch.cuda.is_available():
        raise SystemExit("torch_costs needs a CUDA device; its results stay as they are")
    records = []
    for (b, k), smoothing, spread in itertools.product(SIZES, SMOOTHINGS, SPREADS):
        if k > WIDEST and smoothing:
            continue
        records.append(_measured(b, k, spread, smoothing, repeats))
        took = {name: f"{seconds * 1e6:.0f} µs" for name, seconds in records[-1]["seconds"].items()}
        print(b, k, smoothing, spread, took, records[-1]["error"], records[-1]["copies"], flush=True)
        torch.cuda.empty_cache()
    device = {"name": torch.cuda.get_device_name(), "torch": torch.__version__, "cuda": torch.version.cuda}
    device["threads"] = torch.get_num_threads()
    rows = []
    for r in records:
        took = r["seconds"]
        rows.append(
            [
                f"{r['b']} × {r['k']}",
                f"{r['smoothing']:g}",
                f"{r['spread']:g}",
                report.seconds(took["cost matrix"]),
                report.seconds(took["predict_proba"]),
                f"{took['cost matrix'] / took['zero-one']:.1f}",
                f"{took['host'] / took['cost matrix']:.0f}",
                f"{r['error']:.0e}",
                str(r["copies"]),
            ]
        )
    note = (
        f"On one {device['name']} with PyTorch {device['torch']}. A matrix of uniform costs, 0 on the diagonal; scores "
        "N(0, s²) in float32; forward and backward. The host has the same processor's "
        f"{device['threads']} threads, and its time is scaled up from {HOST_ROWS} rows. The error is that of losses of "
        "single rows against the host in float64. Copies: from the device to the host, in a step. Zero-one has "
        "the same smoothing."
    )
    columns = ["scores", "smoothing", "s", "game and gradient", "predict_proba", "/ zero-one", "host / device"]
    columns += ["error", "copies"]
    return [report.table("Cost matrices on CUDA", note, columns, rows)], {"device": device, "records": records}
