"""Proximal steps are certified by their own predictor; their tangents agree with finite differences."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from shipped_games import SIMPLEX

from nashlearn import games
from nashlearn.kernels.newton import Steps

every = pytest.mark.parametrize("case", SIMPLEX, ids=lambda case: case.id)
number = st.one_of(st.sampled_from([0.0, 0.5, 1.0, -1.0]), st.floats(-10, 10, allow_subnormal=False))


def prox(params, g, a, q, p):
    params.compiled().step(g, a, q, p)


def project(z):
    """Euclidean projection onto the simplex, by sorting."""
    u = np.sort(z)[::-1]
    excess = (np.cumsum(u) - 1.0) / np.arange(1, z.size + 1)
    return np.maximum(z - excess[np.nonzero(u > excess)[0][-1]], 0.0)


def primal(L, g, a, q):
    return g @ q - a / 2 * q @ q + (L @ q).min()


def dual(L, g, a, p):
    """``max_q <g + L'p, q> - a/2 |q|^2``: an upper bound of every primal value, whatever ``p``."""
    h = g + L.T @ p
    q = project((h - h.max()) / a)
    return h.max() + (h - h.max()) @ q - a / 2 * q @ q


def relative_gap(L, g, a, q, p):
    return (dual(L, g, a, p) - primal(L, g, a, q)) / (1.0 + np.abs(g).max() + a + np.abs(L).max())


@st.composite
def starts(draw, k):
    raw = draw(hnp.arrays(np.int64, k, elements=st.integers(0, 3))).astype(float)
    raw[draw(st.integers(0, k - 1))] += 1.0
    return raw / raw.sum()


@every
@given(data=st.data(), a=st.sampled_from([1e-10, 1e-4, 1e-2, 0.3, 1.0, 7.0, 1e2, 1e4, 1e10]))
def test_prox_is_certified(case, data, a):
    k = case.dim
    g = data.draw(hnp.arrays(np.float64, k, elements=number))
    q, p = data.draw(starts(k)), np.empty(len(case.options))
    prox(case.game.params, g, a, q, p)
    assert q.min() >= 0 and abs(q.sum() - 1) <= 1e-9
    assert p.min() >= 0 and abs(p.sum() - 1) <= 1e-9
    assert -1e-12 <= relative_gap(case.L, g, a, q, p) <= 1e-10


@every
@given(data=st.data(), a=st.sampled_from([1e-10, 1e-4, 1e-2, 0.3, 1.0, 7.0, 1e2, 1e10]))
def test_steps_that_share_what_they_learn_are_certified(case, data, a):
    steps, k, m = Steps(case.game.params.compiled(), a), case.dim, len(case.options)
    rows = [data.draw(hnp.arrays(np.float64, k, elements=number)) for _ in range(3)]
    q, p = data.draw(starts(k)), np.array(data.draw(st.lists(st.sampled_from([0.0, 1.0]), min_size=m, max_size=m)))
    for g in rows * 3:
        steps.step(g, q, p)
        assert q.min() >= 0 and abs(q.sum() - 1) <= 1e-9
        assert p.min() >= 0 and abs(p.sum() - 1) <= 1e-9
        assert -1e-12 <= relative_gap(case.L, g, a, q, p) <= 1e-10


@pytest.mark.parametrize("options, k", [(3, 3), (5, 5), (7, 4), (4, 7), (12, 12)])
@pytest.mark.parametrize("a", [1e-6, 0.03, 0.5, 20.0])
def test_steps_end_where_single_ones_do(options, k, a):
    rng = np.random.default_rng(options + k)
    for L in (
        rng.exponential(size=(options, k)),
        rng.integers(0, 3, (options, k)).astype(float),
        np.zeros((options, k)),
    ):
        params = games.cost(L).params
        steps, Q, P = Steps(params.compiled(), a), np.full((200, k), 1.0 / k), np.zeros((200, options))
        scores = rng.normal(size=(200, k)) + rng.choice([0.0, 1e6], size=(200, 1))
        for _ in range(5):
            for g, q, p in zip(scores, Q, P, strict=True):
                alone = np.full(k, 1.0 / k)
                prox(params, g, a, alone, np.empty(options))
                steps.step(g, q, p)
                assert np.abs(q - alone).max() <= 1e-12 * (1.0 + np.abs(g).max() / a)
                assert np.abs(q.sum() - 1.0) <= 1e-12 and relative_gap(L, g, a, q, p) <= 1e-12
            scores = scores + rng.normal(scale=0.3, size=scores.shape)


def test_steps_are_of_a_positive_mu_and_can_be_pickled():
    steps = Steps(games.cost(1.0 - np.eye(3)).params.compiled(), 0.5)
    for mu in (0.0, -1.0, np.nan):
        with pytest.raises(ValueError, match="mu must be positive"):
            Steps(steps.loss, mu)
    g, found = np.array([0.3, 0.2, 0.1]), []
    for one in (steps, pickle.loads(pickle.dumps(steps))):
        q, p = np.full(3, 1 / 3), np.zeros(3)
        one.step(g, q, p)
        found.append(q)
    assert np.array_equal(*found)


@pytest.mark.parametrize("k", [20, 50])
@pytest.mark.parametrize("a", [1e-3, 1.0, 1e3])
def test_prox_where_many_rows_tie(k, a):
    rng = np.random.default_rng(k)
    twins = np.repeat(rng.integers(0, 2, (k, k)), 2, axis=0)
    named = (games.absolute(k), games.squared(k), games.abstain(k, 0.5))
    for game in (*named, games.cost(twins), games.cost(1.0 - np.eye(k))):
        g = rng.integers(-1, 2, k) * 0.5
        q, p = np.full(k, 1.0 / k), np.empty(game.n_options)
        prox(game.params, g, a, q, p)
        assert -1e-12 <= relative_gap(game.costs, g, a, q, p) <= 1e-10


@pytest.mark.parametrize("exponent", [1, 2])
def test_prox_where_rows_are_nearly_alike(exponent):
    rng = np.random.default_rng(exponent)
    for _ in range(300):
        t = rng.normal(size=rng.integers(3, 10))
        t = np.unique(np.r_[t, rng.choice(t, 2) + 10.0 ** -rng.integers(2, 9)])
        L, a = np.abs(t[:, None] - t) ** exponent, 10.0 ** rng.integers(-8, 8)
        g, q, p = rng.normal(size=t.size), rng.dirichlet(np.ones(t.size)), np.empty(t.size)
        prox(games.cost(L).params, g, a, q, p)
        assert -1e-12 <= relative_gap(L, g, a, q, p) <= 1e-10


@pytest.mark.parametrize("k", [2, 7])
def test_both_ways_to_the_zero_one_step_agree(k):
    rng = np.random.default_rng(3)
    for a in 10 * (0.1, 1.0, 10.0):
        g = 3.0 * rng.normal(size=k)
        steps = []
        for game in (games.zero_one(k), games.zero_one(k, weights=np.ones(k)), games.cost(1.0 - np.eye(k))):
            q, p = np.full(k, 1.0 / k), np.empty(k)
            prox(game.params, g, a, q, p)
            steps.append(q)
        assert np.abs(np.array(steps) - steps[0]).max() <= 1e-12  # strictly concave: the step is unique


@every
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1), a=st.sampled_from([0.2, 1.0, 5.0]))
def test_tangent_is_the_derivative(case, seed, a):
    k, h = case.dim, 1e-6
    rng = np.random.default_rng(seed)
    g, p = rng.normal(size=k), np.empty(len(case.options))

    def step(g):
        q = np.full(k, 1.0 / k)
        prox(case.game.params, g, a, q, p)
        return q

    right = np.array([step(g + h * e) for e in np.eye(k)]).T
    left = np.array([step(g - h * e) for e in np.eye(k)]).T
    q = step(g)
    jacobian = np.zeros((k, k))
    nonzero = case.game.params.compiled().jacobian(a, q, p > 0, jacobian)
    if nonzero == 0:
        jacobian[:] = 0.0
    else:
        assert nonzero == (np.abs(jacobian).sum(axis=1) > 0).sum() or nonzero == (q > 0).sum()
    smooth = np.abs((right - q[:, None]) - (q[:, None] - left)).max() <= 1e-10 / a  # no kink within h
    if smooth:
        assert np.abs((right - left) / (2 * h) - jacobian).max() <= 1e-6 / a
