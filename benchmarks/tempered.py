"""Training of the tempered game beside LogisticRegression: time to a certified gap, on one thread.

Ours stops at a certified relative gap of 1e-4, LogisticRegression where its default tolerance ends it, at the same
regularisation: ``C = 1 / (n alpha)``, which is what our ``alpha`` means at every smoothing. Its distance from its own
optimum is given beside the times, since a tolerance on gradients promises none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks import datasets, measure, report
from nashlearn import NashClassifier

__all__ = ["run"]

CAP = 60.0
GAP = 1e-4
SMOOTHING = 1.0
CONDITION = 1e5
LOSSES = ("zero-one", "costs")


@dataclass
class Record:
    """What was measured on one data set at one ``C``; CPU seconds, None where over the cap."""

    data: str
    shape: str
    alpha: float
    C: float
    seconds: dict[str, float | None] = field(default_factory=dict)
    gap: dict[str, float] = field(default_factory=dict)
    iterations: dict[str, int] = field(default_factory=dict)
    accuracy: dict[str, float] = field(default_factory=dict)
    logistic_suboptimality: float = np.nan


def lopsided(k: int, seed: int = 0) -> np.ndarray:
    """Costs whose logarithms are normal, as in the evidence for the defaults; right answers cost nothing."""
    L = np.exp(np.random.default_rng(seed).normal(size=(k, k)))
    np.fill_diagonal(L, 0.0)
    return L


def skewed(n: int = 20_000, d: int = 50, k: int = 5, seed: int = 0) -> datasets.Split:
    """Gaussian features of condition ``CONDITION`` in directions that are no axes; a fifth of the rows is for tests."""
    rng = np.random.default_rng(seed)
    turn, _ = np.linalg.qr(rng.normal(size=(d, d)))
    X = rng.normal(size=(n + n // 4, d)) @ (turn * np.geomspace(1.0, 1.0 / CONDITION, d)) @ turn.T
    X = np.ascontiguousarray(X / X.std())
    y = (2.0 * X @ rng.normal(size=(d, k)) / np.sqrt(d) + rng.gumbel(size=(len(X), k))).argmax(axis=1)
    return datasets.Split("ill-conditioned", X[:n], y[:n], X[n:], y[n:])


def _ours(split: datasets.Split, alpha: float, loss: Any) -> Callable[[], Any]:
    """A fit of ours, which returns the fitted model."""
    model = NashClassifier(loss, smoothing=SMOOTHING, alpha=alpha, tol=GAP, max_iter=100_000, random_state=0)
    return lambda: model.fit(split.X, split.y)


def _logistic(split: datasets.Split, C: float, tol: float) -> Callable[[], Any]:
    return lambda: LogisticRegression(C=C, tol=tol, max_iter=100_000).fit(split.X, split.y)


def _judged(split: datasets.Split) -> Callable[[Any], tuple[float, float, int]]:
    """What is kept of a fitted model: its certified gap where it has one, its test accuracy, its iterations."""

    def judge(model: Any) -> tuple[float, float, int]:
        hits = float((model.predict(split.X_test) == split.y_test).mean())
        return float(getattr(model, "dual_gap_", np.nan)), hits, int(np.max(model.n_iter_))

    return judge


def _suboptimality(split: datasets.Split, C: float) -> float:
    """How far above its own optimum LogisticRegression's default ends, relative to it."""

    def objective(tol: float) -> float:
        model = _logistic(split, C, tol)()
        own = model.predict_log_proba(split.X)[np.arange(len(split.y)), np.searchsorted(model.classes_, split.y)]
        return float(0.5 * np.sum(model.coef_**2) - C * own.sum())

    default, best = objective(LogisticRegression().tol), objective(1e-8)
    return (default - best) / best


def _compare(split: datasets.Split, alpha: float, repeats: int) -> Record:
    """Every solver on one problem, in turns."""
    C = 1.0 / (len(split.y) * alpha)
    record = Record(split.name, split.shape, alpha, C)
    fits = {
        "zero-one": _ours(split, alpha, "zero_one"),
        "costs": _ours(split, alpha, lopsided(split.n_classes)),
        "logistic": _logistic(split, C, LogisticRegression().tol),
    }

    def timed(name: str) -> float | None:
        found = measure.capped(fits[name], CAP, then=_judged(split), warm=True)
        if found is None:
            return None
        record.gap[name], record.accuracy[name], record.iterations[name] = found[1]
        return found[0]

    record.seconds = measure.interleaved({name: partial(timed, name) for name in fits}, repeats)
    del record.gap["logistic"]
    record.logistic_suboptimality = _suboptimality(split, C)
    return record


def _times(records: list[Record]) -> dict[str, Any]:
    rows = []
    for r in records:
        cells = [r.data, f"{r.alpha:.1e}", f"{r.C:.3g}"]
        cells += [report.seconds(r.seconds[name], CAP) for name in (*LOSSES, "logistic")]
        cells += [report.ratio(r.seconds[name], r.seconds["logistic"], CAP) for name in LOSSES]
        rows.append(cells)
    sizes = "; ".join(dict.fromkeys(f"{r.data}: {r.shape}" for r in records))
    note = (
        f"{sizes}. Smoothing {SMOOTHING:g}; ours to a certified relative gap of {GAP:g}, LogisticRegression at its "
        "default tolerance, C = 1 / (n alpha). For each set the default, C = 1, then alpha = 1e-3 and "
        "C = 100. Costs are lognormal, with another for every pair of labels. The features of the last set have "
        f"condition {CONDITION:.0e}."
    )
    columns = ["data", "alpha", "C", "zero-one", "costs", "LogisticRegression"]
    columns += [f"{name} / LogisticRegression" for name in LOSSES]
    return report.table("Tempered training", note, columns, rows)


def _details(records: list[Record]) -> dict[str, Any]:
    rows = []
    for r in records:
        cells = [r.data, f"{r.C:.3g}"]
        cells += [f"{r.gap[name]:.1e}" if name in r.gap else "–" for name in LOSSES]
        cells.append(f"{r.logistic_suboptimality:.1e}")
        cells += [str(r.iterations.get(name, "–")) for name in (*LOSSES, "logistic")]
        cells += [f"{r.accuracy[name]:.4f}" if name in r.accuracy else "–" for name in ("zero-one", "logistic")]
        rows.append(cells)
    columns = ["data", "C", "gap, zero-one", "gap, costs", "LogisticRegression above its optimum"]
    columns += ["iterations, zero-one", "costs", "LogisticRegression", "accuracy, zero-one", "LogisticRegression"]
    note = "Gaps are certified. An iteration is a step of L-BFGS, or of Newton's method where ours turns to it."
    return report.table("Tempered training, certificates", note, columns, rows)


def run(repeats: int = 3) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Tables and records of every data set at every regularisation."""
    records = []
    for split in [*map(datasets.load, datasets.NAMES), skewed()]:
        n = len(split.y)
        for alpha in (1.0 / n, 1e-3, 0.01 / n):
            records.append(_compare(split, alpha, repeats))
            print(f"{split.name}, alpha = {alpha:g}: {records[-1].seconds}", flush=True)
    return [_times(records), _details(records)], [asdict(r) for r in records]
