"""Values known in closed form, the thesis's formulas by their numbers, and consistency in practice."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import linprog

from nashlearn import games

number = st.one_of(st.sampled_from([0.0, 0.5, 1.0, -1.0]), st.floats(-5, 5, allow_subnormal=False))
scores_of = st.integers(1, 6).flatmap(lambda k: hnp.arrays(np.float64, k, elements=number))
weight = st.sampled_from([0.25, 1.0, 3.0])


def value(game, f) -> float:
    return game.solve(f[None]).value[0]


def close(a, b, f) -> bool:
    return abs(a - b) <= 1e-12 * (1 + np.abs(f).max() + f.size**2)


@pytest.mark.parametrize("k", [1, 2, 3, 10, 100])
def test_uniform_scores_cost_a_guess(k):
    assert np.isclose(value(games.zero_one(k), np.zeros(k)), (k - 1) / k, rtol=1e-15)


@pytest.mark.parametrize("m", [-3.0, -1.0, -0.4, 0.0, 0.3, 1.0, 2.0])
def test_binary_margin_loss_is_not_the_hinge(m):
    loss = games.zero_one(2).loss_value(np.array([[m, 0.0]]), np.array([0]))[0]
    assert np.isclose(loss, max(0.0, (1 - m) / 2, -m), atol=1e-15)


@given(scores_of, weight)
def test_zero_one_is_the_thesis_2_17_and_2_49(f, alpha):
    subsets = [list(s) for r in range(1, f.size + 1) for s in combinations(range(f.size), r)]
    expected = max((f[s].sum() + alpha * (len(s) - 1)) / len(s) for s in subsets)
    assert close(value(games.zero_one(f.size, weights=np.full(f.size, alpha)), f), expected, f)
    if alpha == 1.0:
        assert close(value(games.zero_one(f.size), f), expected, f)


@given(scores_of, weight)
def test_absolute_is_the_thesis_2_30_and_2_50(f, alpha):
    k = f.size
    expected = max((f[i] + f[j] + alpha * (j - i)) / 2 for i in range(k) for j in range(i, k))
    assert close(value(games.absolute(k, values=alpha * np.arange(k)), f), expected, f)
    assert close(value(games.absolute(k, weights=np.full(k, alpha)), f), expected, f)


@given(scores_of, weight)
def test_squared_is_the_thesis_2_37_and_2_51(f, alpha):
    k, expected = f.size, f.max()
    for i in range(k):
        for j in range(i + 1, k):
            for m in range(i + 1, j + 1):
                left = (2 * (j - m) + 1) * (f[i] + alpha * (m - i) ** 2)
                right = (2 * (m - i) - 1) * (f[j] + alpha * (j - m) ** 2)
                expected = max(expected, (left + right) / (2 * (j - i)))
    assert close(value(games.squared(k, values=np.sqrt(alpha) * np.arange(k)), f), expected, f)
    assert close(value(games.squared(k, weights=np.full(k, alpha)), f), expected, f)


@given(scores_of, st.sampled_from([0.0, 0.1, 1 / 3, 0.5]))
def test_abstain_is_the_thesis_2_53(f, alpha):
    k = f.size
    pairs = [(1 - alpha) * f[i] + alpha * f[j] + alpha for i in range(k) for j in range(k) if i != j]
    assert close(value(games.abstain(f.size, alpha), f), max([f.max(), *pairs]), f)


@given(st.integers(1, 6), st.floats(0.5, 2.0))
def test_to_abstain_is_never_better_than_a_free_guess_beyond_cost_one(k, alpha):
    f = np.linspace(0.0, 0.4, k)
    abstain, plain = value(games.abstain(k, alpha), f), value(games.zero_one(k), f)
    assert abstain <= plain + 1e-14
    if alpha >= 1.0:
        assert abs(abstain - plain) <= 1e-14


@pytest.mark.parametrize("make", [games.absolute, games.squared])
def test_positions_far_from_zero_keep_their_precision(make):
    f = np.array([0.3, -0.2, 0.1])
    assert abs(value(make(3, values=1e9 + np.arange(3)), f) - value(make(3), f)) <= 1e-12


@st.composite
def distributions(draw, most=1.0):
    """Distributions with one likeliest label, by a margin, of at most ``most``."""
    k = draw(st.integers(3, 6))
    raw = np.array(draw(st.lists(st.integers(1, 8), min_size=k, max_size=k)), dtype=float)
    raw[draw(st.integers(0, k - 1))] = raw.max() + 1.0
    pi = raw / raw.sum()
    while pi.max() >= most:
        raw = np.r_[raw, raw.max() - 0.5]
        pi = raw / raw.sum()
    return pi


def surrogate_minimiser(L, pi):
    """``min_f F(f) - <f, pi>``, a linear programme: ``f + L'p <= V``, ``p`` a distribution, ``sum f = 0``."""
    options, k = L.shape
    best = linprog(
        np.r_[-pi, np.zeros(options), 1.0],
        A_ub=np.hstack([np.eye(k), L.T, -np.ones((k, 1))]),
        b_ub=np.zeros(k),
        A_eq=np.vstack([np.r_[np.ones(k), np.zeros(options + 1)], np.r_[np.zeros(k), np.ones(options), 0.0]]),
        b_eq=[0.0, 1.0],
        bounds=[(None, None)] * k + [(0, None)] * options + [(None, None)],
        method="highs",
    )
    return best.x[:k], best.fun


def crammer_singer_minimum(pi, lead, label):
    """``min_f sum_y pi_y max_j ([j != y] + f_j - f_y)`` where ``label`` leads every other by ``lead``."""
    k = pi.size
    rows, bounds = [], []
    for y in range(k):
        for j in range(k):
            row = np.zeros(2 * k)
            row[j] += 1.0
            row[y] -= 1.0
            row[k + y] = -1.0
            rows.append(row)
            bounds.append(-float(j != y))
    for j in set(range(k)) - {label}:
        row = np.zeros(2 * k)
        row[j], row[label] = 1.0, -1.0
        rows.append(row)
        bounds.append(-lead)
    best = linprog(
        np.r_[np.zeros(k), pi],
        A_ub=np.array(rows),
        b_ub=bounds,
        bounds=[(-10, 10)] * k + [(None, None)] * k,
        method="highs",
    )
    return best.fun


@given(distributions(most=0.5))
def test_consistent_where_crammer_and_singer_is_not(pi):
    """No majority label: the adversarial minimiser still names the likeliest, Crammer and Singer's none."""
    likeliest = pi.argmax()
    f, minimum = surrogate_minimiser(1.0 - np.eye(pi.size), pi)
    assert abs(minimum - (1.0 - pi.max())) <= 1e-9
    assert f.argmax() == likeliest and np.sort(f)[-1] - np.sort(f)[-2] > 0.5
    game = games.zero_one(pi.size)
    assert abs(value(game, f) - f @ pi - minimum) <= 1e-9

    tied = crammer_singer_minimum(pi, 0.0, likeliest)
    assert abs(tied - 1.0) <= 1e-9  # what f = 0, which prefers no label, attains
    assert crammer_singer_minimum(pi, 0.1, likeliest) >= tied + 0.1 * (1.0 - 2.0 * pi.max()) - 1e-9 > tied


@given(distributions())
def test_minimisers_decide_as_bayes(pi):
    k = pi.size
    rng = np.random.default_rng(k)
    named = (games.zero_one(k), games.absolute(k), games.squared(k), games.abstain(k, 0.4))
    for game in (*named, games.cost(rng.random((4, k)))):
        risks = game.costs @ pi
        f, minimum = surrogate_minimiser(game.costs, pi)
        assert abs(minimum - risks.min()) <= 1e-9 * (1 + k**2)
        p = game.solve(f[None]).p[0]
        assert abs(p @ risks - risks.min()) <= 1e-7 * (1 + k**2)
