"""Small batches of PyTorch losses on a CUDA device, called eagerly: where launches take longer than kernels.

    python -m benchmarks torch_launches

Forward and backward of the zero-one loss, exact and tempered, beside cross-entropy and an autograd function in Python
that computes nothing, all eager, in turns, timed as in :mod:`benchmarks.torch_losses`.
"""

from __future__ import annotations

from typing import Any

from benchmarks import report
from benchmarks.torch_losses import _inputs, _nothing, _step, interleaved

__all__ = ["run"]

SIZES = ((2**17, 100), (2**15, 1000))
DTYPES = ("float32", "bfloat16")
SPREADS = (0.01, 1.0, 5.0)


def _measured(b: int, k: int, spread: float, dtype: str, repeats: int) -> dict[str, Any]:
    import torch

    import nashlearn.torch as nt

    inputs = _inputs(b, k, spread, getattr(torch, dtype))
    losses = {
        "exact": nt.NashLoss("zero_one", smoothing=0.0),
        "tempered": nt.NashLoss("zero_one", smoothing=1.0),
        "cross-entropy": torch.nn.functional.cross_entropy,
        "nothing": _nothing(),
    }
    took = interleaved({name: _step(loss, inputs) for name, loss in losses.items()}, repeats)
    return {"b": b, "k": k, "spread": spread, "dtype": dtype, "seconds": took}


def _row(r: dict[str, Any]) -> list[str]:
    took = r["seconds"]
    ratios = [f"{took[name] / took['cross-entropy']:.2f}" for name in ("exact", "tempered", "nothing")]
    times = [report.seconds(took[name]) for name in ("exact", "tempered", "cross-entropy")]
    return [f"{r['b']} × {r['k']}", r["dtype"], f"{r['spread']:g}", *times, *ratios]


def run(repeats: int = 9) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The table and its records; needs a CUDA device."""
    import torch

    if not torch.cuda.is_available():
        raise SystemExit("torch_launches needs a CUDA device; its results stay as they are")
    records = [_measured(b, k, spread, dtype, repeats) for b, k in SIZES for dtype in DTYPES for spread in SPREADS]
    device = {"name": torch.cuda.get_device_name(), "torch": torch.__version__, "cuda": torch.version.cuda}
    note = (
        f"On one {device['name']} with PyTorch {device['torch']}. Forward and backward, scores N(0, s²), all eager. "
        "Ratios to cross-entropy: ours exact and with smoothing 1, and an autograd function in Python that computes "
        "nothing."
    )
    columns = ["scores", "type", "s", "exact", "tempered", "cross-entropy", "exact /", "tempered /", "nothing /"]
    return [report.table("Launches of small batches on CUDA", note, columns, list(map(_row, records)))], {
        "device": device,
        "records": records,
    }
