"""Matchings: projection against ADMM and POT, the exact game against HiGHS, and growth with the number of elements."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import highspy
import numpy as np
import scipy.sparse as sp

from benchmarks import measure, report
from nashlearn import games
from reproduce.references.doubly_stochastic import admm_each

__all__ = ["CompactModel", "run"]

ACCURACY = 1e-10
Run = Callable[[], float | None]


def _scores(n: int, count: int) -> np.ndarray:
    return np.random.default_rng(n).standard_normal((count, n, n))


def _count(n: int) -> int:
    """How many matrices a run takes: more of the small ones."""
    return max(2, min(20, 40_000 // n**2))


def _off(scores: np.ndarray, x: np.ndarray) -> float:
    """How far ``x`` is from the projection: from sums of 1, and from being the best answer to ``scores - x``."""
    sums = max(np.abs(x.sum(axis=1) - 1).max(), np.abs(x.sum(axis=2) - 1).max())
    ahead, game = scores - x, games.matching(scores.shape[1])
    gain = (ahead * (game.vertex(game.argmax(ahead)) - x)).sum(axis=(1, 2)).max()
    return float(max(sums, gain))


def _pot(scores: np.ndarray, threshold: float) -> np.ndarray:
    import ot.smooth

    ones = np.ones(scores.shape[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of sums other than 1, which it handles
        return np.array(
            [ot.smooth.smooth_ot_dual(ones, ones, -one, 1.0, stopThr=threshold, numItermax=100_000) for one in scores]
        )


def _admm(scores: np.ndarray) -> np.ndarray:
    x = np.empty_like(scores)
    admm_each(scores, 1.0, ACCURACY, 1_000_000, x)
    return x


def _projections(n: int, repeats: int) -> dict[str, Any]:
    scores, game = _scores(n, _count(n)), games.matching(n)
    answers: dict[str, Callable[[], np.ndarray]] = {
        "ours": lambda: game.project(scores),
        "admm": lambda: _admm(scores),
    }
    if n <= 40:
        answers["pot"] = lambda: _pot(scores, 1e-9)
        answers["pot tight"] = lambda: _pot(scores, 1e-15)
    runs: dict[str, Run] = {
        name: lambda answer=answer: measure.per_call(answer) / len(scores)  # type: ignore[misc]
        for name, answer in answers.items()
    }
    took = measure.interleaved(runs, repeats)
    record: dict[str, Any] = {"n": n, "what": "projection"}
    for name, answer in answers.items():
        record[f"{name}_s"], record[f"{name}_off"] = took[name], _off(scores, answer())
    return record


class CompactModel:
    """``min sum u + sum v`` with rows and columns of ``t >= f - u - v``, ``t >= 0`` summing to at most 1, in HiGHS.

    The value of the game is ``n`` plus the minimum; of n! permutations only n² entries are left.
    """

    def __init__(self, n: int):
        self.n = n
        rows, columns = sp.kron(sp.eye(n), np.ones((1, n))), sp.kron(np.ones((1, n)), sp.eye(n))
        nothing = sp.csr_matrix((2 * n, 2 * n))
        sums = sp.hstack([nothing, sp.vstack([rows, columns])])
        above = sp.hstack([sp.vstack([rows, columns]).T, sp.eye(n * n)])
        self._matrix = sp.csc_matrix(sp.vstack([sums, above]))

    def value(self, scores: np.ndarray, solver: str) -> float:
        """The value of the game by ``solver``, from nothing."""
        n, model = self.n, highspy.Highs()
        model.setOptionValue("output_flag", False)
        model.setOptionValue("threads", 1)
        model.setOptionValue("solver", solver)
        programme = highspy.HighsLp()
        programme.num_col_, programme.num_row_ = n * n + 2 * n, n * n + 2 * n
        programme.col_cost_ = np.r_[np.ones(2 * n), np.zeros(n * n)]
        programme.col_lower_ = np.r_[np.full(2 * n, -highspy.kHighsInf), np.zeros(n * n)]
        programme.col_upper_ = np.full(n * n + 2 * n, highspy.kHighsInf)
        programme.row_lower_ = np.r_[np.full(2 * n, -highspy.kHighsInf), scores.ravel()]
        programme.row_upper_ = np.r_[np.ones(2 * n), np.full(n * n, highspy.kHighsInf)]
        programme.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        programme.a_matrix_.start_ = self._matrix.indptr
        programme.a_matrix_.index_ = self._matrix.indices
        programme.a_matrix_.value_ = self._matrix.data
        model.passModel(programme)
        model.run()
        return n + float(model.getInfo().objective_function_value)


def _games(n: int, repeats: int) -> dict[str, Any]:
    scores, game, model = _scores(n, 8), games.matching(n), CompactModel(n)
    runs: dict[str, Run] = {"ours": lambda: measure.per_call(lambda: game.solve(scores)) / len(scores)}
    for solver in ("simplex", "ipm"):
        runs[solver] = lambda solver=solver: (  # type: ignore[misc]
            measure.per_call(lambda: [model.value(one, solver) for one in scores]) / len(scores)
        )
    took, found = measure.interleaved(runs, repeats), game.solve(scores)
    theirs = np.array([model.value(one, "simplex") for one in scores])
    return {
        "n": n,
        "what": "game",
        **{f"{name}_s": seconds for name, seconds in took.items()},
        "difference": float(np.abs(theirs - found.value).max()),
        "gap": float(found.gap.max()),
    }


def _growth(n: int, repeats: int) -> dict[str, Any]:
    scores, game = _scores(n, 4 if n < 100 else 2), games.matching(n)
    runs: dict[str, Run] = {
        "game": lambda: measure.per_call(lambda: game.solve(scores)) / len(scores),
        "smoothed": lambda: measure.per_call(lambda: game.solve(scores, smoothing=0.1)) / len(scores),
        "projection": lambda: measure.per_call(lambda: game.project(scores)) / len(scores),
        "assignment": lambda: measure.per_call(lambda: game.argmax(scores)) / len(scores),
    }
    took = measure.interleaved(runs, repeats)
    return {
        "n": n,
        "what": "growth",
        **{f"{name}_s": seconds for name, seconds in took.items()},
        "gap": float(game.solve(scores).gap.max()),
        "off": _off(scores, game.project(scores)),
    }


def _projection_table(records: list[dict[str, Any]]) -> dict[str, Any]:
    rows = []
    for r in records:
        row = [str(r["n"]), report.seconds(r["ours_s"]), f"{r['ours_off']:.0e}"]
        for name in ("admm", "pot", "pot tight"):
            if f"{name}_s" in r:
                row += [report.ratio(r[f"{name}_s"], r["ours_s"]), f"{r[f'{name}_off']:.0e}"]
            else:
                row += ["–", "–"]
        rows.append(row)
    note = (
        "Time a matrix, scores N(0, 1); theirs / ours. Off: the largest of the misses of the sums and of the distance "
        "from optimality, as found by an assignment. ADMM (compiled, rho = 1) ends at residuals of 1e-10. POT is "
        "`ot.smooth.smooth_ot_dual` at its default `stopThr` 1e-9, and at 1e-15."
    )
    columns = ["n", "ours", "off", "ADMM / ours", "off", "POT / ours", "off", "POT, 1e-15 / ours", "off"]
    return report.table("Projection onto the doubly stochastic matrices", note, columns, rows)


def _game_table(records: list[dict[str, Any]]) -> dict[str, Any]:
    rows = [
        [
            str(r["n"]),
            report.seconds(r["ours_s"]),
            report.ratio(r["simplex_s"], r["ours_s"]),
            report.ratio(r["ipm_s"], r["ours_s"]),
            f"{r['difference']:.0e}",
            f"{r['gap']:.0e}",
        ]
        for r in records
    ]
    note = (
        "Time a game, scores N(0, 1), value, q, p and gap. HiGHS solves the linear programme with n² + 2n variables, "
        "each from nothing, as we do; the time includes passing the model."
    )
    columns = ["n", "ours", "HiGHS simplex / ours", "HiGHS interior point / ours", "difference of values", "our gap"]
    return report.table("The exact game", note, columns, rows)


def _growth_table(records: list[dict[str, Any]]) -> dict[str, Any]:
    kinds = ("game", "smoothed", "projection", "assignment")
    rows = [
        [str(r["n"]), *(report.seconds(r[f"{kind}_s"]) for kind in kinds), f"{r['gap']:.0e}", f"{r['off']:.0e}"]
        for r in records
    ]
    columns = ["n", "exact game", "game at smoothing 0.1", "projection", "assignment", "gap", "projection off"]
    return report.table("Growth", "Time a matrix, scores N(0, 1).", columns, rows)


def run(repeats: int = 5) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Tables and records."""
    projections = [_projections(n, repeats) for n in (12, 18, 20, 34, 40, 100)]
    exact = [_games(n, repeats) for n in (10, 15, 20)]
    growth = [_growth(n, 3) for n in (10, 20, 50, 100, 200)]
    tables = [_projection_table(projections), _game_table(exact), _growth_table(growth)]
    return tables, projections + exact + growth
