"""Tempered games of cost matrices, against conic programmes and the duality gap, recomputed from the matrix itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from saddle_reference import Part, objective
from scipy.special import logsumexp, rel_entr, softmax, xlogy

from nashlearn.game import Equilibrium
from nashlearn.games.rows.cost import CostGame, cost_params
from nashlearn.kernels.tempered import turn_rows

AMOUNTS = [1e-4, 1e-3, 1e-2, 0.1, 0.3, 1.0, 10.0, 1e3]  # of entropy, over the largest cost


def lognormal(rng: np.random.Generator, options: int, k: int) -> np.ndarray:
    return rng.lognormal(0.0, 1.5, (options, k)) * (1.0 - np.eye(options, k))


def few_values(rng: np.random.Generator, options: int, k: int) -> np.ndarray:
    return rng.integers(0, 4, (options, k)).astype(float)


def repeated(rng: np.random.Generator, options: int, k: int) -> np.ndarray:
    """Every option twice."""
    return few_values(rng, (options + 1) // 2, k).repeat(2, axis=0)[:options]


def dominated(rng: np.random.Generator, options: int, k: int) -> np.ndarray:
    """The last option always costs more than the first, the one in the middle is a mixture of both."""
    L = rng.random((options, k))
    L[-1] = L[0] + 0.1
    L[options // 2] = 0.5 * (L[0] + L[-1])
    return L


def low_rank(rng: np.random.Generator, options: int, k: int) -> np.ndarray:
    """Options of which any four depend on each other."""
    return rng.random((options, 2)) @ rng.random((2, k))


def nearly_repeated(rng: np.random.Generator, options: int, k: int) -> np.ndarray:
    L = rng.random((options, k))
    L[options // 2 :] = L[: options - options // 2] + 1e-9 * rng.random((options - options // 2, k))
    return L


def many_sizes(rng: np.random.Generator, options: int, k: int) -> np.ndarray:
    return rng.random((options, k)) * 10.0 ** rng.integers(-8, 1, (options, k))


def any_sign(rng: np.random.Generator, options: int, k: int) -> np.ndarray:
    return rng.standard_normal((options, k))


def free_option(rng: np.random.Generator, options: int, k: int) -> np.ndarray:
    L = lognormal(rng, options, k)
    L[0] = 0.0
    return L


def nothing_costs(rng: np.random.Generator, options: int, k: int) -> np.ndarray:
    return np.zeros((options, k))


KINDS = [
    lognormal, few_values, repeated, dominated, low_rank, nearly_repeated, many_sizes, any_sign, free_option,
    nothing_costs,
]  # fmt: skip


def game_of(L: np.ndarray) -> CostGame:
    return CostGame(cost_params(L), L.shape[1], L.shape[0])


def largest(L: np.ndarray) -> float:
    return float(np.abs(L).max()) or 1.0


def scores_for(rng: np.random.Generator, L: np.ndarray, m: float, n: int) -> np.ndarray:
    """Rows from nearly 0 to far beyond the costs; some have ties, some rule labels out."""
    scores = rng.standard_normal((n, L.shape[1])) * 10.0 ** rng.uniform(-2.0, 1.5, (n, 1)) * rng.choice([1.0, 1.0 + m])
    scores[::5] = np.round(scores[::5])
    out = rng.random(scores.shape) < 0.3
    out[:, rng.integers(L.shape[1])] = False
    out[np.arange(n) % 4 != 3] = False
    return np.where(out, -np.inf, scores) * largest(L)


def gap_of(L: np.ndarray, scores: np.ndarray, mu: float, eq: Equilibrium) -> np.ndarray:
    """What the best reply to ``p`` gets beyond what ``q`` secures, over the size of the numbers.

    Relative to the largest score, whose digits would hide it.
    """
    f = scores - scores.max(axis=1, keepdims=True)
    upper = mu * logsumexp((f + eq.p @ L) / mu, axis=1)
    earned = (np.where(eq.q > 0.0, f, 0.0) * eq.q).sum(axis=1)
    lower = earned + (eq.q @ L.T).min(axis=1) - mu * xlogy(eq.q, eq.q).sum(axis=1)
    return (upper - lower) / (largest(L) + mu)


def check(L: np.ndarray, scores: np.ndarray, mu: float, eq: Equilibrium) -> None:
    """``p`` and ``q`` are strategies, ``q`` is the reply to ``p``, and the gap is closed and told."""
    s = largest(L)
    assert (eq.p >= 0.0).all() and np.abs(eq.p.sum(axis=1) - 1.0).max() <= 1e-12
    logits = (scores - scores.max(axis=1, keepdims=True) + eq.p @ L) / mu
    slack = 1e-11 + 1e-14 * s / mu
    assert np.abs(eq.q - softmax(logits, axis=1)).max() <= slack
    assert (eq.gap >= 0.0).all() and eq.gap.max() <= 1e-12 * s
    assert np.abs(gap_of(L, scores, mu, eq)).max() <= slack


def conic(L: np.ndarray, scores: np.ndarray, mu: float) -> float:
    """The value of one row, in units in which costs and entropy are at most 1."""
    kept = np.isfinite(scores)
    unit, count = largest(L) + mu, int(kept.sum())
    top = scores.max()
    relative = np.maximum(scores[kept] - top, -60.0 * unit) / unit  # farther below a label does not count
    part = Part(1.0, np.eye(count), [L[:, kept] / unit], np.ones((1, count)), np.ones(1), np.full(count, mu / unit))
    return unit * objective([part], np.zeros(count), 0.0, relative) + top


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("m", AMOUNTS)
def test_the_value_is_the_conic_programme(kind, m):
    rng = np.random.default_rng(3)
    for options, k in [(3, 3), (2, 5), (7, 2), (6, 9), (1, 4), (4, 1)]:
        L = kind(rng, options, k) * 10.0 ** rng.integers(-3, 4)
        mu = m * largest(L)
        scores = scores_for(rng, L, m, 4)
        eq = game_of(L).solve(scores, smoothing=mu)
        check(L, scores, mu, eq)
        for row in range(len(scores)):
            assert abs(eq.value[row] - conic(L, scores[row], mu)) <= 1e-7 * (largest(L) + mu)


@pytest.mark.parametrize("m", [1e-3, 0.1, 1.0, 1e2])
@pytest.mark.parametrize(("options", "k"), [(100, 100), (100, 20), (20, 100)])
def test_large_matrices(options, k, m):
    rng = np.random.default_rng(5)
    for kind in (lognormal, few_values, any_sign):
        L = kind(rng, options, k)
        mu = m * largest(L)
        scores = scores_for(rng, L, m, 40)
        eq = game_of(L).solve(scores, smoothing=mu)
        check(L, scores, mu, eq)
        assert abs(eq.value[0] - conic(L, scores[0], mu)) <= 1e-7 * (largest(L) + mu)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("m", AMOUNTS)
def test_the_gap_closes_whatever_the_matrix(kind, m):
    rng = np.random.default_rng(7)
    for _ in range(12):
        L = kind(rng, *rng.integers(1, 14, 2)) * 10.0 ** rng.integers(-3, 4)
        scores = scores_for(rng, L, m, 100)
        check(L, scores, m * largest(L), game_of(L).solve(scores, smoothing=m * largest(L)))


@pytest.mark.parametrize("m", AMOUNTS)
def test_starts_change_no_value(m):
    """Those of scores nearby, of other rows, one option, and strategies that are none."""
    rng = np.random.default_rng(11)
    for kind in KINDS:
        L = kind(rng, 6, 8)
        s, mu, game = largest(L), m * largest(L), game_of(L)
        scores = scores_for(rng, L, m, 60)
        cold = game.solve(scores, smoothing=mu)
        moved = np.where(np.isfinite(scores), scores + 0.01 * s * rng.standard_normal(scores.shape), scores)
        near = game.solve(moved, smoothing=mu).p
        wild = rng.standard_normal((60, 6))
        for p in (near, cold.p[::-1], np.eye(6)[rng.integers(0, 6, 60)], rng.dirichlet(np.ones(6), 60), wild):
            start = Equilibrium(cold.value, cold.q, np.ascontiguousarray(p), cold.gap, cold.entropy, cold.risk)
            warm = game.solve(scores, smoothing=mu, start=start)
            check(L, scores, mu, warm)
            assert np.abs(warm.value - cold.value).max() <= (1e-11 * (s + mu) + 1e-15 * np.abs(cold.value)).max()
            assert np.abs(warm.q - cold.q).max() <= 1e-5  # it is unique; the square root of the gap


@pytest.mark.parametrize("m", [1e-3, 0.03, 0.3, 3.0, 100.0])
def test_the_loss_is_a_cost_and_a_log_loss(m):
    """``F(f) - f_y = <p, L_y> - mu log q_y``, the logarithm taken from the logits."""
    rng = np.random.default_rng(13)
    for kind in KINDS:
        L = kind(rng, 5, 7)
        mu = m * largest(L)
        scores = rng.standard_normal((50, 7)) * (largest(L) + mu)
        eq = game_of(L).solve(scores, smoothing=mu)
        log_q = (scores + eq.p @ L) / mu
        log_q -= logsumexp(log_q, axis=1, keepdims=True)
        loss = eq.value[:, None] - scores
        assert np.abs(loss - (eq.p @ L - mu * log_q)).max() <= 1e-12 * (largest(L) + mu)


@pytest.mark.parametrize("m", [0.01, 0.3, 1.0, 10.0])
def test_the_loss_is_proper(m):
    """Scores exist at which ``q`` is the labels' distribution; the excess of others is regret and divergence."""
    rng = np.random.default_rng(17)
    for kind in KINDS:
        L = kind(rng, 4, 6)
        s, mu, game = largest(L), m * largest(L), game_of(L)
        P = rng.dirichlet(np.ones(6), 30)
        cheapest = (P @ L.T).argmin(axis=1)
        ideal = mu * np.log(P) - L[cheapest]
        eq = game.solve(ideal, smoothing=mu)
        assert np.abs(eq.q - P).max() <= 1e-6
        lowest = eq.value - (ideal * P).sum(axis=1)
        assert np.abs(lowest - (P @ L.T).min(axis=1) + mu * xlogy(P, P).sum(axis=1)).max() <= 1e-11 * (s + mu)
        other = rng.standard_normal(P.shape) * (s + mu)
        eq = game.solve(other, smoothing=mu)
        excess = eq.value - (other * P).sum(axis=1) - lowest
        regret = (eq.p * (P @ L.T)).sum(axis=1) - (P @ L.T).min(axis=1)
        usable = eq.q.min(axis=1) > 1e-300
        expected = (regret + mu * rel_entr(P, eq.q).sum(axis=1))[usable]
        assert usable.any() and np.abs(excess[usable] - expected).max() <= 1e-11 * (s + mu) * (1.0 + 700.0 * m)


def jacobian(game: CostGame, mu: float, eq: Equilibrium, row: int) -> np.ndarray:
    k = game.n_labels
    J = np.eye(k)
    q, p = (np.repeat(x[row : row + 1], k, axis=0) for x in (eq.q, eq.p))
    turn_rows(game.params.compiled(), mu, q, p, J)
    return J


@pytest.mark.parametrize("m", [0.01, 0.1, 1.0, 10.0])
def test_turn_is_the_derivative_of_q(m):
    """Central differences, at rows where no option is about to come or go."""
    rng = np.random.default_rng(19)
    compared = np.zeros(8, dtype=int)
    for kind in (lognormal, few_values, repeated, any_sign, low_rank):
        for options, k in [(3, 3), (5, 8), (7, 4), (2, 2)]:
            L = kind(rng, options, k)
            mu, game = m * largest(L), game_of(L)
            scores = rng.standard_normal((40, k)) * largest(L) * rng.choice([0.1, 1.0])
            eq = game.solve(scores, smoothing=mu)
            slack = eq.q @ L.T - eq.risk[:, None]
            clear = np.where(eq.p > 0.0, eq.p > 1e-2, slack > 1e-2 * largest(L)).all(axis=1)
            h = 1e-5 * mu
            for row in np.flatnonzero(clear)[:6]:
                ends = np.concatenate([scores[row] + h * np.eye(k), scores[row] - h * np.eye(k)])
                q = game.solve(ends, smoothing=mu).q
                differences = (q[:k] - q[k:]).T / (2.0 * h)
                assert np.abs(mu * (jacobian(game, mu, eq, row) - differences)).max() <= 1e-6
                compared[min((eq.p[row] > 0.0).sum(), 7)] += 1
    assert compared.sum() > 30 and (compared[1 : 4 if m <= 1.0 else 3] > 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_turn_keeps_the_costs_of_the_options_in_play_alike(kind):
    """It is symmetric, positive semidefinite, and no move tells options of ``p`` apart, however these depend."""
    rng = np.random.default_rng(23)
    for options, k in [(3, 3), (6, 4), (4, 9), (1, 3), (3, 1)]:
        L = kind(rng, options, k)
        s, game = largest(L), game_of(L)
        mu = 0.3 * s
        eq = game.solve(rng.standard_normal((10, k)) * s, smoothing=mu)
        for row in range(10):
            J = mu * jacobian(game, mu, eq, row)
            assert np.abs(J - J.T).max() <= 1e-12 and np.abs(J.sum(axis=0)).max() <= 1e-12
            assert np.linalg.eigvalsh(J).min() >= -1e-12
            played = L[eq.p[row] > 0.0] @ J / s
            assert np.ptp(played, axis=0).max() <= 1e-7


def test_all_options_alike_may_be_in_play():
    """A strategy of repeated options is an equilibrium as good as any: its Jacobian is that of one of them."""
    L = np.array([[0.0, 2.0, 1.0], [3.0, 0.0, 1.0]])
    twice, scores = L.repeat(3, axis=0), np.array([[0.3, 0.1, 0.0], [2.0, -1.0, 0.5]])
    once = game_of(L).solve(scores, smoothing=0.7)
    game = game_of(twice)
    spread = Equilibrium(once.value, once.q, once.p.repeat(3, axis=1) / 3.0, once.gap, once.entropy, once.risk)
    eq = game.solve(scores, smoothing=0.7, start=spread)
    check(twice, scores, 0.7, eq)
    assert np.abs(eq.value - once.value).max() <= 1e-13
    for row in range(2):
        both = jacobian(game, 0.7, spread, row), jacobian(game_of(L), 0.7, once, row)
        assert np.abs(both[0] - both[1]).max() <= 1e-7


@pytest.mark.parametrize("m", [1e-3, 0.1, 1.0])
@pytest.mark.parametrize(("options", "k"), [(5, 7), (1, 1), (70, 6), (6, 70)])
def test_rows_do_not_depend_on_their_neighbours(options, k, m):
    """Short ones are played several at a time; one with NaN is lost alone."""
    rng = np.random.default_rng(37)
    L = lognormal(rng, options, k)
    mu, game = m * largest(L), game_of(L)
    scores = scores_for(rng, L, m, 39)
    together = game.solve(scores, smoothing=mu)
    alone = [game.solve(scores[i : i + 1], smoothing=mu) for i in range(39)]
    size = np.abs(np.where(np.isfinite(scores), scores, 0.0)).max() + largest(L) + mu
    assert np.abs(together.value - np.concatenate([one.value for one in alone])).max() <= 1e-12 * size
    torn = scores.copy()
    torn[5, 0] = np.nan
    others = game.solve(torn, smoothing=mu)
    for lost in (others.value, others.q, others.p, others.gap, others.entropy, others.risk):
        assert np.isnan(lost[5]).all() and np.isfinite(np.delete(lost, 5, axis=0)).all()
    assert np.abs(np.delete(others.value - together.value, 5)).max() <= 1e-12 * size


@pytest.mark.parametrize("m", [1e-3, 0.1, 1.0, 1e2])
def test_what_the_certificate_says_of_q(m):
    rng = np.random.default_rng(41)
    for kind in KINDS:
        L = kind(rng, 6, 5) + rng.random(5)  # a column costs something whatever the option
        mu = m * largest(L)
        scores = scores_for(rng, L, m, 50)
        eq = game_of(L).solve(scores, smoothing=mu)
        tol = 1e-12 * (largest(L) + mu)
        assert np.abs(eq.risk - (eq.q @ L.T).min(axis=1)).max() <= tol
        assert np.abs(eq.entropy - eq.risk + mu * xlogy(eq.q, eq.q).sum(axis=1)).max() <= 10.0 * tol * (1.0 + 0.01 / m)


def test_single_precision():
    rng = np.random.default_rng(29)
    L = lognormal(rng, 5, 5)
    mu = 0.5 * largest(L)
    scores = (rng.standard_normal((200, 5)) * largest(L)).astype(np.float32)
    single, double = (game_of(L).solve(x, smoothing=mu) for x in (scores, scores.astype(np.float64)))
    assert single.q.dtype == np.float32
    assert np.abs(single.value - double.value).max() <= 1e-5 * largest(L)
    assert single.gap.max() <= 1e-6 * largest(L)


def test_tempering_tends_to_the_game_and_to_the_logistic_loss():
    rng = np.random.default_rng(31)
    L = lognormal(rng, 6, 6)
    s, game = largest(L), game_of(L)
    scores = rng.standard_normal((50, 6)) * s
    exact = game.solve(scores)
    for m in (1e-2, 1e-3, 1e-4):
        tempered = game.solve(scores, smoothing=m * s)
        assert (tempered.value >= exact.value - 1e-12 * s).all()
        assert (tempered.value <= exact.value + m * s * np.log(6) + 1e-12 * s).all()
    for m in (1e2, 1e3, 1e4):
        q = game.solve(m * scores, smoothing=m * s).q
        assert np.abs(q - softmax(scores / s, axis=1)).max() <= 0.5 / m


entries = st.one_of(st.sampled_from([0.0, 0.0, 1.0, 2.0, -1.0, 1e-8]), st.floats(-4.0, 4.0).map(lambda x: round(x, 3)))


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_adversarial_matrices(data):
    options, k = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 6))
    L = data.draw(hnp.arrays(np.float64, (options, k), elements=entries))
    scores = data.draw(hnp.arrays(np.float64, (3, k), elements=entries)) * data.draw(st.sampled_from([1.0, 30.0, 1e6]))
    mu = data.draw(st.sampled_from(AMOUNTS)) * largest(L)
    check(L, scores, mu, game_of(L).solve(scores, smoothing=mu))
