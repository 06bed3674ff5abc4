"""Dask bags of examples: the optimum and the answers of lists, for every structured estimator."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from nashlearn import Game, NashMarkovNetwork, NashMatcher, NashParser, NashPredictor, NashTagger, games
from nashlearn.dask.bags import bag_problem

dask = pytest.importorskip("dask")
db = pytest.importorskip("dask.bag")


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def _sequences(rng, n=24):
    X = [rng.standard_normal((size, 3)) for size in rng.integers(2, 6, n)]
    return X, [np.array(["a", "b", "c"])[(x + 0.5 * rng.standard_normal(x.shape)).argmax(axis=1)] for x in X]


def _named(rng):
    X, y = _sequences(rng)
    return [[{"word": f"w{int(10 * row[0])}", "size": float(row[1])} for row in x] for x in X], y


def _sparse(rng):
    X, y = _sequences(rng)
    return [sp.csr_matrix(np.where(x > 0, x, 0.0)) for x in X], y


def _graphs(rng):
    X, y = _sequences(rng, 15)
    loops = [[(i, (i + 1) % len(x)) for i in range(len(x))] if len(x) > 2 else [(0, 1)] for x in X]
    return list(zip(X, loops, strict=True)), y


def _matchings(rng, partial=False):
    X = [rng.standard_normal((n, n, 3)) for n in rng.integers(2, 5, 20)]
    y = [games.matching(len(x)).argmax(x[None, :, :, 0] + 0.3 * rng.standard_normal(x.shape[:2]))[0] for x in X]
    if partial:
        y[-1] = np.where(np.arange(len(y[-1])) == 0, -1, y[-1])  # in the last partition alone
    return X, y


def _sentences(rng, bilinear=False):
    sizes = rng.integers(2, 6, 20)
    arcs = [rng.standard_normal((n, n + 1, 3)) for n in sizes]
    y = [games.arborescence(len(x), single_root=True).argmax(x[None, :, :, 0])[0] for x in arcs]
    # More features than tokens in any partition, fewer than in all together.
    return ([rng.standard_normal((n, 20)) for n in sizes] if bilinear else arcs), y


class _Pairs:
    """Two of four items. A label is a mask."""

    def argmax(self, scores):
        return np.argsort(np.argsort(-scores, axis=1), axis=1) < 2

    def vertex(self, labels):
        return np.asarray(labels, dtype=float)


def _items(rng):
    X = rng.standard_normal((20, 4, 3))
    return list(X), list(_Pairs().argmax(X[..., 0] + 0.5 * rng.standard_normal((20, 4))))


def _gaps(make, gone=None):
    """The same with outputs missing, those of the last partitions all."""

    def some(rng):
        X, y = make(rng)
        outputs = [np.where(rng.random(len(row)) < 0.6, row, gone) for row in y]
        return X, outputs[:-6] + [np.full(len(row), gone) for row in y[-6:]]

    return some


def _equal_sizes(rng):
    X = [rng.standard_normal((4, 3)) for _ in range(24)]
    return X, [x.argmax(axis=1) for x in X]


def _with_edge_features(rng):
    """The last partitions hold sequences of one token alone."""
    X, y = _sequences(rng)
    X = X[:-12] + [x[:1] for x in X[-12:]]
    y = y[:-12] + [labels[:1] for labels in y[-12:]]
    return [(x, np.abs(x[1:, :2] - x[:-1, :2])) for x in X], y


CASES = {
    "tagger": (NashTagger(alpha=1e-2, tol=1e-3), _sequences),
    "tagger, named": (NashTagger(alpha=1e-2, tol=1e-3), _named),
    "tagger, named, all pairs": (NashTagger(alpha=1e-2, tol=1e-3, unseen_pairs=True), _named),
    "tagger, sparse, no smoothing": (NashTagger(tol=2e-2, smoothing=0.0, alpha=1e-2), _sparse),
    "network": (NashMarkovNetwork("absolute", alpha=1e-2, tol=1e-3), _graphs),
    "tagger, missing": (NashTagger(alpha=1e-2, tol=1e-3), _gaps(_sequences)),
    "tagger, named, missing": (NashTagger(alpha=1e-2, tol=1e-3), _gaps(_named)),
    "tagger, sparse, all pairs, missing": (NashTagger(alpha=1e-2, tol=1e-3, unseen_pairs=True), _gaps(_sparse)),
    "tagger, nodes, missing": (NashTagger(alpha=1e-2, tol=1e-3, propensity="node"), _gaps(_equal_sizes, -1)),
    "network, missing": (NashMarkovNetwork("absolute", alpha=1e-2, tol=1e-3), _gaps(_graphs)),
    "tagger, edge features": (NashTagger(alpha=1e-2, tol=1e-3), _with_edge_features),
    "tagger, edge features, missing": (NashTagger(alpha=1e-2, tol=1e-3), _gaps(_with_edge_features)),
    "matcher": (NashMatcher(alpha=1e-2), _matchings),
    "matcher, partial": (NashMatcher(alpha=1e-2), lambda rng: _matchings(rng, partial=True)),
    "parser": (NashParser(alpha=1e-2), _sentences),
    "parser, missing": (NashParser(alpha=1e-2), _gaps(_sentences, -1)),
    "parser, bilinear": (NashParser(alpha=1e-1), lambda rng: _sentences(rng, bilinear=True)),
    "predictor": (NashPredictor(Game(_Pairs(), _Pairs(), np.full((4, 4), 0.5) - np.eye(4)), alpha=1e-2), _items),
    "predictor, sizes": (NashPredictor(lambda n, _: games.matching(n), alpha=1e-2), _matchings),
}


def bags(*data, npartitions=5):
    return [db.from_sequence(part, npartitions=npartitions) for part in data]


def problem_of(estimator, X, y, weight):
    """The training problem of data in memory."""
    data = estimator._read(X, y, weight)
    facts = estimator._facts(data)
    return estimator._problem(data, facts, estimator._sums(data, facts) if facts.needs_sums else None)


def example(name):
    estimator, make = CASES[name]
    X, y = make(np.random.default_rng(0))
    return clone(estimator), X, y


@pytest.mark.parametrize("name", CASES)
def test_certified_optimum_and_answers_are_those_of_lists(name):
    estimator, X, y = example(name)
    weight = np.random.default_rng(1).integers(0, 3, len(X)).astype(float)
    weight[-1] = 1.0
    here, there = clone(estimator).fit(X, y, weight), clone(estimator).fit(*bags(X, y, weight))
    assert there.dual_gap_ <= there.tol
    # Corrected for missing outputs, objectives may be negative.
    apart = max(fitted.dual_gap_ * abs(fitted.objective_) for fitted in (here, there))
    assert abs(here.objective_ - there.objective_) <= apart * (1 + 1e-6)
    assert np.shape(here.coef_) == np.shape(there.coef_)
    assert there.score(*bags(X, y)) == pytest.approx(there.score(X, y), abs=1e-12)
    lazy = there.predict(db.from_sequence(X, npartitions=3))
    assert isinstance(lazy, db.Bag)
    for a, b in zip(lazy.compute(), there.predict(X), strict=True):
        assert np.array_equal(a, b)
    for a, b in zip(
        there.predict_proba(db.from_sequence(X, npartitions=4)).compute(), there.predict_proba(X), strict=True
    ):
        assert np.shape(a) == np.shape(b) and np.allclose(np.sum(a, axis=-1), np.sum(b, axis=-1), atol=1e-6)


def test_vocabularies_of_partitions_unite():
    estimator, X, y = example("tagger, named")
    here, there = clone(estimator).fit(X, y), clone(estimator).fit(*bags(X, y, npartitions=6))
    assert here.feature_names_ == there.feature_names_
    assert (here._pattern[0] == there._pattern[0]).all() and (here._pattern[1] == there._pattern[1]).all()


def test_exactness_is_that_of_all_partitions():
    estimator, X, y = example("network")
    estimator.set_params(exact=False)
    assert clone(estimator).fit(*bags(X, y)).is_exact_ == clone(estimator).fit(X, y).is_exact_


def _if_a(labels):
    return labels if "a" in labels else [None] * len(labels)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X, y.repartition(npartitions=2)), "cut into partitions alike; got 5 and 2"),
        (lambda X, y: (X, y.compute()), "y must be a Dask bag"),
        (lambda X, y: (X, y.map(lambda labels: labels[:-1])), "one label for each"),
        (lambda X, y: (X, y.filter(lambda labels: len(labels) > 2)), "cut them alike"),
        (lambda X, y: (X, y.map(lambda labels: [None] * len(labels))), "y holds no labels: all are missing"),
        (
            lambda X, y: (X, y.map(_if_a), y.map(lambda labels: float("a" not in labels))),
            "y holds no labels that count",
        ),
        (lambda X, y: (X, y.map(lambda labels: ["a"] * len(labels))), "one class only"),
        (lambda X, y: (X, y, y.map(lambda _: 0.0)), "no examples of positive weight"),
        (lambda X, y: (X, y, y.map(lambda _: -1.0)), "finite and not negative"),
        (lambda X, y: (X.to_delayed()[0], y), "X must be a Dask bag"),
    ],
)
def test_refusals_name_what_was_wrong(change, message):
    estimator, X, y = example("tagger")
    with pytest.raises((ValueError, TypeError), match=message):
        estimator.fit(*change(*bags(X, y)))


@pytest.mark.parametrize("name", ["tagger", "matcher", "parser", "predictor"])
def test_partitions_of_other_features_are_refused(name):
    estimator, X, y = example(name)
    narrow = [x[..., :2] for x in X[-4:]]
    with pytest.raises(ValueError, match="Partitions of X differ"):
        estimator.fit(*bags([*X[:-4], *narrow], y))


def test_few_token_vectors_have_the_basis_of_all_partitions():
    """Reduced to the span of all tokens, wherever they lie: the problem has the size that a list has."""
    rng = np.random.default_rng(0)
    X, y = _sentences(rng)
    X = [rng.standard_normal((len(heads), 100)) for heads in y]
    parser = NashParser(alpha=10.0)
    here, there = clone(parser).fit(X, y), clone(parser).fit(*bags(X, y))
    assert here._weights.shape == there._weights.shape == ((sum(map(len, y)) + 1) * (sum(map(len, y)) + 2),)
    assert there.objective_ == pytest.approx(here.objective_, rel=2e-3)


def test_bags_without_heads_are_refused():
    estimator, X, y = example("parser")
    with pytest.raises(ValueError, match="y holds no heads"):
        estimator.fit(*bags(X, [np.full(len(heads), -1) for heads in y]))


def test_propensities_of_nodes_need_examples_of_equal_size_in_all_partitions():
    estimator, X, y = example("tagger, nodes, missing")
    X[-6:], y[-6:] = [x[:3] for x in X[-6:]], [labels[:3] for labels in y[-6:]]
    with pytest.raises(ValueError, match='propensity="node" needs examples of equal size'):
        estimator.fit(*bags(X, y, npartitions=4))


def test_bags_of_other_edge_features_are_refused():
    estimator, X, y = example("tagger, edge features")
    X[:5] = [(nodes, edges[:, :1]) for nodes, edges in X[:5]]
    with pytest.raises(ValueError, match=r"Partitions of X differ in kind: .* 1 and 2 of edges"):
        estimator.fit(*bags(X, y))


@pytest.mark.parametrize("widths", [(1, 2, 2), (3, 2, 1)], ids=str)
def test_partitions_of_matchings_with_as_many_but_other_features_are_refused(widths):
    rng = np.random.default_rng(0)

    def some(pairs, leave, enter):
        shapes = (3, 3, pairs), (3, leave), (3, enter)
        return [tuple(rng.standard_normal(shape) for shape in shapes) for _ in range(4)]

    X = some(3, 1, 1) + some(*widths)
    y = [rng.permutation(3) for _ in X]
    with pytest.raises(ValueError, match="all examples need the same"):
        NashMatcher().fit(X, y)
    with pytest.raises(ValueError, match=r"Partitions of X differ.*all examples need the same"):
        NashMatcher().fit(*bags(X, y, npartitions=2))


def test_partitions_without_features_for_staying_alone_have_constants():
    rng = np.random.default_rng(0)
    plain = [rng.standard_normal((3, 3, 2)) for _ in range(4)]
    y = [rng.permutation(3) for _ in range(8)]
    for leave, accepted in ((1, True), (2, False)):
        X = plain + [(x, np.ones((3, leave)), np.ones((3, 1))) for x in plain]
        if accepted:
            here, there = NashMatcher(alpha=0.1).fit(X, y), NashMatcher(alpha=0.1).fit(*bags(X, y, npartitions=2))
            assert abs(here.objective_ - there.objective_) <= 2e-3 * here.objective_
        else:
            with pytest.raises(ValueError, match="Partitions of X differ: 1 leave features in one, 2 in another"):
                NashMatcher(alpha=0.1).fit(*bags(X, y, npartitions=2))


def test_bags_that_are_refused_leave_an_earlier_fit_as_it_was():
    estimator, X, y = example("tagger")
    before = estimator.fit(X, y).predict(X)
    with pytest.raises(ValueError, match="one class only"):
        estimator.fit(*bags(X, [["z"] * len(labels) for labels in y]))
    assert all(np.array_equal(a, b) for a, b in zip(before, estimator.predict(X), strict=True))


@pytest.mark.parametrize("name", ["tagger", "tagger, named", "tagger, edge features", "network"])
def test_the_guess_of_the_curvature_is_the_sum_over_partitions(name):
    estimator, X, y = example(name)
    weight = np.random.default_rng(1).integers(0, 9, len(X)).astype(float)
    here, (there, _) = problem_of(estimator, X, y, weight), bag_problem(estimator, *bags(X, y, weight))
    assert there.curvature == pytest.approx(here.curvature, rel=1e-9)


@pytest.mark.parametrize("smoothing", [0.5, 1.5])
@pytest.mark.parametrize(
    "name", ["tagger", "network", "tagger, missing", "tagger, edge features, missing", "matcher", "parser"]
)
def test_partitions_say_at_any_weights_what_a_list_says(name, smoothing):
    """All that certificates are made of, where nothing is optimal."""
    estimator, X, y = example(name)
    rng = np.random.default_rng(1)
    weight = rng.integers(0, 9, len(X)).astype(float)
    here, (there, _) = problem_of(estimator, X, y, weight), bag_problem(estimator, *bags(X, y, weight))
    w = rng.normal(size=here.n_weights)
    for _ in range(20):  # networks keep their replies and improve them
        expected = here.evaluate(w, smoothing)
    found = there.evaluate(w, smoothing)
    for field in ("loss", "gradient", "entropy", "penalty", "drift"):
        assert getattr(found, field) == pytest.approx(getattr(expected, field), rel=1e-3, abs=1e-4), field
    assert expected.penalty < -1e-2 and expected.entropy > 1e-2


def test_scores_of_bags_may_be_weighted():
    estimator, X, y = example("tagger")
    weight = np.random.default_rng(1).integers(0, 9, len(X)).astype(float)
    model = clone(estimator).fit(X, y)
    assert model.score(*bags(X, y, weight)) == pytest.approx(model.score(X, y, weight), abs=1e-12)
    assert abs(model.score(X, y, weight) - model.score(X, y)) > 1e-3
