"""Sequence data of the benchmarks: features of chunking, F1 of chunks, and a crfsuite to train."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nashlearn import datasets

__all__ = ["Crfsuite", "chunk_f1", "chunking", "letters"]

Tokens = list[list[str]]


def _at(values: list[str], i: int) -> str:
    return values[i] if 0 <= i < len(values) else "_"


def _features(sentence: Sequence[tuple[str, str]]) -> Tokens:
    """Words and parts of speech within two tokens, alone, in pairs and in threes, as crfsuite's example has them."""
    words, tags = [token[0] for token in sentence], [token[1] for token in sentence]
    rows = []
    for i in range(len(sentence)):
        row = [f"w{d}={_at(words, i + d)}" for d in (-2, -1, 0, 1, 2)]
        row += [f"w{d},{d + 1}={_at(words, i + d)}|{_at(words, i + d + 1)}" for d in (-1, 0)]
        row += [f"p{d}={_at(tags, i + d)}" for d in (-2, -1, 0, 1, 2)]
        row += [f"p{d},{d + 1}={_at(tags, i + d)}|{_at(tags, i + d + 1)}" for d in (-2, -1, 0, 1)]
        row += [f"p{d}..{d + 2}={'|'.join(_at(tags, i + d + e) for e in range(3))}" for d in (-2, -1, 0)]
        rows.append(row)
    return rows


def chunking(part: str) -> tuple[list[Tokens], list[list[str]]]:
    """CoNLL-2000: named features and tags."""
    data = datasets.load_chunking(part)
    return [_features(sentence) for sentence in data.data], data.target


def letters() -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray]:
    """OCR letters: pixels, letters and folds of words."""
    data = datasets.load_ocr_letters()
    return data.data, data.target, data.folds


def _chunks(tags: Sequence[str]) -> set[tuple[int, int, str]]:
    found, start, kind = set(), -1, ""
    for i, tag in enumerate([*tags, "O"]):
        if start >= 0 and (tag[0] != "I" or tag[2:] != kind):
            found.add((start, i, kind))
            start = -1
        if tag != "O" and start < 0:
            start, kind = i, tag[2:]
    return found


def chunk_f1(answers: Sequence[Sequence[str]], truth: Sequence[Sequence[str]]) -> float:
    """Harmonic mean of precision and recall of whole chunks, in percent."""
    right = given = wanted = 0
    for a, b in zip(answers, truth, strict=True):
        ours, theirs = _chunks([str(tag) for tag in a]), _chunks(b)
        right, given, wanted = right + len(ours & theirs), given + len(ours), wanted + len(theirs)
    return 200.0 * right / (given + wanted)


class Crfsuite:
    """python-crfsuite's L-BFGS, on lists of names; ``append`` is not part of training."""

    def __init__(self, X: Sequence[Any], y: Sequence[Any]):
        import pycrfsuite

        self.trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
        for x, labels in zip(X, y, strict=True):
            self.trainer.append(pycrfsuite.ItemSequence(self.named(x)), [str(label) for label in labels])
        self.path = Path(tempfile.mkdtemp()) / "model.crfsuite"

    @staticmethod
    def named(x: Any) -> Tokens:
        """A sequence as lists of names: those of the pixels that are set, for images."""
        return [[str(j) for j in np.flatnonzero(row)] for row in x] if isinstance(x, np.ndarray) else x

    def train(self, **parameters: Any) -> int:
        """Train from scratch; iterations taken."""
        self.trainer.set_params(parameters)
        self.trainer.train(str(self.path))
        return int(self.trainer.logparser.last_iteration["num"])

    def predict(self, X: Sequence[Any]) -> list[list[str]]:
        """Tags of the model trained last."""
        import pycrfsuite

        tagger = pycrfsuite.Tagger()
        tagger.open(str(self.path))
        return [tagger.tag(self.named(x)) for x in X]
