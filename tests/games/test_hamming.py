"""The Hamming operator is the matrix it stands for, on columns and on single points."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nashlearn import games


@given(seed=st.integers(0, 2**32 - 1), shape=st.sampled_from([(1,), (5,), (2, 3)]), n=st.integers(0, 3))
def test_products_are_those_of_the_matrix(seed, shape, n):
    rng = np.random.default_rng(seed)
    weights, unit = rng.random(shape), rng.normal(size=shape)
    loss = games.Hamming(weights, unit)
    matrix = np.outer(unit, weights) - np.diag(weights.ravel())
    columns = rng.normal(size=(weights.size, n))
    assert loss.shape == loss.T.shape == matrix.shape
    assert np.abs(loss @ columns - matrix @ columns).max(initial=0.0) <= 1e-12
    assert np.abs(loss.T @ columns - matrix.T @ columns).max(initial=0.0) <= 1e-12
    assert np.abs(loss.T.T @ weights.ravel() - matrix @ weights.ravel()).max() <= 1e-12
    assert np.abs(loss.T @ unit.ravel() - matrix.T @ unit.ravel()).max() <= 1e-12


def test_it_counts_what_the_prediction_misses():
    """Two of four items: a prediction that shares one with the truth misses one."""
    loss = games.Hamming(np.ones(4), 1 / 2)
    truth, prediction = np.array([1.0, 1.0, 0.0, 0.0]), np.array([1.0, 0.0, 1.0, 0.0])
    assert prediction @ (loss @ truth) == 1.0
    assert truth @ (loss @ truth) == 0.0
