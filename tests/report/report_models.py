"""Small fitted models with data to report on, one for each kind of report; labels that try to break out of the page."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nashlearn import NashAbstainer, NashClassifier, NashMatcher, NashOrdinalClassifier, NashParser, NashTagger, report
from nashlearn.datasets import Boxes, Sentence
from nashlearn.tracking import by_overlap, track_examples

EVIL = '</script><script>window.broken = 1</script><img src=x onerror="window.broken = 1">'
COSTS = np.array([[0.0, 1.0, 4.0], [1.0, 0.0, 2.0], [3.0, 1.0, 0.0]])


@cache
def flowers() -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame, np.ndarray]:
    """Two halves of iris as frames, with noise so that there are mistakes."""
    data = load_iris(as_frame=True)
    rng = np.random.default_rng(0)
    X = data.data + rng.normal(scale=0.6, size=data.data.shape)
    rows = rng.permutation(len(X))
    y = data.target.to_numpy()
    half = len(X) // 2
    return X.iloc[rows[:half]], y[rows[:half]], X.iloc[rows[half:]], y[rows[half:]]


@cache
def classifier() -> Any:
    X, y, _, _ = flowers()
    return make_pipeline(StandardScaler(), NashClassifier(COSTS, alpha=1e-2)).fit(X, y)


@cache
def ordinal() -> Any:
    X, y, _, _ = flowers()
    return NashOrdinalClassifier(alpha=1e-2).fit(X, y)


@cache
def abstainer() -> Any:
    X, y, _, _ = flowers()
    return make_pipeline(StandardScaler(), NashAbstainer(0.3, alpha=3e-2)).fit(X, y)


@cache
def sequences(seed: int) -> tuple[list[Any], list[list[str]], list[list[str]]]:
    """Features, tags and tokens: nouns often follow articles, and phrases are marked."""
    rng = np.random.default_rng(seed)
    words = {"B-NP": ["the", "a", "this"], "I-NP": ["cat", "dog", "flies"], "O": ["sleeps", "flies", "<b>&"]}
    X, y, tokens = [], [], []
    for _ in range(25):
        tags = [tag for _ in range(rng.integers(1, 4)) for tag in ("B-NP", "I-NP", "O")][: rng.integers(2, 9)]
        tags = [tag if rng.random() > 0.15 else "O" for tag in tags]
        said = [str(rng.choice(words[tag])) for tag in tags]
        X.append([{"word": word} for word in said])
        y.append(tags)
        tokens.append(said)
    return X, y, tokens


@cache
def tagger() -> Any:
    X, y, _ = sequences(0)
    return NashTagger(alpha=1e-2, tol=0.05).fit(X, y)


@cache
def treebank(seed: int) -> tuple[list[np.ndarray], list[Sentence]]:
    """Arc features that say the true head but for noise, and the sentences."""
    rng = np.random.default_rng(seed)
    X, sentences = [], []
    for n in rng.integers(2, 8, size=20):
        heads = [0, *(int(rng.integers(1, d + 1)) for d in range(1, n))]
        x = rng.normal(size=(n, n + 1, 3))
        x[np.arange(n), heads, 0] += 1.6
        rows = [
            [str(d + 1), f"w{d}", "_", "NOUN", "_", "_", str(heads[d]), "root" if d == 0 else "dep", "_", "_"]
            for d in range(n)
        ]
        X.append(x)
        sentences.append(Sentence(rows))
    return X, sentences


@cache
def parser() -> Any:
    X, sentences = treebank(0)
    return NashParser(alpha=1e-2, tol=1e-2).fit(X, [sentence.heads for sentence in sentences])


@cache
def video(seed: int) -> Boxes:
    """Objects that walk, meet and leave."""
    rng = np.random.default_rng(seed)
    rows = []
    for ident in range(1, 7):
        first, last = int(rng.integers(1, 8)), int(rng.integers(12, 25))
        start, speed = rng.uniform([150, 100], [350, 180]), rng.normal(scale=[16, 5])
        for frame in range(first, last):
            left, top = start + speed * (frame - first) + rng.normal(scale=15, size=2)
            rows.append([frame, ident, left, top, 50, 120])
    table = np.array(rows)
    return Boxes(table[:, 0].astype(int), table[:, 1].astype(int), table[:, 2:], np.ones(len(table)))


@cache
def matcher() -> Any:
    return NashMatcher(tol=1e-2).fit(*track_examples(video(0)))


@cache
def reports() -> dict[str, dict[str, Any]]:
    """The data of a report of each kind."""
    X, y, X_new, y_new = flowers()
    names = {0: EVIL, 1: "versicolor & co", 2: "virginica"}
    found = {}
    for kind, model in (("classification", classifier()), ("ordinal", ordinal()), ("abstention", abstainer())):
        make = getattr(report, f"{kind}_report_data")
        peers = report.table_baselines(model, X, y)
        found[kind] = make(model, X_new, y_new, baselines=peers, label_names=names, title=f"Flowers {EVIL}")
    x, tags, tokens = sequences(1)
    found["tagging"] = report.tagging_report_data(
        tagger(), x, tags, tokens=tokens, baselines={"always O": [["O"] * len(one) for one in tags]}
    )
    arcs, sentences = treebank(1)
    relations = [["dep"] * len(sentence) for sentence in sentences]
    found["parsing"] = report.parsing_report_data(parser(), arcs, sentences, relations=relations)
    boxes = video(1)
    found["tracking"] = report.tracking_report_data(
        matcher(),
        boxes,
        baselines={"overlap": lambda moment: by_overlap(boxes.box[moment.tracks], boxes.box[moment.boxes], 0.5)},
        scores={"this model": {"mota": 0.9, "idf1": 0.8}},
    )
    return found
