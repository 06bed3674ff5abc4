"""``nashlearn.torch.NashHead`` on a CUDA device beside cross-entropy over a linear layer: forward and backward.

    python -m benchmarks torch_head

Scores are bfloat16 and N(0, s²), made by features and weights of that size; "ranked" scores fall with the logarithm of
the class's rank besides, as those of words do. Steps are taken in turns, so that all meet the same clock of the device.
Beside eager and compiled cross-entropy stand the three matrix products alone, which no loss with a dense gradient can
avoid, and, where they are installed, Liger's fused linear cross-entropy and cut-cross-entropy.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from benchmarks import report
from benchmarks.torch_losses import interleaved, peak

__all__ = ["peers", "run"]

SIZES = ((8192, 2048, 32000), (8192, 4096, 131072), (4096, 2048, 262144))
SPREADS = (0.3, 1.0, 3.0, 0.01, 1e-6)
SMOOTHING = 0.3
PEERS_AT = 1.0  # the spread at which peers run too

Step = Callable[[int], Any]


def _inputs(n: int, d: int, k: int, spread: float, ranked: bool) -> tuple[Any, Any, Any]:
    import torch

    generator = torch.Generator("cuda").manual_seed(n + k)
    h = torch.randn(n, d, device="cuda", generator=generator)
    weight = torch.randn(k, d, device="cuda", generator=generator).mul_(spread / d**0.5)
    target = torch.randint(0, k, (n,), device="cuda", generator=generator)
    if ranked:
        h[:, 0] = 1.0
        weight[:, 0] = -torch.arange(1, k + 1, device="cuda").log()
    return h.bfloat16().requires_grad_(), weight.bfloat16().requires_grad_(), target


def _step(loss: Callable[..., Any], inputs: tuple[Any, Any, Any]) -> Step:
    import torch

    return lambda i: torch.autograd.grad(loss(*inputs), inputs[:2])


def _products(inputs: tuple[Any, Any, Any]) -> Step:
    h, weight = (x.detach() for x in inputs[:2])

    def step(i: int) -> None:
        scores = h @ weight.t()
        scores @ weight, scores.t() @ h

    return step


def peers() -> dict[str, Callable[..., Any]]:
    """Losses of ``(h, weight, target)`` by other libraries, as far as they are installed."""
    found: dict[str, Callable[..., Any]] = {}
    try:
        liger = importlib.import_module("liger_kernel.ops.fused_linear_cross_entropy")
        found["Liger"] = lambda h, w, y: liger.LigerFusedLinearCrossEntropyFunction.apply(h, w, y)[0]
    except ImportError:
        print("liger_kernel is not installed", flush=True)
    try:
        found["cut-cross-entropy"] = importlib.import_module("cut_cross_entropy").linear_cross_entropy
    except ImportError:
        print("cut_cross_entropy is not installed", flush=True)
    return found


def _tempered_change(scores: Any, target: Any) -> Any:
    """``(q - y) / n`` of the tempered loss by its definition, from a threshold by sorting."""
    import torch

    n, k = scores.shape
    ordered = scores.sort(1, descending=True).values
    sums = ordered.cumsum(1)
    size = (1 + torch.arange(1, k + 1, device="cuda") * ordered > sums).sum(1, keepdim=True)
    tau = (sums.gather(1, size - 1) - 1) / size
    change = (torch.minimum(scores, tau) / SMOOTHING).softmax(1)
    change[torch.arange(n, device="cuda"), target] -= 1
    return change / n


def _error(ours: tuple[Any, ...], theirs: tuple[Any, ...]) -> float:
    """The larger of the two gradients' relative differences."""
    return max(((a.float() - b.float()).norm() / b.float().norm()).item() for a, b in zip(ours, theirs, strict=True))


def _errors(inputs: tuple[Any, Any, Any], steps: dict[str, Step]) -> dict[str, float]:
    """Differences from the same losses on full scores: those of the exact one by NashLoss."""
    import torch

    import nashlearn.torch as nt

    h, weight, target = inputs
    scores = (h @ weight.t()).detach()
    full = scores.clone().requires_grad_()
    change = torch.autograd.grad(nt.functional.nash_loss(full, target, smoothing=0.0), full)[0]
    errors = {"exact": _error(steps["exact"](0), (change @ weight, change.t() @ h))}
    del full, change
    some = h.shape[0] // 8  # float32 takes room: the first rows alone
    change = _tempered_change(scores[:some].float(), target[:some]).bfloat16()
    part = (h[:some].detach().requires_grad_(), weight, target[:some])
    ours = _step(lambda h, w, y: nt.functional.linear_nash_loss(h, w, y, smoothing=SMOOTHING), part)(0)
    errors["tempered"] = _error(ours, (change @ weight, change.t() @ part[0]))
    return errors


def _support(inputs: tuple[Any, Any, Any]) -> float:
    """Mean number of classes that the adversary plays, over some rows."""
    import torch

    import nashlearn.torch as nt

    with torch.no_grad():
        p = nt.functional.strategy(inputs[0][:256] @ inputs[1].t(), smoothing=0.0)
    return (p > 0).sum(1).float().mean().item()


def _measured(size: tuple[int, int, int], spread: float, ranked: bool, compiled: Any, repeats: int) -> dict[str, Any]:
    import torch

    import nashlearn.torch as nt

    inputs = _inputs(*size, spread, ranked)
    losses: dict[str, Callable[..., Any]] = {
        "exact": lambda h, w, y: nt.functional.linear_nash_loss(h, w, y, smoothing=0.0),
        "tempered": lambda h, w, y: nt.functional.linear_nash_loss(h, w, y, smoothing=SMOOTHING),
        "smoothing 1": lambda h, w, y: nt.functional.linear_nash_loss(h, w, y),
        "compiled": compiled,
    }
    if spread == PEERS_AT and not ranked:
        losses["eager"] = lambda h, w, y: torch.nn.functional.cross_entropy(h @ w.t(), y)
        losses |= peers()
    steps = {name: _step(loss, inputs) for name, loss in losses.items()} | {"products": _products(inputs)}
    record: dict[str, Any] = {"size": size, "spread": spread, "ranked": ranked, "support": _support(inputs)}
    record["seconds"] = interleaved(steps, repeats)
    record["bytes"] = {name: peak(step) for name, step in steps.items() if name != "products"}
    record["errors"] = _errors(inputs, steps)
    return record


def _tables(device: str, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    rows = []
    for r in records:
        took, room = r["seconds"], r["bytes"]
        each = []
        for name in ("exact", "tempered"):
            ratios = (took[name] / took["compiled"], took[name] / took["products"], room[name] / room["compiled"])
            each += [report.seconds(took[name]), *(f"{ratio:.2f}" for ratio in ratios), f"{r['errors'][name]:.0e}"]
        spread = f"{r['spread']:g}" + (", ranked" if r["ranked"] else "")
        n, d, k = r["size"]
        each.append(f"{took['smoothing 1'] / took['compiled']:.2f}")
        rows.append([f"{n} × {d} × {k}", spread, f"{r['support']:.0f}", report.seconds(took["compiled"]), *each])
    one = ["/ compiled", "/ products", "memory", "error"]
    columns = ["rows × features × classes", "s", "support", "cross-entropy", "exact", *one, "tempered", *one]
    columns.append("smoothing 1 / compiled")
    note = (
        f"On one {device}. Zero-one loss over a linear layer, exact and tempered with smoothing {SMOOTHING}, in the "
        "last column with 1, the default; forward and backward in bfloat16, scores N(0, s²); ranked: less the "
        "logarithm of the class's rank. Support: classes that the exact adversary plays. Cross-entropy is compiled. "
        "Ratios: time / compiled cross-entropy; time / the three matrix products alone; largest extra memory / that "
        "of compiled cross-entropy, gradients included. Error: relative difference of the gradients from those on "
        "full scores, the larger of two; where supports are large a row's support hangs on the rounding of single "
        "scores."
    )
    first = report.table("A linear head on CUDA", note, columns, rows)
    rows = []
    for r in records:
        if "eager" not in r["seconds"]:
            continue
        for name, seconds in r["seconds"].items():
            room = r["bytes"].get(name)
            memory = "–" if room is None else f"{room / 2**30:.2f} GiB"
            rows.append([" × ".join(map(str, r["size"])), name, report.seconds(seconds), memory])
    note = "s = 1. The same steps: ours, and cross-entropy by PyTorch and by the libraries that were installed."
    columns = ["rows × features × classes", "loss", "forward and backward", "extra memory"]
    return [first, report.table("A linear head beside others, on CUDA", note, columns, rows)]


def run(repeats: int = 5) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Tables and records of all sizes and spreads; needs a CUDA device."""
    import torch

    if not torch.cuda.is_available():
        raise SystemExit("torch_head needs a CUDA device; its results stay as they are")
    records = []
    for size in SIZES:
        torch._dynamo.reset()
        compiled = torch.compile(lambda h, w, y: torch.nn.functional.cross_entropy(h @ w.t(), y), dynamic=False)
        for spread, ranked in [*((s, False) for s in SPREADS), (1.0, True)]:
            records.append(_measured(size, spread, ranked, compiled, repeats))
            torch.cuda.empty_cache()
            r = records[-1]
            took = {name: f"{seconds * 1e3:.2f}" for name, seconds in r["seconds"].items()}
            print(size, spread, "ranked" * ranked, took, r["errors"], flush=True)
    device = {"name": torch.cuda.get_device_name(), "torch": torch.__version__, "cuda": torch.version.cuda}
    title = f"{device['name']} with PyTorch {device['torch']}"
    return _tables(title, records), {"device": device, "smoothing": SMOOTHING, "head": records}
