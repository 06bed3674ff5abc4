"""The interior point method on random polytopes, against linear programmes; the dense solvers it stands on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from scipy.optimize import linprog

from nashlearn.kernels.dense import factor_cholesky, factor_lu, solve_cholesky, solve_lu
from nashlearn.kernels.interior import solve_saddle


class Saddle(NamedTuple):
    """A game, as :func:`solve_saddle` takes it."""

    reward: np.ndarray
    cost: np.ndarray
    weight: np.ndarray
    mu_p: float
    mu_q: float
    row: np.ndarray
    n_rows: int
    first: np.ndarray
    member: np.ndarray
    equality: np.ndarray


def random_game(rng, n_equal, n_more, mu_p=0.0, mu_q=0.0):
    """Rows of entries with random constraints, each with the even point inside; equalities own an entry of no row."""
    sizes = rng.integers(2, 5, rng.integers(3, 6))
    row = np.r_[np.repeat(np.arange(sizes.size), sizes), np.full(n_equal, -1)]
    even = np.r_[np.repeat(1.0 / sizes, sizes), np.zeros(n_equal)]
    incidence = np.zeros((n_equal + n_more, row.size), bool)
    for k in range(n_equal + n_more):
        for e in rng.permutation(sizes.sum()):
            total = even[incidence[k]].sum()
            if total + even[e] < 0.9 if k < n_equal else total < 1.2:
                incidence[k, e] = True
        if k < n_equal:
            incidence[k, sizes.sum() + k] = True
    first = np.r_[0, np.cumsum(incidence.sum(axis=0))]
    member = np.ascontiguousarray(np.nonzero(incidence.T)[1])
    equality = np.arange(n_equal + n_more) < n_equal
    reward, cost, weight = rng.standard_normal(row.size), rng.random(row.size), rng.random(row.size)
    return Saddle(reward, cost, weight, mu_p, mu_q, row, sizes.size, first, member, equality), incidence


def value(game, incidence):
    """``max_q <r, q> + sum y + sum l`` with ``y_row + sum l <= c - W q``: the inner minimum by its dual."""
    m, R, K = game.row.size, game.n_rows, game.equality.size
    rows = (game.row == np.arange(R)[:, None]).astype(float)
    C, e = incidence.astype(float), game.equality
    A_ub = np.vstack(
        [
            np.hstack([np.diag(game.weight), rows.T, C.T]),
            np.hstack([-C[~e], np.zeros(((~e).sum(), R + K))]),
        ]
    )
    A_eq = np.vstack([np.hstack([x, np.zeros((len(x), R + K))]) for x in (rows, C[e])])
    bounds = [(0, None)] * m + [(None, None)] * R + [(None if equal else 0, None) for equal in e]
    best = linprog(
        -np.r_[game.reward, np.ones(R + K)],
        A_ub=A_ub,
        b_ub=np.r_[game.cost, -np.ones((~e).sum())],
        A_eq=A_eq,
        b_eq=np.ones(len(A_eq)),
        bounds=bounds,
        method="highs",
    )
    assert best.status == 0
    return -best.fun


def run(game, tol=1e-10, max_iter=100, start=None):
    m, R, K = game.row.size, max(game.n_rows, 0), game.equality.size
    x, y, lam = start or (np.empty((2, m)), np.empty((2, R)), np.empty((2, K)))
    residual = solve_saddle(*game, tol, max_iter, start is not None, x, y, lam)
    return residual, x, y, lam


def at(game, x):
    p, q = x
    smooth = 0.5 * game.mu_p * p @ p - 0.5 * game.mu_q * q @ q
    return game.reward @ q + game.cost @ p - p @ (game.weight * q) + smooth


KINDS = [(0, 0), (2, 0), (0, 3), (2, 2)]


@pytest.mark.parametrize(("n_equal", "n_more"), KINDS)
def test_the_value_is_the_linear_programme(n_equal, n_more):
    rng = np.random.default_rng(0)
    for _ in range(10):
        game, incidence = random_game(rng, n_equal, n_more)
        residual, x, _, _ = run(game)
        assert residual <= 1e-10
        assert abs(at(game, x) - value(game, incidence)) <= 1e-8
        sums = x @ incidence.T
        assert (sums >= 1 - 1e-9).all() and np.abs(sums[:, game.equality] - 1).max(initial=0.0) <= 1e-9
        assert (x >= 0).all()


@pytest.mark.parametrize(("n_equal", "n_more"), KINDS)
def test_potentials_prove_optimality_of_the_smoothed_game(n_equal, n_more):
    rng = np.random.default_rng(1)
    for _ in range(5):
        game, incidence = random_game(rng, n_equal, n_more, mu_p=0.2, mu_q=0.1)
        residual, x, y, lam = run(game)
        assert residual <= 1e-10
        p, q = x
        paid = np.where(game.row >= 0, y[:, game.row], 0.0) + lam @ incidence
        slack = np.array([0.2 * p - game.weight * q + game.cost, 0.1 * q + game.weight * p - game.reward]) - paid
        assert slack.min() >= -1e-9 and (slack * x).sum() <= 1e-8
        assert lam[:, ~game.equality].min(initial=0.0) >= 0
        assert np.abs(lam * (x @ incidence.T - 1)).max(initial=0.0) <= 1e-8


def test_a_start_changes_nothing_but_the_way():
    game, _ = random_game(np.random.default_rng(2), 1, 2)
    _, x, y, lam = run(game)
    residual, again, _, _ = run(game, start=(x.copy(), y, lam))
    assert residual <= 1e-10 and abs(at(game, again) - at(game, x)) <= 1e-9


def test_too_few_iterations_are_told():
    game, _ = random_game(np.random.default_rng(3), 1, 2)
    residual, x, _, _ = run(game, max_iter=3)
    assert 1e-10 < residual < np.inf and np.isfinite(x).all()
    assert run(game, max_iter=0)[0] == np.inf


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("row", lambda row: np.where(np.arange(row.size) == 2, 99, row)),
        ("row", lambda row: row - 2),
        ("first", lambda first: first[::-1].copy()),
        ("first", lambda first: first + 1),
        ("member", lambda member: member + 9),
        ("reward", lambda reward: reward[1:]),
        ("weight", lambda weight: weight.astype(np.float32)),
        ("equality", lambda equality: equality.astype(float)),
        ("mu_q", lambda mu: -1.0),
        ("n_rows", lambda n: -1),
    ],
)
def test_games_that_are_none_are_refused(field, change):
    game, _ = random_game(np.random.default_rng(3), 1, 2)
    with pytest.raises(ValueError, match=field):
        run(game._replace(**{field: change(getattr(game, field))}))


@pytest.mark.parametrize("n", [1, 2, 9, 10])
def test_dense_solvers(n):
    rng = np.random.default_rng(n)
    A, b = rng.standard_normal((n, n)), rng.standard_normal(n)
    A[0, 0] *= n == 1  # without pivoting there is no first step
    factors, pivot, x = A.copy(), np.empty(n, np.intp), b.copy()
    assert factor_lu(factors, pivot)
    solve_lu(factors, pivot, x)
    assert np.abs(A @ x - b).max() <= 1e-11
    x = b.copy()
    solve_lu(factors, pivot, x, True)
    assert np.abs(A.T @ x - b).max() <= 1e-11
    singular = A.copy()
    singular[:, n // 2] = 0.0
    assert not factor_lu(singular, pivot)
    S, x = A @ A.T + np.eye(n), b.copy()
    factor = np.empty((n, n))
    assert factor_cholesky(S, factor, 0, n // 2, 0.0) == n // 2 and factor_cholesky(S, factor, n // 2, n, 0.0) == n
    solve_cholesky(factor, n, x)
    assert np.abs(S @ x - b).max() <= 1e-11
    S[n // 2] = S[:, n // 2] = 0.0
    assert factor_cholesky(S, S, 0, n, 0.0) == n // 2
