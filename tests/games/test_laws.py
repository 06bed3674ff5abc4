"""Every law on every game, through what each game offers, against linear programmes over enumerated vertices."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from cases import Case, law_on, linear_programme, mixtures, number, rows, scores, strategies
from enumeration import tree_heads
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from shipped_games import SHIPPED, SIMPLEX
from sklearn.exceptions import ConvergenceWarning

from nashlearn import games
from nashlearn.game import Game, flat
from nashlearn.solvers import double_oracle

every = pytest.mark.parametrize("case", SHIPPED, ids=lambda case: case.id)
law = law_on(SHIPPED)
seeds = st.integers(0, 2**32 - 1)


def solved(case: Case, theta: np.ndarray, **options):
    """The equilibrium at flat scores, with flat strategies."""
    eq = case.game.solve(case.shaped(theta), **options)
    return eq, flat(eq.q), flat(eq.p)


def option(case: Case, p: np.ndarray) -> np.ndarray:
    return p.reshape(len(p), *case.game.option_shape)


def slack(case: Case, theta: np.ndarray) -> float:
    return case.tol * case.size(theta)


@every
def test_the_loss_and_the_vertices_are_those_of_the_definition(case):
    """Of all pairs of vertices, and of all labels by their names."""
    game = case.game
    U, V = np.repeat(case.options, len(case.labels), axis=0), np.tile(case.labels, (len(case.options), 1))
    found = game.task_loss(option(case, U), case.shaped(V)).reshape(len(case.options), -1)
    assert np.abs(found - case.cost(case.options, case.labels)).max() <= 1e-12 * case.size(case.L)
    assert (flat(game.vertex(np.asarray(case.names))) == case.labels).all()


@law()
def test_the_best_label_is_that_of_enumeration(case, data):
    theta = data.draw(rows(case))
    best = flat(case.game.vertex(case.game.argmax(case.shaped(theta))))
    earned, most = np.einsum("ij,ij->i", theta, best), (theta @ case.labels.T).max(axis=1)
    assert np.abs(earned - most).max() <= 1e-12 * case.size(theta) * case.dim


@law(examples=12)
def test_0_both_sides_are_those_of_enumeration(case, data):
    """For strategies that are no equilibrium; a relaxed game's adversary may have more than is listed."""
    rng = np.random.default_rng(data.draw(seeds))
    theta = scores(case, rng)
    rounding = (1e-11 if case.exact else 1e-7) * case.size(theta) * case.dim
    for p, q in (strategies(case, rng), linear_programme(case, scores(case, rng))[1:]):
        game, one = case.game, case.shaped(theta[None])
        upper, lower = game.upper(one, option(case, p[None]))[0], game.lower(one, case.shaped(q[None]))[0]
        risk = game.risk(case.shaped(q[None]))[0]
        assert abs(risk - case.risk(q)) <= rounding
        assert abs(lower - theta @ q - case.risk(q)) <= rounding
        assert upper >= case.upper(theta, p) - rounding
        assert upper <= case.upper(theta, p) + rounding or not case.exact


@law()
def test_1_gap_and_feasibility(case, data):
    theta = data.draw(rows(case))
    (eq, q, p), tol, one = solved(case, theta), slack(case, theta), case.shaped(theta)
    assert (eq.gap >= 0).all() and (eq.gap <= tol).all()
    upper, lower = case.game.upper(one, eq.p), case.game.lower(one, eq.q)
    assert (np.abs(upper - lower) <= tol).all()
    assert (eq.value <= upper + tol).all() and (eq.value >= lower - tol).all()
    rounding = 1e-9 * case.size(theta) * case.dim
    assert all(eq.gap[i] >= case.gap(theta[i], p[i], q[i]) - rounding for i in range(len(theta)))
    for x, vertices in ((p, case.options), (q, case.labels))[: 1 + case.exact]:
        d = data.draw(hnp.arrays(np.float64, (3, vertices.shape[1]), elements=number))
        ones = np.ones((1, vertices.shape[1]))
        directions = np.vstack([np.eye(vertices.shape[1]), -np.eye(vertices.shape[1]), ones, -ones, d])
        support = (vertices @ directions.T).max(axis=0)
        outside = max(1e-12, 1e-3 * case.tol if case.tol > 1e-9 else 0.0) * vertices.shape[1]
        assert (x @ directions.T <= support + outside * (1 + np.abs(support))).all()


@law()
def test_1_entropy_is_the_value_without_the_scores(case, data):
    theta = data.draw(rows(case))
    eq, q, _ = solved(case, theta)
    rounding = 1e-12 * case.size(theta) * case.dim
    assert np.abs(eq.value - np.einsum("ij,ij->i", theta, q) - eq.entropy).max() <= max(rounding, 1e-3 * case.tol)
    assert np.abs(eq.entropy - case.game.risk(eq.q, case.shaped(theta))).max() <= max(rounding, case.tol)
    assert (eq.risk == eq.entropy).all()


@law(examples=15)
def test_2_value_is_the_linear_programme(case, data):
    theta = data.draw(rows(case, 1))
    value, expected = solved(case, theta)[0].value[0], linear_programme(case, theta[0])[0]
    assert value >= expected - slack(case, theta)
    assert value <= expected + slack(case, theta) or not case.exact


def ruled_out(case: Case, data) -> tuple[np.ndarray, np.ndarray]:
    """Scores of one instance, some ``-inf``, that leave a label, and where they are."""
    theta = data.draw(rows(case, 1))
    kept = data.draw(st.integers(0, len(case.labels) - 1))
    hidden = data.draw(hnp.arrays(np.bool_, case.dim)) & (case.labels[kept] == 0)
    theta[0, hidden] = -np.inf
    return theta, hidden


@law(examples=10)
def test_2_a_score_of_minus_infinity_rules_out(case, data):
    theta, hidden = ruled_out(case, data)
    (eq, q, _), tol = solved(case, theta), slack(case, theta)
    expected = linear_programme(case, theta[0])[0]
    assert eq.value[0] >= expected - tol and (eq.value[0] <= expected + tol or not case.exact)
    assert 0 <= eq.gap[0] <= tol
    assert (q[0, hidden] == 0).all()


@law(examples=10)
def test_2_the_double_oracle_obeys_minus_infinity(case, data):
    """Also from vertices that other scores allowed."""
    theta, hidden = ruled_out(case, data)
    before = double_oracle.solve(case.game, case.shaped(data.draw(rows(case, 1))))
    eq, value = double_oracle.solve(case.game, case.shaped(theta), start=before), solved(case, theta)[0].value
    assert abs(eq.value[0] - value[0]) <= slack(case, theta)
    assert (flat(eq.q)[0, hidden] == 0).all()


@law()
def test_3_the_loss_bounds_its_own_prediction(case, data):
    theta = data.draw(rows(case, 1))
    (eq, _, p), tol = solved(case, theta), slack(case, theta)
    losses = eq.value[0] - case.labels @ theta[0]
    assert (losses >= case.cost(p, case.labels)[0] - eq.gap[0] - tol).all()
    y = data.draw(st.integers(0, len(case.labels) - 1))
    assert abs(case.game.loss_value(case.shaped(theta), case.label(y))[0] - losses[y]) <= tol


@law()
def test_4_subgradient(case, data):
    theta = data.draw(rows(case))
    eq, q, _ = solved(case, theta)
    growth = eq.value[1] - eq.value[0]
    assert growth >= q[0] @ (theta[1] - theta[0]) - eq.gap[0] - slack(case, theta)


@law()
def test_5_fisher_consistency(case, data):
    """``F(-L'b) + <b, L pi> = min_p <p, L pi>`` for a best option ``b``; what an affine loss adds to it counts."""
    pi = data.draw(mixtures(case))
    costs = case.cost(case.options, pi[None])[:, 0]
    b = case.options[costs.argmin()]
    ends = case.cost(b[None], np.vstack([np.zeros((1, case.dim)), np.eye(case.dim)]))[0]
    value = solved(case, -(ends[1:] - ends[0])[None])[0].value[0] - ends[0]
    assert abs(value + costs.min() - costs.min()) <= slack(case, case.L)


@law()
def test_6_the_expected_loss_bounds_the_risk(case, data):
    theta, pi = data.draw(rows(case, 1)), data.draw(mixtures(case))
    expected = solved(case, theta)[0].value[0] - theta[0] @ pi
    assert expected >= case.risk(pi) - slack(case, theta)


@law(on=[case for case in SHIPPED if case.level is not None], examples=10)
def test_7_shift(case, data):
    shift = data.draw(st.sampled_from([1.0, -3.7, 1e6]))
    theta = data.draw(rows(case))
    moved = solved(case, theta + shift * case.level)[0].value - shift
    assert np.abs(moved - solved(case, theta)[0].value).max() <= case.tol * (case.size(theta) + abs(shift))


@law(on=[case for case in SHIPPED if case.symmetry is not None])
def test_7_relabelling(case, data):
    theta = data.draw(rows(case))
    value = solved(case, theta)[0].value
    assert np.abs(solved(case, theta[:, case.symmetry])[0].value - value).max() <= slack(case, theta)


@law(on=SIMPLEX)
def test_7_any_order_of_a_cost_matrix(case, data):
    theta = data.draw(rows(case))
    order = np.array(data.draw(st.permutations(range(case.dim))))
    turned = games.cost(case.L[::-1, order]).solve(theta[:, order]).value
    assert np.abs(turned - solved(case, theta)[0].value).max() <= slack(case, theta)


@law(examples=10)
def test_7_batch_is_loop(case, data):
    theta = data.draw(rows(case, 6))
    loop = [solved(case, row[None])[0].value[0] for row in theta]
    rounding = 1e-12 if case.tol <= 1e-9 else 1e-2 * case.tol
    assert np.abs(solved(case, theta)[0].value - loop).max() <= rounding * case.size(theta)


@law(examples=10)
def test_7_threads_and_starts_change_no_value(case, data):
    theta = data.draw(rows(case, 3))
    near = theta + 0.1 * data.draw(rows(case, 3))
    alone, several = solved(case, near)[0], solved(case, near, n_jobs=2)[0]
    assert (alone.value == several.value).all() and (alone.gap == several.gap).all()
    begun = solved(case, near, start=solved(case, theta)[0])[0]
    assert np.abs(begun.value - alone.value).max() <= slack(case, near)
    assert (begun.gap <= slack(case, near)).all()


@law(examples=10)
def test_7_the_double_oracle_agrees(case, data):
    theta = data.draw(rows(case, 1))
    found = double_oracle.solve(case.game, case.shaped(theta))
    assert abs(found.value[0] - solved(case, theta)[0].value[0]) <= slack(case, theta)
    assert 0 <= found.gap[0] <= slack(case, theta)


@law(examples=10)
def test_7_single_precision(case, data):
    theta = data.draw(rows(case)).astype(np.float32)
    single, double = solved(case, theta)[0], solved(case, theta.astype(np.float64))[0]
    arrays = (single.value, single.q, single.p, single.gap, single.entropy, single.risk)
    assert {a.dtype for a in arrays} == {np.dtype(np.float32)}
    tol = max(case.tol, 1e-6) * case.size(theta)
    assert np.abs(single.value - double.value).max() <= tol
    assert (single.gap >= 0).all() and (single.gap <= 10 * tol).all()


@law(examples=10)
def test_7_scaling_the_loss_and_the_scores(case, data):
    c = data.draw(st.sampled_from([1e-3, 7.0, 1e6, 1e250, 1e-250]))
    theta = data.draw(rows(case))
    if case not in SIMPLEX:
        c = min(max(c, 1e-3), 1e6)  # what tolerances are made for
    game = Game(case.game.labels, case.game.options, c * case.L) if case.scaled is None else case.scaled(c)
    tol = {} if case in SIMPLEX else {"tol": 1e-9 * min(c, 1.0)}
    scaled = game.solve(c * case.shaped(theta), **tol)
    assert np.abs(scaled.value / c - solved(case, theta)[0].value).max() <= slack(case, theta)


@law(on=SIMPLEX)
def test_7_huge_scores(case, data):
    """Scores to 1e300: the loss is a rounding error beside them, and the certificate still holds."""
    huge = st.sampled_from([-1e300, 0.0, 1e300, 1e299])
    theta = data.draw(hnp.arrays(np.float64, (2, case.dim), elements=huge))
    eq = case.game.solve(theta)
    assert np.abs(eq.value - theta.max(axis=1)).max() <= case.L.max()
    assert (eq.gap <= 1e-9 * (1 + case.L.max())).all()
    assert np.abs(eq.p.sum(axis=1) - 1).max() <= 1e-12 and np.abs(eq.q.sum(axis=1) - 1).max() <= 1e-12
    assert abs(case.game.solve(np.full((1, case.dim), 1e300)).gap[0]) <= 1e-9 * (1 + case.L.max())


@every
def test_not_a_number_and_nothing(case):
    """NaN is refused, or gives NaN in its own instance; no instances give none."""
    theta = np.zeros((3, case.dim))
    theta[1, 0] = np.nan
    try:
        eq, q, p = solved(case, theta)
    except ValueError as refusal:
        assert "NaN" in str(refusal)
    else:
        assert np.isnan(eq.value).tolist() == [False, True, False]
        assert np.isnan(q[1]).all() and np.isnan(p[1]).all() and np.isnan(eq.gap[1]) and np.isnan(eq.entropy[1])
    empty = case.game.solve(np.zeros((0, *case.game.shape)))
    assert empty.q.shape == (0, *case.game.shape) and empty.p.shape == (0, *case.game.option_shape)
    assert empty.value.shape == empty.gap.shape == empty.entropy.shape == empty.risk.shape == (0,)


@every
def test_a_label_too_few_is_refused(case):
    theta = np.zeros((2, *case.game.shape))
    with pytest.raises(ValueError, match="y must"):
        case.game.loss_value(theta, case.label(0))


@law(examples=8)
def test_a_double_oracle_that_is_stopped_knows_its_gap(case, data):
    rng = np.random.default_rng(data.draw(seeds))
    max_iter = data.draw(st.integers(1, 3))
    theta = np.array([scores(case, rng) for _ in range(2)])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        eq = double_oracle.solve(case.game, case.shaped(theta), tol=1e-9, max_iter=max_iter)
    rounding = 1e-11 * case.size(theta) * case.dim
    for i, (p, q) in enumerate(zip(flat(eq.p), flat(eq.q), strict=True)):
        true = case.gap(theta[i], p, q)
        assert eq.gap[i] >= true - rounding and (eq.gap[i] <= true + rounding or not case.exact)
        assert abs(eq.value[i] - theta[i] @ q - case.risk(q)) <= rounding
    missed = (eq.gap > 1e-9 * np.maximum(1.0, np.abs(eq.value))).any()
    assert [w.category for w in caught] == [ConvergenceWarning] * int(missed)


def test_a_stopped_double_oracle_has_gaps_to_report():
    """Else the test above would say nothing."""
    rng = np.random.default_rng(0)
    game = Game(games.Simplex(6), games.Simplex(6), rng.random((6, 6)))
    with pytest.warns(ConvergenceWarning, match="stopped at a gap"):
        assert double_oracle.solve(game, 0.1 * rng.normal(size=(3, 6)), max_iter=1).gap.min() > 0.05


def test_numbers_of_trees():
    """Cayley: (n + 1)^(n - 1) rooted at an extra node, n^(n - 1) of them with one arc from it."""
    assert len(tree_heads(3, single_root=False)) == 16
    assert len(tree_heads(3, single_root=True)) == 9


def _strided(x: np.ndarray) -> np.ndarray:
    return np.repeat(x, 2, axis=-1)[..., ::2]


def _locked(x: np.ndarray) -> np.ndarray:
    x = x.copy()
    x.flags.writeable = False
    return x


def _not_aligned(x: np.ndarray) -> np.ndarray:
    return np.frombuffer(b"\0" + x.tobytes(), dtype=np.uint8)[1:].view(x.dtype).reshape(x.shape)


def _swapped(x: np.ndarray) -> np.ndarray:
    return x.astype(x.dtype.newbyteorder())


@pytest.mark.parametrize("lay", [np.asfortranarray, _strided, _locked, _not_aligned, _swapped])
@pytest.mark.parametrize("case", SHIPPED, ids=lambda case: case.id)
def test_arrays_of_any_layout(case, lay):
    """Scores and strategies may lie in memory as they like, and are not written to."""
    scores = case.shaped(np.random.default_rng(0).normal(size=(2, case.dim)))
    for smoothing in (0.0, 0.5) if case.game.smooths else (0.0,):
        right = case.game.solve(scores, smoothing=smoothing)
        found = case.game.solve(lay(scores), smoothing=smoothing)
        assert np.array_equal(found.value, right.value)
        assert np.allclose(case.game.upper(lay(scores), lay(right.p)), case.game.upper(scores, right.p), atol=1e-12)
        assert np.allclose(case.game.lower(lay(scores), lay(right.q)), case.game.lower(scores, right.q), atol=1e-12)
    assert np.array_equal(case.game.argmax(lay(scores)), case.game.argmax(scores))
    y = np.concatenate([case.label(0), case.label(-1 % len(case.labels))])
    assert np.allclose(case.game.loss_value(lay(scores), lay(y) if y.ndim > 1 else y), case.game.loss_value(scores, y))
