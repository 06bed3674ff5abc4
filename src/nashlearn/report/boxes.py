"""What the report of a matcher of boxes holds: links right and wrong, and pairs of frames."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack

import numpy as np

from nashlearn.report.sections import Unit
from nashlearn.report.structured import Structured
from nashlearn.report.summary import Page, PageOptions

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
    **options: Unpack[PageOptions],
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
    title, facts, confidence, random_state, learning
        As in :mod:`nashlearn.report`.
    """
    from nashlearn.tracking import by_matcher
    from nashlearn.tracking.tracks import true_moments

    known = [pair for pair in true_moments(boxes, memory=memory, looks=looks) if pair[1].size]
    if not known:
        raise ValueError("boxes must hold at least two frames with boxes.")
    moments, truth = zip(*known, strict=True)
    rules = {"this model": by_matcher(model), **(baselines or {})}
    answers = {name: [np.asarray(rule(moment)) for moment in moments] for name, rule in rules.items()}
    judged = Structured(Page(title, **options), model, truth, answers, "steps")
    measures = [judged.wrong("Wrong links"), judged.faultless("Steps without a mistake")]
    sections: list[dict[str, Any]] = []
    if scores:
        columns = list(next(iter(scores.values())))
        table = [[name, *(one[column] for column in columns)] for name, one in scores.items()]
        sections.append({"type": "table", "title": "Whole tracks", "columns": ["", *columns], "rows": table})
    low = np.minimum(boxes.box[:, :2].min(axis=0), 0.0)
    size = np.asarray(frame_size) if frame_size is not None else (boxes.box[:, :2] + boxes.box[:, 2:]).max(axis=0) - low

    def draw(rows: np.ndarray) -> list[Any]:
        return [_step(boxes, moments[i], truth[i], answers["this model"][i]) for i in rows]

    drawn = judged.shown("boxes", "Matched boxes", draw)
    sections.append({**drawn, "origin": [0.0, 0.0] if frame_size is not None else low, "size": size})
    # Frames that follow each other are no independent draws.
    return judged.report("tracking", measures, sections, Unit("wrong links", percent=True), None)


def _step(boxes: Any, moment: Any, truth: np.ndarray, answer: np.ndarray) -> dict[str, Any]:
    """Two frames with their boxes, true partners and the model's."""
    now = int(boxes.frame[moment.boxes[0]]) if moment.boxes.size else int(boxes.frame[moment.tracks].max()) + 1
    return {
        "name": f"into frame {now}",
        "left": np.round(boxes.box[moment.tracks], 1),
        "right": np.round(boxes.box[moment.boxes], 1),
        "left_names": [f"{boxes.id[j]}" for j in moment.tracks],
        "right_names": [f"{boxes.id[j]}" for j in moment.boxes],
        "truth": truth,
        "answer": answer,
    }
