"""Trees: best trees by the minute, projections against Frank-Wolfe, games against the double oracle."""

from __future__ import annotations

import time
from typing import Any

import networkx
import numpy as np

from benchmarks import measure, report
from nashlearn import games
from nashlearn.kernels.tree_nearest import project_labelled
from nashlearn.solvers import double_oracle
from reproduce.references.tree_frank_wolfe import frank_wolfe, frank_wolfe_compiled

__all__ = ["run"]

_STEPS = 1000
_CAP = 120.0
_GAMES = 10
_ASKED = {"loose": 1e-4, "tight": 1e-8}  # of the double oracle


def _by_networkx(scores: np.ndarray) -> float:
    """The best tree's score, and nothing else, from a graph that is built for it."""
    graph = networkx.DiGraph()
    n = len(scores)
    arcs = [(h, d + 1, scores[d, h]) for d in range(n) for h in range(n + 1) if h != d + 1]
    graph.add_weighted_edges_from(arcs)
    return float(networkx.maximum_spanning_arborescence(graph).size(weight="weight"))


def _argmax(n: int, single_root: bool) -> dict[str, Any]:
    batch = 20000 if n <= 20 else 2000
    scores = np.random.default_rng(n).standard_normal((batch, n, n + 1))
    game = games.arborescence(n, single_root)
    heads = game.argmax(scores)
    took = measure.interleaved({"ours": lambda: measure.per_call(lambda: game.argmax(scores)) / batch}, 3)["ours"]
    peer = None
    if not single_root:
        start = time.process_time()
        expected = [_by_networkx(one) for one in scores[:3]]
        peer = (time.process_time() - start) / 3
        found = np.take_along_axis(scores[:3], heads[:3, :, None], axis=2).sum(axis=(1, 2))
        if np.abs(found - expected).max() > 1e-9:
            raise RuntimeError(f"n = {n}: best trees differ from networkx")
    return {"n": n, "single_root": single_root, "ours_s": took, "networkx_s": peer, "per_minute": 60.0 / (took or 1.0)}


def _projection(n: int, scale: float, draws: int) -> dict[str, Any]:
    rng = np.random.default_rng(n)
    scores = scale * rng.standard_normal((draws, n, n + 1))
    game = games.arborescence(n, single_root=True)
    point, gap = game.project(scores)
    errors = {"published": 0.0, "compiled": 0.0}
    exact = 0.0
    for one, x in zip(scores, point, strict=True):
        errors["published"] = max(errors["published"], np.abs(frank_wolfe(one, _STEPS, True) - x).max())
        errors["compiled"] = max(errors["compiled"], np.abs(frank_wolfe_compiled(one, _STEPS, True) - x).max())
        if n <= 20:
            other = np.empty((1, n * (n + 1), 1))
            project_labelled(one.reshape(other.shape).copy(), n, True, other, np.empty(1))
            exact = max(exact, np.abs(other.reshape(x.shape) - x).max())
    took = measure.interleaved(
        {
            "ours": lambda: measure.per_call(lambda: game.project(scores)) / draws,
            "published": lambda: measure.per_call(lambda: frank_wolfe(scores[0], _STEPS, True), least=0.01),
            "compiled": lambda: measure.per_call(lambda: frank_wolfe_compiled(scores[0], _STEPS, True), least=0.01),
        },
        3,
    )
    return {
        "n": n,
        "scale": scale,
        **{f"{name}_s": value for name, value in took.items()},
        "published_error": float(errors["published"]),
        "compiled_error": float(errors["compiled"]),
        "gap": float(gap.max()),
        "difference_from_wolfe": float(exact) if n <= 20 else None,
    }


def _game(n: int, scale: float) -> dict[str, Any]:
    scores = scale * np.random.default_rng(n).standard_normal((_GAMES, n, n + 1))
    game = games.arborescence(n, single_root=True)
    answer = game.solve(scores)
    ours = measure.per_call(lambda: game.solve(scores)) / len(scores)
    record = {"n": n, "scale": scale, "ours_s": ours, "gap": float(answer.gap.max())}
    for name, tol in _ASKED.items():
        peer = measure.capped(
            lambda tol=tol: double_oracle.solve(game, scores, tol=tol),
            _CAP,
            then=lambda eq: (float(np.abs(eq.value - answer.value).max()), float(eq.gap.max())),
            warm=True,
        )
        record[f"{name}_s"] = None if peer is None else peer[0] / len(scores)
        record[f"{name}_gap"] = None if peer is None else peer[1][1]
        record[f"{name}_difference"] = None if peer is None else peer[1][0]
    return record


def _game_row(r: dict[str, Any]) -> list[str]:
    row = [str(r["n"]), f"{r['scale']:g}", report.seconds(r["ours_s"]), f"{r['gap']:.1e}"]
    for name in _ASKED:
        found = r[f"{name}_s"]
        row.append(report.seconds(found, _CAP / _GAMES))
        row.append(f"{(found or _CAP / _GAMES) / r['ours_s']:,.0f}" + " or more" * (found is None))
        row.append("–" if found is None else f"{r[f'{name}_gap']:.1e}")
    return [*row, "–" if r["tight_difference"] is None else f"{r['tight_difference']:.1e}"]


def run() -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Tables and records: best trees, projections, games."""
    best = [_argmax(n, single) for n in (10, 20, 40, 100) for single in (False, True)]
    near = [_projection(n, scale, 10) for n in (10, 20, 40) for scale in (1.0, 5.0)]
    played = [_game(n, scale) for n in (5, 10, 20) for scale in (0.3, 1.0)]
    tables = [
        report.table(
            "Best trees",
            "Time a sentence in a batch, scores normal; networkx includes building its graph.",
            ["tokens", "roots", "ours", "sentences a minute", "networkx / ours"],
            [
                [
                    str(r["n"]),
                    "one" if r["single_root"] else "many",
                    report.seconds(r["ours_s"]),
                    f"{r['per_minute']:,.0f}",
                    report.ratio(r["networkx_s"], r["ours_s"]) if r["networkx_s"] else "–",
                ]
                for r in best
            ],
        ),
        report.table(
            "Projection onto trees with one root",
            f"Frank-Wolfe with line search, {_STEPS} steps: as published, NumPy around a compiled oracle (ours, faster "
            "than theirs), and compiled as a whole. Its error is the largest entry's; ours is the certified gap "
            "and, up to 20 tokens, the largest difference from Wolfe's method.",
            ["tokens", "scale", "ours", "Frank-Wolfe / ours", "compiled / ours", "its error", "our gap", "from Wolfe"],
            [
                [
                    str(r["n"]),
                    f"{r['scale']:g}",
                    report.seconds(r["ours_s"]),
                    report.ratio(r["published_s"], r["ours_s"]),
                    report.ratio(r["compiled_s"], r["ours_s"]),
                    f"{r['published_error']:.1e}",
                    f"{r['gap']:.1e}",
                    "–" if r["difference_from_wolfe"] is None else f"{r['difference_from_wolfe']:.1e}",
                ]
                for r in near
            ],
        ),
        report.table(
            "Games over trees with one root",
            f"Time a game, mean of {_GAMES}. The double oracle is asked for a gap of 1e-4 and for one of 1e-8, near "
            f"what ours ends at, and stopped after {_CAP:g} s for all; the difference is that of the values.",
            [
                *("tokens", "scale", "ours", "our gap"),
                *("double oracle, 1e-4", "/ ours", "its gap"),
                *("double oracle, 1e-8", "/ ours", "its gap", "difference"),
            ],
            [_game_row(r) for r in played],
        ),
    ]
    return tables, {"argmax": best, "projection": near, "game": played}
