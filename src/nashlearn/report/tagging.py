"""What the report of a tagger holds: tags right and wrong, whole phrases, tagged sequences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np

from nashlearn.report.sections import Measure, confusion, likely, strings
from nashlearn.report.structured import Structured, answered
from nashlearn.report.summary import Page, PageOptions

__all__ = ["tagging_report_data"]


def tagging_report_data(
    model: Any,
    X: Sequence[Any],
    y: Sequence[Sequence[Any]],
    *,
    tokens: Sequence[Sequence[str]],
    baselines: Mapping[str, Any] | None = None,
    title: str = "Tagging report",
    **options: Unpack[PageOptions],
) -> dict[str, Any]:
    """The report of a :class:`nashlearn.NashTagger`, with tagged sequences.

    Where the tags mark phrases (B-X, I-X, O) the F1 of whole phrases is compared too.

    Parameters
    ----------
    model : fitted NashTagger
    X, y : sequences and their labels, as the model takes them
        Not those that it was trained on; no label missing. Labels that the model has not seen count as wrong, at the
        largest cost.
    tokens : sequence of sequences of str
        What is shown of each position.
    baselines : mapping of names to fitted taggers or to lists of labels, optional
    title, facts, confidence, random_state
        As in :mod:`nashlearn.report`.
    """
    from nashlearn.games.catalogue import named_costs
    from nashlearn.tagging import mark_phrases, phrases

    sizes = [len(labels) for labels in y]
    if [len(one) for one in tokens] != sizes:
        raise ValueError("tokens must hold one text for each label of y.")
    answers = answered(model, baselines, X, sizes)
    own = answers["this model"]
    truth, known = [np.asarray(labels) for labels in y], model.classes_.tolist()
    judged = Structured(Page(title, **options), model, truth, answers, "sequences")
    labels = known + sorted({label for one in truth for label in one.tolist()} - set(known))
    costs = named_costs(model.loss, len(known)) if isinstance(model.loss, str) else np.asarray(model.loss, dtype=float)
    costs = np.hstack([costs, np.full((len(known), len(labels) - len(known)), costs.max())])
    codes, given = _coded(truth, labels), _coded(own, labels)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    measures, unit = [judged.wrong("Wrong tags")], "wrong tags per token"
    if not np.array_equal(costs[:, : len(known)], 1.0 - np.eye(len(known))):
        unit = "cost per token"
        paid = judged.stacked(lambda one: (np.add.reduceat(costs[_coded(one, known), codes], starts), sizes))
        measures.insert(0, Measure("Mean cost", *paid))
    if mark_phrases(labels):
        marked = [phrases(one) for one in truth]

        def shared(answer: list[np.ndarray]) -> tuple[Any, Any]:
            pairs = [(phrases(one), there) for one, there in zip(answer, marked, strict=True)]
            return [2.0 * len(a & b) for a, b in pairs], [float(len(a) + len(b)) for a, b in pairs]

        found = judged.stacked(shared)
        measures.append(Measure("F1 of phrases", *found, lower_is_better=False, percent=True))
    sentence = np.repeat(np.arange(len(sizes)), sizes)
    texts = strings(None, labels)

    def examples(positions: np.ndarray) -> list[dict[str, Any]]:
        return [_in_context(tokens[sentence[i]], int(i - starts[sentence[i]]), int(sentence[i])) for i in positions]

    def draw(rows: np.ndarray) -> list[Any]:
        strategies = model.predict_proba([X[i] for i in rows])
        return [_tagged(i, tokens[i], truth[i], own[i], p, texts) for i, p in zip(rows, strategies, strict=True)]

    sections = [
        judged.shown("sequences", "Tagged sequences", draw),
        confusion(given, codes, texts[: len(known)], texts, costs, "tokens", examples),
    ]
    return judged.report("tagging", measures, sections, unit, float(costs.max()))


def _coded(labels: Sequence[np.ndarray], known: list[Any]) -> np.ndarray:
    position = {label: i for i, label in enumerate(known)}
    flat = [label for one in labels for label in one.tolist()]
    unknown = [label for label in flat if label not in position]
    if unknown:
        raise ValueError(f"baselines hold the label {unknown[0]!r}, which the model does not know: {known}.")
    return np.array([position[label] for label in flat], dtype=np.int64)


def _in_context(tokens: Sequence[str], i: int, sentence: int) -> dict[str, Any]:
    around = [*tokens[max(i - 3, 0) : i], f"[{tokens[i]}]", *tokens[i + 1 : i + 4]]
    return {"row": sentence, "text": " ".join(map(str, around)), "likely": []}


def _tagged(i: int, tokens: Any, truth: Any, answer: Any, p: np.ndarray, names: list[str]) -> dict[str, Any]:
    """A sequence with its tags, the model's and the likely ones at each position."""
    return {
        "name": f"sequence {i + 1}",
        "tokens": [str(token) for token in tokens],
        "truth": strings(None, truth.tolist()),
        "answer": strings(None, answer.tolist()),
        "likely": [likely(at, names) for at in p],
    }
