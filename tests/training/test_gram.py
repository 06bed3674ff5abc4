"""Gram matrices: what is made of half of them, and what visits hold apart."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

from nashlearn import games
from nashlearn.kernels.greedy import greedy_passes
from nashlearn.kernels.rows import Square
from nashlearn.solvers.threads import threads
from nashlearn.training.designs.corner import Corner
from nashlearn.training.designs.gram import Gram, Kernel
from nashlearn.training.designs.span import KernelProblem, SpanPerClass
from nashlearn.training.designs.tiles import Gaussian, Polynomial
from nashlearn.training.methods.climb import _part

N, WIDTH = 300, 0.05
X = np.random.default_rng(0).normal(size=(N, 4))


def gram(bias: float) -> Gram:
    return Gram(Kernel("rbf", WIDTH, 3, 0.0, X), X, bias, 100.0)


def test_half_of_a_matrix_makes_the_whole():
    filled, expected = gram(0.5), rbf_kernel(X, gamma=WIDTH) + 0.5
    filled.fill()
    some, V = np.arange(3, N, 7), np.random.default_rng(1).normal(size=(N, 5))
    assert np.allclose(filled.square(np.arange(N)), expected, rtol=1e-13)
    assert np.allclose(filled.product(V), expected @ V, rtol=1e-12)
    assert np.array_equal(filled.part(some).square(np.arange(some.size)), filled.square(some))


@pytest.mark.parametrize("bias", [0.0, 1.0, 1e4])
def test_what_examples_have_in_common_is_held_apart(bias):
    """What is left is positive semidefinite, has next to no mean, and knows its diagonal."""
    omega = np.full(N, 1.0 / N)
    problem = KernelProblem(gram(bias), np.zeros(N, int), omega, 1.0, games.zero_one(3), SpanPerClass(3))
    some = np.arange(0, N, 3)
    problem.corner.places(np.arange(1, N, 6))  # others that are there already
    places = problem.corner.places(some)
    part, K = _part(problem, some), rbf_kernel(X[some], gamma=WIDTH) + bias
    common = part.common[places]
    left = problem.corner.K[np.ix_(places, places)] + bias - part.free * np.outer(common, common)
    assert np.allclose(part.diagonal[places], np.diagonal(left), atol=1e-5 * max(bias, 1.0))
    assert np.linalg.eigvalsh(K - part.free * np.outer(common, common)).min() > -1e-5
    assert left.mean() == pytest.approx(part.own, abs=1e-5 * max(bias, 1.0)) and part.own < 0.1 < K.mean()


@pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian"])
def test_a_corner_is_that_of_the_matrix_whatever_was_asked_before(kernel):
    own = Gram(Kernel(kernel, WIDTH, 3, 0.5, X), X, 2.0, 100.0)
    whole, corner, rng = own.square(np.arange(N)) - 2.0, Corner(own), np.random.default_rng(0)
    for size in (20, 25, 30, 200, 250, 290, 40, 45, 300):
        wanted = rng.choice(N, size, replace=False)
        if size > 40:
            own.rows(wanted[::3])  # some rows are kept, others not
        places = corner.places(wanted)
        assert np.array_equal(corner.members[places], wanted)
        assert np.allclose(corner.K, whole[np.ix_(corner.members, corner.members)], rtol=1e-5)


def test_products_add_the_bias_whatever_is_kept():
    expected, V = rbf_kernel(X, gamma=WIDTH) + 1e3, np.random.default_rng(1).normal(size=(N, 5))
    V[::2] = 0.0
    for cache in (100.0, 0.2):  # all rows, or 87
        own = Gram(Kernel("rbf", WIDTH, 3, 0.0, X), X, 1e3, cache)
        some, KC, exact, lost = np.arange(3, N, 7), np.zeros((5, N)), np.zeros((5, N)), np.zeros((5, N))
        assert np.allclose(own.product(V), expected @ V, rtol=1e-11)
        own.push(own.rows(some), V[some], KC)
        own.push(own.rows(some), V[some], exact, lost)
        assert np.allclose(KC.T, expected[:, some] @ V[some], rtol=1e-11)
        assert np.allclose((exact + lost).T, expected[:, some] @ V[some], rtol=1e-13)


@pytest.mark.parametrize("degree", [1, 2, 3, 7, 12])
def test_powers_are_those_of_the_polynomial(degree):
    expected = polynomial_kernel(X, X[::3], degree=degree, gamma=WIDTH, coef0=0.7)
    assert np.allclose(Kernel("poly", WIDTH, degree, 0.7, X)(X, X[::3]), expected, rtol=1e-13)
    assert np.allclose(Polynomial(X[::3], WIDTH, degree, 0.7, roughly=True)(X), expected, rtol=1e-4)
    assert np.isfinite(Polynomial(1e9 * X, WIDTH, degree, 0.7, roughly=True)(1e9 * X)).all()


@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_rough_values_are_near_the_true_ones_at_any_scale(scale):
    """Where rows are so long that single precision would lose the distances, it is not used."""
    A = scale * (X + 1.0)
    exact = rbf_kernel(A, A[::2], gamma=WIDTH / scale**2)
    rough = Gaussian(A[::2], WIDTH / scale**2, roughly=True)(A)
    assert np.allclose(rough, exact, atol=1e-5)
    far = Gaussian(A[::2] + 1e4 * scale, WIDTH / scale**2, roughly=True)(A + 1e4 * scale)
    assert np.allclose(far, exact, atol=1e-5)


def test_any_number_of_threads_makes_the_same_numbers():
    some, V = np.arange(3, N, 2), np.random.default_rng(1).normal(size=(N, 5))
    found = []
    for count in (1, 3):
        own = Gram(Kernel("rbf", WIDTH, 3, 0.0, X), X, 0.5, 100.0, threads(count))
        KC, corner = np.zeros((5, N)), Corner(own)
        own.push(own.rows(some), V[some], KC)
        corner.places(np.arange(0, N, 3))
        places = corner.places(np.arange(0, N, 2))
        found.append((KC, own.product(V), own.square(np.arange(N)), corner.K.copy(), corner.means(places)))
    for one, other in zip(*found, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("light", [False, True])
@pytest.mark.parametrize("bias", [0.0, 1.0, 10.0])
def test_visits_raise_the_dual_of_the_whole_matrix(bias, light):
    """What they hold apart and what they leave out of the matrix comes back in the scores that they work with."""
    k, share = 3, 2.0
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
    K = rbf_kernel(X, gamma=WIDTH)
    truth, Q = np.eye(k)[y], np.eye(k)[y]
    W = np.zeros((k, N), np.float32 if light else np.float64)
    held, sums, everything = np.zeros(k), np.zeros((2, k)), np.arange(N)
    rows = Square(K.astype(np.float32))
    arrays = rows, W, Q, np.full(N, share), np.full(N, 1.0 + bias), everything
    lists = np.arange(0, k * N + 1, k), np.tile(np.arange(k), N)
    apart = np.ones(N), held, sums, bias, 0.0, 0.0
    greedy_passes(games.zero_one(k).params.compiled(), *arrays, *lists, *apart, 0.0, 1e-9, 1e6, threads(1))
    C = share * (truth - Q)
    assert np.allclose(sums[0], C.sum(axis=0))
    scores = (K + bias) @ C
    assert np.allclose(W.T + bias * sums[0], scores, atol=1e-3)
    equilibria = games.zero_one(k).equilibria(np.ascontiguousarray(scores), 0.0)
    primal = share * float(equilibria.value.sum() - (scores * truth).sum()) + 0.5 * float((C * scores).sum())
    dual = share * float(games.zero_one(k).risk(Q).sum()) - 0.5 * float((C * scores).sum())
    assert dual <= primal <= dual + 1e-2 * abs(primal)


def test_steps_that_wait_reach_all_scores_with_any_number_of_threads():
    """Visits go by some hundred examples; what these move of the others' scores is brought there before their turn."""
    n, k, share = 1400, 3, 0.5
    rng = np.random.default_rng(5)
    A = rng.normal(size=(n, 2))
    y = (A[:, 0] > 0).astype(int) + (A[:, 1] > 0)
    K, truth = rbf_kernel(A, gamma=0.5).astype(np.float32), np.eye(k)[y]
    everything = rng.permutation(n)  # so that those who are visited together do not lie together
    found = []
    for order, count in [(np.sort(everything), 1), (np.sort(everything), 3), (everything, 3)]:
        W, Q, held, sums = np.zeros((k, n)), truth.copy(), np.zeros(k), np.zeros((2, k))
        arrays = Square(K), W, Q, np.full(n, share), np.ones(n), order
        lists = np.arange(0, k * n + 1, k), np.tile(np.arange(k), n)
        apart = np.ones(n), held, sums, 0.0, 0.0, 0.0
        greedy_passes(games.zero_one(k).params.compiled(), *arrays, *lists, *apart, 0.0, 1e-9, 1e6, threads(count))
        scores = K.astype(np.float64) @ (share * (truth - Q))
        assert np.allclose(W.T, scores, atol=1e-9)
        equilibria = games.zero_one(k).equilibria(scores, 0.0)
        primal = share * float(equilibria.value.sum() - (scores * truth).sum())
        primal += 0.5 * share * float(((truth - Q) * scores).sum())
        dual = share * float(games.zero_one(k).risk(Q).sum()) - 0.5 * share * float(((truth - Q) * scores).sum())
        assert dual <= primal <= dual + 1e-2 * abs(primal)
        found.append((W, Q))
    assert all(np.array_equal(one, other) for one, other in zip(*found[:2], strict=True))


def test_coefficients_of_any_size_know_how_they_are_rounded():
    """Scores that cancel leave nothing but rounding of the norm, which the objective may then lack."""
    own, omega = gram(0.0), np.full(N, 1.0 / N)
    problem = KernelProblem(own, np.zeros(N, int), omega, 1.0, games.zero_one(3), SpanPerClass(3))
    K = rbf_kernel(X, gamma=WIDTH)
    null = np.linalg.eigh(K)[1][:, :1]
    for size in (1.0, 1e6, 1e12):
        C = size * null * np.array([1.0, -1.0, 0.0])
        exact = 0.5 * float((C.astype(np.longdouble) * (K.astype(np.longdouble) @ C.astype(np.longdouble))).sum())
        rounded = 0.5 * float(np.vdot(C, problem.scores(C)))
        assert abs(rounded - exact) <= problem.error(C)
    assert problem.error(C) >= 1e-16 * size**2 * own.diagonal.mean()  # as large as what cancels is rounded
