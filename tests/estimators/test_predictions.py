"""How each estimator answers: by scores, by equilibrium, by thresholds, or not at all."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nashlearn import NashAbstainer, NashClassifier, NashOrdinalClassifier, games


def graded(seed=0, n=150, d=3, k=3, noise=0.6):
    """Noisy grades along one direction; every grade occurs."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    position = X[:, 0] + noise * rng.normal(size=n)
    return X, np.argsort(np.argsort(position)) * k // n


def all_scores(model, X):
    """Scores of every class, from the weights."""
    scores = X @ model.coef_.T + model.intercept_
    return np.column_stack([-0.5 * scores, 0.5 * scores]) if scores.shape[1] == 1 else scores


LOSSES = {
    "zero_one": (lambda k: "zero_one", games.zero_one),
    "absolute": (lambda k: "absolute", games.absolute),
    "squared": (lambda k: "squared", games.squared),
    "callable": (
        lambda k: lambda k: games.absolute(k, values=np.arange(k) ** 2.0),
        lambda k: games.absolute(k, values=np.arange(k) ** 2.0),
    ),
    "cost": (
        lambda k: np.random.default_rng(k).random((k, k)),
        lambda k: games.cost(np.random.default_rng(k).random((k, k))),
    ),
    "rectangular": (
        lambda k: np.random.default_rng(k).random((k + 2, k)),
        lambda k: games.cost(np.random.default_rng(k).random((k + 2, k))),
    ),
}


SYMMETRIC = {"absolute", "squared", "callable"}  # between two labels these are the zero-one loss, scaled


@pytest.mark.parametrize("smoothing", [0.0, 0.5])
@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("name", LOSSES)
def test_reported_numbers_belong_to_the_weights(name, k, smoothing):
    """Objective, answers, probabilities and task loss follow from ``coef_`` and the game alone."""
    make_loss, make_game = LOSSES[name]
    game = make_game(k)
    X, y = graded(k=k)
    weight = np.random.default_rng(1).exponential(size=y.size)
    unit, mu = game.costs.max() * (1 + smoothing), game.costs.max() * smoothing
    for decision in ("auto", "scores", "equilibrium"):
        model = NashClassifier(make_loss(k), alpha=1e-2, decision=decision, smoothing=smoothing, intercept_scaling=2.0)
        model.fit(X, y, sample_weight=weight)
        assert model.smoothing_ == smoothing
        scores = all_scores(model, X)
        halved = 0.5 if k == 2 else 1.0  # coef_ is then the difference of two opposite rows
        norm2 = halved * (np.sum(model.coef_**2) + np.sum((model.intercept_ / 2.0) ** 2))
        surrogate = np.average(game.loss_value(unit * scores, y, smoothing=mu), weights=weight)
        objective = surrogate / unit + 0.5 * model.alpha * norm2
        assert abs(model.objective_ - objective) <= 1e-12 * (1 + objective)
        assert model.history_[-1].objective == pytest.approx(model.objective_, rel=1e-12)
        bounds = [surrogate + radius * unit * np.sqrt(norm2) for radius in (0.0, 2.0)]
        if smoothing:
            assert (np.array([model.worst_case_risk(r) for r in (0.0, 2.0)]) <= bounds).all()
        else:
            assert [model.worst_case_risk(r) for r in (0.0, 2.0)] == pytest.approx(bounds, abs=1e-11)
        p, found = model.strategy(X), game.solve(unit * scores, smoothing=mu)
        if smoothing:
            assert np.allclose(model.predict_proba(X), found.q, rtol=0, atol=1e-9)
            assert np.allclose(np.exp(model.predict_log_proba(X)), found.q, rtol=0, atol=1e-9)
            assert np.allclose(p @ game.costs, found.p @ game.costs, rtol=0, atol=1e-6 * unit)
        else:
            assert game.upper(unit * scores, p) == pytest.approx(found.value, abs=1e-10)
            assert np.array_equal(model.predict_proba(X), p)
        square = game.n_options == k
        taken = decision
        if not square:
            taken = "equilibrium"
        elif decision == "auto":
            taken = "scores" if name == "zero_one" or (k == 2 and name in SYMMETRIC) else "equilibrium"
        assert model.decision_ == taken
        answers = (scores if taken == "scores" else p).argmax(axis=1)
        assert np.array_equal(model.predict(X), answers)
        assert model.task_loss(X, y) == pytest.approx(game.costs[answers, y].mean(), abs=1e-12)
        weighted = np.average(game.costs[answers, y], weights=weight)
        assert model.task_loss(X, y, sample_weight=weight) == pytest.approx(weighted, abs=1e-12)
        score = np.mean(answers == y) if name == "zero_one" else -model.task_loss(X, y)
        assert model.score(X, y) == pytest.approx(score, abs=1e-12)


def test_labels_and_options_keep_apart_in_a_rectangular_cost_matrix():
    """Options are indices even where labels are names; the cheapest of two equal questions is asked."""
    X, y = graded(noise=0.1)
    names = np.array(["low", "mid", "high"])[y]  # sorted: high, low, mid
    to_grade = {"high": 2, "low": 0, "mid": 1}
    L = np.array([[0.0, 9.0, 9.0], [9.0, 0.0, 9.0], [9.0, 9.0, 0.0], [9.0, 9.0, 9.0]])
    model = NashClassifier(L, alpha=1e-4).fit(X, names)
    options = model.predict(X)
    assert set(options) <= {0, 1, 2}
    assert model.task_loss(X, names) == 9.0 * np.mean(model.classes_[options] != names) == -model.score(X, names)
    assert np.mean([to_grade[c] for c in model.classes_[options]] == y) > 0.8


def test_decisions_differ_where_they_should():
    """Between two outer grades of equal score the median is the better answer, and p knows it."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 2, 1], [45, 45, 10])
    X = np.ones((y.size, 1)) + 1e-3 * rng.normal(size=(y.size, 1))
    by_scores = NashClassifier("squared", alpha=1e-3, decision="scores").fit(X, y)
    by_equilibrium = NashClassifier("squared", alpha=1e-3).fit(X, y)
    assert by_equilibrium.task_loss(X, y) <= by_scores.task_loss(X, y)
    assert (by_equilibrium.predict(X) == 1).all()


@pytest.mark.filterwarnings("ignore:abstain_cost=.* is never worth paying")
@pytest.mark.parametrize("smoothing", [0.0, 0.5])
@pytest.mark.parametrize("cost", [0.0, 0.1, 0.3, 0.5, 0.7, 1.0, 2.0])
@pytest.mark.parametrize("k", [2, 3, 4])
def test_the_abstainer(cost, k, smoothing):
    game = games.abstain(k, cost)
    unit, mu = game.costs.max() * (1 + smoothing), game.costs.max() * smoothing
    X, y = graded(k=k, noise=0.4)
    names = np.array([f"grade {c}" for c in range(k)])
    model = NashAbstainer(cost, alpha=1e-3, abstain_label="?", smoothing=smoothing).fit(X, names[y])
    scores = all_scores(model, X)
    found = game.solve(unit * scores, smoothing=mu)
    p, q = model.strategy(X), model.predict_proba(X)
    assert p.shape == (y.size, k + 1)
    assert np.array_equal(p[:, -1], model.abstain_proba(X))
    assert np.allclose(q.sum(axis=1), 1, rtol=0, atol=1e-12)
    if smoothing:
        assert np.allclose(q, found.q, rtol=0, atol=1e-9)
        assert np.array_equal(model.predict(X), names[q.argmax(axis=1)])
    else:
        joined = np.column_stack([(1 - p[:, -1:]) * q, p[:, -1]])
        assert np.allclose(p, joined, rtol=0, atol=1e-7)
        assert np.allclose(game.upper(unit * scores, p), found.value, rtol=0, atol=1e-7)
    assert np.array_equal(model.predict(X), names[scores.argmax(axis=1)])
    answers = model.predict_or_abstain(X)
    options = found.p.argmax(axis=1)
    assert np.array_equal(answers, np.append(names, "?")[options])
    assert model.task_loss(X, names[y]) == pytest.approx(game.costs[options, y].mean(), abs=1e-12)
    assert model.score(X, names[y]) == -model.task_loss(X, names[y])
    if cost >= 1:
        assert (model.abstain_proba(X) == 0).all()
        assert "?" not in answers
    if cost == 1:
        plain = NashClassifier(alpha=1e-3, smoothing=smoothing).fit(X, names[y])
        assert abs(model.objective_ - plain.objective_) <= 2e-3 * plain.objective_
    if cost == 0:
        assert (model.abstain_proba(X) == 1).all()
        assert (answers == "?").all()
        assert smoothing or model.objective_ <= 1e-12
    if 0 < cost <= 0.3:
        assert 0 < np.mean(answers == "?") < 1


def test_the_best_label_where_abstaining_has_a_price_for_each():
    """The largest ``q`` is not where the largest score is; labels that ``p`` mixes are told apart by ``p``."""
    X, y = graded(k=4, noise=0.8)
    model = NashAbstainer([0.1, 0.6, 0.3, 0.2], alpha=1e-3, smoothing=0.2).fit(X, y)
    p, q = model.strategy(X), model.predict_proba(X)
    assert np.array_equal(model.predict(X), q.argmax(axis=1))
    assert (model.predict(X) != model.decision_function(X).argmax(axis=1)).any()
    mixed = p[:, :-1].any(axis=1)
    assert mixed.any() and not mixed.all()
    assert np.array_equal(model.predict(X)[mixed], p[mixed, :-1].argmax(axis=1))


def test_a_dearer_abstention_is_rarer():
    X, y = graded(noise=0.4)
    shares = [np.mean(NashAbstainer(c, alpha=1e-3).fit(X, y).predict_or_abstain(X) == -1) for c in (0.1, 0.3, 0.6)]
    assert shares[0] > shares[1] > shares[2]


@pytest.mark.parametrize(
    ("classes", "label"),
    [([0, 1, 2], -1), ([0, 1, 2], "?"), (["a", "b", "c"], -1), (["a", "b", "c"], "abstained"), ([0.0, 1.0, 2.0], -1)],
    ids=str,
)
def test_abstain_labels_of_any_kind(classes, label):
    X, y = graded(noise=1.0)
    model = NashAbstainer(0.2, abstain_label=label, alpha=1e-2).fit(X, np.array(classes)[y])
    answers = model.predict_or_abstain(X)
    abstained = model.abstain_proba(X) > 0.5
    assert abstained.any()
    assert all(answer == label for answer in answers[abstained])
    assert np.array_equal(answers[answers != label], model.predict(X)[answers != label])


@pytest.mark.parametrize(("classes", "label"), [([-1, 0, 1], -1), (["a", "b", "?"], "?")])
def test_an_abstain_label_must_not_be_a_class(classes, label):
    X, y = graded()
    model = NashAbstainer(abstain_label=label).fit(X, np.array(classes)[y])
    assert set(model.predict(X)) <= set(classes)
    with pytest.raises(ValueError, match="abstain_label must not be a class"):
        model.predict_or_abstain(X)


@pytest.mark.filterwarnings("ignore:alpha=.* is so large")
@given(seed=st.integers(0, 2**32 - 1), k=st.integers(2, 6), n=st.sampled_from([30, 200]), log_alpha=st.floats(-5, 0))
def test_thresholds_are_sorted_and_cut_the_direction(seed, k, n, log_alpha):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 3)), rng.integers(0, k, n)  # labels at random: nothing else would sort thresholds
    y[:k] = np.arange(k)
    model = NashOrdinalClassifier(
        alpha=10.0**log_alpha, tol=1e-8, max_iter=5000, decision="scores", smoothing=0.0, intercept_scaling=1.0
    ).fit(X, 10 * y)
    assert np.array_equal(model.thresholds_, -model.intercept_)
    error = np.sqrt(2 * model.dual_gap_ * model.objective_ / model.alpha)
    assert (np.diff(model.thresholds_) >= -2 * error - 1e-12).all()
    eta = np.sort(model.thresholds_)
    along = X @ model.coef_[0]
    clear = np.abs(along[:, None] - eta).min(axis=1) > 2 * error + 1e-9
    below = (along[:, None] > eta).sum(axis=1)
    assert np.array_equal(model.predict(X)[clear], 10 * below[clear])


@pytest.mark.parametrize("smoothing", [0.0, 0.5])
@pytest.mark.parametrize("k", [2, 3, 5])
def test_the_ordinal_model_is_the_absolute_game_on_prefix_sums(k, smoothing):
    X, y = graded(k=k)
    game, unit = games.absolute(k), 1 + smoothing
    for decision in ("auto", "scores", "equilibrium"):
        model = NashOrdinalClassifier(
            alpha=1e-2, decision=decision, tol=1e-8, smoothing=smoothing, intercept_scaling=2.0
        ).fit(X, y)
        above = X @ model.coef_.T - model.thresholds_
        scores = np.column_stack([np.zeros(y.size), np.cumsum(above, axis=1)])
        surrogate = game.loss_value(unit * scores, y, smoothing=smoothing).mean()
        norm2 = np.sum(model.coef_**2) + np.sum(model.thresholds_**2) / 4
        assert abs(model.objective_ - surrogate / unit - 0.5 * model.alpha * norm2) <= 1e-12
        p, found = model.strategy(X), game.solve(unit * scores, smoothing=smoothing)
        if smoothing:
            assert model.worst_case_risk(0.7) <= surrogate + 0.7 * unit * np.sqrt(norm2)
            assert np.allclose(model.predict_proba(X), found.q, rtol=0, atol=1e-9)
        else:
            assert abs(model.worst_case_risk(0.7) - surrogate - 0.7 * np.sqrt(norm2)) <= 1e-12
            assert np.abs(game.upper(scores, p) - found.value).max() <= 1e-12
            assert np.array_equal(model.predict_proba(X), p)
        assert model.decision_ == ({2: "scores"}.get(k, "equilibrium") if decision == "auto" else decision)
        answers = (scores if model.decision_ == "scores" else p).argmax(axis=1)
        assert np.array_equal(model.predict(X), answers)
        assert model.task_loss(X, y) == pytest.approx(np.abs(answers - y).mean(), abs=1e-12)
        assert model.score(X, y) == -model.task_loss(X, y)


def test_the_rule_is_known_after_fit_only():
    model = NashClassifier()
    assert not hasattr(model, "decision_")
    X, y = graded()
    assert model.fit(X, y).decision_ == "scores"
    assert model.set_params(decision="equilibrium").decision_ == "equilibrium"


@given(
    k=st.integers(2, 5),
    weight=st.floats(0.1, 10.0),
    shift=st.floats(0.0, 3.0),
    seed=st.integers(0, 2**32 - 1),
)
def test_games_that_answer_by_scores_give_the_largest_score_the_largest_p(k, weight, shift, seed):
    """All mistakes cost the same, and more than none: whatever the scores, ``p`` is largest where they are."""
    scores = np.random.default_rng(seed).normal(size=(50, k))
    alike = [games.zero_one(k), games.zero_one(k, [weight] * k), games.cost(shift + weight * (1 - np.eye(k)))]
    for game in alike:
        assert game.answers_by_scores
        p = game.solve(scores).p
        assert (np.take_along_axis(p, scores.argmax(axis=1)[:, None], 1)[:, 0] >= p.max(axis=1) - 1e-12).all()
    lopsided = np.ones(k)
    lopsided[0] = 2.0
    uneven = [games.zero_one(k, lopsided), games.abstain(k, 0.4), games.cost(np.ones((k, k)) + np.eye(k))]
    assert not any(
        game.answers_by_scores for game in [*uneven, *([games.absolute(k), games.squared(k)] if k > 2 else [])]
    )


@pytest.mark.parametrize("name", ["classifier", "ordinal", "abstainer"])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian", "precomputed", "callable"])
def test_kernel_models_without_a_support_vector_answer(name, kernel):
    """Where no weights are worth their norm, or training was interrupted at once, all functions are 0."""
    X, y = graded(n=30)

    def at_once(now):
        raise KeyboardInterrupt

    def pairs(A, B):
        assert A.shape[0] and B.shape[0]  # few kernels know what to do with no rows
        return A @ B.T

    model = {
        "classifier": NashClassifier(np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 2.0]]), kernel=kernel),
        "ordinal": NashOrdinalClassifier(kernel=kernel, callback=at_once),
        "abstainer": NashAbstainer(0.0, kernel=kernel),
    }[name]
    data = X @ X.T if kernel == "precomputed" else X
    if kernel == "callable":
        model.set_params(kernel=pairs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(data, y)
    if name == "ordinal":  # its first certificate already has weights: take them away, as a smaller set would
        model.support_, model.dual_coef_ = model.support_[:0], model.dual_coef_[:, :0]
        model.support_vectors_ = model.support_vectors_[:0]
        model.intercept_ = 0.0 * model.intercept_
    assert model.support_.size == 0
    assert not model.decision_function(data).any()
    assert model.predict(data).shape == (30,)
    p = model.strategy(data)
    assert np.array_equal(p, np.tile(model._game.solve(np.zeros((1, 3))).p, (30, 1)))
    assert np.isfinite(model.predict_proba(data)).all()
