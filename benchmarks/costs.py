"""Games of random cost matrices against a HiGHS model that is kept hot: one linear program a row."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import highspy
import numpy as np

from benchmarks import measure, report
from nashlearn import games

__all__ = ["HotModel", "run"]


class HotModel:
    """``max v + <f, q>`` subject to ``L q >= v``, ``q`` in the simplex; only ``f`` changes between solves."""

    def __init__(self, L: np.ndarray):
        k = L.shape[1]
        self._columns = np.arange(k, dtype=np.int32)
        self._model = highspy.Highs()
        self._model.setOptionValue("output_flag", False)
        self._model.setOptionValue("threads", 1)
        self._model.setOptionValue("primal_feasibility_tolerance", 1e-10)
        self._model.setOptionValue("dual_feasibility_tolerance", 1e-10)
        for _ in range(k):
            self._model.addVar(0.0, highspy.kHighsInf)
        self._model.addVar(-highspy.kHighsInf, highspy.kHighsInf)
        everything = np.arange(k + 1, dtype=np.int32)
        for row in L:
            self._model.addRow(0.0, highspy.kHighsInf, k + 1, everything, np.append(row, -1.0))
        self._model.addRow(1.0, 1.0, k, self._columns, np.ones(k))
        self._model.changeColCost(k, 1.0)
        self._model.changeObjectiveSense(highspy.ObjSense.kMaximize)

    def value(self, f: np.ndarray) -> float:
        """The value for scores ``f``, starting from the last optimal basis."""
        self._model.changeColsCost(f.size, self._columns, f)
        self._model.run()
        return float(self._model.getInfo().objective_function_value)

    def own_seconds(self) -> float:
        """Total time by HiGHS's own clock, free of Python's call overhead."""
        return float(self._model.getRunTime())


def _compare(k: int, rows: int, repeats: int) -> dict[str, Any]:
    rng = np.random.default_rng(k)
    L = rng.random((k, k))
    np.fill_diagonal(L, 0.0)
    scores = rng.standard_normal((rows, k))
    game, model = games.cost(L), HotModel(L)
    own: list[float] = []

    def highs() -> float:
        start, clock = time.process_time(), model.own_seconds()
        for f in scores:
            model.value(f)
        own.append((model.own_seconds() - clock) / rows)
        return (time.process_time() - start) / rows

    def one_at_a_time() -> float:
        return measure.per_call(lambda: [game.solve(f) for f in scores[:20, None]]) / min(rows, 20)

    runs: dict[str, Callable[[], float | None]] = {
        "ours": lambda: measure.per_call(lambda: game.solve(scores)) / rows,
        "ours_single": one_at_a_time,
        "highs": highs,
    }
    answer = game.solve(scores)
    expected = np.array([model.value(f) for f in scores])
    difference = float(np.abs(answer.value - expected).max())
    if not difference <= 1e-8:
        raise RuntimeError(f"k = {k}: values differ from HiGHS by {difference:.1e}")
    took = measure.interleaved(runs, repeats)
    return {
        "k": k,
        "rows": rows,
        "ours_s": took["ours"],
        "ours_single_s": took["ours_single"],
        "highs_s": took["highs"],
        "highs_own_s": float(np.median(own)),
        "difference": difference,
        "gap": float(answer.gap.max()),
    }


def run(repeats: int = 5) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Tables and records at k = 5, 10, 30 and 100, cost matrices uniform with a zero diagonal."""
    records = [_compare(k, rows, repeats) for k, rows in ((5, 500), (10, 500), (30, 300), (100, 200))]
    rows = [
        [
            str(r["k"]),
            report.seconds(r["ours_s"]),
            report.seconds(r["ours_single_s"]),
            report.seconds(r["highs_s"]),
            report.ratio(r["highs_s"], r["ours_s"]),
            report.ratio(r["highs_own_s"], r["ours_s"]),
            report.ratio(r["highs_s"], r["ours_single_s"]),
            f"{r['difference']:.1e}",
        ]
        for r in records
    ]
    note = (
        "Time a row. HiGHS keeps one model and its basis, and only the objective changes; its own clock "
        "leaves Python's calls out. Ours as one batch, and called row by row."
    )
    columns = ["k", "ours", "ours, row by row", "HiGHS", "HiGHS / ours", "HiGHS's own clock / ours"]
    columns += ["HiGHS / ours, row by row", "largest difference"]
    return [report.table("Random cost matrices", note, columns, rows)], records
