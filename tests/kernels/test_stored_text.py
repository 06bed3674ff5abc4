"""Hashed arcs, steps of blocks and features of nodes give the numbers that 0.1 gave, whose kernels Numba compiled.

``tests/stored/text-0.1.npz`` holds what 0.1 was asked and what it answered: among the weights and replies are NaN,
infinity, ties and 1e8 in common.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from nashlearn.kernels.block_replies import visit, without_faint
from nashlearn.kernels.hashed_arcs import ROOM
from nashlearn.kernels.reply_drafts import Drafts
from nashlearn.solvers.threads import threads
from nashlearn.training.designs.hashed_arcs import Attributes, HashedArcs
from nashlearn.training.designs.nodes import SparseFeatures
from nashlearn.training.methods import block_replies
from nashlearn.training.methods.block_replies import Replies, Visits

STORED = np.load(Path(__file__).parents[1] / "stored" / "text-0.1.npz")
PART = np.array([3, 0, 2])


def design(name: str) -> HashedArcs:
    return HashedArcs(Attributes(*(STORED[f"{name}|{field}"] for field in ("code", "tag", "first", "size")), bits=10))


def assert_same(found, key: str) -> None:
    """Within 1e-13 of the largest entry; NaN and infinity where they were."""
    stored = STORED[key]
    assert found.shape == stored.shape and found.dtype == stored.dtype
    sure = np.isfinite(stored)
    assert np.array_equal(found[~sure], stored[~sure], equal_nan=True)
    assert (np.abs(found[sure] - stored[sure]) <= 1e-13 * np.abs(stored[sure]).max(initial=0.0)).all()


def test_arcs():
    own, heads = design("long"), STORED["arcs|heads"]
    indices, bounds = np.empty(heads.size * ROOM, np.int32), np.empty(heads.size + 1, np.intp)
    filled = own.sentences.arcs(np.arange(3), heads, 17, indices, bounds)
    assert np.array_equal(bounds, STORED["arcs|bounds"])
    assert np.array_equal(indices[:filled], STORED["arcs|indices"])


@pytest.mark.parametrize("kind", ["normal", "nan", "low", "shift", "ties"])
def test_scores(kind):
    assert_same(design("long").scores(STORED[f"scores|{kind}|w"], np.array([2, 0, 1])), f"scores|{kind}|theta")


@pytest.mark.parametrize("kind", ["normal", "nan", "faint"])
def test_moments_and_faint_entries(kind):
    own, q, offset = design("short"), STORED[f"moments|{kind}|q"], STORED["offset"]
    assert_same(own.moments(q, STORED[f"moments|{kind}|omega"]), f"moments|{kind}|found")
    reply, entropy = np.zeros(offset[-1]), np.ones(4)
    given = np.concatenate([q[offset[i] : offset[i + 1]] for i in PART])
    without_faint(own.sentences, given, PART, offset, reply, entropy)
    assert_same(reply, f"faint|{kind}|reply")
    assert_same(entropy, f"faint|{kind}|entropy")


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("slots", [1, 2, 5])
@pytest.mark.parametrize("kind", ["normal", "nan", "1e8", "ties"])
def test_visits(kind, slots, threads, monkeypatch):
    monkeypatch.setattr(block_replies, "_DRAFTED", 1)
    own, offset = design("short"), STORED["offset"]
    kept = Replies(np.zeros((slots, offset[-1])), *np.zeros((2, 4, slots)), np.zeros((4, slots, slots)))
    w, omega, gaps = STORED["visit|start"].copy(), np.full(4, 1 / 17), []
    visits = Visits(own.sentences, threads)
    for t, reply in enumerate(STORED["visit|replies"]):
        part, entropy = (PART if t % 2 else np.arange(4)), STORED[f"visit|{kind}|entropy"][t]
        gaps.append(visits.take(w, part, offset, omega, 0.01, reply, entropy, kept))
    for name, found in (*kept._asdict().items(), ("w", w), ("gaps", np.array(gaps))):
        assert_same(found, f"visit|{kind}|{slots}|{name}")


def test_drafts_serve_only_what_they_were_made_for():
    own, offset, part = design("short"), STORED["offset"], np.arange(4)
    kept = Replies(np.zeros((2, offset[-1])), *np.zeros((2, 4, 2)), np.zeros((4, 2, 2)))
    w, reply, omega = np.zeros(1 << 10), STORED["visit|replies"][0], np.full(4, 1 / 17)
    drafts, early = Drafts(own.sentences), Drafts(own.sentences)

    def visited(drafts):
        return visit(drafts, w, omega, 0.01, np.zeros(4))

    with pytest.raises(ValueError, match="each sentence once"):
        drafts.prepare(np.array([1, 1]), offset, reply, *kept)
    assert visited(drafts) == 0.0 and not kept.weight.any()
    for one in (drafts, early):
        one.prepare(part, offset, reply, *kept)
    visited(drafts)
    with pytest.raises(ValueError, match="replies that are kept"):  # one more than before
        visited(early)
    before = [x.copy() for x in kept]
    assert visited(drafts) == 0.0  # a draft serves once
    assert all(np.array_equal(x, y) for x, y in zip(before, kept, strict=True))


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("kind", ["normal", "nan", "1e8"])
@pytest.mark.parametrize("pattern", ["all", "seen"])
def test_nodes(pattern, kind, index):
    X, y, k = sp.csr_matrix(STORED["nodes|X"]), STORED["nodes|y"], 4
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    pairs = SparseFeatures.all_pairs(11, k) if pattern == "all" else SparseFeatures.seen_pairs(X[:9], y[:9], k)
    own = SparseFeatures(X, k, *pairs)
    scores, gradient = np.empty((30, k)), np.empty(own.n_weights)
    own.scores(STORED[f"nodes|{pattern}|{kind}|w"], scores, threads(2))
    own.gradient(STORED[f"nodes|{pattern}|{kind}|q"], gradient, threads(2))
    assert_same(scores, f"nodes|{pattern}|{kind}|scores")
    assert_same(gradient, f"nodes|{pattern}|{kind}|gradient")
