"""Bad input gets an error that names it; the generic solver warns, accepts operators, and agrees."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.linalg import aslinearoperator
from sklearn.exceptions import ConvergenceWarning

from nashlearn import games
from nashlearn.game import Game
from nashlearn.games.rows.thresholds import ThresholdGame
from nashlearn.kernels import loss as kernels
from nashlearn.solvers.double_oracle import solve


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: games.zero_one(0), "k must be a positive integer"),
        (lambda: games.zero_one(2.0), "k must be a positive integer"),
        (lambda: games.zero_one(True), "k must be a positive integer"),
        (lambda: games.Simplex(-1), "k must be a positive integer"),
        (lambda: games.zero_one(3, weights=[1, 2]), "weights must hold one number for each of the 3 labels"),
        (lambda: games.zero_one(2, weights=[1, 0]), "weights must be positive"),
        (lambda: games.zero_one(2, weights=[1, np.nan]), "weights must be finite"),
        (lambda: games.absolute(3, values=[0, 1, 1]), "values must be strictly increasing"),
        (lambda: games.squared(3, values=[0, 2, 1]), "values must be strictly increasing"),
        (lambda: games.absolute(3, values=[0, 1]), "values must hold one number for each of the 3 labels"),
        (lambda: games.squared(2, values=[0, np.inf]), "values must be finite"),
        (lambda: games.squared(2, weights=[-1, 1]), "weights must be positive"),
        (lambda: games.abstain(3, -0.1), "cost must be finite and not negative"),
        (lambda: games.abstain(3, np.nan), "cost must be finite and not negative"),
        (lambda: games.abstain(3, [0.1, 0.2]), "cost must be a number or one for each of the 3 labels"),
        (lambda: games.cost([1.0, 2.0]), "L must be a matrix"),
        (lambda: games.cost(np.zeros((0, 3))), "L must be a matrix"),
        (lambda: games.cost([[0.0, np.inf]]), "L must be finite"),
        (lambda: games.cost([[0.0, -1.0]]), "L must not be negative"),
        (lambda: games.Enumerated([1.0, 0.0]), "vertices must be a finite matrix"),
        (lambda: games.Enumerated([[1.0, np.nan]]), "vertices must be a finite matrix"),
    ],
)
def test_factories_explain_what_is_wrong(make, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        make()


@pytest.mark.parametrize("game", [games.zero_one(3), games.cost(np.eye(3)), games.absolute(3)])
@pytest.mark.parametrize(
    ("scores", "words"),
    [
        (np.zeros(3), "scores must have shape (n, 3); got (3,); use scores[None, :]"),
        (np.zeros((2, 4)), "scores must have shape (n, 3); got (2, 4)"),
        (np.array([[0, 1, 2], [0, np.inf, 0]]), "row 1 holds +inf"),
        (np.full((1, 3), -np.inf), "row 0 is -inf throughout"),
        (np.zeros((1, 3), dtype=complex), "scores must be real numbers"),
    ],
)
def test_solve_explains_what_is_wrong(game, scores, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        game.solve(scores)


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ([0], "y must hold one label for each of the 2 instances"),
        ([[0], [1]], "y must hold one label for each row; got shape (2, 1)"),
        ([0, 3], "y must hold labels 0..2; got 3"),
        ([0, -1], "y must hold labels 0..2; got -1"),
        ([0.0, 1.0], "y must hold integer labels"),
    ],
)
def test_loss_value_explains_what_is_wrong(y, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        games.zero_one(3).loss_value(np.zeros((2, 3)), np.array(y))


def test_integers_are_scores_too():
    scores = np.array([[1, 0, 0], [0, 2, 0]])
    eq = games.zero_one(3).solve(scores)
    assert eq.value.dtype == np.float64
    assert np.allclose(eq.value, games.zero_one(3).solve(scores.astype(float)).value, atol=1e-15)


def test_arrays_in_any_order():
    scores = np.asfortranarray(np.random.default_rng(0).normal(size=(5, 4)))
    game = games.cost(np.asfortranarray(np.random.default_rng(1).random((3, 4))))
    expected = game.solve(np.ascontiguousarray(scores)).value
    assert np.allclose(game.solve(scores).value, expected, atol=1e-14)
    assert np.allclose(game.solve(np.repeat(scores, 2, axis=1)[:, ::2]).value, expected, atol=1e-14)


@pytest.mark.parametrize("game", [games.zero_one(3), games.abstain(3, 0.2), games.cost(np.eye(3))])
def test_games_can_be_pickled(game):
    scores = np.random.default_rng(0).normal(size=(2, 3))
    again = pickle.loads(pickle.dumps(game))
    assert np.allclose(again.solve(scores).value, game.solve(scores).value, rtol=0, atol=1e-15)


def matching_game(loss=None):
    permutations = games.Enumerated([[1, 0, 0, 1], [0, 1, 1, 0]])
    return Game(permutations, permutations, np.kron(np.eye(2), 1.0 - np.eye(2)) if loss is None else loss)


def test_the_double_oracle_warns_when_stopped_early():
    rng = np.random.default_rng(0)
    simplex = games.Simplex(6)
    with pytest.warns(ConvergenceWarning, match="stopped at a gap"):
        game = Game(simplex, simplex, rng.random((6, 6)))
        eq = solve(game, 0.1 * rng.normal(size=(3, 6)), tol=1e-9, max_iter=1)
    assert eq.gap.max() > 1e-9


@pytest.mark.parametrize("wrap", [scipy.sparse.csr_array, aslinearoperator])
def test_the_double_oracle_takes_any_operator(wrap):
    scores = np.array([[0.3, -0.1, 0.0, 0.4], [1.0, 0.0, 0.0, 0.0]])
    dense = matching_game()
    value = matching_game(wrap(dense.loss)).solve(scores).value
    assert np.allclose(value, dense.solve(scores).value, atol=1e-12)


def test_the_double_oracle_agrees_with_the_simplex_method():
    rng = np.random.default_rng(2)
    L, scores = rng.random((8, 6)), rng.normal(size=(20, 6))
    generic = Game(games.Simplex(6), games.Simplex(8), L).solve(scores)
    assert np.abs(generic.value - games.cost(L).solve(scores).value).max() <= 1e-12


def test_a_simplex_method_that_ends_early_warns(monkeypatch):
    def stopped(loss, scores, value, q, p, gap, entropy):
        value[:], q[:], p[:], gap[:], entropy[:] = 1.0, 0.5, 0.5, 0.3, 0.5

    monkeypatch.setattr(kernels, "solve_rows", stopped)
    with pytest.warns(ConvergenceWarning, match="left a gap of 3.0e-01"):
        games.cost(np.eye(2)).solve(np.zeros((1, 2)))


def test_the_simplex_method_where_rows_are_nearly_alike():
    rng = np.random.default_rng(3)
    for _ in range(200):
        t = rng.normal(size=rng.integers(3, 20))
        t = np.unique(np.r_[t, rng.choice(t, 2) + 10.0 ** -rng.integers(2, 9)])
        exact = games.squared(t.size, values=t)
        scores = rng.normal(size=(5, t.size)) * rng.choice([0.01, 0.1, 1.0])
        eq = games.cost(exact.costs).solve(scores)
        assert np.abs(eq.value - exact.solve(scores).value).max() <= 1e-9 * (1 + exact.costs.max())
        assert eq.gap.max() <= 1e-9 * (1 + exact.costs.max())


def test_the_double_oracle_takes_losses_of_any_sign():
    rng = np.random.default_rng(4)
    L, scores = rng.normal(size=(4, 4)), rng.normal(size=(5, 4))
    generic = Game(games.Simplex(4), games.Simplex(4), L).solve(scores)
    raised = games.cost(L - L.min()).solve(scores).value + L.min()
    assert np.abs(generic.value - raised).max() <= 1e-12


def test_the_double_oracle_explains_what_is_wrong():
    with pytest.raises(ValueError, match=re.escape("scores must have shape (n, 4); got (4,)")):
        matching_game().solve(np.zeros(4))
    with pytest.raises(ValueError, match=re.escape("(n, 4); got (1, 6); the loss has as many columns")):
        Game(Halves(), Halves(), np.eye(4)).solve(np.zeros((1, 6)))
    with pytest.raises(ValueError, match="tol must be a number, not negative; got nan"):
        matching_game().solve(np.zeros((1, 4)), tol=np.nan)
    with pytest.raises(ValueError, match=re.escape("scores[1] holds +inf")):
        matching_game().solve(np.array([[0.0, 0.0, 0.0, 0.0], [0.0, np.inf, 0.0, 0.0]]))
    with pytest.raises(ValueError, match="scores must leave a label possible"):
        matching_game().solve(np.full((1, 4), -np.inf))


class Halves:
    """Two of four items, by an oracle that can be spoilt."""

    def __init__(self, spoilt: str = ""):
        self.spoilt = spoilt

    def argmax(self, scores):
        chosen = (scores if self.spoilt == "worst" else -scores).argsort(axis=1).argsort(axis=1) < 2
        if self.spoilt == "overwrites":
            scores[...] = 0.0
        return chosen[0] if self.spoilt == "one" else chosen

    def vertex(self, labels):
        return np.asarray(labels, dtype=float)


def halves(spoilt: str = "") -> Game:
    return Game(Halves(spoilt), Halves(spoilt), games.Hamming(np.ones(4), 0.5))


def test_an_oracle_may_overwrite_its_scores():
    scores = np.random.default_rng(0).normal(size=(5, 4))
    found, right = halves("overwrites").solve(scores), halves().solve(scores)
    assert np.array_equal(found.value, right.value) and found.gap.max() <= 1e-9


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: halves("worst").solve(np.array([[0.9, 0.8, 0.1, 0.0]])),
            "argmax of Halves must return the best vertex",
        ),
        (lambda: halves("one").solve(np.zeros((1, 4))), "must return a vertex of shape (4,) for each of 1 rows"),
        (lambda: halves().loss_value(np.zeros((3, 4)), np.ones((3, 1))), "y must name vertices of shape (4,)"),
        (lambda: Game(object(), Halves(), np.eye(4)), "labels must have the methods argmax and vertex"),
        (lambda: Game(Halves(), Halves(), [[0.0, 1.0]]), "loss must be a matrix, or an operator"),
        (lambda: games.Hamming(np.ones(6), np.ones(3)), "unit must be one number or as many as weights, 6; got 3"),
    ],
)
def test_what_a_game_is_made_of_is_looked_at(make, words):
    with pytest.raises((TypeError, ValueError), match=re.escape(words)):
        make()


def test_the_largest_cost_is_the_unit_of_smoothing():
    assert games.zero_one(3, weights=[0.5, 2.0, 1.0]).largest == 2.0
    assert games.squared(4).largest == 9.0 and games.abstain(3, 1.5).largest == 1.5
    assert games.cost([[0.0, 3.0], [7.0, 1.0]]).largest == 7.0
    assert games.zero_one(1).largest == games.cost(np.zeros((2, 3))).largest == ThresholdGame(3).largest == 1.0
