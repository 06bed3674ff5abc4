"""Writes the stored models of this version: python tests/stored/make.py. Once for each minor version, then kept."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas

import nashlearn
from nashlearn import NashClassifier, NashTagger, tabular

HERE = Path(__file__).parent


def write(name: str, model, X, shown) -> None:
    minor = ".".join(nashlearn.__version__.split(".")[:2])
    nashlearn.save(model, HERE / f"{name}-{minor}.model", schema={"made": "for tests"})
    content = {
        "X": shown,
        "predictions": [np.asarray(answer).tolist() for answer in model.predict(X)],
        "p": [np.asarray(p).tolist() for p in model.predict_proba(X)],
    }
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
    write("tagger", NashTagger(alpha=0.01).fit(sentences, tags), sentences, sentences)


if __name__ == "__main__":
    main()
