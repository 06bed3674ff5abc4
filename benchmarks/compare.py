"""``python -m benchmarks.compare OTHER [job ...]``: this checkout against another one, in one run.

Every job uses public names only, so that it runs in both. Processes of the two take turns on one thread; a job is
run once to warm up, then timed. What counts is the ratio of the least times, and whether both end at the same
certified objective.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
TURNS = 3  # processes of each checkout
REPEATS = 3  # timed runs in each


def _rows(n: int, d: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, (X @ rng.normal(size=(d, k)) + 3 * rng.normal(size=(n, k))).argmax(axis=1)


def _costs(k: int) -> np.ndarray:
    return np.random.default_rng(1).random((k, k)) * (1 - np.eye(k))


def _fit(estimator: str, *loss: Any, **parameters: Any) -> Callable[[Any, Any], Callable[[], Any]]:
    """A job that fits an estimator to data."""

    def made(X: Any, y: Any) -> Callable[[], Any]:
        import nashlearn

        return lambda: getattr(nashlearn, estimator)(*loss, **parameters).fit(X, y)

    return made


def _sequences(n: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    rng = np.random.default_rng(2)
    W, sizes = rng.normal(size=(20, 6)), rng.integers(3, 25, size=n)
    X = [rng.normal(size=(size, 20)) for size in sizes]
    return X, [(x @ W + 2 * rng.normal(size=(len(x), 6))).argmax(axis=1) for x in X]


def _grids(n: int) -> tuple[list[Any], list[np.ndarray]]:
    rng, at = np.random.default_rng(3), np.arange(64).reshape(8, 8)
    edges = np.vstack([np.c_[at[:, :-1].ravel(), at[:, 1:].ravel()], np.c_[at[:-1].ravel(), at[1:].ravel()]])
    y = [(rng.random(64) < 0.5).astype(int) for _ in range(n)]
    return [(label[:, None] + rng.normal(size=(64, 3)), edges) for label in y], y


def _pairs(n: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    rng = np.random.default_rng(4)
    y = [rng.permutation(int(size)) for size in rng.integers(4, 13, size=n)]
    X = [np.eye(len(one))[one][:, :, None] + 1.5 * rng.normal(size=(len(one), len(one), 5)) for one in y]
    return X, y


def _trees(n: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    rng = np.random.default_rng(5)
    y = [np.r_[0, [rng.integers(1, i + 1) for i in range(1, size)]] for size in rng.integers(4, 20, size=n)]
    X = [np.eye(len(one) + 1)[one][:, :, None] + 1.5 * rng.normal(size=(len(one), len(one) + 1, 5)) for one in y]
    return X, y


def _game(make: Callable[[Any], Any], shape: tuple[int, ...], **options: Any) -> Callable[[], Any]:
    from nashlearn import games

    game, scores = make(games), np.random.default_rng(6).normal(size=shape)
    return lambda: game.solve(scores, **options)


def _treebank() -> Callable[[], Any]:
    """Hashed features of real sentences, a few passes over them."""
    from nashlearn import datasets, parsing

    sentences = [one for one in datasets.load_treebank("en_ewt-r2.3", "dev") if len(one) < 40][:400]
    X, y = parsing.HashedSentences(sentences), [one.heads for one in sentences]
    return lambda: parsing.text_parser(max_iter=3, random_state=0).fit(X, y)


def _letters() -> Callable[[], Any]:
    """Handwritten words."""
    from nashlearn import datasets

    words = datasets.load_ocr_letters()
    return _fit("NashTagger", max_iter=20)(words.data[:1500], words.target[:1500])


JOBS: dict[str, Callable[[], Callable[[], Any]]] = {
    "zero-one, 12,000 x 60, 8 labels": lambda: _fit("NashClassifier")(*_rows(12_000, 60, 8)),
    "costs, 4,000 x 60, 8 labels": lambda: _fit("NashClassifier", _costs(8))(*_rows(4000, 60, 8)),
    "ordinal, 12,000 x 60, 8 grades": lambda: _fit("NashOrdinalClassifier")(*_rows(12_000, 60, 8)),
    "abstaining, 4,000 x 60, 8 labels": lambda: _fit("NashAbstainer")(*_rows(4000, 60, 8)),
    "Gaussian kernel, 1,200 x 20": lambda: _fit("NashClassifier", kernel="rbf")(*_rows(1200, 20, 4)),
    "tagger, 400 sequences": lambda: _fit("NashTagger")(*_sequences(400)),
    "tagger, exact, 60 sequences": lambda: _fit("NashTagger", smoothing=0.0, max_iter=60)(*_sequences(60)),
    "tagger, 1,500 handwritten words": _letters,
    "grids of 8 x 8, 60": lambda: _fit("NashMarkovNetwork", exact=False, max_iter=40)(*_grids(60)),
    "matcher, 80 pairs of sets": lambda: _fit("NashMatcher", alpha=1e-2)(*_pairs(80)),
    "parser, 80 sentences": lambda: _fit("NashParser", alpha=1e-2)(*_trees(80)),
    "hashed parser, 400 sentences": _treebank,
    "game: zero-one, 200,000 x 10": lambda: _game(lambda games: games.zero_one(10), (200_000, 10)),
    "game: costs, 50,000 x 8": lambda: _game(lambda games: games.cost(_costs(8)), (50_000, 8)),
    "game: absolute, 200,000 x 10": lambda: _game(lambda games: games.absolute(10), (200_000, 10)),
    "game: matchings, 200 of 20": lambda: _game(lambda games: games.matching(20), (200, 20, 20)),
    "game: trees, 200 of 15": lambda: _game(lambda games: games.arborescence(15), (200, 15, 16)),
}


def work(names: list[str]) -> None:
    """Time jobs in this process and print what was seen as JSON."""
    import nashlearn

    warnings.simplefilter("ignore")
    seen: dict[str, Any] = {"where": str(Path(nashlearn.__file__).parent)}
    for name in names:
        job = JOBS[name]()
        found = job()
        times = []
        for _ in range(REPEATS):
            began = time.process_time()
            job()
            times.append(time.process_time() - began)
        value = found.objective_ if hasattr(found, "objective_") else float(np.sum(found.value))
        gap = found.dual_gap_ if hasattr(found, "dual_gap_") else float(np.max(found.gap))
        seen[name] = {"seconds": min(times), "value": float(value), "gap": float(gap)}
    print(json.dumps(seen))


def main() -> None:
    """Compare, print, and store the ratios."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__)
    parser.add_argument("other", type=Path, help="root of the other checkout")
    parser.add_argument("jobs", nargs="*", metavar="job", help="beginnings of their names; all by default")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    names = [name for name in JOBS if not arguments.jobs or name.startswith(tuple(arguments.jobs))]
    if arguments.work:
        return work(names)
    best: dict[Path, dict[str, Any]] = {arguments.other.resolve(): {}, ROOT: {}}
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    for turn in range(TURNS):
        for root in sorted(best, reverse=bool(turn % 2)):
            command = [sys.executable, str(Path(__file__)), str(root), *names, "--work"]
            environment = {**os.environ, **threads, "PYTHONPATH": str(root / "src")}
            seen = json.loads(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout)
            if not seen.pop("where").startswith(str(root)):
                raise RuntimeError(f"another nashlearn than that of {root} was imported")
            for name, one in seen.items():
                best[root][name] = min(one, best[root].get(name, one), key=lambda result: result["seconds"])
    other, here = best[arguments.other.resolve()], best[ROOT]
    print(f"{'job':36s} {'before':>9s} {'now':>9s} {'ratio':>6s}   value before, gap; now, gap")
    for name in names:
        a, b = other[name], here[name]
        print(
            f"{name:36s} {a['seconds']:8.3f}s {b['seconds']:8.3f}s {b['seconds'] / a['seconds']:6.2f}   "
            f"{a['value']:.8g}, {a['gap']:.1e}; {b['value']:.8g}, {b['gap']:.1e}"
        )
    return None


if __name__ == "__main__":
    main()
