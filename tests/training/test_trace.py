"""Training's values come from one place: the equilibria that the games' ``solve`` returns.

``solve`` is replaced by one that adds a constant to each value, as if every example had that loss on top of its own.
The objective must move by just that constant. Had a method of training a source of values of its own, it would stay.
"""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from nashlearn import Equilibrium, Game, NashClassifier, NashMatcher, NashParser, NashPredictor, NashTagger, games
from nashlearn.datasets.conllu import Sentence
from nashlearn.games.networks.batch import Networks
from nashlearn.games.rows.game import RowGame
from nashlearn.parsing import HashedSentences
from nashlearn.training import objective

MORE = 0.5  # for each example


def _rows(rng):
    X = rng.normal(size=(40, 3))
    return X, (X[:, 0] + rng.normal(size=40) > 0).astype(int), 1.0


def _sequences(rng):
    X = [rng.normal(size=(n, 2)) for n in (2, 3, 4)]
    return X, [(x[:, 0] + rng.normal(size=len(x)) > 0).astype(int) for x in X], 3 / 9


def _matchings(rng):
    X = [rng.normal(size=(n, n, 2)) for n in (2, 3, 4)]
    return X, [rng.permutation(len(x)) for x in X], 3 / 9


def _arcs(rng):
    X = [rng.normal(size=(n, n + 1, 2)) for n in (2, 3, 4)]
    trees = [games.arborescence(len(x), single_root=True) for x in X]
    return X, [tree.argmax(rng.normal(size=(1, *tree.shape)))[0] for tree in trees], 3 / 9


def _hashed(rng):
    _, y, share = _arcs(rng)
    rows = [[[str(i + 1), word, word, word, *"______"] for i, word in enumerate("abcd"[: len(heads)])] for heads in y]
    return HashedSentences([Sentence(row) for row in rows], bits=10), y, share


def _subsets(rng):
    return list(rng.normal(size=(8, 3, 2))), list(rng.integers(3, size=8)), 1.0


SUBSETS, LOSS = games.Enumerated(1.0 - np.eye(3)), np.full((3, 3), 0.5) - np.eye(3)
# An estimator, its data with the share of an example in the mean times their number, and whose ``solve`` it plays; of
# rows, what ``solve`` returns after its checks.
CASES = {
    "classifier": (NashClassifier(alpha=0.1, smoothing=0.0), _rows, RowGame, "equilibria"),
    "classifier, kernel": (NashClassifier(alpha=0.1, kernel="rbf"), _rows, RowGame, "equilibria"),
    "tagger": (NashTagger(alpha=0.1, smoothing=0.5), _sequences, Networks, "solve"),
    "matcher": (NashMatcher(alpha=0.1), _matchings, games.MatchingGame, "solve"),
    "parser": (NashParser(alpha=0.1), _arcs, games.ArborescenceGame, "solve"),
    "parser, hashed": (NashParser(alpha=0.1, random_state=0), _hashed, games.ArborescenceGame, "solve"),
    "predictor": (NashPredictor(Game(SUBSETS, SUBSETS, LOSS), alpha=0.1), _subsets, Game, "solve"),
}


def test_rows_are_solved_by_what_is_traced(monkeypatch):
    game, found = games.zero_one(3), object.__new__(Equilibrium)
    object.__setattr__(found, "gap", np.zeros(1))
    monkeypatch.setattr(RowGame, "equilibria", lambda *_: found)
    assert game.solve(np.zeros((1, 3))) is found


@pytest.mark.parametrize("name", CASES)
def test_objectives_move_with_the_values_that_games_return(name, monkeypatch):
    model, draw, owner, method = CASES[name]
    X, y, share = draw(np.random.default_rng(0))
    before = model.set_params(tol=1e-4, max_iter=200).fit(X, y).objective_
    returned: list[object] = []
    solve = getattr(owner, method)

    def dearer(self, *arguments, **options):
        found = solve(self, *arguments, **options)
        more = {field: getattr(found, field) + MORE for field in ("value", "entropy", "risk")}
        returned.append(dataclasses.replace(found, **more))
        return returned[-1]

    monkeypatch.setattr(owner, method, dearer)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # bounds may not move along
        after = model.fit(X, y).objective_
    assert returned
    unit = 1.5 if name == "tagger" else 1.0  # what objectives are divided by, 1 and the smoothing
    assert after - before == pytest.approx(MORE * share / unit, abs=1e-3 * before)


@pytest.mark.parametrize("name", [name for name in CASES if "classifier" not in name])
def test_every_evaluation_is_made_of_equilibria_that_games_returned(name, monkeypatch):
    """And of nothing else: what a method of training sees of structured data passes through one function."""
    model, draw, _, _ = CASES[name]
    X, y, _ = draw(np.random.default_rng(1))
    played: list[object] = []
    play, evaluation = objective.GameProblem.play, objective.evaluation

    def recorded(self, *arguments):
        played.append(play(self, *arguments))
        return played[-1]

    def checked(found, *arguments):
        assert found is played[-1]
        return evaluation(found, *arguments)

    monkeypatch.setattr(objective.GameProblem, "play", recorded)
    monkeypatch.setattr(objective, "evaluation", checked)
    model.set_params(tol=1e-2).fit(X, y)
    values = [float(np.sum(found.value + found.gap)) for found in played]
    assert values and np.isfinite(values).all()
