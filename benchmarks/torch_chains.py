"""``nashlearn.torch.MarkovLoss`` on chains beside pytorch-crf: forward and backward, on one core and on CUDA.

    python -m benchmarks torch_chains

Node scores are N(0, 1). Transitions are as pytorch-crf starts them, uniform in ±0.1, or N(0, 1), which couples
neighbours strongly and takes the sweep more rounds. The certified gap that was reached is reported. Without a CUDA
device only the rows of the processor are measured anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from benchmarks import measure, report, torch_losses

__all__ = ["run"]

ON_CORE = ((8, 100, 30),)
ON_DEVICE = ((256, 100, 30), (256, 100, 100))
TOLERANCES = (1e-3, 1e-4)


def _case(size: tuple[int, int, int], started: bool, device: str) -> tuple[Any, Any, Any, Any]:
    """Node scores, transitions and labels, and the peer with these transitions."""
    import torch
    from torchcrf import CRF

    b, n, k = size
    generator = torch.Generator(device).manual_seed(k)
    peer = CRF(k, batch_first=True).to(device)
    edge = torch.empty(k, k, device=device)
    edge = edge.uniform_(-0.1, 0.1, generator=generator) if started else edge.normal_(generator=generator)
    peer.transitions.data.copy_(edge)
    node = torch.randn(b, n, k, device=device, generator=generator).requires_grad_()
    return node, edge.requires_grad_(), torch.randint(0, k, (b, n), device=device, generator=generator), peer


def _steps(size: tuple[int, int, int], started: bool, device: str) -> tuple[dict[str, Callable[..., Any]], dict]:
    """Forward and backward of each, and the largest gap for each node that ours was left at."""
    import torch

    import nashlearn.torch as nt

    node, edge, y, peer = _case(size, started, device)

    def theirs(_: int = 0) -> Any:
        return torch.autograd.grad(-peer(node, y, reduction="token_mean"), (node, *peer.parameters()))

    steps: dict[str, Callable[..., Any]] = {"pytorch-crf": theirs}
    gaps = {}
    for tol in TOLERANCES:
        loss = nt.MarkovLoss("zero_one", 0.5, tol=tol)

        def ours(_: int = 0, loss: Any = loss) -> Any:
            return torch.autograd.grad(loss(node, edge, y), (node, edge))

        steps[f"tol={tol:g}"] = ours
        gaps[f"tol={tol:g}"] = float(loss.solve(node, edge).gap.max()) / size[1]
    return steps, gaps


def _on_core(size: tuple[int, int, int], started: bool, repeats: int) -> dict[str, Any]:
    import torch

    torch.set_num_threads(1)
    steps, gaps = _steps(size, started, "cpu")
    runs = {name: (lambda step=step: measure.per_call(step, least=0.1)) for name, step in steps.items()}
    return {"size": size, "started": started, "gaps": gaps, "seconds": measure.interleaved(runs, repeats)}


def _on_device(size: tuple[int, int, int], started: bool, repeats: int) -> dict[str, Any]:
    steps, gaps = _steps(size, started, "cuda")
    took = torch_losses.interleaved(steps, repeats)
    return {"size": size, "started": started, "gaps": gaps, "seconds": took}


def _rows(records: list[dict[str, Any]]) -> list[list[str]]:
    rows = []
    for r in records:
        took = r["seconds"]
        for name, gap in r["gaps"].items():
            rows.append(
                [
                    " × ".join(map(str, r["size"])),
                    "±0.1" if r["started"] else "N(0, 1)",
                    name.removeprefix("tol="),
                    f"{gap:.1e}",
                    report.seconds(took[name]),
                    report.seconds(took["pytorch-crf"]),
                    f"{took[name] / took['pytorch-crf']:.2f}",
                ]
            )
    return rows


def _stored() -> dict[str, Any]:
    path = report.RESULTS / "torch_chains.json"
    return json.loads(path.read_text())["records"] if path.exists() else {"device": None, "cuda": []}


def run(repeats: int = 5) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Tables and records of the processor and, where there is one, of the CUDA device."""
    import torch

    core = [_on_core(size, started, repeats) for size in ON_CORE for started in (True, False)]
    records: dict[str, Any] = {"core": core}
    if torch.cuda.is_available():
        records["device"] = f"{torch.cuda.get_device_name()} with PyTorch {torch.__version__}"
        records["cuda"] = [_on_device(size, started, repeats) for size in ON_DEVICE for started in (True, False)]
    else:
        records |= {name: value for name, value in _stored().items() if name != "core"}
    columns = ["b × n × k", "transitions", "tol", "gap a node", "ours", "pytorch-crf", "ours / pytorch-crf"]
    note = "Forward and backward, zero-one loss, smoothing 0.5, float32, rounds until the gap a node is at most tol."
    tables = [report.table("Chains in PyTorch, one core", note, columns, _rows(core))]
    if records["cuda"]:
        note = f"On one {records['device']}. As above; wall clock of calls in a row."
        tables.append(report.table("Chains in PyTorch, on CUDA", note, columns, _rows(records["cuda"])))
    return tables, records
