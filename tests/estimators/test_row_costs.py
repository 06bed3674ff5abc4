"""Costs of each row: training is on these rows' own games, to a certified optimum, and answers are for their costs."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from saddle_reference import Part, optimum
from scipy.optimize import linprog
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nashlearn import NashAbstainer, NashClassifier, NashOrdinalClassifier
from nashlearn.games.rows.row_costs import RowCostGame, row_cost_params
from nashlearn.training import Problem, train
from nashlearn.training.designs.rows import PerClass
from nashlearn.training.methods.tempered import Tempered

L = np.array([[0.0, 1.0, 4.0], [2.0, 0.0, 1.0], [3.0, 5.0, 0.0], [1.0, 1.5, 1.0]])  # four options, three labels
KERNELS = pytest.mark.parametrize("kernel", [None, "rbf"])
SMOOTHINGS = pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])


def made(n: int = 80, seed: int = 0):
    """Rows whose costs and labels depend on them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.argmax(X @ rng.normal(size=(3, 3)) + rng.normal(size=(n, 3)), axis=1)
    return X, y, L * rng.uniform(0.1, 4.0, (n, 4, 3)) * np.exp(0.5 * X[:, :1, None]), rng.exponential(size=n)


def classifier(smoothing: float = 1.0, kernel=None, **parameters):
    return NashClassifier(L, smoothing=smoothing, kernel=kernel, alpha=0.01, tol=1e-7, **parameters)


def agree(one, other, slack: float = 1e-9) -> bool:
    """Whether two models have objectives that their certificates allow to be the same."""
    return abs(one.objective_ - other.objective_) <= (one.dual_gap_ + other.dual_gap_ + slack) * one.objective_


def reference(X, y, costs, omega, alpha: float, mu: float, bias: float) -> float:
    """The optimum of training on ``costs`` (n, options, labels), by a conic programme over the labels."""
    Z, k = np.hstack([X, np.full((len(X), 1), bias)]), costs.shape[2]
    Phi = np.stack([np.kron(np.eye(k), z) for z in Z])
    parts = [
        Part(share, one, [own], np.ones((1, k)), np.ones(1), np.full(k, mu))
        for share, one, own in zip(omega, Phi, costs, strict=True)
    ]
    return optimum(parts, np.einsum("i,iw->w", omega, Phi[np.arange(len(y)), y]), alpha)


# ------------------------------------------------------------------------------------------------------------ training


@KERNELS
@SMOOTHINGS
def test_equal_matrices_are_the_cost_matrix(kernel, smoothing):
    X, y, *_ = made()
    plain = classifier(smoothing, kernel).fit(X, y)
    for costs in (np.broadcast_to(L, (len(y), *L.shape)), np.ones(len(y))):
        by_row = classifier(smoothing, kernel).fit(X, y, costs=costs)
        assert by_row.dual_gap_ <= 1e-7 and agree(plain, by_row)
        assert by_row.worst_case_risk(0.1) == pytest.approx(plain.worst_case_risk(0.1), rel=1e-3)


@KERNELS
@SMOOTHINGS
def test_factors_are_multiples_of_the_matrix(kernel, smoothing):
    X, y, _, factors = made()
    one = classifier(smoothing, kernel).fit(X, y, costs=factors)
    matrices = factors[:, None, None] * L
    other = classifier(smoothing, kernel).fit(X, y, costs=matrices)
    assert agree(one, other) and one._largest == other._largest == matrices.max()
    p, same = one.strategy(X, costs=factors), one.strategy(X, costs=matrices)
    assert np.allclose(np.einsum("ia,iaj->ij", p, matrices), np.einsum("ia,iaj->ij", same, matrices), atol=1e-6)
    assert one.task_loss(X, y, costs=factors) == pytest.approx(one.task_loss(X, y, costs=matrices))


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@SMOOTHINGS
def test_the_optimum_is_that_of_a_conic_programme(smoothing, weighted):
    X, y, costs, weight = made(25)
    model = classifier(smoothing).fit(X, y, sample_weight=weight if weighted else None, costs=costs)
    s = costs.max()
    c, omega = s * (1 + smoothing), weight / weight.sum() if weighted else np.full(25, 1 / 25)
    best = reference(X, y, costs, omega, 0.01 / c, smoothing * s, model._bias) / c
    assert model.dual_gap_ <= 1e-7
    assert model.objective_ == pytest.approx(best, rel=1e-6)


def test_training_that_ends_early_is_no_nearer_than_it_says():
    """A certificate of a wrong answer: the distance to the optimum is within the gap, and the gap is not small."""
    X, y, costs, _ = made(25)
    with pytest.warns(ConvergenceWarning):
        model = classifier(0.05, max_iter=2).fit(X, y, costs=costs)
    c, mu = costs.max() * 1.05, 0.05 * costs.max()
    best = reference(X, y, costs, np.full(25, 1 / 25), 0.01 / c, mu, model._bias) / c
    assert model.dual_gap_ > 1e-6
    assert 0.0 <= model.objective_ - best <= model.dual_gap_ * model.objective_ * (1 + 1e-6)


def test_every_block_of_rows_plays_its_own_games(monkeypatch):
    X, y, costs, _ = made()
    n, k = len(y), 3
    game = RowCostGame(row_cost_params(costs, np.ones(n)))
    problem = Problem(X, y, np.full(n, 1 / n), 0.01, game, PerClass(k, 3, 1.0))
    w = np.random.default_rng(0).normal(size=problem.n_weights)
    whole = [problem.evaluate(w, mu) for mu in (0.0, 0.5)]
    W, Q = w.reshape(problem.shape), game.labels.vertex((y + 1) % 3)
    sides = problem.primal(W), problem.dual(Q, W)
    problem._step = 16
    assert (problem.primal(W), problem.dual(Q, W)) == pytest.approx(sides, rel=1e-12)
    for mu, right in zip((0.0, 0.5), whole, strict=True):
        found = problem.evaluate(w, mu)
        assert found.loss == pytest.approx(right.loss) and found.gradient == pytest.approx(right.gradient)
    for mu in (0.5, 2.0):
        trained = train(
            problem, Tempered(mu), alpha=0.01, tol=1e-9, max_iter=200, random_state=np.random.default_rng(0)
        )
        assert trained.dual_gap <= 1e-8
        best = reference(X, y, costs, problem.omega, 0.01, mu, 1.0)
        assert trained.objective == pytest.approx(best, rel=1e-6)


@KERNELS
def test_weights_count_as_repetitions_and_zeros_leave_with_their_costs(kernel):
    X, y, costs, _ = made(40)
    count = np.arange(40) % 3
    model = classifier(kernel=kernel, gamma=0.5).fit(X, y, sample_weight=count, costs=costs)
    again = np.repeat(np.arange(40), count)
    other = classifier(kernel=kernel, gamma=0.5).fit(X[again], y[again], costs=costs[again])
    assert agree(model, other)
    costs[count == 0] *= 1e6  # neither trained on nor part of the unit
    assert agree(model, classifier(kernel=kernel, gamma=0.5).fit(X, y, sample_weight=count, costs=costs))


def test_factors_weigh_the_loss_and_not_the_moments():
    """At smoothing 0 the objective is that of the weighted losses of the thesis, eq. 2.49."""
    X, y, _, factors = made()
    model = NashClassifier(smoothing=0, alpha=0.01).fit(X, y, costs=factors)
    s = factors.max()
    f = s * np.asarray(model.decision_function(X))
    ordered = -np.sort(-f, axis=1)
    sizes = np.arange(1, 4)
    best = ((np.cumsum(ordered, axis=1) + factors[:, None] * (sizes - 1)) / sizes).max(axis=1)
    loss = (best - f[np.arange(len(y)), y]).mean() / s
    norm = float((model._stored() ** 2).sum())
    assert model.objective_ == pytest.approx(loss + 0.005 * norm, rel=1e-9)
    weighted = NashClassifier(smoothing=0, alpha=0.01).fit(X, y, sample_weight=factors)
    assert abs(weighted.objective_ - model.objective_) > 0.01


def test_automatic_regularisation_knows_what_rows_have_at_stake():
    """One row with a million at stake leaves the others' regularisation as it was, relative to their own costs."""
    X, y, *_ = made()
    plain = NashClassifier(L).fit(X, y)
    equal = NashClassifier(L).fit(X, y, costs=np.full(80, 7.0))
    assert equal.alpha_ == pytest.approx(plain.alpha_)
    factors = np.ones(80)
    factors[0] = 1e6
    for smoothing in (0.0, 1e-3, 1.0):
        model = NashClassifier(L, smoothing=smoothing).fit(X, y, costs=factors)
        share = factors.mean() / 1e6
        assert model.alpha_ == pytest.approx(plain.alpha_ * (1 + smoothing) / (share + smoothing))
    assert NashClassifier(L, alpha=0.3).fit(X, y, costs=factors).alpha_ == 0.3


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
def test_an_l1_penalty_takes_costs(smoothing):
    X, y, costs, _ = made()
    make = lambda: NashClassifier(L, penalty="l1", alpha=0.02, smoothing=smoothing, tol=1e-4)  # noqa: E731
    one, other = make().fit(X, y), make().fit(X, y, costs=np.broadcast_to(L, (80, 4, 3)))
    assert agree(one, other) and make().fit(X, y, costs=costs).dual_gap_ <= 1e-4


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
def test_sparse_rows_are_dense_ones(smoothing):
    X, y, costs, _ = made()
    X[np.abs(X) < 0.4] = 0.0
    dense, sparse = (classifier(smoothing).fit(one, y, costs=costs) for one in (X, sp.csr_matrix(X)))
    assert agree(dense, sparse)
    assert np.allclose(dense.strategy(X, costs=costs), sparse.strategy(sp.csr_matrix(X), costs=costs), atol=1e-5)


@pytest.mark.parametrize("smoothing", [0.0, 3.0])
def test_grades_and_abstention_take_factors(smoothing):
    X, y, _, factors = made()
    for make in (
        lambda: NashOrdinalClassifier(smoothing=smoothing, alpha=0.01, tol=1e-7),
        lambda: NashAbstainer(0.3, smoothing=smoothing, alpha=0.01, tol=1e-7),
    ):
        plain, ones, tens = (
            make().fit(X, y),
            make().fit(X, y, costs=np.ones(80)),
            make().fit(X, y, costs=np.full(80, 10.0)),
        )
        assert agree(plain, ones) and agree(plain, tens)
        assert tens.worst_case_risk() == pytest.approx(10 * plain.worst_case_risk(), rel=1e-6)
        assert tens.task_loss(X, y, costs=np.full(80, 10.0)) == pytest.approx(10 * plain.task_loss(X, y))
        model = make().fit(X, y, costs=factors)
        assert model.dual_gap_ <= 1e-7 and not agree(model, plain)


# ------------------------------------------------------------------------------------------------------------- answers


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
def test_answers_are_for_the_costs_of_their_rows(smoothing):
    X, y, costs, _ = made()
    model = classifier(smoothing).fit(X, y, costs=costs)
    p = model.strategy(X, costs=costs)
    assert np.array_equal(model.predict(X, costs=costs), model.options_[p.argmax(axis=1)])
    paid = costs[np.arange(80), p.argmax(axis=1), y].mean()
    assert model.task_loss(X, y, costs=costs) == pytest.approx(paid)
    assert model.score(X, y, costs=costs) == pytest.approx(-paid)
    costs[:, :3] += costs.max()  # now there is one option that costs less whatever the label
    assert (model.predict(X, costs=costs) == model.options_[3]).all()


def test_costs_that_are_known_are_saved():
    """By the costs of its rows a model with little regularisation pays less than by those of its loss."""
    X, y, costs, _ = made(800)
    model = NashClassifier(L, alpha=1e-5).fit(X, y, costs=costs)
    blind = costs[np.arange(800), model.strategy(X).argmax(axis=1), y].mean()
    assert model.task_loss(X, y, costs=costs) < 0.8 * blind


def test_probabilities_and_strategies_are_the_game_of_each_row():
    """``log q = (f + L'p) / mu`` up to a constant, and ``p`` takes cheapest options alone."""
    X, y, costs, _ = made()
    model = classifier().fit(X, y, costs=costs)
    p, q = model.strategy(X, costs=costs), model.predict_proba(X, costs=costs)
    z = (model._unit * model.decision_function(X) + np.einsum("ia,iaj->ij", p, costs)) / (costs.max() * 1.0)
    assert np.allclose(q, np.exp(z) / np.exp(z).sum(axis=1, keepdims=True))
    assert np.allclose(model.predict_log_proba(X, costs=costs), np.log(q))
    expected = np.einsum("iaj,ij->ia", costs, q)
    assert (p * (expected - expected.min(axis=1, keepdims=True))).max() <= 1e-8 * costs.max()


def test_accuracy_is_the_score_without_costs():
    X, y, costs, _ = made()
    model = NashClassifier().fit(X, y, costs=costs[:, :3])
    assert model.score(X, y) == np.mean(model.predict(X) == y) and model.decision_ == "scores"
    assert model.score(X, y, costs=costs[:, :3]) == -model.task_loss(X, y, costs=costs[:, :3])


@pytest.mark.parametrize("smoothing", [0.0, 0.3, 1.0])
def test_no_labels_with_the_same_moments_cost_more_than_the_bound(smoothing):
    """The worst distribution of labels at radius 0, by a linear programme over those of all rows."""
    X, y, costs, _ = made(30)
    model = classifier(smoothing).fit(X, y, costs=costs)
    paid = np.einsum("ia,iaj->ij", model.strategy(X, costs=costs), costs) / 30
    Z = np.hstack([X, np.full((30, 1), model._bias)])
    moments = np.einsum("id,jc->cdij", Z, np.eye(3)).reshape(12, 90)
    A = np.vstack([moments, np.kron(np.eye(30), np.ones(3))])
    b = np.r_[moments @ np.eye(3)[y].ravel(), np.ones(30)]
    worst = -linprog(-paid.ravel(), A_eq=A, b_eq=b, bounds=(0, None)).fun
    assert worst <= model.worst_case_risk() + 1e-7 * costs.max()
    assert paid[np.arange(30), y].sum() <= worst + 1e-7 * costs.max()


# ------------------------------------------------------------------------------------------------- scikit-learn's tools


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def routed(**parameters):
    """A classifier that asks for costs wherever it takes them."""
    model = NashClassifier(**parameters).set_fit_request(costs=True).set_score_request(costs=True)
    return model.set_predict_request(costs=True).set_predict_proba_request(costs=True)


def test_pipelines_pass_costs_on(routing):
    X, y, costs, _ = made()
    C = costs[:, :3]
    pipe = make_pipeline(StandardScaler(), routed(alpha=0.01)).fit(X, y, costs=C)
    scaled = StandardScaler().fit_transform(X)
    alone = NashClassifier(alpha=0.01).fit(scaled, y, costs=C)
    assert pipe[-1].objective_ == pytest.approx(alone.objective_, rel=1e-9)
    assert np.array_equal(pipe.predict(X, costs=C), alone.predict(scaled, costs=C))
    assert pipe.score(X, y, costs=C) == alone.score(scaled, y, costs=C)


def test_pipelines_pass_costs_on_without_routing():
    X, y, costs, _ = made()
    pipe = make_pipeline(StandardScaler(), NashClassifier(alpha=0.01)).fit(X, y, nashclassifier__costs=costs[:, :3])
    assert np.array_equal(
        pipe.predict(X, costs=costs[:, :3]), pipe[-1].predict(pipe[0].transform(X), costs=costs[:, :3])
    )


@pytest.mark.parametrize("matrices", [False, True], ids=["factors", "matrices"])
def test_folds_have_the_costs_of_their_rows(routing, matrices):
    X, y, costs, factors = made()
    C, folds = costs[:, :3] if matrices else factors, KFold(3)
    pipe = make_pipeline(StandardScaler(), routed(alpha=0.01))
    found = cross_validate(pipe, X, y, cv=folds, params={"costs": C})["test_score"]
    for (train_rows, test_rows), score in zip(folds.split(X), found, strict=True):
        own = clone(pipe).fit(X[train_rows], y[train_rows], costs=C[train_rows])
        assert score == pytest.approx(own.score(X[test_rows], y[test_rows], costs=C[test_rows]))


@pytest.mark.filterwarnings("ignore:alpha=10.0 is so large")
def test_searches_look_for_the_least_cost(routing):
    X, y, costs, _ = made(200)
    C = costs[:, :3]
    search = GridSearchCV(routed(), {"alpha": [1e-5, 10.0]}, cv=KFold(3)).fit(X, y, costs=C)
    best = NashClassifier(alpha=search.best_params_["alpha"]).fit(X, y, costs=C)
    found = search.best_estimator_.predict(X, costs=C)
    assert np.array_equal(found, best.predict(X, costs=C))
    assert search.best_params_["alpha"] == 1e-5 and search.best_score_ < 0


# ------------------------------------------------------------------------------------------- long runs, files, refusals


def test_a_checkpoint_belongs_to_its_costs(tmp_path):
    X, y, costs, _ = made()
    model = classifier(checkpoint=tmp_path / "state").fit(X, y, costs=costs)
    again = classifier(checkpoint=tmp_path / "state").fit(X, y, costs=costs)
    assert np.array_equal(again.coef_, model.coef_)
    other = costs.copy()
    other[3, 1, 2] += 1.0
    for wrong in ({"costs": other}, {}, {"costs": np.ones(80)}):
        with pytest.raises(ValueError, match="checkpoint"):
            classifier(checkpoint=tmp_path / "state").fit(X, y, **wrong)


@KERNELS
def test_a_warm_start_goes_on_from_other_costs(kernel):
    X, y, costs, _ = made()
    model = classifier(kernel=kernel, warm_start=True).fit(X, y, costs=costs)
    cold = classifier(kernel=kernel).fit(X, y, costs=1.1 * costs[:, ::-1])
    assert agree(model.fit(X, y, costs=1.1 * costs[:, ::-1]), cold)


def test_a_stored_model_answers_alike_and_holds_no_costs(capsys):
    X, y, costs, _ = made(400)
    model = classifier(verbose=1).fit(X, y, costs=costs)
    assert "gap" in capsys.readouterr().out
    stored = pickle.dumps(model)
    assert np.array_equal(pickle.loads(stored).predict(X, costs=costs), model.predict(X, costs=costs))
    assert len(stored) < costs.nbytes / 2


def test_costs_beside_dask_are_refused():
    da = pytest.importorskip("dask.array")
    X, y, costs, _ = made()
    lazy = da.from_array(X, chunks=(40, 3))
    model = classifier().fit(X, y, costs=costs)
    for call in (
        lambda: classifier().fit(lazy, da.from_array(y, chunks=40), costs=costs),
        lambda: model.predict(lazy, costs=costs),
        lambda: model.strategy(lazy, costs=costs),
        lambda: model.score(lazy, da.from_array(y, chunks=40), costs=costs),
    ):
        with pytest.raises(ValueError, match="costs must be None where X is a Dask collection"):
            call()
    with pytest.raises(ValueError, match="costs must be an array"):
        classifier().fit(X, y, costs=da.from_array(costs))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda C: C[:79], "costs must have one matrix for each of the 80 rows; got shape (79, 4, 3)"),
        (lambda C: C[:79, 0, 0], "costs must have shape (80,); got (79,)"),
        (lambda C: C[0], "costs must have shape (n, options, labels); got (4, 3)"),
        (lambda C: 1.0, "costs must have shape (n, options, labels); got ()"),
        (lambda C: C[:, :3], "costs must have 4 options, those of the loss, [0, 1, 2, 3]; got shape (80, 3, 3)"),
        (lambda C: C[:, :, :2], "costs must have 3 labels, those of y in the order [0, 1, 2]; got shape (80, 4, 2)"),
        (lambda C: np.where(np.arange(80)[:, None, None] == 5, -1.0, C), "costs must be not negative; row 5 holds -1"),
        (lambda C: np.where(np.arange(80) == 7, np.nan, 1.0), "costs must be finite; row 7 holds nan"),
        (lambda C: np.where(np.arange(80) == 8, np.inf, 1.0), "costs must be finite; row 8 holds inf"),
        (lambda C: np.full(80, "dear"), "costs must be one number for each row"),
    ],
)  # fmt: skip
def test_bad_costs_are_refused_by_name(change, message):
    X, y, costs, _ = made()
    fitted = classifier().fit(X, y)
    for call in (classifier().fit, fitted.score):
        with pytest.raises(ValueError) as error:
            call(X, y, costs=change(costs))
        assert message in str(error.value)
    with pytest.raises(ValueError) as error:
        fitted.predict(X, costs=change(costs))
    assert message in str(error.value)


def test_matrices_are_refused_where_the_loss_is_fixed():
    X, y, costs, factors = made()
    for model in (NashOrdinalClassifier(), NashAbstainer()):
        with pytest.raises(
            ValueError, match=r"factors on its own loss; got \(80, 4, 3\). A cost matrix for each row is"
        ):
            model.fit(X, y, costs=costs)
    with pytest.raises(ValueError, match="costs need smoothing > 0"):
        NashOrdinalClassifier(kernel="rbf").fit(X, y, costs=factors)
