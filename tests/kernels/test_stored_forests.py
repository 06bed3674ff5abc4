"""Sweeps over forests and padded chains give the numbers that 0.1 gave, whose kernels Numba compiled.

``tests/stored/forests-0.1.npz`` holds what 0.1 was asked and what it answered, an array for each case: chains and trees
with edges that run either way, scores with ties, -inf, NaN, 1e8 in common and beyond the range of probabilities, of
either precision. Sums may be taken in another order. Newton's steps between options that cost the same go where
rounding sends them: no such case is among those of losses other than zero-one.
"""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from nashlearn.games.networks.forest import Forest
from nashlearn.games.networks.replies import Hamming, NodeCosts
from nashlearn.kernels import chains as padded
from nashlearn.kernels.forest import play
from nashlearn.torch import chains

STORED = np.load(Path(__file__).parents[1] / "stored" / "forests-0.1.npz")
FORESTS = [name for name in STORED if name.startswith("forest")]
CHAINS = [name for name in STORED if name.startswith("chains")]
NODES, ROOTS, BATCH, STEPS = 31, 7, 5, 7


def parts(stored, *shapes):
    """Consecutive arrays of the given shapes, and what is left."""
    *found, rest = np.split(stored, np.cumsum([int(np.prod(shape)) for shape in shapes]))
    return *(part.reshape(shape) for part, shape in zip(found, shapes, strict=True)), rest


def assert_same(found, stored, unit=1.0):
    sure = np.isfinite(stored)
    assert np.array_equal(found[~sure], stored[~sure], equal_nan=True)
    bound = 1e-13 if stored.dtype == np.float64 else np.finfo(np.float32).eps
    assert (np.abs(found[sure] - stored[sure]) <= bound * np.maximum(np.abs(stored[sure]), unit)).all()


@pytest.mark.parametrize("name", FORESTS)
def test_forests(name):
    _, states, _, shared, kind, _, smoothing, rounds = name.split()
    k, eps = int(states), float(smoothing)
    rows, replies = (NODES, k), (NODES, k + 2 * (kind == "costs"))
    tables = (1 if shared == "True" else NODES - ROOTS, k, k)
    tree, f, p, weight, counts, T, own_p, own_q, own_E, own_sums, own_lost, costs = parts(
        STORED[name], (5, NODES), rows, replies, NODES, NODES, tables, replies, rows, tables, (ROOTS, 4), NODES
    )
    forest = Forest(*tree[:4].astype(np.intp), tree[4] > 0)
    roots = np.flatnonzero(forest.parent < 0)
    loss = NodeCosts(counts, costs[1:-NODES].reshape(-1, k), costs[-NODES:]) if costs[0] else Hamming(counts)
    tops = T.max(axis=(1, 2))
    q, E, sums, lost = np.zeros(rows), np.zeros(tables), np.zeros((NODES, 4)), np.zeros(NODES, dtype=np.bool_)
    given = forest, f, T, tops, np.exp((T - tops[:, None, None]) / eps), eps, int(rounds), p, q, E, weight
    kernel = pickle.loads(pickle.dumps(loss.compiled()))
    for first, last in ((0, roots[3]), (roots[3], roots[3]), (roots[3], NODES)):
        play(kernel, *given, first, last, lost, sums)
    assert (lost == own_lost).all()
    found = np.repeat(~lost[roots], np.diff(roots, append=NODES))
    assert_same(p[found], own_p[found])
    assert_same(q[found], own_q[found])
    assert_same(E, own_E, np.abs(own_E).max())
    assert_same(sums[roots], own_sums)


@pytest.mark.parametrize("name", CHAINS)
def test_padded_chains(name):
    _, states, loss, shared, _, kind, known, smoothing = name.split()
    k = int(states)
    rows, joint, own = (BATCH, STEPS, k), (BATCH, k, k), (BATCH, STEPS - 1, k, k)
    tables, edges = ((k, k), joint) if shared == "True" else (own, own)
    labels = (BATCH, STEPS) if known == "True" else 0
    node, edge, lengths, target, *stored, rest = parts(
        STORED[name], rows, tables, BATCH, labels, BATCH, BATCH, rows, edges, rows
    )
    assert rest.size == 0 and node.dtype == kind
    f, T, sizes = torch.from_numpy(node), torch.from_numpy(edge), torch.from_numpy(lengths.astype(np.intp))
    room = chains.make_room(f, T, k)
    rule = chains.Rule(loss, b"", float(smoothing), 1e-6, 200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        y = torch.from_numpy(target.astype(np.intp)) if known == "True" else None
        chains.solve_chains(f, T, y, sizes, rule, room)
    for found, answer in zip(room, stored, strict=True):
        assert_same(found.numpy(), answer)


ZEROS = np.zeros(4, dtype=np.intp)
FOREST = {
    "parent": np.array([-1, 0, 1, -1]), "child": np.array([1, 2, -1, -1]), "sibling": np.full(4, -1), "table": ZEROS,
    "flipped": np.zeros(4, dtype=np.bool_), "f": np.zeros((4, 2)), "T": np.zeros((1, 2, 2)), "tops": np.zeros(1),
    "W": np.ones((1, 2, 2)), "eps": 1.0, "rounds": 1, "p": np.full((4, 2), 0.5), "q": np.zeros((4, 2)),
    "E": np.zeros((1, 2, 2)), "weight": np.ones(4), "first": 0, "last": 4, "lost": np.zeros(4, dtype=np.bool_),
    "sums": np.zeros((4, 4)),
}  # fmt: skip
PADDED = {
    "node": np.zeros((2, 3, 2)), "tops": np.zeros(1), "W": np.ones((1, 2, 2)), "shared": True, "eps": 1.0, "tol": 0.1,
    "max_iter": 9, "most": 1.0, "lengths": np.array([3, 1]), "p": np.full((2, 3, 2), 0.5), "q": np.zeros((2, 3, 2)),
    "E": np.zeros((2, 2, 2)), "value": np.zeros(2), "gap": np.zeros(2), "lost": np.zeros(2, dtype=np.bool_),
    "begin": 0, "end": 2,
}  # fmt: skip
TRUTH = {
    "node": np.zeros((2, 3, 2)), "edge": np.zeros((1, 2, 2)), "shared": True,
    "target": np.array([[0, 1, 0], [1, 7, 7]]),
    "lengths": np.array([3, 1]), "value": np.zeros(2), "q": np.zeros((2, 3, 2)), "E": np.zeros((2, 2, 2)),
}  # fmt: skip
UNIT = Hamming(np.ones(4)).compiled()


def sweep_forest(loss=UNIT, **changes):
    given = {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in FOREST.items()} | changes
    play(loss, tuple(given.pop(name) for name in Forest._fields), *given.values())
    return given


def sweep_padded(loss=UNIT, **changes):
    padded.sweeps(loss, *(PADDED | changes).values())


def subtract_truth(**changes):
    padded.subtract(*(TRUTH | changes).values())


@pytest.mark.parametrize(
    ("entry", "changes", "words"),
    [
        (sweep_forest, {"parent": np.array([-1, 0, 2, -1])}, "preorder"),
        (sweep_forest, {"parent": np.array([-1, 0, 1, 0]), "sibling": np.array([-1, 1, -1, -1])}, "preorder"),
        (sweep_forest, {"parent": np.array([0, 0, 1, -1])}, "preorder"),
        (sweep_forest, {"child": np.array([1, 3, -1, -1])}, "preorder"),
        (sweep_forest, {"child": np.array([1, 2, -1, 4])}, "preorder"),
        (sweep_forest, {"table": np.array([0, 0, 1, 0])}, "1 tables"),
        (sweep_forest, {"first": 1}, "preorder"),
        (sweep_forest, {"last": 5}, "last=5"),
        (sweep_forest, {"eps": 0.0}, "eps=0.0"),
        (sweep_forest, {"eps": np.nan}, "eps=nan"),
        (sweep_forest, {"rounds": -1}, "rounds=-1"),
        (sweep_forest, {"f": np.zeros((3, 2)), "q": np.zeros((3, 2)), "weight": np.ones(3)}, "rows=3"),
        (sweep_forest, {"f": np.zeros((4, 2), dtype=np.float32)}, "f must be .* float64"),
        (sweep_forest, {"p": np.zeros((4, 1))}, "an option for each of 2 labels"),
        (sweep_forest, {"q": np.zeros((2, 4)).T}, "q must be .* not contiguous"),
        (sweep_forest, {"loss": Hamming(np.ones(3)).compiled()}, "3 nodes; got 4"),
        (
            sweep_forest,
            {"loss": NodeCosts(np.ones(4), np.ones((3, 2)), np.full(4, 3)).compiled()},
            "room for 3 options",
        ),
        (sweep_forest, {"loss": NodeCosts(np.ones(4), np.ones((2, 1)), np.full(4, 2)).compiled()}, "1 labels; got 2"),
        (sweep_padded, {"lengths": np.array([3, 4])}, "lengths must lie in 0..3; got 4"),
        (sweep_padded, {"lengths": np.array([3, -1])}, "lengths must lie in 0..3; got -1"),
        (sweep_padded, {"shared": False}, "E must be"),
        (sweep_padded, {"q": np.zeros((2, 3, 2), dtype=np.float32)}, "q must be .* float64"),
        (sweep_padded, {"end": 3}, "end=3"),
        (sweep_padded, {"loss": Hamming(np.ones(2)).compiled()}, "2 nodes; got 3"),
        (subtract_truth, {"target": np.array([[0, 2, 0], [1, 7, 7]])}, "labels 0..1; got 2"),
        (subtract_truth, {"target": np.array([[0, -1, 0], [1, 7, 7]])}, "labels 0..1; got -1"),
        (subtract_truth, {"lengths": np.array([3, 4])}, "lengths must lie in 0..3; got 4"),
        (subtract_truth, {"edge": np.zeros((2, 2, 2))}, "edge must be"),
    ],
)
def test_what_would_be_read_or_written_out_of_bounds_is_refused(entry, changes, words):
    with pytest.raises(ValueError, match=words):
        entry(**changes)


@pytest.mark.parametrize(
    "arguments",
    [
        (np.ones(2), np.ones((3, 2)), np.array([3, 4])),
        (np.ones(2), np.ones((3, 2)), np.array([0, 3])),
        (np.ones(2), np.ones((3, 2)), np.array([3])),
    ],
)
def test_options_are_rows_of_the_costs(arguments):
    with pytest.raises(ValueError, match="n_options"):
        NodeCosts(*arguments).compiled()


def test_scores_that_are_no_numbers_are_reported_or_stay_what_they_are():
    """They never lead out of bounds, whatever the reply."""
    for loss in (UNIT, NodeCosts(np.ones(4), 1.0 - np.eye(2), np.full(4, 2)).compiled()):
        found = sweep_forest(loss, f=np.full((4, 2), np.nan))
        assert (found["lost"][[0, 3]] | np.isnan(found["sums"][[0, 3], 0])).all()
    sweep_padded()
    subtract_truth()
