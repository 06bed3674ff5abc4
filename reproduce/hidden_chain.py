"""Table 1 of Franc et al.: hidden Markov chains from 10, 100 and 1000 sequences, with 0, 10 and 20 % of labels missing.

Sequences of 100 symbols out of 30; a state stays, and shows itself, with probability 0.7. Settings are chosen on
validation sequences of the first draw, per cell; *default* takes none. *exact* trains without smoothing. Beside them
the structured SVM (the paper's M3N), a random field with both of its decodings, and the paper's own Adam.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import report
from nashlearn import NashTagger
from nashlearn.games.networks.batch import Networks
from nashlearn.solvers.threads import threads
from reproduce.networks import bayes as bayes_decoder
from reproduce.networks import trained
from reproduce.papers import PAPERS
from reproduce.protocol import Profile
from reproduce.references.mana_adam import mana_adam
from reproduce.run import carry_out
from reproduce.store import Store

__all__ = ["bayes", "draw", "run", "section", "work"]

STATES, LENGTH, STAY = 30, 100, 0.7
SIZES, MISSING = (10, 100, 1000), (0.0, 0.1, 0.2)
TEST, VALIDATION, DRAWS = 5000, 1000, 5
SMOOTHINGS, ALPHAS = (0.25, 0.5, 1.0), (1e-3, 1e-4)
ADAM = 100, 300  # sequences and passes of the paper's own training
DEFAULT = {"alpha": 1e-4, "smoothing": 0.5}  # of cells that name none
EXACT = {"alpha": 1e-4, "smoothing": 0.0, "tol": 0.02, "max_iter": 400}


def _first(seed: int) -> np.ndarray:
    return np.random.default_rng([seed, 0]).dirichlet(np.ones(STATES))


def draw(m: int, seed: int, part: int) -> tuple[np.ndarray, np.ndarray]:
    """Symbols and states (m, 100) of a part of a draw."""
    rng = np.random.default_rng([seed, 1, part])
    y = np.empty((m, LENGTH), dtype=np.int64)
    y[:, 0] = rng.choice(STATES, m, p=_first(seed))
    for t in range(1, LENGTH):
        moved = (y[:, t - 1] + rng.integers(1, STATES, m)) % STATES
        y[:, t] = np.where(rng.random(m) < STAY, y[:, t - 1], moved)
    shown = (y + rng.integers(1, STATES, y.shape)) % STATES
    return np.where(rng.random(y.shape) < STAY, y, shown), y


def bayes(x: np.ndarray, seed: int) -> np.ndarray:
    """The most probable state of each position, from the true model."""
    move = np.full((STATES, STATES), (1 - STAY) / (STATES - 1))
    np.fill_diagonal(move, STAY)
    forward, backward = np.empty((LENGTH, len(x), STATES)), np.ones((LENGTH, len(x), STATES))
    forward[0] = _first(seed) * move[:, x[:, 0]].T
    for t in range(1, LENGTH):
        forward[t] = forward[t - 1] @ move * move[:, x[:, t]].T
        forward[t] /= forward[t].sum(axis=1, keepdims=True)
    for t in range(LENGTH - 2, -1, -1):
        backward[t] = (backward[t + 1] * move[:, x[:, t + 1]].T) @ move
        backward[t] /= backward[t].sum(axis=1, keepdims=True)
    return (forward * backward).argmax(axis=2).T


def _features(x: np.ndarray) -> list[np.ndarray]:
    return list(np.eye(STATES)[x])


def _error(answers: list[np.ndarray], y: np.ndarray) -> float:
    return float(np.mean(np.array(answers) != y))


def _train(method: str, m: int, missing: float, seed: int, **settings: Any) -> tuple[NashTagger, float]:
    x, y = draw(m, seed, 0)
    hidden = np.random.default_rng([seed, 2]).random(y.shape) < missing
    return trained(method, NashTagger(**{**DEFAULT, **settings}), _features(x), list(np.where(hidden, -1, y)))


def _chosen(method: str, m: int, missing: float) -> dict[str, float]:
    x, y = draw(VALIDATION, 0, 1)
    X = _features(x)
    grid = [{"smoothing": s, "alpha": a} for s in SMOOTHINGS for a in ALPHAS]
    if method != "nash":  # which have no smoothing to choose
        grid = [{"alpha": a} for a in ALPHAS]
    errors = [_error(_train(method, m, missing, 0, **one)[0].predict(X), y) for one in grid]
    return grid[int(np.argmin(errors))]


def _adam(key: list[Any]) -> dict[str, Any]:
    """The paper's training, decoded as ours is: on a chain whose weights are given."""
    _, m, _, _, seed, passes = key
    x, y = draw(m, seed, 0)
    start = time.process_time()
    emission, transition, loss = mana_adam(x, y, STATES, passes)
    seconds = time.process_time() - start
    x, y = draw(TEST, seed, 2)
    networks = Networks(np.full(TEST, LENGTH), None, STATES, "zero_one", "auto")
    answers = networks.argmax(emission[x.ravel()], transition[None], threads(1)).reshape(y.shape)
    return {"key": key, "error": _error(list(answers), y), "objective": loss, "seconds": seconds}


def work(key: list[Any]) -> dict[str, Any]:
    """A cell: ``[table, m, missing, what, seed, settings]``, or ``[table, m, missing, "chosen", method]``."""
    _, m, missing, what = key[:4]
    if what == "chosen":
        return {"key": key, "settings": _chosen(key[4], m, missing)}
    if what == "adam":
        return _adam(key)
    seed, settings = key[4], key[5]
    method = what if what in ("crf", "ssvm") else "nash"
    model, seconds = _train(method, m, missing, seed, **settings)
    x, y = draw(TEST, seed, 2)
    if method == "crf":
        other = {"marginal": _error(bayes_decoder(1.0 - np.eye(STATES))(model, _features(x)), y)}
    else:
        other = {}
    return {
        "key": key,
        "error": _error(model.predict(_features(x)), y),
        "bayes": float(np.mean(bayes(x, seed) != y)),
        "seconds": seconds,
        "iterations": model.n_iter_,
        "gap": model.dual_gap_,
        "objective": model._unit * model.objective_,  # in costs, as the weights
        "transitions": model._unit * float(np.abs(model.transitions_ - model.transitions_.mean()).max()),
        "emissions": model._unit * float(np.abs(model.coef_ - model.coef_.mean()).max()),
        **other,
    }


def run(table_name: str, profile: Profile, folder: Path, n_jobs: int = 1) -> Store:
    """Complete the store: defaults, chosen settings, and the exact game."""
    store = Store(folder / f"{table_name}.jsonl")
    sizes = SIZES if profile.name == "full" else SIZES[:2]
    seeds = range(min(DRAWS, profile.splits))
    cells = [(m, missing) for m in reversed(sizes) for missing in MISSING]
    keys: list[list[Any]] = [[table_name, m, r, "default", s, {}] for m, r in cells for s in seeds]
    keys += [[table_name, m, 0.0, "exact", 0, EXACT] for m in reversed(sizes)]
    keys.append([table_name, *ADAM[:1], 0.0, "adam", 0, ADAM[1] if profile.name == "full" else 2])
    chosen = [[table_name, m, r, "chosen", method] for m, r in cells for method in ("nash", "crf", "ssvm")]
    carry_out(work, keys + chosen, store, n_jobs, f"{table_name} defaults and validation")
    names = {"nash": "tuned"}
    tuned = [[*key[:3], names.get(key[4], key[4]), s, store[key]["settings"]] for key in chosen for s in seeds]
    carry_out(work, tuned, store, n_jobs, f"{table_name} tuned")
    return store


def _cell(records: list[dict[str, Any]]) -> str:
    errors = [r["error"] for r in records]
    return f"{np.mean(errors):.4f} ± {np.std(errors):.4f}" if errors else "–"


def _quoted(column: str, m: int, missing: float) -> str:
    printed = PAPERS["MANA 1"]
    position = printed["sets"].index(f"{missing:.0%} {m}")
    mean, sd = printed["columns"][column]["mean"][position], printed["columns"][column]["sd"][position]
    return "–" if mean is None else f"{mean:.4f} ± {sd:.4f}"


def section(folder: Path) -> str:
    """The table as Markdown, or nothing where no cell was run."""
    store = Store(folder / "hidden_chain.jsonl")
    found: dict[str, dict[tuple[int, float], list[dict[str, Any]]]] = {}
    for record in store:
        _, m, missing, what = record["key"][:4]
        found.setdefault(what, {}).setdefault((m, missing), []).append(record)
    if "default" not in found:
        return ""
    rows = []
    for m, missing in sorted(found["default"], key=lambda cell: (cell[1], cell[0])):
        ours, cell = found["default"][m, missing], (m, missing)
        tuned, ssvm, crf = (found.get(what, {}).get(cell, []) for what in ("tuned", "ssvm", "crf"))
        excess = np.mean([r["error"] - r["bayes"] for r in ours])
        marginal = [{"error": r["marginal"]} for r in crf]
        rows.append([f"{missing:.0%}", str(m), _quoted("M3N", m, missing), _quoted("MANA", m, missing), _cell(ours)])
        rows[-1] += [f"{excess:+.4f}", f"{np.mean([r['seconds'] for r in ours]):.1f} s"]
        rows[-1] += [_cell(tuned), _cell(ssvm), _cell(crf), _cell(marginal)]
    note = (
        f"Test error of {TEST} fresh sequences, mean ± deviation over draws. *default*: smoothing 0.5 and alpha 1e-4; "
        "*over Bayes*: its error less that of the true model's most probable states on the same data; *tuned*: "
        f"smoothing and alpha chosen on {VALIDATION} validation sequences of the first draw, as is alpha of the "
        "structured SVM and of the random field, decoded by its best labeling and by its marginals. Lost from the "
        "paper's text: –."
    )
    columns = ["missing", "sequences", "M3N (paper)", "MANA (paper)", "default", "over Bayes", "time", "tuned"]
    columns += ["structured SVM", "CRF, Viterbi", "CRF, marginals"]
    parts = [report.show(report.table("hidden_chain: hidden Markov chain (MANA, Table 1)", note, columns, rows))]
    exact = [found["exact"][cell][0] for cell in sorted(found.get("exact", {}))]
    if exact:
        note = (
            "The same data without smoothing (alpha 1e-4, nothing missing): the objective is within the certified gap "
            "of its optimum. *transitions*, *emissions*: largest distance of a weight from their mean. If transitions "
            "stay near 0 the exact game ignores the chain, and errs as often as the symbols do, 30 %."
        )
        columns = ["sequences", "error", "objective", "certified gap", "transitions", "emissions", "time"]
        rows = [
            [
                str(r["key"][1]),
                f"{r['error']:.4f}",
                f"{r['objective']:.4f}",
                f"{r['gap']:.1e}",
                f"{r['transitions']:.3f}",
                f"{r['emissions']:.3f}",
                f"{r['seconds']:.0f} s",
            ]
            for r in exact
        ]
        for r in found.get("adam", {}).get((ADAM[0], 0.0), []):
            note += (
                f" The paper's Adam, {r['key'][5]} passes over {r['key'][1]} sequences ({r['seconds']:.0f} s): error "
                f"{r['error']:.4f} at a loss of {r['objective']:.4f}, not that of the minimiser."
            )
        parts.append(report.show(report.table("hidden_chain: without smoothing", note, columns, rows)))
    return "\n".join(part.replace("### ", "## ", 1) for part in parts)
