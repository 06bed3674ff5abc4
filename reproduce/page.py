"""The Markdown page and the summary file, both made from stored results and ``papers.json`` alone."""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import machine
from reproduce import (
    hidden_chain,
    labelling,
    laptop_parser,
    matching_page,
    matching_time,
    parsers_page,
    roles,
    sensitivity,
    sentiment,
    sudoku,
    tree_figures,
)
from reproduce.cells import TUNING_ROUNDS
from reproduce.constraints import KINDS
from reproduce.methods import METHODS
from reproduce.papers import PAPERS
from reproduce.protocol import Profile
from reproduce.store import Store
from reproduce.summary import Cell, Summary, explanation, summarise
from reproduce.tables import TABLES, Column, Table

__all__ = ["note_machine", "write"]

_PEERS = ("mord", "skordinal", "clarabel")

_HEAD = """# The papers' tables, repeated

Made by `python -m reproduce` from the files in `{folder}`; `make reproduce` repeats it, `make reproduce TABLES="II"`
one table. Published figures come from `papers.json`, everything else was measured.

**Protocol of chapter 2** ([fathony2016] sec. 4, [fathony2019] sec. 2.8; where those are silent, the authors' examples).
{splits} random splits with the published sizes (the authors' own for glass and diabetes); features standardised by the
training part; parameters tuned on the first split by two rounds of five-fold cross-validation with the published grids;
the constant feature is regularised. Fits end at a certified relative gap of 1e-3, in tuning of 1e-2
or, with a kernel, after {rounds} rounds (the stored Tables II and V were tuned without that limit).

**Reading.** "paper" is published, "here" measured: mean ± standard deviation over splits. Bold: best of the columns
measured here, or not significantly worse (Wilcoxon signed-rank, 0.05). *quoted*: nothing installable gives that column.
Δ is our distance from the paper's mean in its standard deviations, positive where ours is better.
"""


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def note_machine(folder: Path, table: str, n_jobs: int) -> None:
    """Record on what a table is about to be run."""
    found = machine()
    found["packages"].update({package: _version(package) for package in _PEERS})
    Store(folder / "machine.jsonl").add({"key": [table], "jobs": n_jobs, **found})


def _digits(table: Table) -> tuple[int, int]:
    """Digits of means and of averages, as the papers print them."""
    return (1, 2) if table.accuracy else (3, 3)


def _grid(heads: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(heads) + " |", "|" + "|".join(["---", *["---:"] * (len(heads) - 1)]) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _live(table: Table, cell: Cell | None, bold: bool) -> str:
    if cell is None:
        return "–"
    digits = _digits(table)[0]
    text = f"{cell.mean:.{digits}f} ± {cell.sd:.{min(digits, 2)}f}"
    text = f"**{text}**" if bold else text
    return f"{text} [{cell.abstained:.0f} %]" if table.key == "VI" else text


def _printed(summary: Summary, column: Column, name: str) -> str:
    published = summary.paper(column, name)
    if published is None:
        return "–"
    digits = _digits(summary.table)[0]
    text = f"{published[0]:.{digits}f} ({published[1]:.{min(digits, 2)}f})"
    if summary.table.key != "VI":
        return text
    position = summary.table.paper["sets"].index(name)
    return f"{text} [{summary.table.paper['columns'][column.paper]['abstained'][position]:.0f} %]"


def _ours(column: Column) -> bool:
    return column.method is not None and METHODS[column.method].package == "nashlearn"


def _heads(table: Table) -> list[str]:
    heads = ["set"]
    for column in table.columns:
        if column.paper is not None:
            heads.append(f"{column.heading}, paper" if column.method else f"{column.heading}, *quoted*")
        if column.method is not None:
            heads.append(f"{column.heading}, here")
        if _ours(column):
            heads.append("Δ")
    return heads


def _row(summary: Summary, name: str) -> list[str]:
    best, row = summary.best(name), [name]
    for column in summary.table.columns:
        if column.paper is not None:
            row.append(_printed(summary, column, name))
        if column.method is not None:
            row.append(_live(summary.table, summary.cells.get((name, column.method)), column.method in best))
        if _ours(column):
            deviation = summary.deviation(column, name)
            row.append("–" if deviation is None else f"{deviation:+.1f}")
    return row


def _last_rows(summary: Summary) -> list[list[str]]:
    averages, counts = ["average"], ["number bold"]
    digits = _digits(summary.table)[1]
    best = [summary.best(name) for name in summary.sets]
    for column in summary.table.columns:
        if column.paper is not None:
            averages.append(_number(summary.paper_average(column), digits))
            counts.append("")
        if column.method is not None:
            averages.append(_number(summary.average(column), digits))
            counts.append(str(sum(column.method in one for one in best)))
        if _ours(column):
            averages.append("")
            counts.append("")
    return [averages, counts]


def _verdicts(name: str, summary: Summary) -> list[str]:
    """How our averages stand to the published ones, and every set more than two standard deviations away."""
    lines, table = [], summary.table
    digits = _digits(table)[1]
    for column in filter(_ours, table.columns):
        here, there = summary.average(column), summary.paper_average(column)
        if here is None or there is None:
            continue
        behind = (there - here) if table.accuracy else (here - there)
        state = "met" if behind <= table.margin else "not met"
        lines.append(
            f"- {column.heading}: average {here:.{digits}f} over {len(summary.sets)} sets, published "
            f"{there:.{digits}f}; at most {table.margin:g} behind is {state}."
        )
        for one in summary.sets:
            deviation = summary.deviation(column, one)
            if deviation is not None and abs(deviation) > 2.0:
                why = explanation(name, one, column.method)
                lines.append(f"- {column.heading} on {one} is {deviation:+.1f} standard deviations away: {why}")
    return lines


def _tuned(summary: Summary) -> list[str]:
    lines = []
    for column in summary.table.columns:
        if column.method is None:
            continue
        method = METHODS[column.method]
        found = [(name, summary.cells.get((name, column.method))) for name in summary.sets]
        values = ", ".join(
            f"{name} {cell.strength:.3g}" + (f" (γ {cell.gamma:.3g})" if method.kernel else "")
            for name, cell in found
            if cell is not None
        )
        note = f" ({method.note})" if method.note else ""
        state = "" if method.available or values else " is not installed here."
        lines.append(f"- {column.heading}{note}, {method.grid}:{state} {values}")
    return lines


def _section(name: str, summary: Summary) -> str:
    table = summary.table
    rows = [_row(summary, one) for one in summary.sets] + _last_rows(summary)
    cost = (
        f"All cells together took {summary.seconds:.0f} s of one core; the largest certified gap is {summary.gap:.1e}, "
        f"{summary.warned} of our final fits warned."
    )
    parts = [
        f"## {name}: {table.title}",
        f"{table.paper['reference']}.",
        _grid(_heads(table), rows),
        "\n".join(_verdicts(name, summary)),
        cost,
        "Tuned parameters:\n\n" + "\n".join(_tuned(summary)),
    ]
    return "\n\n".join(part for part in parts if part)


def _constraints(store: Store) -> str:
    """Paper Table 1 beside our counts."""
    printed = PAPERS["1"]
    heads = ["set"]
    for kind in KINDS:
        heads += [f"{kind}: added, paper", "here", "active, paper", "here", "splits"]
    rows = []
    for position, name in enumerate(printed["sets"]):
        row = [name]
        for kind in KINDS:
            found = [record for record in store if record["key"][1:3] == [name, kind]]
            for what in ("added", "active"):
                row.append(str(printed["columns"][f"{kind} {what}"][position]))
                row.append(f"{np.mean([record[what] for record in found]):.0f}" if found else "–")
            row.append(str(len(found)))
        rows.append(row)
    seconds = sum(record["seconds"] for record in store)
    return "\n\n".join(
        [
            "## table1: constraints added and active",
            f"{printed['reference']}; constraint generation (its Algorithm 1) with Clarabel, at the parameters tuned "
            "for Table II, over fewer splits where the quadratic programs are large and none where they do not fit.",
            _grid(heads, rows),
            f"All cells together took {seconds:.0f} s of one core.",
        ]
    )


def _sensitivity(folder: Path) -> str:
    """What other tuning splits would have printed, beside the paper's figure and ours."""
    store, rows = Store(folder / "sensitivity.jsonl"), []
    for table_name, name, method in sensitivity.CASES:
        table = TABLES[table_name]
        found = [record for record in store if record["key"][:3] == [table_name, name, method]]
        if not found:
            continue
        column = next(column for column in table.columns if column.method == method)
        summary = summarise(table, Store(folder / f"{table_name}.jsonl"))
        means = np.array([table.shown(record["loss"]) for record in found])
        published, cell = summary.paper(column, name), summary.cells.get((name, method))
        rows.append(
            [
                f"{table_name}, {name}, {column.heading}",
                _number(published[0] if published else None, 3),
                _number(cell.mean if cell else None, 3),
                ", ".join(f"{mean:.3f}" for mean in means),
                f"{means.mean():.3f} ({means.min():.3f} to {means.max():.3f})",
            ]
        )
    if not rows:
        return ""
    heads = ["figure", "paper", "here", "mean over all splits, tuned on split 0, 1, …", "mean and range"]
    note = (
        "The same protocol with other splits in the place of the first: what a figure owes to the rows that its "
        "parameters were tuned on. A published figure within the range is no evidence of another method."
    )
    return "\n\n".join(["## sensitivity: the split that parameters are tuned on", note, _grid(heads, rows)])


def _machines(folder: Path) -> str:
    lines = []
    for record in Store(folder / "machine.jsonl"):
        packages = ", ".join(f"{package} {version}" for package, version in record["packages"].items())
        lines.append(
            f"- {record['key'][0]}: {record['date']}, {record['cpu']}, {record['jobs']} of {record['cores']} cores, "
            f"Python {record['python']}; {packages}"
        )
    return "## Measured on\n\n" + "\n".join(lines) if lines else ""


def _plain(summary: Summary) -> dict[str, Any]:
    return {
        f"{name}/{method}": {"mean": cell.mean, "sd": cell.sd, "splits": cell.values.size, "abstained": cell.abstained}
        for (name, method), cell in summary.cells.items()
    }


def write(folder: Path, profile: Profile) -> Path:
    """Rewrite ``README.md`` and ``summary.json`` in the folder of results."""
    sections, plain = [], {}
    for name, table in TABLES.items():
        summary = summarise(table, Store(folder / f"{name}.jsonl"))
        if summary.cells:
            sections.append(_section(name, summary))
            plain[name] = _plain(summary)
    counts = Store(folder / "table1.jsonl")
    if list(counts):
        sections.append(_constraints(counts))
    sections.append(_sensitivity(folder))
    sections.append(matching_page.matching_section(folder))
    sections.append(matching_time.section(folder))
    sections.append(matching_page.tracking_section(folder))
    sections += [part.section(folder) for part in (hidden_chain, sudoku, sentiment, roles, labelling)]
    sections.append(tree_figures.section(folder))
    sections.append(parsers_page.parsers_section(folder))
    sections.append(laptop_parser.section(folder))
    head = _HEAD.format(folder=f"reproduce/results/{profile.name}", splits=profile.splits, rounds=TUNING_ROUNDS)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "summary.json").write_text(json.dumps(plain, indent=1) + "\n", encoding="utf-8")
    path = folder / "README.md"
    path.write_text("\n\n".join(filter(None, [head.strip(), *sections, _machines(folder)])) + "\n", encoding="utf-8")
    return path
