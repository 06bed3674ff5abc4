"""Kernel models of tempered games: the optimum of a conic solver in explicit features, and honest certificates."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from saddle_reference import Part, optimum
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel
from training_problems import LOSSES, data, shares

import nashlearn.training.designs.gram as gram_module
import nashlearn.training.methods.tempered_span as module
from nashlearn import games
from nashlearn.games.rows.thresholds import ThresholdGame
from nashlearn.kernels.tempered import turn_directions, turn_rows
from nashlearn.training import Problem, train
from nashlearn.training.checkpoint import Checkpoint
from nashlearn.training.designs.gram import Gram, Kernel
from nashlearn.training.designs.rows import Cumulative, PerClass, Shared
from nashlearn.training.designs.span import KernelProblem, SpanCumulative, SpanPerClass, SpanShared
from nashlearn.training.methods.climb import Climb
from nashlearn.training.methods.linear import Linear
from nashlearn.training.methods.span_newton import Tempered as Objective
from nashlearn.training.methods.span_newton import drawing_chances
from nashlearn.training.methods.tempered import Tempered
from nashlearn.training.methods.tempered_span import TemperedSpan

REFERENCE = 1e-7  # relative accuracy of the conic solver
WIDTH = 0.4
KERNELS = {
    "rbf": (("rbf", WIDTH, 3, 0.0), lambda A, B: rbf_kernel(A, B, gamma=WIDTH)),
    "poly": (("poly", WIDTH, 2, 1.0), lambda A, B: polynomial_kernel(A, B, degree=2, gamma=WIDTH, coef0=1.0)),
    "linear": ((linear_kernel, 1.0, 3, 0.0), linear_kernel),
}


def posed(X, y, game, span, alpha, omega=None, kernel="linear", bias=0.0, cache=800.0) -> KernelProblem:
    omega = shares(0, y.size, False) if omega is None else omega
    return KernelProblem(Gram(Kernel(*KERNELS[kernel][0], X), X, bias, cache), y, omega, alpha, game, span)


def solve(problem, mu, tol=1e-9, max_iter=300, **options):
    method = TemperedSpan(mu) if mu else Climb()
    return train(problem, method, tol=tol, max_iter=max_iter, random_state=np.random.default_rng(0), **options)


def features(K) -> np.ndarray:
    """Rows whose inner products are ``K``."""
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def per_class(K, k) -> np.ndarray:
    """``Phi`` (rows, labels, weights) of a function for each of ``k`` classes."""
    return np.stack([np.kron(np.eye(k), row) for row in features(K)])


def cumulative(K, k, constant) -> np.ndarray:
    """``Phi`` of one function with offsets: label ``j`` has passed ``j`` thresholds."""
    passed = np.tril(np.ones((k, k - 1)), -1)
    return np.stack([np.hstack([np.outer(np.arange(k), row), constant * passed]) for row in features(K)])


def reference(Phi, problem, mu) -> float:
    k = problem.game.n_labels
    parts = [
        Part(share, one, [problem.game.costs], np.ones((1, k)), np.ones(1), np.full(k, mu))
        for share, one in zip(problem.omega, Phi, strict=True)
    ]
    return optimum(parts, np.einsum("i,iw->w", problem.omega, Phi[np.arange(len(Phi)), problem.y]), problem.alpha)


def assert_optimal(trained, best, tol=1e-8):
    """The objective is the optimum, and the certificate holds it."""
    slack = REFERENCE * abs(best) + 1e-9
    assert trained.dual_gap <= tol
    assert abs(trained.objective - best) <= slack
    assert trained.rounds[-1].bound <= best + slack


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_reaches_the_reference(name, kernel):
    game = LOSSES[name](3)
    X, y = data(seed=3, n=24, d=3, k=3)
    for alpha, m, weighted, bias in [(1e-3, 1.0, False, 1.0), (1e-2, 0.1, True, 100.0), (1e-2, 30.0, True, 0.0)]:
        omega, mu = shares(1, y.size, weighted), m * game.largest
        problem = posed(X, y, game, SpanPerClass(3), alpha * game.largest, omega, kernel, bias)
        best = reference(per_class(KERNELS[kernel][1](X, X) + bias, 3), problem, mu)
        assert_optimal(solve(problem, mu), best)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize("k", [2, 3, 5])
def test_cumulative_thresholds_reach_the_reference(k, kernel):
    X, y = data(seed=k, n=24, d=3, k=k)
    for alpha, m, constant in [(1e-3, 3.0, 1.0), (1e-2, 0.1, 10.0)]:
        problem = posed(X, y, games.absolute(k), SpanCumulative(k, constant), alpha, shares(2, y.size, True), kernel)
        best = reference(cumulative(KERNELS[kernel][1](X, X), k, constant), problem, m)
        trained = solve(problem, m)
        assert_optimal(trained, best)
        span = problem.span  # the function and the thresholds that a model keeps give the scores of training
        above = KERNELS[kernel][1](X, X) @ span.reduce(trained.w) + span.offsets(trained.w)
        scores = np.column_stack([np.zeros(y.size), np.cumsum(above, axis=1)])
        np.testing.assert_allclose(problem.scores(trained.w), scores, atol=1e-9)


def test_a_matrix_of_kernel_values_is_as_good_as_the_kernel():
    X, y = data(seed=5, n=40, d=3, k=3)
    named = solve(posed(X, y, games.zero_one(3), SpanPerClass(3), 1e-3, kernel="rbf"), 1.0)
    K = rbf_kernel(X, gamma=WIDTH)
    gram = Gram(Kernel("precomputed", 1.0, 3, 0.0, K), K, 0.0, 800.0)
    given_ = solve(KernelProblem(gram, y, shares(0, 40, False), 1e-3, games.zero_one(3), SpanPerClass(3)), 1.0)
    assert given_.objective == pytest.approx(named.objective, rel=2e-9)


# From some hundred rows on training begins on parts of the data, and a part of the curvature stands for all.
@pytest.mark.parametrize("n", [150, 1000])
@pytest.mark.parametrize("m", [0.05, 1.0, 10.0])
def test_the_linear_kernel_is_linear_training(n, m):
    X, y = data(seed=1, n=n, d=4, k=3)
    omega = shares(1, n, True)
    for game in (games.zero_one(3), games.cost([[0.0, 4.0, 1.0], [1.0, 0.0, 3.0], [2.0, 1.0, 0.0], [1.2, 1.2, 1.2]])):
        alpha, mu = 1e-3 * game.largest, m * game.largest
        plain = train(Problem(X, y, omega, alpha, game, PerClass(3, 4, 1.0)), Tempered(mu), tol=1e-8, max_iter=300)
        kernel = solve(posed(X, y, game, SpanPerClass(3), alpha, omega, bias=1.0), mu, tol=1e-7)
        assert kernel.objective == pytest.approx(plain.objective, rel=2e-7)
        assert kernel.norm == pytest.approx(plain.norm, rel=1e-3)
    plain = Problem(X, y, omega, 1e-3, games.absolute(3), Cumulative(2, 4, 3.0))
    kernel = posed(X, y, games.absolute(3), SpanCumulative(3, 3.0), 1e-3, omega)
    assert solve(kernel, m, tol=1e-7).objective == pytest.approx(
        train(plain, Tempered(m), tol=1e-8, max_iter=300).objective, rel=2e-7
    )
    assert kernel.squared_diameters() == pytest.approx(plain.squared_diameters())


@pytest.mark.parametrize("constant", [0.5, 1.0, 4.0])
def test_thresholds_of_the_exact_game_see_a_constant_of_any_size(constant):
    X, y = data(seed=2, n=120, d=3, k=4)
    omega = shares(1, 120, True)
    plain = Problem(X, y, omega, 1e-2, ThresholdGame(3), Shared(3, 3, constant))
    kernel = posed(X, y, ThresholdGame(3), SpanShared(3, constant), 1e-2, omega)
    best = train(plain, Linear(), tol=1e-9, max_iter=1000, random_state=np.random.default_rng(0))
    assert solve(kernel, 0.0, tol=1e-7, max_iter=1000).objective == pytest.approx(best.objective, rel=2e-7)
    assert kernel.squared_diameters() == pytest.approx(plain.squared_diameters())


@given(
    seed=st.integers(0, 2**32 - 1),
    name=st.sampled_from(sorted(LOSSES)),
    log_alpha=st.floats(-5, 0),
    log_m=st.floats(-2, 2),
    max_iter=st.integers(1, 8),
)
@settings(max_examples=30)
def test_a_run_that_ends_anywhere_is_honest(seed, name, log_alpha, log_m, max_iter):
    """No bound on the way exceeds what a longer run reaches, and the objective is that of the coefficients."""
    game = LOSSES[name](3)
    X, y = data(seed=seed, n=30, d=2, k=3)
    mu = 10**log_m * game.largest
    problem = posed(X, y, game, SpanPerClass(3), 10**log_alpha * game.largest, kernel="rbf", bias=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        short, best = solve(problem, mu, max_iter=max_iter), solve(problem, mu, max_iter=1000)
    assert short.objective * (1.0 - short.dual_gap) <= best.objective + best.error
    assert best.objective <= short.objective + short.error + best.error
    assert short.objective == pytest.approx(problem.primal(short.w, mu), rel=1e-9)
    scores = (rbf_kernel(X, gamma=WIDTH) + 1.0) @ short.w
    losses = game.solve(scores, smoothing=mu).value - scores[np.arange(30), y]
    assert short.objective == pytest.approx(0.5 * problem.alpha * np.vdot(short.w, scores) + losses.mean(), rel=1e-9)
    assert short.norm == pytest.approx(np.sqrt(np.vdot(short.w, scores)), rel=1e-6, abs=1e-9)


def test_rows_that_are_not_kept_change_nothing():
    X, y = data(seed=0, n=900, d=4, k=3)
    plenty, scarce = (posed(X, y, games.zero_one(3), SpanPerClass(3), 1e-3, kernel="rbf", cache=c) for c in (800, 1e-3))
    assert (plenty.gram.capacity, scarce.gram.capacity) == (900, 64)
    best = solve(plenty, 1.0, tol=1e-7)
    assert solve(scarce, 1.0, tol=1e-7).objective == pytest.approx(best.objective, rel=2e-7)


@pytest.mark.parametrize("cache", [1e-3, 0.2, 800.0])
def test_products_are_those_of_the_whole_matrix(cache):
    X, _ = data(seed=0, n=300, d=4, k=3)
    K, rng = rbf_kernel(X, gamma=WIDTH) + 0.5, np.random.default_rng(0)
    gram = Gram(Kernel("rbf", WIDTH, 3, 0.0, X), X, 0.5, cache)
    gram.rows(np.array([7, 250, 3]))  # kept out of their order
    few = np.zeros((300, 2))
    few[[7, 3, 100]] = rng.normal(size=(3, 2))
    for V in (few, rng.normal(size=(300, 2)), rng.normal(size=(300, 5)), np.zeros((300, 1)), few):
        np.testing.assert_allclose(gram.product(V), K @ V, atol=1e-12)
    some = np.array([250, 7, 3, 40])
    np.testing.assert_allclose(gram.columns(some, few[:4]), K[:, some] @ few[:4], atol=1e-12)


@pytest.mark.parametrize("cache", [1e-3, 0.2, 800.0])
def test_a_square_is_a_part_of_the_matrix(cache):
    X, _ = data(seed=0, n=300, d=4, k=3)
    K, some = rbf_kernel(X, gamma=WIDTH) + 0.5, np.array([250, 7, 3, 40, 41])
    gram = Gram(Kernel("rbf", WIDTH, 3, 0.0, X), X, 0.5, cache)
    gram.rows(np.array([7, 250, 9]))
    np.testing.assert_allclose(gram.square(some), K[np.ix_(some, some)], atol=1e-14)
    np.testing.assert_allclose(gram.part(some).product(np.eye(5)), K[np.ix_(some, some)], atol=1e-14)


def test_wide_data_are_read_in_parts(monkeypatch):
    X, _ = data(seed=0, n=300, d=4, k=3)
    K, V = rbf_kernel(X, gamma=WIDTH) + 0.5, np.random.default_rng(0).normal(size=(300, 2))
    monkeypatch.setattr(gram_module, "_WIDE", 8 * 6 * 70)  # rows at a time
    for cache in (1e-3, 0.2, 800.0):
        gram = Gram(Kernel("rbf", WIDTH, 3, 0.0, X.astype(np.float32)), X.astype(np.float32), 0.5, cache)
        gram.rows(np.array([7, 250, 9]))
        gram.rows(np.array([100, 3]))
        np.testing.assert_allclose(gram.product(V), K @ V, atol=1e-5)


@pytest.mark.parametrize("span", [SpanPerClass(4), SpanCumulative(4, 10.0)], ids=["per class", "cumulative"])
def test_levelling_leaves_no_slope_along_constants(span):
    """The gap of a large constant feature is the square of what its coefficients miss."""
    X, y = data(0, 80, 3, 4)
    bias = 100.0 if isinstance(span, SpanPerClass) else 0.0
    problem = posed(X, y, games.absolute(4), span, 1e-3, kernel="rbf", bias=bias)
    objective = Objective(problem, 0.5)
    C = 1e-3 * np.random.default_rng(0).standard_normal((80, 4))
    start = here = objective.at(C, problem.scores(C))
    misses = []
    for _ in range(9):
        r = problem.alpha * (here.C - objective.own(here.found.q))
        misses.append(float(np.square(span.above(r).sum(axis=0)).sum()))
        here = objective.levelled(here)
    assert here.value < start.value and misses[-1] < 1e-3 * misses[0]
    np.testing.assert_allclose(here.scores, problem.scores(here.C), atol=1e-9 * np.abs(here.scores).max())


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("mu", [0.05, 1.0])
def test_directions_are_factors_of_the_curvature(name, mu):
    """All of them make up ``omega J``; the first ones leave something positive semidefinite."""
    game, k = LOSSES[name](4), 4
    rng = np.random.default_rng(0)
    eq, omega = game.equilibria(rng.normal(size=(30, k)), mu), rng.random(30)
    J = np.empty((30, k, k))
    for c in range(k):
        J[:, c] = np.eye(k)[c]
        column = np.ascontiguousarray(J[:, c])
        turn_rows(game.params.compiled(), mu, eq.q, eq.p, column)
        J[:, c] = omega[:, None] * column
    for most in (1, 2, k):
        U = np.empty((30 * most, k))
        turn_directions(game.params.compiled(), mu, omega, eq.q, eq.p, U)
        U = U.reshape(30, most, k)
        left = J - np.einsum("iac,iad->icd", U, U)
        assert np.linalg.eigvalsh(left).min() >= -1e-9 / mu
        if most == k:
            np.testing.assert_allclose(left, 0.0, atol=1e-9 / mu)


@given(
    sizes=st.lists(st.floats(0.0, 1e3), min_size=1, max_size=40),
    wanted=st.floats(0.5, 30.0),
    sure=st.integers(0, 3),
)
def test_chances_of_being_drawn(sizes, wanted, sure):
    sizes = np.array(sizes)
    chances = drawing_chances(sizes, wanted, np.arange(sizes.size) < sure)
    assert ((chances >= 0.0) & (chances <= 1.0)).all() and (chances[:sure] == 1.0).all()
    assert chances.sum() <= max(wanted, sure) + 1e-9
    free = (chances < 1.0) & (chances > 0.0) & (sizes > 1e-6)
    if free.any():
        np.testing.assert_allclose(chances[free] / sizes[free], (chances[free] / sizes[free])[0], rtol=1e-6)


def test_scores_that_were_certified_are_those_of_the_matrix():
    X, y = data(seed=0, n=60, d=3, k=3)
    problem = posed(X, y, games.zero_one(3), SpanPerClass(3), 1e-3, kernel="rbf", bias=2.0)
    C, D = np.random.default_rng(0).normal(size=(2, 60, 3))
    (seen, _), (other, _) = problem.all_scores(C, D)
    K = rbf_kernel(X, gamma=WIDTH) + 2.0
    for found, of in ((seen, C), (other, D), (problem.scores(C), C), (problem.scores(D), D)):
        np.testing.assert_allclose(found, K @ of, atol=1e-12)
    C += 1.0  # what is kept is not that of the array, but of its values
    np.testing.assert_allclose(problem.scores(C), K @ C, atol=1e-12)


def test_a_start_at_the_optimum_ends_at_once():
    X, y = data(seed=0, n=200, d=3, k=3)
    problem = posed(X, y, games.zero_one(3), SpanPerClass(3), 1e-3, kernel="rbf")
    first = solve(problem, 1.0, tol=1e-6)
    assert first.n_iter > 0 and solve(problem, 1.0, tol=1e-5, start=first).n_iter == 0


def test_a_run_goes_on_from_its_checkpoint(tmp_path):
    X, y = data(seed=0, n=1000, d=3, k=3)

    def fresh():
        return posed(X, y, games.zero_one(3), SpanPerClass(3), 1e-3, kernel="rbf")

    whole, path = solve(fresh(), 0.3, tol=1e-8), tmp_path / "run"
    with pytest.warns(ConvergenceWarning):
        begun = solve(fresh(), 0.3, tol=1e-8, max_iter=1, checkpoint=Checkpoint(path, "this"))
    went_on = solve(fresh(), 0.3, tol=1e-8, checkpoint=Checkpoint(path, "this"))
    assert begun.rounds and went_on.rounds[: len(begun.rounds)] == begun.rounds
    assert abs(went_on.n_iter - whole.n_iter) <= 1  # rows are kept elsewhere
    assert whole.n_iter > 1 and went_on.objective == pytest.approx(whole.objective, rel=2e-8)


@pytest.mark.parametrize("where", ["_from_parts", "_arrived"])
def test_an_interrupt_before_the_first_certificate_leaves_coefficients_that_are_evaluated(where, monkeypatch):
    X, y = data(seed=0, n=60, d=3, k=3)
    problem = posed(X, y, games.zero_one(3), SpanPerClass(3), 1e-3, kernel="rbf")

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(module.TemperedSpan, where, interrupted)
    with pytest.warns() as record:
        found = solve(problem, 0.7)
    assert any("interrupted" in str(one.message) for one in record)
    nothing = 2.0 / 3.0 + 0.7 * np.log(3.0)  # the objective of coefficients that are 0
    assert found.w.any() == (where == "_arrived") and found.objective <= nothing * (1.0 + 1e-12)
    assert found.objective == pytest.approx(problem.primal(found.w, 0.7), rel=1e-12)


def test_a_smoothing_of_0_is_for_another_method():
    with pytest.raises(ValueError, match="smoothing must be positive"):
        TemperedSpan(0.0)
