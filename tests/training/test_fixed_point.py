"""Searches for fixed points: they end at one, by few steps, with a bracket that holds one throughout."""

from __future__ import annotations

import numpy as np
import pytest

from nashlearn import NashFScore
from nashlearn.estimators._fscore_data import FScoreData
from nashlearn.training.fixed_point import Search


def steep(t):
    return float(np.clip(0.5 - 40.0 * (t - 0.3), 0.0, 1.0))


def flat_then_falling(t):
    return 0.9 if t < 0.899 else 0.2


RATIOS = {
    "constant": (lambda t: 0.37, 3),
    "affine": (lambda t: 0.8 - 0.5 * t, 3),
    "rising": (lambda t: 0.3 + 0.6 * t, 4),
    "slowly away": (lambda t: t + 0.01 * (0.123 - t), 25),
    "steep": (steep, 25),
    "jump": (flat_then_falling, 45),
    "wave": (lambda t: 0.5 + 0.4 * np.sin(25.0 * t), 25),
    "cubic": (lambda t: t - 0.9 * (t - 0.6) ** 3, 60),
    "zero": (lambda t: 0.0, 32),
    "one": (lambda t: 1.0, 32),
}


@pytest.mark.parametrize("name", RATIOS)
@pytest.mark.parametrize("begin", [0.02, 0.5, 0.97])
def test_searches_end_at_a_fixed_point_by_few_fits(name, begin):
    ratio, most = RATIOS[name]
    search, tol = Search(begin), 1e-9
    while True:
        search.tell(ratio(search.t))
        # A continuous ratio has a fixed point between these.
        assert search.lower == 0.0 or ratio(search.lower) >= search.lower
        assert search.upper == 1.0 or ratio(search.upper) <= search.upper
        if search.settled(tol):
            break
        lower, upper = search.lower, search.upper
        search.advance()
        assert lower < search.t < upper
        assert search.fits < most
    if name == "jump":
        assert search.t == pytest.approx(0.899, abs=2 * tol)
    else:
        assert abs(ratio(search.t) - search.t) <= tol


def test_a_search_is_over_where_told_so_and_not_before():
    search = Search(0.5)
    assert not search.settled(1e-3)
    search.tell(0.52)
    assert not search.settled(1e-3)
    assert search.settled(0.03)
    assert (search.lower, search.upper) == (0.5, 1.0)
    search.advance()
    search.tell(search.t)
    assert search.lower == search.upper == search.t
    assert search.settled(0.0)


def residuals(model, X, y, grid):
    """``R(t) - t``, each by a fit of its own that starts from nothing."""
    data = FScoreData.read(model, X, y, None)
    model._temper(1.0)
    model.alpha_ = model.alpha
    games = model._games(data, np.random.default_rng(0))
    return np.array([games.ratio(t, {0: games.fit(0, t, None, None, None)}) - t for t in grid])


GRID = np.array([0.02, 0.05, 0.1, 0.15, 0.25, 0.4, 0.6, 0.8, 0.95])


def small(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, 2))
    return X, (X[:, 0] + rng.normal(size=12) > 0.5).astype(int)


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
@pytest.mark.parametrize("beta", [0.3, 1.0, 3.0])
def test_no_second_fixed_point_on_small_problems(beta, smoothing):
    """Residuals change their sign once, from plus to minus. This is a search and no proof."""
    for seed, alpha in ((0, 0.03), (4, 0.3)):
        model = NashFScore(beta, alpha=alpha, smoothing=smoothing, tol=1e-5)
        found = residuals(model, *small(seed), GRID)
        assert np.all(np.diff(np.sign(found[np.abs(found) > 1e-4])) <= 0.0)


@pytest.mark.parametrize("seed", [0, 4, 10])
def test_of_several_fixed_points_the_largest_is_found_on_these_problems(seed):
    """Heavy regularisation and a large beta, without smoothing: each fixed point has a radius of its own."""
    X, y = small(seed)
    model = NashFScore(10.0, alpha=0.7, smoothing=0.0, tol=1e-6)
    found = residuals(model, X, y, GRID)
    assert np.any((found[:-1] < -1e-4) & (found[1:] > 1e-4))  # one that a search from below would end at
    model.fit(X, y)
    above = np.linspace(model.fixed_point_, 1.0, 6)[1:-1]
    assert np.all(residuals(model, X, y, above) < 0.0)
    assert np.all(found[model.fixed_point_ < GRID] < 0.0)
    # It is a guarantee as any other.
    assert model.worst_case_score(model.radius_) == pytest.approx(model.fixed_point_, abs=1e-4)
