"""What the report of a matcher of boxes holds: links right and wrong, and pairs of frames."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from nashlearn.report.page import plain
from nashlearn.report.sections import Measure, certificate, comparison, risk
from nashlearn.report.structured import selection, shown, stacked, wrong_parts
from nashlearn.report.summary import summarised

__all__ = ["tracking_report_data"]


def tracking_report_data(
    model: Any,
    boxes: Any,
    *,
    memory: int = 0,
    looks: np.ndarray | None = None,
    frame_size: Sequence[float] | None = None,
    scores: Mapping[str, Mapping[str, float]] | None = None,
    baselines: Mapping[str, Callable[[Any], np.ndarray]] | None = None,
    title: str = "Tracking report",
    facts: Mapping[str, Any] | None = None,
    confidence: float = 0.95,
    random_state: int = 0,
) -> dict[str, Any]:
    """The report of a :class:`nashlearn.NashMatcher` that links boxes into tracks, with pairs of frames drawn.

    Every step from frame to frame is judged alone, given the true tracks up to it.

    Parameters
    ----------
    model : fitted NashMatcher
        Trained on ``track_examples`` with the same ``memory`` and kind of ``looks``.
    boxes : nashlearn.datasets.Boxes
        With ids: annotated boxes, or detections that adopted their ids. Not those that the model was trained on.
    memory, looks
        As in :func:`nashlearn.tracking.follow`.
    frame_size : (width, height), optional
        In pixels; else what the boxes span.
    scores : mapping of names to measures, optional
        Of whole tracks, as ``{"this model": score_tracks(truth, tracks)}``, shown as a table.
    baselines : mapping of names to rules, optional
        A rule answers a :class:`nashlearn.tracking.Moment` with the box of each track, -1 for none.
    title, facts, confidence, random_state
        As in :mod:`nashlearn.report`.
    """
    from nashlearn.tracking import by_matcher, follow, track_examples

    _, truth = track_examples(boxes, memory=memory, looks=looks)
    moments: list[Any] = []

    def again(moment: Any) -> np.ndarray:
        moments.append(moment)
        return truth[len(moments) - 1]

    follow(boxes, again, memory=memory, looks=looks)
    kept = [i for i, partners in enumerate(truth) if partners.size]
    truth, moments = [truth[i] for i in kept], [moments[i] for i in kept]
    if not truth:
        raise ValueError("boxes must hold at least two frames with boxes.")
    rules = {"this model": by_matcher(model), **(baselines or {})}
    answers = [[np.asarray(rule(moment)) for moment in moments] for rule in rules.values()]
    wrong = wrong_parts(truth)

    def perfect(answer: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        return (wrong(answer)[0] == 0).astype(float), np.ones(len(truth))

    top, bottom = stacked(wrong, answers)
    measures = [
        Measure("Wrong links", top, bottom, percent=True),
        Measure("Steps without a mistake", *stacked(perfect, answers), lower_is_better=False, percent=True),
    ]
    rows = selection(top[:, 0], random_state)
    sections = [comparison(list(rules), measures, "steps", confidence, random_state)]
    if scores:
        columns = list(next(iter(scores.values())))
        table = [[name, *(one[column] for column in columns)] for name, one in scores.items()]
        sections.append({"type": "table", "title": "Whole tracks", "columns": ["", *columns], "rows": table})
    sections += [
        _matched(boxes, moments, truth, answers[0], rows, top[:, 0], frame_size),
        certificate(model),
        risk(model, "wrong links per box", None, 1.0),
    ]
    return plain(summarised("tracking", title, model, facts, sections))


def _matched(
    boxes: Any, moments: Any, truth: Any, answers: Any, rows: np.ndarray, mistakes: np.ndarray, frame_size: Any
) -> dict[str, Any]:
    """Pairs of frames with their boxes, true partners and the model's."""
    low = np.minimum(boxes.box[:, :2].min(axis=0), 0.0)
    size = np.asarray(frame_size) if frame_size is not None else (boxes.box[:, :2] + boxes.box[:, 2:]).max(axis=0) - low
    items = []
    for i in rows:
        moment = moments[i]
        now = int(boxes.frame[moment.boxes[0]]) if moment.boxes.size else int(boxes.frame[moment.tracks].max()) + 1
        items.append(
            {
                "name": f"into frame {now}",
                "left": np.round(boxes.box[moment.tracks], 1),
                "right": np.round(boxes.box[moment.boxes], 1),
                "left_names": [f"{boxes.id[j]}" for j in moment.tracks],
                "right_names": [f"{boxes.id[j]}" for j in moment.boxes],
                "truth": truth[i],
                "answer": answers[i],
            }
        )
    section = shown("boxes", "Matched boxes", "steps", mistakes, items)
    return {**section, "origin": [0.0, 0.0] if frame_size is not None else low, "size": size}
