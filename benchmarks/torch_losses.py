"""``nashlearn.torch`` on a CUDA device beside cross-entropy: forward and backward, eager, compiled, and as CUDA graphs.

    python -m benchmarks torch_losses

Eager and compiled calls are timed in a row between two events, so that a size whose kernels are shorter than their
launches shows the launches; a CUDA graph of the same work shows the kernels. Inputs are rotated so that no set is still
in the cache when its turn comes.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

from benchmarks import report

__all__ = ["interleaved", "peak", "run"]

SIZES = ((2**20, 10), (2**17, 100), (2**15, 1000), (8192, 32000), (4096, 65536), (2048, 131072))
SPREADS = (0.01, 1.0, 5.0)
DTYPES = ("float32", "bfloat16")
LOSSES = ("absolute", "squared", "abstain")
CACHE = 4 * 60 * 2**20  # bytes of inputs that do not fit the cache together
HOST_ROWS = 2**15  # on which a cost matrix is timed
LONG = 16_384  # classes from which time is compared with a copy

Step = Callable[[int], Any]


def _inputs(b: int, k: int, spread: float, dtype: Any) -> list[tuple[Any, Any]]:
    import torch

    size = b * k * dtype.itemsize
    sets = max(1, min(8, -(-CACHE // size)))
    generator = torch.Generator("cuda").manual_seed(b + k)
    made = []
    for _ in range(sets):
        x = torch.randn(b, k, device="cuda", generator=generator).mul_(spread).to(dtype).requires_grad_()
        made.append((x, torch.randint(0, k, (b,), device="cuda", generator=generator)))
    return made


def _step(loss: Callable[[Any, Any], Any], inputs: list[tuple[Any, Any]]) -> Step:
    import torch

    def step(i: int) -> Any:
        x, y = inputs[i % len(inputs)]
        return torch.autograd.grad(loss(x, y), x)[0]

    return step


def _nothing() -> Callable[[Any, Any], Any]:
    """A loss that computes nothing: what any loss written as an autograd function costs where launches count."""
    import torch

    class Nothing(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.save_for_backward(x)
            return x.new_empty(())

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return torch.empty_like(ctx.saved_tensors[0]), None

    return Nothing.apply


def _graphed(step: Step, sets: int) -> Step:
    """The same work, recorded once for each set of inputs."""
    import torch

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for i in range(sets):
            step(i)
    torch.cuda.current_stream().wait_stream(side)
    graphs, pool = [], None
    for i in range(sets):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool):
            step(i)
        pool = graph.pool()
        graphs.append(graph)
    return lambda i: graphs[i % sets].replay()


def _seconds(step: Step, budget: float = 0.012) -> float:
    """Seconds of one step, from as many in a row as fill the budget."""
    import torch

    def timed(calls: int) -> float:
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for i in range(calls):
            step(i)
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1e-3 / calls

    return timed(max(3, min(200, int(budget / max(timed(3), 1e-6)))))


def interleaved(steps: dict[str, Step], repeats: int) -> dict[str, float]:
    """Median seconds on the device of each step, taken in turns."""
    for step in steps.values():
        for i in range(4):
            step(i)
    took: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(repeats):
        for name, step in steps.items():
            took[name].append(_seconds(step))
    return {name: statistics.median(times) for name, times in took.items()}


def peak(step: Step) -> int:
    """Bytes that one step holds at most, beyond what was there."""
    import torch

    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    step(0)
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def _against_cross_entropy(b: int, k: int, dtype: Any, repeats: int) -> list[dict[str, Any]]:
    import torch

    import nashlearn.torch as nt

    torch._dynamo.reset()
    ours, theirs = nt.NashLoss("zero_one", smoothing=0.0), torch.nn.functional.cross_entropy
    ours_compiled = torch.compile(ours, dynamic=False, fullgraph=True)
    theirs_compiled = torch.compile(lambda x, y: torch.nn.functional.cross_entropy(x, y), dynamic=False)
    records = []
    for spread in SPREADS:
        inputs = _inputs(b, k, spread, dtype)
        eager, peer = _step(ours, inputs), _step(theirs, inputs)
        compiled, peer_compiled = _step(ours_compiled, inputs), _step(theirs_compiled, inputs)
        x = inputs[0][0].detach()
        room = torch.empty_like(x)
        steps = {
            "ours": eager,
            "ours, compiled": compiled,
            "cross-entropy": peer,
            "cross-entropy, compiled": peer_compiled,
            "nothing": _step(_nothing(), inputs),
            "ours, graph": _graphed(eager, len(inputs)),
            "cross-entropy, graph": _graphed(peer, len(inputs)),
            "cross-entropy, compiled, graph": _graphed(peer_compiled, len(inputs)),
            "copy": lambda i, inputs=inputs, room=room: room.copy_(inputs[i % len(inputs)][0].detach()),
        }
        record: dict[str, Any] = {"b": b, "k": k, "spread": spread, "dtype": str(dtype).removeprefix("torch.")}
        record["seconds"] = interleaved(steps, repeats)
        record["bytes"] = {"ours": peak(eager), "cross-entropy": peak(peer), "scores": x.numel() * x.element_size()}
        record["deterministic"] = bool(torch.equal(eager(0), eager(0)))
        records.append(record)
        del steps, inputs, x, room
        torch.cuda.empty_cache()
    return records


def _among_losses(b: int, k: int, dtype: Any, repeats: int) -> dict[str, Any]:
    import numpy as np

    import nashlearn.torch as nt

    inputs = _inputs(b, k, 1.0, dtype)
    losses = {name: nt.NashLoss(name, smoothing=0.0) for name in ("zero_one", *LOSSES)}
    steps = {name: _graphed(_step(loss, inputs), len(inputs)) for name, loss in losses.items()}
    took = interleaved(steps, repeats)
    if k == 10:
        L = np.random.default_rng(0).uniform(size=(k, k))
        np.fill_diagonal(L, 0.0)
        some = [(x.detach()[:HOST_ROWS].cpu().requires_grad_(), y[:HOST_ROWS].cpu()) for x, y in inputs]
        took["cost matrix, a row"] = _seconds(_step(nt.NashLoss(L, smoothing=0.0), some)) / HOST_ROWS
    return {"b": b, "k": k, "dtype": str(dtype).removeprefix("torch."), "seconds": took}


def _ratios(record: dict[str, Any]) -> dict[str, float]:
    took = record["seconds"]
    return {
        "eager": took["ours"] / took["cross-entropy"],
        "nothing": took["nothing"] / took["cross-entropy"],
        "compiled": took["ours"] / took["cross-entropy, compiled"],
        "graph": took["ours, graph"] / took["cross-entropy, graph"],
        "compiled graph": took["ours, graph"] / took["cross-entropy, compiled, graph"],
    }


def _bandwidth(records: list[dict[str, Any]]) -> float:
    """Bytes a second, read and written, of the fastest copy of the run."""
    return max(2 * r["bytes"]["scores"] / r["seconds"]["copy"] for r in records)


def _tables(device: str, records: list[dict[str, Any]], losses: list[dict[str, Any]]) -> list[dict[str, Any]]:
    rows, bandwidth = [], _bandwidth(records)
    for r in records:
        took, ratio = r["seconds"], _ratios(r)
        rows.append(
            [
                f"{r['b']} × {r['k']}",
                r["dtype"],
                f"{r['spread']:g}",
                report.seconds(took["ours"]),
                report.seconds(took["ours, graph"]),
                *(f"{ratio[name]:.2f}" for name in ("eager", "nothing", "compiled", "graph", "compiled graph")),
                f"{took['ours'] * bandwidth / (2 * r['bytes']['scores']):.2f}" if r["k"] >= LONG else "–",
                f"{r['bytes']['ours'] / r['bytes']['scores']:.2f}",
            ]
        )
    note = (
        f"On one {device}. Zero-one loss, forward and backward, scores N(0, s²). Ratios: ours / cross-entropy, both "
        "eager; an autograd function that computes nothing / cross-entropy, the least that eager code can reach where "
        "launches take longer than kernels; ours eager / cross-entropy compiled; both as CUDA graphs; ours / compiled "
        "cross-entropy as graphs; for long rows ours / reading the scores and writing the gradient once at the "
        f"bandwidth of the fastest copy, {bandwidth / 1e12:.2f} TB/s; largest extra memory / that of the scores, of "
        "which the gradient is 1."
    )
    columns = ["scores", "type", "s", "ours", "as a graph", "/ eager", "nothing / eager", "/ compiled", "/ graph"]
    columns.append("/ compiled graph")
    first = report.table("PyTorch losses on CUDA", note, [*columns, "/ copy", "memory"], rows)
    rows = []
    for r in losses:
        took = r["seconds"]
        each = [f"{took[name] / took['zero_one']:.2f}" for name in LOSSES]
        cost = report.seconds(took["cost matrix, a row"]) if "cost matrix, a row" in took else "–"
        rows.append([f"{r['b']} × {r['k']}", r["dtype"], report.seconds(took["zero_one"]), *each, cost])
    note = "As CUDA graphs, scores N(0, 1): the time of each loss over that of zero-one. "
    note += "Cost matrices as one thread of the host solves them."
    columns = ["scores", "type", "zero-one", *(f"{name} / zero-one" for name in LOSSES), "cost matrix, a row"]
    return [first, report.table("PyTorch losses among themselves, on CUDA", note, columns, rows)]


def run(repeats: int = 5) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Tables and records of all sizes, types and spreads; needs a CUDA device."""
    import torch

    if not torch.cuda.is_available():
        raise SystemExit("torch_losses needs a CUDA device; its results stay as they are")
    records, losses = [], []
    for b, k in SIZES:
        for name in DTYPES:
            dtype = getattr(torch, name)
            records += _against_cross_entropy(b, k, dtype, repeats)
            for r in records[-len(SPREADS) :]:
                ratio = {name: round(value, 2) for name, value in _ratios(r).items()}
                print(b, k, name, r["spread"], f"{r['seconds']['ours'] * 1e6:.0f} µs", ratio, flush=True)
            losses.append(_among_losses(b, k, dtype, repeats))
            torch.cuda.empty_cache()
    device = {"name": torch.cuda.get_device_name(), "torch": torch.__version__, "cuda": torch.version.cuda}
    title = f"{device['name']} with PyTorch {device['torch']}"
    return _tables(title, records, losses), {"device": device, "zero_one": records, "losses": losses}
