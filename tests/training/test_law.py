"""The law of training certificates: at any weights and any label distributions, the gap is at least the true one.

The optimum is that of an independent quadratic programme (:mod:`qp_reference`). Weights and dual points are random, or
the optimal ones perturbed: as the perturbation goes to 0, so does the gap.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from qp_reference import per_class_optimum, threshold_optimum
from sklearn.metrics.pairwise import linear_kernel
from training_problems import LOSSES, data, per_class, shares, thresholded

from nashlearn.games.rows.thresholds import ThresholdGame
from nashlearn.training import train
from nashlearn.training.designs.gram import Gram, Kernel
from nashlearn.training.designs.span import KernelProblem, SpanPerClass, SpanShared
from nashlearn.training.methods.climb import Climb
from nashlearn.training.methods.linear import Linear
from nashlearn.training.progress import Progress

NAMES = ["zero_one", "zero_one-weighted", "absolute", "squared", "abstain-0.2", "abstain-0.6", "cost-tall", "cost-ties"]
K, N = 3, 18
REFERENCE = 1e-7  # relative accuracy of the reference


def drawn(name, seed):
    """Data, shares, ``alpha`` and the optimum."""
    rng = np.random.default_rng(seed)
    X, y = data(seed, n=N, d=2, k=K)
    omega, alpha, bias = shares(seed, N, True), 10.0 ** rng.uniform(-3, 0), float(rng.integers(0, 2))
    if name == "thresholds":
        return X, y, omega, alpha, bias, threshold_optimum(X, y, omega, alpha, K)[0]
    return X, y, omega, alpha, bias, per_class_optimum(X, y, omega, alpha, LOSSES[name](K).costs, bias)


def label_distributions(name, rng):
    return rng.random((N, K - 1)) if name == "thresholds" else rng.dirichlet(np.full(K, 0.5), size=N)


def reported(w, primal, dual, *errors):
    """What a run says that was offered this and nothing else."""
    progress = Progress(1e-3, 1, bound=0.0)
    progress.offer(w, primal, dual, *errors)
    return progress.gap * progress.primal


def linear_gap(problem, w, Q):
    own = problem.moments(Q) / -problem.alpha
    errors = problem.error(w), problem.error(own, Q)
    return problem.primal(w), reported(w, problem.primal(w), problem.dual(Q, own), *errors)


def kernel_gap(problem, C, Q):
    own = problem.omega[:, None] / problem.alpha * (problem.truth() - Q)
    P, D = problem.primal(C), problem.dual(Q, own, problem.scores(own))
    errors = problem.error(C), problem.error_at(own, problem.scores(own), 0.0, Q)
    return P, reported(C, P, D, *errors)


def as_kernel(name, X, y, omega, alpha, bias):
    """The same problem in the span of the linear kernel."""
    if name == "thresholds":
        gram = Gram(Kernel(linear_kernel, 1.0, 3, 0.0, X), X, 0.0, 10)
        return KernelProblem(gram, y, omega, alpha, ThresholdGame(K - 1), SpanShared(K - 1))
    gram = Gram(Kernel(linear_kernel, 1.0, 3, 0.0, X), X, bias, 10)
    return KernelProblem(gram, y, omega, alpha, LOSSES[name](K), SpanPerClass(K))


def problems(name, X, y, omega, alpha, bias):
    """Both ways to train, each with what computes its gap."""
    if name == "thresholds":
        plain = thresholded(X, y, K, alpha, omega)
    else:
        plain = per_class(X, y, LOSSES[name](K), alpha, omega, bias)
    return [(plain, Linear(), linear_gap), (as_kernel(name, X, y, omega, alpha, bias), Climb(), kernel_gap)]


@pytest.mark.parametrize("name", [*NAMES, "thresholds"])
@given(seed=st.integers(0, 2**32 - 1), log_size=st.floats(-3, 1))
@settings(max_examples=12)
def test_no_weights_and_no_label_distributions_make_the_gap_too_small(name, seed, log_size):
    rng = np.random.default_rng(seed)
    X, y, omega, alpha, bias, optimum = drawn(name, seed)
    slack = REFERENCE * optimum + 1e-10
    for problem, _, gap in problems(name, X, y, omega, alpha, bias):
        w = 10.0**log_size * rng.normal(size=problem.shape)
        Q = label_distributions(name, rng)
        primal, said = gap(problem, w, Q)
        assert primal >= optimum - slack
        assert said >= primal - optimum - slack
        assert said <= primal * (1 + 1e-12)  # no loss is negative: never more than all of it


@pytest.mark.parametrize("name", [*NAMES, "thresholds"])
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=6)
def test_perturbed_optima_have_gaps_that_hold_and_vanish(name, seed):
    rng = np.random.default_rng(seed)
    X, y, omega, alpha, bias, optimum = drawn(name, seed)
    slack = REFERENCE * optimum + 1e-10
    for problem, method, gap in problems(name, X, y, omega, alpha, bias):
        best = train(problem, method, tol=1e-8, max_iter=4000, random_state=np.random.default_rng(0))
        step, other = rng.normal(size=problem.shape), label_distributions(name, rng)
        size = 1.0 + np.abs(best.w).max()
        found = []
        for t in (1.0, 1e-1, 1e-2, 1e-4, 1e-6):
            primal, said = gap(problem, best.w + t * size * step, best.Q + t * (other - best.Q))
            assert said >= primal - optimum - slack
            found.append(said)
        left = best.dual_gap * best.objective
        assert found[-1] <= left + 1e-3 * found[0] + 1e-7 * (1 + optimum)
        assert found[-1] <= found[2] + slack


@pytest.mark.parametrize("name", [*NAMES, "thresholds"])
def test_both_ways_to_train_say_the_same_of_the_same_point(name):
    """Coefficients ``C`` of the linear kernel are the weights ``C' (X, bias)``: objective, dual and norm agree."""
    rng = np.random.default_rng(5)
    X, y, omega, alpha, bias, _ = drawn(name, 5)
    (plain, _, _), (kernel, _, _) = problems(name, X, y, omega, alpha, bias)
    C, Q = rng.normal(size=kernel.shape), label_distributions(name, rng)
    if name == "thresholds":
        w = np.r_[X.T @ C.sum(axis=1), C.sum(axis=0)]
    else:
        w = C.T @ np.column_stack([X, np.full(N, bias)])
        w[:, -1] *= 1.0 if bias else 0.0
    assert kernel.primal(C) == pytest.approx(plain.primal(w), rel=1e-12)
    assert kernel.norm(C) == pytest.approx(plain.norm(w), rel=1e-12)
    own = omega[:, None] / alpha * (kernel.truth() - Q)
    assert kernel.dual(Q, own, kernel.scores(own)) == pytest.approx(
        plain.dual(Q, plain.moments(Q) / -alpha), rel=1e-10, abs=1e-12
    )
