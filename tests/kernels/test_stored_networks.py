"""Networks with cycles and clique trees give the numbers that 0.1 gave, whose kernels Numba compiled.

``tests/stored/networks-0.1.npz`` holds what 0.1 was asked and what it answered, an array for each case: scores with
ties, -inf, NaN, 1e8 in common and far apart. Sweeps, messages and searches take their sums in the order of 0.1 and
give the same bits; the edges' own beliefs and the bound do not, and agree to rounding.
"""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest

from nashlearn.games.networks import stars
from nashlearn.games.networks.cliques import clique_tree
from nashlearn.games.networks.replies import Hamming, NodeCosts
from nashlearn.games.networks.search import Search
from nashlearn.kernels import messages
from nashlearn.kernels.labelling_search import Path as Walk
from nashlearn.kernels.labellings import decode, improve

STORED = np.load(Path(__file__).parents[1] / "stored" / "networks-0.1.npz")


def cases(kind):
    return pytest.mark.parametrize("name", [name for name in STORED if name.startswith(kind)])


def parts(stored, *shapes):
    """Consecutive arrays of the given shapes, and what is left."""
    *found, rest = np.split(stored, np.cumsum([int(np.prod(shape)) for shape in shapes]))
    return *(part.reshape(shape) for part, shape in zip(found, shapes, strict=True)), rest


def loss_of(costs, w, L):
    return NodeCosts(w, L, np.full(w.size, len(L))) if costs else Hamming(w)


def graph(n, edges):
    return stars.incidence(n, edges.astype(np.int64), np.arange(len(edges)))


def assert_close(found, stored):
    sure = np.isfinite(stored)
    assert np.array_equal(found[~sure], stored[~sure], equal_nan=True)
    unit = np.abs(stored[sure]).max(initial=0.0)
    assert (np.abs(found[sure] - stored[sure]) <= 1e-13 * unit).all()


def same(found, stored):
    return np.array_equal(found, stored, equal_nan=True)


@cases("stars")
def test_stars(name):
    _, n, k, _, kind, m = name.split()
    n, k, m, costs = int(n), int(k), int(m), kind == "costs"
    rows, tables, replies = (n, k), (m, k, k), (n, k + costs)
    edges, f, T, w, L, alpha, *answers, numbers = parts(
        STORED[name], (m, 2), rows, tables, n, (k + 1, k), (m, 2, k), replies, (m, 2, k), rows, tables, tables
    )
    loss, g, h = loss_of(costs, w, L), graph(n, edges), stars.heated(T, 0.05)
    p, q, own = np.full(replies, 1 / replies[1]), np.zeros(rows), np.zeros(tables)
    for _ in range(2):
        stars.sweep(loss, g, f, h, 0.5, p, alpha, q)
    stars.beliefs(g, h, alpha, own)
    joint = answers[3].copy()  # what is topped up is a difference, in which another rounding of beliefs would grow
    stars.agree(g, q, joint)
    assert all(map(same, (p, alpha, q, joint), (*answers[:3], answers[4])))
    assert_close(own, answers[3])
    cold = stars.bound(loss, g, f, stars.heated(T, 0.0), 0.0, p, alpha)
    for found, stored in zip(
        (stars.bound(loss, g, f, h, 0.5, p, alpha), cold, stars.expected(loss, p, q), stars.risk(loss, q)),
        numbers,
        strict=True,
    ):
        assert_close(np.array([found]), np.array([stored]))


@cases("labels")
def test_labellings(name):
    n, k, m = (int(name.split()[i]) for i in (1, 2, 4))
    edges, f, T, mu, order, first, last = parts(STORED[name], (m, 2), (n, k), (m, k, k), (m, 2, k), n, n)
    g, labels = graph(n, edges), np.zeros(n, np.int64)
    decode(g, f, T, mu, order.astype(np.intp), labels)
    assert same(labels, first)
    improve(g, f, T, labels)
    assert same(labels, last)


@cases("search")
def test_search(name):
    n, k, m = (int(name.split()[i]) for i in (1, 2, 4))
    edges, node, pair, best, trail = parts(STORED[name], (m, 2), (n, k), (m, k, k), n)
    search, found = Search(graph(n, edges), node, pair, 1.0, 1e-9), []
    for _ in range(trail.size // 3):
        over = search.run(1e6, 7)
        found.append((search.limit, search.proved, over))
    assert same(np.array(found), trail.reshape(-1, 3)) and same(search.labels, best)


def test_a_copied_path_starts_over():
    name = "search 5 3 plain 8"
    edges, node, pair, best, _ = parts(STORED[name], (8, 2), (5, 3), (8, 3, 3), 5)
    path, labels = Walk(graph(5, edges), node, pair, 100.0), np.full(5, -1)
    limit, over = path.walk(100.0, 1e-9, labels, 3)
    assert not over
    limit, over = copy.copy(path).walk(limit, 1e-9, labels, 10**6)
    assert over and same(labels, best)
    assert path.walk(limit, 1e-9, labels, 10**6)[1] and same(labels, best)


@cases("messages")
def test_messages(name):
    _, n, k, _, kind, m = name.split()
    n, k, m, costs = int(n), int(k), int(m), kind == "costs"
    edges, states, rest = parts(STORED[name], (m, 2), n)
    cliques = clique_tree(n, edges.astype(np.int64), states.astype(np.int64), 1 << 20)
    t, size = cliques.arrays, cliques.size
    rows, replies, room = (n, k), (n, k + costs), (n, int(t.columns.max()))
    f, E, w, L, lift, *answers, last = parts(
        rest, rows, size, n, (k + 1, k), rows, 2, n, room, size, replies, rows, room, room
    )
    loss, p, labels = loss_of(costs, w, L).compiled(), np.full(replies, 1 / replies[1]), np.zeros(n, np.int64)
    cold, inside, outside, beliefs, B = np.zeros(room), np.zeros(room), np.zeros(room), np.zeros(size), np.zeros(size)
    values = np.array([messages.inward(t, f, lift, E, eps, told) for eps, told in ((0.0, cold), (0.4, inside))])
    messages.decode(t, f, E, cold, labels)
    messages.beliefs(t, t.table, f, lift, E, 0.0, cold, outside, beliefs)
    outside[:] = 0.0
    for _ in range(2):
        messages.sweep(loss, t, f, lift, E, 0.4, p, inside, outside)
    messages.beliefs(t, t.table, f, lift, E, 0.4, inside, outside, B)
    assert all(map(same, (values, labels, cold, beliefs, p, lift, inside, outside, B), (*answers, last)))


def spoilt(arrays, **changes):
    return arrays._replace(**{name: value(getattr(arrays, name).copy()) for name, value in changes.items()})


def put(i, value):
    def change(x):
        x.flat[i] = value
        return x

    return change


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"ends": put(1, 9)}, "ends must hold indices 0..2"),
        ({"ends": put(1, 0)}, "a loop"),
        ({"member": put(0, 1)}, "list the edges of each node once"),
        ({"side": put(0, 2)}, "side must hold indices"),
        ({"start": put(1, 3)}, "list the edges of each node once"),
        ({"start": put(-1, 7)}, "start must rise"),
        ({"start": lambda x: x[:-1]}, "g must have 3 nodes; got 2"),
        ({"table": put(2, 3)}, "table must hold indices 0..2"),
    ],
)
def test_graphs_that_are_none_are_refused(change, says):
    g, T = spoilt(graph(3, np.array([(0, 1), (1, 2), (2, 0)])), **change), np.zeros((3, 2, 2))
    f, p, q, alpha = np.zeros((3, 2)), np.full((3, 2), 0.5), np.zeros((3, 2)), np.zeros((3, 2, 2))
    with pytest.raises(ValueError, match=says):
        stars.sweep(Hamming(np.ones(3)), g, f, stars.heated(T, 0.1), 1.0, p, alpha, q)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"node": put(0, 3)}, "node must hold indices 0..2"),
        ({"rows": put(0, 3)}, "clique 0 must have 1..2 rows"),
        ({"columns": put(1, 0)}, "clique 1 must have 1..2 rows and 1..2 columns"),
        ({"table": put(2, 9)}, "clique 2 must lie among the 10 entries"),
        ({"parent": put(0, 0)}, "parent of clique 0 must come before it"),
        ({"child": put(0, 2)}, "children of clique 0"),
        ({"sibling": put(1, 1)}, "children of clique 0"),
        ({"map": put(2, 5)}, "map of clique 2 must lie among"),
        ({"maps": put(0, -1)}, "map of clique 1 must hold columns 0..1"),
        ({"maps": put(-1, 2)}, "must hold columns 0..1"),
    ],
)
def test_trees_that_are_none_are_refused(change, says):
    t = clique_tree(3, np.array([(0, 1), (1, 2)]), np.full(3, 2), 100).arrays
    f, inside = np.zeros((3, 2)), np.zeros((3, 2))
    messages.inward(t, f, f.copy(), np.zeros(10), 0.0, inside)
    with pytest.raises(ValueError, match=says):
        messages.inward(spoilt(t, **change), f, f.copy(), np.zeros(10), 0.0, inside)
