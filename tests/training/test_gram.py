"""Gram matrices: what is made of half of them, and what visits hold apart."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from nashlearn import games
from nashlearn.training.designs.gram import Gram, Kernel
from nashlearn.training.designs.span import KernelProblem, SpanPerClass
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
    part, K = _part(problem, some), rbf_kernel(X[some], gamma=WIDTH) + bias
    whole = part.free * np.outer(part.common, part.common)
    assert np.allclose(part.K, K - whole, rtol=0.0, atol=1e-5)
    assert np.allclose(part.diagonal, np.diagonal(part.K), atol=1e-5)
    assert np.linalg.eigvalsh(part.K.astype(float)).min() > -1e-5
    assert part.K.mean() == pytest.approx(part.own, rel=1e-3) and part.own < 0.1 < K.mean()


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
