"""Gaps against exact arithmetic: what a fit reports is never less than what it leaves, rounding included."""

from __future__ import annotations

import warnings
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import linear_kernel
from training_problems import per_class, thresholded

from nashlearn import games
from nashlearn.training import train
from nashlearn.training.designs.gram import Gram, Kernel
from nashlearn.training.designs.span import KernelProblem, SpanPerClass
from nashlearn.training.methods.climb import Climb
from nashlearn.training.methods.linear import Linear

ONE = Fraction(1)


def exact(values):
    return [Fraction(float(v)) for v in np.ravel(values)]


def margin_loss(m):
    """The zero-one game of two labels whose scores differ by ``m`` in favour of the true one."""
    return max(Fraction(0), (1 - m) / 2, -m)


def objective(v, x, y, omega, alpha, norm2):
    """``alpha/2 norm2 + sum_i omega_i loss(+-v x_i)``."""
    losses = (o * margin_loss(v * a if label else -v * a) for a, label, o in zip(x, y, omega, strict=True))
    return alpha * norm2 / 2 + sum(losses)


def optimum(x, y, omega, alpha, shares):
    """The least objective over ``v``, where ``|w|^2 = shares v^2``: convex, quadratic between the kinks ``+-1/x_i``."""
    kinks = sorted({s / a for a in x if a for s in (ONE, -ONE)})
    edges = [kinks[0] - 1, *kinks, kinks[-1] + 1]
    best = None
    for low, high in pairwise(edges):
        middle = (low + high) / 2
        slope = Fraction(0)
        for a, label, o in zip(x, y, omega, strict=True):
            s = a if label else -a
            m = middle * s
            slope += o * (-s if m < -1 else (-s / 2 if m < 1 else 0))
        for v in (low, high, min(max(-slope / (alpha * shares), low), high)):
            value = objective(v, x, y, omega, alpha, shares * v * v)
            best = value if best is None else min(best, value)
    return best


def drawn(seed):
    """A problem with one feature and two labels, which can be told apart more often than not."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 9))
    y = rng.integers(0, 2, n)
    y[:2] = 0, 1
    x = rng.uniform(0.2, 3.0, n) * np.where(y == 1, 1.0, -1.0)
    if seed % 3 == 0:
        x[-1] *= -1.0
    weight = rng.exponential(size=n)
    return x, y, weight / weight.sum(), 10.0 ** rng.uniform(-13, 0)


def train_per_class(x, y, omega, alpha):
    problem = per_class(x[:, None], y, games.zero_one(2), alpha, omega, bias=0.0)
    trained = train(problem, Linear(), tol=1e-3, max_iter=1000, random_state=np.random.default_rng(0))
    return exact(trained.w[:, 0]), trained.dual_gap, x


def train_thresholds(x, y, omega, alpha):
    """One threshold and no feature but the constant one."""
    problem = thresholded(np.zeros((y.size, 0)), y, 2, alpha, omega)
    trained = train(problem, Linear(), tol=1e-3, max_iter=1000, random_state=np.random.default_rng(0))
    return [Fraction(0), *exact(trained.w)], trained.dual_gap, np.ones(y.size)


def train_kernel(x, y, omega, alpha):
    """Weights are those of the function, from its coefficients as they were kept."""
    gram = Gram(Kernel(linear_kernel, 1.0, 3, 0.0, x[:, None]), x[:, None], 0.0, 10)
    problem = KernelProblem(gram, y, omega, alpha, games.zero_one(2), SpanPerClass(2))
    trained = train(problem, Climb(), tol=1e-9, max_iter=1000, random_state=np.random.default_rng(0))
    C = np.array([exact(row) for row in trained.w])
    return list(exact(x) @ C), trained.dual_gap, x


@pytest.mark.parametrize("count", [40, pytest.param(150, marks=pytest.mark.slow)])
@pytest.mark.parametrize("route", [train_per_class, train_thresholds, train_kernel])
def test_the_gap_is_never_less_than_what_is_left(route, count):
    hidden, vague = 0, []
    for seed in range(count):
        x, y, omega, alpha = drawn(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            w, gap, x = route(x, y, omega, alpha)
        x, omega, alpha = exact(x), exact(omega), Fraction(alpha)
        P = objective(w[1] - w[0], x, y, omega, alpha, sum(a * a for a in w))
        left = P - optimum(x, y, omega, alpha, Fraction(1, 1 if route is train_thresholds else 2))
        assert 0 <= left <= Fraction(gap) * P
        hidden += left > 0
        size = 1 / alpha if route is train_kernel else 1  # of coefficients, whose sums cancel
        vague.append(float((Fraction(gap) * P - left) / size))
    assert hidden > 10  # rounding leaves something in many of them,
    assert np.median(vague) <= 1e-13  # and is no excuse for more
