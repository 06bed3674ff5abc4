"""What the report of a tagger holds: tags right and wrong, whole phrases, tagged sequences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nashlearn.report.page import plain
from nashlearn.report.sections import Measure, certificate, comparison, confusion, risk, strings
from nashlearn.report.structured import answered, selection, shown, stacked, wrong_parts
from nashlearn.report.summary import summarised

__all__ = ["tagging_report_data"]


def tagging_report_data(
    model: Any,
    X: Sequence[Any],
    y: Sequence[Sequence[Any]],
    *,
    tokens: Sequence[Sequence[str]],
    baselines: Mapping[str, Any] | None = None,
    title: str = "Tagging report",
    facts: Mapping[str, Any] | None = None,
    confidence: float = 0.95,
    random_state: int = 0,
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
    sizes = [len(labels) for labels in y]
    if [len(one) for one in tokens] != sizes:
        raise ValueError("tokens must hold one text for each label of y.")
    peers = dict(baselines or {})
    answers = [answered(name, one, X, sizes) for name, one in {"model": model, **peers}.items()]
    truth = [np.asarray(labels) for labels in y]
    known = model.classes_.tolist()
    labels = known + sorted({label for one in truth for label in one.tolist()} - set(known))
    costs = _costs(model, len(labels))
    codes, given = _coded(truth, labels), _coded(answers[0], labels)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    wrong = wrong_parts(truth)

    def paid(answer: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        return np.add.reduceat(costs[_coded(answer, known), codes], starts), wrong(answer)[1]

    measures = [Measure("Wrong tags", *stacked(wrong, answers), percent=True)]
    if not np.array_equal(costs[:, : len(known)], 1.0 - np.eye(len(known))):
        measures.insert(0, Measure("Mean cost", *stacked(paid, answers)))
    if all(str(label) == "O" or str(label)[:2] in ("B-", "I-") for label in labels):
        measures.append(_whole_phrases(answers, truth))
    names = ["this model", *peers]
    sentence = np.repeat(np.arange(len(sizes)), sizes)

    def examples(positions: np.ndarray) -> list[dict[str, Any]]:
        return [_in_context(tokens[sentence[i]], int(i - starts[sentence[i]]), int(sentence[i])) for i in positions]

    texts = strings(None, labels)
    mistakes = wrong(answers[0])[0]
    unit = "wrong tags per token" if measures[0].percent else "cost per token"
    sections = [
        comparison(names, measures, "sequences", confidence, random_state),
        _tagged(model, X, tokens, truth, answers[0], selection(mistakes, random_state), mistakes, texts),
        confusion(given, codes, texts[: len(known)], texts, costs, "tokens", examples),
        certificate(model),
        risk(model, unit, None, float(costs.max())),
    ]
    return plain(summarised("tagging", title, model, facts, sections))


def _costs(model: Any, n_labels: int) -> np.ndarray:
    """The costs of a tagger, with columns of the largest one for labels that it does not know."""
    from nashlearn import games

    k = model.classes_.size
    costs = (getattr(games, model.loss)(k) if isinstance(model.loss, str) else games.cost(model.loss)).costs
    return np.hstack([costs, np.full((k, n_labels - k), costs.max())])


def _coded(labels: Sequence[np.ndarray], known: list[Any]) -> np.ndarray:
    position = {label: i for i, label in enumerate(known)}
    flat = [label for one in labels for label in one.tolist()]
    unknown = [label for label in flat if label not in position]
    if unknown:
        raise ValueError(f"baselines hold the label {unknown[0]!r}, which the model does not know: {known}.")
    return np.array([position[label] for label in flat], dtype=np.int64)


def _whole_phrases(answers: Sequence[list[np.ndarray]], truth: list[np.ndarray]) -> Measure:
    """The F1 of whole phrases."""
    from nashlearn.tagging import phrases

    marked = [phrases(labels) for labels in truth]

    def found(answer: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        pairs = [(phrases(labels), there) for labels, there in zip(answer, marked, strict=True)]
        return np.array([2.0 * len(a & b) for a, b in pairs]), np.array([float(len(a) + len(b)) for a, b in pairs])

    return Measure("F1 of phrases", *stacked(found, answers), lower_is_better=False, percent=True)


def _in_context(tokens: Sequence[str], i: int, sentence: int) -> dict[str, Any]:
    around = [*tokens[max(i - 3, 0) : i], f"[{tokens[i]}]", *tokens[i + 1 : i + 4]]
    return {"row": sentence, "text": " ".join(map(str, around)), "likely": []}


def _tagged(
    model: Any, X: Any, tokens: Any, truth: Any, answers: Any, rows: np.ndarray, mistakes: np.ndarray, names: list[str]
) -> dict[str, Any]:
    """Sequences with their tags, the model's and the likely ones at each position."""
    strategies = model.predict_proba([X[i] for i in rows])
    items = []
    for i, p in zip(rows, strategies, strict=True):
        likely = [
            [[names[j], round(float(at[j]), 3)] for j in np.argsort(-at, kind="stable")[:3] if at[j] > 5e-4] for at in p
        ]
        items.append(
            {
                "name": f"sequence {i + 1}",
                "tokens": [str(token) for token in tokens[i]],
                "truth": strings(None, truth[i].tolist()),
                "answer": strings(None, answers[i].tolist()),
                "likely": likely,
            }
        )
    return shown("sequences", "Tagged sequences", "sequences", mistakes, items)
