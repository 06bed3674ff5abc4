"""Gaussian kernels on optdigits beside SVC, one-vs-one and one-vs-rest: fits, predictions, support vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

from benchmarks import measure, report
from nashlearn import NashClassifier
from nashlearn.datasets import load_multiclass

__all__ = ["run"]

CAP = 60.0
SETTINGS = ((0.03, 1.0), (0.03, 10.0), (0.03, 100.0), (0.1, 10.0))
REPEATS = 3


def _models(gamma: float, C: float, n: int) -> dict[str, Any]:
    return {
        "ours": NashClassifier("zero_one", kernel="rbf", gamma=gamma, alpha=1.0 / (n * C), tol=1e-3, random_state=0),
        "SVC": SVC(C=C, gamma=gamma),
        "one-vs-rest": OneVsRestClassifier(SVC(C=C, gamma=gamma)),
    }


def _timed(model: Any, X: np.ndarray, y: np.ndarray) -> Callable[[], float | None]:
    def once() -> float | None:
        answer = measure.capped(lambda: model.fit(X, y), CAP, then=lambda fitted: None, warm=True)
        return None if answer is None else answer[0]

    return once


def _compare(gamma: float, C: float, data: Any) -> dict[str, Any]:
    X, y = data.data[: data.n_train] / 16.0, data.target[: data.n_train]
    X_test, y_test = data.data[data.n_train :] / 16.0, data.target[data.n_train :]
    models = _models(gamma, C, y.size)
    fit = measure.interleaved({name: _timed(model, X, y) for name, model in models.items()}, REPEATS)
    ours, svc = models["ours"].fit(X, y), models["SVC"].fit(X, y)
    return {
        "gamma": gamma,
        "C": C,
        "fit": fit,
        "predict": {
            name: measure.per_call(lambda m=m: m.predict(X_test)) for name, m in (("ours", ours), ("SVC", svc))
        },
        "support": {"ours": int(ours.support_.size), "SVC": int(svc.support_.size)},
        "accuracy": {"ours": ours.score(X_test, y_test), "SVC": svc.score(X_test, y_test)},
        "gap": ours.dual_gap_,
    }


def run() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Tables and records; a table that says why where the data are not there."""
    columns = ("γ", "C", "ours", "SVC", "ours / SVC", "ours / one-vs-rest", "predict, ours / SVC", "support vectors",
               "accuracy", "gap")  # fmt: skip
    try:
        data = load_multiclass("optdigits")
    except FileNotFoundError as missing:
        return [report.table("Kernels", f"Not run: {missing}", columns, [])], []
    records = [_compare(gamma, C, data) for gamma, C in SETTINGS]
    rows = [
        [
            f"{r['gamma']}", f"{r['C']:g}", f"{r['fit']['ours']:.3f} s", f"{r['fit']['SVC']:.3f} s",
            f"{r['fit']['ours'] / r['fit']['SVC']:.2f}", f"{r['fit']['ours'] / r['fit']['one-vs-rest']:.2f}",
            f"{r['predict']['ours'] / r['predict']['SVC']:.2f}", f"{r['support']['ours']} / {r['support']['SVC']}",
            f"{r['accuracy']['ours']:.4f} / {r['accuracy']['SVC']:.4f}", f"{r['gap']:.0e}",
        ]
        for r in records
    ]  # fmt: skip
    note = "optdigits, 3,823 training rows, scaled to [0, 1]. Ours: one joint problem to a certified gap of 1e-3."
    return [report.table("Kernels", note, columns, rows)], records
