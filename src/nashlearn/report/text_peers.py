"""Peers of taggers and parsers: a conditional random field, and rules that only know parts of speech."""

from __future__ import annotations

import os
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["parsing_baselines", "tagging_baselines"]

_TOKENS = 100_000  # that the random field is trained on, at most
_CRF = {"c1": 0.1, "c2": 0.1, "max_iterations": 100, "feature.possible_transitions": True}  # as its tutorial has them


def tagging_baselines(X: Sequence[Any], y: Sequence[Sequence[Any]], *, random_state: int = 0) -> dict[str, Any]:
    """The usual peer of a tagger, trained on the same features: for the argument ``baselines`` of the report.

    That is the linear-chain conditional random field of python-crfsuite, with the penalties of its tutorial (``c1`` and
    ``c2`` 0.1) and 100 iterations; None where it is not installed, which the report says. It sees at most 100,000
    tokens, in sequences drawn at random, and then its name says so; 20,000 tokens of CoNLL-2000 take it 6 s.

    Parameters
    ----------
    X, y : the training data, as given to the model
        Features by name, a dictionary or a list of names for each token; arrays have no names, and no peer.
    """
    first = next((one[0] for one in X if len(one)), None)
    if not isinstance(first, dict | list | tuple):
        return {}
    name = "conditional random field (python-crfsuite)"
    try:
        import pycrfsuite
    except ImportError:
        return {name: None}
    order = np.random.default_rng(random_state).permutation(len(y))
    sizes = np.cumsum([len(y[i]) for i in order])
    kept = np.sort(order[: max(1, int(np.searchsorted(sizes, _TOKENS, side="right")))])
    trainer = pycrfsuite.Trainer(verbose=False, params=_CRF)
    for i in kept:
        trainer.append([_features(token) for token in X[i]], list(map(str, y[i])))
    with tempfile.TemporaryDirectory() as folder:  # it knows no other way out of training than a file
        path = os.path.join(folder, "model")
        trainer.train(path)
        with open(path, "rb") as file:
            content = file.read()
    seen = "" if kept.size == len(y) else f" ({sum(len(y[i]) for i in kept):,} tokens)"
    return {f"{name}{seen}": _RandomField(content)}


def _features(token: Any) -> Any:
    """A token's features as python-crfsuite takes them."""
    return dict(token) if isinstance(token, dict) else list(token)


class _RandomField:
    """A trained model of python-crfsuite, which answers as a tagger does."""

    def __init__(self, content: bytes):
        self.content = content

    def predict(self, X: Sequence[Any]) -> list[np.ndarray]:
        """Tags of each sequence."""
        import pycrfsuite

        tagger = pycrfsuite.Tagger()
        tagger.open_inmemory(self.content)
        return [np.array(tagger.tag([_features(token) for token in one])) for one in X]


def parsing_baselines(learnt: Sequence[Any], sentences: Sequence[Any]) -> dict[str, list[np.ndarray]]:
    """Heads of sentences by the commonest rule of each part of speech: for the argument ``baselines`` of the report.

    A rule is a direction and a part of speech, or the root: the head is the nearest word of that part in that
    direction, and where there is none, the word before. The answers need not be trees.

    Parameters
    ----------
    learnt, sentences : sequences of nashlearn.datasets.Sentence
        The training data, and those to answer.
    """
    seen: dict[str, Counter[tuple[int, str]]] = defaultdict(Counter)
    for one in learnt:
        for i, head in enumerate(one.heads):
            rule = (0, "") if head == 0 else (1 if head - 1 > i else -1, one.upos[head - 1])
            seen[one.upos[i]][rule] += 1
    rules = {tag: counts.most_common(1)[0][0] for tag, counts in seen.items()}
    return {"nearest word of the usual kind": [_by_rules(one.upos, rules) for one in sentences]}


def _by_rules(tags: Sequence[str], rules: dict[str, tuple[int, str]]) -> np.ndarray:
    heads = np.arange(len(tags))
    for i, tag in enumerate(tags):
        step, wanted = rules.get(tag, (-1, ""))
        if step == 0:
            heads[i] = 0
            continue
        places = range(i + 1, len(tags)) if step > 0 else range(i - 1, -1, -1)
        heads[i] = next((j + 1 for j in places if tags[j] == wanted), heads[i])
    return heads
