"""Tagging text with :class:`nashlearn.NashTagger`: features of tokens without deep learning, and the F1 of phrases.

>>> from nashlearn import tagging
>>> X = tagging.TokenFeatures(spelling=False).transform([[["The", "DT"], ["cat", "NN"]]])
>>> X[0][1][:3]
['w-2=_', 'w-1=The', 'w0=cat']
>>> tagging.phrase_f1([["B-NP", "I-NP", "O"]], [["B-NP", "O", "O"]])
0.0
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sklearn.base import BaseEstimator, TransformerMixin

__all__ = ["TokenFeatures", "mark_phrases", "phrase_f1", "phrases"]

_AROUND = (-2, -1, 0, 1, 2)


class TokenFeatures(TransformerMixin, BaseEstimator):
    """Names of what holds of each token, for sentences of tokens of columns, as the CoNLL shared tasks have them.

    The first column is the word; others are what is known of it, such as its part of speech. Words within two tokens,
    alone and beside their neighbours; the other columns also in pairs and in threes, as crfsuite's example has them.

    Parameters
    ----------
    spelling : bool, default=True
        Whether to add how a word is written: in small letters, its ends and its shape.
    """

    def __init__(self, spelling: bool = True):
        self.spelling = spelling

    def fit(self, X: Any, y: Any = None) -> TokenFeatures:
        """Nothing is learnt."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def transform(self, X: Iterable[Sequence[Sequence[str]]]) -> list[list[list[str]]]:
        """For each sentence the lists of names of its tokens."""
        return [self._sentence(sentence) for sentence in X]

    def _sentence(self, sentence: Sequence[Sequence[str]]) -> list[list[str]]:
        words, *others = zip(*sentence, strict=True)
        rows = []
        for i, word in enumerate(words):
            row = _around("w", words, i, (-1, 0))
            for j, column in enumerate(others, start=1):
                row += _around(f"{j}:", column, i, (-2, -1, 0, 1), (-2, -1, 0))
            rows.append(row + _spelt(word) if self.spelling else row)
        return rows


def _around(name: str, values: Sequence[str], i: int, pairs: Sequence[int], threes: Sequence[int] = ()) -> list[str]:
    """What stands around position ``i``: alone, in pairs and in threes that begin so far from it."""
    at = {d: values[i + d] if 0 <= i + d < len(values) else "_" for d in _AROUND}
    row = [f"{name}{d}={value}" for d, value in at.items()]
    row += [f"{name}{d},{d + 1}={at[d]}|{at[d + 1]}" for d in pairs]
    return row + [f"{name}{d}..{d + 2}={at[d]}|{at[d + 1]}|{at[d + 2]}" for d in threes]


def _spelt(word: str) -> list[str]:
    shape = "".join("X" if c.isupper() else "x" if c.islower() else "9" if c.isdigit() else c for c in word)
    short = "".join(c for i, c in enumerate(shape) if i == 0 or c != shape[i - 1])
    ends = [f"s{n}={word[-n:].lower()}" for n in (1, 2, 3, 4) if n <= len(word)]
    starts = [f"b{n}={word[:n].lower()}" for n in (1, 2, 3) if n <= len(word)]
    return [f"lower={word.lower()}", f"shape={short}", *ends, *starts]


def phrases(tags: Iterable[Any]) -> set[tuple[int, int, str]]:
    """First position, end and kind of each phrase that tags as ``B-NP``, ``I-NP`` and ``O`` mark.

    An ``I-`` that continues nothing begins a phrase, as in the evaluation of CoNLL-2000.
    """
    found, start, kind = set(), -1, ""
    for i, tag in enumerate([*map(str, tags), "O"]):
        if start >= 0 and (tag[0] != "I" or tag[2:] != kind):
            found.add((start, i, kind))
            start = -1
        if tag != "O" and start < 0:
            start, kind = i, tag[2:]
    return found


def mark_phrases(tags: Iterable[Any]) -> bool:
    """Whether all tags are of the kind that :func:`phrases` reads: ``B-X``, ``I-X`` or ``O``."""
    return all(str(tag) == "O" or str(tag).startswith(("B-", "I-")) for tag in tags)


def phrase_f1(answers: Iterable[Iterable[Any]], truth: Iterable[Iterable[Any]]) -> float:
    """Harmonic mean of precision and recall of whole phrases, between 0 and 1; 1 where neither side has any."""
    right = given = wanted = 0
    for a, b in zip(answers, truth, strict=True):
        ours, theirs = phrases(a), phrases(b)
        right, given, wanted = right + len(ours & theirs), given + len(ours), wanted + len(theirs)
    return 2.0 * right / (given + wanted) if given + wanted else 1.0
