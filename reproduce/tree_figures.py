"""Figures 1 and 2 of [li2022]_: convergence of two projections onto trees, and what smoothing and radius do.

Figure 1 projects random labelled arcs by Frank-Wolfe and by ADMM. The released code gives Frank-Wolfe trees with one
root arc and ADMM those with any number, so that the two end at different points; here each has both polytopes, and the
distance is that from the exact projection. Figure 2 trains *Marginal* on features of 100 Dutch sentences.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import report
from nashlearn import games
from reproduce import parsers
from reproduce.protocol import Profile
from reproduce.references.tree_admm import admm_path, frank_wolfe_path
from reproduce.references.tree_layers import marginal
from reproduce.run import carry_out
from reproduce.store import Store

__all__ = ["converge", "run", "section", "sweep"]

METHODS = {"Frank-Wolfe": frank_wolfe_path, "ADMM": admm_path}
STEPS = 1000
SEEN = tuple(int(t) for t in np.unique(np.geomspace(1, STEPS, 40).round()))
TOKENS, LABELS, POINTS = 4, 3, 100  # five nodes with the root
GRID = tuple(10.0**-e for e in range(8))  # of lambda and mu, as published
TREEBANK, SENTENCES, INPUTS = "Dutch LassySmall", 100, "forms"

Key = list[Any]


def _rounded(values: np.ndarray) -> list[list[float]]:
    """Three digits are enough for a figure."""
    return [[float(f"{v:.2e}") for v in row] for row in values]


def converge(key: Key) -> dict[str, Any]:
    """Distances from the exact projection, and of the objective from its optimum, along the way."""
    _, method, single_root, points = key
    rng = np.random.default_rng(0)
    game = games.arborescence(TOKENS, single_root, n_labels=LABELS)
    at = np.array(SEEN) - 1
    METHODS[method](np.zeros((TOKENS, TOKENS + 1, LABELS)), 1, single_root)  # compiled before the clock runs
    seconds = 0.0
    distance, excess, other = [], [], []
    for scores in rng.uniform(-5, 5, size=(points, TOKENS, TOKENS + 1, LABELS)):
        exact = game.project(scores[None]).point[0]
        elsewhere = games.arborescence(TOKENS, not single_root, n_labels=LABELS).project(scores[None]).point[0]
        begin = time.process_time()
        path = METHODS[method](scores, STEPS, single_root)[at]
        seconds += time.process_time() - begin
        own = np.arange(TOKENS), np.arange(TOKENS) + 1
        scores[own] = 0.0
        least, there = np.sum((exact - scores) ** 2), np.sum((elsewhere - scores) ** 2)
        distance.append(np.sqrt(np.sum((path - exact) ** 2, axis=(1, 2, 3))))
        excess.append(np.sum((path - scores) ** 2, axis=(1, 2, 3)) - least)
        other.append(there - least)
    return {
        "key": key,
        "distance": _rounded(np.array(distance).T),
        "excess": _rounded(np.array(excess).T),
        "other_polytope": other,
        "seconds": seconds,
    }


def sweep(key: Key) -> dict[str, Any]:
    """Test UAS of *Marginal* at one lambda for every mu; the iterate is chosen on the development set."""
    _, draw, lam = key
    frozen, _, _ = parsers.load([INPUTS, TREEBANK, SENTENCES, draw])
    designs = {split: one.design() for split, one in frozen.items()}
    heads = frozen["train"].split(frozen["train"].truth)
    found = []
    for mu in GRID:
        best, score = -1.0, 0.0
        for w in marginal(designs["train"], heads, lam, mu, parsers.STEPS):
            dev = parsers.uas(frozen["dev"], designs["dev"], w)
            if dev > best:
                best, score = dev, parsers.uas(frozen["test"], designs["test"], w)
        found.append(score)
    return {"key": key, "uas": found}


def run(name: str, profile: Profile, folder: Path, n_jobs: int = 1) -> None:
    """Complete the store of both figures."""
    store = Store(folder / f"{name}.jsonl")
    points = POINTS if profile.splits > 3 else 5
    first = [["figure1", method, single, points] for method in METHODS for single in (False, True)]
    carry_out(converge, first, store, n_jobs, f"{name} 1")
    if profile.splits <= 3:
        return
    second = [["figure2", draw, lam] for draw in range(parsers.DRAWS) for lam in GRID]
    features = [["backbone", INPUTS, TREEBANK, SENTENCES, draw] for draw in range(parsers.DRAWS)]
    if any(key not in store for key in second):
        parsers.make_features(features, Store(folder / "parsers.jsonl"), n_jobs, name)
    carry_out(sweep, second, store, n_jobs, f"{name} 2")


def _draw_first(found: dict[tuple[str, bool], dict[str, Any]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for axis, single in zip(axes, (False, True), strict=True):
        for method in METHODS:
            record = found.get((method, single))
            if record is None:
                continue
            values = np.array(record["distance"])
            mean = values.mean(axis=1)
            half = 1.96 * values.std(axis=1, ddof=1) / np.sqrt(values.shape[1])
            (line,) = axis.loglog(SEEN, np.maximum(mean, 1e-14), label=method)
            low, high = np.maximum(mean - half, 1e-14), np.maximum(mean + half, 1e-14)
            axis.fill_between(SEEN, low, high, alpha=0.25, color=line.get_color())
        axis.set_title("one root arc" if single else "any number of root arcs")
        axis.set_xlabel("iterations")
        axis.legend()
    axes[0].set_ylabel("distance from the projection")
    figure.savefig(path, dpi=110)


def _draw_second(uas: np.ndarray, path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for axis, best, name in zip(axes, (uas.max(axis=1), uas.max(axis=2)), ("μ", "λ"), strict=True):
        axis.errorbar(GRID, 100 * best.mean(axis=0), yerr=100 * best.std(axis=0), marker="o", capsize=3)
        axis.set_xscale("log")
        axis.set_xlabel(f"{name} (best {'λ' if name == 'μ' else 'μ'} for each)")
    axes[0].set_ylabel("UAS")
    figure.savefig(path, dpi=110)


def _first_rows(found: dict[tuple[str, bool], dict[str, Any]]) -> list[list[str]]:
    rows = []
    for (method, single), record in found.items():
        distance, excess = np.array(record["distance"]), np.array(record["excess"])
        row = [method, "one" if single else "any"]
        row += [f"{distance[SEEN.index(t)].mean():.1e}" for t in (10, 100, STEPS) if t in SEEN]
        row += [f"{excess[-1].mean():.1e}", f"{np.abs(record['other_polytope']).mean():.2f}"]
        rows.append([*row, f"{1e3 * record['seconds'] / distance.shape[1]:.1f} ms"])
    return rows


def section(folder: Path) -> str:
    """Both figures with their tables, or nothing where nothing is stored."""
    store, parts = Store(folder / "tree_figures.jsonl"), []
    found = {(r["key"][1], r["key"][2]): r for r in store if r["key"][0] == "figure1"}
    if found:
        _draw_first(found, folder / "trees_figure1.png")
        seen = [str(t) for t in (10, 100, STEPS) if t in SEEN]
        columns = ["method", "root arcs", *(f"distance after {t}" for t in seen), "objective above the optimum"]
        columns += ["other polytope's optimum off by", "time a point"]
        points = len(next(iter(found.values()))["other_polytope"])
        apart = np.mean([np.mean(np.abs(r["other_polytope"]) > 1e-9) for r in found.values()])
        note = (
            f"Li et al. 2022, Figure 1: {points} random points of [-5, 5]^75 (five nodes, three parallel arcs), each "
            "method on both polytopes, against the exact projection (mean, 95 % interval shaded, nothing drawn below "
            "1e-14). The released code gives Frank-Wolfe trees with one root arc and ADMM those with any number: the "
            f"optima differ for {100 * apart:.0f} % of the points, by the last column but one on average, "
            "so that a figure made with it would compare two problems. On the same polytope ADMM, whose subproblems "
            "are solved here to rounding, reaches the exact point; Frank-Wolfe keeps its 1/t."
        )
        table = report.table("trees: Figure 1, projection by Frank-Wolfe and ADMM", note, columns, _first_rows(found))
        parts += [report.show(table), "![Convergence of both methods on both polytopes](trees_figure1.png)"]
    sweeps = {(r["key"][1], r["key"][2]): r["uas"] for r in store if r["key"][0] == "figure2"}
    draws = [d for d in range(parsers.DRAWS) if all((d, lam) in sweeps for lam in GRID)]
    if draws:
        uas = np.array([[sweeps[d, lam] for lam in GRID] for d in draws])  # draws, lambda, mu
        _draw_second(uas, folder / "trees_figure2.png")
        mean = 100 * uas.mean(axis=0)
        rows = [[f"{lam:g}", *(f"{v:.2f}" for v in row)] for lam, row in zip(GRID, mean, strict=True)]
        best = np.unravel_index(mean.argmax(), mean.shape)
        note = (
            f"Li et al. 2022, Figure 2: test UAS of *Marginal* on {TREEBANK}, {SENTENCES} sentences, mean over "
            f"{len(draws)} of {parsers.DRAWS} draws; features of the sample alone. Best at λ = {GRID[best[0]]:g}, "
            f"μ = {GRID[best[1]]:g}; the whole table spans {np.ptp(mean):.1f}."
        )
        table = report.table("trees: Figure 2, λ (rows) and μ", note, ["λ", *(f"μ = {mu:g}" for mu in GRID)], rows)
        parts += [report.show(table), "![Best UAS as μ and λ vary](trees_figure2.png)"]
    return "\n\n".join(part.strip().replace("### ", "## ", 1) for part in parts)
