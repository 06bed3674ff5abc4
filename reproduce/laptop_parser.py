"""A parser without deep learning on the whole of English EWT: the game beside other losses on the same hashed features.

The game, the structured hinge and the conditional random field are trained by the same block steps with the same number
of passes, the averaged perceptron by its own. Relations are those of one labeller for all. Gold tags.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import report
from nashlearn import parsing
from nashlearn.datasets import Sentence, load_treebank
from nashlearn.training.designs.arcs import tree_games
from nashlearn.training.designs.hashed_arcs import HashedArcs
from nashlearn.training.driver import train as trained_by
from nashlearn.training.methods.blocks import BlockProblem, Blocks
from reproduce.protocol import Profile
from reproduce.references.tree_losses import averaged_perceptron, gibbs_games, hinge_games
from reproduce.store import Store

__all__ = ["run", "section"]

TREEBANK = "en_ewt-r2.3"
ALPHAS, PASSES = (3e-6, 1e-6), 10
_FURTHER = {"crf": (3e-7,)}  # where the best on the development set lies at the end of these
LOSSES: dict[str, Any] = {"crf": gibbs_games, "hinge": hinge_games, "game": lambda heads, single_root: None}
_TITLES = {
    "game": "game (NashParser)",
    "hinge": "structured SVM",
    "crf": "conditional random field",
    "perceptron": "averaged perceptron",
}

Key = list[Any]


class _Labelled:
    """Sentences with their features and true trees."""

    def __init__(self, sentences: Sequence[Sentence]):
        self.X = parsing.HashedSentences(sentences)
        self.heads, self.relations = [one.heads for one in sentences], [one.deprels for one in sentences]
        self.counted = parsing.not_punctuation(sentences)


def _weights(key: Key, train: _Labelled) -> tuple[np.ndarray, float | None]:
    """Weights and their certified gap."""
    _, method, alpha = key
    rng, data = np.random.default_rng(0), train.X.attributes
    if method == "perceptron":
        return averaged_perceptron(data, train.heads, PASSES, True, rng), None
    omega = np.full(len(train.heads), 1.0 / train.X.sizes.sum())
    games = LOSSES[method](train.heads, True)
    problem = BlockProblem(HashedArcs(data), train.heads, omega, True, n_jobs=1, games=games)
    trained = trained_by(problem, Blocks(), alpha=alpha, tol=1e-3, max_iter=PASSES, random_state=rng)
    return trained.w, trained.dual_gap


def _heads(X: parsing.HashedSentences, w: np.ndarray) -> list[np.ndarray]:
    """The best trees under the weights ``w``."""
    return tree_games(X.sizes, True).argmax(HashedArcs(X.attributes).scores(w))


def _judge(
    key: Key, train: _Labelled, dev: _Labelled, test: _Labelled, labeller: Any, raw: list[Any]
) -> dict[str, Any]:
    begin = time.process_time()
    w, gap = _weights(key, train)
    seconds = time.process_time() - begin
    heads = _heads(dev.X, w)
    record = {"key": key, "seconds": seconds, "gap": gap, "dev": parsing.attachment(heads, dev.heads, mask=dev.counted)}
    begin = time.process_time()
    fresh = parsing.HashedSentences(raw)  # reading features is part of parsing
    heads = _heads(fresh, w)
    speed = fresh.sizes.sum() / (time.process_time() - begin)
    labels = labeller.predict(test.X, heads)
    both = (labels, test.relations)
    return {
        **record,
        "tokens_per_second": float(speed),
        "uas": parsing.attachment(heads, test.heads, mask=test.counted),
        "las": parsing.attachment(heads, test.heads, *both, mask=test.counted),
        "ucm": parsing.complete_matches(heads, test.heads, mask=test.counted),
        "lcm": parsing.complete_matches(heads, test.heads, *both, mask=test.counted),
    }


def run(name: str, profile: Profile, folder: Path, n_jobs: int = 1) -> None:
    """Complete the store, one method after another: their times are compared."""
    import warnings

    store = Store(folder / f"{name}.jsonl")
    some = slice(None if profile.splits > 3 else 200)
    keys = [["laptop", method, alpha] for alpha in ALPHAS for method in LOSSES]
    keys.insert(len(LOSSES), ["laptop", "perceptron", 0.0])
    keys += [["laptop", method, alpha] for method, alphas in _FURTHER.items() for alpha in alphas]
    missing = [key for key in keys if key not in store]
    if not missing:
        return
    sets = [load_treebank(TREEBANK, split)[some] for split in ("train", "dev", "test")]
    train, dev, test = map(_Labelled, sets)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a set number of passes, whatever the gap
        labeller = parsing.ArcLabeller(bits=16, tol=0.1, random_state=0).fit(train.X, train.heads, train.relations)
        few = _Labelled(sets[0][:20])
        for key in missing:
            _weights(key, few)  # compiled before the clock runs
            store.add(_judge(key, train, dev, test, labeller, sets[2]))
            print(f"{name}: {key[1:]}", flush=True)


def section(folder: Path) -> str:
    """The table, or nothing where nothing is stored."""
    found: dict[str, dict[str, Any]] = {}
    for record in Store(folder / "laptop_parser.jsonl"):
        method = record["key"][1]
        if method not in found or record["dev"] > found[method]["dev"]:
            found[method] = record
    if not found:
        return ""
    note = (
        f"UD English EWT 2.3 with gold tags, trained on its whole training set in {PASSES} passes on one core without "
        "deep learning; alpha chosen on the development set, measures on the test set without punctuation. Times are "
        "the processor's, without the relations' labeller, which is the same for all; speed is that of heads from "
        "text columns."
    )
    columns = ["loss", "alpha", "UAS", "LAS", "UCM", "LCM", "training", "certified gap", "tokens a second"]
    rows = [
        [
            _TITLES[method],
            f"{r['key'][2]:g}" if r["key"][2] else "–",
            *(f"{100 * r[what]:.2f}" for what in ("uas", "las", "ucm", "lcm")),
            f"{r['seconds']:.0f} s",
            "–" if r["gap"] is None else f"{r['gap']:.1e}",
            f"{r['tokens_per_second']:,.0f}",
        ]
        for method, r in found.items()
    ]
    table = report.table("laptop_parser: English EWT with hashed features", note, columns, rows)
    return report.show(table).replace("### ", "## ", 1)
