"""What the report of a tagger holds: whole phrases, tags right and wrong, tagged sequences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np

from nashlearn.certificates import Losses, price_range
from nashlearn.report.sections import Measure, Unit, confusion, likely, positions, present
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

    Where the tags mark phrases (B-X, I-X, O), it is about whole phrases first: their F1, precision and recall, and then
    tags. A phrase is right where its first and last token and its kind are.

    Parameters
    ----------
    model : fitted NashTagger
    X, y : sequences and their labels, as the model takes them
        Not those that it was trained on; no label missing. Labels that the model has not seen count as wrong, at the
        largest cost.
    tokens : sequence of sequences of str
        What is shown of each position.
    baselines : mapping of names to fitted taggers or to lists of labels, optional
        See :func:`tagging_baselines`.
    title, facts, confidence, random_state, learning
        As in :mod:`nashlearn.report`.
    """
    from nashlearn.games.catalogue import named_costs
    from nashlearn.tagging import mark_phrases

    sizes = [len(labels) for labels in y]
    if [len(one) for one in tokens] != sizes:
        raise ValueError("tokens must hold one text for each label of y.")
    peers, absent = present(baselines)
    answers = answered(model, peers, X, sizes)
    own = answers["this model"]
    truth, known = [np.asarray(labels) for labels in y], model.classes_.tolist()
    judged = Structured(Page(title, absent=absent, **options), model, truth, answers, "sequences")
    labels = known + sorted({label for one in truth for label in one.tolist()} - set(known))
    costs = named_costs(model.loss, len(known)) if isinstance(model.loss, str) else np.asarray(model.loss, dtype=float)
    costs = np.hstack([costs, np.full((len(known), len(labels) - len(known)), costs.max())])
    codes, given = _coded(truth, labels), _coded(own, labels)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    measures, unit, losses = (
        [judged.wrong("Wrong tags")],
        Unit("wrong tags", percent=True, each="in the mean sequence"),
        judged.shares(),
    )
    if not np.array_equal(costs[:, : len(known)], 1.0 - np.eye(len(known))):
        unit = Unit("cost per token", each="in the mean sequence")
        paid = judged.stacked(lambda one: (np.add.reduceat(costs[_coded(one, known), codes], starts), sizes))
        measures.insert(0, Measure("Mean cost", *paid))
        losses = Losses(paid[0][:, 0] / paid[1][:, 0], *price_range(costs))
    marked = _Phrases(truth) if mark_phrases(labels) else None
    if marked is not None:
        measures = [*marked.measures(judged), *measures]
    sentence = np.repeat(np.arange(len(sizes)), sizes)
    texts = list(map(str, labels))

    def in_context(position: int) -> dict[str, Any]:
        row = int(sentence[position])
        i, words = int(position - starts[row]), tokens[row]
        around = [*words[max(i - 3, 0) : i], f"[{words[i]}]", *words[i + 1 : i + 4]]
        return {"row": row, "text": " ".join(map(str, around)), "likely": []}

    def draw(rows: np.ndarray) -> list[Any]:
        return [
            {
                "name": f"sequence {i + 1}",
                "tokens": [str(token) for token in tokens[i]],
                "truth": list(map(str, truth[i].tolist())),
                "answer": list(map(str, own[i].tolist())),
                "likely": [likely(at, texts) for at in p],
            }
            for i, p in zip(rows, model.strategy([X[i] for i in rows]), strict=True)
        ]

    sections = [
        None if marked is None else marked.by_kind(own),
        judged.shown("sequences", "Tagged sequences", draw),
        confusion(given, codes, texts[: len(known)], texts, costs, "tokens", lambda cell: list(map(in_context, cell))),
    ]
    return judged.report("tagging", measures, sections, unit, losses)


class _Phrases:
    """True phrases, and how many of them answers have."""

    def __init__(self, truth: Sequence[np.ndarray]):
        from nashlearn.tagging import phrases

        self._read = phrases
        self.truth = [phrases(one) for one in truth]

    def measures(self, judged: Structured) -> list[Measure]:
        """F1, precision and recall of each model."""

        def counted(answer: Sequence[np.ndarray]) -> np.ndarray:
            pairs = [(self._read(one), there) for one, there in zip(answer, self.truth, strict=True)]
            return np.array([[len(a & b), len(a), len(b)] for a, b in pairs], dtype=float)

        counts = np.array([counted(one) for one in judged.answers.values()])  # (models, examples, 3)
        right, given, wanted = counts.transpose(2, 1, 0)
        ratios = {
            "F1 of phrases": (2.0 * right, given + wanted),
            "Precision": (right, given),
            "Recall": (right, wanted),
        }
        return [Measure(name, *pair, lower_is_better=False, percent=True) for name, pair in ratios.items()]

    def by_kind(self, answer: Sequence[np.ndarray]) -> dict[str, Any]:
        """Phrases of each kind: in the data, given, and right."""
        there, given, right = Counter[str](), Counter[str](), Counter[str]()
        for one, true in zip(answer, self.truth, strict=True):
            own = self._read(one)
            for count, some in ((there, true), (given, own), (right, own & true)):
                count.update(kind for _, _, kind in some)
        kinds = sorted(there | given, key=lambda kind: (-there[kind], kind))
        rows = [[kind or "(no name)", there[kind], given[kind], right[kind]] for kind in kinds]
        return {"type": "phrases", "title": "Phrases by kind", "rows": rows}


def _coded(labels: Sequence[np.ndarray], known: list[Any]) -> np.ndarray:
    flat = [label for one in labels for label in one.tolist()]
    return positions(flat, known, "baselines hold the label", "the model does not know")
