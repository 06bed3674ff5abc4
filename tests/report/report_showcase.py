"""Reports as people see them, one of each task, on data of ordinary size: for pictures and for the size of pages."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from report_models import reports
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nashlearn import NashClassifier, NashOrdinalClassifier, NashTagger, report

KINDS = ("classes", "costs", "grades", "tags", "trees", "tracks")
GRADES = ("very low", "low", "middle", "high", "very high")
PHRASES = ("PERSON", "PLACE", "ORGANISATION", "DATE", "PRODUCT", "EVENT")


def _halves(X: Any, y: np.ndarray) -> Any:
    return train_test_split(X, y, test_size=0.4, random_state=0, stratify=y)


@cache
def classes() -> dict[str, Any]:
    """Ten digits, all mistakes alike."""
    X, X_new, y, y_new = _halves(*load_digits(return_X_y=True))
    model = make_pipeline(StandardScaler(), NashClassifier(alpha=1e-3)).fit(X, y)
    peers = report.table_baselines(model, X, y)
    return report.classification_report_data(
        model, X_new, y_new, baselines=peers, training=(X, y), title="digits.csv: classification"
    )


@cache
def costs() -> dict[str, Any]:
    """Two classes, of which one is ten times as dear to miss, from a table with names, with a learning curve."""
    data = load_breast_cancer(as_frame=True)
    y = np.where(data.target.to_numpy() == 1, "benign", "malignant")
    X, X_new, y, y_new = _halves(data.data, y)
    model = make_pipeline(StandardScaler(), NashClassifier([[0, 10], [1, 0]], alpha=1e-2)).fit(X, y)
    return report.classification_report_data(
        model,
        X_new,
        y_new,
        baselines=report.table_baselines(model, X, y),
        training=(X, y),
        learning=report.learning_curve(model, X, y, X_new, y_new),
        title="cancer.csv: classification",
        facts={"data": "cancer.csv", "rows held out": len(y_new)},
    )


@cache
def grades() -> dict[str, Any]:
    """Five grades with names that an alphabet would put in another order."""
    data = load_diabetes(as_frame=True)
    y = np.digitize(data.target, np.quantile(data.target, [0.2, 0.4, 0.6, 0.8]))
    X, X_new, y, y_new = _halves(data.data, y)
    model = make_pipeline(StandardScaler(), NashOrdinalClassifier(alpha=1e-2)).fit(X, y)
    return report.ordinal_report_data(
        model,
        X_new,
        y_new,
        baselines=report.table_baselines(model, X, y),
        training=(X, y),
        label_names=dict(enumerate(GRADES)),
        title="diabetes.csv: ordinal",
    )


def _sentences(seed: int, n: int) -> tuple[list[Any], list[list[str]], list[list[str]]]:
    """Words whose spelling says their kind but for noise, in phrases of one to three: thirteen tags."""
    rng = np.random.default_rng(seed)
    X, y, tokens = [], [], []
    for _ in range(n):
        tags: list[str] = []
        while len(tags) < rng.integers(8, 22):
            kind = rng.choice(["", *PHRASES], p=[0.52, 0.08, 0.08, 0.08, 0.08, 0.08, 0.08])
            size = int(rng.integers(1, 4))
            tags += [f"B-{kind}", *[f"I-{kind}"] * (size - 1)] if kind else ["O"] * size
        said = [f"{tag[2:6].lower() or 'word'}{rng.integers(0, 30)}" for tag in tags]
        said = [word if rng.random() > 0.15 else f"word{rng.integers(0, 30)}" for word in said]
        X.append([{"word": word, "start": word[:3]} for word in said])
        y.append(tags)
        tokens.append(said)
    return X, y, tokens


@cache
def tags() -> dict[str, Any]:
    """Thirteen tags that mark phrases, beside a conditional random field."""
    X, y, _ = _sentences(0, 80)
    X_new, y_new, tokens = _sentences(1, 60)
    model = NashTagger(alpha=1e-3, tol=0.05).fit(X, y)
    peers = {"always O": [["O"] * len(one) for one in y_new], **report.tagging_baselines(X, y)}
    return report.tagging_report_data(model, X_new, y_new, tokens=tokens, baselines=peers, title="names.txt: tagging")


@cache
def showcase() -> dict[str, dict[str, Any]]:
    """The data of a report of each task."""
    return {
        "classes": classes(),
        "costs": costs(),
        "grades": grades(),
        "tags": tags(),
        "trees": reports()["parsing"],
        "tracks": reports()["tracking"],
    }
