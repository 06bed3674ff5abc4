"""``python -m reproduce [--quick] [--jobs N] [TABLE …]``: all tables by default, resumed where they were left."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
HERE = Path(__file__).parent


def main() -> None:
    """Run the tables that were asked for, one after another, and rewrite the page."""
    # Thread pools read these once, when NumPy is first imported.
    os.environ.update(dict.fromkeys(THREADS, "1"))
    from reproduce import (
        constraints,
        hidden_chain,
        labelling,
        laptop_parser,
        matching,
        matching_time,
        page,
        parsers,
        roles,
        sensitivity,
        sentiment,
        sudoku,
        tracks,
        tree_figures,
    )
    from reproduce.protocol import FULL, QUICK
    from reproduce.run import run_table
    from reproduce.tables import GROUPS

    every = [table for group in GROUPS.values() for table in group]
    parser = argparse.ArgumentParser(prog="python -m reproduce", description=__doc__)
    parser.add_argument("tables", nargs="*", metavar="table", help=" | ".join([*GROUPS, *every]))
    parser.add_argument("--quick", action="store_true", help="three splits of the smallest sets, a thin grid")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes (default: one a core)")
    parser.add_argument("--page-only", action="store_true", help="rewrite the page from the stored results")
    options = parser.parse_args()
    asked = options.tables or list(GROUPS)
    unknown = sorted(set(asked) - {*GROUPS, *every})
    if unknown:
        parser.error(f"unknown table: {', '.join(unknown)}; choose from {', '.join([*GROUPS, *every])}")

    profile = QUICK if options.quick else FULL
    folder = HERE / "results" / profile.name
    runners = {
        "table1": constraints.run,
        "sensitivity": sensitivity.run,
        "table12": matching.run,
        "table13": matching_time.run,
        "tracking": tracks.run,
        "hidden_chain": hidden_chain.run,
        "sudoku": sudoku.run,
        "sentiment": sentiment.run,
        "roles": roles.run,
        "labelling": labelling.run,
        "tree_figures": tree_figures.run,
        "parsers": parsers.run,
        "laptop_parser": laptop_parser.run,
    }
    for table in dict.fromkeys(t for name in asked for t in GROUPS.get(name, (name,))):
        if not options.page_only:
            page.note_machine(folder, table, options.jobs)
            runners.get(table, run_table)(table, profile, folder, options.jobs)
        path = page.write(folder, profile)
    print(f"see {path}")


if __name__ == "__main__":
    main()
