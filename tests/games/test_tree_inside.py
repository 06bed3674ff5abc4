"""Points near the tree polytope moved into it: every cut holds, little is replaced, and planes of training hold."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from enumeration import tree_heads
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from nashlearn.games import arborescence
from nashlearn.kernels.tree_inside import move_inside
from nashlearn.training.designs.arcs import tree_problem
from nashlearn.training.designs.entries import EntryFeatures, stacked

ROUNDING = 2e-13


def trees(n: int, single_root: bool) -> np.ndarray:
    """Vertices of all trees."""
    return np.eye(n + 1)[tree_heads(n, single_root)]


def into_polytope(x: np.ndarray, single_root: bool) -> float:
    """Move ``x`` (n, n + 1) into the polytope, in place; how large a share of it was replaced."""
    share = np.empty(1)
    move_inside(x.reshape(-1), np.array([len(x)]), np.array([0, x.size]), single_root, share)
    return float(share[0])


def lacking(x: np.ndarray, single_root: bool) -> float:
    """By how much ``x`` misses the polytope's constraints, all of them listed."""
    n = len(x)
    missed = [-x.min(), np.abs(x.sum(axis=1) - 1.0).max(), np.abs(np.diagonal(x, 1)).max()]
    if single_root:
        missed.append(abs(x[:, 0].sum() - 1.0))
    for inside in product([False, True], repeat=n):
        S = np.array(inside)
        if S.any():
            missed.append(1.0 - x[S][:, np.r_[True, ~S]].sum())
    return max(missed)


@given(
    n=st.integers(1, 5),
    single_root=st.booleans(),
    size=st.sampled_from([0.0, 1e-12, 1e-9, 1e-6, 1e-3, 0.3, 10.0]),
    seed=st.integers(0, 10**6),
)
def test_any_point_is_moved_inside_and_near_ones_little(n, single_root, size, seed):
    rng = np.random.default_rng(seed)
    V = trees(n, single_root)
    x = np.tensordot(rng.dirichlet(np.full(len(V), rng.choice([0.01, 0.1, 1.0]))), V, 1)
    moved = x + size * rng.normal(size=x.shape) * (rng.random(x.shape) < 0.5)
    before = moved.copy()
    share = into_polytope(moved, single_root)
    assert 0 <= share <= 1
    assert lacking(moved, single_root) <= ROUNDING
    if size <= 1e-3:
        assert np.abs(moved - before).max() <= 40 * n * size + ROUNDING


def test_a_point_without_arcs_from_the_root_or_without_arcs_at_all():
    cycle = np.array([[0.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
    for x, single_root in product((cycle, np.zeros((3, 4)), -cycle), (True, False)):
        moved = x.copy()
        into_polytope(moved, single_root)
        assert lacking(moved, single_root) <= ROUNDING


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("tol", [1e-10, 1e-3])
def test_strategies_lie_in_the_polytope_however_loosely_they_were_found(tol, single_root):
    n, rng = 6, np.random.default_rng(1)
    scores = rng.normal(size=(30, n, n + 1)) * np.logspace(-1, 1, 30)[:, None, None]
    for weights in (np.ones(n), np.linspace(1.0, 2.0, n)):  # by pivots, and by the interior point method
        found = arborescence(n, single_root, weights=weights).solve(scores, tol=tol)
        assert max(lacking(x, single_root) for x in (*found.p, *found.q)) <= ROUNDING


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("kind", ["normal", "ties", "none"])
def test_games_without_weights_are_solved_up_to_rounding(kind, single_root):
    """By pivots, also where scores tie and the face of the projection has potentials that are not unique."""
    rng = np.random.default_rng(2)
    for n in (2, 3, 5, 9):
        scores = {"normal": rng.normal(size=(20, n, n + 1)), "ties": rng.integers(-1, 2, (20, n, n + 1)) * 0.5}
        own = scores.get(kind, np.zeros((1, n, n + 1)))
        assert arborescence(n, single_root).solve(own).gap.max() <= 1e-13 * n


FORBIDDEN = -np.inf


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("smoothing", [0.0, 0.5])
@pytest.mark.parametrize(
    ("scores", "best"),
    [
        (1e7 * np.array([[0, *3 * [FORBIDDEN]], [-1, -1, 1, 1], [0, -1, 1, 0]]), 0.0),
        (1e8 * np.array([[1, 0, 0, 1], [1, *3 * [FORBIDDEN]], [0, 1, 0, FORBIDDEN]]), 2e8),
    ],
)
def test_scores_far_apart_and_forbidden_arcs_leave_rows_whole(scores, best, smoothing):
    """Where no projection of the scores came to an end, entries near the best of each row held no tree."""
    found = arborescence(3, True).solve(scores[None], smoothing=smoothing)
    assert found.gap[0] <= 1e-14 * np.abs(scores[np.isfinite(scores)]).sum() + 1e-8
    assert found.value[0] == pytest.approx(best + 1.0 + 0.5 * smoothing, abs=1e-6)  # two trees tie, half each
    for x in (found.p, found.q):
        assert np.abs(x.reshape(3, 4).sum(axis=1) - 1.0).max() <= 1e-6


@pytest.mark.parametrize("single_root", [True, False])
def test_pivots_keep_to_what_is_allowed(single_root):
    rng = np.random.default_rng(3)
    for n in (3, 5, 8):
        allowed = rng.random((40, n, n + 1)) > 0.3
        allowed[:, :, 0] = allowed[:, range(1, n), range(1, n)] = True  # one tree at least: a chain
        scores = np.where(allowed, rng.normal(size=allowed.shape), FORBIDDEN)
        found = arborescence(n, single_root).solve(scores)
        assert found.gap.max() <= 1e-8 * n
        for x in (found.p, found.q):
            x = x.reshape(40, n, n + 1)
            assert (x[np.isneginf(scores)] == 0.0).all() and np.abs(x.sum(axis=2) - 1.0).max() <= 1e-9
            assert max(lacking(one, single_root) for one in x) <= 1e-8


def loss_at(V: np.ndarray, theta: np.ndarray) -> float:
    """``max <theta, q> + n - max_y <q, y>`` over mixtures of the trees ``V``, by linear programming."""
    m, n = len(V), V.shape[1]
    A = n - V.reshape(m, -1) @ V.reshape(m, -1).T
    found = linprog(
        -np.r_[V.reshape(m, -1) @ theta, 1.0],
        np.hstack([-A, np.ones((m, 1))]),
        np.zeros(m),
        np.r_[np.ones(m), 0.0][None],
        [1.0],
        bounds=[(0, None)] * m + [(None, None)],
        method="highs",
    )
    return -found.fun


@pytest.mark.parametrize("accuracy", [1e-10, 1e-5, 1e-3])
@settings(max_examples=12)
@given(single_root=st.booleans(), hidden=st.booleans(), seed=st.integers(0, 10**6))
@example(single_root=False, hidden=False, seed=6)
def test_planes_of_loosely_solved_games_bound_the_loss_everywhere(accuracy, single_root, hidden, seed):
    """Also far out along every cut: what strategies miss of the polytope would show there."""
    rng, n = np.random.default_rng(seed), 4
    X, V = np.eye(n * (n + 1)).reshape(n, n + 1, -1), trees(n, single_root)
    y = arborescence(n, single_root).argmax(rng.normal(size=(1, n, n + 1)))[0]
    y[0] = -1 if hidden else y[0]
    known = np.count_nonzero(y >= 0) / n
    design = EntryFeatures([stacked([X])], np.array([0, n * (n + 1)]))
    problem = tree_problem(design, [y], np.full(1, 1 / n), single_root, known=known, tol=accuracy)
    truth = sum(X[d, h] for d, h in enumerate(y) if h >= 0) / n / known
    here = rng.normal(size=n * (n + 1)) * rng.choice([0.3, 1.0, 3.0])
    seen = problem.evaluate(here, 0.0)
    assert seen.loss >= loss_at(V, here) / n - truth @ here - 1e-9
    for inside in product([False, True], repeat=n):
        S = np.array(inside)
        cut = (S[:, None] & np.r_[True, ~S]).ravel()
        for there in (-1e4 * cut, here - 1e4 * cut, *([1e4 * cut] if single_root and S.all() else [])):
            plane = seen.gradient @ there + seen.entropy
            assert plane <= loss_at(V, there) / n - truth @ there + 1e-8
