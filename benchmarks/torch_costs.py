"""Cost matrices on a CUDA device: the game and its gradient beside the zero-one loss there and the games of the host.

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
HOST_ROWS = 2**12
WIDEST = 64


def _measured(b: int, k: int, spread: float, repeats: int) -> dict[str, Any]:
    import numpy as np
    import torch

    import nashlearn.torch as nt

    L = np.random.default_rng(k).uniform(size=(k, k))
    np.fill_diagonal(L, 0.0)
    inputs = _inputs(b, k, spread, torch.float32)
    game, zero_one = (nt.NashLoss(loss, smoothing=0.0).cuda() for loss in (L, "zero_one"))
    step = _step(game, inputs)
    found = _graphed(step, len(inputs)) if k <= WIDEST else step
    steps = {"cost matrix": found, "zero-one": _graphed(_step(zero_one, inputs), len(inputs))}
    with torch.no_grad():
        steps["predict_proba"] = lambda i: game.predict_proba(inputs[i % len(inputs)][0])
    took = interleaved(steps, repeats)
    some = [(x.detach()[:HOST_ROWS], y[:HOST_ROWS]) for x, y in inputs[:1]]
    on_host = nt.NashLoss(L, smoothing=0.0)

    def by_host() -> Any:
        x = some[0][0].cpu().requires_grad_()
        return torch.autograd.grad(on_host(x, some[0][1].cpu()), x)[0].cuda()

    by_host()
    begin = time.perf_counter()
    for _ in range(3):
        by_host()
    torch.cuda.synchronize()
    took["host"] = (time.perf_counter() - begin) / 3 * b / HOST_ROWS
    each = nt.NashLoss(L, reduction="none", smoothing=0.0).cuda()(some[0][0], some[0][1]).double().cpu()
    right = nt.NashLoss(L, reduction="none", smoothing=0.0)(some[0][0].cpu().double(), some[0][1].cpu())
    return {"b": b, "k": k, "spread": spread, "seconds": took, "error": float((each - right).abs().max())}


def run(repeats: int = 5) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Tables and records of all sizes and spreads; needs a CUDA device."""
    import torch

    if not torch.cuda.is_available():
        raise SystemExit("torch_costs needs a CUDA device; its results stay as they are")
    records = []
    for b, k in SIZES:
        for spread in SPREADS:
            records.append(_measured(b, k, spread, repeats))
            took = {name: f"{seconds * 1e6:.0f} µs" for name, seconds in records[-1]["seconds"].items()}
            print(b, k, spread, took, records[-1]["error"], flush=True)
            torch.cuda.empty_cache()
    device = {"name": torch.cuda.get_device_name(), "torch": torch.__version__, "cuda": torch.version.cuda}
    device["threads"] = torch.get_num_threads()
    rows = []
    for r in records:
        took = r["seconds"]
        rows.append(
            [
                f"{r['b']} × {r['k']}",
                f"{r['spread']:g}",
                report.seconds(took["cost matrix"]),
                report.seconds(took["predict_proba"]),
                f"{took['cost matrix'] / took['zero-one']:.1f}",
                f"{took['host'] / took['cost matrix']:.0f}",
                f"{r['error']:.0e}",
            ]
        )
    note = (
        f"On one {device['name']} with PyTorch {device['torch']}. A matrix of uniform costs, 0 on the diagonal; scores "
        "N(0, s²) in float32; forward and backward. The host has the same processor's "
        f"{device['threads']} threads, and its time is scaled up from {HOST_ROWS} rows. The error is that of losses of "
        "single rows against the host in float64."
    )
    columns = ["scores", "s", "game and gradient", "predict_proba", "/ zero-one", "host / device", "error"]
    return [report.table("Cost matrices on CUDA", note, columns, rows)], {"device": device, "records": records}
