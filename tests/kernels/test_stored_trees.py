"""Kernels of trees give the numbers that 0.1 gave, whose kernels Numba compiled, and refuse what is not theirs.

``tests/stored/trees-0.1.npz`` holds what 0.1 was asked and what it answered: sentences with ties, arcs that are
forbidden, NaN, 1e8 in common, with one root or many, with labels or without, and points in and near the polytope. Sums
may be taken in another order, and so answers are compared to rounding. Strategies of an interior point method depend on
rounding: of games, values and gaps are compared.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nashlearn.kernels.spanning import kruskal
from nashlearn.kernels.tree_cuts import violated_cuts
from nashlearn.kernels.tree_game import certify, solve_trees
from nashlearn.kernels.tree_gibbs import gibbs_trees
from nashlearn.kernels.tree_inside import move_inside
from nashlearn.kernels.tree_map import best_trees, is_tree
from nashlearn.kernels.tree_nearest import project_labelled
from nashlearn.kernels.tree_projection import project_trees
from nashlearn.kernels.tree_shift import shifted

STORED = np.load(Path(__file__).parents[1] / "stored" / "trees-0.1.npz")


def asked(part):
    """Names of the stored cases that have such a part, with their rules."""
    return sorted(tuple(key.rsplit("|", 2)[:2]) for key in STORED if key.endswith(f"|{part}"))


def cases(part, labelled=False):
    listed = [case for case in asked(part) if ("labels" in case[0]) == labelled]
    return pytest.mark.parametrize(("name", "rule"), listed, ids="|".join)


def assert_same(found, key, unit=1.0):
    """Within 1e-13 of the largest entry; NaN and infinity where they were."""
    stored = STORED[key]
    assert found.shape == stored.shape
    assert (np.isfinite(found) == np.isfinite(stored)).all() and (np.isnan(found) == np.isnan(stored)).all()
    sure = np.isfinite(stored)
    size = max(np.abs(stored[sure]).max(initial=0.0), unit)
    assert (np.abs(found[sure] - stored[sure]) <= 1e-13 * size).all()


@cases("best")
def test_best_trees(name, rule):
    scores, found = STORED[f"{name}|scores"], []
    for kind in (np.float64, np.float32):
        heads, feasible = np.empty(scores.shape[:2], np.intp), np.empty(len(scores), bool)
        best_trees(scores.astype(kind), rule == "one", heads, feasible)
        assert all(is_tree(tree) for tree in heads[feasible])
        heads[~feasible] = 0
        found += [heads, feasible[:, None]]
    assert (np.hstack(found) == STORED[f"{name}|{rule}|best"]).all()


@cases("nearest")
def test_nearest_points(name, rule):
    w, b = STORED[f"{name}|scores"], 2
    point, gap = np.empty(w.shape), np.empty(b)
    project_trees(w, rule == "one", point, gap)
    point[gap < 0] = 0.0
    assert_same(np.hstack([gap[:, None], point.reshape(b, -1)]), f"{name}|{rule}|nearest")


@cases("nearest", labelled=True)
def test_nearest_points_by_wolfes_method(name, rule):
    w = STORED[f"{name}|scores"]
    b, n, _, labels = w.shape
    w[:, np.arange(n), np.arange(n) + 1] = -np.inf
    point, gap = np.empty((b, n * (n + 1), labels)), np.empty(b)
    project_labelled(w.reshape(point.shape), n, rule == "one", point, gap)
    point[gap < 0] = 0.0
    assert_same(np.hstack([gap[:, None], point.reshape(b, -1)]), f"{name}|{rule}|nearest")


@cases("gibbs")
def test_gibbs_marginals(name, rule):
    scores, b = STORED[f"{name}|scores"], 2
    log_z, marginal = np.empty(b), np.zeros(scores.shape)
    gibbs_trees(scores, rule == "one", log_z, marginal)
    assert_same(np.hstack([log_z[:, None], marginal.reshape(b, -1)]), f"{name}|{rule}|gibbs")


@cases("shifted", labelled=True)
def test_offsets(name, rule):
    scores, found = STORED[f"{name}|scores"], []
    for one in scores:
        rest = np.empty(one.shape)
        offset = shifted(one, rule == "one", rest)
        found.append(np.append(offset, rest))
    assert_same(np.array(found), f"{name}|{rule}|shifted")


@cases("solve", labelled=True)
def test_games(name, rule):
    """Values are determined up to the gap, and certified by what both players can secure."""
    scores = STORED[f"{name}|scores"]
    b, n, _, labels = scores.shape
    price, shape = np.linspace(1.0, 2.0 if "far" in name else 1.0, n), (b, n * (n + 1), labels)
    for mu, (stored_value, stored_gap) in zip((0.0, 0.3), np.split(STORED[f"{name}|{rule}|solve"].T, 2), strict=True):
        (value, gap, entropy, risk), (q, p) = np.empty((4, b)), np.empty((2, *shape))
        solve_trees(scores.reshape(shape), price, mu, rule == "one", 1e-10, 0, b, value, q, p, gap, entropy, risk)
        assert (np.isnan(value) == np.isnan(stored_value)).all() and (np.isinf(gap) == np.isinf(stored_gap)).all()
        for i in np.flatnonzero(np.isfinite(gap)):
            size = 1.0 + np.abs(scores[i][np.isfinite(scores[i])]).max()
            rounding = 1e-13 * n * size
            assert value[i] <= stored_value[i] + stored_gap[i] + rounding
            assert stored_value[i] <= value[i] + gap[i] + rounding
            if mu > 0.0 or labels > 1 or "far" in name:
                assert abs(value[i] - stored_value[i]) <= rounding + 0.1 * (gap[i] + stored_gap[i])
            if mu == 0.0 and labels == 1 and "far" not in name and not np.isneginf(scores[i]).any():
                assert gap[i] <= rounding  # by pivots
            assert gap[i] <= 2e-9 * (1.0 + price.sum() + n * mu) or gap[i] <= 2.0 * stored_gap[i]
            rest = np.empty(scores.shape[1:])
            offset = shifted(scores[i], rule == "one", rest)
            upper, lower, *_ = certify(rest, price, mu, rule == "one", *(x[i].reshape(rest.shape) for x in (p, q)))
            assert upper - lower <= gap[i] + 1e-9 and abs(offset + lower - value[i]) <= 1e-13 * n * size


@cases("moved")
def test_points_moved_inside(name, rule):
    x = STORED[f"{name}|scores"]
    share = np.empty(1)
    move_inside(x.reshape(-1), np.array([x.shape[1]]), np.array([0, x.size]), rule == "one", share)
    assert_same(np.hstack([share[:, None], x.reshape(1, -1)]), f"{name}|{rule}|moved")


@pytest.mark.parametrize("name", sorted({name for name, _ in asked("moved")}))
def test_violated_cuts(name):
    x = STORED[f"{name}|scores"][0]
    members = np.zeros((len(x), len(x)), bool)
    count = violated_cuts(x, members, 1e-9)
    assert (members[:count] == STORED[f"{name}|cuts"]).all()


def arguments(n=3, b=2):
    """Calls of all entries that are right."""
    arcs, heads, many = np.zeros((b, n, n + 1)), np.zeros((b, n), np.intp), np.zeros(b)
    flat, price = np.zeros((b, n * (n + 1), 1)), np.ones(n)
    one = np.zeros((n, n + 1, 1))
    every, edges = np.arange(3), np.array([[0, 1], [1, 2], [0, 2]])
    return {
        best_trees: [arcs, True, heads, np.zeros(b, bool)],
        is_tree: [np.zeros(n, np.intp)],
        project_trees: [arcs, True, arcs.copy(), many],
        project_labelled: [flat, n, True, flat.copy(), many],
        gibbs_trees: [arcs, True, many, arcs.copy()],
        shifted: [one, True, one.copy()],
        certify: [one, price, 0.1, True, one.copy(), one.copy()],
        solve_trees: [flat, price, 0.1, True, 1e-8, 0, b, many, flat.copy(), flat.copy(), *np.zeros((3, b))],
        violated_cuts: [np.zeros((n, n + 1)), np.zeros((n, n), bool), 1e-9],
        move_inside: [arcs.ravel(), np.full(b, n), np.arange(b + 1) * n * (n + 1), True, many],
        kruskal: [every, np.ones(3, bool), edges, 3, np.zeros(3, bool)],
    }


OF_ANY_LENGTH = {(is_tree, 0), (violated_cuts, 1), (kruskal, 0)}
ENTRIES = [
    pytest.param(entry, i, id=f"{entry.__name__}-{i}")
    for entry, given in arguments().items()
    for i, one in enumerate(given)
    if isinstance(one, np.ndarray)
]


@pytest.mark.parametrize(("entry", "i"), ENTRIES)
def test_entries_refuse_arrays_that_do_not_fit(entry, i):
    given = arguments()[entry]
    entry(*given)
    right = given[i]
    twice = np.concatenate([right, right])
    wrong = [twice[::2], right.astype(np.complex128), right[None], right.tolist(), None]
    for one in wrong if (entry, i) in OF_ANY_LENGTH else [right[:-1], twice, *wrong]:
        given[i] = one
        with pytest.raises((ValueError, TypeError)):
            entry(*given)


@pytest.mark.parametrize(
    ("entry", "change"),
    [
        (is_tree, {0: np.array([0, 4, 1])}),
        (is_tree, {0: np.array([0, -1, 1])}),
        (project_labelled, {1: -1}),
        (project_labelled, {1: 4}),
        (project_labelled, {1: 3_100_000_000}),
        (solve_trees, {5: -1}),
        (solve_trees, {6: 3}),
        (solve_trees, {5: 2, 6: 1}),
        (solve_trees, {2: -1.0}),
        (solve_trees, {4: np.nan}),
        (move_inside, {1: np.array([2, 4])}),
        (move_inside, {1: np.array([-4, 3])}),
        (move_inside, {2: np.array([0, 30, 24])}),
        (move_inside, {2: np.array([0, 12, 25])}),
        (kruskal, {0: np.array([0, 1, 3])}),
        (kruskal, {2: np.array([[0, 1], [1, 3], [0, 2]])}),
        (kruskal, {3: 2}),
        (kruskal, {3: -1}),
        (kruskal, {3: 1 << 62}),
    ],
)
def test_entries_refuse_indices_and_numbers_out_of_range(entry, change):
    given = arguments()[entry]
    for i, one in change.items():
        given[i] = one
    with pytest.raises(ValueError, match="must"):
        entry(*given)


def test_results_are_not_written_to_what_is_read_only():
    given = arguments()[best_trees]
    given[2].flags.writeable = False
    with pytest.raises(ValueError, match="heads must be a writable"):
        best_trees(*given)


@pytest.mark.parametrize("entry", list(arguments()), ids=lambda entry: entry.__name__)
def test_no_sentences_and_no_tokens(entry):
    entry(*arguments(3, 0)[entry])
    entry(*arguments(1, 1)[entry])
    if entry in (solve_trees, certify, project_labelled):
        with pytest.raises(ValueError, match="at least one token"):
            entry(*arguments(0, 2)[entry])
    else:
        entry(*arguments(0, 2)[entry])
