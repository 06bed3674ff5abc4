"""Proximal steps of many rows at a time are those of one row after the other."""

from __future__ import annotations

import numpy as np
import pytest

from nashlearn.kernels.newton import proximal_rows, smoothed_rows
from nashlearn.kernels.zero_one import ZeroOne

N = 37


def case(k: int, size: float):
    rng = np.random.default_rng(k)
    scores, middle = size * rng.standard_normal((N, k)), rng.dirichlet(np.ones(k), N)
    scores[3] = scores[3, 0]  # all tied
    middle[::3] = np.eye(k)[rng.integers(k, size=middle[::3].shape[0])]
    omega = rng.random(N)
    return scores, rng.integers(k, size=N), omega / omega.sum(), middle


@pytest.mark.parametrize("mu", [0.01, 0.3, 5.0])
@pytest.mark.parametrize("size", [0.0, 0.3, 10.0, 1e8])
@pytest.mark.parametrize("k", [1, 2, 3, 5, 8, 50, 128, 129])
def test_steps_sums_and_residuals(k, size, mu):
    scores, codes, omega, middle = case(k, size)
    Y, loss = np.eye(k), ZeroOne(k)
    Q, tight = np.tile(1.0 / k, (N, k)), np.empty((N, k), np.bool_)
    q, marks = Q.copy(), tight.copy()
    value = smoothed_rows(loss, scores, Y[codes], omega, mu, middle, Q, tight)
    residual = scores.copy()
    smooth, upper, risk = proximal_rows(loss, residual, codes, Y, omega, mu, middle, q, marks)
    close = 1e-9 * max(1.0, 1e-7 * size / mu)
    np.testing.assert_allclose(q, Q, atol=close)
    np.testing.assert_array_equal(marks, tight)
    np.testing.assert_allclose(residual, omega[:, None] * (q - Y[codes]), atol=1e-15)
    assert smooth == pytest.approx(value, rel=1e-9, abs=1e-10)
    assert risk == pytest.approx(omega @ (1.0 - Q.max(axis=1)), abs=close)
    p = np.empty((N, k))
    for i in range(N):
        loss.step(scores[i] + mu * middle[i], mu, Q[i].copy(), p[i])
    own = scores[np.arange(N), codes]
    secured = (scores - own[:, None] + p.sum(axis=1, keepdims=True) - p).max(axis=1)
    assert upper == pytest.approx(omega @ secured, rel=1e-9, abs=1e-10)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_scores_that_are_no_numbers_are_no_descent(wrong):
    scores, codes, omega, middle = case(5, 1.0)
    scores[20, 2] = wrong
    found = proximal_rows(
        ZeroOne(5), scores, codes, np.eye(5), omega, 0.3, middle, middle.copy(), np.empty((N, 5), np.bool_)
    )
    assert np.isnan(found[:2]).all()
