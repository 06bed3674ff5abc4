"""Passes over dense rows are products with the weights, games of the rows, and products with the residuals."""

from __future__ import annotations

import numpy as np
import pytest

from nashlearn import games
from nashlearn.kernels.dense_rows import Dense
from nashlearn.kernels.newton import Steps, proximal_rows, tempered_rows
from nashlearn.kernels.passes import proximal_pass, tempered_pass

N, D, K = 241, 900, 3  # more rows than are read together, and no multiple of four
LOSSES = {
    "zero_one": games.zero_one(K),
    "cost": games.cost(np.array([[0.0, 1.0, 2.0], [3.0, 0.0, 1.0], [1.0, 1.5, 0.0], [0.9, 0.9, 0.9]])),
    "absolute": games.absolute(K),
}


def case(dtype):
    rng = np.random.default_rng(0)
    X, W = rng.normal(size=(N, D)).astype(dtype), 0.1 * rng.normal(size=(K, D + 1))
    omega = rng.random(N)
    given = rng.integers(K, size=N), np.eye(K), omega / omega.sum()
    return X, W, X.astype(np.float64) @ W[:, :D].T + 2.0 * W[:, D], given, rng.dirichlet(np.ones(K), N)


def moments(X, residual):
    return np.column_stack([residual.T @ X.astype(np.float64), 2.0 * residual.sum(axis=0)])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", LOSSES)
def test_proximal_passes(name, dtype):
    X, W, scores, given, centre = case(dtype)
    loss = LOSSES[name].params.compiled()
    found = []
    for fused in (False, True):
        Q, tight, G = centre.copy(), np.zeros((N, loss.options), np.bool_), np.ones((K, D + 1))
        if fused:
            sums = proximal_pass(Steps(loss, 0.3), Dense(X, 2.0), W, *given, centre, Q, tight, G)
        else:
            residual = scores.copy()
            sums = proximal_rows(Steps(loss, 0.3), residual, *given, centre, Q, tight)
            G += moments(X, residual)
        found.append((*sums, Q, G, tight))
    for one, other in zip(*(numbers[:-1] for numbers in found), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)
    assert np.mean(found[0][-1] == found[1][-1]) > 0.9  # rounding decides between options that are as good


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", LOSSES)
def test_tempered_passes(name, dtype, kept):
    X, W, scores, given, _ = case(dtype)
    loss = LOSSES[name].params.compiled()
    found = []
    for fused in (False, True):
        Q, P, G = np.zeros((N, K)), np.full((N, loss.options), np.nan), np.ones((K, D + 1))
        if fused:
            own = (Q, P) if kept else (None, None)
            sums = tempered_pass(loss, 0.5, Dense(X, 2.0), W, *given, *own, G)
        else:
            residual = scores.copy()
            sums = tempered_rows(loss, 0.5, residual, *given, Q, P)
            G += moments(X, residual)
        found.append((*sums, G, *((Q, P) if kept else ())))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)


def test_refusals():
    X, W, _, given, centre = case(np.float64)
    loss, rows = LOSSES["zero_one"].params.compiled(), Dense(X, 2.0)
    with pytest.raises(ValueError, match="mu must be positive"):
        tempered_pass(loss, 0.0, rows, W, *given, None, None, W.copy())
    with pytest.raises(ValueError, match="codes"):
        tempered_pass(loss, 1.0, rows, W, given[0] + 1, *given[1:], None, None, W.copy())
    with pytest.raises(ValueError, match="centre"):
        tight = np.zeros((N, K), np.bool_)
        proximal_pass(Steps(loss, 0.3), rows, W, *given, centre[1:], centre.copy(), tight, W.copy())
