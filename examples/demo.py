"""Train for the metric that counts, beside the estimators that people would otherwise use.

Four tasks on data that scikit-learn ships. Every model tunes its regularisation by the task's own metric in the same
cross-validation; figures are means over five random splits, on the test part.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
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


@dataclass(frozen=True)
class Task:
    """Data, a metric of (fitted pipeline, X, y) to minimise, and the models that compete."""

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
        "LogisticRegression": LogisticRegression(max_iter=1000),
        "LinearSVC": LinearSVC(max_iter=20000, dual=False),
    }
    if importlib.util.find_spec("mord"):
        from mord import LogisticAT

        ordinal["mord.LogisticAT"] = LogisticAT()
    costs = np.array([[0.0, 1.0], [MISSED, 0.0]])
    return [
        Task("Diabetes: progression in five grades. Mean absolute error", (X, grades), absolute_error, ordinal),
        Task(
            f"Breast cancer: a missed tumour costs {MISSED:.0f} false alarms. Mean cost",
            load_breast_cancer(return_X_y=True),
            tumour_cost,
            {
                "NashClassifier(costs)": NashClassifier(costs, decision="equilibrium"),
                "LogisticRegression": LogisticRegression(max_iter=1000),
                "  the same, class_weight": LogisticRegression(max_iter=1000, class_weight={0: MISSED, 1: 1.0}),
                "LinearSVC, class_weight": LinearSVC(max_iter=20000, dual=False, class_weight={0: MISSED, 1: 1.0}),
            },
        ),
        Task(
            f"Digits: abstaining costs {DOUBT}. Mean of that and errors",
            load_digits(return_X_y=True),
            doubtful_error,
            {
                f"NashAbstainer({DOUBT})": NashAbstainer(DOUBT),
                "LogisticRegression, Chow's rule": LogisticRegression(max_iter=1000),
            },
        ),
        Task(
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


def compete(task: Task, name: str, model: Any) -> str:
    """One line of the table: metric, certificate, worst case, time of the final fit."""
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
    certificate = f"{max(gaps):9.0e} {np.mean(worst):11.3f}" if gaps else f"{'none':>9} {'none':>11}"
    spread = np.std(scores, ddof=1) / np.sqrt(SPLITS)
    return f"  {name:<32} {np.mean(scores):7.4f} ± {spread:.4f}  {certificate}  {1e3 * np.median(times):7.1f} ms"


def main() -> None:
    """Run the tasks and print the table."""
    for task in tasks():
        print(f"\n{task.title}")
        print(f"  {'':<32} {'on test data':>16}  {'gap':>9} {'worst case':>11}  {'fit':>10}")
        for name, model in task.models.items():
            print(compete(task, name, model), flush=True)
    print(
        "\ngap: proven relative distance of the objective to its optimum. worst case: proven bound on the mean loss\n"
        "of the randomised predictions, over all label distributions with the moments of the training data.\n"
        "Lower is better throughout."
    )


if __name__ == "__main__":
    main()
