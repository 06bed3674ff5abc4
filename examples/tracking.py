"""Learn to link the boxes of one video into tracks, and link those of another.

    python examples/tracking.py [TRAINING VIDEO] [TEST VIDEO]

Twice: annotated boxes with all features, appearance included, from frame to frame; and a detector's boxes with geometry
and motion alone, where a track may go unseen for five frames. Beside it the usual baseline: the Hungarian method on
overlaps, whose least overlap is chosen on the training video. Needs the data (NASHLEARN_DATA) and the extra
``tracking``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

from nashlearn import NashMatcher
from nashlearn.datasets import Boxes, load_tracking
from nashlearn.tracking import (
    FEATURE_NAMES,
    adopt_ids,
    by_matcher,
    by_overlap,
    describe,
    follow,
    score_tracks,
    track_examples,
)

LEAST = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
UNSEEN = 5


def report(name: str, truth: Boxes, tracks: Boxes) -> None:
    """One line: how good the tracks are."""
    scores = score_tracks(truth, tracks)
    count = np.unique(tracks.id).size
    print(f"  {name:<28} {scores['mota']:7.4f} {scores['idf1']:7.4f} {scores['switches']:9.0f} {count:7d}")


def overlap_rule(boxes: Boxes, least: float) -> Callable:
    """The Hungarian method on overlaps above ``least``."""
    return lambda moment: by_overlap(boxes.box[moment.tracks], boxes.box[moment.boxes], least)


def best_overlap(boxes: Boxes, truth: Boxes) -> float:
    """The least overlap with the largest MOTA + IDF1."""

    def worth(least: float) -> float:
        scores = score_tracks(truth, follow(boxes, overlap_rule(boxes, least)))
        return scores["mota"] + scores["idf1"]

    return max(LEAST, key=worth)


def main(train: str = "TUD-Campus", test: str = "TUD-Stadtmitte") -> None:
    """Train on one video, link another."""
    known, new = load_tracking(train), load_tracking(test)
    print(f"Trained on {train}, tested on {test}\n")
    heads = f"  {'':<28} {'MOTA':>7} {'IDF1':>7} {'switches':>9} {'tracks':>7}"

    looks, new_looks = (describe(video.thumbs, video.hist) for video in (known, new))
    matcher = NashMatcher().fit(*track_examples(known.truth, looks=looks))
    print(f"Annotated boxes: {len(new.truth)} of {np.unique(new.truth.id).size} people\n{heads}")
    report("NashMatcher, all features", new.truth, follow(new.truth, by_matcher(matcher), looks=new_looks))
    least = best_overlap(known.truth, known.truth)
    report(f"overlap above {least}", new.truth, follow(new.truth, overlap_rule(new.truth, least)))
    order = np.argsort(-np.abs(matcher.coef_))[:4]
    weights = ", ".join(f"{FEATURE_NAMES[i]} {matcher.coef_[i]:+.2f}" for i in order)
    print(f"  certified gap {matcher.dual_gap_:.0e}, worst case {matcher.worst_case_risk():.3f}; largest: {weights}\n")

    labelled = adopt_ids(known.detections, known.truth)
    matcher = NashMatcher().fit(*track_examples(labelled[labelled.id >= 0], memory=UNSEEN))
    counted, known_counted = (video.truth[video.truth.confidence > 0] for video in (new, known))
    print(f"Detections: {len(new.detections)}, for {len(counted)} annotated boxes\n{heads}")
    tracks = follow(new.detections, by_matcher(matcher), memory=UNSEEN)
    report(f"NashMatcher, {UNSEEN} frames unseen", counted, tracks)
    least = best_overlap(known.detections, known_counted)
    report(f"overlap above {least}", counted, follow(new.detections, overlap_rule(new.detections, least)))


if __name__ == "__main__":
    main(*sys.argv[1:])
