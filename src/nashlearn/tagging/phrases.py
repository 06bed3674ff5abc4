"""Phrases that tags mark, and how many of them are right."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

__all__ = ["PhraseScores", "mark_phrases", "phrase_f1", "phrase_scores", "phrases"]


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


class PhraseScores(NamedTuple):
    """Shares of whole phrases: harmonic mean of the others, right ones of those given, and of those wanted."""

    f1: float
    precision: float
    recall: float


def phrase_scores(answers: Iterable[Iterable[Any]], truth: Iterable[Iterable[Any]]) -> PhraseScores:
    """How many whole phrases are right, between 0 and 1; 1 where there are none to be right."""
    right = given = wanted = 0
    for a, b in zip(answers, truth, strict=True):
        ours, theirs = phrases(a), phrases(b)
        right, given, wanted = right + len(ours & theirs), given + len(ours), wanted + len(theirs)
    shares = [(2 * right, given + wanted), (right, given), (right, wanted)]
    return PhraseScores(*(part / whole if whole else 1.0 for part, whole in shares))


def phrase_f1(answers: Iterable[Iterable[Any]], truth: Iterable[Iterable[Any]]) -> float:
    """Harmonic mean of precision and recall of whole phrases, between 0 and 1; 1 where neither side has any."""
    return phrase_scores(answers, truth).f1
