"""Features and regularisation of a parser, by a quick validation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nashlearn import parsing
from nashlearn.cli.task import Examples, taken
from nashlearn.cli.tune import Fold, Trial

__all__ = ["quick_fold", "trials"]

_WORDS = 15_000  # to train on,
_JUDGED = 25_000  # and to judge by
_FEW = 20  # sentences that are too few to choose by
_QUICK = {"tol": 0.2, "max_iter": 10}  # candidates are told apart before they have settled


def quick_fold(sizes: Sequence[int], seed: int) -> Fold | None:
    """Sentences to train candidates on and others to judge them by, the first of a random order.

    Some number of words each; of small treebanks a third is judged by. None where sentences are too few.
    """
    if len(sizes) < _FEW:
        return None
    order = np.random.default_rng(seed).permutation(len(sizes))
    before = np.cumsum(np.array(sizes)[order])
    train = int(np.searchsorted(before, min(_WORDS, before[-1] * 2 // 3))) + 1
    last = int(np.searchsorted(before, before[train - 1] + _JUDGED)) + 1
    return np.sort(order[:train]), np.sort(order[train:last])


def trials(
    model: Any, examples: Examples, fold: Fold, bits: int, groups: Any = None
) -> Callable[[dict[str, Any]], Trial]:
    """The trial of a choice of ``features`` and ``alpha``: the share of wrong heads in what is held out.

    ``alpha`` weighs against a mean over words: as a trial has fewer than the treebank, its alpha is the larger by as
    much. Its sum over the words decides how far weights fit single sentences, and how many passes training takes.
    """
    from sklearn.base import clone

    (X, y), (X_held, y_held) = (taken(examples, rows) for rows in fold)
    words = sum(map(len, X))
    scale, bits = sum(map(len, examples[0])) / words, min(bits, parsing.enough_bits(words))
    limits = {"tol": max(model.tol, _QUICK["tol"]), "max_iter": min(model.max_iter, _QUICK["max_iter"])}
    made: dict[str, Any] = {}

    def attempt(choice: dict[str, Any]) -> Trial:
        features = str(choice["features"])
        if features not in made:
            made.clear()
            made[features] = [parsing.HashedSentences(part, bits, features, groups) for part in (X, X_held)]
        parser = clone(model).set_params(max_time=None, checkpoint=None, alpha=choice["alpha"] * scale, **limits)
        parser.fit(made[features][0], y)
        return Trial(choice, float(parser.task_loss(made[features][1], y_held)))

    return attempt
