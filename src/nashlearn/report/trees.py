"""What the report of a parser holds: heads right and wrong, by distance, and trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nashlearn.report.page import plain
from nashlearn.report.sections import Measure, certificate, comparison, risk
from nashlearn.report.structured import answered, selection, shown, stacked, wrong_parts
from nashlearn.report.summary import summarised

__all__ = ["parsing_report_data"]


def parsing_report_data(
    model: Any,
    X: Any,
    sentences: Sequence[Any],
    *,
    relations: Sequence[Sequence[str]] | None = None,
    baselines: Mapping[str, Any] | None = None,
    title: str = "Parsing report",
    facts: Mapping[str, Any] | None = None,
    confidence: float = 0.95,
    random_state: int = 0,
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
    title, facts, confidence, random_state
        As in :mod:`nashlearn.report`.
    """
    truth = [sentence.heads for sentence in sentences]
    sizes = [len(heads) for heads in truth]
    peers = {
        "previous word": [np.arange(n) for n in sizes],
        "next word": [np.append(np.arange(2, n + 1), 0) for n in sizes],
        **(baselines or {}),
    }
    answers = [answered(name, one, X, sizes) for name, one in {"model": model, **peers}.items()]
    wrong = wrong_parts(truth)

    def complete(answer: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        return (wrong(answer)[0] == 0).astype(float), np.ones(len(sizes))

    top, bottom = stacked(wrong, answers)
    measures = [
        Measure("Wrong heads", top, bottom, percent=True),
        Measure("Right heads (UAS)", bottom - top, bottom, lower_is_better=False, percent=True),
        Measure("Complete trees", *stacked(complete, answers), lower_is_better=False, percent=True),
    ]
    if relations is not None:
        right = [
            float(np.count_nonzero((heads == sentence.heads) & (np.array(names) == np.array(sentence.deprels))))
            for heads, names, sentence in zip(answers[0], relations, sentences, strict=True)
        ]
        labelled = np.zeros_like(top)  # baselines name no relations: theirs is 0 / 0, unknown
        labelled[:, 0] = right
        words = np.where(np.arange(top.shape[1]) == 0, bottom, 0.0)
        measures.insert(2, Measure("Right relations too (LAS)", labelled, words, lower_is_better=False, percent=True))
    rows = selection(top[:, 0], random_state)
    sections = [
        comparison(["this model", *peers], measures, "sentences", confidence, random_state),
        _trees(sentences, answers[0], relations, rows, top[:, 0]),
        _by_length(answers[0], truth),
        certificate(model),
        risk(model, "wrong heads per word", None, 1.0),
    ]
    return plain(summarised("parsing", title, model, facts, sections))


def _trees(sentences: Any, answers: Any, relations: Any, rows: np.ndarray, mistakes: np.ndarray) -> dict[str, Any]:
    """Sentences with both trees."""
    items = [
        {
            "name": f"sentence {i + 1}",
            "words": sentences[i].forms,
            "tags": sentences[i].upos,
            "truth": sentences[i].heads,
            "answer": answers[i],
            "relations": sentences[i].deprels,
            "given": None if relations is None else list(relations[i]),
        }
        for i in rows
    ]
    return shown("trees", "Trees", "sentences", mistakes, items)


def _by_length(answers: Sequence[np.ndarray], truth: Sequence[np.ndarray]) -> dict[str, Any]:
    """How many heads are right, by the distance of the true head."""
    apart = np.concatenate([np.where(heads == 0, 0, heads - np.arange(1, heads.size + 1)) for heads in truth])
    right = np.concatenate([a == b for a, b in zip(answers, truth, strict=True)])
    bounds = [(0, 0, "root"), (1, 1, "1"), (2, 2, "2"), (3, 3, "3"), (4, 6, "4–6"), (7, 10, "7–10"), (11, 10**9, "11+")]
    bins = []
    for low, high, name in bounds:
        here = (np.abs(apart) >= low) & (np.abs(apart) <= high)
        if here.any():
            bins.append({"name": name, "right": int(right[here].sum()), "n": int(here.sum())})
    return {"type": "lengths", "title": "By distance of the head", "bins": bins}
