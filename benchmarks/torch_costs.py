"""Cost matrices in PyTorch on a CUDA device, exact and tempered, beside the zero-one loss and the games of the host.

    python -m benchmarks torch_costs

Steps on the device are timed as CUDA graphs where they can be recorded: up to 64 classes. Larger matrices are solved
by tensor operations, which ask now and then whether any row still moves. The host's time includes both copies.
"""

from __future__ import annotations

import time
from typing import Any

from benchmarks import report
from benchmarks.torch_losses import _graphed, _inputs, _step, interleaved

__all__ = ["run"]

SIZES = ((2**20, 10), (2**17, 30), (2**15, 64), (4096, 200))
SPREADS = (0.3, 1.0, 3.0)
SMOOTHING = (0.0, 1.0)
HOST_ROWS = 2**12
WIDEST = 64


def _copies(step: Any) -> int:
    """How many copies between host and device one step makes, by the profiler."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        step(0)
        torch.cuda.synchronize()
    return sum("Memcpy" in event.name and ("DtoH" in event.name or "HtoD" in event.name) for event in seen.events())


def _on_host(loss: Any, x: Any, y: Any) -> float:
    """Seconds of the same step by the host, with a copy of the scores there and of the gradient back."""
    import torch

    def once() -> Any:
        own = x.cpu().requires_grad_()
        return torch.autograd.grad(loss(own, y.cpu()), own)[0].cuda()

    once()
    begin = time.perf_counter()
    for _ in range(3):
        once()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / 3


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
    x, y = inputs[0][0].detach()[:HOST_ROWS], inputs[0][1][:HOST_ROWS]
    took["host"] = _on_host(nt.NashLoss(L, smoothing=smoothing), x, y) * b / HOST_ROWS
    each = nt.NashLoss(L, reduction="none", smoothing=smoothing).cuda()(x, y).double().cpu()
    right = nt.NashLoss(L, reduction="none", smoothing=smoothing)(x.cpu().double(), y.cpu())
    return {
        "b": b,
        "k": k,
        "spread": spread,
        "smoothing": smoothing,
        "seconds": took,
        "error": float((each - right).abs().max()),
        "copies": _copies(step),
    }


def _row(r: dict[str, Any]) -> list[str]:
    took = r["seconds"]
    return [
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


def run(repeats: int = 5) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Tables and records of all sizes and spreads; needs a CUDA device."""
    import torch

    if not torch.cuda.is_available():
        raise SystemExit("torch_costs needs a CUDA device; its results stay as they are")
    records = []
    for b, k in SIZES:
        for smoothing in SMOOTHING:
            for spread in SPREADS if k <= WIDEST else SPREADS[1:2]:  # without a kernel a step takes up to a second
                records.append(_measured(b, k, spread, smoothing, repeats if k <= WIDEST else 1))
                took = {name: f"{seconds * 1e6:.0f} µs" for name, seconds in records[-1]["seconds"].items()}
                print(b, k, smoothing, spread, took, records[-1]["error"], records[-1]["copies"], flush=True)
                torch.cuda.empty_cache()
    device = {"name": torch.cuda.get_device_name(), "torch": torch.__version__, "cuda": torch.version.cuda}
    device["threads"] = torch.get_num_threads()
    note = (
        f"On one {device['name']} with PyTorch {device['torch']}. A matrix of uniform costs, 0 on the diagonal; scores "
        "N(0, s²) in float32; forward and backward, over the zero-one loss of the same smoothing. The host has the "
        f"machine's {device['threads']} threads, and its time is scaled up from {HOST_ROWS} rows. The error is that of "
        "losses of single rows against the host in float64. Copies between host and device are counted by the profiler."
    )
    columns = ["scores", "smoothing", "s", "game and gradient", "predict_proba", "/ zero-one", "host / device", "error"]
    columns.append("copies")
    table = report.table("Cost matrices on CUDA", note, columns, [_row(r) for r in records])
    return [table], {"device": device, "records": records}
