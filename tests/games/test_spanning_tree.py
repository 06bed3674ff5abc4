"""Undirected spanning trees against the enumeration of all of them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import linprog

from nashlearn import games

EDGES = list(combinations(range(4), 2))
number = st.sampled_from([0.0, 0.5, -0.5, 1.0, -1.0, 2.0, 0.31, -1.7])


def all_trees() -> np.ndarray:
    found = []
    for chosen in combinations(range(len(EDGES)), 3):
        reached = {0}
        for _ in range(3):
            reached |= {v for e in chosen if reached & set(EDGES[e]) for v in EDGES[e]}
        if len(reached) == 4:
            found.append(np.eye(len(EDGES))[list(chosen)].sum(axis=0))
    return np.array(found)


TREES = all_trees()


def test_there_are_sixteen():
    assert len(TREES) == 16


@settings(max_examples=40, deadline=None)
@given(hnp.arrays(np.float64, 6, elements=number), st.integers(0, 15), hnp.arrays(np.bool_, 6))
def test_value_certificate_and_argmax(scores, kept, hidden):
    game = games.spanning_tree(EDGES)
    scores[hidden & (TREES[kept] == 0)] = -np.inf
    V = TREES[~((TREES != 0) & np.isneginf(scores)).any(axis=1)]
    totals = V @ np.where(np.isneginf(scores), 0.0, scores)
    chosen = game.labels.argmax(scores[None])[0]
    assert (chosen == V).all(axis=1).any() and scores[chosen].sum() == pytest.approx(totals.max())
    # The predictor of the generic game may answer any tree of the graph.
    A = 3.0 - TREES @ V.T
    best = linprog(
        -np.r_[totals, 1.0],
        A_ub=np.hstack([-A, np.ones((len(A), 1))]),
        b_ub=np.zeros(len(A)),
        A_eq=np.r_[np.ones(len(V)), 0.0][None],
        b_eq=[1.0],
        bounds=[(0, None)] * len(V) + [(None, None)],
        method="highs",
    )
    eq = game.solve(scores[None])
    assert eq.value[0] == pytest.approx(-best.fun, abs=1e-8)
    assert 0 <= eq.gap[0] <= 1e-8
    assert abs(game.loss_value(scores[None], V[:1] > 0)[0] - (eq.value[0] - totals[0])) <= 1e-9


def test_what_all_edges_have_in_common_costs_no_digits():
    scores = np.round(np.random.default_rng(0).normal(size=(20, 6)) * 2**16) / 2**16
    game = games.spanning_tree(EDGES)
    near, far = game.solve(scores), game.solve(scores + 2.0**28)
    assert far.value - 3 * 2.0**28 == pytest.approx(near.value, abs=1e-6)  # a value of 8e8 is known to 1e-7
    assert (far.gap <= 1e-8).all()


def test_bad_graphs():
    with pytest.raises(ValueError, match="connect all 4 nodes"):
        games.spanning_tree([[0, 1], [2, 3]])
    with pytest.raises(ValueError, match="row 0 of the scores leaves them apart"):
        games.spanning_tree(EDGES).solve(np.full((1, 6), -np.inf))
    with pytest.raises(ValueError, match="distinct nodes"):
        games.spanning_tree([[0, 0]])
    with pytest.raises(ValueError, match="pairs of nodes"):
        games.spanning_tree([0, 1])
