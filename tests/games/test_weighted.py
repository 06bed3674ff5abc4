"""The zero-one game with weights where labels tie: rounding may decide who is in play, never what a strategy is."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from nashlearn import games


def programmed(L, scores) -> float:
    """``min_p max_j scores_j + (L' p)_j`` by linear programming."""
    options, k = L.shape
    found = linprog(
        np.r_[np.zeros(options), 1.0],
        A_ub=np.c_[L.T, -np.ones(k)],
        b_ub=-scores,
        A_eq=np.r_[np.ones(options), 0.0][None],
        b_eq=[1.0],
        bounds=[(0, None)] * options + [(None, None)],
        method="highs-ds",
    )
    assert found.status == 0
    return found.fun


def assert_equilibrium(weights, scores, value=None):
    """Strategies of the simplex, the value of the program, and the gap that both strategies really have."""
    game = games.zero_one(len(weights), weights)
    scores = np.array([scores], dtype=float)
    L = (1.0 - np.eye(len(weights))) * np.asarray(weights)
    unit = L.max(initial=1.0) + np.ptp(scores)
    eq = game.solve(scores)
    for x in (eq.q[0], eq.p[0]):
        assert (x >= 0).all()
        assert abs(x.sum() - 1) <= 1e-13 * len(weights)
    upper = (scores[0] + L.T @ eq.p[0]).max()
    lower = scores[0] @ eq.q[0] + (L @ eq.q[0]).min()
    assert upper - lower <= 1e-12 * unit
    assert abs(eq.gap[0] - (upper - lower)) <= 1e-13 * unit
    assert eq.value[0] == pytest.approx(programmed(L, scores[0]) if value is None else value, abs=1e-10 * unit)


@pytest.mark.parametrize("weight", range(1, 200))
def test_a_label_at_the_threshold(weight):
    """The second label's ``f + w`` is exactly the value, 0: it may be played or not."""
    assert_equilibrium([float(weight), 1.0], [0.0, -1.0], value=0.0)


def test_the_value_at_that_tie_is_that_of_the_program():
    for weight in (1.0, 7.0, 49.0, 199.0):
        assert programmed(np.array([[0.0, 1.0], [weight, 0.0]]), np.array([0.0, -1.0])) == pytest.approx(0, abs=1e-9)


parts = st.integers(1, 60)


@given(data=st.data(), k=st.integers(2, 6))
def test_rational_ties(data, k):
    """``f_j = V - w_j (1 - p_j)`` for rational ``p``, some entries 0: those labels tie at the threshold."""
    weights = [Fraction(data.draw(parts), data.draw(parts)) for _ in range(k)]
    shares = [data.draw(st.integers(0, 9)) for _ in range(k)]
    shares[data.draw(st.integers(0, k - 1))] += 1
    p = [Fraction(share, sum(shares)) for share in shares]
    scores = [-w * (1 - one) for w, one in zip(weights, p, strict=True)]  # V = 0
    assert_equilibrium([float(w) for w in weights], [float(f) for f in scores], value=0.0)


@given(data=st.data(), k=st.integers(2, 6))
def test_ties_between_any_labels(data, k):
    """Small integers and halves tie often, at the top and elsewhere."""
    weights = [data.draw(parts) / 2 for _ in range(k)]
    scores = [data.draw(st.integers(-40, 40)) / 2 for _ in range(k)]
    assert_equilibrium(weights, scores)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_whole_batch_of_ties(dtype):
    """Every pair of integer weights up to 60, in both orders: all strategies have mass 1."""
    for a in range(1, 61):
        for weight in np.arange(1.0, 61.0):
            eq = games.zero_one(2, [a, weight]).solve(np.array([[0.0, -weight], [-float(a), 0.0]], dtype))
            assert np.abs(eq.q.sum(axis=1) - 1).max() <= 8 * np.finfo(dtype).eps
