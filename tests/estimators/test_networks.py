"""NashTagger and NashMarkovNetwork: what they read, what they learn, and what they refuse."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from nashlearn import NashClassifier, NashMarkovNetwork, NashTagger, games

K = 6


def hidden_chain(m: int, seed: int, n: int = 30) -> tuple[np.ndarray, np.ndarray]:
    """Symbols and states (m, n): states stay with probability 0.7 and show themselves with probability 0.7."""
    rng = np.random.default_rng(seed)
    y = np.empty((m, n), dtype=int)
    y[:, 0] = rng.integers(0, K, m)
    for t in range(1, n):
        moved = (y[:, t - 1] + rng.integers(1, K, m)) % K
        y[:, t] = np.where(rng.random(m) < 0.7, y[:, t - 1], moved)
    return np.where(rng.random((m, n)) < 0.7, y, (y + rng.integers(1, K, (m, n))) % K), y


def one_hot(x: np.ndarray) -> list[np.ndarray]:
    return [np.eye(K)[row] for row in x]


x_train, y_train = hidden_chain(200, 0)
x_test, y_test = hidden_chain(300, 1)
TRAIN, TEST = one_hot(x_train), one_hot(x_test)


def bayes_error(x: np.ndarray, y: np.ndarray) -> float:
    """Error of the most probable state of each position under the true model."""
    move = np.full((K, K), 0.3 / (K - 1))
    np.fill_diagonal(move, 0.7)
    n = x.shape[1]
    forward, backward = np.empty((n, len(x), K)), np.ones((n, len(x), K))
    forward[0] = move[:, x[:, 0]].T
    for t in range(1, n):
        forward[t] = forward[t - 1] @ move * move[:, x[:, t]].T
    for t in range(n - 2, -1, -1):
        backward[t] = (backward[t + 1] * move[:, x[:, t + 1]].T) @ move
    answers = (forward * backward).argmax(axis=2).T
    return float((answers != y).mean())


@pytest.fixture(scope="module")
def tagger():
    return NashTagger().fit(TRAIN, list(y_train))


def test_a_hidden_chain_is_learnt(tagger):
    bayes = bayes_error(x_test, y_test)
    alone = float((x_test != y_test).mean())
    error = 1 - tagger.score(TEST, list(y_test))
    assert bayes <= error <= bayes + 0.02 < alone - 0.02
    assert tagger.dual_gap_ <= tagger.tol
    assert tagger.coef_.shape == (K, K) and tagger.transitions_.shape == (K, K) and tagger.start_.shape == (K,)
    assert (tagger.transitions_.argmax(axis=1) == np.arange(K)).all()


def test_missing_labels_cost_little(tagger):
    rng = np.random.default_rng(2)
    hidden = [np.where(rng.random(row.size) < 0.3, -1, row) for row in y_train]
    partial = NashTagger().fit(TRAIN, hidden)
    assert partial.score(TEST, list(y_test)) >= tagger.score(TEST, list(y_test)) - 0.01
    given = NashTagger().fit(TRAIN, hidden, propensities=[np.full(30, 0.7)] * 200)
    assert np.abs(given.transitions_ - partial.transitions_).max() <= 0.1
    per_node = NashTagger(propensity="node").fit(TRAIN, hidden)
    assert per_node.score(TEST, list(y_test)) >= partial.score(TEST, list(y_test)) - 0.01
    with_none = [[None if label < 0 else int(label) for label in row] for row in hidden]
    assert (NashTagger().fit(TRAIN, with_none).transitions_ == partial.transitions_).all()


def test_labels_that_are_missing_where_they_differ_need_their_propensities():
    """A symbol is labelled nine times in ten, the others half the time: given that, moments have the right mean."""
    rng = np.random.default_rng(0)
    x, y = hidden_chain(400, 5)
    rate = np.where(x == 0, 0.9, 0.5)
    hidden = [np.where(rng.random(30) < r, row, -1) for row, r in zip(y, rate, strict=True)]
    right = NashTagger(alpha=0.01).fit(one_hot(x), hidden, propensities=list(rate))
    full = NashTagger(alpha=0.01).fit(one_hot(x), list(y))
    wrong = NashTagger(alpha=0.01).fit(one_hot(x), hidden, propensities=[np.full(30, 0.6)] * 400)
    off = [np.abs(model.transitions_ - full.transitions_).max() for model in (right, wrong)]
    assert off[0] < off[1]


def test_all_ways_to_give_features_agree():
    X, y = TRAIN[:40], list(y_train[:40])
    settings = {"alpha": 0.01, "tol": 1e-3, "unseen_pairs": True}
    dense = NashTagger(**settings).fit(X, y)
    named = [[{f"s{s}": 1.0} for s in row] for row in x_train[:40]]
    strings = [[{"symbol": str(s)} for s in row] for row in x_train[:40]]
    lists = [[[f"s{s}"] for s in row] for row in x_train[:40]]
    for other in ([sparse.csr_matrix(x) for x in X], named, strings, lists):
        model = NashTagger(**settings).fit(other, y)
        assert abs(model.objective_ - dense.objective_) <= 1e-6
        assert all((a == b).all() for a, b in zip(model.predict(other), dense.predict(X), strict=True))
    assert model.feature_names_[0] == f"s{x_train[0, 0]}"
    seen = NashTagger(alpha=0.01, tol=1e-3).fit(named, y)
    assert seen.objective_ >= dense.objective_ - 1e-3 * dense.objective_  # fewer weights cannot do better
    assert seen.predict([[{"unheard of": 1.0}]])[0].shape == (1,)


def test_a_model_reads_what_it_was_not_trained_on():
    """Weights of sparse features are laid out otherwise than those of dense ones."""
    other = [sparse.lil_matrix(x) for x in TRAIN[:40]]
    for given, unlike in ((TRAIN[:40], other), (other, TRAIN[:40])):
        model = NashTagger(alpha=1e-2).fit(given, list(y_train[:40]))
        for own, foreign in zip(model.decision_function(given), model.decision_function(unlike), strict=True):
            np.testing.assert_allclose(own[0], foreign[0], atol=1e-12)


def test_labels_of_any_kind():
    words = np.array(["ant", "bee", "cat", "dog", "eel", "fox"])
    numbers = NashTagger(alpha=0.01).fit(TRAIN[:30], list(y_train[:30]))
    names = NashTagger(alpha=0.01).fit(TRAIN[:30], [words[row].tolist() for row in y_train[:30]])
    assert list(names.classes_) == list(words) and numbers.objective_ == names.objective_
    assert all((words[a] == b).all() for a, b in zip(numbers.predict(TEST[:5]), names.predict(TEST[:5]), strict=True))
    assert names.score(TEST[:50], [words[row] for row in y_test[:50]]) == numbers.score(TEST[:50], list(y_test[:50]))


def test_weights_count_as_repetitions():
    weight = np.r_[np.full(20, 2.0), np.zeros(10)]
    settings = {"alpha": 0.01, "tol": 1e-4}
    weighted = NashTagger(**settings).fit(TRAIN[:30], list(y_train[:30]), sample_weight=weight)
    fewer = NashTagger(**settings).fit(TRAIN[:20], list(y_train[:20]))
    assert abs(weighted.objective_ - fewer.objective_) <= 1e-4 * fewer.objective_


@pytest.mark.parametrize("smoothing", [0.0, 0.5, 3.0])
@pytest.mark.parametrize("loss", ["zero_one", "absolute", [[0, 2, 1], [5, 0, 1], [3, 1, 0]]])
def test_sequences_of_length_one_are_a_classifier(loss, smoothing):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)
    alike = {"alpha": 0.05, "smoothing": smoothing, "fit_intercept": False}
    tagger = NashTagger(loss, tol=1e-3, max_iter=1000, **alike).fit([x[None] for x in X], [[label] for label in y])
    # The start and end of a sequence are both a constant there: an intercept of size sqrt(2).
    Z = np.c_[X, np.full(60, np.sqrt(2))]
    classifier = NashClassifier(loss, **alike).fit(Z, y)
    assert tagger.objective_ == pytest.approx(classifier.objective_, rel=2e-3)
    if smoothing:
        q = np.concatenate(tagger.predict_proba([x[None] for x in X]))
        np.testing.assert_allclose(q, classifier.predict_proba(Z), atol=0.02)


def test_marginals_and_strategies(tagger):
    q, p = tagger.predict_proba(TEST[:10]), tagger.strategy(TEST[:10])
    for a, b in zip(q, p, strict=True):
        assert a.shape == b.shape == (30, K)
        assert np.abs(a.sum(axis=1) - 1).max() <= 1e-9 and np.abs(b.sum(axis=1) - 1).max() <= 1e-9
        assert a.min() >= 0 and b.min() >= 0
    assert np.mean(np.concatenate(p) == 0) > 0.3  # sparse
    nodes, edges = tagger.decision_function(TEST[:1])[0]
    assert nodes.shape == (30, K) and edges.shape == (29, K, K)
    assert (edges == tagger.transitions_).all()
    expected = TEST[0] @ tagger.coef_.T + tagger.intercept_
    expected[0] += tagger.start_
    expected[-1] += tagger.end_
    assert np.abs(nodes - expected).max() <= 1e-12


def test_the_risk_bound_covers_the_training_labels(tagger):
    p = tagger.strategy(TRAIN)
    risk = np.mean([1 - row[np.arange(30), y].mean() for row, y in zip(p, y_train, strict=True)])
    assert risk <= tagger.worst_case_risk() + 0.01 <= tagger.worst_case_risk(0.1)


def test_threads_and_scikit_learn():
    X, y = TRAIN[:60], list(y_train[:60])
    one, two = NashTagger(n_jobs=1).fit(X, y), NashTagger(n_jobs=2).fit(X, y)
    assert one.objective_ == two.objective_ and (one.transitions_ == two.transitions_).all()
    search = GridSearchCV(NashTagger(), {"alpha": [1e-3, 1.0], "smoothing": [0.5]}, cv=3).fit(X, y)
    assert search.best_params_["alpha"] == 1e-3
    assert clone(two).get_params() == two.get_params()


def test_edge_features_move_transitions():
    """The second half of each sequence reverses its transitions: only edge features can tell."""
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(150):
        labels = [int(rng.integers(2))]
        for t in range(1, 10):
            labels.append(labels[-1] if t < 5 else 1 - labels[-1])
        noisy = np.where(rng.random(10) < 0.75, labels, 1 - np.array(labels))
        late = (np.arange(1, 10) >= 5).astype(float)
        X.append((np.eye(2)[noisy], np.c_[1 - late, late]))
        y.append(labels)
    with_edges = NashTagger().fit(X, y)
    without = NashTagger().fit([nodes for nodes, _ in X], y)
    assert with_edges.edge_coef_.shape == (2, 2, 2)
    assert with_edges.score(X, y) > without.score([nodes for nodes, _ in X], y) + 0.05


SQUARE = np.array([(0, 1), (1, 2), (2, 3), (3, 0)])


def noisy_squares(m: int, seed: int):
    """Four corners in two colours, neighbours mostly alike."""
    rng = np.random.default_rng(seed)
    y = (rng.random((m, 1)) < 0.5).astype(int) * np.ones((1, 4), dtype=int)
    y = np.where(rng.random(y.shape) < 0.05, 1 - y, y)
    x = y + rng.normal(size=y.shape)
    return [(np.c_[row, np.ones(4)], SQUARE) for row in x], list(y)


@pytest.mark.parametrize("exact", [True, False])
def test_graphs_with_cycles(exact):
    X, y = noisy_squares(150, 0)
    X_test, y_test = noisy_squares(150, 1)
    model = NashMarkovNetwork(exact=exact, fit_intercept=False).fit(X, y)
    assert model.is_exact_ == exact and model.edge_coef_.shape == (1, 2, 2)
    alone = NashMarkovNetwork().fit([(nodes, []) for nodes, _ in X], y)
    assert model.score(X_test, y_test) > alone.score([(nodes, []) for nodes, _ in X_test], y_test) + 0.1
    assert model.dual_gap_ <= model.tol


def test_strategies_on_relaxed_graphs_are_those_of_the_game(monkeypatch):
    X, y = noisy_squares(6, 0)
    model = NashMarkovNetwork(exact=False, smoothing=0.3, tol=1e-5, max_iter=1000).fit(X, y)
    game = games.markov(SQUARE, model.classes_.size, exact=False)
    for scores, q, p in zip(model.decision_function(X), model.predict_proba(X), model.strategy(X), strict=True):
        played = game.solve(tuple(1.3 * part for part in scores), smoothing=0.3, tol=1e-10)
        cost = 1.0 - np.eye(model.classes_.size)
        assert np.abs(q - played.q[0]).max() <= 1e-2
        assert (p * (q @ cost)).sum() == pytest.approx((played.p * (played.q[0] @ cost)).sum(), abs=1e-2)
    monkeypatch.setattr(sys.modules["nashlearn.games.networks.settling"], "_LOOKS", 1)
    with pytest.warns(ConvergenceWarning, match="left at a gap"):
        model.marginals(X)


def test_a_network_of_chains_is_a_tagger():
    chain = np.column_stack([np.arange(29), np.arange(1, 30)])
    X, y = TRAIN[:40], list(y_train[:40])
    network = NashMarkovNetwork(alpha=0.01, tol=1e-4).fit([(x, chain) for x in X], y)
    turned = NashMarkovNetwork(alpha=0.01, tol=1e-4).fit([(x, chain[::-1, ::-1]) for x in X], y)
    assert abs(network.objective_ - turned.objective_) <= 1e-4 * network.objective_
    assert np.abs(network.edge_coef_[0] - turned.edge_coef_[0].T).max() <= 0.02


@pytest.mark.parametrize("exact", [True, False])
def test_the_exact_game_is_trained_to_the_gap_that_is_asked(exact):
    """Each smoothing leaves an error of its own: the smaller the gap, the farther smoothing must fall."""
    number = np.arange(9).reshape(3, 3)
    pairs = (number[:, :-1], number[:, 1:]), (number[:-1], number[1:])
    edges = np.concatenate([np.column_stack([a.ravel(), b.ravel()]) for a, b in pairs])
    rng = np.random.default_rng(0)
    weights, X, y = rng.normal(size=(3, 3)), [], []
    for _ in range(20):
        X.append((rng.normal(size=(9, 3)), edges))
        y.append((X[-1][0] @ weights + 0.5 * rng.normal(size=(9, 3))).argmax(axis=1))
    model = NashMarkovNetwork(smoothing=0.0, alpha=1e-2, tol=1e-3, max_iter=500, exact=exact).fit(X, y)
    assert model.dual_gap_ <= 1e-3


def test_the_exact_game_is_certified():
    X, y = TRAIN[:20], list(y_train[:20])
    model = NashTagger(smoothing=0.0, alpha=0.05, tol=0.05, max_iter=2000).fit(X, y)
    smooth = NashTagger(smoothing=0.5, alpha=0.05).fit(X, y)
    assert model.dual_gap_ <= 0.05 and model.objective_ < smooth.objective_


def test_weights_of_nodes_are_part_of_the_loss():
    rng = np.random.default_rng(4)
    X = [rng.standard_normal((n, 3)) for n in (4, 1, 6, 5, 3, 4)]
    y = [(x[:, 0] + 0.5 * rng.standard_normal(len(x)) > 0).astype(int) + (x[:, 1] > 0) for x in X]
    counts = [np.arange(1.0, len(x) + 1) for x in X]
    doubled = NashTagger(smoothing=1.0, alpha=0.02 * 2).fit(X, y, node_weight=[2.0 * np.ones(len(x)) for x in X])
    plain = NashTagger(smoothing=0.5, alpha=0.04 * 1.5).fit(X, y)
    # Scores and losses twice as large, at twice the smoothing: the same game in other units. What nodes count is no
    # part of the largest cost, so that one loss is divided by 2, the other by 1.5.
    assert 2.0 * doubled.objective_ == pytest.approx(2.0 * 1.5 * plain.objective_, rel=0.02)
    square = [(0, 1), (1, 2), (2, 3), (3, 0)]
    for loss in ("zero_one", "absolute"):
        chain = NashTagger(loss, alpha=0.01).fit(X, y, node_weight=counts)
        graph = NashMarkovNetwork(loss, alpha=0.01).fit([(x, []) for x in X], y, node_weight=counts)
        assert chain.dual_gap_ <= chain.tol
        assert graph.dual_gap_ <= graph.tol
    loopy = NashMarkovNetwork(alpha=0.01).fit(
        [(X[0], square), (X[5], square)], [y[0], y[5]], node_weight=[counts[0], counts[5]]
    )
    assert loopy.dual_gap_ <= loopy.tol


def test_no_weights_at_all_train_a_random_field():
    X, y = [np.array([[1.0], [-1.0], [1.0]]), np.array([[-1.0], [-1.0]])], [[1, 0, 1], [0, 0]]
    model = NashTagger(smoothing=1.0, alpha=0.1, tol=1e-6, fit_intercept=False)
    model.fit(X, y, node_weight=[np.zeros(3), np.zeros(2)])
    total = 0.0
    for x, labels in zip(X, y, strict=True):
        scores = [2.0 * _chain_score(model, x, other) for other in itertools.product((0, 1), repeat=len(x))]
        total += np.logaddexp.reduce(scores) - 2.0 * _chain_score(model, x, labels)
    penalty = 0.05 * float(model._weights @ model._weights)
    assert model.objective_ == pytest.approx(0.5 * total / 5 + penalty, rel=1e-5)


def _chain_score(model, x, labels) -> float:
    score = sum(float(model.coef_[a] @ row) + model.intercept_[a] for a, row in zip(labels, x, strict=True))
    score += sum(model.transitions_[a, b] for a, b in itertools.pairwise(labels))
    return score + model.start_[labels[0]] + model.end_[labels[-1]]
