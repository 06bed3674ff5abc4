"""Every law on every game, against linear programmes over enumerated vertices."""

from __future__ import annotations

import numpy as np
import pytest
from enumeration import tree_heads
from game_instances import INSTANCES, Instance
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import linprog

from nashlearn import games

TOL = 1e-9
SIMPLEX = [case for case in INSTANCES if case.is_simplex]
every = pytest.mark.parametrize("case", INSTANCES, ids=lambda case: case.id)
simplex_only = pytest.mark.parametrize("case", SIMPLEX, ids=lambda case: case.id)

number = st.one_of(
    st.sampled_from([0.0, 0.0, 0.5, -0.5, 1.0, -1.0, 2.0]),
    st.floats(-4, 4, allow_subnormal=False).map(lambda x: round(x, 6)),
)


def rows(case: Instance, n: int = 2) -> st.SearchStrategy[np.ndarray]:
    return hnp.arrays(np.float64, (n, case.dim), elements=number)


def mixtures(case: Instance) -> st.SearchStrategy[np.ndarray]:
    """Points of the labels' polytope, often with ties and zeros."""
    counts = hnp.arrays(np.int64, len(case.labels), elements=st.integers(0, 3))
    return counts.map(lambda c: (c + (c.sum() == 0)) / (c + (c.sum() == 0)).sum() @ case.labels)


def size(case: Instance, scores: np.ndarray) -> float:
    """What errors are relative to."""
    return 1.0 + np.abs(scores[np.isfinite(scores)]).max(initial=0.0) + np.abs(case.L).max()


def linear_programme(case: Instance, theta: np.ndarray) -> float:
    """``max <theta, q> + v`` with ``v <= <u, L q>`` for each option's vertex ``u``, over mixtures ``q``."""
    ruled_out = np.isneginf(theta)
    allowed = ~((case.labels != 0) & ruled_out).any(axis=1)
    V = case.labels[allowed]
    A = case.options @ case.L @ V.T
    m = len(V)
    best = linprog(
        -np.r_[V @ np.where(ruled_out, 0.0, theta), 1.0],
        A_ub=np.hstack([-A, np.ones((len(A), 1))]),
        b_ub=np.zeros(len(A)),
        A_eq=np.r_[np.ones(m), 0.0][None],
        b_eq=[1.0],
        bounds=[(0, None)] * m + [(None, None)],
        method="highs",
    )
    return -best.fun


def bayes_risk(case: Instance, pi: np.ndarray) -> float:
    return (case.options @ case.L @ pi).min()


@every
@given(data=st.data())
def test_1_gap_and_feasibility(case, data):
    scores = data.draw(rows(case))
    eq = case.game.solve(scores)
    scale = size(case, scores)
    assert (eq.gap >= 0).all() and (eq.gap <= TOL * scale).all()
    certificate = case.game.upper(scores, eq.p) - case.game.lower(scores, eq.q)
    assert (certificate >= -TOL * scale).all() and (certificate <= TOL * scale).all()
    assert (eq.value <= case.game.upper(scores, eq.p) + TOL * scale).all()
    assert (eq.value >= case.game.lower(scores, eq.q) - TOL * scale).all()
    for x, vertices in ((eq.q, case.labels), (eq.p, case.options)):
        ones = np.ones((1, vertices.shape[1]))
        d = data.draw(hnp.arrays(np.float64, (3, vertices.shape[1]), elements=number))
        directions = np.vstack([np.eye(vertices.shape[1]), -np.eye(vertices.shape[1]), ones, -ones, d])
        support = (vertices @ directions.T).max(axis=0)
        assert (x @ directions.T <= support + 1e-12 * (1 + np.abs(support)) * vertices.shape[1]).all()


@every
@settings(max_examples=15)
@given(data=st.data())
def test_2_value_is_the_linear_programme(case, data):
    scores = data.draw(rows(case, 1))
    expected = linear_programme(case, scores[0])
    assert abs(case.game.solve(scores).value[0] - expected) <= TOL * size(case, scores)


@every
@settings(max_examples=10)
@given(data=st.data())
def test_2_a_score_of_minus_infinity_rules_out(case, data):
    scores = data.draw(rows(case, 1))
    kept = data.draw(st.integers(0, len(case.labels) - 1))
    hidden = data.draw(hnp.arrays(np.bool_, case.dim)) & (case.labels[kept] == 0)
    scores[0, hidden] = -np.inf
    eq = case.game.solve(scores)
    scale = size(case, scores)
    assert abs(eq.value[0] - linear_programme(case, scores[0])) <= TOL * scale
    assert 0 <= eq.gap[0] <= TOL * scale
    assert (eq.q[0, hidden] == 0).all()


@every
@given(data=st.data())
def test_3_the_loss_bounds_its_own_prediction(case, data):
    scores = data.draw(rows(case, 1))
    eq = case.game.solve(scores)
    losses = eq.value[0] - case.labels @ scores[0]
    assert (losses >= case.labels @ (case.L.T @ eq.p[0]) - eq.gap[0] - TOL * size(case, scores)).all()
    y = data.draw(st.integers(0, len(case.labels) - 1))
    assert abs(case.game.loss_value(scores, np.array([y]))[0] - losses[y]) <= TOL * size(case, scores)


@every
@given(data=st.data())
def test_4_subgradient(case, data):
    scores = data.draw(rows(case))
    eq = case.game.solve(scores)
    growth = eq.value[1] - eq.value[0]
    assert growth >= eq.q[0] @ (scores[1] - scores[0]) - eq.gap[0] - TOL * size(case, scores)


@every
@given(data=st.data())
def test_5_fisher_consistency(case, data):
    pi = data.draw(mixtures(case))
    risks = case.options @ case.L @ pi
    b = case.options[risks.argmin()]
    value = case.game.solve(-(case.L.T @ b)[None]).value[0]
    assert abs(value + b @ case.L @ pi - risks.min()) <= TOL * size(case, case.L)


@every
@given(data=st.data())
def test_6_the_expected_loss_bounds_the_risk(case, data):
    scores, pi = data.draw(rows(case, 1)), data.draw(mixtures(case))
    expected = case.game.solve(scores).value[0] - scores[0] @ pi
    assert expected >= bayes_risk(case, pi) - TOL * size(case, scores)


@every
@given(data=st.data(), shift=st.sampled_from([1.0, -3.7, 1e6]))
def test_7_shift(case, data, shift):
    scores = data.draw(rows(case))
    moved = case.game.solve(scores + shift * case.level).value - shift
    assert np.abs(moved - case.game.solve(scores).value).max() <= TOL * (size(case, scores) + abs(shift))


@every
@given(data=st.data())
def test_7_relabelling(case, data):
    scores = data.draw(rows(case))
    value = case.game.solve(scores).value
    tol = TOL * size(case, scores)
    if case.symmetry is not None:
        assert np.abs(case.game.solve(scores[:, case.symmetry]).value - value).max() <= tol
    if case.is_simplex:
        order = np.array(data.draw(st.permutations(range(case.dim))))
        assert np.abs(games.cost(case.L[::-1, order]).solve(scores[:, order]).value - value).max() <= tol


@every
@settings(max_examples=10)
@given(data=st.data())
def test_7_batch_is_loop(case, data):
    scores = data.draw(rows(case, 6))
    batch = case.game.solve(scores)
    loop = [case.game.solve(row[None]).value[0] for row in scores]
    assert np.abs(batch.value - loop).max() <= 1e-12 * size(case, scores)


@every
@given(data=st.data())
def test_7_single_precision(case, data):
    scores = data.draw(rows(case)).astype(np.float32)
    single, double = case.game.solve(scores), case.game.solve(scores.astype(np.float64))
    assert {a.dtype for a in (single.value, single.q, single.p, single.gap)} == {np.dtype(np.float32)}
    assert np.abs(single.value - double.value).max() <= 1e-6 * size(case, scores)
    assert (single.gap >= 0).all() and (single.gap <= 1e-5 * size(case, scores)).all()


@every
@settings(max_examples=10)
@given(data=st.data(), c=st.sampled_from([1e-3, 7.0, 1e6, 1e250, 1e-250]))
def test_7_scaling_the_loss_and_the_scores(case, data, c):
    scores = data.draw(rows(case))
    tol = {} if case.is_simplex else {"tol": TOL * min(c, 1.0)}  # the generic solver's is absolute
    scaled = case.scaled(c).solve(c * scores, **tol)
    assert np.abs(scaled.value / c - case.game.solve(scores).value).max() <= TOL * size(case, scores)


@simplex_only
@given(data=st.data())
def test_7_huge_scores(case, data):
    """Scores to 1e300: the loss is a rounding error beside them, and the certificate still holds."""
    huge = st.sampled_from([-1e300, 0.0, 1e300, 1e299])
    scores = data.draw(hnp.arrays(np.float64, (2, case.dim), elements=huge))
    eq = case.game.solve(scores)
    assert np.abs(eq.value - scores.max(axis=1)).max() <= case.L.max()
    assert (eq.gap <= TOL * (1 + case.L.max())).all()
    assert np.abs(eq.p.sum(axis=1) - 1).max() <= 1e-12 and np.abs(eq.q.sum(axis=1) - 1).max() <= 1e-12
    flat = case.game.solve(np.full((1, case.dim), 1e300))
    assert abs(flat.gap[0]) <= TOL * (1 + case.L.max())


@every
def test_not_a_number_and_nothing(case):
    scores = np.zeros((3, case.dim))
    scores[1, -1] = np.nan
    eq = case.game.solve(scores)
    assert np.isnan(eq.value).tolist() == [False, True, False]
    assert np.isnan(eq.q[1]).all() and np.isnan(eq.p[1]).all() and np.isnan(eq.gap[1])
    empty = case.game.solve(np.zeros((0, case.dim)))
    assert empty.q.shape == (0, case.dim) and empty.p.shape == (0, case.options.shape[1])
    assert empty.value.shape == empty.gap.shape == (0,)


def test_numbers_of_trees():
    """Cayley: (n + 1)^(n - 1) rooted at an extra node, n^(n - 1) of them with one arc from it."""
    assert len(tree_heads(3, single_root=False)) == 16
    assert len(tree_heads(3, single_root=True)) == 9
