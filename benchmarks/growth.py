"""How the time of a fit grows with rows, features, classes and C; some sizes beside LogisticRegression."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from benchmarks import measure, report
from nashlearn import NashClassifier

__all__ = ["data", "run"]

CAP = 60.0
BASE = {"n": 10_000, "d": 100, "k": 10, "C": 1.0}
AXES: dict[str, tuple[float, ...]] = {
    "n": (2_500, 5_000, 10_000, 20_000, 40_000),
    "d": (50, 100, 200, 400),
    "k": (5, 10, 20, 50, 100),
    "C": (0.01, 0.1, 1.0, 10.0, 100.0),
}

SIZES = [(20_000, d, alpha, False) for d in (400, 800) for alpha in (1e-3, 5e-5)] + [(200_000, 50, 1e-3, True)]


def data(n: int, d: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Standardised rows and labels, whose difficulty does not depend on ``d``."""
    X, y = make_classification(
        n, d, n_informative=40, n_redundant=0, n_classes=k, n_clusters_per_class=1, class_sep=1.5,
        flip_y=0.02, random_state=0,
    )  # fmt: skip
    return StandardScaler().fit_transform(X), y


def _fit(n: int, d: int, k: int, C: float) -> Callable[[], Any]:
    """A fit to a gap of 1e-3."""
    X, y = data(n, d, k)

    def fit() -> Any:
        exact = {"smoothing": 0.0, "intercept_scaling": 1.0}
        model = NashClassifier("zero_one", alpha=1.0 / (n * C), tol=1e-3, max_iter=1_000_000, random_state=0, **exact)
        return model.fit(X, y)

    return fit


def _exponent(sizes: tuple[float, ...], times: list[float | None]) -> float | None:
    """Slope of log time against log size, over the runs within the cap."""
    points = [(np.log(s), np.log(t)) for s, t in zip(sizes, times, strict=True) if t is not None]
    if len(points) < 2:
        return None
    x, y = np.array(points).T
    return float(np.polyfit(x, y, 1)[0])


def _along(axis: str, repeats: int) -> dict[str, Any]:
    def timed(fit: Callable[[], Any]) -> Callable[[], float | None]:
        def once() -> float | None:
            answer = measure.capped(fit, CAP, then=lambda model: None, warm=True)
            return None if answer is None else answer[0]

        return once

    runs = {f"{size:g}": timed(_fit(**{**BASE, axis: size})) for size in AXES[axis]}  # type: ignore[arg-type]
    times = list(measure.interleaved(runs, repeats).values())
    return {"axis": axis, "sizes": AXES[axis], "seconds": times, "exponent": _exponent(AXES[axis], times)}


def noisy(n: int, d: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Independent features and labels of which a linear model explains a little."""
    rng = np.random.default_rng(0)
    X, W = rng.standard_normal((n, d)), rng.standard_normal((d, k)) * (3.0 / np.sqrt(d))
    return X, np.argmax(X @ W + 3.0 * rng.gumbel(size=(n, k)), axis=1)


def _beside(n: int, d: int, alpha: float, costs: bool, repeats: int) -> dict[str, Any]:
    """The exact game at a gap of 1e-3, by errors and by random costs, in turns with LogisticRegression's default."""
    X, y = noisy(n, d, 5)
    matrix = np.exp(np.random.default_rng(1).standard_normal((5, 5))) * (1.0 - np.eye(5))
    exact = {"smoothing": 0.0, "intercept_scaling": 1.0, "tol": 1e-3, "max_iter": 1_000_000, "random_state": 0}
    models: dict[str, Any] = {"zero-one": NashClassifier("zero_one", alpha=alpha, **exact)}
    if costs:
        models["costs"] = NashClassifier(matrix, alpha=alpha * matrix.max(), **exact)
    models["logistic"] = LogisticRegression(C=1.0 / (n * alpha), max_iter=100_000)

    def timed(model: Any) -> float | None:
        answer = measure.capped(lambda: model.fit(X, y), CAP, then=lambda _: None, warm=True)
        return None if answer is None else answer[0]

    seconds = measure.interleaved({name: partial(timed, model) for name, model in models.items()}, repeats)
    return {"shape": f"{n:,} × {d}, k = 5", "alpha": alpha, "seconds": seconds}


def _beside_table(records: list[dict[str, Any]]) -> dict[str, Any]:
    rows = []
    for r in records:
        took = r["seconds"]
        known = {name: took.get(name) for name in ("zero-one", "costs", "logistic")}
        cells = [report.seconds(known[name], CAP) if name in took else "–" for name in known]
        ratios = [report.ratio(took["zero-one"], took["logistic"], CAP)]
        ratios.append(report.ratio(took["costs"], took["zero-one"], CAP) if "costs" in took else "–")
        rows.append([r["shape"], f"{r['alpha']:g}", *cells, *ratios])
    columns = ("rows", "alpha", "errors", "cost matrix", "LogisticRegression, default", "errors / it", "costs / errors")
    note = "Dense, noisy data; the exact game at a certified gap of 1e-3, in turns with LogisticRegression."
    return report.table("Wide and long data", note, columns, rows)


def run(repeats: int = 3) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Tables and records along each axis."""
    records = [_along(axis, repeats) for axis in AXES]
    rows = []
    for r in records:
        points = zip(r["sizes"], r["seconds"], strict=True)
        curve = ", ".join(f"{size:g}: {report.seconds(took, CAP)}" for size, took in points)
        rows.append([r["axis"], curve, "–" if r["exponent"] is None else f"{r['exponent']:.2f}"])
    base = ", ".join(f"{name} = {value:g}" for name, value in BASE.items())
    note = f"Dense data, gap 1e-3, one quantity at a time around {base}; time grows as size^exponent."
    growth = report.table("Growth", note, ("along", "time", "exponent"), rows)
    beside = [_beside(*size, repeats) for size in SIZES]
    return [growth, _beside_table(beside)], [*records, *beside]
