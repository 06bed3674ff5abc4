"""Training time for 50 matchings of 12 to 34 elements, beside the thesis's own algorithm.

Both algorithms train the same exact game with the same regularisation, until a gap between the objective at their
weights and a lower bound from their own adversary's marginals proves them within a tolerance of the optimum. Time spent
on the proof of the thesis's algorithm, which has none, is not counted. Its smoothing is not published: the better of
two counts. Two kinds of data: frames of the five videos, with objects that enter and leave as the thesis has them, by
doubling the nodes; and synthetic complete matchings, 50 features uniform in [0, 1] with a linear truth and noise.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import report
from nashlearn import games
from nashlearn.datasets import load_tracking
from nashlearn.tracking import assignments, describe, frame_pairs
from nashlearn.training.designs.pairs import Example, matching_problem
from nashlearn.training.driver import train
from nashlearn.training.methods.descent import Descent
from nashlearn.training.objective import GameProblem
from reproduce.papers import PAPERS
from reproduce.protocol import Profile
from reproduce.references.marginal_matching import doubled, marginal_training
from reproduce.run import carry_out
from reproduce.store import Store

__all__ = ["measure", "run", "section"]

EXAMPLES = 50
ALPHA = 1e-3
TOLERANCES = (1e-2, 1e-3)
SMOOTHINGS = (0.1, 0.02)  # of the thesis's algorithm
SCHEDULE = (0.1, 0.02, 0.004, 0.0)  # of ours
CAP = 20.0  # CPU seconds of the thesis's algorithm
VIDEOS = {"Campus": "TUD-Campus", "Stadtmitte": "TUD-Stadtmitte", "Sunnyday": "ETH-Sunnyday"}
VIDEOS |= {"Pedcross2": "ETH-Pedcross2", "Bahnhof": "ETH-Bahnhof"}


def _video(name: str) -> tuple[list[Example], list[np.ndarray], np.ndarray, np.ndarray]:
    """Evenly spaced pairs of frames: as partial matchings, and doubled."""
    video = load_tracking(VIDEOS[name])
    every = frame_pairs(video.truth, describe(video.thumbs, video.hist))
    answers = assignments(video.truth)
    largest = max(max(pairs.shape[:2]) for pairs, _, _ in every)
    kept = np.linspace(0, len(every) - 1, EXAMPLES).astype(int)
    y = [answers[i] for i in kept]
    X, complete = doubled([every[i][0] for i in kept], y, largest)
    return [Example(*every[i]) for i in kept], y, X, complete


def _synthetic(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    X = rng.random((EXAMPLES, n, n, 50))
    scores = X @ rng.standard_normal(50)
    return X, games.matching(n).argmax(scores + 0.5 * rng.standard_normal(scores.shape))


def _problem(examples: list[Example], y: list[np.ndarray]) -> GameProblem:
    elements = sum(len(partners) for partners in y)
    problem = matching_problem(examples, y, np.full(len(y), 1.0 / elements))
    problem.evaluate(np.zeros(problem.n_weights), 0.1)  # compiled before it is timed
    return problem


def _ours(problem: GameProblem) -> dict[str, Any]:
    """CPU seconds, gaps and iterations for each tolerance."""
    found: dict[str, Any] = {}
    for tol in TOLERANCES:
        start = time.process_time()
        trained = train(problem, Descent(SCHEDULE), alpha=ALPHA, tol=tol, max_iter=1000)
        found[f"{tol:g}"] = {
            "seconds": time.process_time() - start,
            "gap": trained.dual_gap,
            "iterations": trained.n_iter,
            "objective": trained.objective,
        }
    return found


def _theirs(problem: GameProblem, X: np.ndarray, y: np.ndarray, mu: float) -> dict[str, Any]:
    """CPU seconds until each tolerance is proved; None where that took longer than the cap."""
    n, game = X.shape[1], games.matching(X.shape[1])
    seconds: dict[str, float | None] = dict.fromkeys((f"{tol:g}" for tol in TOLERANCES), None)
    spent, gaps = 0.0, [np.inf]
    resumed = time.process_time()

    def watch(theta: np.ndarray, q: np.ndarray) -> bool:
        nonlocal spent, resumed
        spent += time.process_time() - resumed
        square = 0.5 * ALPHA * float(theta @ theta)
        primal = square + problem.evaluate(theta, 0.0).loss
        wrong = n - (q * game.vertex(game.argmax(q))).sum(axis=(1, 2))
        gaps.append((primal + square - float(wrong.mean()) / n) / primal)
        for tol in TOLERANCES:
            if seconds[f"{tol:g}"] is None and gaps[-1] <= tol:
                seconds[f"{tol:g}"] = spent
        resumed = time.process_time()
        return gaps[-1] <= min(TOLERANCES) or spent > CAP

    # The thesis sums over the n elements of an example where we take the mean: its regulariser is n times ours.
    marginal_training(X, y, ALPHA * n, mu=mu, max_iter=100_000, watch=watch)
    return {"mu": mu, "seconds": seconds, "spent": spent, "gap": min(gaps), "iterations": len(gaps) - 1}


def measure(key: list[Any]) -> dict[str, Any]:
    """One row: ours and theirs on the same complete matchings, and ours without doubling."""
    _, kind, which = key
    record: dict[str, Any] = {"key": key}
    if kind == "video":
        examples, partners, X, y = _video(which)
        record["without doubling"] = _ours(_problem(examples, partners))
    else:
        X, y = _synthetic(which)
    problem = _problem([Example(x) for x in X], list(y))
    record |= {"n": X.shape[1], "ours": _ours(problem)}
    marginal_training(X[:2], y[:2], 1.0, mu=0.1, max_iter=1)  # compiled before it is timed
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        record["theirs"] = [_theirs(problem, X, y, mu) for mu in SMOOTHINGS]
    return record


def run(table: str, profile: Profile, folder: Path, n_jobs: int = 1) -> Store:
    """Complete the store, one cell at a time whatever ``n_jobs``: they are timed."""
    store = Store(folder / f"{table}.jsonl")
    keys: list[list[Any]] = [[table, "video", name] for name in list(VIDEOS)[:: profile.thin]]
    keys += [[table, "synthetic", n] for n in PAPERS["XIII"]["columns"]["elements"][:: profile.thin]]
    carry_out(measure, keys, store, 1, table)
    return store


def _row(record: dict[str, Any], tol: str) -> list[str]:
    ours = record["ours"][tol]
    times = [one["seconds"][tol] for one in record["theirs"] if one["seconds"][tol] is not None]
    theirs = min(times, default=None)
    ended = min(record["theirs"], key=lambda one: one["gap"])
    compact = record.get("without doubling", {}).get(tol)
    unreached = f"> {ended['spent']:.3g} s (gap {ended['gap']:.1e})"
    return [
        report.seconds(ours["seconds"]),
        f"{ours['gap']:.0e}",
        report.seconds(theirs) if theirs is not None else unreached,
        report.ratio(theirs, ours["seconds"]) if theirs else f"> {report.ratio(ended['spent'], ours['seconds'])}",
        f"{report.seconds(compact['seconds'])}" if compact else "–",
    ]


def section(folder: Path) -> str:
    """The part of the page, or nothing where nothing is stored."""
    store = Store(folder / "table13.jsonl")
    if not list(store):
        return ""
    printed = PAPERS["XIII"]
    position = {name: i for i, name in enumerate(printed["sets"])}
    parts = [f"## table13: training time, {EXAMPLES} examples", f"{printed['reference']}. {' '.join(__doc__.split())}"]
    for tol in TOLERANCES:
        rows = []
        for record in store:
            _, kind, which = record["key"]
            published = f"{printed['columns']['seconds'][position[which]]} s" if kind == "video" else "–"
            rows.append([f"{kind} {which}", str(record["n"]), *_row(record, f"{tol:g}"), published])
        heads = [
            "data",
            "elements",
            "ours",
            "gap",
            "thesis's algorithm, here",
            "ratio",
            "ours without doubling",
            "paper",
        ]
        title = f"Until a certified relative gap of {tol:g}"
        parts.append(report.show(report.table(title, f"alpha = {ALPHA:g}; CPU seconds of one thread.", heads, rows)))
    return "\n\n".join(part.strip() for part in parts)
