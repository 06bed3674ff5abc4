"""Train for the metric that counts, beside the estimators that people would otherwise use.

Four tasks on data that scikit-learn ships. Every model tunes its regularisation by the task's own metric in the same
cross-validation; figures are means over five random splits, on the test part. The strongest usual way to heed costs is
among the baselines: logistic regression, and then the answer that is cheapest under its probabilities.

    python examples/demo.py [--store]

``--store`` writes the figures to ``results/demo.json`` beside this file, from which the README quotes.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from nashlearn import NashAbstainer, NashClassifier, NashOrdinalClassifier

SPLITS = 5
STRENGTHS = (1e-4, 1e-3, 1e-2, 1e-1)  # alpha; the baselines get C = 1 / (n alpha)
MISSED = 10.0  # what overlooking a malignant tumour costs, against 1 for a false alarm
DOUBT = 0.1  # what abstaining costs


class CheapestAnswer(ClassifierMixin, BaseEstimator):
    """Logistic regression, and then the answer of least expected cost under its probabilities."""

    def __init__(self, costs: np.ndarray, C: float = 1.0):
        self.costs, self.C = costs, C

    def fit(self, X: np.ndarray, y: np.ndarray) -> CheapestAnswer:
        """Fit the probabilities; the costs play no part."""
        self.model_ = LogisticRegression(C=self.C, max_iter=1000).fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """``argmin_i sum_j costs[i, j] P(j | x)``."""
        return self.classes_[np.argmin(self.model_.predict_proba(X) @ self.costs.T, axis=1)]


@dataclass(frozen=True)
class Task:
    """Data, a metric of (fitted pipeline, X, y) to minimise, and the models that compete."""

    key: str
    title: str
    data: tuple[np.ndarray, np.ndarray]
    metric: Callable[[Any, np.ndarray, np.ndarray], float]
    models: dict[str, Any]


def error(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Share of wrong labels."""
    return float(np.mean(model.predict(X) != y))


def absolute_error(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Mean distance between grades."""
    return float(np.mean(np.abs(model.predict(X) - y)))


def tumour_cost(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Mean cost where class 0 is malignant."""
    wrong = model.predict(X) != y
    return float(np.mean(np.where(wrong, np.where(y == 0, MISSED, 1.0), 0.0)))


def doubtful_error(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Mean of 1 for a wrong label and ``DOUBT`` for none; Chow's rule for models that know probabilities only."""
    if hasattr(model[-1], "predict_or_abstain"):
        answer = model[-1].predict_or_abstain(model[:-1].transform(X))
    else:
        probability = model.predict_proba(X)
        answer = np.where(probability.max(axis=1) < 1 - DOUBT, -1, model.classes_[probability.argmax(axis=1)])
    return float(np.mean(np.where(answer == -1, DOUBT, answer != y)))


def tasks() -> list[Task]:
    """The four tasks."""
    X, progression = load_diabetes(return_X_y=True)
    grades = np.searchsorted(np.quantile(progression, [0.2, 0.4, 0.6, 0.8]), progression)
    ordinal: dict[str, Any] = {
        "NashOrdinalClassifier": NashOrdinalClassifier(),
        "NashClassifier('absolute')": NashClassifier("absolute"),
        "LogisticRegression, median": CheapestAnswer(np.abs(np.subtract.outer(np.arange(5), np.arange(5)))),
        "LogisticRegression": LogisticRegression(max_iter=1000),
        "LinearSVC": LinearSVC(max_iter=20000, dual=False),
    }
    if importlib.util.find_spec("mord"):
        from mord import LogisticAT

        ordinal["mord.LogisticAT"] = LogisticAT()
    costs = np.array([[0.0, 1.0], [MISSED, 0.0]])
    return [
        Task(
            "grades", "Diabetes: progression in five grades. Mean absolute error", (X, grades), absolute_error, ordinal
        ),
        Task(
            "costs",
            f"Breast cancer: a missed tumour costs {MISSED:.0f} false alarms. Mean cost",
            load_breast_cancer(return_X_y=True),
            tumour_cost,
            {
                "NashClassifier(costs)": NashClassifier(costs),
                "LogisticRegression, cheapest": CheapestAnswer(costs),
                "LogisticRegression, class_weight": LogisticRegression(max_iter=1000, class_weight={0: MISSED, 1: 1.0}),
                "LogisticRegression": LogisticRegression(max_iter=1000),
                "LinearSVC, class_weight": LinearSVC(max_iter=20000, dual=False, class_weight={0: MISSED, 1: 1.0}),
            },
        ),
        Task(
            "abstention",
            f"Digits: abstaining costs {DOUBT}. Mean of that and errors",
            load_digits(return_X_y=True),
            doubtful_error,
            {
                f"NashAbstainer({DOUBT})": NashAbstainer(DOUBT),
                "LogisticRegression, Chow's rule": LogisticRegression(max_iter=1000),
            },
        ),
        Task(
            "errors",
            "Digits: which digit. Error",
            load_digits(return_X_y=True),
            error,
            {
                "NashClassifier('zero_one')": NashClassifier("zero_one"),
                "LogisticRegression": LogisticRegression(max_iter=1000),
                "LinearSVC": LinearSVC(max_iter=20000, dual=False),
            },
        ),
    ]


def compete(task: Task, model: Any) -> dict[str, Any]:
    """Metric, certificate, worst case and time of the final fit, over the splits."""
    X, y = task.data
    scores, times, gaps, worst = [], [], [], []
    for seed in range(SPLITS):
        X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=seed, stratify=y)
        parameter = "C" if "C" in model.get_params() else "alpha"
        strengths = [1 / (alpha * len(y_train)) for alpha in STRENGTHS] if parameter == "C" else STRENGTHS
        pipeline = make_pipeline(StandardScaler(), model)
        grid = {f"{pipeline.steps[-1][0]}__{parameter}": strengths}
        search = GridSearchCV(pipeline, grid, cv=3, scoring=lambda m, A, b: -task.metric(m, A, b)).fit(X_train, y_train)
        began = time.perf_counter()
        fitted = search.best_estimator_.fit(X_train, y_train)
        times.append(time.perf_counter() - began)
        scores.append(task.metric(fitted, X_test, y_test))
        if hasattr(fitted[-1], "dual_gap_"):
            gaps.append(fitted[-1].dual_gap_)
            worst.append(fitted[-1].worst_case_risk())
    return {
        "mean": float(np.mean(scores)),
        "error": float(np.std(scores, ddof=1) / np.sqrt(SPLITS)),
        "gap": max(gaps) if gaps else None,
        "worst_case": float(np.mean(worst)) if worst else None,
        "seconds": float(np.median(times)),
    }


def line(name: str, found: dict[str, Any]) -> str:
    """One line of the table."""
    none = found["gap"] is None
    certificate = f"{'none':>9} {'none':>11}" if none else f"{found['gap']:9.0e} {found['worst_case']:11.3f}"
    test = f"{found['mean']:7.4f} ± {found['error']:.4f}"
    return f"  {name:<32} {test}  {certificate}  {1e3 * found['seconds']:7.1f} ms"


def main() -> None:
    """Run the tasks and print the table."""
    parser = argparse.ArgumentParser(description="Estimators beside those that people would otherwise use.")
    parser.add_argument("--store", action="store_true", help="write results/demo.json")
    store = parser.parse_args().store
    results: dict[str, dict[str, Any]] = {}
    for task in tasks():
        print(f"\n{task.title}")
        print(f"  {'':<32} {'on test data':>16}  {'gap':>9} {'worst case':>11}  {'fit':>10}")
        results[task.key] = {}
        for name, model in task.models.items():
            results[task.key][name] = compete(task, model)
            print(line(name, results[task.key][name]), flush=True)
    print(
        "\ngap: proven relative distance of the objective to its optimum. worst case: proven bound on the mean loss\n"
        "of the randomised predictions, over all label distributions with the moments of the training data.\n"
        "cheapest, median, Chow's rule: the answer of least expected loss under the estimated probabilities.\n"
        "Lower is better throughout."
    )
    if store:
        path = Path(__file__).parent / "results" / "demo.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"splits": SPLITS, "missed": MISSED, "doubt": DOUBT, **results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
