"""Training of tempered games reaches the optimum of a conic solver, by every route, and says how close it is."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.linalg as sl
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from saddle_reference import Part, optimum
from sklearn.exceptions import ConvergenceWarning
from training_problems import LOSSES, data, per_class, shares
from training_problems import solve_tempered as solve

import nashlearn.training.methods.tempered as module
from nashlearn import games
from nashlearn.kernels.dense_rows import Dense
from nashlearn.training import Problem
from nashlearn.training.designs.rows import Cumulative, PerClass, Shared
from nashlearn.training.methods.tempered import Tempered

REFERENCE = 1e-7  # relative accuracy of the conic solver
BOTH = pytest.mark.parametrize("csr", [False, True], ids=["dense", "csr"])


def features(problem) -> np.ndarray:
    """``Phi`` (rows, labels, weights), one weight at a time."""
    X = problem.X.toarray() if sp.issparse(problem.X) else np.asarray(problem.X, dtype=np.float64)
    units = np.eye(problem.n_weights)
    return np.stack([problem.design.scores(X, unit.reshape(problem.shape)) for unit in units], axis=2)


def reference(problem, mu) -> float:
    """The optimum, by a conic programme over the adversary's strategies."""
    Phi, k = features(problem), problem.k
    parts = [
        Part(share, one, [problem.game.costs], np.ones((1, k)), np.ones(1), np.full(k, mu))
        for share, one in zip(problem.omega, Phi, strict=True)
    ]
    return optimum(parts, np.einsum("i,iw->w", problem.omega, Phi[np.arange(len(Phi)), problem.y]), problem.alpha)


def ordinal(X, y, k, alpha, omega=None, constant=1.0) -> Problem:
    omega = shares(0, y.size, False) if omega is None else omega
    return Problem(X, y, omega, alpha, games.absolute(k), Cumulative(k - 1, X.shape[1], constant))


def assert_optimal(trained, best, tol=1e-8):
    """The objective is the optimum, and the certificate holds it."""
    slack = REFERENCE * abs(best) + 1e-9
    assert trained.dual_gap <= tol
    assert abs(trained.objective - best) <= slack
    assert trained.rounds[-1].bound <= best + slack


@BOTH
@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_reaches_the_reference(name, csr):
    game = LOSSES[name](3)
    X, y = data(seed=3, n=24, d=3, k=3, csr=csr)
    for alpha, m, weighted, bias in [(1e-3, 1.0, False, 1.0), (1e-2, 0.03, True, 10.0), (1e-2, 30.0, True, 0.0)]:
        mu = m * game.largest
        problem = per_class(X, y, game, alpha * game.largest, shares(1, y.size, weighted), bias)
        assert_optimal(solve(problem, mu), reference(problem, mu))


@BOTH
@pytest.mark.parametrize("m", [1e-3, 1e-2, 0.1, 10.0, 100.0, 1e3])
def test_every_smoothing_reaches_the_reference(m, csr):
    X, y = data(seed=4, n=24, d=3, k=3, csr=csr)
    for game in (games.zero_one(3), games.cost([[0.0, 4.0, 1.0], [1.0, 0.0, 3.0], [2.0, 1.0, 0.0]])):
        problem = per_class(X, y, game, 1e-2 * game.largest)
        assert_optimal(solve(problem, m * game.largest), reference(problem, m * game.largest))


@pytest.mark.parametrize("csr", [False, True], ids=["dense", "csr"])
def test_single_precision_is_read_as_it_is(csr):
    X, y = data(seed=5, n=40, d=3, k=3, csr=csr)
    single = X.astype(np.float32)
    trained, same = (solve(per_class(A, y, games.zero_one(3), 1e-3), 1.0) for A in (single, single.astype(np.float64)))
    assert trained.objective == pytest.approx(same.objective, rel=1e-12)
    np.testing.assert_allclose(trained.w, same.w, atol=1e-9)


@BOTH
@pytest.mark.parametrize("m", [0.03, 1.0, 10.0])
@pytest.mark.parametrize("k", [2, 3, 5])
def test_cumulative_thresholds_reach_the_reference(k, m, csr):
    X, y = data(seed=k, n=30, d=3, k=k, csr=csr)
    for alpha, constant in [(1e-3, 1.0), (1e-2, 10.0)]:
        problem = ordinal(X, y, k, alpha, shares(2, y.size, True), constant)
        assert_optimal(solve(problem, m), reference(problem, m))


@given(
    seed=st.integers(0, 2**32 - 1),
    name=st.sampled_from(sorted(LOSSES)),
    log_alpha=st.floats(-5, 0),
    log_m=st.floats(-2, 2),
    max_iter=st.integers(0, 30),
)
def test_a_run_that_ends_anywhere_is_honest(seed, name, log_alpha, log_m, max_iter):
    """No bound on the way exceeds what a longer run reaches, and the objective is that of the weights."""
    game = LOSSES[name](3)
    X, y = data(seed=seed, n=30, d=2, k=3)
    mu, problem = 10**log_m * game.largest, per_class(X, y, game, 10**log_alpha * game.largest)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        short, best = solve(problem, mu, max_iter=max_iter), solve(problem, mu, max_iter=1000)
    # An error of rounding is allowed for in gaps, and nowhere else.
    assert short.objective * (1.0 - short.dual_gap) <= best.objective + best.error
    assert best.objective <= short.objective + short.error + best.error
    assert (np.diff([one.objective for one in short.rounds]) <= 1e-14).all()  # the last steps are rounding
    direct = game.loss_value(problem.design.scores(X, short.w), y, smoothing=mu).mean()
    value = direct + 0.5 * problem.alpha * np.square(short.w).sum()
    assert short.objective == pytest.approx(value, rel=1e-9, abs=1e-12)


def test_the_certificate_of_one_evaluation_is_its_gradient():
    """``P - D = |grad P|^2 / (2 alpha)`` but for the gaps of rows, which are rounding."""
    game = games.cost([[0.0, 3.0, 1.0], [1.0, 0.0, 2.0], [4.0, 1.0, 0.0]])
    X, y = data(seed=6, n=50, d=3, k=3)
    problem, w = per_class(X, y, game, 0.1), np.random.default_rng(0).normal(size=12)
    seen = problem.evaluate(w, 2.0)
    primal = 0.05 * w @ w + seen.loss
    dual = seen.entropy - seen.penalty - seen.gradient @ seen.gradient / 0.2
    gradient = 0.1 * w + seen.gradient
    assert primal - dual == pytest.approx(gradient @ gradient / 0.2, rel=1e-10)


@BOTH
@pytest.mark.parametrize("name", LOSSES)
def test_evaluations_are_those_of_the_games(name, csr):
    """In blocks of a few rows, against all rows at once."""
    game, omega = LOSSES[name](4), shares(3, 30, True)
    X, y = data(seed=7, n=30, d=3, k=4, csr=csr)
    problem, mu = per_class(X, y, game, 0.1, omega), 0.3 * game.largest
    problem._step = 7
    w = np.random.default_rng(1).normal(size=problem.n_weights)
    Q, P = np.empty((30, 4)), np.full((30, game.n_options), np.nan)
    seen = problem.tempered(w, mu, Q, P)
    Phi = features(problem)
    scores, Y = Phi @ w, np.eye(4)[y]
    found = game.solve(scores, smoothing=mu)
    assert seen.loss == pytest.approx(omega @ (found.value - (scores * Y).sum(axis=1)), rel=1e-10, abs=1e-12)
    np.testing.assert_allclose(Q, found.q, atol=1e-9)
    slope = np.einsum("i,ikw,ik->w", omega, Phi, found.q - Y)
    np.testing.assert_allclose(seen.gradient, slope, atol=1e-9)
    assert seen.entropy == pytest.approx(omega @ found.risk, rel=1e-9, abs=1e-12)
    assert seen.entropy - seen.penalty == pytest.approx(omega @ found.entropy, rel=1e-9, abs=1e-12)


DESIGNS = {
    "per-class": lambda X, y, game: per_class(X, y, game, 0.1, shares(4, y.size, True), 3.0),
    "cumulative": lambda X, y, game: Problem(
        X, y, shares(4, y.size, True), 0.1, game, Cumulative(game.n_labels - 1, X.shape[1], 3.0)
    ),
}


@BOTH
@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("name", ["zero_one", "zero_one-weighted", "absolute", "squared", "abstain-0.2", "cost-tall"])
def test_hessians_are_derivatives_of_gradients(name, design, csr):
    game = LOSSES[name](4)
    X, y = data(seed=8, n=30, d=3, k=4, csr=csr)
    problem, mu, rng = DESIGNS[design](X, y, game), 0.7 * game.largest, np.random.default_rng(2)
    w, size = rng.normal(size=problem.n_weights), problem.n_weights
    Q, P = np.empty((30, 4)), np.full((30, game.n_options), np.nan)
    problem.tempered(w, mu, Q, P)
    hessian = module.Turns(problem, mu, Q, P, np.arange(30), problem.omega)
    H = np.tril(hessian.matrix()) + np.tril(hessian.matrix(), -1).T
    step = 1e-6
    for v in rng.normal(size=(4, size)):
        change = problem.evaluate(w + step * v, mu).gradient - problem.evaluate(w - step * v, mu).gradient
        np.testing.assert_allclose(H @ v, change / (2 * step), atol=1e-5 * np.abs(H).max())
        np.testing.assert_allclose(hessian.product(v).ravel(), H @ v, atol=1e-12 * np.abs(H).max())


def test_drawn_rows_give_the_hessian_in_the_mean():
    game = games.zero_one(3)
    X, y = data(seed=9, n=200, d=3, k=3)
    problem, w = per_class(X, y, game, 0.1), np.random.default_rng(3).normal(size=12)
    Q, P = np.empty((200, 3)), np.full((200, 3), np.nan)
    problem.tempered(w, 1.0, Q, P)
    rng = np.random.default_rng(4)
    whole, mean = module.Turns(problem, 1.0, Q, P, np.arange(200), problem.omega).matrix(), 0.0
    for _ in range(400):
        rows, share = module.drawn_rows(problem, 60.0, Q, rng)
        assert 20 <= rows.size <= 120
        mean = mean + module.Turns(problem, 1.0, Q, P, rows, share).matrix() / 400
    assert np.abs(mean - whole).max() <= 0.05 * np.abs(whole).max()


ROUTES = {
    "descent": {"_NEWTON_STEPS": 1e9},
    "newton": {"_FIRST": 0, "_WATCHED": 0, "_NEWTON_STEPS": 0},
    "newton, few rows": {"_FIRST": 0, "_WATCHED": 0, "_NEWTON_STEPS": 0, "_SAMPLE": 1},
    "conjugate gradients": {"_FIRST": 0, "_WATCHED": 0, "_NEWTON_STEPS": 0, "DENSE_LIMIT": 0},
    "diagonal": {},
}


@BOTH
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("name", ["zero_one", "absolute", "cost-tall"])
def test_every_route_reaches_the_same_optimum(name, route, csr, monkeypatch):
    game = LOSSES[name](3)
    X, y = data(seed=10, n=400, d=4, k=3, csr=csr)
    problem = per_class(X, y, game, 1e-3)
    best = solve(problem, game.largest, tol=1e-10)
    assert best.dual_gap <= 1e-10
    for constant, value in ROUTES[route].items():
        monkeypatch.setattr(module, constant, value)
    if route == "diagonal":
        monkeypatch.setattr("nashlearn.training.designs.rows._AFFORDABLE", 0.0)
    problem.small = False
    phases = []
    monkeypatch.setattr(Tempered, "_newton", _noted(Tempered._newton, phases))
    other = solve(problem, game.largest, tol=1e-7)
    assert other.dual_gap <= 1e-7
    assert other.objective == pytest.approx(best.objective, rel=2e-7)
    assert bool(phases) == ("newton" in route or "conjugate" in route)


def _noted(function, calls):
    def noted(*arguments):
        calls.append(arguments)
        return function(*arguments)

    return noted


@pytest.mark.parametrize("condition", [1e3, 1e5])
def test_ill_conditioned_features_take_no_more_steps(condition):
    rng = np.random.default_rng(11)
    X, y = data(seed=11, n=2000, d=8, k=3)
    turned, _ = np.linalg.qr(rng.normal(size=(8, 8)))
    skewed = X @ (turned * np.geomspace(1.0, 1.0 / condition, 8))
    trained = solve(per_class(skewed, y, games.zero_one(3), 1e-6), 1.0, tol=1e-4)
    assert trained.dual_gap <= 1e-4
    assert trained.n_iter <= 60


@pytest.mark.parametrize("alpha", [1e-8, 1e-4, 1e3])
@pytest.mark.parametrize("name", ["zero_one", "absolute", "cost-square"])
def test_labels_that_can_be_told_apart(name, alpha):
    game, y = LOSSES[name](3), np.repeat(np.arange(3), 10)
    X = np.eye(3)[y] + 0.01 * np.random.default_rng(12).normal(size=(30, 3))
    trained = solve(per_class(X, y, game, alpha), game.largest, tol=1e-6)
    assert trained.dual_gap <= 1e-6
    assert 0.0 < trained.objective <= game.solve(np.zeros((1, 3)), smoothing=game.largest).value[0]


@pytest.mark.parametrize("constant", [0.0, 2.0])
def test_one_feature_that_says_nothing(constant):
    """Every label has its frequency: the loss is proper."""
    y = np.repeat([0, 1, 2], [10, 20, 30])
    game = games.zero_one(3)
    problem = per_class(np.full((60, 1), constant), y, game, 1e-9)
    trained = solve(problem, 1.0)
    q = game.solve(problem.design.scores(problem.X, trained.w)[:1], smoothing=1.0).q[0]
    np.testing.assert_allclose(q, [1 / 6, 1 / 3, 1 / 2], atol=1e-5)


def test_a_weight_counts_as_repetitions():
    X, y = data(seed=13, n=40, d=3, k=3)
    times = np.random.default_rng(13).integers(0, 4, size=40)
    repeated = np.repeat(np.arange(40), times)
    game = games.cost([[0.0, 2.0, 1.0], [1.0, 0.0, 5.0], [2.0, 1.0, 0.0]])
    one = solve(per_class(X, y, game, 1e-3, times / times.sum()), 5.0)
    other = solve(per_class(X[repeated], y[repeated], game, 1e-3), 5.0)
    assert one.objective == pytest.approx(other.objective, rel=1e-12)
    np.testing.assert_allclose(one.w, other.w, atol=1e-7)


@pytest.mark.parametrize("make", [Cumulative, Shared])
@pytest.mark.parametrize("constant", [1.0, 4.0])
def test_designs_of_thresholds_are_linear_maps(make, constant):
    """Against the matrix of all scores, one weight at a time."""
    rng = np.random.default_rng(19)
    design, X = make(3, 2, constant), rng.normal(size=(6, 2))
    Phi = np.stack([design.scores(X, unit) for unit in np.eye(5)], axis=2)
    labels = Phi.shape[1]
    assert labels == (4 if make is Cumulative else 3)
    single = X @ [1.0, -1.0] + constant * np.array([[0.5], [-1.0], [2.0]])  # of thresholds
    scores = design.scores(X, np.array([1.0, -1.0, 0.5, -1.0, 2.0]))
    expected = np.vstack([np.zeros(6), np.cumsum(single, axis=0)]) if make is Cumulative else single
    np.testing.assert_allclose(scores, expected.T, atol=1e-14)
    residual, G = rng.normal(size=(6, labels)), np.zeros(5)
    design.add_moments(sp.csr_array(X), residual, G)
    np.testing.assert_allclose(G, np.einsum("ik,ikw->w", residual, Phi), atol=1e-13)
    J = rng.normal(size=(6, labels, labels))
    J = J @ J.transpose(0, 2, 1) if make is Cumulative else np.stack([np.diag(one) for one in rng.random((6, labels))])
    H, below = np.zeros((5, 5)), np.tril_indices(labels)
    design.add_curvature(X, np.ascontiguousarray(J[:, below[0], below[1]].T), H)
    expected = np.einsum("ikw,ikl,ilv->wv", Phi, J, Phi)
    np.testing.assert_allclose(np.tril(H), np.tril(expected), atol=1e-12)
    farthest = max(np.square(Phi[0].T @ (a - b)).sum() for a in _labels(make) for b in _labels(make))
    assert design.squared_diameters(np.square(X).sum(axis=1))[0] == pytest.approx(farthest)


def _labels(make):
    return np.eye(4) if make is Cumulative else np.tri(4, 3, -1)


def test_cumulative_weights_are_left_as_they_are():
    w = np.array([1.0, -2.0, 3.0])
    assert Cumulative(2, 1).tidied(w) is w


@pytest.mark.parametrize("sparse", [False, True])
def test_metrics_are_inverse_second_moments(sparse, monkeypatch):
    rng = np.random.default_rng(20)
    X, y = rng.normal(size=(300, 4)) @ rng.normal(size=(4, 4)), rng.integers(0, 3, 300)
    problem = per_class(sp.csr_array(X) if sparse else X, y, games.zero_one(3), 0.1, shares(5, 300, True), 2.0)
    Z = np.hstack([X, np.full((300, 1), 2.0)])
    moments = Z.T @ (Z * problem.omega[:, None])
    np.testing.assert_allclose(problem.design.metric(problem, 0.5), sl.inv(moments + 0.5 * np.eye(5)), rtol=1e-7)
    monkeypatch.setattr("nashlearn.training.designs.rows._AFFORDABLE", 0.0)
    np.testing.assert_allclose(problem.design.metric(problem, 0.5), 1.0 / (np.diag(moments) + 0.5), rtol=1e-7)


@pytest.mark.parametrize("n", [0, 1, 4, 11])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_with_dense_rows(n, dtype):
    rng = np.random.default_rng(21)
    X, W, residual = rng.normal(size=(n, 6)).astype(dtype), rng.normal(size=(5, 7)), rng.normal(size=(n, 5))
    Z = np.hstack([X.astype(np.float64), np.full((n, 1), 3.0)])
    scores, G = np.empty((n, 5)), np.ones((5, 7))
    Dense(X, 3.0).all_scores(W, scores)
    Dense(X, 3.0).add_moments(residual, G)
    np.testing.assert_allclose(scores, Z @ W.T, atol=1e-12)
    np.testing.assert_allclose(G, 1.0 + residual.T @ Z, atol=1e-12)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.6])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_moments_of_residuals_that_are_mostly_zeros(dtype, share):
    """More rows than are read class by class at a time, of which the last are no multiple of four."""
    rng = np.random.default_rng(23)
    X, residual = rng.normal(size=(241, 900)).astype(dtype), rng.normal(size=(241, 3))
    residual[rng.random((241, 3)) >= share] = 0.0
    Z, G = np.hstack([X.astype(np.float64), np.full((241, 1), 3.0)]), np.ones((3, 901))
    Dense(X, 3.0).add_moments(residual, G)
    np.testing.assert_allclose(G, 1.0 + residual.T @ Z, atol=1e-11)
    residual[100, 1] = np.nan
    Dense(X, 3.0).add_moments(residual, G)
    assert np.isnan(G[1]).all()
    assert np.isfinite(G[[0, 2]]).all() or share > 0.5


def test_large_weights_are_multiplied_by_blas_alike(monkeypatch):
    rng = np.random.default_rng(22)
    design, X = PerClass(3, 4, 2.0), rng.normal(size=(9, 4))
    W, residual, found = rng.normal(size=(3, 5)), rng.normal(size=(9, 3)), []
    for cached in (0, 10_000):
        monkeypatch.setattr("nashlearn.training.designs.rows._CACHED", cached)
        G = np.zeros((3, 5))
        design.add_moments(X, residual, G)
        found.append((design.scores(X, W), G))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-13)
    residual[:, :2], G, other = 0.0, np.zeros((3, 5)), np.zeros((3, 5))  # mostly zeros: not by BLAS
    monkeypatch.setattr("nashlearn.training.designs.rows._CACHED", 0)
    monkeypatch.setattr("nashlearn.training.designs.rows._FEW", 0)
    design.add_moments(X, residual, G)
    monkeypatch.setattr("nashlearn.training.designs.rows._SPARSE", 0.0)
    design.add_moments(X, residual, other)
    np.testing.assert_allclose(G, other, atol=1e-13)
