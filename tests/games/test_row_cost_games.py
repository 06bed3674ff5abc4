"""The game of a cost matrix for each row is the games of these matrices, whatever is asked of it and in which pieces.

That it obeys the laws of games is in ``test_laws.py`` and others: the cases ``row_costs-*`` of ``shipped_games.py``.
"""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import nashlearn.games.rows.game as rows_module
from nashlearn import games
from nashlearn.games.rows.cost import CostGame
from nashlearn.games.rows.row_costs import RowCostGame, row_cost_params
from nashlearn.kernels.loss import certify_rows, gain_rows, risk_rows, solve_rows
from nashlearn.kernels.newton import packed_turns, smoothed_rows
from nashlearn.kernels.tangents import packed_tangents
from nashlearn.kernels.tempered import turn_rows
from nashlearn.solvers.matrix_game import cost_params

seeds = st.integers(0, 2**32 - 1)
shapes = st.tuples(st.integers(1, 5), st.integers(1, 5))
N = 7


def drawn(seed: int, shape: tuple[int, int], sign: bool = False):
    """Matrices of all sizes, ties and zeros among them, and scores in their units."""
    rng = np.random.default_rng(seed)
    costs = rng.random((N, *shape)) - (0.5 if sign else 0.0)
    costs[1] = rng.integers(0, 2, shape)
    costs[2] = 0.0
    size = 10.0 ** rng.uniform(-3, 2, N)
    costs *= size[:, None, None]
    scores = rng.normal(size=(N, shape[1])) * size[:, None]
    return rng, costs, scores, RowCostGame(row_cost_params(costs, np.ones(N)))


def _game(L):
    """That of one matrix of any sign."""
    return CostGame(cost_params(L), L.shape[1], L.shape[0])


def each(costs):
    """The losses of the matrices, one by one."""
    return [cost_params(one).compiled() for one in costs]


@given(seed=seeds, shape=shapes, share=st.sampled_from([0.0, 1e-3, 0.1, 1.0, 100.0]), sign=st.booleans())
def test_values_are_those_of_each_row_alone(seed, shape, share, sign):
    _, costs, scores, game = drawn(seed, shape, sign)
    mu = share * game.largest
    found = game.equilibria(scores, mu)
    alone = np.array([_game(L).equilibria(scores[i : i + 1], mu).value[0] for i, L in enumerate(costs)])
    assert np.abs(found.value - alone).max() <= 1e-11 * (game.largest + mu)
    assert found.gap.max() <= 1e-9 * game.largest
    if mu == 0.0:
        upper = np.array([_by_programme(L, theta) for L, theta in zip(costs, scores, strict=True)])
        assert np.abs(found.value - upper).max() <= 1e-8 * game.largest


def _by_programme(L, theta) -> float:
    """``min t`` with ``t >= theta_j + <p, L_j>``."""
    options, k = L.shape
    return linprog(
        np.r_[np.zeros(options), 1.0], np.hstack([L.T, -np.ones((k, 1))]), -theta,
        np.r_[np.ones(options), 0.0][None], [1.0], bounds=[(0, None)] * options + [(None, None)],
    ).fun  # fmt: skip


@given(seed=seeds, shape=shapes)
def test_parts_are_the_rows_that_they_name(seed, shape):
    rng, costs, scores, game = drawn(seed, shape)
    factors = rng.random(N)
    shared = games.row_costs(costs[0], factors)
    for whole in (game, shared):
        found = whole.solve(scores, smoothing=0.3 * whole.largest)
        for rows in (slice(0, 0), slice(2, 5), slice(3, 4), np.array([4, 0, 4]), np.array([], dtype=int)):
            part = whole.part(rows)
            assert np.array_equal(part.costs, whole.costs[rows]) and part.largest == whole.largest
            value = part.solve(scores[rows], smoothing=0.3 * whole.largest).value
            assert np.abs(value - found.value[rows]).max(initial=0.0) <= 1e-12 * whole.largest
    assert np.allclose(shared.costs, factors[:, None, None] * costs[0])
    explicit = games.row_costs(shared.costs).solve(scores)
    assert np.abs(shared.solve(scores).value - explicit.value).max() <= 1e-12 * (1 + game.largest)


@given(seed=seeds, shape=shapes)
def test_what_kernels_say_of_rows_is_what_they_say_of_each(seed, shape):
    """Costs of strategies, risks, turns, proximal steps and tangents."""
    rng, costs, scores, game = drawn(seed, shape)
    options, k = shape
    loss, mu = game.params.compiled(), 0.3 * game.largest
    p, q = rng.dirichlet(np.ones(options), N), rng.dirichlet(np.ones(k), N)
    found, alone = np.empty((N, k)), np.empty((N, k))
    gain_rows(loss, p, found)
    assert np.allclose(found, np.einsum("ia,iaj->ij", p, costs), rtol=0, atol=1e-13 * game.largest)
    risks = np.empty(N)
    risk_rows(loss, q, risks)
    assert np.allclose(risks, np.einsum("iaj,ij->ia", costs, q).min(axis=1), rtol=0, atol=1e-12 * game.largest)
    eq = game.solve(scores, smoothing=mu)
    found[:] = alone[:] = rng.normal(size=(N, k))
    turn_rows(loss, mu, eq.q, eq.p, found)
    for i, one in enumerate(each(costs)):
        turn_rows(one, mu, eq.q[i : i + 1], eq.p[i : i + 1], alone[i : i + 1])
    assert np.allclose(found, alone, rtol=0, atol=1e-11 / mu)
    order, size = rng.permutation(N), k * (k + 1) // 2
    packed, omega = np.empty((size, N)), rng.random(N)
    packed_turns(loss, mu, omega, eq.q, eq.p, order, packed)
    for column, i in enumerate(order):
        J = omega[i] * np.eye(k)
        turn_rows(each(costs)[i], mu, np.repeat(eq.q[i : i + 1], k, axis=0), np.repeat(eq.p[i : i + 1], k, axis=0), J)
        assert np.allclose(packed[:, column], J.T[np.tril_indices(k)], rtol=0, atol=1e-11 / mu)
    _assert_steps(rng, costs, scores, loss, mu, order)


def _assert_steps(rng, costs, scores, loss, mu, order):
    (options, k), n = costs.shape[1:], N
    Y, centre, omega = np.eye(k)[rng.integers(0, k, n)], rng.dirichlet(np.ones(k), n), rng.random(n)
    Q, tight = centre.copy(), np.empty((n, options), np.bool_)
    total = smoothed_rows(loss, scores, Y, omega, mu, centre, Q, tight)
    alone = 0.0
    packed, active = np.empty((k * (k + 1) // 2, n)), np.empty(n, np.intp)
    count = packed_tangents(loss, mu, omega, Q, tight, order, packed, active)
    for i, one in enumerate(each(costs)):
        row, q, marks = slice(i, i + 1), centre[i : i + 1].copy(), np.empty((1, options), np.bool_)
        alone += smoothed_rows(one, scores[row], Y[row], omega[row], mu, centre[row], q, marks)
        assert np.allclose(Q[i], q[0], rtol=0, atol=1e-9)
        own, whose = np.empty((len(packed), 1)), np.empty(1, np.intp)
        if packed_tangents(one, mu, omega[row], Q[row], tight[row], np.zeros(1, np.intp), own, whose):
            assert np.allclose(packed[:, :count][:, active[:count] == i], own, rtol=0, atol=1e-9 / mu)
        else:
            assert i not in active[:count]
    assert abs(total - alone) <= 1e-10 * (abs(alone) + mu)


@given(seed=seeds, shape=shapes)
def test_strategies_that_are_no_equilibrium_have_their_true_gap(seed, shape):
    rng, costs, scores, game = drawn(seed, shape)
    p, q = rng.dirichlet(np.full(shape[0], 0.3), N), rng.dirichlet(np.full(shape[1], 0.3), N)
    gap, risk = np.empty((2, N))
    certify_rows(game.params.compiled(), scores, q, p, gap, risk)
    upper = (scores + np.einsum("ia,iaj->ij", p, costs)).max(axis=1)
    lower = np.einsum("ij,ij->i", scores, q) + np.einsum("iaj,ij->ia", costs, q).min(axis=1)
    assert np.allclose(gap, upper - lower, rtol=0, atol=1e-12 * (1 + game.largest))
    assert np.allclose(game.upper(scores, p), upper) and np.allclose(game.lower(scores, q), lower)
    assert np.allclose(game.task_loss(p, q), np.einsum("ia,iaj,ij->i", p, costs, q))


@pytest.mark.parametrize("smoothing", [0.0, 0.4])
def test_rows_keep_their_costs_in_pieces_of_threads(smoothing, monkeypatch):
    rng, n = np.random.default_rng(0), 200
    game, scores = games.row_costs(rng.random((n, 3, 4))), rng.normal(size=(n, 4))
    whole = game.solve(scores, smoothing=smoothing)
    monkeypatch.setattr(rows_module, "_PIECE", 16)
    assert np.array_equal(game.solve(scores, smoothing=smoothing, n_jobs=2).value, whole.value)
    assert np.array_equal(game.solve(scores.astype(np.float32), smoothing=smoothing).p.argmax(1), whole.p.argmax(1))


def test_calls_at_the_same_time_do_not_move_each_others_rows():
    """One compiled loss in several threads: every call goes from row to row by itself."""
    rng, n = np.random.default_rng(0), 20_000
    game, scores = games.row_costs(rng.random((n, 3, 3))), rng.normal(size=(n, 3))
    loss, right = game.params.compiled(), game.solve(scores)

    def values(_):
        value, gap, risk = np.empty((3, n))
        solve_rows(loss, scores, value, np.empty((n, 3)), np.empty((n, 3)), gap, risk)
        return np.array_equal(value, right.value)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(values, range(8)))


def test_a_pickled_game_and_loss_play_alike():
    rng = np.random.default_rng(0)
    game, scores = games.row_costs(rng.random((5, 2, 3)), rng.random(5)), rng.normal(size=(5, 3))
    again = pickle.loads(pickle.dumps(game))
    assert np.array_equal(again.solve(scores).value, game.solve(scores).value)
    q, one, other = rng.dirichlet(np.ones(3), 5), np.empty(5), np.empty(5)
    risk_rows(game.params.compiled(), q, one)
    risk_rows(pickle.loads(pickle.dumps(game.params.compiled())), q, other)
    assert np.array_equal(one, other)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda C: games.row_costs(C[0]), "costs must have shape (n, options, labels); got (2, 3)"),
        (lambda C: games.row_costs(C[:, :, :0]), "costs must have shape (n, options, labels); got (4, 2, 0)"),
        (lambda C: games.row_costs("costs"), "costs must be numbers of shape (n, options, labels)"),
        (lambda C: games.row_costs(C * [[[1]], [[1]], [[np.nan]], [[1]]]), "costs must be finite; row 2 holds nan"),
        (lambda C: games.row_costs(C / [[[1]], [[0]], [[0]], [[1]]]), "costs must be finite; row 1 holds inf"),
        (lambda C: games.row_costs(C * [[[1]], [[1]], [[1]], [[-1]]]), "costs must be not negative; row 3 holds -1"),
        (lambda C: games.row_costs(C, np.ones(3)), "factors must have shape (4,); got (3,)"),
        (lambda C: games.row_costs(C[0], [1.0, -2.0]), "factors must be not negative; row 1 holds -2"),
        (lambda C: games.row_costs(C[0], [[1.0]]), "factors must have shape (n,); got (1, 1)"),
        (lambda C: games.row_costs(C).solve(np.zeros((3, 3))), "one row for each of the 4 rows of costs; got 3"),
        (lambda C: games.row_costs(C).upper(np.zeros((3, 3)), np.zeros((3, 2))), "4 rows have costs of their own"),
        (lambda C: games.row_costs(C).risk(np.zeros((3, 3))), "the loss has costs for 4 rows; got 3"),
    ],
)  # fmt: skip
def test_bad_costs_are_refused_by_name(make, message):
    with np.errstate(divide="ignore"), pytest.raises(ValueError) as error:
        make(np.ones((4, 2, 3)))
    assert message in str(error.value)
