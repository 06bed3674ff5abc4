"""The tempered zero-one loss on a CUDA device beside cross-entropy: forward and backward, eager and as CUDA graphs.

    python -m benchmarks torch_tempered

Sizes, inputs and clocks are those of ``torch_losses``.
"""

from __future__ import annotations

from typing import Any

from benchmarks import report
from benchmarks.torch_losses import DTYPES, SIZES, SPREADS, _graphed, _inputs, _step, interleaved, peak

__all__ = ["run"]

SMOOTHING = 0.3


def _measured(b: int, k: int, dtype: Any, repeats: int) -> list[dict[str, Any]]:
    import torch

    import nashlearn.torch as nt

    torch._dynamo.reset()
    ours, exact = nt.NashLoss("zero_one", smoothing=SMOOTHING), nt.NashLoss("zero_one", smoothing=0.0)
    theirs = torch.nn.functional.cross_entropy
    compiled = torch.compile(lambda x, y: torch.nn.functional.cross_entropy(x, y), dynamic=False)
    records = []
    for spread in SPREADS:
        inputs = _inputs(b, k, spread, dtype)
        sets = len(inputs)
        eager, peer = _step(ours, inputs), _step(theirs, inputs)
        steps = {
            "ours": eager,
            "cross-entropy": peer,
            "ours, graph": _graphed(eager, sets),
            "exact, graph": _graphed(_step(exact, inputs), sets),
            "cross-entropy, graph": _graphed(peer, sets),
            "cross-entropy, compiled, graph": _graphed(_step(compiled, inputs), sets),
        }
        record: dict[str, Any] = {"b": b, "k": k, "spread": spread, "dtype": str(dtype).removeprefix("torch.")}
        record["seconds"] = interleaved(steps, repeats)
        scores = inputs[0][0].numel() * inputs[0][0].element_size()
        record["bytes"] = {"ours": peak(eager), "cross-entropy": peak(peer), "scores": scores}
        records.append(record)
        del steps, inputs
        torch.cuda.empty_cache()
    return records


def _ratios(record: dict[str, Any]) -> dict[str, float]:
    took = record["seconds"]
    return {
        "eager": took["ours"] / took["cross-entropy"],
        "graph": took["ours, graph"] / took["cross-entropy, graph"],
        "compiled graph": took["ours, graph"] / took["cross-entropy, compiled, graph"],
        "exact": took["ours, graph"] / took["exact, graph"],
    }


def run(repeats: int = 5) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Table and records of all sizes, types and spreads; needs a CUDA device."""
    import torch

    if not torch.cuda.is_available():
        raise SystemExit("torch_tempered needs a CUDA device; its results stay as they are")
    records: list[dict[str, Any]] = []
    for b, k in SIZES:
        for name in DTYPES:
            records += _measured(b, k, getattr(torch, name), repeats)
            for r in records[-len(SPREADS) :]:
                ratio = {name: round(value, 2) for name, value in _ratios(r).items()}
                print(b, k, name, r["spread"], f"{r['seconds']['ours, graph'] * 1e6:.0f} µs", ratio, flush=True)
            torch.cuda.empty_cache()
    device = {"name": torch.cuda.get_device_name(), "torch": torch.__version__, "cuda": torch.version.cuda}
    rows = []
    for r in records:
        ratio = _ratios(r)
        rows.append(
            [
                f"{r['b']} × {r['k']}",
                r["dtype"],
                f"{r['spread']:g}",
                report.seconds(r["seconds"]["ours"]),
                report.seconds(r["seconds"]["ours, graph"]),
                *(f"{ratio[name]:.2f}" for name in ("eager", "graph", "compiled graph", "exact")),
                f"{r['bytes']['ours'] / r['bytes']['scores']:.2f}",
            ]
        )
    note = (
        f"On one {device['name']} with PyTorch {device['torch']}. Zero-one loss with smoothing {SMOOTHING:g}, forward "
        "and backward, scores N(0, s²). Ratios: ours / cross-entropy, both eager; both as CUDA graphs; ours / compiled "
        "cross-entropy as graphs; ours / the loss without smoothing as graphs; largest extra memory / that of the "
        "scores, of which the gradient is 1."
    )
    columns = [
        "scores",
        "type",
        "s",
        "ours",
        "as a graph",
        "/ eager",
        "/ graph",
        "/ compiled graph",
        "/ exact",
        "memory",
    ]
    return [report.table("Tempered losses on CUDA", note, columns, rows)], {"device": device, "zero_one": records}
