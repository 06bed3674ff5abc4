"""Sequence data of the benchmarks: features of chunking, F1 of chunks, and a crfsuite to train."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nashlearn import datasets
from nashlearn.tagging import TokenFeatures, phrase_f1

__all__ = ["Crfsuite", "chunk_f1", "chunking", "letters"]

Tokens = list[list[str]]


def chunking(part: str) -> tuple[list[Tokens], list[list[str]]]:
    """CoNLL-2000: words and parts of speech as crfsuite's example names them, and tags."""
    data = datasets.load_chunking(part)
    return TokenFeatures(spelling=False).transform(data.data), data.target


def letters() -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray]:
    """OCR letters: pixels, letters and folds of words."""
    data = datasets.load_ocr_letters()
    return data.data, data.target, data.folds


def chunk_f1(answers: Sequence[Sequence[str]], truth: Sequence[Sequence[str]]) -> float:
    """Harmonic mean of precision and recall of whole chunks, in percent."""
    return 100.0 * phrase_f1(answers, truth)


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
