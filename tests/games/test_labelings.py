"""The search for best labellings: exact against enumeration, on puzzles of large scores, and out of steps."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from nashlearn import NashMarkovNetwork
from nashlearn.games import markov
from nashlearn.games.networks import Labeling, labellings, stars
from nashlearn.games.networks.cuts import cut
from nashlearn.games.networks.search import Search, deficits


def problem(seed: int, n: int, k: int, forbid: float):
    rng = np.random.default_rng(seed)
    edges = np.array([(u, v) for u in range(n) for v in range(u + 1, n) if rng.random() < 0.7], dtype=np.int64)
    edges = edges.reshape(-1, 2)
    f, T = rng.standard_normal((n, k)), 2.0 * rng.standard_normal((len(edges), k, k))
    T[rng.random(T.shape) < forbid] = -np.inf
    return stars.incidence(n, edges, np.arange(len(edges))), edges, f, T


def best(edges, f, T) -> float:
    labels = np.indices((f.shape[1],) * f.shape[0]).reshape(f.shape[0], -1)
    score = f[np.arange(f.shape[0])[:, None], labels].sum(axis=0)
    for (u, v), table in zip(edges, T, strict=True):
        score = score + table[labels[u], labels[v]]
    return float(score.max())


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 6), k=st.integers(2, 4), forbid=st.sampled_from([0.0, 0.3, 0.8]))
def test_the_search_finds_the_best_or_proves_that_there_is_none(seed, n, k, forbid):
    g, edges, f, T = problem(seed, n, k, forbid)
    alpha = np.random.default_rng(seed).standard_normal((len(edges), 2, k))
    node, pair, bound = deficits(g, f, T, alpha)
    truth = best(edges, f, T)
    assert bound >= truth - 1e-9
    if bound == -np.inf:
        return
    search = Search(g, node, pair, 1.0, 1e-9)
    while not search.run(1e6, 64):
        assert bound - search.proved >= truth - 1e-9  # what is proved on the way holds
    if truth == -np.inf:
        assert search.labels[0] == -1
    else:
        found = node[np.arange(n), search.labels].sum()
        found += sum(p[search.labels[u], search.labels[v]] for (u, v), p in zip(edges, pair, strict=True))
        assert bound - found == pytest.approx(truth, abs=1e-8)


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 7), spread=st.sampled_from([1e-6, 1.0, 1e6]), ties=st.booleans())
def test_a_cut_is_the_best_labeling_of_two_states_that_attract(seed, n, spread, ties):
    g, edges, f, T = problem(seed, n, 2, 0.0)
    if ties:
        f, T = f.round(), T.round()
    T *= spread
    T[:, 0, 0] -= np.minimum(T[:, 0, 0] + T[:, 1, 1] - T[:, 0, 1] - T[:, 1, 0], 0.0)
    labels, bound, certain = cut(g, f, T, 1e-10 * max(1.0, spread))
    assert certain
    score = f[np.arange(n), labels].sum() + sum(t[labels[u], labels[v]] for (u, v), t in zip(edges, T, strict=True))
    truth, unit = best(edges, f, T), 1e-9 * max(1.0, spread) * n
    assert score == pytest.approx(truth, abs=unit)
    assert -unit <= bound - truth <= unit


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 7), ties=st.booleans(), density=st.sampled_from([0.4, 1.0]))
def test_labels_of_a_cut_are_in_a_best_labeling_where_states_repel(seed, n, ties, density):
    rng = np.random.default_rng(seed)
    edges = np.array([e for e in combinations(range(n), 2) if rng.random() < density], dtype=np.int64).reshape(-1, 2)
    g = stars.incidence(n, edges, np.arange(len(edges)))
    f, T = rng.normal(size=(n, 2)), rng.normal(size=(len(edges), 2, 2))
    if ties:
        f, T = f.round(), T.round()
    labels, bound, certain = cut(g, f, T, 1e-10)
    truth = best(edges, f, T)
    assert certain and bound >= truth - 1e-9
    kept = np.where((labels[:, None] >= 0) & (labels[:, None] != np.arange(2)), -np.inf, f)
    assert best(edges, kept, T) == pytest.approx(truth, abs=1e-9)
    found = markov(edges, np.full(n, 2), exact=False).maximise((f, T))
    assert found.status == "optimal" and found.score == pytest.approx(truth, abs=1e-9)


@pytest.mark.parametrize("n", [4, 5, 6])
def test_a_cycle_that_repels_is_renamed_where_it_is_even(n):
    edges = np.array([(i, (i + 1) % n) for i in range(n)])
    f = np.random.default_rng(n).normal(size=(n, 2))
    labels, bound, _ = cut(stars.incidence(n, edges, np.arange(n)), 0.1 * f, -np.eye(2)[None].repeat(n, 0), 1e-9)
    truth = best(edges, 0.1 * f, -np.eye(2)[None].repeat(n, 0))
    assert bound == pytest.approx(truth) if n % 2 == 0 else bound > truth + 0.1
    assert (labels >= 0).all() == (n % 2 == 0)


def test_no_cut_where_states_are_forbidden_or_more():
    g, _, f, T = problem(1, 4, 2, 0.0)
    attracting = np.broadcast_to(np.eye(2), T.shape)
    assert cut(g, f, attracting, 1e-9) is not None
    assert cut(g, np.where(np.eye(4, 2) > 0, -np.inf, f), attracting, 1e-9) is None
    assert cut(*(problem(1, 4, 3, 0.0)[i] for i in (0, 2, 3)), 1e-9) is None


@pytest.mark.parametrize("scale", [1e-12, 1e-9, 1e-6, 1.0, 1e9])
def test_what_is_proved_does_not_depend_on_the_scale(scale):
    number, rng = np.arange(20).reshape(4, 5), np.random.default_rng(3)
    across, down = (number[:, :-1], number[:, 1:]), (number[:-1], number[1:])
    edges = np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in (across, down)])
    for k in (2, 3):
        f, T = 0.3 * scale * rng.standard_normal((20, k)), scale * rng.standard_normal((len(edges), k, k))
        truth = markov(edges, k, exact=True).maximise((f, T)).score
        found = markov(edges, k, exact=False).maximise((f, T))
        assert found.bound >= truth - 1e-9 * scale
        assert found.status != "optimal" or found.score >= truth - 1e-7 * scale


@pytest.mark.parametrize("sign", [1.0, -1.0, 0.0])
def test_a_large_grid_of_two_states_is_proved_at_once(sign):
    """Its edges attract, repel, or some do: no sweep is needed."""
    number = np.arange(64 * 64).reshape(64, 64)
    across, down = (
        np.stack([a.ravel(), b.ravel()], axis=1)
        for a, b in ((number[:, :-1], number[:, 1:]), (number[:-1], number[1:]))
    )
    edges = np.concatenate([across, down])
    rng = np.random.default_rng(0)
    f, T = rng.standard_normal((number.size, 2)), rng.random((len(edges), 1, 1)) * np.eye(2)
    T *= sign or 0.3 * rng.choice([1.0, -1.0], size=(len(edges), 1, 1))
    for method in ("exact", "ascent"):
        found = markov(edges, 2, exact=False).maximise((f, T), method=method)
        assert found.status == "optimal"
        assert 0.0 <= found.bound - found.score <= 1e-9 * found.score


def test_a_limit_below_the_best_is_refuted():
    g, edges, f, T = problem(3, 5, 3, 0.0)
    node, pair, bound = deficits(g, f, T, np.zeros((len(edges), 2, 3)))
    short = bound - best(edges, f, T)
    search = Search(g, node, pair, 1.0, 1e-9)
    assert search.run(0.5 * short, 10**6)
    assert search.labels[0] == -1
    assert search.proved == pytest.approx(0.5 * short)


def test_a_latin_square_is_completed_and_proved():
    n = 5
    cells = np.arange(n * n)
    edges = np.array([(u, v) for u in cells for v in cells[u + 1 :] if u // n == v // n or u % n == v % n])
    rng = np.random.default_rng(0)
    T = np.broadcast_to(0.01 * rng.standard_normal((n, n)) - 4.0 * np.eye(n), (len(edges), n, n))
    truth = (cells // n + cells % n) % n
    f = np.zeros((n * n, n))
    given_cells = rng.permutation(n * n)[:14]
    f[given_cells, truth[given_cells]] = 8.0
    found = markov(edges, n, exact=False).maximise((f, T), time_limit=600.0)  # compiling counts
    assert found.status == "optimal"
    square = found.labels.reshape(n, n)
    assert (np.sort(square, axis=0) == np.arange(n)[:, None]).all()
    assert (np.sort(square, axis=1) == np.arange(n)).all()
    assert (found.labels[given_cells] == truth[given_cells]).all()


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 6), k=st.integers(2, 3), forbid=st.sampled_from([0.0, 0.5, 0.8]))
def test_what_is_called_best_or_infeasible_is(seed, n, k, forbid):
    _, edges, f, T = problem(seed, n, k, forbid)
    truth = best(edges, f, T)
    for method in ("exact", "ascent"):
        try:
            found = markov(edges, k, exact=False).maximise((f, T), method=method, time_limit=600.0)
        except ValueError as error:  # local reasoning is enough to see it
            assert truth == -np.inf and "no labelling possible" in str(error)
            continue
        assert found.bound >= truth - 1e-8 and found.score <= truth + 1e-8
        expected = "infeasible" if truth == -np.inf else "optimal"
        assert found.status == expected or method == "ascent"
        if found.status != "heuristic":
            assert found.status == expected
            assert found.score == pytest.approx(truth, abs=1e-7)


def test_a_triangle_cannot_be_coloured_by_two(monkeypatch):
    """Locally all is well: every node has labels, and every edge pairs."""
    T = np.zeros((3, 2, 2))
    T[:, [0, 1], [0, 1]] = -np.inf
    game = markov([(0, 1), (1, 2), (0, 2)], 2, exact=False)
    assert game.maximise((np.zeros((3, 2)), T)).status == "infeasible"
    assert game.maximise((np.zeros((3, 2)), T), method="ascent").status == "heuristic"
    with pytest.raises(ValueError, match="no labelling possible"):
        game.argmax((np.zeros((3, 2)), T))
    late = Labeling(np.zeros(3, np.int64), -np.inf, 0.0, "time limit")
    monkeypatch.setattr(game.solver, "maximise", lambda *_: late)
    with pytest.raises(ValueError, match="larger time_limit"):
        game.argmax((np.zeros((3, 2)), T))


def test_what_is_too_large_for_its_time_is_not_begun(monkeypatch):
    """HiGHS reads a programme to its end whatever the limit: 22 million pairs took two minutes where 2 s were given."""
    rng = np.random.default_rng(0)
    edges = np.array([(u, v) for u in range(30) for v in range(u + 1, 30)])
    scores = rng.standard_normal((30, 20)), rng.standard_normal((len(edges), 20, 20))
    game = markov(edges, 20, exact=False)
    monkeypatch.setattr(labellings, "milp", lambda *_, **__: pytest.fail("begun"))
    found = game.maximise(scores, time_limit=0.2)
    assert found.status == "time limit" and -np.inf < found.score <= found.bound


def test_a_prediction_that_is_not_proved_best_warns():
    rng = np.random.default_rng(1)
    edges = np.array([(u, v) for u in range(30) for v in range(u + 1, 30)])
    X = [(rng.standard_normal((30, 4)), edges, rng.standard_normal((len(edges), 3))) for _ in range(3)]
    y = [rng.integers(0, 5, 30) for _ in X]
    model = NashMarkovNetwork(exact=False, alpha=1e-3, smoothing=1.0, tol=0.5).fit(X, y)
    with pytest.warns(ConvergenceWarning, match=r"[1-3] labelling\(s\) not proved best"):
        model.predict(X, time_limit=0.01)
    model.predict(X, method="ascent")


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 10**6), n=st.integers(3, 6))
def test_no_label_of_a_better_labeling_is_ruled_out(seed, n):
    """The last label looks best everywhere and goes with nothing."""
    g, edges, f, T = problem(seed, n, 3, 0.0)
    f[:, 2] = 1000.0
    T[:, 2, :] = T[:, :, 2] = -np.inf
    truth = best(edges, f, T)
    search = labellings._Ascent(g, f, T)
    search.run(np.inf)
    worse = np.zeros(n, dtype=np.int64)
    search.labels, search.score = worse, float(labellings._score(g, f, T, worse))
    search.restrict()
    assert best(edges, search.possible_f, T) == pytest.approx(truth)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e6])
def test_the_integer_programme_is_exact_at_any_scale(monkeypatch, scale):
    monkeypatch.setattr(labellings, "_SEARCH", 0.0)
    monkeypatch.setattr(labellings, "_DECIMATION", np.zeros(0))
    for seed in range(12):
        _, edges, f, T = problem(seed, 9, 3, 0.0)
        found = markov(edges, 3, exact=False).maximise((scale * f, scale * T), time_limit=600.0)
        assert found.status == "optimal"
        assert found.score == pytest.approx(scale * best(edges, f, T), rel=1e-8)
