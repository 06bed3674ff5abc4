"""Features of pairs of boxes, tracks that follow them, and their scores."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nashlearn import NashMatcher
from nashlearn.datasets import Boxes, load_tracking
from nashlearn.tracking import (
    FEATURE_NAMES,
    adopt_ids,
    assignments,
    by_matcher,
    by_overlap,
    describe,
    follow,
    frame_pairs,
    overlap,
    score_tracks,
    track_examples,
)


def walk(rng, people=4, frames=12, gone=0.0) -> Boxes:
    """People who walk steadily, each seen in a frame with probability 1 - gone."""
    start, velocity = rng.uniform(0, 600, size=(people, 2)), rng.uniform(-4, 4, size=(people, 2))
    rows = [
        (t + 1, k, *(start[k] + t * velocity[k]), 30.0, 80.0, 1.0)
        for t in range(frames)
        for k in rng.permutation(people)
        if rng.random() >= gone
    ]
    table = np.array(rows)
    return Boxes(table[:, 0].astype(int), table[:, 1].astype(int), table[:, 2:6], table[:, 6])


def test_overlap_by_hand():
    a = np.array([[0.0, 0.0, 4.0, 2.0], [10.0, 10.0, 1.0, 1.0]])
    b = np.array([[2.0, 0.0, 4.0, 2.0], [0.0, 0.0, 4.0, 2.0], [4.0, 0.0, 1.0, 1.0]])
    assert np.allclose(overlap(a, b), [[1 / 3, 1.0, 0.0], [0.0, 0.0, 0.0]])
    assert overlap(a[:0], b).shape == (0, 3)


@given(seed=st.integers(0, 10**6))
def test_descriptions_are_square_roots_of_histograms(seed):
    rng = np.random.default_rng(seed)
    thumbs = rng.integers(0, 256, size=(3, 16, 8, 3), dtype=np.uint8)
    hist = rng.integers(1, 90, size=(3, 3, 3, 8), dtype=np.uint8)
    looks = describe(thumbs, hist)
    assert looks.shape == (3, len(FEATURE_NAMES) - 5, 10)
    assert np.allclose((looks**2).sum(axis=2), 1.0)
    third = FEATURE_NAMES.index("colour middle blue") - 5
    assert np.allclose(looks[1, third, :8] ** 2, hist[1, 1, 2] / hist[1, 1, 2].sum())
    left = FEATURE_NAMES.index("colour left green") - 5
    expected = np.bincount(thumbs[2, :, :4, 1].ravel() // 32, minlength=8) / 64
    assert np.allclose(looks[2, left, :8] ** 2, expected)


def test_texture_counts_bright_neighbours():
    picture = np.zeros((1, 5, 5, 3), dtype=np.uint8)
    picture[0, 2, 2] = 9  # one bright pixel: none of its neighbours is as bright, and its neighbours see flat or a peak
    looks = describe(np.repeat(picture, 2, axis=0))
    whole = looks[0, FEATURE_NAMES.index("texture whole red") - 5] ** 2
    assert whole[0] == pytest.approx(1 / 9)  # the pixel itself
    assert whole[8] == pytest.approx(8 / 9)  # the others: all neighbours at least as bright


def test_features_by_hand():
    boxes = Boxes(
        np.array([1, 2, 3, 3]),
        np.array([0, 0, 0, 1]),
        np.array([[0.0, 0, 10, 20], [4.0, 0, 10, 20], [8.0, 0, 10, 20], [100.0, 0, 10, 40]]),
        np.ones(4),
    )
    (first, leave, enter), (second, _, _) = frame_pairs(boxes)
    assert (first.shape, leave.shape, enter.shape) == ((1, 1, 5), (1, 1), (1, 1))
    named = dict(zip(FEATURE_NAMES, second[0, 0], strict=False))
    assert named["overlap"] == pytest.approx(6 / 14) and named["distance"] == pytest.approx(4 / 20)
    assert named["moved overlap"] == pytest.approx(1.0) and named["moved distance"] == pytest.approx(0.0)
    assert second[0, 1, 2] == pytest.approx(np.log(2))
    assert [y.tolist() for y in assignments(boxes)] == [[0], [0]]
    apart = frame_pairs(boxes, step=2)
    assert len(apart) == 1 and apart[0][0].shape == (1, 2, 5)


@given(seed=st.integers(0, 10**6), memory=st.integers(0, 3))
def test_true_answers_give_true_tracks(seed, memory):
    boxes = walk(np.random.default_rng(seed), gone=0.2)
    X, y = track_examples(boxes, memory=memory)
    assert len(X) == len(y) == boxes.frame.max()
    answers = iter(y)
    tracks = follow(boxes, lambda moment: next(answers), memory=memory)
    for k in np.unique(tracks.id):
        rows = np.flatnonzero(tracks.id == k)
        assert np.unique(boxes.id[rows]).size == 1
        assert (np.diff(np.sort(boxes.frame[rows])) <= memory + 1).all()
    for k in np.unique(boxes.id):  # as few tracks as the gaps demand
        frames = np.sort(boxes.frame[boxes.id == k])
        assert np.unique(tracks.id[boxes.id == k]).size == 1 + (np.diff(frames) > memory + 1).sum()


def test_a_matcher_learns_to_follow():
    rng = np.random.default_rng(0)
    matcher = NashMatcher(alpha=1e-2).fit(*track_examples(walk(rng, frames=40, gone=0.1), memory=2))
    new = walk(rng, frames=40, gone=0.1)
    scores = score_tracks(new, follow(new, by_matcher(matcher), memory=2))
    assert scores["mota"] > 0.95 and scores["idf1"] > 0.9
    assert score_tracks(new, new) == {"mota": 1.0, "idf1": 1.0, "switches": 0.0}
    swapped = new.with_ids(np.where(new.frame > 20, 3 - new.id, new.id))
    assert score_tracks(new, swapped)["switches"] == 4.0
    assert score_tracks(new, swapped)["idf1"] < 0.7


def test_ids_are_adopted_by_overlap():
    truth = walk(np.random.default_rng(1))
    shifted = Boxes(truth.frame, np.full(len(truth), -1), truth.box + np.array([1.0, 1.0, 0.0, 0.0]), truth.confidence)
    assert np.array_equal(adopt_ids(shifted, truth).id, truth.id)
    far = Boxes(truth.frame, shifted.id, truth.box + np.array([5000.0, 0.0, 0.0, 0.0]), truth.confidence)
    assert (adopt_ids(far, truth).id == -1).all()


def test_overlaps_are_matched_above_a_threshold():
    a = np.array([[0.0, 0.0, 10.0, 10.0], [5.0, 0.0, 10.0, 10.0]])
    assert by_overlap(a, a[::-1], 0.1).tolist() == [1, 0]
    assert by_overlap(a, a[1:], 0.5).tolist() == [-1, 0]
    assert by_overlap(a, a[:0], 0.0).tolist() == [-1, -1]


def test_bad_input():
    boxes = walk(np.random.default_rng(2))
    with pytest.raises(ValueError, match="step must be a positive integer; got 0"):
        frame_pairs(boxes, step=0)
    with pytest.raises(ValueError, match=f"one entry for each of the {len(boxes)} boxes; got 2"):
        frame_pairs(boxes, np.zeros((2, 42, 10)))
    with pytest.raises(ValueError, match="one entry for each"):
        follow(boxes, lambda moment: None, looks=np.zeros((2, 42, 10)))
    with pytest.raises(ValueError, match="memory must be an integer, not negative; got -1"):
        follow(boxes, lambda moment: None, memory=-1)
    with pytest.raises(ValueError, match="rule must answer with 0 integers, one for each track"):
        follow(boxes, lambda moment: [0])
    with pytest.raises(ValueError, match="rule must answer with distinct boxes"):
        follow(boxes, lambda moment: np.full(moment.tracks.size, 0))
    with pytest.raises(ValueError, match="thumbs must have shape"):
        describe(np.zeros((2, 16, 8)))
    with pytest.raises(ValueError, match="hist must have shape"):
        describe(np.zeros((2, 16, 8, 3), dtype=np.uint8), np.zeros((1, 3, 3, 8)))


@pytest.mark.data
def test_a_video_links_another():
    known, new = load_tracking("TUD-Campus"), load_tracking("TUD-Stadtmitte")
    looks, new_looks = (describe(video.thumbs, video.hist) for video in (known, new))
    matcher = NashMatcher(alpha=0.1, tol=1e-2).fit(*track_examples(known.truth, looks=looks))
    tracks = follow(new.truth, by_matcher(matcher), looks=new_looks)
    assert score_tracks(new.truth, tracks) == {"mota": 1.0, "idf1": 1.0, "switches": 0.0}
    answers = matcher.fit(frame_pairs(known.truth, looks), assignments(known.truth)).predict(
        frame_pairs(new.truth, new_looks)
    )
    assert all(np.array_equal(a, b) for a, b in zip(answers, assignments(new.truth), strict=True))
