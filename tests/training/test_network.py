"""Training of networks: evaluations against finite differences, optima against conic programmes over all labelings."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from nashlearn import NashTagger, games
from nashlearn.games.networks import stars
from nashlearn.games.networks.batch import Networks
from nashlearn.games.networks.game import compiled_loss
from nashlearn.games.networks.local import EDGE_SHARE, LocalSolver
from nashlearn.solvers.threads import threads
from nashlearn.training.designs.networks import NetworkDesign
from nashlearn.training.designs.nodes import DenseFeatures, SparseFeatures
from nashlearn.training.driver import train
from nashlearn.training.methods.descent import Descent
from nashlearn.training.objective import GameProblem

CYCLE = np.array([(0, 1), (1, 2), (2, 3), (3, 0)])
GRAPHS = [
    (5, np.array([(1, 0), (1, 2), (3, 1), (3, 4)])),
    (1, np.zeros((0, 2), dtype=int)),
    (6, np.array([(0, 1), (1, 2), (2, 3), (5, 4)])),
    (4, CYCLE),
]


class Data:
    """Random labelled networks with ``d`` features."""

    def __init__(self, graphs=GRAPHS, *, k=3, d=3, edge_features=0, loss="zero_one", exact="auto", seed=0, n_jobs=1):
        rng = np.random.default_rng(seed)
        sizes = [n for n, _ in graphs]
        self.k, self.graphs, self.loss = k, graphs, loss
        omega = np.full(len(sizes), 1 / sum(sizes))
        self.networks = Networks(sizes, [e for _, e in graphs], k, loss, exact, weight=omega)
        self.X = rng.normal(size=(sum(sizes), d))
        m = sum(len(e) for _, e in graphs)
        self.XE = rng.normal(size=(m, edge_features)) if edge_features else None
        self.y = rng.integers(0, k, sum(sizes))
        order = self.networks.order
        nodes = DenseFeatures(np.ascontiguousarray(self.X[order]), k)
        moments = np.concatenate([self.phi_nodes(self.X, self.y).ravel(), self.phi_edges(self.y).ravel()])
        self.design = design = NetworkDesign(nodes, self.XE, self.networks, n_jobs)
        how = {"tol": np.inf, "n_jobs": n_jobs, "complete": False, "curvature": design.curvature(omega)}
        self.problem = GameProblem(design, self.networks, moments / sum(sizes), omega, **how)

    def phi_nodes(self, X, y):
        return X.T @ np.eye(self.k)[y]

    def phi_edges(self, y):
        starts = np.cumsum([0, *(n for n, _ in self.graphs)])
        pairs = np.concatenate([e + s for (_, e), s in zip(self.graphs, starts, strict=False)])
        joint = np.einsum("ea,eb->eab", np.eye(self.k)[y[pairs[:, 0]]], np.eye(self.k)[y[pairs[:, 1]]])
        features = np.ones((len(pairs), 1)) if self.XE is None else self.XE
        return np.einsum("ef,eab->fab", features, joint)

    def value(self, w, smoothing):
        """The mean loss, by the games' own solvers, example by example."""
        split = self.design.nodes.n_weights
        S = self.X @ w[:split].reshape(-1, self.k)
        E = w[split:].reshape(-1, self.k, self.k)
        total, at, edge = 0.0, 0, 0
        for n, edges in self.graphs:
            own = np.ones((len(edges), 1)) if self.XE is None else self.XE[edge : edge + len(edges)]
            scores = S[at : at + n], np.einsum("ef,fab->eab", own, E)
            game = games.markov(edges, np.full(n, self.k), self.loss)
            total += float(game.solve(scores, smoothing=smoothing, tol=1e-8).value) - game.score(
                scores, self.y[at : at + n]
            )
            at, edge = at + n, edge + len(edges)
        return total / len(self.y)


@pytest.mark.parametrize("loss", ["zero_one", "absolute"])
@pytest.mark.parametrize("edge_features", [0, 2])
def test_evaluation(loss, edge_features):
    data = Data(loss=loss, edge_features=edge_features)
    w = 0.5 * np.random.default_rng(1).normal(size=data.problem.n_weights)
    for _ in range(500):
        seen = data.problem.evaluate(w, 0.5)
    assert abs(seen.loss - data.value(w, 0.5)) <= 1e-6
    # At an equilibrium the plane touches the loss.
    assert abs(seen.loss - (w @ seen.gradient + seen.entropy - seen.penalty)) <= 1e-5
    assert seen.penalty <= 0 <= seen.entropy
    step, h = np.random.default_rng(2).normal(size=w.size), 1e-3
    slope = (data.value(w + h * step, 0.5) - data.value(w - h * step, 0.5)) / (2 * h)
    assert abs(slope - step @ seen.gradient) <= 1e-3


def test_planes_bound_the_loss_from_below_at_any_reply():
    data = Data(seed=3)
    rng = np.random.default_rng(0)
    for _ in range(5):
        w, other = rng.normal(size=(2, data.problem.n_weights))
        seen = data.problem.evaluate(w, 0.3)
        assert data.value(other, 0.3) >= other @ seen.gradient + seen.entropy - seen.penalty - 1e-6
        assert data.value(w, 0.3) <= seen.loss + 1e-6
        cold = data.problem.evaluate(w, 0.0)
        assert data.value(other, 0.0) >= other @ cold.gradient + cold.entropy - 1e-6
        assert data.value(w, 0.0) <= cold.loss + 1e-6


@pytest.mark.parametrize("edge_features", [0, 2])
def test_threads_change_nothing(edge_features):
    graphs = GRAPHS[:3] * 300 + GRAPHS[3:] * 3
    rng = np.random.default_rng(0)
    one, two = (Data(graphs, edge_features=edge_features, n_jobs=jobs).problem for jobs in (1, 2))
    w = rng.normal(size=one.n_weights)
    for _ in range(2):
        a, b = one.evaluate(w, 0.5), two.evaluate(w, 0.5)
        assert a.loss == b.loss and a.entropy == b.entropy and (a.gradient == b.gradient).all()


@pytest.mark.parametrize("edge_features", [0, 2])
def test_scores_out_of_the_range_of_probabilities(edge_features):
    """Weights so large that exponentials of scores underflow: the log domain takes over, component by component."""
    data = Data(edge_features=edge_features)
    w = 3e3 * np.random.default_rng(1).normal(size=data.problem.n_weights)
    for _ in range(3):
        seen = data.problem.evaluate(w, 0.5)
    assert abs(seen.loss - data.value(w, 0.5)) <= 1e-6 * abs(seen.loss)
    assert abs(seen.loss - (w @ seen.gradient + seen.entropy - seen.penalty)) <= 1e-6 * abs(seen.loss)


@pytest.mark.parametrize(("d", "k", "dense_share"), [(9, 4, 0.3), (60, 13, 0.05)], ids=["wide", "narrow"])
def test_sparse_features_are_dense_ones_in_less_room(d, k, dense_share):
    """Features have weights for most labels, or for a few that are looked up, some of them for none."""
    rng = np.random.default_rng(0)
    X = rng.random((60, d)) * (rng.random((60, d)) < dense_share)
    y = rng.integers(0, k, 60)
    dense, csr = DenseFeatures(X, k), sparse.csr_matrix(X)
    every = SparseFeatures(csr, k, *SparseFeatures.all_pairs(d, k))
    some = SparseFeatures(csr, k, *SparseFeatures.seen_pairs(csr, y, k))
    w, q = rng.normal(size=dense.n_weights), rng.random((60, k))
    kept = (X.T @ np.eye(k)[y] > 0).ravel()
    share = rng.random(60)
    squares = np.repeat(share @ X**2, k)
    assert some.n_weights == kept.sum() < dense.n_weights
    for features, v in ((dense, w), (every, w), (some, w[kept])):
        S, g = np.empty((60, k)), np.empty(features.n_weights)
        features.scores(v, S, threads(2))
        features.gradient(q, g, threads(2))
        expected = X @ (np.where(kept, w, 0) if features is some else w).reshape(d, k)
        assert np.abs(S - expected).max() <= 1e-12
        assert np.allclose(features.squares(share), squares[kept] if features is some else squares, rtol=1e-12)
        whole = (X.T @ q).ravel()
        assert np.abs(g - (whole[kept] if features is some else whole)).max() <= 1e-12


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 11, 22])
def test_weighted_chains_are_the_games_of_each(k, shared):
    """Any number of labels, whether or not it fills the lanes of a processor, and chains of one node."""
    rng, sizes = np.random.default_rng(k), [1, 7, 2, 11]
    counts, m = rng.uniform(0.5, 2.0, sum(sizes)), sum(sizes) - len(sizes)
    S, T = 2.0 * rng.normal(size=(sum(sizes), k)), 2.0 * rng.normal(size=(1 if shared else m, k, k))
    networks = Networks(sizes, None, k, "zero_one", True, counts)
    found, pairs = networks.solve((S, T), smoothing=0.5, tol=1e-10), np.zeros((k, k))
    for i, n in enumerate(sizes):
        rows = networks.rows_of(i)
        game = games.markov(networks.edges_of(i), np.full(n, k), weights=counts[rows])
        own = game.solve((S[rows], networks.edge_tables(T, i)), smoothing=0.5, tol=1e-10)
        for mine, its in ((found.value[i], own.value), (found.entropy[i], own.entropy), (found.risk[i], own.risk)):
            assert abs(mine - its) <= 1e-7
        assert np.abs(found.q[0][rows] - own.q[0]).max() <= 1e-4
        if shared:
            pairs += own.q[1].sum(axis=0)
        else:
            assert np.abs(found.q[1][networks.between(i)] - own.q[1]).max(initial=0.0) <= 1e-4
    assert not shared or np.abs(found.q[1][0] - pairs).max() <= 1e-3


def optimum(data: Data, alpha: float) -> float:
    """``min_w alpha/2 |w|^2 + mean F - <Phi w, y>`` by a conic solver, over all labellings of each example."""
    import clarabel

    split = data.design.nodes.n_weights
    d = data.problem.n_weights
    n, k, N = [n for n, _ in data.graphs], data.k, len(data.y)
    # Variables: w, t_i, and replies p_v. For each labelling: t_i >= <w, phi(labelling)> + sum_v (L' p_v)(y_v).
    first_p = d + len(n)
    size = first_p + N * k
    rows, rhs = [], []
    L = 1 - np.eye(k)
    at = edge = 0
    for i, (m, edges) in enumerate(data.graphs):
        for labels in product(range(k), repeat=m):
            y = np.array(labels)
            row = np.zeros(size)
            row[:split] = data.phi_nodes(data.X[at : at + m], y).ravel()
            features = np.ones((len(edges), 1)) if data.XE is None else data.XE[edge : edge + len(edges)]
            joint = np.einsum("ea,eb->eab", np.eye(k)[y[edges[:, 0]]], np.eye(k)[y[edges[:, 1]]])
            row[split:d] = np.einsum("ef,eab->fab", features, joint).ravel()
            for v in range(m):
                row[first_p + (at + v) * k : first_p + (at + v + 1) * k] = L[:, y[v]]
            row[d + i] = -1
            rows.append(row)
            rhs.append(0.0)
        at, edge = at + m, edge + len(edges)
    simplex = np.zeros((N, size))
    for v in range(N):
        simplex[v, first_p + v * k : first_p + (v + 1) * k] = 1
    positive = np.hstack([np.zeros((N * k, first_p)), -np.eye(N * k)])
    A = sparse.csc_matrix(np.vstack([simplex, rows, positive]))
    b = np.concatenate([np.ones(N), rhs, np.zeros(N * k)])
    P = sparse.diags(np.r_[np.full(d, alpha), np.zeros(size - d)]).tocsc()
    c = np.zeros(size)
    c[:d] = -data.problem.moments
    c[d:first_p] = 1 / N
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_rel = settings.tol_gap_abs = 1e-10
    cones = [clarabel.ZeroConeT(N), clarabel.NonnegativeConeT(A.shape[0] - N)]
    return clarabel.DefaultSolver(P, c, A, b, cones, settings).solve().obj_val


@pytest.mark.parametrize("graph", ["chain", "cycle"])
def test_annealing_reaches_the_optimum(graph):
    edges = CYCLE if graph == "cycle" else CYCLE[:3]
    data = Data([(4, edges)] * 4, k=2, d=2, seed=1)
    best = optimum(data, 0.05)
    schedule = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
    found = train(data.problem, Descent(schedule), alpha=0.05, tol=0.02, max_iter=2000)
    assert found.dual_gap <= 0.02
    assert best - 1e-7 <= found.objective <= best * 1.02 + 1e-9


def test_smoothed_training_is_certified():
    data = Data(seed=2)
    found = train(data.problem, Descent((0.5,), 0.5), alpha=0.05, tol=1e-4, max_iter=500)
    assert found.dual_gap <= 1e-4
    exact = data.value(found.w, 0.5) + 0.025 * found.w @ found.w
    assert abs(found.objective - exact) <= 1e-4 * exact


@pytest.mark.parametrize("seed", range(4))
def test_pairs_keep_their_mass_where_probabilities_underflow(seed):
    chains = [(30, np.column_stack([np.arange(29), np.arange(1, 30)]))] * 4
    data = Data(chains, k=5, seed=seed)
    w = 8.0 * np.random.default_rng(seed).normal(size=data.problem.n_weights)
    split = data.design.nodes.n_weights
    pairs = data.problem.evaluate(w, 0.05).gradient[split:] + data.phi_edges(data.y).ravel() / len(data.y)
    assert (pairs >= 0.0).all()
    assert pairs.sum() == pytest.approx(4 * 29 / 120, rel=1e-9)


@pytest.mark.parametrize("smoothing", [0.5, 0.05, 0.01])
@pytest.mark.parametrize("alpha", [1e-2, 1e-3])
def test_no_bound_exceeds_the_objective_where_graphs_are_relaxed(alpha, smoothing):
    K4 = np.array([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3)])
    data = Data([(4, K4)] * 6, d=2, exact=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = train(data.problem, Descent((smoothing,), smoothing), alpha=alpha, tol=1e-6, max_iter=150)
    assert all(now.bound <= now.objective * (1 + 1e-9) for now in found.rounds)
    assert found.dual_gap < 0.2


def test_the_drift_makes_the_gradient_that_of_a_relaxed_bound():
    # With multipliers far from their optimum the bound is attained by beliefs that do not agree.
    solver = LocalSolver(
        CYCLE, np.full(4, 3), compiled_loss("zero_one", np.full(4, 3), np.ones(4)), [1 - np.eye(3)] * 4
    )
    rng = np.random.default_rng(0)
    f, T, df, dT = (rng.normal(scale=3.0, size=s) for s in ((4, 3), (4, 3, 3)) * 2)
    eps, state, step = 0.5, solver.start(), 1e-6
    found = solver.improve(f, T, eps, state, rounds=1)
    (nodes, pairs), own = found.q, found.reply[1]
    assert np.abs(own - pairs).max() > 1e-3
    assert np.allclose(pairs.sum(axis=2), nodes[CYCLE[:, 0]])
    there, back = (
        float(
            stars.bound(solver.loss, solver.graph, f + s * df, stars.heated(T + s * dT, EDGE_SHARE * eps), eps, *state)
        )
        for s in (step, -step)
    )
    assert (there - back) / (2 * step) == pytest.approx((df * nodes).sum() + (dT * own).sum(), abs=1e-6)


@pytest.mark.parametrize("edge_features", [0, 2])
def test_relaxed_grids_are_trained_to_a_small_gap(edge_features):
    cells = np.arange(36).reshape(6, 6)
    ends = [(cells[:, :-1], cells[:, 1:]), (cells[:-1], cells[1:])]
    grid = np.vstack([np.column_stack([u.ravel(), v.ravel()]) for u, v in ends])
    data = Data([(36, grid)] * 8, k=2, edge_features=edge_features, exact=False)
    found = train(data.problem, Descent((0.1,), 0.1), alpha=1e-3, tol=1e-2, max_iter=200)
    assert found.dual_gap <= 1e-2


@pytest.mark.parametrize("edge_features", [0, 2])
def test_the_guess_of_the_curvature_is_that_of_independent_nodes(edge_features):
    data = Data(loss=np.zeros((3, 3)), edge_features=edge_features)
    guess, split = data.problem.curvature, data.design.nodes.n_weights
    assert guess.shape == (data.problem.n_weights,)
    assert (guess > 0).all()
    step = 1e-4
    for j in range(split):
        w = np.zeros(data.problem.n_weights)
        w[j] = step
        there, back = (data.problem.evaluate(v, 0.5).gradient[j] for v in (w, -w))
        assert (there - back) / (2 * step) == pytest.approx(guess[j], rel=1e-5)


def test_weights_of_very_different_features_are_trained_together():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(8, 3)) * [1.0, 0.1, 0.01] for _ in range(30)]
    y = [(x @ [1.0, 10.0, 100.0] > 0).astype(int) for x in X]
    model = NashTagger(alpha=1e-5, smoothing=0.1, tol=1e-2, max_iter=30).fit(X, y)
    assert model.dual_gap_ <= 1e-2


@pytest.mark.parametrize("scale", [1e-140, 1e-3, 1e3, 1e140])
def test_features_of_any_size_are_trained_without_a_warning_of_numbers(scale):
    rng = np.random.default_rng(0)
    X = [scale * rng.normal(size=(6, 2)) for _ in range(10)]
    y = [(x[:, 0] > 0).astype(int) for x in X]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = NashTagger(alpha=1e-2, max_iter=20).fit(X, y)
    assert np.isfinite(model.objective_)
    assert np.isfinite(model.coef_).all()
