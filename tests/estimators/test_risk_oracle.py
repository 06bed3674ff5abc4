"""No distribution of outputs makes the strategy that is played lose more than ``worst_case_risk`` says.

For random small models of every estimator, however early their training ended, a conic programme looks for the worst
distribution within a radius (:mod:`trials`). The bound must hold for what it finds, at the distance that it has.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from small_models import KINDS
from trials import Trial

# Random settings meet the advice about alpha and prices of abstaining, which is tested elsewhere.
pytestmark = [
    pytest.mark.filterwarnings("ignore:alpha=.* is so large"),
    pytest.mark.filterwarnings("ignore:abstain_cost=.* is never worth paying"),
]

ROUNDING = 1e-7
FEW, MANY = 8, 250  # trials of each of nine kinds


def fitted(trial: Trial):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return trial.model.fit(trial.X, trial.y, **trial.fit), trial.strategy()


def excess(trial: Trial) -> float:
    """By how much the worst loss found exceeds its bound, relative to both; for three radii."""
    model, p = fitted(trial)
    slope = model.worst_case_risk(1.0) - model.worst_case_risk(0.0)  # the norm of the weights, or less
    found = []
    for radius in (0.0, 0.1, model.alpha * slope / trial.unit):
        Q = trial.worst(p, radius)
        bound = model.worst_case_risk(trial.distance(Q))
        found.append((trial.expected_loss(p, Q) - bound) / (1.0 + abs(bound)))
    return max(found)


def violations(kind: str, seeds: range) -> dict[str, float]:
    found = {}
    for seed in seeds:
        trial = KINDS[kind](np.random.default_rng([seed, 7]))
        if not (over := excess(trial)) <= ROUNDING:
            found[f"seed {seed}: {trial.name}"] = over
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_no_distribution_exceeds_the_bound(kind):
    assert not violations(kind, range(FEW))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_no_distribution_exceeds_the_bound_in_two_thousand_models(kind):
    assert not violations(kind, range(MANY))


@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_is_attained_where_training_has_converged(kind):
    """At the optimum of the exact game the worst case within ``alpha |w|`` is the bound itself: duality."""
    looked = 0
    for seed in range(2 * FEW):
        trial = KINDS[kind](np.random.default_rng([seed, 11]))
        if "hidden" in trial.name or "relaxed" in trial.name or "node weights" in trial.name:
            continue
        trial.model.set_params(tol=1e-3, max_iter=1000)
        trial.model.set_params(smoothing=0.0)
        model, p = fitted(trial)
        if model.dual_gap_ > 1e-3:
            continue
        radius = model.alpha / trial.unit * (model.worst_case_risk(1.0) - model.worst_case_risk(0.0))
        assert trial.expected_loss(p, trial.worst(p, radius)) >= 0.99 * model.worst_case_risk(radius) - 1e-9
        looked += 1
        if looked == 4:
            return
    pytest.fail(f"only {looked} models converged")
