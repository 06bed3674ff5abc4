"""Tables 2 and 3 of Franc et al.: Sudoku learnt from solved puzzles, given as symbols or as handwritten digits.

The model knows which cells are related, not how. Of the cells that a puzzle leaves empty, 0, 10 or 20 % are not
labelled in training; propensities are 1 for given cells and the share of labelled ones for empty cells, their products
for pairs. Visual features are Gaussian kernels to 2,000 training digits, of images scaled to norm 1 (on raw pixels the
paper's width gives zeros), turned to the 1,000 axes of their largest variance and scaled to the same variance on each,
for which training needs far fewer iterations; an empty cell has a feature of its own. That variance is 0.01: so the
regulariser holds the 9,000 weights of digits more than the 81 of the rules, and misread digits do not outweigh broken
rules. Test puzzles are answered by the exact search; *unproved* counts those that ran out of time. Visual models choose
alpha by the fast search on 20 more puzzles; those trained on 1,000 take the one that 100 chose. Below 1e-4 training
does not come to its end: 60 iterations on 1,000 puzzles left a gap of 10.7 at 1e-5.
"""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import report
from nashlearn import NashMarkovNetwork, datasets
from nashlearn.games import markov
from reproduce.networks import trained
from reproduce.papers import PAPERS
from reproduce.protocol import Profile
from reproduce.run import carry_out
from reproduce.store import Store

__all__ = ["EDGES", "puzzles", "run", "section", "work"]

CELLS = np.arange(81)
BOXES = CELLS // 27 * 3 + CELLS % 9 // 3
EDGES = np.array(
    [(u, v) for u in range(81) for v in range(u + 1, 81) if u // 9 == v // 9 or u % 9 == v % 9 or BOXES[u] == BOXES[v]]
)
TEST, VALIDATION, CENTRES, AXES = 100, 20, 2000, 1000
TIME_LIMIT = {"symbolic": 10.0, "visual": 3.0}
MISSING = (0.0, 0.1, 0.2)
SIZES = {"symbolic": (10, 100), "visual": (10, 100, 1000)}
DRAWS = {"symbolic": {10: 3, 100: 3}, "visual": {10: 1, 100: 1, 1000: 1}}
METHODS = {"nash": "MANA", "ssvm": "M3N"}
ALPHAS = {"symbolic": (1e-3,), "visual": (1e-3, 1e-4)}
SMOOTHING, SPREAD = {"symbolic": 0.5, "visual": 0.1}, 0.1
MAX_ITER, TOL = {10: 100, 100: 100, 1000: 60}, {10: 1e-2, 100: 1e-2, 1000: 0.05}


@cache
def _digits(part: str) -> tuple[np.ndarray, np.ndarray]:
    found = datasets.load_mnist(part=part)
    images = found.data.astype(np.float32)
    return images / np.linalg.norm(images, axis=1, keepdims=True), found.target


@cache
def _centres() -> np.ndarray:
    images, _ = _digits("train")
    return images[np.random.default_rng(7).choice(len(images), CENTRES, replace=False)]


def _kernels(images: np.ndarray) -> np.ndarray:
    centres = _centres()
    square = (images**2).sum(axis=1)[:, None] - 2.0 * images @ centres.T + (centres**2).sum(axis=1)
    return np.exp(-2.0 * square.astype(np.float64))


@cache
def _axes() -> tuple[np.ndarray, np.ndarray]:
    """Mean of the kernels, and what takes their differences from it to axes with equal variance."""
    images, _ = _digits("train")
    K = _kernels(images[np.random.default_rng(8).choice(len(images), 3 * CENTRES, replace=False)])
    variance, axes = np.linalg.eigh(np.cov(K.T))
    return K.mean(axis=0), SPREAD * axes[:, -AXES:] / np.sqrt(variance[-AXES:])


def _seen(kind: str, puzzle: np.ndarray, part: str, rng: np.random.Generator) -> np.ndarray:
    """Features of the 81 cells."""
    if kind == "symbolic":
        return np.eye(10)[puzzle]
    images, labels = _digits(part)
    mean, axes = _axes()
    given = np.flatnonzero(puzzle)
    shown = images[[rng.choice(np.flatnonzero(labels == puzzle[v])) for v in given]]
    features = np.zeros((81, AXES + 1))
    features[given, :AXES] = (_kernels(shown) - mean) @ axes
    features[puzzle == 0, AXES] = 1.0
    return features


def puzzles(kind: str, m: int, missing: float, draw: int, part: str) -> tuple[list[Any], list[np.ndarray], list[Any]]:
    """Inputs, labels (-1: missing) and propensities of a draw; its last puzzles are those of test and validation."""
    found = datasets.load_sudoku("manet")
    rng = np.random.default_rng([draw, ("train", "test", "validation").index(part)])
    order = np.random.default_rng([draw, 5]).permutation(len(found.data))
    rows = {"test": order[-TEST:], "validation": order[-TEST - VALIDATION : -TEST], "train": order[:m]}[part]
    X, y, labelled = [], [], []
    for i in rows:
        puzzle, solution = found.data[i], found.target[i]
        hidden = (puzzle == 0) & (rng.random(81) < missing)
        X.append((_seen(kind, puzzle, "test" if part == "test" else "train", rng), EDGES))
        y.append(np.where(hidden, -1, solution))
        labelled.append((puzzle == 0, hidden))
    empty, hidden = (np.array(one) for one in zip(*labelled, strict=True))
    rate = 1.0 - hidden[empty].mean()
    pi = [np.where(one, rate, 1.0) for one in empty]
    return X, y, [(p, p[EDGES[:, 0]] * p[EDGES[:, 1]]) for p in pi]


def work(key: list[Any]) -> dict[str, Any]:
    """A cell: ``[table, kind, m, missing, method, draw, n_test, alpha]``; without test puzzles, one of validation."""
    _, kind, m, missing, method, draw, n_test, alpha = key
    X, y, pi = puzzles(kind, m, missing, draw, "train")
    given = {"propensities": pi} if missing else {}
    jobs = -1 if m == 1000 else 1
    model = NashMarkovNetwork(alpha=alpha, smoothing=SMOOTHING[kind], tol=TOL[m], max_iter=MAX_ITER[m], n_jobs=jobs)
    model, seconds = trained(method, model, X, y, **given)
    del X
    record = {"key": key, "seconds": seconds, "gap": model.dual_gap_}
    if not n_test:
        return {**record, "validation": _answers(model, kind, draw, "validation", VALIDATION, "ascent")["hamming"]}
    return {**record, **_answers(model, kind, draw, "test", n_test, "exact")}


def _answers(model: Any, kind: str, draw: int, part: str, most: int, method: str) -> dict[str, Any]:
    """How a model fares on puzzles of a part."""
    game = markov(EDGES, 9, exact=False)
    Z, t, _ = puzzles(kind, 1, 0.0, draw, part)
    Z, t = Z[:most], t[:most]
    scores = model.decision_function(Z)
    limit = {"time_limit": TIME_LIMIT[kind]} if method == "exact" else {}
    game.maximise(scores[0], method=method, **limit)  # compiled code is loaded
    wrong, cells, unproved, began = 0, 0, 0, time.process_time()
    for one, solution in zip(scores, t, strict=True):
        found = game.maximise(one, method=method, **limit)
        errors = int((model.classes_[found.labels] != solution).sum())
        wrong, cells, unproved = wrong + (errors > 0), cells + errors, unproved + (found.status != "optimal")
    return {
        "puzzles": wrong / len(Z),
        "hamming": cells / (81 * len(Z)),
        "unproved": unproved,
        "decoding": (time.process_time() - began) / len(Z),
    }


def _chosen(store: Store, cell: list[Any]) -> float:
    """The alpha that a cell's validation prefers; the cell of 100 puzzles for those of 1,000."""
    table, kind, m, *rest = cell
    if len(ALPHAS[kind]) == 1:
        return ALPHAS[kind][0]
    return min(ALPHAS[kind], key=lambda a: store[[table, kind, min(m, 100), *rest, 0, a]]["validation"])


def run(table_name: str, profile: Profile, folder: Path, n_jobs: int = 1) -> Store:
    """Complete the store; the largest training sets last, one at a time, with threads of their own."""
    store = Store(folder / f"{table_name}.jsonl")
    full = profile.name == "full"
    cells = [
        [table_name, kind, m, missing, method, draw]
        for kind, sizes in SIZES.items()
        for m in (sizes if full else sizes[:1])
        for method in METHODS
        for missing in (MISSING if full else MISSING[:2])
        for draw in range(DRAWS[kind][m] if full else 1)
    ]
    tuning = [[*one, 0, a] for one in cells if one[2] < 1000 and len(ALPHAS[one[1]]) > 1 for a in ALPHAS[one[1]]]
    carry_out(work, tuning, store, n_jobs, f"{table_name} validation")
    tests = [[*one, TEST if full else 5, _chosen(store, one)] for one in cells]
    carry_out(work, [key for key in tests if key[2] < 1000], store, n_jobs, table_name)
    carry_out(work, [key for key in tests if key[2] == 1000], store, 1, f"{table_name} large")
    return store


def section(folder: Path) -> str:
    """Both tables as Markdown, or nothing where no cell was run."""
    found: dict[tuple[str, float, int, str], list[dict[str, Any]]] = {}
    for record in Store(folder / "sudoku.jsonl"):
        _, kind, m, missing, method, _, n_test, _ = record["key"]
        if n_test:
            found.setdefault((kind, missing, m, method), []).append(record)
    if not found:
        return ""
    rows = []
    for kind, missing, m in sorted({cell[:3] for cell in found}):
        row = [kind, f"{missing:.0%}", str(m)]
        for method, name in METHODS.items():
            records = found.get((kind, missing, m, method), [])
            position = PAPERS["MANA 2"]["sets"].index(f"{kind} {missing:.0%} {m}")
            printed = PAPERS["MANA 2"]["columns"][name]["mean"][position]
            wrong, cells = (
                np.mean([r[what] for r in records]) if records else np.nan for what in ("puzzles", "hamming")
            )
            row += [
                "–" if printed is None else f"{printed:.1f}",
                f"{100 * wrong:.1f} ({cells:.4f})" if records else "–",
            ]
        ours = found.get((kind, missing, m, "nash"), [])
        row.append(f"{np.mean([r['seconds'] for r in ours]):.0f} s" if ours else "–")
        row.append(
            f"{np.mean([r['decoding'] for r in ours]):.2f} s, {sum(r['unproved'] for r in ours)}" if ours else "–"
        )
        rows.append([*row, str(len(ours))])
    others = PAPERS["MANA 3"]["columns"]
    quoted = ", ".join(f"{name} {one['mean'][0]:g} and {one['mean'][1]:g}" for name, one in others.items())
    note = (
        f"Percent of {TEST} test puzzles with a mistake, and share of wrong cells in brackets, mean over draws. "
        "*training*, *decoding*: ours, CPU seconds, the latter of a puzzle, and how many of all draws' puzzles were "
        "not proved best. Table 3 compares, in percent of symbolic and visual puzzles, networks trained on 9,000 "
        f"puzzles: {quoted} (published)."
    )
    heads = ["input", "missing", "puzzles", "MANA, paper", "NashMarkovNetwork", "M3N, paper", "LP margin rescaling"]
    heads += ["training", "decoding, unproved", "draws"]
    title = "sudoku: puzzles learnt from solutions (MANA, Tables 2 and 3)"
    return report.show(report.table(title, note, heads, rows)).replace("### ", "## ", 1)
