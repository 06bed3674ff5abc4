"""Threads: wall clock of games and fits with one, two and all cores, and whether they end at the same numbers.

Each number of threads has a process of its own, since libraries of linear algebra read theirs when they are loaded.
The processes take turns at a job, which has run before; the least time of each counts. Data are drawn, so that the part
runs on any machine.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np

sys.path.insert(1, str(Path(__file__).parents[1]))  # as a program, its first entry is this file's folder

from benchmarks import compare_data as drawn
from benchmarks import report
from benchmarks.__main__ import THREADS
from benchmarks.measure import Worker

__all__ = ["JOBS", "run"]

TURNS, MORE = 3, 7  # at a job, and as many as this while they take no longer than ENOUGH seconds together
ENOUGH = 2.5

Job = Callable[[], Any]
Seen = dict[str, Any]


def _game(make: Callable[[Any], Any], shape: tuple[int, ...], jobs: int) -> Job:
    from nashlearn import games

    game, scores = make(games), np.random.default_rng(0).standard_normal(shape)
    return lambda: game.solve(scores, n_jobs=jobs)


def _fit(name: str, data: Callable[[], tuple[Any, Any]], **parameters: Any) -> Job:
    import nashlearn

    X, y = data()
    return lambda: getattr(nashlearn, name)(**parameters).fit(X, y)


def _strategies(n: int, jobs: int) -> Job:
    from nashlearn import NashTagger

    X, y = drawn.words(n)
    model = NashTagger(alpha=1e-4, max_iter=5, n_jobs=jobs).fit(X[:500], y[:500])
    return lambda: model.strategy(X)


def _hashed(n: int, jobs: int) -> Job:
    from nashlearn import parsing

    sentences = drawn.sentences(n)
    X, y = parsing.HashedSentences(sentences), [one.heads for one in sentences]
    return lambda: parsing.text_parser(max_iter=3, random_state=0, n_jobs=jobs).fit(X, y)


def _structured(name: str, data: Callable[[], tuple[Any, Any]], jobs: int, **parameters: Any) -> Job:
    return _fit(name, data, n_jobs=jobs, **parameters)


JOBS: dict[str, Callable[[int], Job]] = {
    "linear fit: 100,000 × 100, 10 classes": lambda _: _fit(
        "NashClassifier", partial(drawn.rows, 100_000, 100, 10), alpha=1e-4, random_state=0
    ),
    "kernel fit: 10,000 × 200, 10 classes": lambda _: _fit(
        "NashClassifier", partial(drawn.rows, 10_000, 200, 10), kernel="rbf", alpha=1e-4, random_state=0
    ),
    "rows: zero_one, 3,000,000 × 10": partial(_game, lambda games: games.zero_one(10), (3_000_000, 10)),
    "rows: costs, 1,000,000 × 10": partial(_game, lambda games: games.cost(drawn.costs(10)), (1_000_000, 10)),
    "matchings: 2,000 of 20": partial(_game, lambda games: games.matching(20), (2000, 20, 20)),
    "trees: 3,000 of 15": partial(_game, lambda games: games.arborescence(15), (3000, 15, 16)),
    "chains: strategies, 12,000 words": partial(_strategies, 12_000),
    "tagger: 2,000 words": partial(_structured, "NashTagger", partial(drawn.words, 2000), alpha=1e-4),
    "matcher: 1,000 pairs of sets": partial(_structured, "NashMatcher", partial(drawn.pairs, 1000), alpha=1e-2),
    "parser: 500 sentences": partial(_structured, "NashParser", partial(drawn.trees, 500), alpha=1e-2),
    "hashed parser: 300 sentences": partial(_hashed, 300),
}


def _digest(found: Any) -> str:
    """A name for all numbers of a result."""
    names = ("value", "q", "p", "gap", "objective_", "dual_gap_", "n_iter_", "coef_", "dual_coef_", "intercept_")
    parts = [getattr(found, name) for name in names if hasattr(found, name)]
    digest = hashlib.sha256()
    for part in parts or found:
        for one in part if isinstance(part, (tuple, list)) else [part]:
            digest.update(np.ascontiguousarray(one).tobytes())
    return digest.hexdigest()


def work(threads: int) -> None:
    """Make and time the jobs that are asked for, a name a line; the first answer to a name is about its result."""
    warnings.simplefilter("ignore")
    made: dict[str, Job] = {}
    for line in sys.stdin:
        if line not in made:
            made = {line: JOBS[json.loads(line)](threads)}
            answer: Seen = {"result": _digest(made[line]())}
        else:
            began, clock = time.perf_counter(), time.process_time()
            made[line]()
            answer = {"wall": time.perf_counter() - began, "cpu": time.process_time() - clock}
        print(json.dumps(answer), flush=True)


def _timed(processes: dict[int, Worker], name: str) -> Seen:
    """The least times of a job with each number of threads."""
    for process in processes.values():  # data are drawn at the same time
        process.ask(name)
    results = {process.said()["result"] for process in processes.values()}
    found: dict[int, Seen] = {}
    began = time.perf_counter()
    for turn in range(MORE):
        if turn >= TURNS and time.perf_counter() - began > ENOUGH:
            break
        for threads in sorted(processes, reverse=bool(turn % 2)):
            seen = processes[threads].told(name)
            found[threads] = min(seen, found.get(threads, seen), key=lambda one: one["wall"])
    speed_ups = {threads: found[1]["wall"] / one["wall"] for threads, one in found.items()}
    shown = " ".join(f"{one:6.2f}" for one in speed_ups.values())
    print(f"{name:40s} {shown} {'the same' if len(results) == 1 else 'other'} results", flush=True)
    return {
        "job": name,
        "wall": {threads: one["wall"] for threads, one in found.items()},
        "cpu": {threads: one["cpu"] for threads, one in found.items()},
        "speed_up": speed_ups,
        "same": len(results) == 1,
    }


def _row(record: Seen) -> Iterator[str]:
    yield record["job"]
    for threads, wall in record["wall"].items():
        yield report.seconds(wall)
        if threads > 1:
            yield f"{record['speed_up'][threads]:.2f}"
    yield "yes" if record["same"] else "no"


def run() -> tuple[list[dict[str, Any]], Any]:
    """All jobs with one, two and all cores."""
    counts = sorted({1, 2, joblib.cpu_count()})
    processes = {
        threads: Worker([str(Path(__file__)), str(threads)], dict.fromkeys(THREADS, str(threads))) for threads in counts
    }
    records = [_timed(processes, name) for name in JOBS]
    for process in processes.values():
        process.close()
    columns = ["job", "one thread"]
    for threads in counts[1:]:
        columns += [f"{threads} threads", "speed-up"]
    note = "Wall clock, least of interleaved turns; results are the same where every number agrees to the last bit."
    table = report.table("Threads", note, [*columns, "same result"], [list(_row(one)) for one in records])
    return [table], {"load": os.getloadavg()[0], "rows": records}


if __name__ == "__main__":
    work(int(sys.argv[1]))
