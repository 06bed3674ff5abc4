"""``python -m benchmarks [part ...]`` runs parts of the benchmarks, all by default; ``--help`` names them."""

from __future__ import annotations

import argparse
import importlib
import os

PARTS = (
    "losses",
    "costs",
    "training",
    "tempered",
    "sparse",
    "kernels",
    "growth",
    "memory",
    "start",
    "threads",
    "matching",
    "trees",
    "treebank",
    "markov",
    "graphs",
    "entities",
    "coverage",
    "scale_out",
    "messy",
)
ON_DEVICE = (
    "torch_losses",
    "torch_launches",
    "torch_tempered",
    "torch_costs",
    "torch_chains",
    "torch_head",
    "torch_words",
    "torch_pictures",
    "torch_structures",
    "torch_learning",
    "deep",
    "threads_wide",
    "out_of_core",
)  # for CUDA, many cores, or 10 GB of disk: only when asked for by name
PAGE = (*PARTS, *ON_DEVICE, "compare")  # of results; the last has a program of its own
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def main() -> None:
    """Run the parts that were asked for, one after another, and rewrite the page of results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="part", help=" | ".join(PARTS + ON_DEVICE))
    parts = parser.parse_args().parts or list(PARTS)
    unknown = sorted(set(parts) - {*PARTS, *ON_DEVICE})
    if unknown:
        parser.error(f"unknown part: {', '.join(unknown)}; choose from {', '.join(PARTS + ON_DEVICE)}")
    # Thread pools read these once, when NumPy is first imported: before any part is.
    os.environ.update(dict.fromkeys(THREADS, "1"))
    from benchmarks import report

    for part in parts:
        print(f"== {part}", flush=True)
        tables, records = importlib.import_module(f"benchmarks.{part}").run()
        report.save(part, tables, records)
        report.write_page(PAGE)
        for one in tables:
            print(report.show(one), flush=True)


if __name__ == "__main__":
    main()
