"""Any game through one door: the optimum of a programme over all vertices, formats, saving, checkpoints, errors."""

from __future__ import annotations

import pickle
from itertools import combinations, permutations, product

import numpy as np
import pytest
import scipy.sparse as sp
from enumeration import tree_heads
from hypothesis import given, settings
from hypothesis import strategies as st
from qp_reference import vertex_optimum
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV

import nashlearn
from nashlearn import Game, NashMatcher, NashPredictor, games
from nashlearn.persistence import ModelFileError


class Shortlists:
    """Choices of m of n items. A label is a mask."""

    def __init__(self, n: int, m: int):
        self.n, self.m = n, m

    def argmax(self, scores):
        return np.argsort(np.argsort(-scores, axis=1), axis=1) < self.m

    def vertex(self, labels):
        return np.asarray(labels, dtype=float)

    @property
    def shape(self):
        return (self.n,)


def shortlist_game(n: int, m: int = 2) -> Game:
    both = Shortlists(n, m)
    return Game(both, both, games.Hamming(np.ones(n), np.full(n, 1.0 / m)))


def _masks(n: int, m: int) -> list[np.ndarray]:
    return [np.isin(np.arange(n), chosen) for chosen in combinations(range(n), m)]


# A game and all of its labels.
CASES = {
    "own polytope": (shortlist_game(4), _masks(4, 2)),
    "zero-one": (games.zero_one(3), list(range(3))),
    "abstaining": (games.abstain(3, 0.2), list(range(3))),
    "costs": (games.cost([[0.0, 3.0], [1.0, 0.0], [0.4, 1.5]]), [0, 1]),
    "matching": (games.matching(3), [np.array(y) for y in permutations(range(3))]),
    "partial matching": (
        games.partial_matching(2, 2),
        [np.array(y) for y in product((-1, 0, 1), repeat=2) if y[0] != y[1] or y[0] < 0],
    ),
    "trees": (games.arborescence(3), list(tree_heads(3, False))),
    "spanning trees": (
        games.spanning_tree([(0, 1), (1, 2), (2, 0), (2, 3)]),
        [np.array(y, bool) for y in ((1, 1, 0, 1), (1, 0, 1, 1), (0, 1, 1, 1))],
    ),
}
CHAIN = games.markov([(0, 1)], 2, loss="absolute"), [np.array(y) for y in product((0, 1), repeat=2)]
OPTIONS = {"abstaining": 4, "costs": 3}  # that are not the labels


def draw(rng, name: str, count: int, d: int = 3):
    """Features, labels at random with some sense in them, and weights."""
    game, labels = CASES[name]
    dim = int(np.prod(game.shape))
    X = list(rng.normal(size=(count, dim, d)))
    vertices = flat_vertices(game, labels)
    noisy = [vertices @ (x @ np.ones(d) + rng.normal(size=dim)) for x in X]
    return X, [labels[int(scores.argmax())] for scores in noisy], rng.integers(0, 3, count) + 0.5


def flat_vertices(game: Game, labels) -> np.ndarray:
    return np.array([game.vertex(np.asarray(label)[None]).ravel() for label in labels])


def position(labels, label) -> int:
    return next(i for i, one in enumerate(labels) if np.array_equal(one, label))


def reference(name: str, X, y, weight, alpha: float) -> float:
    """The least objective over all mixtures of listed vertices, from costs that are counted here."""
    game, labels = CASES[name]
    vertices = flat_vertices(game, labels)
    if name in OPTIONS:
        costs = game.costs
    else:
        options = [game.options.vertex(np.asarray(label)[None]) for label in labels]
        costs = np.array([[game.task_loss(p, v.reshape(1, *game.shape))[0] for v in vertices] for p in options])
    truth = [position(labels, label) for label in y]
    return vertex_optimum(X, [vertices] * len(X), truth, weight / weight.sum(), alpha, lambda _: costs)


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=8)
@given(seed=st.integers(0, 10**6), alpha=st.sampled_from([1.0, 0.1, 0.01]))
def test_objective_is_the_optimum_to_the_certified_gap(name, seed, alpha):
    X, y, weight = draw(np.random.default_rng(seed), name, 6)
    model = NashPredictor(CASES[name][0], alpha=alpha).fit(X, y, weight)
    optimum = reference(name, X, y, weight, alpha)
    assert 0 <= model.dual_gap_ <= 1e-3
    assert optimum - 1e-7 <= model.objective_ <= optimum + model.dual_gap_ * model.objective_ + 1e-7


@pytest.mark.parametrize("name", CASES)
def test_hamming_costs_are_counted_right(name):
    """What the reference takes from ``task_loss``, counted part by part."""
    game, labels = CASES[name]
    counts = {
        "own polytope": lambda a, b: (b & ~a).sum(),
        "zero-one": lambda a, b: float(a != b),
        "matching": lambda a, b: (a != b).sum(),
        "partial matching": lambda a, b: (a != b).sum(),
        "trees": lambda a, b: (a != b).sum(),
        "spanning trees": lambda a, b: (b & ~a).sum(),
    }
    if name in OPTIONS:
        pytest.skip("the cost matrix is given")
    for a, b in product(labels, repeat=2):
        vertex = game.vertex(np.asarray(b)[None])
        assert game.task_loss(game.options.vertex(np.asarray(a)[None]), vertex)[0] == pytest.approx(counts[name](a, b))


@pytest.mark.parametrize("name", CASES)
def test_answers(name):
    game, _ = CASES[name]
    X, y, weight = draw(np.random.default_rng(1), name, 12)
    model = NashPredictor(game, alpha=0.05).fit(X, y)
    scores, p, answers = model.decision_function(X), model.strategy(X), model.predict(X)
    assert all(own.shape == game.shape for own in scores) and all(own.shape == game.option_shape for own in p)
    assert all(np.allclose(own.ravel(), x @ model.coef_) for own, x in zip(scores, X, strict=True))
    assert all(np.array_equal(a, b) for a, b in zip(model.predict_proba(X), p, strict=True))
    truth = [game.vertex(np.asarray(label)[None]) for label in y]
    paid = [game.task_loss(own[None], v)[0] for own, v in zip(p, truth, strict=True)]
    assert np.mean(paid) <= model.worst_case_risk() + 1e-9
    assert model.worst_case_risk(0.5) == pytest.approx(model.worst_case_risk() + 0.5 * np.linalg.norm(model.coef_))
    played = [game.options.vertex(np.asarray(one)[None]) for one in answers]
    lost = np.array([game.task_loss(own, v)[0] for own, v in zip(played, truth, strict=True)])
    assert model.task_loss(X, y) == pytest.approx(lost.mean(), abs=1e-12)
    assert model.score(X, y, weight) == pytest.approx(-(weight @ lost) / weight.sum(), abs=1e-12)


def test_who_may_abstain_does():
    X, y, _ = draw(np.random.default_rng(0), "abstaining", 40)
    model = NashPredictor(games.abstain(3, 0.05), alpha=1.0).fit(X, y)
    assert 3 in model.predict(X)
    assert model.task_loss(X, y) <= 0.05 + 1e-12


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # of games on the way, at small smoothing
def test_networks_are_games_too(monkeypatch, tmp_path):
    """Slowly: they have an estimator of their own."""
    pytest.importorskip("skops")
    monkeypatch.setitem(CASES, "chain", CHAIN)
    X, y, weight = draw(np.random.default_rng(0), "chain", 4)
    model = NashPredictor(CHAIN[0], alpha=0.1, tol=1e-2).fit(X, y, weight)
    optimum = reference("chain", X, y, weight, 0.1)
    assert optimum - 1e-7 <= model.objective_ <= optimum + model.dual_gap_ * model.objective_ + 1e-7
    assert model.dual_gap_ <= 1e-2
    nashlearn.save(model, tmp_path / "model")
    assert nashlearn.load(tmp_path / "model").task_loss(X, y) == model.task_loss(X, y)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_a_matcher_of_one_size_is_a_special_case(smoothing):
    """The mean is over examples here and over left elements there: a factor of three, in alpha too.

    The matcher divides its loss by ``1 + smoothing``, and its alpha is against that.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3, 3, 2))
    y = games.matching(3).argmax(X[..., 0] + rng.normal(size=(20, 3, 3)))
    here = NashPredictor(games.matching(3), alpha=0.3, smoothing=smoothing, tol=1e-4).fit(X, y)
    there = NashMatcher(alpha=0.1 * (1 + smoothing), smoothing=smoothing, tol=1e-4).fit(list(X), list(y))
    assert here.objective_ == pytest.approx(3 * (1 + smoothing) * there.objective_, rel=2e-4)
    np.testing.assert_allclose(here.coef_, (1 + smoothing) * there.coef_, atol=0.05 * np.abs(here.coef_).max())


def test_formats_are_the_same_problem():
    X, y, _ = draw(np.random.default_rng(0), "matching", 15)
    fits = [
        NashPredictor(games.matching(3), alpha=0.1).fit(given, y)
        for given in (X, np.array(X), [x.reshape(3, 3, -1) for x in X], [sp.csr_matrix(x) for x in X])
    ]
    fits.append(NashPredictor(lambda dim: games.matching(round(dim**0.5)), alpha=0.1).fit(X, y))
    assert all(fit.objective_ == pytest.approx(fits[0].objective_, rel=1e-9) for fit in fits)
    assert all(np.array_equal(a, b) for a, b in zip(fits[0].predict(X), fits[3].predict(X), strict=True))


def test_games_of_several_sizes():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, 3)) for n in (3, 4, 5, 3, 4, 5, 6, 6)]
    y = [shortlist_game(len(x)).argmax((x[:, 0] + 0.5 * rng.normal(size=len(x)))[None])[0] for x in X]
    made = []

    def game(n):
        made.append(n)
        return shortlist_game(n)

    model = NashPredictor(game, alpha=0.05).fit(X, y)
    assert sorted(made) == [3, 4, 5, 6]  # one for each size
    vertices = [flat_vertices(shortlist_game(len(x)), _masks(len(x), 2)) for x in X]
    costs = [2.0 - v @ v.T for v in vertices]
    truth = [position(_masks(len(x), 2), label) for x, label in zip(X, y, strict=True)]
    optimum = vertex_optimum(X, vertices, truth, np.full(8, 1 / 8), 0.05, lambda i: costs[i])
    assert optimum - 1e-7 <= model.objective_ <= optimum * (1 + 1.1e-3)
    assert [own.shape for own in model.strategy(X)] == [x.shape[:1] for x in X]


def test_weights_are_repetitions():
    X, y, _ = draw(np.random.default_rng(3), "own polytope", 6)
    weight = np.array([0, 1, 2, 3, 1, 2])
    again = np.repeat(np.arange(6), weight)
    here = NashPredictor(shortlist_game(4), alpha=0.1, tol=1e-5).fit(X, y, weight)
    there = NashPredictor(shortlist_game(4), alpha=0.1, tol=1e-5).fit([X[i] for i in again], [y[i] for i in again])
    assert here.objective_ == pytest.approx(there.objective_, rel=2e-5)


def test_the_unit_of_costs_does_not_matter():
    """Costs and scores of another unit are the same problem, and its way through smoother games is as long."""
    rng = np.random.default_rng(0)
    X = list(rng.normal(size=(40, 9, 6)))
    y = [games.matching(3).argmax((x @ np.ones(6) + rng.normal(size=9)).reshape(1, 3, 3))[0] for x in X]
    small, one, large = (
        NashPredictor(games.matching(3, weights=np.full(3, unit)), alpha=0.01 / unit, tol=1e-4).fit(X, y)
        for unit in (1e-4, 1.0, 1e4)
    )
    for unit, other in ((1e-4, small), (1e4, large)):
        assert other.objective_ == pytest.approx(unit * one.objective_, rel=2e-4) and other.dual_gap_ <= 1e-4
        assert 2 / 3 <= other.n_iter_ / one.n_iter_ <= 3 / 2


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", ["own polytope", "trees"])
def test_a_checkpoint_goes_on_where_it_was_left(name, tmp_path):
    game, X, y = CASES[name][0], *draw(np.random.default_rng(2), name, 20)[:2]
    whole = NashPredictor(game, alpha=1e-3, tol=1e-6).fit(X, y)
    kept = NashPredictor(game, alpha=1e-3, tol=1e-6, checkpoint=tmp_path / "kept", max_iter=4)
    first = kept.fit(X, y).objective_
    resumed = clone(kept).set_params(max_iter=1000).fit(X, y)
    assert resumed.n_iter_ > 4 and resumed.objective_ < first
    assert resumed.objective_ == pytest.approx(whole.objective_, rel=2e-6)
    with pytest.raises(ValueError, match="checkpoint"):
        clone(kept).fit(X[::-1], y)
    other = {"own polytope": shortlist_game(4, 1), "trees": games.arborescence(3, weights=[1.0, 2.0, 1.0])}[name]
    with pytest.raises(ValueError, match="checkpoint"):
        clone(kept).set_params(game=other).fit(X, y if name == "trees" else other.argmax(np.stack(X)[..., 0]))


def test_copies_pickles_and_searches():
    X, y, _ = draw(np.random.default_rng(0), "own polytope", 12)
    model = NashPredictor(shortlist_game(4), alpha=0.1)
    assert model.get_params()["game"] is model.game
    twin = pickle.loads(pickle.dumps(clone(model).fit(X, y)))
    assert twin.task_loss(X, y) == model.fit(X, y).task_loss(X, y)
    found = GridSearchCV(model, {"alpha": [0.01, 10.0]}, cv=2).fit(X, y)
    assert found.best_params_["alpha"] in (0.01, 10.0)


@pytest.mark.parametrize("name", [name for name in CASES if name != "own polytope"])
def test_models_of_shipped_games_are_saved(name, tmp_path):
    pytest.importorskip("skops")
    game, X, y = CASES[name][0], *draw(np.random.default_rng(0), name, 8)[:2]
    model = NashPredictor(game, alpha=0.1).fit(X, y)
    nashlearn.save(model, tmp_path / "model")
    again = nashlearn.load(tmp_path / "model")
    assert all(np.array_equal(a, b) for a, b in zip(again.predict(X), model.predict(X), strict=True))
    assert again.worst_case_risk(0.1) == model.worst_case_risk(0.1)
    assert again.fit(X, y).objective_ == pytest.approx(model.objective_)


def test_models_of_own_polytopes_are_saved_where_they_are_trusted(tmp_path):
    pytest.importorskip("skops")
    X, y, _ = draw(np.random.default_rng(0), "own polytope", 8)
    model = NashPredictor(shortlist_game(4), alpha=0.1).fit(X, y)
    with pytest.raises(ModelFileError, match=r"it holds .*Shortlists.*trusted="):
        nashlearn.save(model, tmp_path / "model")
    nashlearn.save(model, tmp_path / "model", trusted=[Shortlists])
    with pytest.raises(ModelFileError, match="not trusted"):
        nashlearn.load(tmp_path / "model")
    again = nashlearn.load(tmp_path / "model", trusted=[f"{Shortlists.__module__}.Shortlists"])
    assert again.game.options is again.game.labels
    assert again.task_loss(X, y) == model.task_loss(X, y)
    with pytest.raises(ModelFileError, match="game is a function"):
        nashlearn.save(NashPredictor(shortlist_game, alpha=0.1).fit(X, y), tmp_path / "other")


def test_too_few_iterations_warn():
    X, y, _ = draw(np.random.default_rng(0), "own polytope", 12)
    with pytest.warns(ConvergenceWarning):
        model = NashPredictor(shortlist_game(4), alpha=1e-4, tol=1e-9, max_iter=2).fit(X, y)
    assert model.dual_gap_ > 1e-9


def test_what_is_right_may_cost_something():
    """Scores decide only where the true label is free: with these costs they would be wrong on most rows."""
    rng, L = np.random.default_rng(0), np.array([[0.0, 10.0], [1.0, 3.0]])
    x = rng.normal(size=200)
    y = (x + rng.normal(size=200) > 0).astype(int)
    X, one, other = [np.array([[0.0, 0.0], [v, 1.0]]) for v in x], *(games.Enumerated(np.eye(2)) for _ in range(2))
    shared, apart, rows = (
        NashPredictor(game).fit(X, y) for game in (Game(one, one, L), Game(one, other, L), games.cost(L))
    )
    assert shared.decision_ == apart.decision_ == rows.decision_ == "equilibrium"
    assert shared.score(X, y) == pytest.approx(apart.score(X, y)) == pytest.approx(rows.score(X, y), abs=0.05)
    free = NashPredictor(Game(one, one, 1.0 - np.eye(2))).fit(X, y)
    assert free.decision_ == "scores"
    assert np.array_equal(free.predict(X), [scores.argmax() for scores in free.decision_function(X)])


class Rankings:
    """Permutations of 1 to d as points, not 0/1 vectors."""

    def argmax(self, scores):
        return scores.argsort(axis=1).argsort(axis=1) + 1

    def vertex(self, labels):
        return np.asarray(labels, dtype=float)


@pytest.mark.parametrize("label", [[1, 1, 1, 1], [1, 2, 2, 2], [4, 4, 1, 1], [0, 1, 4, 5]])
def test_labels_outside_of_polytopes_that_are_not_of_zeros_and_ones(label):
    both, X = Rankings(), np.abs(np.random.default_rng(0).normal(size=(6, 4, 2)))
    model = NashPredictor(Game(both, both, 0.3 - np.eye(4)))
    with pytest.raises(ValueError, match=r"y\[1\] names a point outside of the polytope"):
        model.fit(X, [[1, 2, 3, 4], label] + [[4, 1, 2, 3]] * 4)


def test_points_inside_of_a_polytope_are_labels_too():
    X, y = np.ones((2, 4, 2)), [np.full(4, 0.5), np.array([1.0, 0.5, 0.5, 0.0])]
    assert NashPredictor(shortlist_game(4)).fit(X, y).objective_ >= 0


X2, Y2 = [np.ones((4, 2)), np.zeros((4, 2))], [np.array([1, 1, 0, 0], bool)] * 2


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([], [], "X must hold at least one example"),
        (3, Y2, "X must be a list of features"),
        ("ab", Y2, "X must be a list of features"),
        ([np.ones(4), np.ones(4)], Y2, r"X\[0\] must have shape \(dim, d\)"),
        ([np.ones((4, 0))] * 2, Y2, r"X\[0\] must have shape \(dim, d\) with at least one feature"),
        ([X2[0], np.ones((3, 2))], Y2, r"X\[1\] must have features of shape \(4, d\)"),
        ([X2[0], np.ones((2, 2, 2))], Y2, r"X\[1\] must have features of shape \(4, d\)"),
        ([X2[0], np.ones((4, 3))], Y2, r"X\[1\] .* differs in kind or width"),
        ([X2[0], sp.csr_matrix(X2[1])], Y2, r"X\[1\] .* differs in kind or width"),
        ([X2[0], np.full((4, 2), np.nan)], Y2, r"X\[1\] holds NaN or infinite"),
        ([X2[0], [["a", "b"]] * 4], Y2, r"X\[1\] must be an array"),
        (X2, Y2[:1], "same length; got 2 examples and 1"),
        (X2, 3, "y must be a list of labels"),
        (X2, [Y2[0], Y2[0][:3]], r"y\[1\] is no label"),
        (X2, [Y2[0], "ab"], r"y\[1\] is no label"),
        (X2, [Y2[0], np.ones(4, bool)], r"y\[1\] names a point outside of the polytope"),
        (X2, [np.zeros(4, bool), Y2[0]], r"y\[0\] names a point outside of the polytope"),
    ],
)
def test_bad_data(X, y, message):
    with pytest.raises((TypeError, ValueError), match=message):
        NashPredictor(shortlist_game(4)).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"game": None}, "game must be a Game, or a function"),
        ({"game": lambda n: None}, r"game must return a Game for the shape \(4,\) of X\[0\]"),
        ({"smoothing": -1.0}, "smoothing must be a finite number, not negative"),
        ({"smoothing": 0.1}, "smoothing must be 0: Game has no smoothed solver"),
        ({"alpha": 0.0}, "alpha must be a positive"),
        ({"n_jobs": 0}, "n_jobs must be"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises((TypeError, ValueError), match=message):
        NashPredictor(shortlist_game(4)).set_params(**parameters).fit(X2, Y2)


def test_other_features_and_unfitted_models_are_refused():
    model = NashPredictor(shortlist_game(4))
    with pytest.raises(NotFittedError):
        model.predict(X2)
    model.set_params(alpha=0.1).fit(X2, Y2)
    with pytest.raises(ValueError, match="X has 3 features, but the weights are of 2"):
        model.predict([np.ones((4, 3))])
    with pytest.raises(ValueError, match="sample_weight must be positive"):
        model.fit(X2, Y2, [0, 0])
    assert len(model.predict(X2)) == 2  # a fit that was refused changes nothing
