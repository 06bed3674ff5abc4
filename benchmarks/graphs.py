"""Graphs with cycles: labels of which every two are joined, trained to a gap, and best labellings of pictures.

Data are drawn. Fourteen binary labels of an example, every two joined, are one clique with a table of 2^14 entries.
Pictures are grids of 64 x 64 pixels with two states, whose neighbours attract each other, repel, or do either at
random; beside stands HiGHS on the linear programme of the local polytope, whose bound is not always that of a
labelling.
"""

from __future__ import annotations

import time
import warnings
from itertools import combinations
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from benchmarks import report
from nashlearn import NashMarkovNetwork, games

__all__ = ["run"]

LABELS, EXAMPLES, FEATURES = 14, 1500, 30
TOL = 1e-2
SIDE = 64
NEIGHBOURS = {"attract": (1.0, 1.0), "repel": (-1.0, -1.0), "either": (-1.0, 1.0)}
REPEATS = 5


def _joined() -> tuple[list[Any], list[np.ndarray]]:
    """Examples whose labels are drawn one after the other, each by features and by those before it."""
    rng = np.random.default_rng(0)
    edges = np.array(list(combinations(range(LABELS), 2)))
    weights = rng.standard_normal((LABELS, FEATURES)) / np.sqrt(FEATURES)
    pairs = 0.6 * rng.standard_normal((LABELS, LABELS))
    inputs = rng.standard_normal((EXAMPLES, FEATURES))
    X, y = [], []
    for x in inputs:
        labels = np.zeros(LABELS, dtype=int)
        for i in range(LABELS):
            lead = 2.0 * weights[i] @ x + pairs[i, :i] @ (2 * labels[:i] - 1)
            labels[i] = rng.random() < 1.0 / (1.0 + np.exp(-lead))
        nodes = np.zeros((LABELS, LABELS * FEATURES))
        for i in range(LABELS):
            nodes[i, i * FEATURES : (i + 1) * FEATURES] = x
        X.append((nodes, edges, np.eye(len(edges))))
        y.append(labels)
    return X, y


def _trained(smoothing: float, X: list[Any], y: list[np.ndarray]) -> dict[str, Any]:
    model = NashMarkovNetwork(alpha=1e-3, smoothing=smoothing, tol=TOL, max_iter=100_000, max_time=600.0)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    seconds = time.process_time() - start
    return {
        "smoothing": smoothing,
        "seconds": seconds,
        "gap": model.dual_gap_,
        "iterations": model.n_iter_,
        "exact": bool(model.is_exact_),
        "right": float(np.mean([np.mean(a == b) for a, b in zip(model.predict(X), y, strict=True)])),
    }


def _grid() -> np.ndarray:
    at = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)
    across = np.stack([at[:, :-1].ravel(), at[:, 1:].ravel()], 1)
    down = np.stack([at[:-1].ravel(), at[1:].ravel()], 1)
    return np.concatenate([across, down])


def _local(edges: np.ndarray, nodes: np.ndarray, pairs: np.ndarray) -> tuple[float, float]:
    """CPU seconds of HiGHS for the local polytope, and its bound."""
    n, m = len(nodes), len(edges)
    rows, columns, values, right = [], [], [], []
    at = 0
    for i in range(n):
        rows += [at, at]
        columns += [2 * i, 2 * i + 1]
        values += [1.0, 1.0]
        right.append(1.0)
        at += 1
    for e, ends in enumerate(edges):
        for side, node in enumerate(ends):
            for a in range(2):
                own = [2 * n + 4 * e + (2 * a + b if side == 0 else 2 * b + a) for b in range(2)]
                rows += [at] * 3
                columns += [*own, 2 * int(node) + a]
                values += [1.0, 1.0, -1.0]
                right.append(0.0)
                at += 1
    A = coo_array((values, (rows, columns)), shape=(at, 2 * n + 4 * m)).tocsr()
    start = time.process_time()
    found = linprog(-np.concatenate([nodes.ravel(), pairs.ravel()]), A_eq=A, b_eq=right, method="highs-ipm")
    return time.process_time() - start, -float(found.fun)


def _decoded(kind: str, bounds: tuple[float, float]) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    edges = _grid()
    game = games.markov(edges, 2)
    took, statuses, slack, peer = [], [], [], []
    for repeat in range(REPEATS):
        nodes = rng.standard_normal((SIDE * SIDE, 2))
        pull = rng.choice(bounds, size=len(edges)) * rng.random(len(edges))
        pairs = pull[:, None, None] * np.eye(2)
        start = time.process_time()
        best = game.maximise((nodes, pairs))
        took.append(time.process_time() - start)
        statuses.append(best.status)
        slack.append((best.bound - best.score) / max(1.0, abs(best.score)))
        if repeat == 0:
            peer.append(_local(edges, nodes, pairs))
            if peer[0][1] < best.score - 1e-4 * abs(best.score):
                raise RuntimeError("a labelling scores more than the local polytope allows")
    return {
        "neighbours": kind,
        "seconds": took,
        "statuses": statuses,
        "slack": max(slack),
        "HiGHS": peer[0][0],
    }


def run() -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Tables and records of both."""
    X, y = _joined()
    trained = [_trained(smoothing, X, y) for smoothing in (0.5, 0.0)]
    decoded = [_decoded(kind, bounds) for kind, bounds in NEIGHBOURS.items()]
    rows = [
        [f"{r['smoothing']:g}", report.seconds(r["seconds"]), f"{r['gap']:.1e}", str(r["iterations"]),
         "yes" if r["exact"] else "no", f"{100 * r['right']:.1f}"]
        for r in trained
    ]  # fmt: skip
    note = (
        f"{EXAMPLES:,} examples with {LABELS} binary labels, every two joined, {FEATURES} features; CPU seconds of a "
        f"fit to a certified gap of {TOL:g}. Right: labels of the training examples, in percent."
    )
    first = report.table(
        "Labels that are all joined", note, ("smoothing", "fit", "gap", "iterations", "exact", "right"), rows
    )
    rows = [
        [r["neighbours"], report.seconds(float(np.median(r["seconds"]))), report.seconds(max(r["seconds"])),
         f"{sum(one == 'optimal' for one in r['statuses'])} of {len(r['statuses'])}", f"{r['slack']:.0e}",
         report.seconds(r["HiGHS"])]
        for r in decoded
    ]  # fmt: skip
    note = (
        f"{SIDE} × {SIDE} pixels with two states, node scores N(0, 1), {REPEATS} pictures of each kind. CPU seconds of "
        "`maximise`; the bound's distance from the score. HiGHS: the local polytope of the first picture by its "
        "interior point method, a bound without a labelling."
    )
    columns = ("neighbours", "median", "slowest", "proved best", "bound", "HiGHS")
    return [first, report.table("Best labellings of grids", note, columns, rows)], {
        "trained": trained,
        "decoded": decoded,
    }
