"""The primal along a ray: value and slope agree with the objective, and the search ends near the best length."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nashlearn import games
from nashlearn.training.methods.ray import Ray

GAMES = {"zero_one": games.zero_one(3), "absolute": games.absolute(3), "abstain": games.abstain(3, 0.3)}


def _ray(name: str, seed: int, half: float, fixed: bool) -> tuple[Ray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    theta, y = rng.normal(size=(20, 3)), rng.integers(3, size=20)
    theta[np.arange(20), y] += 1.0
    omega = rng.dirichlet(np.ones(20))
    offset = rng.normal(size=(20, 3)) if fixed else np.zeros((20, 3))
    return Ray(GAMES[name], theta, np.eye(3)[y], omega, half, offset), theta, y, omega, offset


@pytest.mark.parametrize("name", GAMES)
@given(seed=st.integers(0, 1000), s=st.floats(0.1, 5.0), half=st.floats(1e-4, 1.0), fixed=st.booleans())
@settings(max_examples=15, deadline=None)
def test_value_is_the_objective_and_slope_its_subgradient(name, seed, s, half, fixed):
    ray, theta, y, omega, offset = _ray(name, seed, half, fixed)

    def objective(t):
        return omega @ GAMES[name].loss_value(offset + t * theta, y) + t * t * half

    value, slope = ray.at(s)
    assert value == pytest.approx(objective(s), rel=1e-9, abs=1e-12)
    for t in (0.5 * s, 0.99 * s, 1.01 * s, 2.0 * s):
        assert objective(t) >= value + slope * (t - s) - 1e-9


@pytest.mark.parametrize("name", GAMES)
@given(seed=st.integers(0, 1000), half=st.floats(1e-4, 0.1), start=st.floats(0.5, 2.0))
@settings(max_examples=15, deadline=None)
def test_search_ends_near_the_best_length(name, seed, half, start):
    ray, *_ = _ray(name, seed, half, False)
    best = min(ray.at(s)[0] for s in np.geomspace(1e-3, 1e3, 3000))
    value, s = ray.best(start, 60)
    assert value == ray.at(s)[0] or value == pytest.approx(ray.at(s)[0], rel=1e-12)
    assert value <= best * (1 + 1e-3)
