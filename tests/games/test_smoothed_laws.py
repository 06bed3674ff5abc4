"""Laws of smoothed games, against conic programmes over enumerated vertices; who cannot smooth says so."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cases import Case, law_on, omega, rows, scores, smoothed_value, strategies
from hypothesis import strategies as st
from shipped_games import SHIPPED

from nashlearn.game import flat

SMOOTH = [case for case in SHIPPED if case.game.smooths]
law = law_on(SMOOTH)
seeds = st.integers(0, 2**32 - 1)


TEMPERED = [case for case in SMOOTH if case.omega in ("tempered", "binary")]


def amounts(case: Case) -> st.SearchStrategy[float]:
    """Sweeps of networks take long where there is little smoothing: edges of relaxed ones have a tenth of it."""
    if case.omega in ("tempered", "binary"):
        return st.sampled_from([1e-3, 0.05, 1.0, 100.0]).map(lambda share: share * case.game.largest)
    least = 0.05 if case.omega == "quadratic" else 0.5 if case.exact else 3.0
    return st.sampled_from([least, 10.0 * least])


def play(case: Case, theta: np.ndarray, smoothing: float, **options):
    """The equilibrium at flat scores, and its strategy of the labels, flat."""
    tol = {"tol": 1e-6} if case.omega == "entropy" else {}  # sweeps take long to reach less
    eq = case.game.solve(case.shaped(theta), smoothing=smoothing, **tol, **options)
    return eq, flat(eq.q)


def slack(case: Case, theta: np.ndarray, smoothing: float) -> float:
    """The conic programmes are solved to about 1e-8."""
    return max(2.0 * case.tol, 1e-7) * (case.size(theta) + smoothing)


@law(examples=12)
def test_the_value_is_the_conic_programme(case, data):
    """Up to the gap; that of a relaxed game may be larger."""
    theta, smoothing = data.draw(rows(case, 1)), data.draw(amounts(case))
    eq, _ = play(case, theta, smoothing)
    expected = smoothed_value(case, theta[0], smoothing, case.cost(case.options, case.labels))
    tol = slack(case, theta, smoothing)
    assert eq.value[0] + eq.gap[0] >= expected - tol
    assert eq.value[0] <= expected + tol or not case.exact
    assert 0 <= eq.gap[0] <= tol


@law()
def test_entropy_and_risk(case, data):
    """``value - <scores, q>`` is the risk of ``q`` less the smoothing, which is never negative."""
    theta, smoothing = data.draw(rows(case)), data.draw(amounts(case))
    eq, q = play(case, theta, smoothing)
    tol = max(1e-12 * case.size(theta) * case.dim, 0.1 * slack(case, theta, smoothing) * (case.tol > 1e-9))
    assert np.abs(eq.value - np.einsum("ij,ij->i", theta, q) - eq.entropy).max() <= tol
    assert np.abs(eq.risk - case.game.risk(eq.q, case.shaped(theta))).max() <= tol
    assert (eq.entropy >= eq.risk - tol).all()
    if case.omega != "entropy":
        tol += 1e-12 * smoothing * case.dim
        assert np.abs(eq.risk - smoothing * omega(case, q) - eq.entropy).max() <= tol


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # loss_value aims at the least gap
@law()
def test_no_loss_is_negative_nor_below_that_of_the_game_itself(case, data):
    theta, smoothing = data.draw(rows(case, 1)), data.draw(amounts(case))
    eq, _ = play(case, theta, smoothing)
    tol = slack(case, theta, smoothing)
    assert (eq.value[0] + eq.gap[0] - case.labels @ theta[0] >= -tol).all()
    plain, _ = play(case, theta, 0.0)
    assert eq.value[0] + eq.gap[0] >= plain.value[0] - tol
    y = data.draw(st.integers(0, len(case.labels) - 1))
    loss = case.game.loss_value(case.shaped(theta), case.label(y), smoothing=smoothing)[0]
    assert abs(loss - (eq.value[0] - case.labels[y] @ theta[0])) <= tol


@law(examples=12)
def test_threads_and_starts_change_no_value(case, data):
    theta, smoothing = data.draw(rows(case, 3)), data.draw(amounts(case))
    near = theta + 0.1 * data.draw(rows(case, 3))
    tol = slack(case, near, smoothing)
    alone, several = play(case, near, smoothing)[0], play(case, near, smoothing, n_jobs=2)[0]
    assert (alone.value == several.value).all()
    begun = play(case, near, smoothing, start=play(case, theta, smoothing)[0])[0]
    assert (np.abs(begun.value - alone.value) <= tol).all() and (begun.gap <= tol).all()


@law()
def test_the_gradient_is_a_subgradient(case, data):
    theta, smoothing = data.draw(rows(case)), data.draw(amounts(case))
    eq, q = play(case, theta, smoothing)
    growth = eq.value[1] + eq.gap[1] - eq.value[0]
    assert growth >= q[0] @ (theta[1] - theta[0]) - eq.gap[0] - slack(case, theta, smoothing)


@law(on=[case for case in TEMPERED if case.dim > 1], examples=12)
def test_a_score_of_minus_infinity_rules_out(case, data):
    """The value is that of the game without the labels that have it."""
    theta, smoothing = data.draw(rows(case, 1)), data.draw(amounts(case))
    theta[0, data.draw(st.integers(0, case.dim - 1))] = -np.inf
    out = np.isneginf(theta[0])
    eq, q = play(case, theta, smoothing)
    assert (q[0, out] == 0.0).all()
    assert abs(eq.value[0] - theta[0, ~out] @ q[0, ~out] - eq.entropy[0]) <= slack(case, theta, smoothing)
    left = replace(case, labels=case.labels[(case.labels[:, out] == 0.0).all(axis=1)])
    low = np.where(out, 0.0, theta[0])
    expected = smoothed_value(left, low, smoothing, case.cost(case.options, left.labels))
    assert abs(eq.value[0] - expected) <= slack(case, theta, smoothing)
    assert 0 <= eq.gap[0] <= slack(case, theta, smoothing)


@law(on=[case for case in SMOOTH if case.smoothed], examples=8)
def test_0_certificates_of_any_strategies_are_honest(case, data):
    """Compiled certificates against the best reply to ``p`` over all vertices; they vanish at the equilibrium.

    Those of rows are that gap. Those of matchings and trees take the smoothing's tangent at ``q`` for the smoothing,
    and so may say more, never less.
    """
    rng, smoothing = np.random.default_rng(data.draw(seeds)), data.draw(amounts(case))
    theta = scores(case, rng)
    eq, q = play(case, theta[None], smoothing)
    p, tol = flat(eq.p), slack(case, theta, smoothing)
    other_p, other_q = strategies(case, rng)
    for certificate in case.smoothed.values():
        gaps = []
        for size in (1.0, 0.1, 1e-3, 0.0):
            here, there = (1 - size) * p[0] + size * other_p, (1 - size) * q[0] + size * other_q
            gaps.append(certificate(theta, smoothing, here, there))
            upper = smoothed_value(case, theta, smoothing, case.cost(here[None], case.labels))
            secured = theta @ there + case.risk(there) - smoothing * omega(case, there[None])[0]
            assert gaps[-1] >= upper - secured - tol
            assert gaps[-1] <= upper - secured + tol or "rows" not in case.smoothed
        assert gaps[-1] <= tol and gaps[-2] <= 0.05 * (case.size(theta) + smoothing)


@pytest.mark.parametrize("case", [case for case in SHIPPED if not case.game.smooths], ids=lambda case: case.id)
def test_who_cannot_smooth_says_so(case):
    with pytest.raises(ValueError, match="smoothing must be 0"):
        case.game.solve(np.zeros((1, *case.game.shape)), smoothing=0.1)


@pytest.mark.parametrize("case", SMOOTH, ids=lambda case: case.id)
@pytest.mark.parametrize("smoothing", [-1.0, np.nan, np.inf])
def test_smoothing_that_is_none_is_refused(case, smoothing):
    with pytest.raises(ValueError, match="smoothing must be"):
        case.game.solve(np.zeros((1, *case.game.shape)), smoothing=smoothing)


def test_there_are_games_of_either_kind():
    assert SMOOTH and len(SMOOTH) < len(SHIPPED)
    assert {case.omega for case in SMOOTH} == {"quadratic", "entropy", "tempered", "binary"}
