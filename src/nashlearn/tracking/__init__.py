"""Tracking as matching: boxes of consecutive frames, paired by features, linked into tracks.

::

    matcher = NashMatcher().fit(*track_examples(annotated, memory=5))
    tracks = follow(boxes, by_matcher(matcher), memory=5)
"""

from nashlearn.tracking.features import FEATURE_NAMES, describe, frame_pairs, overlap, pair_features
from nashlearn.tracking.tracks import (
    Moment,
    adopt_ids,
    assignments,
    by_matcher,
    by_overlap,
    follow,
    score_tracks,
    track_examples,
)

__all__ = [
    "FEATURE_NAMES",
    "Moment",
    "adopt_ids",
    "assignments",
    "by_matcher",
    "by_overlap",
    "describe",
    "follow",
    "frame_pairs",
    "overlap",
    "pair_features",
    "score_tracks",
    "track_examples",
]
