"""Hashed arcs, steps of blocks and sparse features of nodes: what compiled entries compute, and what they refuse."""

from __future__ import annotations

import pickle
from itertools import pairwise
from zlib import crc32

import numpy as np
import pytest

from nashlearn.kernels.arc_sums import PARTS, Terms
from nashlearn.kernels.block_replies import visit, without_faint
from nashlearn.kernels.hashed_arcs import ROOM, VALUE, Sentences
from nashlearn.kernels.nodes import Compressed, Pattern
from nashlearn.kernels.reply_drafts import Drafts
from nashlearn.training.designs import hashed_arcs
from nashlearn.training.designs.hashed_arcs import Attributes, HashedArcs
from nashlearn.training.methods.block_replies import Replies

SIZES = np.array([1, 4, 45])


def design(sizes=SIZES, bits: int = 11, further: int = 0) -> HashedArcs:
    """Random words of sentences of these sizes, with more tags than an arc has room for, and further attributes."""
    rng, rows = np.random.default_rng(0), int((sizes + 3).sum())
    code = rng.integers(0, 2**64, size=(7, 5), dtype=np.uint64)[rng.integers(0, 7, size=rows)]
    first = np.concatenate([[0], np.cumsum(sizes + 3)[:-1]])
    tag = rng.integers(0, 60, size=rows)
    own = rng.integers(0, 2**64, size=(3, further), dtype=np.uint64)[rng.integers(0, 3, size=rows)]
    return HashedArcs(Attributes(np.concatenate([code, own], axis=1), tag, first, sizes, bits))


def features(own: HashedArcs, i: int, bits: int = 11) -> np.ndarray:
    """``Phi_i`` (arcs, weights), from the indices of each arc."""
    n = int(own.attributes.size[i])
    table = np.zeros((n, n + 1, 1 << bits))
    for h in range(n + 1):
        indices, bounds = np.empty(n * ROOM, np.int32), np.empty(n + 1, np.intp)
        own.sentences.arcs(np.array([i]), np.full(n, h), bits, indices, bounds)
        for d in range(n):
            np.add.at(table[d, h], indices[bounds[d] : bounds[d + 1]], VALUE)
    return table.reshape(n * (n + 1), -1)


def offsets(sizes=SIZES) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(sizes * (sizes + 1))])


def test_features_are_those_of_stored_models():
    """Weights of models that were saved mean nothing under other indices."""
    own, tokens = design(), int(SIZES.sum())
    indices, bounds = np.empty(tokens * ROOM, np.int32), np.empty(tokens + 1, np.intp)
    heads = np.concatenate([(np.arange(n) + 3) % (n + 1) for n in SIZES])
    filled = own.sentences.arcs(np.arange(3), heads, 17, indices, bounds)
    assert (filled, crc32(indices[:filled].tobytes())) == (3422, 1688862583)
    assert np.diff(bounds).max() <= ROOM and indices[:filled].max() < 1 << 17


def test_further_attributes_add_features_and_change_none():
    """Ten for each; those of the treebank's own columns stay where they are in models that know no others."""
    heads, found = np.concatenate([(np.arange(n) + 3) % (n + 1) for n in SIZES]), {}
    for further in (0, 1, 6):
        indices, bounds = np.empty(heads.size * ROOM, np.int32), np.empty(heads.size + 1, np.intp)
        design(further=further).sentences.arcs(np.arange(3), heads, 17, indices, bounds)
        found[further] = [sorted(indices[a:b].tolist()) for a, b in pairwise(bounds)]
    for plain, one, six in zip(*found.values(), strict=True):
        assert len(one) == len(plain) + 10 and len(six) == len(plain) + 60 <= ROOM
        assert set(plain) <= set(one) and set(plain) <= set(six)


@pytest.mark.parametrize("end", ["head", "token"])
def test_a_further_attribute_tells_arcs_apart(end):
    """Features that hold the attribute of the changed end change, no others: three, with and without distance."""
    own = design(np.array([4]), further=1).attributes
    code = own.code.copy()
    code[own.first[0] + 1 + {"head": 2, "token": 4}[end], 5] += np.uint64(1)
    both = []
    for one in (own, own._replace(code=code)):
        indices, bounds = np.empty(4 * ROOM, np.int32), np.empty(5, np.intp)
        HashedArcs(one).sentences.arcs(np.array([0]), np.full(4, 2), 20, indices, bounds)
        both.append(indices[bounds[3] : bounds[4]])
    assert (both[0] != both[1]).sum() == 6


@pytest.mark.parametrize("further", [0, 3, 6])
def test_scores_and_moments_are_products_with_the_features(further):
    own, rng, at = design(further=further), np.random.default_rng(1), offsets()
    w, q, omega = rng.normal(size=1 << 11), rng.random(at[-1]) * (rng.random(at[-1]) < 0.5), rng.random(3)
    part = np.array([2, 0])
    theta, sums = own.scores(w, part), np.zeros(1 << 11)
    for i in range(3):
        sums += omega[i] * q[at[i] : at[i + 1]] @ features(own, i)
    expected = np.concatenate([features(own, i) @ w for i in part])
    there = np.isfinite(theta)
    assert there.sum() == (SIZES[part] ** 2).sum()
    assert np.abs(theta - expected)[there].max() <= 1e-12
    assert np.abs(own.moments(q, omega) - sums).max() <= 1e-12
    assert np.array_equal(pickle.loads(pickle.dumps(own)).scores(w), own.scores(w))


@pytest.mark.parametrize("bits", [3, 11])
def test_moments_are_the_same_however_they_are_listed(bits, monkeypatch):
    sizes = np.array([3, 1, 4, 2, 5])
    own, rng, at = design(sizes, bits), np.random.default_rng(3), offsets(sizes)
    q, omega = rng.random(at[-1]) * (rng.random(at[-1]) < 0.7), rng.random(5)
    whole = own.moments(q, omega)
    assert np.allclose(whole, sum(omega[i] * q[at[i] : at[i + 1]] @ features(own, i, bits) for i in range(5)))
    monkeypatch.setattr(hashed_arcs, "_SUMMED", 1)
    monkeypatch.setattr(hashed_arcs, "_TOGETHER", 2)
    for n_jobs in (1, 3):
        assert np.array_equal(own.moments(q, omega, n_jobs), whole)


def test_terms_refuse_what_does_not_fit():
    own, at = design().sentences, offsets()
    w, omega, q = np.zeros(1 << 11), np.ones(3), np.ones(at[-1])
    for first, last in ((-1, 3), (2, 1), (0, 4)):
        with pytest.raises(ValueError, match="first and last"):
            Terms(own, first, last, omega, q)
    for name, given in (("omega", (omega[:-1], q)), ("q", (omega, q[:-1])), ("q", (omega, q.astype(np.float32)))):
        with pytest.raises(ValueError, match=name):
            Terms(own, 0, 3, *given)
    terms = Terms(own, 0, 3, omega, q)
    for part in (-1, PARTS):
        with pytest.raises(ValueError, match="part"):
            terms.add(w, part)
    with pytest.raises(ValueError, match="w"):
        terms.add(w[:-1], 0)


def visited(data, w, part, offset, omega, alpha, reply, reply_entropy, *kept) -> float:
    """Visits to sentences, drafted before the first of them."""
    return visit(Drafts(data, part, offset, reply, *kept), w, omega, alpha, reply_entropy)


@pytest.mark.parametrize("slots", [1, 2, 4])
def test_weights_and_products_follow_the_mixtures(slots):
    """``w`` changes by ``-omega/alpha Phi'`` times the change of ``q``, and products are those of the replies."""
    sizes = np.array([1, 3, 5])
    bits = 16  # so many weights that not each has a place of its own where products are made
    own, rng, at, alpha = design(sizes, bits), np.random.default_rng(2), offsets(sizes), 0.3
    table = [features(own, i, bits) for i in range(3)]
    kept = Replies(np.zeros((slots, at[-1])), *np.zeros((2, 3, slots)), np.zeros((3, slots, slots)))
    w, omega = rng.normal(size=1 << bits), rng.random(3)
    first, gaps = None, 0.0
    for step in range(12):
        reply = np.concatenate([rng.dirichlet(np.full(n + 1, 0.3), n).ravel() for n in sizes])
        entropy = rng.random(3) * sizes * (step > 0)
        gaps += visited(own.sentences, w, np.arange(3), at, omega, alpha, reply, entropy, *kept)
        first = (w.copy(), kept.mixture(at)) if first is None else first
    q = kept.mixture(at)
    moved = sum(omega[i] * (q - first[1])[at[i] : at[i + 1]] @ table[i] for i in range(3))
    assert gaps > 0
    assert np.abs(w - (first[0] - moved / alpha)).max() <= 1e-10
    assert np.allclose(kept.weight.sum(axis=1), 1.0)
    for i in range(3):
        m = int((kept.weight[i] > 0).sum())
        images = kept.arcs[:m, at[i] : at[i + 1]] @ table[i]
        assert (kept.weight[i, :m] > 0).all()
        assert np.allclose(kept.gram[i, :m, :m], images @ images.T)


def test_faint_entries_are_left_out_and_paid_for():
    own, q = design(np.array([1, 2])), np.array([0.5, 0.5 - 1e-10, 1e-10, 0.0, 1.0 - 1e-12, 1e-12])
    reply, entropy = np.full(8, 7.0), np.ones(2)
    without_faint(own.sentences, q, np.array([1]), np.array([0, 2, 8]), reply, entropy)
    assert reply[:2].tolist() == [7.0, 7.0]
    assert np.allclose(reply[2:].reshape(2, 3).sum(axis=1), 1.0) and (reply[[4, 5, 7]] == 0.0).all()
    assert entropy[0] == 1.0 and entropy[1] == pytest.approx(1.0 - 2.02e-10, abs=1e-15)


def test_nothing_in_nothing_out():
    none = np.zeros(0, np.intp)
    own = Sentences(np.zeros((0, 5), np.int64), none, none, none, 4)
    own.scores(np.zeros(16), none, np.zeros(0))
    Terms(own, 0, 0, np.zeros(0), np.zeros(0)).add(np.zeros(16), PARTS - 1)
    assert own.arcs(none, none, 4, np.zeros(0, np.int32), np.zeros(1, np.intp)) == 0
    empty = np.zeros((2, 0)), np.zeros((0, 2)), np.zeros((0, 2)), np.zeros((0, 2, 2))
    w, one = np.zeros(16), np.zeros(1, np.intp)
    assert visited(own, w, none, one, np.zeros(0), 1.0, np.zeros(0), np.zeros(0), *empty) == 0.0
    Compressed(np.zeros(0), none, one, 3).times(np.zeros((3, 2)), np.zeros((0, 2)), 0, 0)


def arguments() -> dict[str, np.ndarray]:
    """Those of a visit that is taken."""
    at = offsets()
    return {
        "w": np.zeros(1 << 11), "part": np.arange(3), "offset": at, "omega": np.ones(3), "alpha": 1.0,
        "reply": np.zeros(at[-1]), "reply_entropy": np.zeros(3), "arcs": np.zeros((2, at[-1])),
        "entropy": np.zeros((3, 2)), "weight": np.zeros((3, 2)), "gram": np.zeros((3, 2, 2)),
    }  # fmt: skip


def read_only(x: np.ndarray) -> np.ndarray:
    x = x.copy()
    x.flags.writeable = False
    return x


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, x[..., :-1]) for name, x in arguments().items() if name not in ("alpha", "part")]
    + [(name, np.repeat(x, 2, axis=-1)[..., ::2]) for name, x in arguments().items() if name != "alpha"]
    + [(name, x.astype(np.float32)) for name, x in arguments().items() if name != "alpha"]
    + [(name, read_only(arguments()[name])) for name in ("w", "arcs", "entropy", "weight", "gram")]
    + [("part", np.array([3])), ("part", np.array([-1])), ("offset", offsets() + 1), ("alpha", 0.0), ("alpha", np.nan)]
    + [("arcs", np.zeros((0, offsets()[-1])))],
)
def test_visits_refuse_what_does_not_fit(name, value):
    given = arguments() | {name: value}
    if name == "arcs" and value.shape[0] == 0:
        given |= {"entropy": np.zeros((3, 0)), "weight": np.zeros((3, 0)), "gram": np.zeros((3, 0, 0))}
    with pytest.raises(ValueError, match=name):
        visited(design().sentences, *given.values())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"code": np.zeros((57, 5), np.int64)}, "tag"),
        ({"code": np.zeros((59, 4), np.int64)}, "code must have 5 to 11 columns"),
        ({"code": np.zeros((59, 12), np.int64)}, "code must have 5 to 11 columns"),
        ({"tag": np.full(59, 64)}, "tag"),
        ({"tag": np.zeros(58, np.intp)}, "tag"),
        ({"first": np.array([0, 4, 12])}, "first and size"),
        ({"first": np.array([-1, 4, 11])}, "first and size"),
        ({"size": np.array([-1, 4, 45])}, "first and size"),
        ({"size": np.array([1, 4, 2**62])}, "first and size"),
        ({"size": np.array([1, 4], np.int32)}, "first"),
        ({"bits": 0}, "bits"),
        ({"bits": 32}, "bits"),
    ],
)
def test_sentences_refuse_rows_that_are_not_there(change, message):
    given = {"code": np.zeros((59, 5), np.int64), "tag": np.zeros(59, np.intp), "first": np.array([0, 4, 11])}
    given |= {"size": SIZES, "bits": 10} | change
    with pytest.raises(ValueError, match=message):
        Sentences(*given.values())


@pytest.mark.parametrize(("heads", "bits"), [([2, 0, 0, 0, 0], 10), ([0, 0, 5, 0, 0], 10), ([0, -1, 0, 0, 0], 10)])
def test_arcs_refuse_heads_outside_their_sentence(heads, bits):
    own = design(np.array([1, 4]))
    with pytest.raises(ValueError, match="heads"):
        own.sentences.arcs(np.arange(2), np.array(heads), bits, np.empty(5 * ROOM, np.int32), np.empty(6, np.intp))


@pytest.mark.parametrize("width", [np.int32, np.intp])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"data": np.ones(2)}, "indices"),
        ({"data": np.ones(3, np.float32)}, "data"),
        ({"indices": [0, 1, 2]}, "indices"),
        ({"indices": [0, -1, 1]}, "indices"),
        ({"indptr": [0, 2, 1]}, "indptr"),
        ({"indptr": [0, 4, 3]}, "indptr"),
        ({"indptr": []}, "indptr"),
        ({"first": [0, 3]}, "first"),
        ({"first": [0, 2, 4]}, "first"),
        ({"label": [0, 1, 2]}, "label"),
        ({"label": [0, 1, -1]}, "label"),
    ],
)
def test_compressed_features_refuse_what_does_not_fit(width, change, message):
    given = {"data": np.ones(3), "indices": [0, 1, 1], "indptr": [0, 2, 3], "d": 2, "k": 2, "first": [0, 2, 3]}
    given |= {"label": [0, 1, 0]} | change
    for name in ("indices", "indptr", "first"):
        given[name] = np.array(given[name], dtype=width)
    given["label"] = np.array(given["label"], dtype=np.int32)
    with pytest.raises(ValueError, match=message):
        Pattern(*given.values())


def test_parts_of_rows_that_are_not_there():
    one = np.array([0, 1], np.int32)
    own = Pattern(np.ones(1), one[:1], one, 1, 2, one, one[:1])
    table, row = np.ones((1, 2)), np.ones(1)
    for part in ((-1, 1), (0, 2), (1, 0)):
        for call, given in (
            (own.times, (table, table)),
            (own.add_scores, (row, table)),
            (own.add_moments, (table, row)),
        ):
            with pytest.raises(ValueError, match="start and stop"):
                call(*given, *part)
