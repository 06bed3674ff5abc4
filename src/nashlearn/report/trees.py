"""What the report of a parser holds: heads right and wrong, by distance, and trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np

from nashlearn.report.sections import Measure, Unit, present
from nashlearn.report.structured import Structured, answered
from nashlearn.report.summary import Page, PageOptions

__all__ = ["parsing_report_data"]


def parsing_report_data(
    model: Any,
    X: Any,
    sentences: Sequence[Any],
    *,
    relations: Sequence[Sequence[str]] | None = None,
    baselines: Mapping[str, Any] | None = None,
    title: str = "Parsing report",
    **options: Unpack[PageOptions],
) -> dict[str, Any]:
    """The report of a :class:`nashlearn.NashParser`, with trees drawn.

    Beside the model stand trees that look at nothing: every word attached to the word before it, or after it.

    Parameters
    ----------
    model : fitted NashParser
    X : sentences as the model takes them
        Say ``parsing.HashedSentences(sentences)``.
    sentences : sequence of nashlearn.datasets.Sentence
        With true heads and relations. Not those that the model was trained on.
    relations : sequence of sequences of str, optional
        Predicted relations, say of a :class:`nashlearn.parsing.ArcLabeller`; then labelled attachment is shown too.
    baselines : mapping of names to fitted parsers or to lists of heads, optional
    title, facts, confidence, random_state, learning
        As in :mod:`nashlearn.report`.
    """
    truth = [sentence.heads for sentence in sentences]
    sizes = [len(heads) for heads in truth]
    given, absent = present(baselines)
    peers = {
        "previous word": [np.arange(n) for n in sizes],
        "next word": [np.append(np.arange(2, n + 1), 0) for n in sizes],
        **given,
    }
    answers = answered(model, peers, X, sizes)
    judged = Structured(Page(title, absent=absent, **options), model, truth, answers, "sentences")
    top, bottom, own = judged.top, judged.bottom, answers["this model"]
    measures = [
        judged.wrong("Wrong heads"),
        Measure("Right heads (UAS)", bottom - top, bottom, lower_is_better=False, percent=True),
        judged.faultless("Complete trees"),
    ]
    if relations is not None:
        labelled, words = np.zeros_like(top), np.zeros_like(bottom)  # baselines name no relations: 0 / 0, unknown
        words[:, 0] = bottom[:, 0]
        labelled[:, 0] = [
            np.count_nonzero((heads == sentence.heads) & (np.array(names) == np.array(sentence.deprels)))
            for heads, names, sentence in zip(own, relations, sentences, strict=True)
        ]
        measures.insert(2, Measure("Right relations too (LAS)", labelled, words, lower_is_better=False, percent=True))

    def draw(rows: np.ndarray) -> list[Any]:
        return [
            {
                "name": f"sentence {i + 1}",
                "words": sentences[i].forms,
                "tags": sentences[i].upos,
                "truth": sentences[i].heads,
                "answer": own[i],
                "relations": sentences[i].deprels,
                "given": None if relations is None else list(relations[i]),
            }
            for i in rows
        ]

    sections = [judged.shown("trees", "Trees", draw), _by_length(own, truth)]
    return judged.report(
        "parsing", measures, sections, Unit("wrong heads", percent=True, each="in the mean sentence"), judged.shares()
    )


def _by_length(answers: Sequence[np.ndarray], truth: Sequence[np.ndarray]) -> dict[str, Any]:
    """How many heads are right, by the distance of the true head."""
    apart = np.concatenate([np.where(heads == 0, 0, heads - np.arange(1, heads.size + 1)) for heads in truth])
    right = np.concatenate([a == b for a, b in zip(answers, truth, strict=True)])
    starts = {"root": 0, "1": 1, "2": 2, "3": 3, "4–6": 4, "7–10": 7, "11+": 11}
    which = np.digitize(np.abs(apart), list(starts.values())) - 1
    counts = zip(starts, np.bincount(which[right], minlength=7), np.bincount(which, minlength=7), strict=True)
    bins = [{"name": name, "right": hits, "n": n} for name, hits, n in counts if n]
    return {"type": "lengths", "title": "By distance of the head", "bins": bins}
