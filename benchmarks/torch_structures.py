"""Matchings and trees in PyTorch on CUDA: the game and its gradient, by the kernel and by the host on all cores.

    python -m benchmarks torch_structures

1,024 matchings of 20 x 20 and 1,024 trees of 32 tokens, and 256 of either with 64 elements; float32 scores N(0, s²) on
the device. The host's way is the same loss without a kernel: one copy there, the compiled games on all cores, one copy
back.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

from benchmarks import report

__all__ = ["run"]

SPREADS = (0.3, 1.0, 3.0)
SMOOTHING = (0.0, 0.1)


class Task(NamedTuple):
    """A batch of games."""

    structure: str
    batch: int
    n: int
    tol: float
    repeats: int


TASKS = (
    Task("matchings", 1024, 20, 1e-7, 5),
    Task("trees", 1024, 32, 1e-9, 5),
    Task("matchings", 256, 64, 1e-7, 2),
    Task("trees", 256, 64, 1e-9, 2),
)


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


def _losses(task: Task, smoothing: float) -> tuple[Any, Any, int]:
    """The loss with its kernel and without, and how many more columns than rows scores have."""
    import nashlearn.torch as nt

    settings: dict[str, Any] = {"smoothing": smoothing, "tol": task.tol}
    if task.structure == "matchings":
        return nt.MatchingLoss(**settings), nt.MatchingLoss(**settings), 0
    return nt.ArborescenceLoss(**settings), nt.ArborescenceLoss(**settings), 1


def _measured(task: Task, spread: float, smoothing: float) -> dict[str, Any]:
    import torch

    ours, host, extra = _losses(task, smoothing)
    host._table.kernel = None
    generator = torch.Generator("cuda").manual_seed(0)
    scores = spread * torch.randn(task.batch, task.n, task.n + extra, device="cuda", generator=generator)
    scores.requires_grad_()
    target = torch.arange(task.n, device="cuda").expand(task.batch, task.n)  # the identity, or a chain of heads
    steps = {
        "kernel": lambda: torch.autograd.grad(ours(scores, target), scores),
        "host": lambda: torch.autograd.grad(host(scores, target), scores),
    }
    found, right = ours.solve(scores), host.solve(scores)
    return {
        **task._asdict(),
        "spread": spread,
        "smoothing": smoothing,
        "gap": found.gap.max().item(),
        "host_gap": right.gap.max().item(),
        "on_host": int(found.on_host.sum()),
        "difference": (found.value - right.value).abs().max().item(),
        "seconds": _interleaved(steps, task.repeats),
    }


def _row(r: dict[str, Any]) -> list[str]:
    took = r["seconds"]
    return [
        f"{r['batch']:,} {r['structure']} of {r['n']}",
        f"{r['spread']:g}",
        f"{r['smoothing']:g}",
        report.seconds(took["kernel"]),
        report.seconds(took["host"]),
        f"{took['host'] / took['kernel']:.1f}",
        f"{r['gap']:.1e}",
        f"{r['host_gap']:.1e}",
        str(r["on_host"]),
    ]


def run() -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The table and its records."""
    import torch

    torch.set_num_threads(os.cpu_count() or 1)
    found = []
    for setting in product(TASKS, SPREADS, SMOOTHING):
        found.append(_measured(*setting))
        print(*_row(found[-1]), flush=True)
    device = f"{torch.cuda.get_device_name()} with PyTorch {torch.__version__} and {os.cpu_count()} cores"
    note = (
        "Game and gradient, float32 scores N(0, s²), matchings with tol 1e-7 and trees of a single root with tol 1e-9, "
        f"on one {device}. Gaps are the largest of the batch."
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
