"""Numbers at the ends of the scale: scores and features of 1e-320 to 1e150, and single precision."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sturdy_cases import ROUTES, chains, pairs, rows

from nashlearn import NashAbstainer, NashClassifier, NashMatcher, NashOrdinalClassifier, NashTagger, games

GAMES = {
    "zero_one": games.zero_one,
    "absolute": games.absolute,
    "squared": games.squared,
    "abstain": lambda k: games.abstain(k, 0.3),
    "cost": lambda k: games.cost(np.abs(np.subtract.outer(np.arange(k), np.arange(k))) ** 0.5),
}
SCALES = [1e-320, 1e-150, 1e-30, 1e30, 1e150]


@pytest.mark.parametrize("name", GAMES)
@given(
    scores=st.lists(st.sampled_from([-1.0, 0.0, 0.5, 1.0, 3.0]), min_size=2, max_size=5),
    scale=st.sampled_from(SCALES),
)
@settings(max_examples=60, deadline=None)
def test_games_at_any_scale(name, scores, scale):
    """Far apart, the best score decides alone; close together, the game is that of no scores."""
    theta = scale * np.array([scores])
    game = GAMES[name](theta.shape[1])
    found = game.solve(theta)
    size = max(np.abs(theta).max(), 1.0)
    assert np.isfinite(found.value).all()
    assert 0.0 <= found.gap[0] <= 1e-9 * size
    for player in (found.p, found.q):
        assert (player >= -1e-12).all()
        assert np.allclose(player.sum(axis=1), 1.0, atol=1e-9)
    if scale < 1.0:
        assert found.value[0] == pytest.approx(game.solve(0.0 * theta).value[0], abs=1e-9)
    else:
        assert found.value[0] == pytest.approx(theta.max(), rel=1e-9, abs=game.costs.max() + 1e-9 * size)


ROWS = [
    NashClassifier(),
    NashClassifier("absolute"),
    NashOrdinalClassifier(),
    NashAbstainer(0.3),
    NashClassifier(kernel="rbf"),
]


@pytest.mark.parametrize("model", ROWS, ids=repr)
@given(scale=st.sampled_from([1e-300, 1e-150, 1e-20, 1e20, 1e75, 1e150]), alone=st.booleans())
@settings(max_examples=12, deadline=None)
def test_rows_at_any_scale_are_trained_or_refused(model, scale, alone):
    """All features, or one alone: an honest certificate, or an error that speaks of the scale."""
    X, y = rows(60, 3)
    X = X * ([1.0, scale, 1.0] if alone else scale)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            fitted = clone(model).set_params(max_iter=50, random_state=0).fit(X, y)
        except ValueError as error:
            assert scale > 1.0
            assert "scale the features" in str(error)
            return
    assert {w.category for w in caught} <= {ConvergenceWarning}
    assert np.isfinite(fitted.objective_)
    assert (fitted.dual_gap_ > fitted.tol) == bool(caught)
    if caught and alone and model.kernel is None:
        assert "they differ in size by a factor of" in str(caught[0].message)
    assert np.isfinite(fitted.predict_proba(X)).all()


@pytest.mark.parametrize("scale", [1e-150, 1e-20, 1e20, 1e100])
@pytest.mark.parametrize(("model", "data"), [(NashTagger(), chains), (NashMatcher(), pairs)], ids=["chains", "pairs"])
def test_structures_at_any_scale(model, data, scale):
    X, y = data(5)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = clone(model).set_params(max_iter=20).fit([scale * x for x in X], y)
    assert {w.category for w in caught} <= {ConvergenceWarning}, [str(w.message) for w in caught]
    assert np.isfinite(fitted.objective_)
    assert (fitted.dual_gap_ > fitted.tol) == bool(caught)
    fitted.predict([scale * x for x in X])


@pytest.mark.parametrize("name", ["ascent", "newton", "thresholds", "abstain", "kernel"])
def test_single_precision_finds_the_same_optimum(name):
    estimator, data = ROUTES[name]
    X, y = data()
    single = X.astype(np.float32)
    low, high = (clone(estimator).set_params(tol=1e-6).fit(Z, y) for Z in (single, single.astype(np.float64)))
    assert low.dual_gap_ <= 1e-6
    assert low.objective_ == pytest.approx(high.objective_, rel=1e-5)
    assert low.predict_proba(single).dtype.kind == "f"
    assert np.allclose(low.predict_proba(single), high.predict_proba(single.astype(np.float64)), atol=1e-2)


@given(k=st.integers(2, 6), seed=st.integers(0, 2**31), scale=st.sampled_from([1e-30, 1.0, 1e30]))
@settings(max_examples=40, deadline=None)
def test_single_precision_games_are_close(k, seed, scale):
    theta = scale * np.random.default_rng(seed).normal(size=(20, k))
    single = theta.astype(np.float32)
    for make in GAMES.values():
        low, high = make(k).solve(single), make(k).solve(single.astype(np.float64))
        assert np.allclose(low.value, high.value, rtol=1e-5, atol=1e-5 * max(scale, 1.0))
