"""Cutting planes on games that cannot smooth, made of polytopes that are known by their best vertices alone."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from training_problems import LOSSES, data, per_class

from nashlearn import Game
from nashlearn.training import train
from nashlearn.training.methods.bundle import Bundle
from nashlearn.training.methods.descent import Descent
from nashlearn.training.methods.linear import Linear
from nashlearn.training.objective import GameProblem


class Subsets:
    """Choices of m of n items."""

    def __init__(self, m):
        self.m = m

    def argmax(self, scores):
        chosen = np.zeros(scores.shape, dtype=bool)
        np.put_along_axis(chosen, np.argsort(-scores, axis=1)[:, : self.m], True, axis=1)
        return chosen

    def vertex(self, labels):
        return np.asarray(labels, dtype=float)


def subsets(seed, n=40, items=6, m=2, d=5):
    rng = np.random.default_rng(seed)
    X, polytope = rng.normal(size=(n, items, d)), Subsets(m)
    game = Game(polytope, polytope, np.full((items, items), 1 / m) - np.eye(items))
    Y = polytope.vertex(polytope.argmax(X @ rng.normal(size=d) + rng.normal(size=(n, items))))
    design = SimpleNamespace(
        n_weights=d, scores=lambda w: X @ w, moments=lambda q, omega: np.einsum("nid,ni,n->d", X, q, omega)
    )
    omega = np.full(n, 1 / n)
    return GameProblem(design, game, design.moments(Y, omega), omega)


@pytest.mark.parametrize("alpha", [1e-2, 1e-3])
def test_subsets_are_learnt_to_a_certified_gap(alpha):
    problem = subsets(0)
    found = train(problem, Bundle(), alpha=alpha, tol=1e-3, max_iter=60)
    assert 0 <= found.dual_gap <= 1e-3
    finer = train(problem, Bundle(), alpha=alpha, tol=1e-5, max_iter=200)
    assert found.objective * (1 - found.dual_gap) <= finer.objective * (1 + 1e-12)
    assert finer.objective * (1 - finer.dual_gap) <= found.objective
    assert problem.evaluate(found.w, 0.0).loss + 0.5 * alpha * found.w @ found.w == pytest.approx(found.objective)


@given(st.sampled_from(["zero_one", "absolute", "cost-tall"]), st.integers(0, 2**32 - 1), st.floats(-3, 0))
@settings(max_examples=10, deadline=None)
def test_rows_have_the_optimum_of_their_own_method(name, seed, power):
    """Every round holds the optimum between its objective and its bound, whatever the step did."""
    X, y = data(seed, n=20, d=2, k=3)
    problem = per_class(X, y, LOSSES[name](3), alpha=10.0**power)
    exact = train(problem, Linear(), tol=1e-9, max_iter=3000, random_state=np.random.default_rng(0)).objective
    found = train(problem, Bundle(), tol=1e-3, max_iter=500)
    assert found.dual_gap <= 1e-3
    for seen in found.rounds:
        assert seen.bound <= exact * (1 + 1e-9) and seen.objective >= exact * (1 - 1e-9)


def test_a_run_that_is_too_short_is_told():
    with pytest.warns(ConvergenceWarning, match="after 3 iterations"):
        found = train(subsets(1), Bundle(), alpha=1e-2, tol=1e-6, max_iter=3)
    assert found.dual_gap > 1e-6


def test_a_method_names_what_the_problem_lacks():
    problem = SimpleNamespace(evaluate=None, n_weights=3, complete=True)
    with pytest.raises(TypeError, match=r"Descent needs a problem with .*; SimpleNamespace has no curvature\."):
        train(problem, Descent((0.1,)), alpha=1.0, tol=1e-3, max_iter=1)
