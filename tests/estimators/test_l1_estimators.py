"""``penalty="l1"`` of estimators: units, sparsity, certificates, what is refused."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from nashlearn import NashAbstainer, NashClassifier, NashOrdinalClassifier, NashTagger


@parametrize_with_checks([NashClassifier(penalty="l1")])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, "auto"])
@pytest.mark.parametrize("estimator", [NashClassifier(), NashOrdinalClassifier(), NashAbstainer(0.2)], ids=repr)
def test_certified_and_sparse(estimator, smoothing, iris):
    X, y = iris
    X = np.hstack([X, np.random.default_rng(0).normal(size=(len(y), 10))])
    model = clone(estimator).set_params(penalty="l1", smoothing=smoothing, alpha=0.02, tol=1e-4).fit(X, y)
    assert model.dual_gap_ <= 1e-4
    assert 0 < model.n_nonzero_ == np.count_nonzero(model.coef_) < 0.7 * model.coef_.size
    sparse = clone(model).fit(sp.csr_matrix(X), y)
    assert sparse.objective_ == pytest.approx(model.objective_, rel=2e-4)


@pytest.mark.parametrize("classes", [2, 3])
def test_large_smoothing_is_logistic_regression_at_its_strength(classes, iris):
    X, y = (part[iris[1] < classes] for part in iris)
    ours = NashClassifier(penalty="l1", smoothing=1e6, fit_intercept=False, tol=1e-8).fit(X, y)
    peer = LogisticRegression(C=1.0, l1_ratio=1.0, solver="saga", fit_intercept=False, tol=1e-10, max_iter=100_000)
    scores = peer.fit(X, y).decision_function(X)
    np.testing.assert_allclose(ours.decision_function(X), scores, atol=1e-3 * np.abs(scores).max())
    assert ours.n_nonzero_ == np.count_nonzero(peer.coef_)


def test_weights_do_not_depend_on_the_unit_of_costs(iris):
    L = np.array([[0.0, 1, 4], [1, 0, 1], [4, 1, 0]])
    one, other = (NashClassifier(scale * L, penalty="l1", alpha=0.01, tol=1e-6).fit(*iris) for scale in (1.0, 50.0))
    assert one.objective_ == pytest.approx(other.objective_, rel=2e-6)
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-4)


def test_warm_start_is_there_at_once(iris):
    model = NashClassifier(penalty="l1", warm_start=True).fit(*iris)
    before, steps = model.objective_, model.n_iter_
    model.fit(*iris)
    assert model.objective_ == pytest.approx(before, rel=1e-6) and model.n_iter_ < steps


@pytest.mark.parametrize("smoothing", [0.0, 0.5])
@pytest.mark.parametrize("kind", [NashClassifier, NashTagger])
def test_a_checkpoint_goes_on_where_it_was_left(kind, smoothing, iris, tmp_path):
    data = iris if kind is NashClassifier else sequences()
    given = {"penalty": "l1", "alpha": 0.01, "smoothing": smoothing, "tol": 1e-2}
    with pytest.warns(ConvergenceWarning):
        short = kind(max_iter=6, checkpoint=tmp_path / "run", **given).fit(*data)
    rounds = []
    model = kind(max_iter=3000, checkpoint=tmp_path / "run", callback=rounds.append, **given).fit(*data)
    assert model.dual_gap_ <= 1e-2 < short.dual_gap_ and rounds[0].n_iter >= 6
    assert model.history_[: len(short.history_) - 1] == short.history_[:-1]
    whole = kind(max_iter=3000, **given).fit(*data)
    assert abs(model.objective_ - whole.objective_) <= 1e-2 * whole.objective_


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
@pytest.mark.parametrize("radius", [0.0, 0.02, 0.2])
def test_risk_bounds_every_distribution_with_moments_in_the_box(smoothing, radius, iris):
    X, y = (part[::5] for part in iris)
    model = NashClassifier(penalty="l1", smoothing=smoothing, alpha=0.02, intercept_scaling=1.0).fit(X, y)
    n, k = len(y), 3
    cost = model._game.costs.T @ model.strategy(X).T  # (labels, n): what each label would cost
    F = np.hstack([X, np.ones((n, 1))])
    moments = np.vstack([np.kron(f, np.eye(k)) for f in [F.T / n]])  # (features k, n k)
    truth = moments @ np.eye(k)[y].ravel()
    simplex = np.kron(np.eye(n), np.ones(k))
    bounds = np.concatenate([truth + radius, radius - truth])
    worst = linprog(-cost.T.ravel() / n, np.vstack([moments, -moments]), bounds, simplex, np.ones(n), method="highs")
    assert -worst.fun <= model.worst_case_risk(radius) + 1e-9


@pytest.mark.parametrize(
    "estimator",
    [NashClassifier(), NashOrdinalClassifier(), NashAbstainer(0.2), NashClassifier(np.ones((2, 2)))],
    ids=repr,
)
def test_sparse_coefficients_predict_as_dense_ones(estimator, iris):
    X, y = iris
    y = np.minimum(y, 1) if isinstance(estimator.get_params().get("loss"), np.ndarray) else y
    model = clone(estimator).set_params(penalty="l1", alpha=0.02).fit(X, y)
    dense = model.coef_.copy()
    for data in (X, X.astype(np.float32), sp.csr_matrix(X)):
        expected = model.densify().decision_function(data), model.predict_proba(data)
        assert model.sparsify() is model and sp.issparse(model.coef_)
        scores = model.decision_function(data)
        assert isinstance(scores, np.ndarray) and scores.dtype == expected[0].dtype
        np.testing.assert_allclose(scores, expected[0], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(model.predict_proba(data), expected[1], atol=1e-5)
    assert np.array_equal(model.densify().coef_, dense) and np.array_equal(model.densify().coef_, dense)
    model.sparsify().set_params(penalty="l2").partial_fit(X, y)  # goes on from the weights
    assert isinstance(model.coef_, np.ndarray)


def test_verbose_lines_count_the_weights_that_are_not_zero(iris, capsys):
    model = NashClassifier(penalty="l1", alpha=0.02, verbose=1).fit(*iris)
    lines = capsys.readouterr().out.splitlines()
    assert int(lines[-1].rpartition("nonzero ")[2].split(" of ")[0]) <= 15 and lines[-1].endswith(" of 15")
    assert "nonzero 0 of 15" in lines[0] and model.n_nonzero_ < 12
    NashClassifier(verbose=1).fit(*iris)
    assert "nonzero" not in capsys.readouterr().out


def test_refusals(iris):
    for given, message in [
        ({"penalty": "l0"}, "penalty must be one of"),
        ({"kernel": "rbf"}, "penalty must be 'l2' with"),
    ]:
        with pytest.raises(ValueError, match=message):
            NashClassifier(**{"penalty": "l1", **given}).fit(*iris)
    with pytest.raises(AttributeError, match="partial_fit"):
        NashClassifier(penalty="l1").partial_fit(*iris, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="penalty='l1' needs the labels of all"):
        NashTagger(penalty="l1").fit([np.eye(3)] * 2, [[0, 1, -1], [1, 0, 1]])


def test_dask_collections_are_refused(iris):
    array, bag = pytest.importorskip("dask.array"), pytest.importorskip("dask.bag")
    with pytest.raises(ValueError, match="penalty must be 'l2' for Dask collections; got 'l1'"):
        NashClassifier(penalty="l1").fit(*map(array.from_array, iris))
    with pytest.raises(ValueError, match="penalty must be 'l2' for Dask collections; got 'l1'"):
        NashTagger(penalty="l1").fit(*map(bag.from_sequence, sequences()))


def test_advice_where_the_exact_game_is_slow():
    with pytest.warns(ConvergenceWarning, match="raise max_iter, or smoothing, say to 0.1, or alpha"):
        NashTagger(penalty="l1", smoothing=0.0, max_iter=2).fit(*sequences())


def sequences():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(3, 2)) for _ in range(8)]
    return X, [(x[:, 0] > 0).astype(int) for x in X]


def enumerated_optimum(model: NashTagger, X, y, alpha: float) -> float:
    """The exact game by a linear programme over all labellings, for mixtures of replies."""
    labellings = np.array(list(product(range(2), repeat=3)))
    size = model._weights.size

    def features(x, labels):
        table = np.zeros((x.shape[1] + 3, 2))  # features, constant, start, end
        for t, label in enumerate(labels):
            table[:, label] += [*x[t], 1.0, t == 0, t == len(labels) - 1]
        pairs = np.zeros((2, 2))
        np.add.at(pairs, (labels[:-1], labels[1:]), 1.0)
        return np.concatenate([table.ravel(), pairs.ravel()])

    n, m = len(X), len(labellings)
    total = 2 * size + n * m + n
    cost, A, b = np.zeros(total), [], []
    cost[: 2 * size] = alpha
    cost[2 * size + n * m :] = 1.0 / (3 * n)
    E = np.zeros((n, total))
    hamming = (labellings[:, None] != labellings[None]).sum(axis=2)
    for i in range(n):
        own = features(X[i], y[i])
        E[i, 2 * size + i * m : 2 * size + (i + 1) * m] = 1.0
        for j, labels in enumerate(labellings):
            row = np.zeros(total)
            difference = features(X[i], labels) - own
            row[:size], row[size : 2 * size] = difference, -difference
            row[2 * size + i * m : 2 * size + (i + 1) * m] = hamming[:, j]
            row[2 * size + n * m + i] = -1.0
            A.append(row)
            b.append(0.0)
    return linprog(cost, np.array(A), b, E, np.ones(n), method="highs").fun


@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_taggers_are_certified(smoothing):
    X, y = sequences()
    given = {"penalty": "l1", "alpha": 0.03, "smoothing": smoothing, "tol": 1e-2, "max_iter": 3000}
    model = NashTagger(**given).fit(X, y)
    assert model.dual_gap_ <= 1e-2
    assert np.count_nonzero(model._weights) < model._weights.size
    if smoothing:
        tight = NashTagger(**{**given, "tol": 1e-5}).fit(X, y)
        assert tight.dual_gap_ <= 1e-5
        optimum = (1.0 - tight.dual_gap_) * tight.objective_
    else:
        optimum = enumerated_optimum(model, X, y, 0.03)
    assert optimum - 1e-9 <= model.objective_ <= optimum / (1 - model.dual_gap_) + 1e-9
    at_alpha = model._unit * model.objective_  # moments within a box of half-width alpha: the objective bounds the risk
    assert model.worst_case_risk(0.03) == pytest.approx(at_alpha, abs=2e-4)
