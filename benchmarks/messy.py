"""Messy tables: ``nashlearn train`` without a flag against logistic regression on data that were cleaned by hand.

Four tables of :mod:`benchmarks.messy_tables`, five random splits each, stratified, 30 % held out. Ours reads the messy
file as it is, by the command line. The peer is given the clean twin, in which every disguised column is the number that
it was, ids are gone, gaps are gaps: numbers scaled, gaps filled with the mean, categories as indicators, text as
scikit-learn's TF-IDF at its defaults, ``LogisticRegression(max_iter=1000)``. A third model shows what there is to lose:
the same logistic regression on the messy file as pandas reads it, where everything that is text is a category.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks import report
from benchmarks.messy_tables import HELD_OUT, TABLES, Messy, make

__all__ = ["MODELS", "PAGE", "SPLITS", "command_line", "logistic", "measured", "page", "run"]

SPLITS = 5
OURS, PEER, RAW = "nashlearn train", "by hand + logistic", "as read + logistic"
MODELS = (OURS, PEER, RAW)
PAGE, MARK = Path(__file__).parents[1] / "docs/messy-tables.md", "<!-- results -->"
_TARGET = "label"


def command_line(messy: Any, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Labels that a model of the command line gives to the test rows, and the lines in which it says its guesses."""
    import pandas
    from typer.testing import CliRunner

    from nashlearn.cli.app import app

    with tempfile.TemporaryDirectory() as folder:
        first, second, model, out = (str(Path(folder) / name) for name in ("a.csv", "b.csv", "m", "out.csv"))
        messy.assign(**{_TARGET: y}).iloc[train].to_csv(first, index=False)
        messy.iloc[test].to_csv(second, index=False)
        trained = CliRunner().invoke(app, ["train", first, "--target", _TARGET, "--out", model], catch_exceptions=False)
        guessed = CliRunner().invoke(app, ["predict", model, second, "--out", out], catch_exceptions=False)
        if trained.exit_code or guessed.exit_code:
            raise RuntimeError(f"{trained.stderr}{guessed.stderr}")
        said = [line for line in trained.stderr.splitlines() if line.startswith("column ")]
        return pandas.read_csv(out)["prediction"].to_numpy(), said


def logistic(X: Any, y: np.ndarray, train: np.ndarray, test: np.ndarray, text: tuple[str, ...] = ()) -> np.ndarray:
    """Labels that logistic regression gives to the test rows of a data frame."""
    numbers = list(X.select_dtypes("number").columns)
    words = [name for name in X.columns if name not in numbers and name not in text]
    parts = [
        ("numbers", make_pipeline(StandardScaler(), SimpleImputer()), numbers),
        ("words", OneHotEncoder(handle_unknown="ignore"), words),
        *((name, TfidfVectorizer(), name) for name in text),
    ]
    model = make_pipeline(ColumnTransformer(parts), LogisticRegression(max_iter=1000))
    return model.fit(X.iloc[train], y[train]).predict(X.iloc[test])


def measured(one: Messy, splits: int = SPLITS) -> dict[str, Any]:
    """Accuracy and balanced accuracy of each model, split by split, and what was said of the columns."""
    found: dict[str, dict[str, list[float]]] = {name: {"accuracy": [], "balanced": []} for name in MODELS}
    cuts = StratifiedShuffleSplit(splits, test_size=HELD_OUT, random_state=0)
    for train, test in cuts.split(one.y, one.y):
        ours, said = command_line(one.messy, one.y, train, test)
        answers = {
            OURS: ours,
            PEER: logistic(one.clean, one.y, train, test, one.text),
            RAW: logistic(one.messy, one.y, train, test),
        }
        for name, labels in answers.items():
            found[name]["accuracy"].append(float(accuracy_score(one.y[test], labels)))
            found[name]["balanced"].append(float(balanced_accuracy_score(one.y[test], labels)))
    unsaid = [
        name for name in (*one.disguised, *one.ids, *one.text) if not any(f"column {name!r}" in line for line in said)
    ]
    shape = {"rows": len(one.messy), "columns": one.messy.shape[1], "classes": int(np.unique(one.y).size)}
    return {"table": one.name, **shape, "models": found, "said": said, "unsaid": unsaid}


def run() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Tables and records; the page of the documentation is rewritten, too."""
    records = []
    for name in TABLES:
        records.append(measured(make(name)))
        means = {model: round(float(np.mean(x["accuracy"])), 4) for model, x in records[-1]["models"].items()}
        print(name, means, "unsaid:", records[-1]["unsaid"], flush=True)
    tables = _tables(records)
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), tables), encoding="utf-8")
    return tables, records


def page(text: str, tables: list[dict[str, Any]]) -> str:
    """The page of the documentation with the first table behind its mark."""
    return text.partition(MARK)[0] + MARK + "\n\n" + report.show(tables[0])


def _tables(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    rows = []
    for record in records:
        means = {
            measure: [float(np.mean(record["models"][name][measure])) for name in MODELS]
            for measure in ("accuracy", "balanced")
        }
        gap = 100 * (means["accuracy"][0] - means["accuracy"][1])
        shape = f"{record['rows']:,} × {record['columns']}, k = {record['classes']}"
        pairs = [f"{100 * a:.1f} ({100 * b:.1f})" for a, b in zip(means["accuracy"], means["balanced"], strict=True)]
        rows.append([record["table"], shape, *pairs, f"{gap:+.1f}"])
    note = (
        f"Held-out accuracy in %, in brackets the mean over classes; means over {SPLITS} splits. The last column is "
        "how many points the first model, on the messy file, is above the second, on data cleaned by hand."
    )
    columns = ["table", "shape", *MODELS, "points"]
    said = [[record["table"], line] for record in records for line in record["said"]]
    return [
        report.table("Messy tables", note, columns, rows),
        report.table("What `train` says of their columns", "In the last split.", ["table", "line"], said),
    ]
