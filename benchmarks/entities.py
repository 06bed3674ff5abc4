"""Named entities and base phrases: ``nashlearn tag`` at its defaults beside python-crfsuite.

Both learn from the same sentences and choose their parameters on the same held-out part of them. crfsuite is given
the features that its users take, and then ours, so that what features do and what training does can be told apart.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import report
from benchmarks.sequences import Crfsuite
from nashlearn import load
from nashlearn.cli.tag_search import quick_fold
from nashlearn.datasets import read_columns
from nashlearn.datasets.home import find
from nashlearn.tagging import RECIPES, TokenFeatures, phrase_scores

__all__ = ["run"]

SETS = {
    "CoNLL-2000": ("conll2000-train.txt.gz", "conll2000-test.txt.gz"),
    "Broad Twitter Corpus": ("btc-train.tsv.gz", "btc-test.tsv.gz"),
}
GRID = [(c1, c2) for c1 in (0.0, 0.1, 0.3) for c2 in (0.03, 0.3)]
USUAL = {"max_iterations": 100, "feature.possible_transitions": True}  # as sklearn-crfsuite's tutorial has them

Sentences = list[list[list[str]]]


class Split(NamedTuple):
    """Sentences and their tags."""

    X: Sentences
    y: list[list[str]]


def _read(file: str) -> Split:
    sentences = read_columns(find("sequences", file))
    return Split(
        [[token[:-1] for token in one] for one in sentences], [[token[-1] for token in one] for one in sentences]
    )


def _tutorial(sentence: list[list[str]]) -> list[list[str]]:
    """Features of the tutorial of sklearn-crfsuite on named entities, without the part of speech that tweets lack."""
    rows = []
    for i, (word, *_) in enumerate(sentence):
        row = ["bias", f"lower={word.lower()}", f"-3={word[-3:]}", f"-2={word[-2:]}", f"digit={word.isdigit()}"]
        for d in (-1, 0, 1):
            if 0 <= i + d < len(sentence):
                near = sentence[i + d][0]
                row += [f"{d}:lower={near.lower()}", f"{d}:title={near.istitle()}", f"{d}:upper={near.isupper()}"]
            else:
                row.append("BOS" if d < 0 else "EOS")
        rows.append(row)
    return rows


def _chunking(X: Sentences) -> Any:
    """Features of crfsuite's own example: words and parts of speech within two tokens, in pairs and in threes."""
    return TokenFeatures(spelling=False).transform(X)


USUAL_FEATURES: dict[str, Callable[[Sentences], Any]] = {
    "CoNLL-2000": _chunking,
    "Broad Twitter Corpus": lambda X: [_tutorial(one) for one in X],
}


def _record(name: str, method: str, answers: Any, test: Split, **more: Any) -> dict[str, Any]:
    scores = {part: 100.0 * value for part, value in phrase_scores(answers, test.y)._asdict().items()}
    found = {"set": name, "method": method, **scores, **more}
    print(found, flush=True)
    return found


def crfsuite(name: str, method: str, made: Callable[[Sentences], Any], train: Split, test: Split) -> dict[str, Any]:
    """crfsuite with c1 and c2 of the grid that find most phrases of the held-out part, trained on everything."""
    X, fold = made(train.X), quick_fold(train.y, 0)
    assert fold is not None
    start = time.process_time()
    tried = {}
    kept, held = ([([X[i] for i in rows]), [train.y[i] for i in rows]] for rows in fold)
    part = Crfsuite(*kept)
    for c1, c2 in GRID:
        part.train(c1=c1, c2=c2, **USUAL)
        tried[c1, c2] = phrase_scores(part.predict(held[0]), held[1]).f1
    c1, c2 = max(tried, key=lambda one: tried[one])
    whole = Crfsuite(X, train.y)
    whole.train(c1=c1, c2=c2, **USUAL)
    took = time.process_time() - start
    chosen = f"c1 {c1:g}, c2 {c2:g}"
    return _record(name, method, whole.predict(made(test.X)), test, chosen=chosen, seconds=took)


def ours(name: str, test: Split) -> tuple[list[dict[str, Any]], TokenFeatures]:
    """What the command makes at its defaults, with and without holding O back; and its features, with their recipe."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tagger.model"
        command = [sys.executable, "-c", "from nashlearn.cli import main; main()", "tag", "train"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        data = str(find("sequences", SETS[name][0]))
        done = subprocess.run([*command, data, "-o", str(path), "--json"], check=True, stdout=subprocess.PIPE)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        said = json.loads(done.stdout)
        maker, tagger = load(path)
    took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    chosen = f"{said['features']}, alpha {said['alpha']:g}, smoothing {said['smoothing']:g}, offset {said['offset']:g}"
    X = maker.transform(test.X)
    facts = {"chosen": chosen, "seconds": took}
    records = [_record(name, "nashlearn tag, defaults", tagger.predict(X), test, **facts, gap=said["dual_gap"])]
    tagger.set_params(offsets=None)
    records.append(_record(name, "the same, O not held back", tagger.predict(X), test, chosen="", seconds=None))
    return records, TokenFeatures(**RECIPES[said["features"]])


def run() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Table and records of both sets."""
    records = []
    for name, files in SETS.items():
        train, test = map(_read, files)
        own, features = ours(name, test)
        usual = USUAL_FEATURES[name]
        records.append(crfsuite(name, "crfsuite, its usual features", usual, train, test))
        made = features.fit(train.X).transform
        records.append(crfsuite(name, "crfsuite, our features", made, train, test))
        records += own
    return [show(records)], records


def show(records: list[dict[str, Any]]) -> dict[str, Any]:
    """The records for people."""
    return report.table(
        "Named entities and base phrases",
        "Phrases of the test set that are found, in percent. Both programmes choose their parameters on the same "
        "held-out part (a fifth of 60,000 tokens) and then train on all sentences; CPU seconds are of everything, "
        "tuning included. The usual features are those of crfsuite's example for CoNLL-2000 (words and parts of speech "
        "within two tokens, in pairs and in threes) and those of sklearn-crfsuite's tutorial for tweets; c1 of 0, 0.1 "
        "and 0.3 and c2 of 0.03 and 0.3 are tried. Our features are those that `nashlearn tag` has chosen.",
        ["set", "method", "phrase F1", "precision", "recall", "CPU", "chosen"],
        [
            [
                r["set"],
                r["method"],
                f"{r['f1']:.2f}",
                f"{r['precision']:.2f}",
                f"{r['recall']:.2f}",
                report.seconds(r["seconds"]),
                r["chosen"],
            ]
            for r in records
        ],
    )
