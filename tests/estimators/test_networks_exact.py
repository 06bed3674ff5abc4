"""Networks without smoothing: trained to ``tol``, with the objective of the weights, and a risk that is kept."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

from nashlearn import NashMarkovNetwork, NashTagger

KINDS = ("tagger", "trees", "cycles", "relaxed")
LOSSES = ("zero_one", "absolute", "squared", "costs")
SENTENCES = [np.array([[1.0, 0], [0, 1], [1, 0]]), np.array([[0, 1.0], [1, 0]])], [[0, 1, 0], [1, 0]]


def loss_matrix(loss, k):
    if not isinstance(loss, str):
        return np.asarray(loss)
    apart = np.abs(np.subtract.outer(np.arange(k), np.arange(k))).astype(float)
    return {"zero_one": 1.0 - np.eye(k), "absolute": apart, "squared": apart**2}[loss]


def edges_of(kind, n, rng):
    if kind == "trees":
        return np.array([(rng.integers(0, v), v) for v in range(1, n)], dtype=int).reshape(-1, 2)
    path = [(v, v + 1) for v in range(n - 1)]
    if kind in ("cycles", "relaxed") and n > 2:
        path.append((n - 1, 0))
    return np.array(path, dtype=int).reshape(-1, 2)


def small_problem(seed, tol=1e-3):
    """An estimator with its default ``max_iter``, examples as it takes them, their labels, and their graphs."""
    rng = np.random.default_rng(seed)
    kind, name = KINDS[seed % 4], LOSSES[seed // 4 % 4]
    k, d = int(rng.integers(2, 4)), int(rng.integers(1, 5))
    sizes = rng.integers(1, 6, size=rng.integers(2, 7))
    sizes[0] = max(sizes[0], k)
    y = [rng.integers(0, k, size=n) for n in sizes]
    y[0][:k] = np.arange(k)  # all labels occur
    X = [rng.normal(size=(n, d)) for n in sizes]
    edges = [edges_of(kind, n, rng) for n in sizes]
    loss = name
    if name == "costs":
        loss = rng.integers(0, 5, size=(k, k)) * (1.0 - np.eye(k) * rng.integers(0, 2))
    settings = {"alpha": 10.0 ** rng.uniform(-4, -1), "smoothing": 0.0, "tol": tol}
    if kind == "tagger":
        return NashTagger(loss, **settings), X, y, edges
    model = NashMarkovNetwork(loss, exact=kind != "relaxed", **settings)
    return model, list(zip(X, edges, strict=True)), y, edges


def scores_of(model, example):
    """Scores of nodes and of one edge, from the public weights."""
    x = example[0] if isinstance(example, tuple) else example
    S = x @ model.coef_.T + model.intercept_
    if not hasattr(model, "transitions_"):
        return S, model.edge_coef_[0]
    S[0] += model.start_
    S[-1] += model.end_
    return S, model.transitions_


def squared_norm(model):
    names = ("coef_", "intercept_", "start_", "end_", "transitions_", "edge_coef_")
    return sum(float((getattr(model, name) ** 2).sum()) for name in names if hasattr(model, name))


def optimum(c, A_ub, b_ub, A_eq, b_eq, bounds):
    """The least ``<c, x>`` by HiGHS, as sharply as it goes: to about 1e-10."""
    sharp = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    return linprog(c, A_ub, b_ub, A_eq, b_eq, bounds, method="highs-ds", options=sharp).fun


def value_over_labelings(S, T, edges, L):
    """``min t`` with ``t >= score(y) + sum_v (L' p_v)(y_v)`` for every labelling, over replies ``p``."""
    n, k = S.shape
    labellings = np.array(list(product(range(k), repeat=n)))
    u, v = edges.T
    score = S[np.arange(n), labellings].sum(axis=1) + T[labellings[:, u], labellings[:, v]].sum(axis=1)
    lifts = L.T[labellings].reshape(len(labellings), -1)
    A = np.hstack([-np.ones((len(labellings), 1)), lifts])
    sums = np.hstack([np.zeros((n, 1)), np.kron(np.eye(n), np.ones((1, len(L))))])
    bounds = [(None, None)] + [(0, None)] * lifts.shape[1]
    c = np.r_[1.0, np.zeros(lifts.shape[1])]
    return optimum(c, A, -score, sums, np.ones(n), bounds)


def value_over_local_marginals(S, T, edges, L):
    """``max <S, q> + <T, Q> + sum_v r_v`` with ``r_v <= (L q_v)_i``, over marginals that agree along edges."""
    (n, k), m = S.shape, len(edges)
    first, size = n * k, n * k + m * k * k
    agree, level = [], []
    for e, ends in enumerate(edges):
        table = np.arange(k * k).reshape(k, k) + first + e * k * k
        for node, lines in zip(ends, (table, table.T), strict=True):
            for a, line in enumerate(lines):
                row = np.zeros(size + n)
                row[line], row[node * k + a] = 1.0, -1.0
                agree.append(row)
                level.append(0.0)
    for v in range(n):
        row = np.zeros(size + n)
        row[v * k : (v + 1) * k] = 1.0
        agree.append(row)
        level.append(1.0)
    risks = np.zeros((n * len(L), size + n))
    for v in range(n):
        risks[v * len(L) : (v + 1) * len(L), v * k : (v + 1) * k] = -L
        risks[v * len(L) : (v + 1) * len(L), size + v] = 1.0
    c = -np.r_[S.ravel(), np.tile(T.ravel(), m), np.ones(n)]
    bounds = [(0, None)] * size + [(None, None)] * n
    return -optimum(c, risks, np.zeros(len(risks)), np.array(agree), np.array(level), bounds)


def independent_objective(model, X, y, edges):
    """By linear programmes, of the loss divided by its largest cost."""
    L, total = loss_matrix(model.loss, model.classes_.size), 0.0
    L = L / (L.max() or 1.0)
    value = value_over_labelings if getattr(model, "exact", True) else value_over_local_marginals
    for example, labels, own in zip(X, y, edges, strict=True):
        S, T = scores_of(model, example)
        truth = S[np.arange(len(labels)), labels].sum() + T[labels[own[:, 0]], labels[own[:, 1]]].sum()
        total += value(S, T, own, L) - truth
    return 0.5 * model.alpha * squared_norm(model) + total / sum(map(len, y))


@pytest.mark.parametrize("count", [40, pytest.param(200, marks=pytest.mark.slow)])
def test_small_problems_reach_tol_and_report_the_objective_of_their_weights(count):
    """Many problems at the default ``max_iter``: descent on smoothed games reached ``tol`` on few of them."""
    reached, apart = 0, []
    for seed in range(count):
        model, X, y, edges = small_problem(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)
        reached += model.dual_gap_ <= 1e-3
        expected = independent_objective(model, X, y, edges)
        apart.append(abs(model.objective_ - expected) - 1e-9 * abs(expected))
    assert reached >= 0.95 * count
    assert max(apart) <= 1e-10  # what HiGHS is accurate to


def test_answers_drawn_from_the_strategy_keep_the_bound_on_the_training_labels():
    X, y = SENTENCES
    for smoothing in (0.0, 1e-3, 0.1, 1.0):
        model = NashTagger(alpha=0.1, smoothing=smoothing, max_iter=1000, tol=1e-3).fit(X, y)
        wrong = [1.0 - p[np.arange(len(labels)), labels] for p, labels in zip(model.strategy(X), y, strict=True)]
        assert np.concatenate(wrong).mean() <= model.worst_case_risk() + 1e-12
        assert model.dual_gap_ <= 1e-3


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_a_strategy_does_not_depend_on_the_company(smoothing):
    """Sentences settle each by itself: alone, together, or in another order they get the same strategy."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, 3)) for n in (1, 4, 7, 2, 5)]
    y = [rng.integers(0, 3, len(x)) for x in X]
    model = NashTagger("absolute", alpha=1e-2, smoothing=smoothing, max_iter=20, tol=0.5).fit(X, y)
    together = model.strategy(X)
    for i, x in enumerate(X):
        assert np.abs(model.strategy([x])[0] - together[i]).max() <= 1e-10  # scores differ by rounding
    for turned, one in zip(model.strategy(X[::-1])[::-1], together, strict=True):
        assert np.abs(turned - one).max() <= 1e-10


@pytest.mark.parametrize("max_iter", [1, 2, 4, 8])
def test_early_ends_are_honest(max_iter):
    for seed in range(0, 40, 3):
        model, X, y, edges = small_problem(seed)
        best = model.fit(X, y).objective_
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.set_params(max_iter=max_iter).fit(X, y)
        assert model.n_iter_ <= max_iter
        assert best >= model.objective_ - model.dual_gap_ * abs(model.objective_) - 1e-9
        assert model.objective_ >= best * (1 - 1e-3) - 1e-12
        expected = independent_objective(model, X, y, edges)
        assert model.objective_ == pytest.approx(expected, rel=1e-9, abs=1e-10)


def test_a_loss_with_a_free_option_has_the_objective_zero():
    X, y = SENTENCES
    model = NashTagger([[0, 0], [3, 0]], alpha=0.1, smoothing=0).fit(X, y)
    assert model.objective_ == 0 == model.dual_gap_ == model.worst_case_risk() - model._accuracy()
    unweighted = NashTagger(alpha=0.1, smoothing=0).fit(X, y, node_weight=[np.zeros(3), np.zeros(2)])
    assert unweighted.objective_ == 0 == unweighted.dual_gap_


def test_an_interrupt_before_the_first_step_reports_no_gap_beyond_the_objective():
    """No loss is negative where all labels are known: 0 bounds the optimum, and 1 the relative gap."""

    def stop(_):
        raise KeyboardInterrupt

    rng = np.random.default_rng(0)
    X = [50 * rng.normal(size=(6, 3)) for _ in range(5)]
    y = [rng.integers(0, 3, 6) for _ in X]
    for smoothing in (0.0, 0.5):
        model = NashTagger(alpha=1e-6, smoothing=smoothing, callback=stop)
        with pytest.warns(UserWarning):
            model.fit(X, y)
        assert 0 <= model.dual_gap_ <= 1


@pytest.mark.parametrize("estimator", [NashTagger, NashMarkovNetwork])
@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_the_default_decision_is_that_of_bayes_for_any_costs(estimator, smoothing):
    """One constant feature, single nodes: a population at one point. By scores the costs [[0, 100], [5, 5]] fail."""
    rng = np.random.default_rng(0)
    tried = 0
    for trial in range(60):
        k = int(rng.integers(2, 4))
        L = rng.integers(0, 20, size=(k, k)).astype(float)
        share = rng.multinomial(40, rng.dirichlet(np.ones(k)))
        if trial == 0:
            k, L, share = 2, np.array([[0.0, 100.0], [5.0, 5.0]]), np.array([16, 24])
        risk = L @ share / share.sum()
        if (share == 0).any() or np.diff(np.sort(risk))[0] < 0.02 * L.max():
            continue
        tried += 1
        y = [[label] for label in range(k)]
        X = [np.ones((1, 1))] * k
        if estimator is NashMarkovNetwork:
            X = [(x, []) for x in X]
        model = estimator(L, alpha=1e-6, smoothing=smoothing, max_iter=1000, tol=1e-4)
        model.fit(X, y, sample_weight=share)
        equal = k == 2 and L[0, 0] == L[1, 1] == 0 and L[0, 1] == L[1, 0]
        assert model.decision_ == ("scores" if equal else "equilibrium")
        assert model.predict(X[:1])[0][0] == risk.argmin()
        assert model.task_loss(X, y, share) == pytest.approx(risk.min())
    assert tried >= 30


@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_edge_features_keep_their_width_where_no_training_graph_has_an_edge(smoothing):
    rng = np.random.default_rng(0)
    X = [(rng.normal(size=(2, 3)), [], np.zeros((0, 4))) for _ in range(3)]
    model = NashMarkovNetwork(smoothing=smoothing).fit(X, [[0, 1], [1, 0], [1, 1]])
    assert model.edge_coef_.shape == (4, 2, 2) and not model.edge_coef_.any()
    with_edge = [(rng.normal(size=(2, 3)), [(0, 1)], rng.normal(size=(1, 4)))]
    assert model.predict(with_edge)[0].shape == (2,)
    with pytest.raises(ValueError, match="3 edge features; expected 4"):
        model.predict([(rng.normal(size=(2, 3)), [(0, 1)], np.ones((1, 3)))])


def test_models_saved_before_there_was_a_choice_decide_by_scores_and_keep_their_bound():
    X, y = SENTENCES
    model = NashTagger("absolute", alpha=0.1).fit(X, y)
    assert model.decision_ == "scores"  # of two labels: one mistake costs as much as the other
    model = NashTagger([[0, 3], [1, 0]], alpha=0.1).fit(X, y)
    bound, p = model.worst_case_risk(), model.strategy(X)
    assert model.decision_ == "equilibrium"
    assert model.set_params(decision="scores").decision_ == "scores"
    for name in ("decision", "_answers_by_scores", "_scale"):
        vars(model).pop(name)
    assert model.decision_ == "scores" and model.get_params()["decision"] == "auto"
    assert model.worst_case_risk() == bound
    assert all((a == b).all() for a, b in zip(model.strategy(X), p, strict=True))


def test_options_of_a_search_that_is_not_made_are_checked_all_the_same():
    X, y = SENTENCES
    model = NashTagger([[0, 3], [1, 0]], alpha=0.1).fit(X, y)
    with pytest.raises(ValueError, match="method must be one of"):
        model.predict(X, method="quick")
    with pytest.raises(TypeError):
        model.predict(X, limit=3)
