"""Writes the stored models of this version: python tests/stored/make.py. Once for each minor version, then kept."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas

import nashlearn
from nashlearn import NashAbstainer, NashClassifier, NashOrdinalClassifier, NashTagger, tabular

HERE = Path(__file__).parent


def write(name: str, model, X, shown) -> None:
    minor = ".".join(nashlearn.__version__.split(".")[:2])
    nashlearn.save(model, HERE / f"{name}-{minor}.model", schema={"made": "for tests"})
    content = {
        "X": shown,
        "predictions": [np.asarray(answer).tolist() for answer in model.predict(X)],
        "p": [np.asarray(p).tolist() for p in model.predict_proba(X)],
    }
    if hasattr(model, "worst_case_risk"):
        content["risk"] = [model.worst_case_risk(radius) for radius in (0.0, 0.1)]
    (HERE / f"{name}-{minor}.json").write_text(json.dumps(content) + "\n")


def main() -> None:
    rng = np.random.default_rng(1)
    n = 60
    size, colour = rng.normal(size=n), rng.choice(["red", "green", "blue"], size=n)
    y = np.where(size + (colour == "red") + 0.3 * rng.normal(size=n) > 0.5, "large", "small")
    frame = pandas.DataFrame({"size": size, "colour": colour, "count": rng.integers(0, 9, size=n)})
    costs = np.array([[0.0, 2.0], [1.0, 0.0]])
    model = tabular.table_pipeline(NashClassifier(costs, alpha=0.01, random_state=0), frame)
    tabular.fit_table(model, frame, y)
    some = frame[:10].assign(size=[None, *size[1:10]], colour=["violet", *colour[1:10]])
    write("table", model, some, {name: json.loads(some[name].to_json(orient="values")) for name in some})
    sentences = [[["w=the"], ["w=cat"], ["w=sleeps"]], [["w=cats"], ["w=sleep"]], [["w=the"], ["w=dog"], ["w=eats"]]]
    tags = [["DET", "NOUN", "VERB"], ["NOUN", "VERB"], ["DET", "NOUN", "VERB"]]
    X = rng.normal(size=(40, 3))
    grades = np.digitize(X[:, 0] + 0.5 * rng.normal(size=40), [-0.5, 0.5])
    lopsided = np.array([[0.0, 1.0, 4.0], [2.0, 0.0, 1.0], [3.0, 1.0, 0.0], [1.5, 0.9, 1.5]])
    rows = {
        "costs": NashClassifier(lopsided, alpha=0.01, random_state=0),
        "grades": NashOrdinalClassifier(alpha=0.01, random_state=0),
        "abstainer": NashAbstainer(0.3, alpha=0.01, random_state=0),
        "kernel": NashClassifier("squared", kernel="rbf", alpha=0.01, random_state=0),
    }
    for name, one in rows.items():
        write(name, one.fit(X, grades), X[:10], X[:10].tolist())
    write("tagger", NashTagger(alpha=0.01).fit(sentences, tags), sentences, sentences)


if __name__ == "__main__":
    main()
