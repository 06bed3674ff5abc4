"""Markov networks against linear programmes over all labellings, and against each other."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from nashlearn import games

TOL = 1e-6


def grid(rows: int, columns: int) -> list[tuple[int, int]]:
    across = [(columns * i + j, columns * i + j + 1) for i in range(rows) for j in range(columns - 1)]
    return across + [(columns * i + j, columns * (i + 1) + j) for i in range(rows - 1) for j in range(columns)]


GRAPHS = {
    "chain": (4, [(0, 1), (1, 2), (2, 3)]),
    "tree": (6, [(1, 0), (1, 2), (3, 1), (3, 4), (5, 3)]),
    "star": (5, [(0, 4), (4, 1), (2, 4), (4, 3)]),
    "forest": (5, [(0, 1), (4, 3)]),
    "no edges": (3, []),
    "single": (1, []),
    "cycle": (5, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)]),
    "complete": (4, [(a, b) for a in range(4) for b in range(a)]),
    "grid": (9, grid(3, 3)),
}
FORESTS = ("chain", "tree", "star", "forest", "no edges", "single")
every = pytest.mark.parametrize("name", GRAPHS)


def matrix(loss, k: int) -> np.ndarray:
    distance = np.abs(np.arange(k)[:, None] - np.arange(k)).astype(float)
    return {"zero_one": 1 - np.eye(k), "absolute": distance, "squared": distance**2}[loss]


class Instance:
    """A graph with scores, and all its labellings."""

    def __init__(self, name: str, seed: int, loss: str, *, mixed=True, spread=1.0, forbid=0.0, ties=False):
        self.n, edges = GRAPHS[name]
        self.edges = np.array(edges, dtype=np.int64).reshape(-1, 2)
        rng = np.random.default_rng(seed)
        most = 2 if name == "grid" else 3
        self.states = rng.integers(1, most + 1, self.n) if mixed else np.full(self.n, most)
        k = int(self.states.max())
        self.weights = rng.choice([0.3, 1.0, 2.0], self.n)
        self.f, self.T = rng.normal(size=(self.n, k)), rng.normal(size=(len(edges), k, k))
        if ties:
            self.f, self.T = self.f.round(), self.T.round()
        self.f *= spread
        self.T *= spread
        self.loss = loss
        self.costs = [w * matrix(loss, s) for w, s in zip(self.weights, self.states, strict=True)]
        self.labellings = np.array(list(product(*map(range, self.states))))
        kept = self.labellings[rng.integers(len(self.labellings))]
        if forbid:
            f, T = rng.random(self.f.shape) < forbid, rng.random(self.T.shape) < forbid
            f[np.arange(self.n), kept] = False
            T[np.arange(len(edges)), kept[self.edges[:, 0]], kept[self.edges[:, 1]]] = False
            self.f[f], self.T[T] = -np.inf, -np.inf
        u, v = self.edges.T
        y = self.labellings
        self.scores = self.f[np.arange(self.n), y].sum(1) + self.T[np.arange(len(edges)), y[:, u], y[:, v]].sum(1)

    def game(self, exact="auto"):
        return games.markov(self.edges, self.states, self.loss, self.weights, exact)

    @property
    def size(self) -> float:
        finite = [x[np.isfinite(x)] for x in (self.f, self.T)]
        return 1.0 + sum(L.max() for L in self.costs) + max(np.abs(x).max(initial=0) for x in finite)

    def value(self) -> float:
        """``max_mu <scores, mu> + sum_v u_v`` with ``u_v <= sum_y mu_y L_v[i, y_v]`` for each option."""
        allowed = np.isfinite(self.scores)
        y, scores = self.labellings[allowed], self.scores[allowed]
        shift = scores.max()
        rows = []
        for v, L in enumerate(self.costs):
            unit = np.zeros((L.shape[0], self.n))
            unit[:, v] = 1
            rows.append(np.hstack([-L[:, y[:, v]], unit]))
        A = np.vstack(rows)
        best = linprog(
            -np.r_[scores - shift, np.ones(self.n)],
            A_ub=A,
            b_ub=np.zeros(len(A)),
            A_eq=np.r_[np.ones(len(y)), np.zeros(self.n)][None],
            b_eq=[1],
            bounds=[(0, None)] * len(y) + [(None, None)] * self.n,
        )
        return shift - best.fun


def stopped(game, scores, smoothing: float, tol: float, sweeps: int):
    """The smoothed equilibrium after so many sweeps at most."""
    beyond = np.arange(scores[0].shape[1]) >= game.solver.n_states[:, None]
    return game.solver.solve(np.where(beyond, -np.inf, scores[0]), scores[1], smoothing, tol, max_iter=sweeps)


losses = st.sampled_from(["zero_one", "absolute", "squared"])
seeds = st.integers(0, 10_000)


@every
@settings(max_examples=6, deadline=None)
@given(seed=seeds, loss=losses, spread=st.sampled_from([0.1, 1.0, 4.0]), ties=st.booleans())
def test_value_is_the_linear_programme(name, seed, loss, spread, ties):
    case = Instance(name, seed, loss, spread=spread, ties=ties)
    eq = case.game(exact=True).solve((case.f, case.T))
    assert abs(eq.value - case.value()) <= TOL * case.size
    assert 0 <= eq.gap <= TOL * case.size
    check_marginals(case, eq)


def check_marginals(case, eq, slack=1e-9):
    """The strategies lie in their polytopes, locally at least, and avoid what is forbidden."""
    nodes, pairs = eq.q
    assert np.abs(nodes.sum(axis=1) - 1).max() <= slack and nodes.min() >= 0 and pairs.min(initial=0) >= 0
    assert np.abs(eq.p.sum(axis=1) - 1).max() <= slack and eq.p.min() >= 0
    for e, (u, v) in enumerate(case.edges):
        assert np.abs(pairs[e].sum(axis=1) - nodes[u]).max() <= slack
        assert np.abs(pairs[e].sum(axis=0) - nodes[v]).max() <= slack
    beyond = np.arange(nodes.shape[1]) >= case.states[:, None]
    assert (nodes[beyond] == 0).all() and (nodes[np.isneginf(case.f)] == 0).all()
    assert (pairs[np.isneginf(case.T)] <= slack).all()


@every
@settings(max_examples=4, deadline=None)
@given(seed=seeds, loss=losses)
def test_forbidden_labels_and_pairs(name, seed, loss):
    case = Instance(name, seed, loss, forbid=0.3)
    game = case.game(exact=True)
    eq = game.solve((case.f, case.T))
    assert abs(eq.value - case.value()) <= TOL * case.size and eq.gap <= TOL * case.size
    check_marginals(case, eq)
    assert abs(game.maximise((case.f, case.T)).score - case.scores.max()) <= 1e-12 * case.size


@every
@settings(max_examples=4, deadline=None)
@given(seed=seeds, loss=losses, other=seeds)
def test_loss_bounds_its_prediction_and_gradient_is_a_subgradient(name, seed, loss, other):
    case = Instance(name, seed, loss, mixed=False)
    game = case.game()
    eq = game.solve((case.f, case.T))
    losses = eq.value - case.scores
    own = sum((eq.p[v, : L.shape[0]] @ L)[case.labellings[:, v]] for v, L in enumerate(case.costs))
    assert (losses >= own - eq.gap - TOL * case.size).all()
    y = case.labellings[seed % len(case.labellings)]
    assert abs(game.loss_value((case.f, case.T), y) - losses[seed % len(case.labellings)]) <= TOL * case.size
    rng = np.random.default_rng(other)
    df, dT = rng.normal(size=case.f.shape), rng.normal(size=case.T.shape)
    moved = game.solve((case.f + df, case.T + dT)).value
    assert moved >= eq.value + (eq.q[0] * df).sum() + (eq.q[1] * dT).sum() - eq.gap - TOL * case.size


@every
@settings(max_examples=8, deadline=None)
@given(seed=seeds, loss=losses, forbid=st.sampled_from([0.0, 0.3]), spread=st.sampled_from([1.0, 1e4]))
def test_local_polytope_bounds_the_game(name, seed, loss, forbid, spread):
    case = Instance(name, seed, loss, forbid=forbid, spread=spread)
    local = case.game(exact=False)
    assert not local.is_exact and case.game().is_exact
    above = local.solve((case.f, case.T))
    exact = case.value()
    assert above.value + above.gap >= exact - TOL * case.size and above.gap <= 1e-7 * case.size
    check_marginals(case, above)
    if name in FORESTS:
        assert abs(above.value - exact) <= TOL * case.size


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # what is left open is checked here
@every
@settings(max_examples=3, deadline=None)
@given(seed=seeds, loss=losses, eps=st.sampled_from([0.01, 0.3]))
def test_gaps_of_smoothed_relaxations_hold_where_pairs_are_forbidden(name, seed, loss, eps):
    case = Instance(name, seed, loss, forbid=0.3)
    early, late = (stopped(case.game(False), (case.f, case.T), eps, t, m) for t, m in ((0.1, 500), (0, 5000)))
    upper = [eq.value + (eq.gap if eq.gap < np.inf else 0.0) for eq in (early, late)]
    assert upper[1] <= upper[0] + 1e-8 * case.size
    if early.gap < np.inf:
        assert early.value <= upper[1] + 1e-6 * case.size
        assert early.q[1][np.isneginf(case.T)].sum() <= 1e-6


def test_ties_of_decimals_are_ties():
    """0.1 * 3 is not 0.3: entries as good as the best may fall a rounding short of it."""
    scores = [[0.1 * 3, 0.2], [0.2, 0.2], [0.2, 0.1 * 3]], [[[0, 0.1], [0.1, 0]]] * 2
    assert games.markov([(0, 1), (1, 2)], 2, "zero_one", np.zeros(3)).solve(scores).value == pytest.approx(0.9)
    rng = np.random.default_rng(0)
    for _ in range(30):
        f, T = 1e7 + rng.integers(0, 3, (3, 2)) / 10, rng.integers(0, 3, (2, 2, 2)) / 10
        assert games.markov([(0, 1), (1, 2)], 2, "zero_one", np.full(3, 0.1)).solve((f, T)).gap <= TOL


def test_local_polytope_is_above_on_a_frustrated_cycle():
    """Three nodes that all want to differ, two states: locally, every pair can."""
    scores = np.zeros((3, 2)), np.repeat(-4 * np.eye(2)[None], 3, axis=0)
    edges = [(0, 1), (1, 2), (2, 0)]
    exact = games.markov(edges, 2).solve(scores).value
    local = games.markov(edges, 2, exact=False).solve(scores).value
    assert abs(local - 1.5) <= TOL and exact <= -2.5 + TOL


@every
@settings(max_examples=4, deadline=None)
@given(seed=seeds, forbid=st.sampled_from([0.0, 0.2]))
def test_best_labellings(name, seed, forbid):
    case = Instance(name, seed, "zero_one", forbid=forbid, spread=2.0)
    scores, best = (case.f, case.T), case.scores.max()
    for exact in (True, False):
        found = case.game(exact).maximise(scores)
        assert found.status == "optimal" and abs(found.score - best) <= 1e-8 * case.size
        assert abs(found.bound - best) <= 1e-8 * case.size
        assert abs(case.game(exact).score(scores, found.labels) - best) <= 1e-8 * case.size
    fast = case.game(False).maximise(scores, method="ascent")
    assert fast.score <= best + 1e-8 * case.size <= fast.bound + 2e-8 * case.size
    assert fast.status in ("optimal", "heuristic")
    if fast.status == "optimal":
        assert abs(fast.score - best) <= 1e-8 * case.size


def test_a_search_out_of_time_says_so():
    rng = np.random.default_rng(0)
    game = games.markov(grid(12, 12), 4, exact=False)
    scores = rng.normal(size=(144, 4)), 3 * rng.normal(size=(264, 4, 4))
    found = game.maximise(scores, time_limit=0.05)
    assert found.status == "time limit" and found.bound > found.score
    assert abs(game.score(scores, found.labels) - found.score) <= 1e-9 * abs(found.score)


@pytest.mark.parametrize("name", ["chain", "tree", "cycle", "grid"])
@settings(max_examples=4, deadline=None)
@given(seed=seeds, loss=losses)
def test_smoothed_value_and_gradient(name, seed, loss):
    """The value is ``min_p eps log sum_y exp((score + loss(p, y)) / eps)``; its derivative is q."""
    case = Instance(name, seed, loss, mixed=False, spread=0.5)
    game, eps = case.game(), 0.7
    scores = case.f, case.T
    eq = game.solve(scores, smoothing=eps, tol=1e-7)
    own = sum((eq.p[v, : L.shape[0]] @ L)[case.labellings[:, v]] for v, L in enumerate(case.costs))
    upper = eq.value + eq.gap
    assert abs(upper - eps * logsumexp((case.scores + own) / eps)) <= 1e-9 * case.size
    q = np.exp((case.scores + own - upper) / eps)
    nodes = np.array([[q[case.labellings[:, v] == a].sum() for a in range(case.f.shape[1])] for v in range(case.n)])
    assert np.abs(eq.q[0] - nodes).max() <= 1e-9
    risk = sum(p[: L.shape[0]] @ L @ x - (L @ x).min() for p, L, x in zip(eq.p, case.costs, nodes, strict=True))
    assert abs(eq.gap - max(risk, 0)) <= 1e-9 and eq.gap <= 1e-7
    assert abs(eq.entropy - eq.risk + eps * (q * np.log(q)).sum()) <= 1e-9
    assert abs(eq.value - eq.entropy - (case.f * eq.q[0]).sum() - (case.T * eq.q[1]).sum()) <= 1e-8 * case.size
    check_marginals(case, eq)
    rng = np.random.default_rng(seed)
    df, dT, h = rng.normal(size=case.f.shape), rng.normal(size=case.T.shape), 1e-4
    up = game.solve((case.f + h * df, case.T + h * dT), smoothing=eps, tol=1e-9).value
    down = game.solve((case.f - h * df, case.T - h * dT), smoothing=eps, tol=1e-9).value
    slope = (eq.q[0] * df).sum() + (eq.q[1] * dT).sum()
    assert abs((up - down) / (2 * h) - slope) <= 2e-3


@settings(max_examples=40, deadline=None)
@given(seed=seeds, k=st.integers(2, 5), case=st.sampled_from([(1, 0.01, 1e-6), (1, 0.3, 1e-6), (4, 0.3, 1e-3)]))
def test_replies_to_large_costs_settle(seed, k, case):
    """Unequal costs far above the smoothing: the predictor's steps must lower the cost, or they go round in circles."""
    rng, (n, eps, tol) = np.random.default_rng(seed), case
    costs = rng.uniform(1, 10, size=(k, k)) * (1 - np.eye(k))
    edges = np.column_stack([np.arange(n - 1), np.arange(1, n)])
    scores = rng.normal(size=(n, k)), rng.normal(size=(n - 1, k, k))
    game = games.markov(edges, k, loss=costs)
    smooth, exact = game.solve(scores, smoothing=eps, tol=tol), game.solve(scores)
    assert smooth.gap <= tol
    assert -1e-6 <= smooth.value - exact.value <= eps * n * np.log(k) + tol


def test_a_game_whose_steps_once_went_round_in_circles():
    costs = [[0, 2.36, 9.22], [9.1, 0, 3.97], [6.51, 5.3, 0]]
    game = games.markov(np.zeros((0, 2), dtype=int), [3], loss=costs)
    assert game.solve((np.array([[-1.33, 1.4, 0.65]]), np.zeros((0, 3, 3))), smoothing=0.3, tol=1e-6).gap <= 1e-6


def test_smoothing_vanishes():
    case = Instance("tree", 3, "zero_one")
    exact = case.value()
    gaps = [float(case.game().solve((case.f, case.T), smoothing=s, tol=1e-4).value) - exact for s in (0.5, 0.1, 0.02)]
    assert gaps[0] > gaps[1] > gaps[2] > 0 and gaps[2] <= 0.02 * np.log(len(case.labellings)) + 1e-4


@pytest.mark.parametrize("exact", [True, False])
def test_smoothed_local_polytope(exact):
    case = Instance("forest", 5, "zero_one", mixed=False)
    eq = games.markov(case.edges, 3, exact=exact).solve((np.tile(case.f[0], (5, 1)), case.T), smoothing=0.5, tol=1e-5)
    assert eq.gap <= 1e-5
    check_marginals(case, eq)


@pytest.mark.parametrize("name", ["chain", "tree", "cycle"])
def test_scores_of_a_million(name):
    for seed in range(4):
        case = Instance(name, seed, "zero_one", spread=1e6)
        eq = case.game().solve((case.f, case.T))
        assert abs(eq.value - case.value()) <= 1e-9 * 1e6 and eq.gap <= TOL
        smooth = case.game().solve((case.f, case.T), smoothing=0.5)
        assert smooth.gap <= 1e-7 and 0 <= smooth.value - eq.value + 1e-6 <= 0.5 * np.log(len(case.labellings)) + 2e-6
        check_marginals(case, smooth)


def test_ties_and_uniform_scores():
    """Without scores each node is a game of its own: value 1 - 1/k, whatever the graph."""
    for edges, n in ((grid(2, 2), 4), ([(0, 1), (1, 2)], 4)):
        eq = games.markov(edges, 3).solve((np.zeros((n, 3)), np.zeros((len(edges), 3, 3))))
        assert abs(eq.value - n * 2 / 3) <= TOL


def test_a_cost_matrix_may_have_more_options_than_labels():
    L = np.array([[0, 1], [1, 0], [0.2, 0.2]])
    eq = games.markov([(0, 1)], 2, L).solve((np.zeros((2, 2)), np.zeros((1, 2, 2))))
    assert abs(eq.value - 0.4) <= TOL and eq.p.shape == (2, 3)
    alone = games.cost(L).solve(np.array([[0.3, 0.1]])).value[0]
    assert abs(games.markov([], 2, L).solve(([[0.3, 0.1]], [])).value - alone) <= TOL


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([(0, 0)], 2), "different nodes"),
        (([(0, 3)], [2, 2]), "edges must join nodes 0..1"),
        (([(-1, 0)], 2), "edges must join nodes"),
        (([(0, 1), (1, 0)], 2), "distinct"),
        (([(0.5, 1)], 2), "integers"),
        (([(0, 1, 2)], 2), r"shape \(m, 2\)"),
        (([(0, 1)], 0), "n_states"),
        (([(0, 1)], 2, "hinge"), "loss must be one of"),
        (([(0, 1)], 2, np.eye(3)), "column for each state"),
        (([(0, 1)], 2, "zero_one", [1.0, -1.0]), "weights"),
        (([(0, 1)], 2, "zero_one", None, "yes"), "exact"),
        ((grid(40, 40), 4, "zero_one", None, True), "too wide"),
    ],
)
def test_bad_graphs(arguments, words):
    with pytest.raises(ValueError, match=words):
        games.markov(*arguments)


def test_bad_scores():
    game = games.markov([(0, 1)], 2)
    good = np.zeros((2, 2)), np.zeros((1, 2, 2))
    for scores, words in [
        (good[0], "pair"),
        ((np.zeros((2, 3)), good[1]), "node_scores"),
        ((good[0], np.zeros((2, 2, 2))), "edge_scores"),
        ((np.full((2, 2), np.nan), good[1]), "NaN"),
        ((good[0], np.full((1, 2, 2), np.inf)), "inf"),
        ((np.array([[-np.inf, -np.inf], [0, 0]]), good[1]), "node 0"),
        ((good[0], np.full((1, 2, 2), -np.inf)), "no labelling"),
    ]:
        with pytest.raises(ValueError, match=words):
            game.solve(scores)
    with pytest.raises(ValueError, match="smoothing"):
        game.solve(good, smoothing=-1)
    with pytest.raises(ValueError, match="y must hold"):
        game.loss_value(good, [0, 2])
    with pytest.raises(ValueError, match="method"):
        games.markov([(0, 1)], 2, exact=False).maximise(good, method="guess")
    for options, words in (({"method": "guess"}, "method must"), ({"time_limit": 0}, "time_limit must")):
        with pytest.raises(ValueError, match=words):
            games.markov([(0, 1)], 2).maximise(good, **options)
    with pytest.raises(TypeError, match="timelimit"):
        games.markov([(0, 1)], 2).maximise(good, timelimit=1.0)
    for wrong in (0, 1, None, "never"):
        with pytest.raises(ValueError, match="exact must"):
            games.markov([(0, 1)], 2, exact=wrong)
    assert not games.markov([(0, 1)], 2, exact=np.False_).is_exact


def test_too_few_sweeps_warn():
    case = Instance("tree", 1, "zero_one")
    with pytest.warns(ConvergenceWarning, match="gap"):
        stopped(case.game(), (case.f, case.T), 0.05, 1e-12, 1)


def test_wide_graphs_fall_back_on_the_bound():
    assert not games.markov(grid(40, 40), 4).is_exact
    assert games.markov(grid(4, 40), 4).is_exact


def test_a_game_of_many_sizes_keeps_few_solvers():
    game = games.markov([(0, 1)], 3)
    rng = np.random.default_rng(0)
    values = {n: game.solve((np.ones((n, 3)), np.zeros((1, 3, 3)))).value for n in range(2, 40)}
    assert len(game._others) <= 8
    for n in rng.permutation(list(values)):
        assert game.solve((np.ones((n, 3)), np.zeros((1, 3, 3)))).value == values[n]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("exact", [True, False])
@every
@settings(max_examples=3, deadline=None)
@given(seed=seeds, loss=losses, smoothing=st.sampled_from([0.0, 0.5]))
def test_packed_scores_are_pairs_in_rows(name, exact, seed, loss, smoothing):
    cases = [Instance(name, seed, loss), Instance(name, seed, loss, spread=3.0)]
    game = cases[0].game(exact)
    rows = np.array([np.r_[case.f.ravel(), case.T.ravel()] for case in cases])
    many = game.solve(rows, smoothing=smoothing, n_jobs=2)
    again = game.solve(rows, smoothing=smoothing, start=many)
    for i, case in enumerate(cases):
        one = game.solve((case.f, case.T), smoothing=smoothing)
        assert many.value[i] == one.value and many.gap[i] == one.gap and many.entropy[i] == one.entropy
        assert (many.q[i] == np.r_[one.q[0].ravel(), one.q[1].ravel()]).all() and (many.p[i] == one.p).all()
        assert abs(again.value[i] - one.value) <= again.gap[i] + one.gap + 1e-9 * case.size
        y = case.labellings[seed % len(case.labellings)]
        assert game.score((case.f, case.T), y) == game.score(rows, np.array([y, y]))[i]
    assert (game.argmax(rows) == [game.argmax((case.f, case.T)) for case in cases]).all()


@pytest.mark.parametrize("exact", [True, False])
@every
@settings(max_examples=3, deadline=None)
@given(seed=seeds, loss=losses)
def test_both_players_can_do_no_better(name, exact, seed, loss):
    """The contract's two sides, by the polytopes' oracles and the loss as an operator, agree with the certificate."""
    case = Instance(name, seed, loss)
    game, rows = case.game(exact), np.r_[case.f.ravel(), case.T.ravel()][None]
    eq = game.solve(rows)
    assert abs(game.upper(rows, eq.p)[0] - eq.value[0] - eq.gap[0]) <= TOL * case.size
    assert abs(game.lower(rows, eq.q)[0] - eq.value[0]) <= TOL * case.size
    assert abs(game.risk(eq.q)[0] - eq.risk[0]) <= 1e-9 * case.size
