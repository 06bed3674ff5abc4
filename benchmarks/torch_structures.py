"""Matchings and trees in PyTorch on CUDA: the game and its gradient, by the kernel and by the host on all cores.

    python -m benchmarks torch_structures

1,024 matchings of 20 x 20 and 1,024 trees of 32 tokens, float32 scores N(0, s²) on the device. The host's way is the
same loss without a kernel: one copy there, the compiled games on all cores, one copy back. Trees know no other way.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks import report

__all__ = ["run"]

BATCH = 1024
ELEMENTS, TOKENS = 20, 32
SPREADS = (0.3, 1.0, 3.0)
SMOOTHING = (0.0, 0.1)
TOL = 1e-7


def _interleaved(steps: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Median seconds of each step by the wall clock, taken in turns, after one that does not count."""
    import torch

    took: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(repeats + 1):
        for name, step in steps.items():
            torch.cuda.synchronize()
            begin = time.perf_counter()
            step()
            torch.cuda.synchronize()
            took[name].append(time.perf_counter() - begin)
    return {name: statistics.median(times[1:]) for name, times in took.items()}


def _matchings(spread: float, smoothing: float, repeats: int) -> dict[str, Any]:
    import torch

    import nashlearn.torch as nt
    from nashlearn import games

    generator = torch.Generator("cuda").manual_seed(0)
    scores = spread * torch.randn(BATCH, ELEMENTS, ELEMENTS, device="cuda", generator=generator)
    scores.requires_grad_()
    target = torch.rand(BATCH, ELEMENTS, device="cuda", generator=generator).argsort(1)
    ours = nt.MatchingLoss(smoothing, tol=TOL)
    host = nt.GameLoss(games.matching, smoothing=smoothing, tol=TOL)
    steps = {
        "kernel": lambda: torch.autograd.grad(ours(scores, target), scores),
        "host": lambda: torch.autograd.grad(host(scores, target), scores),
    }
    found = ours.solve(scores)
    right = games.matching(ELEMENTS).solve(scores.detach().double().cpu().numpy(), smoothing=smoothing, tol=TOL)
    return {
        "structure": "matchings",
        "spread": spread,
        "smoothing": smoothing,
        "gap": found.gap.max().item(),
        "host_gap": float(right.gap.max()),
        "on_host": int(found.on_host.sum()),
        "difference": float(abs(found.value.double().cpu().numpy() - right.value).max()),
        "seconds": _interleaved(steps, repeats),
    }


def _trees(spread: float, smoothing: float, repeats: int) -> dict[str, Any]:
    import torch

    import nashlearn.torch as nt
    from nashlearn import games

    generator = torch.Generator("cuda").manual_seed(0)
    scores = (spread * torch.randn(BATCH, TOKENS, TOKENS + 1, device="cuda", generator=generator)).requires_grad_()
    target = torch.arange(TOKENS, device="cuda").expand(BATCH, TOKENS)
    loss = nt.ArborescenceLoss(smoothing)
    game = games.arborescence(TOKENS, single_root=True)
    right = game.solve(scores.detach().double().cpu().numpy(), smoothing=smoothing, tol=loss.tol, n_jobs=os.cpu_count())
    steps = {"host": lambda: torch.autograd.grad(loss(scores, target), scores)}
    took = _interleaved(steps, repeats)
    return {
        "structure": "trees",
        "spread": spread,
        "smoothing": smoothing,
        "host_gap": float(right.gap.max()),
        "seconds": took,
    }


def _row(r: dict[str, Any]) -> list[str]:
    took = r["seconds"]
    kernel = took.get("kernel")
    return [
        r["structure"],
        f"{r['spread']:g}",
        f"{r['smoothing']:g}",
        report.seconds(kernel) if kernel else "none",
        report.seconds(took["host"]),
        f"{took['host'] / kernel:.1f}" if kernel else "",
        f"{r['gap']:.1e}" if kernel else "",
        f"{r['host_gap']:.1e}",
        str(r.get("on_host", "all")),
    ]


def run(repeats: int = 5) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The table and its records."""
    import torch

    torch.set_num_threads(os.cpu_count() or 1)
    parts = [partial(one, spread, mu) for one in (_matchings, _trees) for spread in SPREADS for mu in SMOOTHING]
    found = [part(repeats) for part in parts]
    device = f"{torch.cuda.get_device_name()} with PyTorch {torch.__version__} and {os.cpu_count()} cores"
    note = (
        f"{BATCH:,} matchings of {ELEMENTS} × {ELEMENTS} (tol {TOL:g}) and trees of {TOKENS} tokens, game and "
        f"gradient, float32 scores N(0, s²), on one {device}. Gaps are the largest of the batch."
    )
    columns = [
        "",
        "s",
        "smoothing",
        "kernel",
        "host, all cores",
        "host / kernel",
        "gap",
        "gap, host",
        "left to the host",
    ]
    return [report.table("Matchings and trees in PyTorch", note, columns, list(map(_row, found)))], {
        "device": device,
        "cuda": found,
    }
