"""Tracks of boxes: followed from frame to frame by any rule of assignment, learnt from annotated ones, and scored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from nashlearn.datasets.mot import Boxes
from nashlearn.tracking.features import centres, check_looks, consecutive, overlap, pair_features

__all__ = ["Moment", "adopt_ids", "assignments", "by_matcher", "by_overlap", "follow", "score_tracks", "track_examples"]

_SAME = 0.5  # overlap from which on two boxes may show the same object, in the scores of the MOT challenge
_INERTIA = 0.5  # share of the old velocity in the new


class Moment(NamedTuple):
    """Tracks that may go on and the boxes of the next frame: positions in the list of boxes, and the example.

    ``example`` has the features of :func:`pair_features`, (1, frames since the track was last seen) for a track that is
    not seen now, and (1,) for a box that begins a track.
    """

    tracks: np.ndarray
    boxes: np.ndarray
    example: tuple[np.ndarray, np.ndarray, np.ndarray]


Rule = Callable[[Moment], np.ndarray]


def assignments(boxes: Boxes, step: int = 1) -> list[np.ndarray]:
    """For each pair of frames ``step`` apart: where each box of the first goes by its id, -1 where it leaves."""
    return [_by_id(boxes.id[a], boxes.id[b]) for a, b in consecutive(boxes, step)]


def _by_id(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    same = (a[:, None] == b[None]) & (a >= 0)[:, None]
    return np.where(same.any(axis=1), same.argmax(axis=1) if b.size else -1, -1)


def by_overlap(a: np.ndarray, b: np.ndarray, threshold: float) -> np.ndarray:
    """Partners of the boxes ``a`` in the assignment of largest total overlap above ``threshold``; -1 for none."""
    shared = overlap(a, b)
    gain = np.where(shared > threshold, shared, 0.0)
    rows, columns = linear_sum_assignment(-gain)
    kept = gain[rows, columns] > 0.0
    partners = np.full(len(a), -1)
    partners[rows[kept]] = columns[kept]
    return partners


def by_matcher(matcher: Any) -> Rule:
    """The rule that continues tracks by a :class:`nashlearn.NashMatcher`, trained on :func:`track_examples`."""
    return lambda moment: matcher.predict([moment.example])[0]


def adopt_ids(boxes: Boxes, truth: Boxes) -> Boxes:
    """The boxes with the ids of annotated ones that they overlap by more than half, one to one; -1 for the others."""
    ids = np.full(len(boxes), -1, dtype=np.int64)
    frames = range(1, int(boxes.frame.max(initial=0)) + 1)
    for here, there in zip(boxes.rows_by_frame(), truth.rows_by_frame(frames), strict=True):
        partners = by_overlap(boxes.box[here], truth.box[there], _SAME)
        ids[here[partners >= 0]] = truth.id[there[partners[partners >= 0]]]
    return boxes.with_ids(ids)


def follow(boxes: Boxes, rule: Rule, *, memory: int = 0, looks: np.ndarray | None = None) -> Boxes:
    """The boxes with the ids, from 1 on, of tracks that ``rule`` continues from frame to frame.

    Parameters
    ----------
    boxes : Boxes
    rule : callable
        Answers a :class:`Moment` with the box of each track, -1 for those that are not seen.
    memory : int
        For how many frames a track may go unseen and still be continued.
    looks : ndarray, optional
        From :func:`describe`, one for each box.
    """
    check_looks(looks, boxes)
    if not (isinstance(memory, int | np.integer) and memory >= 0):
        raise ValueError(f"memory must be an integer, not negative; got {memory!r}.")
    ids = np.full(len(boxes), -1, dtype=np.int64)
    velocity = np.zeros((len(boxes), 2))
    at = centres(boxes.box)
    alive = np.empty(0, dtype=np.int64)  # the last box of each track
    known = 0
    for number, here in enumerate(boxes.rows_by_frame(), start=1):
        gaps = number - boxes.frame[alive]
        alive, gaps = alive[gaps <= memory + 1], gaps[gaps <= memory + 1]
        pairs = pair_features(
            boxes.box[alive],
            boxes.box[here],
            velocity[alive] * gaps[:, None],
            None if looks is None else (looks[alive], looks[here]),
        )
        unseen = np.column_stack([np.ones(alive.size), gaps - 1.0])
        partners = _checked(rule(Moment(alive, here, (pairs, unseen, np.ones((here.size, 1))))), alive.size, here.size)
        seen = partners >= 0
        last, now = alive[seen], here[partners[seen]]
        ids[now] = ids[last]
        steps = (at[now] - at[last]) / gaps[seen][:, None]
        fresh = ~velocity[last].any(axis=1, keepdims=True)
        velocity[now] = np.where(fresh, steps, _INERTIA * velocity[last] + (1.0 - _INERTIA) * steps)
        new = here[ids[here] < 0]
        ids[new] = known + 1 + np.arange(new.size)
        known += new.size
        alive = np.concatenate([alive[~seen], here])
    return boxes.with_ids(ids)


def _checked(answer: Any, n1: int, n2: int) -> np.ndarray:
    """What a rule answered, or an error where two tracks would share a box."""
    partners = np.asarray(answer)
    if partners.shape != (n1,) or (n1 and partners.dtype.kind not in "iu"):
        raise ValueError(
            f"rule must answer with {n1} integers, one for each track; got {partners.dtype}{partners.shape}."
        )
    taken = partners[partners >= 0]
    if (taken >= n2).any() or np.unique(taken).size != taken.size:
        raise ValueError(f"rule must answer with distinct boxes 0..{n2 - 1}, or -1; got {partners.tolist()}.")
    return partners


def track_examples(boxes: Boxes, *, memory: int = 0, looks: np.ndarray | None = None) -> tuple[list[Any], list[Any]]:
    """Examples and answers for :class:`nashlearn.NashMatcher` from boxes that know their ids, followed by those."""
    found = true_moments(boxes, memory=memory, looks=looks)
    return [moment.example for moment, _ in found], [partners for _, partners in found]


def true_moments(boxes: Boxes, *, memory: int = 0, looks: Any = None) -> list[tuple[Moment, np.ndarray]]:
    """Every moment of tracks that are followed by their ids, with the box of each track."""
    found: list[tuple[Moment, np.ndarray]] = []

    def by_truth(moment: Moment) -> np.ndarray:
        found.append((moment, _by_id(boxes.id[moment.tracks], boxes.id[moment.boxes])))
        return found[-1][1]

    follow(boxes, by_truth, memory=memory, looks=looks)
    return found


def score_tracks(truth: Boxes, tracks: Boxes) -> dict[str, float]:
    """MOTA and IDF1 [bernardin2008]_ [ristani2016]_ of tracks, and the number of switches of ids, by ``motmetrics``.

    A box may show an object that it overlaps by half or more. Needs the extra ``tracking``.
    """
    import motmetrics

    seen = motmetrics.MOTAccumulator()
    frames = range(1, int(max(truth.frame.max(initial=0), tracks.frame.max(initial=0))) + 1)
    rows = zip(frames, truth.rows_by_frame(frames), tracks.rows_by_frame(frames), strict=True)
    for frame, there, here in rows:
        shared = overlap(truth.box[there], tracks.box[here])
        distance = np.where(shared >= _SAME, 1.0 - shared, np.nan)
        seen.update(truth.id[there], tracks.id[here], distance, frameid=frame)
    names = {"mota": "mota", "idf1": "idf1", "num_switches": "switches"}
    found: Any = motmetrics.metrics.create().compute(seen, metrics=list(names), name="video")
    return {ours: float(found.loc["video", theirs]) for theirs, ours in names.items()}
