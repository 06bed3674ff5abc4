"""Laws of tempered games of rows: what they say of costs and probabilities, their derivatives, their limits.

That values are those of a conic programme and certificates honest is in ``test_smoothed_laws.py``.
"""

from __future__ import annotations

import numpy as np
import pytest
from cases import Case, law_on, rows
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import minimize
from scipy.special import entr, logsumexp, rel_entr, softmax
from shipped_games import ROWS, SIMPLEX

from nashlearn import games
from nashlearn.kernels.loss import gain_rows
from nashlearn.kernels.tempered import turn_rows

law, simplex = law_on(ROWS), law_on(SIMPLEX)
shares = st.sampled_from([1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0])


def drawn(case: Case, data, n: int = 1) -> tuple[np.ndarray, float]:
    """Scores in units of the largest cost, and a smoothing."""
    return data.draw(rows(case, n)) * case.game.largest, data.draw(shares) * case.game.largest


def solve(game, scores: np.ndarray, mu: float):
    """The equilibrium, with its gap held to what rounding explains."""
    eq = game.solve(scores, smoothing=mu)
    assert (eq.gap <= 1e-9 * game.largest).all()
    return eq


def logits(L: np.ndarray, scores: np.ndarray, p: np.ndarray, mu: float) -> np.ndarray:
    """The logarithms of ``q``, to which ``q`` itself may be too small."""
    x = (scores + p @ L) / mu
    return x - logsumexp(x, axis=1, keepdims=True)


@simplex()
def test_the_loss_is_a_cost_and_a_log_loss(case, data):
    """``F(f) - f_y = <p, L_y> - mu log q_y`` for every label, with ``F`` what the best reply to ``p`` gets."""
    f, mu = drawn(case, data, 3)
    eq = solve(case.game, f, mu)
    logs = logits(case.L, f, eq.p, mu)
    lost = (eq.value + eq.gap)[:, None] - f
    size = case.game.largest + mu + np.abs(f).max()
    assert np.abs(lost - (eq.p @ case.L - mu * logs)).max() <= 1e-12 * size
    assert np.abs(eq.q - np.exp(logs)).max() <= 1e-12 * max(1.0, size / mu)


@simplex()
def test_strategies_that_are_no_equilibrium_have_their_true_gap(case, data):
    """Those of any ``p``: its best reply is the softmax, and what the two leave between them is the gap."""
    f, mu = drawn(case, data)
    p = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1))).dirichlet(np.full(len(case.options), 0.3))
    q, top = np.empty(case.dim), f.max()
    upper, least, gap, entropy = case.game.params.compiled().certificate(f[0], p, mu, q)
    unit = case.game.largest + mu + np.abs(f).max()
    assert np.abs(q - np.exp(logits(case.L, f, p[None], mu)[0])).max() <= 1e-12 * max(1.0, unit / mu)
    secured = case.risk(q) + mu * entr(q).sum()
    assert abs(upper - mu * logsumexp((f[0] - top + p @ case.L) / mu)) <= 1e-12 * unit
    assert abs(gap - (upper - (f[0] - top) @ q - secured)) <= 1e-12 * unit * max(1.0, unit / mu)
    assert abs(least - case.risk(q)) <= 1e-12 * unit and abs(entropy - secured) <= 1e-12 * unit * max(1.0, unit / mu)
    eq = solve(case.game, f, mu)
    assert upper + top >= eq.value[0] - 1e-12 * unit and upper + top - gap <= eq.value[0] + eq.gap[0] + 1e-12 * unit


@law()
def test_what_strategies_lose_to_each_label(case, data):
    p = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1))).dirichlet(np.ones(len(case.options)), 3)
    found, p = np.full((3, case.dim), np.nan), p @ case.options
    gain_rows(case.game.params.compiled(), p, found)
    expected = case.cost(p, np.eye(case.dim))  # thresholds, whose loss is affine, count what p costs on its own too
    assert np.abs(found - expected).max() <= 1e-13 * case.game.largest * case.dim


@simplex()
def test_options_in_play_cost_least(case, data):
    f, mu = drawn(case, data)
    eq = solve(case.game, f, mu)
    costs = case.L @ eq.q[0]
    assert np.abs(eq.p.sum() - 1.0) <= 1e-12 and eq.p.min() >= 0.0
    assert (eq.p[0] * (costs - costs.min())).max() <= 1e-9 * case.game.largest
    assert eq.q.min() > 0.0 or mu < case.game.largest


@simplex()
def test_the_gradient_is_the_difference_quotient(case, data):
    f, mu = drawn(case, data)
    h = 1e-4 * mu
    moves = h * np.eye(case.dim)
    slope = (solve(case.game, f + moves, mu).value - solve(case.game, f - moves, mu).value) / (2 * h)
    tol = 1e-4 + 1e-15 * (np.abs(f).max() + case.game.largest) / h
    assert np.abs(slope - solve(case.game, f, mu).q[0]).max() <= tol


@law()
def test_turn_is_the_derivative_of_q(case, data):
    """Wherever the same options are in play on both sides; symmetric and never negative everywhere."""
    k, rng = case.dim, np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    mu = data.draw(shares) * case.game.largest
    f, h = rng.normal(size=(1, k)) * rng.choice([0.1, 1.0]) * case.game.largest, 1e-5 * mu
    here = solve(case.game, f, mu)
    J = np.eye(k)
    turn_rows(case.game.params.compiled(), mu, np.repeat(here.q, k, axis=0), np.repeat(here.p, k, axis=0), J)
    assert np.abs(J - J.T).max() <= 1e-12 / mu
    assert np.linalg.eigvalsh(0.5 * (J + J.T)).min() >= -1e-12 / mu
    v = rng.normal(size=k)
    there, back = solve(case.game, f + h * v, mu), solve(case.game, f - h * v, mu)
    if ((there.p > 0) == (here.p > 0)).all() and ((back.p > 0) == (here.p > 0)).all():
        assert np.abs((there.q - back.q)[0] / (2 * h) - v @ J).max() <= 1e-6 / mu


@law(examples=10)
def test_little_smoothing_is_the_game_itself(case, data):
    f, mu = drawn(case, data)[0], 1e-9 * case.game.largest
    most = mu * np.log(2.0) * case.dim if case.omega == "binary" else mu * np.log(case.dim)
    plain, tol = case.game.solve(f), 1e-12 * case.size(f)
    eq = case.game.solve(f, smoothing=mu)
    assert plain.value[0] - tol <= eq.value[0] + eq.gap[0] <= plain.value[0] + plain.gap[0] + most + tol


def test_little_smoothing_at_a_tie_of_squared_losses():
    """The point between two positions must be found to within the smoothing, not only to ten digits."""
    game = games.squared(5, values=[-2.0, -1.7, 0.4, 0.5, 3.0])
    for share in (1e-9, 1e-8, 1e-6):
        eq = game.solve(game.largest * np.array([[0.0, 0.0, 0.0, 0.5, 0.5]]), smoothing=share * game.largest)
        assert eq.gap[0] <= 1e-8 * game.largest


@simplex(examples=10)
def test_much_smoothing_is_the_softmax(case, data):
    """The predictor moves logits by a largest cost over the smoothing at most."""
    s, u = case.game.largest, data.draw(rows(case, 1))
    for share in (1e2, 1e4, 1e6):
        mu = share * s
        eq = solve(case.game, mu * u, mu)
        assert np.abs(eq.q - softmax(u, axis=1)).max() <= 1.0 / share
        rest = eq.value[0] - mu * logsumexp(u)
        tol = 1e-13 * mu * (1.0 + np.abs(u).max())
        assert case.L.min() - tol <= rest <= s + tol


@simplex(examples=8)
def test_the_loss_is_proper(case, data):
    """Scores that are free end at the probabilities of the labels, and at no regret: the excess is regret and KL."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    mu, P = data.draw(st.sampled_from([0.1, 1.0, 10.0])) * case.game.largest, rng.dirichlet(np.ones(case.dim))
    P = 0.95 * P + 0.05 / case.dim
    costs = case.L @ P
    least = costs.min() + mu * entr(P).sum()

    def risk(f: np.ndarray) -> tuple[float, np.ndarray]:
        eq = solve(case.game, f[None], mu)
        return float(eq.value[0] + eq.gap[0] - f @ P), eq.q[0] - P

    f, unit = rng.normal(size=case.dim) * case.game.largest, mu + case.game.largest
    eq = solve(case.game, f[None], mu)
    regret = eq.p[0] @ costs - costs.min()
    log_loss = rel_entr(P, np.exp(logits(case.L, f[None], eq.p, mu)[0])).sum()
    assert abs(risk(f)[0] - least - regret - mu * log_loss) <= 1e-11 * (unit + np.abs(f).max())
    found = minimize(risk, f, jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 2000}).x
    assert np.abs(risk(found)[1]).max() <= 1e-5
    assert abs(risk(found)[0] - least) <= 1e-8 * unit
    assert solve(case.game, found[None], mu).p[0] @ costs - costs.min() <= 1e-8 * unit


@simplex(examples=12)
def test_costs_scores_and_smoothing_scale_together(case, data):
    f, mu = drawn(case, data)
    value = solve(case.game, f, mu).value[0]
    for c in (1e-6, 3.0, 1e6):
        other = case.scaled(c).solve(c * f, smoothing=c * mu)
        assert abs(other.value[0] / c - value) <= 1e-9 * (case.game.largest + mu + np.abs(f).max())


@simplex(examples=12)
def test_what_scores_have_in_common_is_added(case, data):
    f, mu = drawn(case, data)
    eq = solve(case.game, f, mu)
    far = 1e8 * case.game.largest
    for shift in (far, -far):
        other = solve(case.game, f + shift, mu)
        exact = solve(case.game, (f + shift) - shift, mu)  # what rounding leaves of the scores
        assert abs(other.value[0] - shift - eq.value[0]) <= 1e-7 * case.game.largest
        assert np.abs(other.q - exact.q).max() <= 1e-12 * max(1.0, case.game.largest / mu)


@simplex()
def test_huge_scores(case, data):
    """To 1e300: what they differ by is rounded, and the certificate still holds."""
    huge = st.sampled_from([-1e300, 0.0, 1e300, 1e299, -np.inf])
    f, mu = data.draw(hnp.arrays(np.float64, (2, case.dim), elements=huge)), data.draw(shares) * case.game.largest
    f[:, 0] = np.maximum(f[:, 0], 1e300)
    eq = solve(case.game, f, mu)
    assert (np.abs(eq.value - 1e300) <= case.L.max() + mu * np.log(case.dim)).all()
    assert np.abs(eq.q.sum(axis=1) - 1.0).max() <= 1e-12 and np.abs(eq.p.sum(axis=1) - 1.0).max() <= 1e-12


@simplex(examples=12)
def test_scores_far_below_count_for_nothing(case, data):
    f, mu = drawn(case, data)
    hidden = data.draw(st.integers(0, case.dim - 1))
    if case.dim == 1:
        return
    low, out = f.copy(), f.copy()
    low[0, hidden], out[0, hidden] = -1e8 * (case.game.largest + mu), -np.inf
    one, other = solve(case.game, low, mu), solve(case.game, out, mu)
    assert one.q[0, hidden] == other.q[0, hidden] == 0.0
    assert abs(one.value[0] - other.value[0]) <= 1e-11 * (case.game.largest + mu + np.abs(f).max())


@law(examples=10)
def test_rows_do_not_know_of_each_other(case, data):
    f, mu = drawn(case, data, 21)
    f[4], f[17, -1] = f[3], np.nan
    eq = case.game.solve(f, smoothing=mu)
    lost = np.isnan(f).any(axis=1)
    for part in (eq.value, eq.gap, eq.entropy, eq.risk, eq.q, eq.p):
        assert (np.isnan(part).reshape(21, -1).all(axis=1) == lost).all()
    assert np.isfinite(eq.value[~lost]).all()
    alone = [solve(case.game, row[None], mu) for row in f[~lost]]
    unit = case.size(f) + mu
    assert np.abs(np.concatenate([one.value for one in alone]) - eq.value[~lost]).max() <= 1e-12 * unit
    assert np.abs(np.concatenate([one.q for one in alone]) - eq.q[~lost]).max() <= 1e-12 * max(1.0, unit / mu)


@simplex(examples=12)
def test_single_precision(case, data):
    """Values and probabilities are rounded, no more; the gap is that of the strategy that was stored."""
    f, mu = drawn(case, data, 3)
    single, eps = f.astype(np.float32), np.finfo(np.float32).eps
    eq, exact = case.game.solve(single, smoothing=mu), solve(case.game, single.astype(float), mu)
    assert {part.dtype for part in (eq.value, eq.q, eq.p, eq.gap, eq.entropy, eq.risk)} == {np.dtype("float32")}
    unit = case.game.largest + mu + np.abs(f).max()
    for found, known, size in ((eq.value, exact.value, unit), (eq.q, exact.q, 1.0)):
        assert np.abs(found - known).max() <= eps * size * max(1.0, 1e-7 * unit / mu)
    upper = mu * logsumexp((single + eq.p.astype(float) @ case.L) / mu, axis=1)
    assert (eq.gap >= (1.0 - eps) * (upper - exact.value) - 1e-12 * unit).all()
    assert (eq.gap <= 2.0 * len(case.options) * eps * case.game.largest).all()


@pytest.mark.parametrize("k", [1, 2, 5, 64, 128, 129, 200])
@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 150])
def test_zero_one_of_any_size(k, n):
    """Whatever is played at a time: sparsemax by sorting, then the softmax."""
    rng = np.random.default_rng(k + n)
    f, mu = np.round(rng.normal(size=(n, k)) * rng.choice([0.1, 2.0], (n, 1)), 1), 0.3
    f[rng.random((n, k)) < 0.1] = -np.inf
    f[:, 0] = np.maximum(f[:, 0], 0.0)
    ranked = -np.sort(-f, axis=1)
    sums = np.cumsum(ranked, axis=1) - 1.0
    count = (ranked * np.arange(1, k + 1) > sums).sum(axis=1)
    p = np.maximum(f - (np.take_along_axis(sums, count[:, None] - 1, 1) / count[:, None]), 0.0)
    eq = games.zero_one(k).solve(f, smoothing=mu)
    assert np.abs(eq.p - p).max(initial=0.0) <= 1e-13
    assert np.abs(eq.q - softmax((f - p) / mu, axis=1)).max(initial=0.0) <= 1e-13
    assert np.abs(eq.value - mu * logsumexp((f + 1.0 - p) / mu, axis=1)).max(initial=0.0) <= 1e-13
    assert eq.gap.max(initial=0.0) <= 1e-13


SPACED = ([0.0, 1e-3, 1.0], [0.0, 1.0, 1.001, 50.0, 1000.0], list(np.arange(40.0)), [-3.0, 5.0])


@pytest.mark.parametrize("share", [1e-4, 1e-3, 1e-2, 0.1, 1.0, 1e3])
@pytest.mark.parametrize("make", [games.absolute, games.squared])
@pytest.mark.parametrize("values", SPACED, ids=len)
def test_positions_of_any_kind(make, values, share):
    game, rng = make(len(values), values=values), np.random.default_rng(3)
    f = rng.normal(size=(200, len(values))) * game.largest * 10.0 ** rng.uniform(-4, 0.5, (200, 1))
    eq = game.solve(f, smoothing=share * game.largest)
    assert eq.gap.max() <= 1e-10 * game.largest
    assert ((eq.p > 0).sum(axis=1) <= 2).all()


@pytest.mark.parametrize("share", [1e-4, 1e-2, 1.0, 1e3])
@pytest.mark.parametrize("cost", [0.0, 1e-3, 0.3, 0.5, 2 / 3, 0.7, 0.75, 0.8, 0.9, 1 - 1e-9, 1.0, 3.0])
def test_prices_of_any_kind(cost, share):
    rng = np.random.default_rng(5)
    for k in (1, 2, 3, 6, 12):
        game = games.abstain(k, cost)
        f = np.round(rng.normal(size=(60, k)) * 10.0 ** rng.uniform(-2, 0.5, (60, 1)), 2)
        f = np.vstack([f, np.zeros((1, k)), np.where(np.arange(k) < 3, 0.0, -np.inf)])
        eq = game.solve(f, smoothing=share * game.largest)
        assert eq.gap.max() <= 1e-11 * game.largest
        assert np.abs(eq.p.sum(axis=1) - 1.0).max() <= 1e-12
