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
    return tuple(f"{pick(ratios):.2f}" for ratios in (graphs, compiled, _eager("exact")) for pick in (min, max))


def _eager(name: str) -> list[float]:
    """Over cross-entropy, both called eagerly at 100 and 1,000 classes."""
    return [r["seconds"][name] / r["seconds"]["cross-entropy"] for r in records("torch_launches")["records"]]


def _microseconds(name: str) -> tuple[str, str]:
    """From and to, at 100 and 1,000 classes."""
    return span(1e6 * r["seconds"][name] for r in records("torch_losses")["zero_one"] if r["k"] in (100, 1000))


def host_and_kernels() -> tuple[str, str]:
    """Microseconds of a row of a cost matrix of ten classes; nanoseconds of a row of the named losses, in a graph."""
    found = [r for r in records("torch_losses")["losses"] if r["k"] == 10]
    named = [1e9 * value / r["b"] for r in found for name, value in r["seconds"].items() if "row" not in name]
    host = {short(1e6 * r["seconds"]["cost matrix, a row"]) for r in found}
    return "/".join(sorted(host)), "/".join(sorted({short(value, 1) for value in named}))


def costs_on_device() -> tuple[str, ...]:
    """Cost matrices of up to 64 classes: a thread of the host over the device, and the device over zero-one there."""
    found = [r["seconds"] for r in records("torch_costs")["records"] if r["k"] <= 64]
    return *span(s["host"] / s["cost matrix"] for s in found), *span(s["cost matrix"] / s["zero-one"] for s in found)


def structures_on_device() -> tuple[str, ...]:
    """Milliseconds on the device, and the host's time over it: matchings, then trees."""
    figures: list[str] = []
    for structure in ("matchings", "trees"):
        took = [
            r["seconds"] for r in records("torch_structures")["cuda"] if r["structure"] == structure and r["n"] < 64
        ]
        figures += [*span(1e3 * s["kernel"] for s in took), *span(s["host"] / s["kernel"] for s in took)]
    return tuple(figures)


def large_batches() -> tuple[str, str]:
    """Ours over cross-entropy, both eager, at ten classes and at tens of thousands."""
    return span(_cuda("ours", "cross-entropy", (10, 32000, 65536, 131072)))


def small_batches() -> tuple[str, ...]:
    """Ours in a graph and eagerly."""
    eager = [1e6 * r["seconds"]["exact"] for r in records("torch_launches")["records"]]
    return *_microseconds("ours, graph"), *span(eager)


def small_batches_over_others() -> tuple[str, ...]:
    """The exact and the tempered game, and a function that computes nothing, over cross-entropy."""
    return tuple(f"{pick(_eager(name)):.2f}" for name in ("exact", "tempered", "nothing") for pick in (min, max))


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


def _head(classes: tuple[str, ...], spreads: tuple[str, ...], column: int) -> list[str]:
    """Entries of a column of the table of heads, as it prints them, least and largest."""
    rows = read("benchmarks/results/torch_head.json")["tables"][0]["rows"]
    found = [row[column] for row in rows if row[0].split()[-1] in classes and row[1] in spreads]
    return [min(found, key=float), max(found, key=float)]


def heads() -> tuple[str, ...]:
    """The exact head over compiled cross-entropy: time at many and at fewer classes, memory, before training."""
    large, small, trained = ("131072", "262144"), ("32000",), ("0.3", "1", "3", "1, ranked")
    every = (*large, *small)
    return (
        *_head(large, trained, 5), *_head(small, trained, 5), *_head(every, trained, 7), *_head(every, ("1e-06",), 5),
    )  # fmt: skip


def tempered_heads() -> tuple[str, ...]:
    """The tempered head over compiled cross-entropy: time, before training, memory, and where scores are ranked."""
    every, trained = ("32000", "131072", "262144"), ("0.3", "1", "3")
    return (
        *_head(every, trained, 10), *_head(every, ("0.01", "1e-06"), 10), *_head(every, trained, 12),
        *_head(every[1:], ("1, ranked",), 10),
    )  # fmt: skip


def other_heads() -> tuple[str, str]:
    """Liger's and cut-cross-entropy over compiled cross-entropy."""
    rows = read("benchmarks/results/torch_head.json")["tables"][1]["rows"]
    seconds = {(size, loss): float(time.split()[0]) for size, loss, time, _ in rows}
    ratios = [
        t / seconds[size, "compiled"] for (size, loss), t in seconds.items() if loss in ("Liger", "cut-cross-entropy")
    ]
    return f"{min(ratios):.1f}", f"{max(ratios):.1f}"


def _beside_cross_entropy(part: str, name: str) -> tuple[str, str, str, str]:
    """Points of top-1 above cross-entropy and half of the interval: after equal steps, and after equal time."""
    rows = {row[0]: row for row in read(f"benchmarks/results/{part}.json")["tables"][0]["rows"]}
    steps, time = (rows[name][column].split("(")[1].split(")")[0].split(" ± ") for column in (3, 5))
    return steps[0], steps[1], time[0], time[1]


def tempered_words() -> tuple[str, ...]:
    """The tempered head on text."""
    return _beside_cross_entropy("torch_words", "tempered")


def exact_words() -> tuple[str, ...]:
    """What the exact head loses on text, after equal steps and after equal time."""
    found = _beside_cross_entropy("torch_words", "exact")
    return found[0].lstrip("-"), found[2].lstrip("-")


def tempered_pictures() -> tuple[str, ...]:
    """The tempered head on many pictures."""
    return _beside_cross_entropy("torch_pictures", "tempered")


def trained_heads() -> tuple[str, ...]:
    """Both heads over compiled cross-entropy on scores of trained models."""
    took = records("torch_words")["head_seconds"]
    return tuple(
        f"{took[f'{name} on {name}'] / took[f'cross-entropy on {name}']:.2f}" for name in ("exact", "tempered")
    )


def _right(task: str, *losses: str) -> tuple[str, ...]:
    """Mean percentages of structured losses at work."""
    found = records("torch_learning")[task]
    return tuple(f"{100 * sum(found[loss]['right']) / len(found[loss]['right']):.1f}" for loss in losses)


def objects() -> tuple[str, ...]:
    """Objects found again."""
    return _right("objects", "matching game", "L1 of true pairs", "Hungarian + L1")


def heads_of_words() -> tuple[str, ...]:
    """Unlabelled attachment of the biaffine parser."""
    return _right("heads", "tree game", "cross-entropy")


def tempered_losses() -> tuple[str, ...]:
    """Tempered errors over cross-entropy from 32,000 classes on, and as graphs over compiled cross-entropy."""
    found = read("benchmarks/results/torch_tempered.json")["records"]["zero_one"]
    eager = [r["seconds"]["ours"] / r["seconds"]["cross-entropy"] for r in found if r["k"] >= 32_000]
    graphs = [r["seconds"]["ours, graph"] / r["seconds"]["cross-entropy, compiled, graph"] for r in found]
    return *(f"{x:.2f}" for x in (min(eager), max(eager))), *(f"{x:.2f}" for x in (min(graphs), max(graphs)))
