"""Training with ``alpha |w|_1``: optima against conic and linear programmes, certificates fed with any weights."""

from __future__ import annotations

from fractions import Fraction

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

from nashlearn.games.rows.thresholds import ThresholdGame
from nashlearn.kernels.lasso import stored_step, thin_step
from nashlearn.training import Problem, train
from nashlearn.training.designs.rows import Cumulative, PerClass, Shared
from nashlearn.training.methods.box import BoxPlanes
from nashlearn.training.methods.descent import Curvature
from nashlearn.training.methods.lasso import lasso_step
from nashlearn.training.methods.sparse import promise, thin_model
from nashlearn.training.methods.sparse_rows import SparseRows
from nashlearn.training.penalties import ABSOLUTE, SQUARED
from tests.training.test_rounding import drawn, exact, margin_loss
from tests.training.training_problems import LOSSES, data, shares, thresholded

N, D, K, BIAS = 40, 5, 3, 2.0


def posed(name: str, alpha: float = 0.02, csr: bool = False, weighted: bool = True) -> Problem:
    X, y = data(1, N, D, K, csr)
    game = LOSSES[name](K)
    return Problem(X, y, shares(1, N, weighted), alpha, game, PerClass(K, D, BIAS))


def trained(problem: Problem, mu: float, **more):
    rng = np.random.default_rng(0)
    given = {"tol": 1e-6, "max_iter": 3000, **more}
    return train(problem, SparseRows(mu, problem.game.scale), alpha=problem.alpha, random_state=rng, **given)


def rows_of(problem: Problem) -> np.ndarray:
    """Scores (n k) of all rows as a matrix times the flat weights."""
    X = problem.X.toarray() if sp.issparse(problem.X) else problem.X
    return np.stack([problem.design.scores(X, e.reshape(problem.shape)).ravel() for e in np.eye(problem.n_weights)], 1)


def conic_optimum(problem: Problem, mu: float) -> float:
    """``min alpha |w|_1 + mean loss``: ``t_i`` is at least every reward, or ``mu log sum exp`` of them."""
    n, k, m, size = problem.n, problem.k, problem.n_options, problem.n_weights
    L, Phi = np.asarray(problem.game.costs, float), rows_of(problem)
    # Variables: w+, w-, p (n m), t (n), and e (n k) for the exponential cones.
    P0, T0, E0 = 2 * size, 2 * size + n * m, 2 * size + n * m + n
    total = E0 + (n * k if mu else 0)
    cost = np.zeros(total)
    agreed = (problem.omega[:, None] * problem.truth()).ravel() @ Phi
    cost[:size], cost[size:P0] = problem.alpha - agreed, problem.alpha + agreed
    cost[T0 : T0 + n] = problem.omega
    reward = np.zeros((n * k, total))  # theta + L'p - t
    reward[:, :size], reward[:, size:P0] = Phi, -Phi
    for i in range(n):
        reward[i * k : (i + 1) * k, P0 + i * m : P0 + (i + 1) * m] = L.T
        reward[i * k : (i + 1) * k, T0 + i] = -1.0
    simplex = np.zeros((n, total))
    for i in range(n):
        simplex[i, P0 + i * m : P0 + (i + 1) * m] = 1.0
    if not mu:
        bounds = [(0, None)] * T0 + [(None, None)] * n
        return linprog(cost, reward, np.zeros(n * k), simplex, np.ones(n), bounds, method="highs").fun
    sums = np.zeros((n, total))
    for i in range(n):
        sums[i, E0 + i * k : E0 + (i + 1) * k] = 1.0
    blocks = [simplex, -np.eye(total)[:T0], sums]
    right = [np.ones(n), np.zeros(T0), np.ones(n)]
    for row in range(n * k):  # exp(reward / mu) <= e
        one = np.zeros((3, total))
        one[0], one[2, E0 + row] = -reward[row] / mu, -1.0
        blocks.append(one)
        right.append(np.array([0.0, 1.0, 0.0]))
    cones = [clarabel.ZeroConeT(n), clarabel.NonnegativeConeT(T0), clarabel.NonnegativeConeT(n)]
    cones += [clarabel.ExponentialConeT()] * (n * k)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    A = sp.csc_matrix(np.vstack(blocks))
    found = clarabel.DefaultSolver(
        sp.csc_matrix((total, total)), cost, A, np.concatenate(right), cones, settings
    ).solve()  # fmt: skip
    assert str(found.status) == "Solved"
    return found.obj_val


@pytest.mark.parametrize("mu", [0.0, 0.3])
@pytest.mark.parametrize("name", ["zero_one", "absolute", "abstain-0.2", "cost-tall", "cost-square"])
def test_optimum_of_a_conic_solver(name, mu):
    problem = posed(name, csr=name == "absolute")
    found = trained(problem, mu)
    assert found.dual_gap <= 1e-6
    assert found.objective == pytest.approx(conic_optimum(problem, mu), rel=2e-6)
    again = problem.alpha * np.abs(found.w).sum() + problem.evaluate(found.w.ravel(), mu).loss
    assert found.objective == pytest.approx(again, rel=1e-12)
    assert 0 < np.count_nonzero(found.w) < found.w.size


def test_grades_share_their_optimum_with_a_linear_programme():
    X, y = data(3, N, D, 4)
    exact = trained(thresholded(X, y, 4, 0.02), 0.0)
    assert exact.dual_gap <= 1e-6
    cumulative = Problem(X, y, shares(0, N, False), 0.02, LOSSES["absolute"](4), Cumulative(3, D))
    assert exact.objective == pytest.approx(conic_optimum(cumulative, 0.0), rel=2e-6)
    assert (np.diff(exact.w[D:]) <= 0).all()
    assert isinstance(thresholded(X, y, 4, 0.02).game, ThresholdGame) and exact.w.shape == Shared(3, D).shape


@pytest.mark.parametrize("mu", [0.0, 0.5])
def test_zero_weights_above_the_largest_useful_alpha(mu):
    problem = posed("zero_one")
    most = np.abs(problem.evaluate(np.zeros(problem.n_weights), mu or 1e-3).gradient).max()
    above = trained(posed("zero_one", 1.0001 * most), mu)
    assert not above.w.any()
    assert above.dual_gap <= 1e-6
    if mu:
        assert above.objective == pytest.approx(problem.evaluate(np.zeros(problem.n_weights), mu).loss, rel=1e-14)
        assert trained(posed("zero_one", 0.99 * most), mu).w.any()


@pytest.mark.parametrize("mu", [0.0, 0.3])
@pytest.mark.parametrize("scale", [0.0, 0.1, 1.0, 10.0])
def test_bounds_from_any_weights_never_exceed_the_optimum(mu, scale):
    problem = posed("cost-tall")
    optimum = conic_optimum(problem, mu)
    rng = np.random.default_rng(3)
    truth = float(problem.omega @ problem.game.risk(problem.truth()))
    planes = BoxPlanes.none(problem.n_weights, truth)
    for _ in range(12):
        w = scale * rng.normal(size=problem.n_weights)
        seen = problem.evaluate(w, mu)
        planes.add(seen.gradient, seen.entropy, seen.penalty / mu if mu else np.inf)
        bound = planes.bound(problem.alpha, mu)
        assert truth - 1e-9 <= bound <= optimum + 1e-7
        assert problem.alpha * np.abs(w).sum() + seen.loss >= optimum - 1e-7


def test_gap_of_an_unfinished_run_is_no_less_than_the_true_one():
    problem, mu = posed("zero_one", 1e-3), 0.5
    best = trained(problem, mu).objective
    for steps in (1, 3, 6):
        with pytest.warns(match="duality gap"):
            found = trained(problem, mu, max_iter=steps)
        assert found.dual_gap >= (found.objective - best) / found.objective - 1e-12


def l1_objective(v, penalised, x, y, omega, alpha):
    """``alpha |w|_1`` and the zero-one game of two labels, exactly, for weights of difference ``v``."""
    losses = (o * margin_loss(v * a if label else -v * a) for a, label, o in zip(x, y, omega, strict=True))
    return alpha * penalised + sum(losses)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("seed", range(6))
def test_gap_is_no_less_than_in_exact_arithmetic(seed, scale):
    """One feature, two labels, alpha down to 1e-13: rounding may be most of the gap, and must be in it."""
    x, y, omega, alpha = drawn(seed)
    x, alpha = x * scale, alpha * scale
    problem = Problem(x[:, None], y, omega, alpha, LOSSES["zero_one"](2), PerClass(2, 1, 0.0))
    found = trained(problem, 0.0, tol=1e-9, max_iter=400)
    X, shares_, (a,) = exact(x), exact(omega), exact(alpha)
    kinks = {s / each for each in X for s in (1, -1)} | {Fraction(0)}  # linear in between
    optimum = min(l1_objective(v, abs(v), X, y, shares_, a) for v in kinks)
    w = exact(found.w[:, 0])
    ours = l1_objective(w[1] - w[0], abs(w[0]) + abs(w[1]), X, y, shares_, a)
    assert Fraction(found.dual_gap) >= (ours - optimum) / ours


@pytest.mark.parametrize("offset", [0.0, 1e8])
@pytest.mark.parametrize("mu", [1e-9, 0.5])
def test_moments_are_as_wrong_as_is_said(offset, mu):
    """Those of the labels that were computed, in exact arithmetic; features of size 1e8 all but cancel."""
    X, y = data(2, 15, 2, K)
    problem = Problem(X + offset, y, shares(2, 15, True), 0.02, LOSSES["zero_one"](K), PerClass(K, 2, 1.0))
    Q, Y = np.empty((15, K)), problem.truth()
    w = np.random.default_rng(0).normal(size=problem.n_weights) / (1.0 + offset)
    computed = problem.tempered(w, mu, Q).gradient.reshape(problem.shape)
    for c, j in np.ndindex(K, 2):
        terms = zip(problem.omega, Q[:, c], Y[:, c], problem.X[:, j], strict=True)
        true = sum(Fraction(o) * (Fraction(q) - Fraction(label)) * Fraction(x) for o, q, label, x in terms)
        assert abs(Fraction(computed[c, j]) - true) <= problem.moment_error


@pytest.mark.parametrize("mu", [0.0, 0.3])
@pytest.mark.parametrize(("of_moments", "of_offsets"), [(1e-4, 0.0), (1.0, 0.0), (0.0, 1e-6), (0.0, 0.1), (1e-2, 1e-2)])
def test_planes_as_wrong_as_rounding_may_make_them_prove_no_more(mu, of_moments, of_offsets):
    """Slopes and offsets are changed, by what is called their error, to make the bound as large as can be."""
    problem, rng = posed("zero_one"), np.random.default_rng(0)
    optimum, w, best = conic_optimum(problem, mu), trained(problem, mu).w.ravel(), -np.inf
    for _ in range(20):
        wrong = BoxPlanes.none(problem.n_weights, moment_error=of_moments * problem.alpha)
        seen = problem.evaluate(w * rng.uniform(0.9, 1.0), mu or 1e-4)  # drawn to 0, where entropies are larger
        nearer = np.sign(seen.gradient) * np.minimum(np.abs(seen.gradient), wrong.moment_error)
        wrong.add(seen.gradient - nearer, seen.entropy + of_offsets, seen.penalty / (mu or 1e-4), of_offsets)
        assert wrong.sure(problem.alpha, mu) <= optimum + 1e-8
        best = max(best, wrong.bound(problem.alpha, mu))
    assert not mu or best > optimum + 1e-6 or max(of_moments, of_offsets) < 1e-3  # what was computed proves too much


def test_the_promise_of_a_step_survives_cancellation():
    rng = np.random.default_rng(0)
    w = np.array([1.0, -2.0, 0.0, 0.0, 3.0, 1e-9, -1.0])
    alpha = 0.3
    gradient = -alpha * np.sign(w) + 1e-9 * rng.normal(size=w.size)
    d = np.array([1e-9, 1e-9, 1e-9, 0.0, -1e-9, -2e-9, 1.0])  # kept, kept, from 0, still, kept, changed, to 0

    def true(own):
        parts = zip(*map(exact, (gradient[own], w[own], d[own])), strict=True)
        return float(sum(g * step + Fraction(alpha) * (abs(at + step) - abs(at)) for g, at, step in parts))

    for own in ([0], [1], [4], [0, 1, 4, 6], [2, 3], [5], np.arange(7)):
        assert promise(gradient[own], w[own], alpha, d[own]) == pytest.approx(true(own), rel=1e-12, abs=0.0)


def test_l1_optimum_has_moments_in_the_box():
    problem, mu = posed("absolute"), 0.5
    found = trained(problem, mu)
    G, w = problem.evaluate(found.w.ravel(), mu).gradient, found.w.ravel()
    assert np.abs(G).max() <= problem.alpha * (1 + 1e-5)
    np.testing.assert_allclose(G[w != 0], -problem.alpha * np.sign(w[w != 0]), rtol=1e-5)


def lasso_violation(B, g, w, alpha, d):
    x, slope = w + d, g + B @ d
    return np.where(x != 0, np.abs(slope + alpha * np.sign(x)), np.maximum(np.abs(slope) - alpha, 0.0)).max()


@pytest.mark.parametrize("seed", range(4))
def test_steps_of_models_satisfy_their_optimality_conditions(seed):
    rng = np.random.default_rng(seed)
    m = 30
    A = rng.normal(size=(m, 8)) @ rng.normal(size=(8, m)) + 0.05 * rng.normal(size=(m, m))  # correlated
    B = A @ A.T / m + 1e-4 * np.eye(m)
    g = B @ rng.normal(size=m)
    w = rng.normal(size=m) * (rng.random(m) < 0.5)
    assert lasso_violation(B, g, w, 0.3, lasso_step(B, g, w, 0.3, 1e-8)) <= 1e-7
    d = np.zeros(m)
    stored_step(np.eye(m), g, w, 0.3, d, 1e-12, 5)
    assert lasso_violation(np.eye(m), g, w, 0.3, d) <= 1e-12
    curvature = Curvature(1.0 + rng.random(m))
    for _ in range(5):
        step = rng.normal(size=m)
        curvature.add(step, B @ step)
    a, V, U = thin_model(curvature, np.arange(m))
    thin = np.diag(a) - V @ U.T
    np.testing.assert_allclose(thin @ curvature.steps[-1], curvature.changes[-1], rtol=1e-8)  # the secant equation
    np.testing.assert_allclose(thin @ -curvature.direction(g), g, rtol=1e-7, atol=1e-9)  # the inverse of L-BFGS
    d = np.zeros(m)
    thin_step(a, V, U, g, w, 0.3, d, 1e-10, 5000)
    assert lasso_violation(thin, g, w, 0.3, d) <= 1e-9


@pytest.mark.parametrize("penalty", [ABSOLUTE, SQUARED])
def test_units_of_penalties(penalty):
    w = np.array([1.0, -2.0, 0.0])
    assert penalty.value(0.3, w) == pytest.approx(penalty.of_norm(0.3, penalty.norm(w)))
    inside = penalty.inside(0.3, 5.0)
    assert penalty.value(inside, 5.0 * w) == pytest.approx(5.0 * penalty.value(0.3, w))
