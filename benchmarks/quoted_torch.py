"""What stored results of the PyTorch losses say, as pages print it."""

from __future__ import annotations

from benchmarks.quoted import fixed, read, records, short, span


def _cuda(ours: str, theirs: str, sizes: tuple[int, ...] = ()) -> list[float]:
    chosen = [r["seconds"] for r in records("torch_losses")["zero_one"] if not sizes or r["k"] in sizes]
    return [s[ours] / s[theirs] for s in chosen]


def cuda_losses() -> tuple[str, ...]:
    """Zero-one loss over cross-entropy: as graphs; over the compiled one; eagerly at 100 and 1,000 classes."""
    graphs = _cuda("ours, graph", "cross-entropy, graph")
    compiled = _cuda("ours, graph", "cross-entropy, compiled, graph")
    eager = _cuda("ours", "cross-entropy", (100, 1000))
    ends = [f"{pick(ratios):.2f}" for ratios in (graphs, compiled) for pick in (min, max)]
    return *ends, f"{min(eager):.1f}", f"{max(eager):.1f}"


def _microseconds(name: str) -> tuple[str, str]:
    """From and to, at 100 and 1,000 classes."""
    return span(1e6 * r["seconds"][name] for r in records("torch_losses")["zero_one"] if r["k"] in (100, 1000))


def host_and_kernels() -> tuple[str, str]:
    """Microseconds of a row of a cost matrix of ten classes; nanoseconds of a row of the named losses, in a graph."""
    found = [r for r in records("torch_losses")["losses"] if r["k"] == 10]
    named = [1e9 * value / r["b"] for r in found for name, value in r["seconds"].items() if "row" not in name]
    host = {short(1e6 * r["seconds"]["cost matrix, a row"]) for r in found}
    return "/".join(sorted(host)), "/".join(sorted({short(value, 1) for value in named}))


def large_batches() -> tuple[str, str]:
    """Ours over cross-entropy, both eager, at ten classes and at tens of thousands."""
    return span(_cuda("ours", "cross-entropy", (10, 32000, 65536, 131072)))


def small_batches() -> tuple[str, ...]:
    """Ours in a graph and eagerly."""
    return *_microseconds("ours, graph"), *_microseconds("ours")


def small_batches_of_others() -> tuple[str, ...]:
    """Cross-entropy, and a function that computes nothing."""
    return *_microseconds("cross-entropy"), *_microseconds("nothing")


def small_batches_as_graphs() -> tuple[str, str]:
    """Ours over cross-entropy, both as graphs."""
    return span(_cuda("ours, graph", "cross-entropy, graph", (100, 1000)))


def small_batches_compiled() -> tuple[str, str]:
    """Ours, compiled."""
    return _microseconds("ours, compiled")


def chains() -> tuple[str, ...]:
    """MarkovLoss over pytorch-crf: on CUDA, on one core."""
    found = records("torch_chains")
    ends = []
    for place in ("cuda", "core"):
        ratios = [r["seconds"][tol] / r["seconds"]["pytorch-crf"] for r in found[place] for tol in r["gaps"]]
        ends += [f"{min(ratios):.2f}", f"{max(ratios):.2f}"]
    return tuple(ends)


def bilstm() -> tuple[str, ...]:
    """Chunk F1 with the chain game, cross-entropy and a CRF."""
    runs = read("examples/torch/results/tagger.json")["runs"]
    return fixed((runs[name]["chunk_f1"] for name in ("chain game", "cross-entropy", "CRF")), 1)
