"""What L-BFGS scales its first steps by: second moments of the features, or their diagonal; a factored Hessian."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from training_problems import per_class

from nashlearn import games
from nashlearn.training.designs import rows as designs
from nashlearn.training.designs.row_products import adjacent_rows
from nashlearn.training.methods.descent import Curvature


def features(n: int, d: int, related: float, seed: int = 0) -> np.ndarray:
    """Columns that follow one another: neighbours have the correlation ``related``."""
    Z = np.random.default_rng(seed).standard_normal((n, d))
    for j in range(1, d):
        Z[:, j] = related * Z[:, j - 1] + np.sqrt(1.0 - related**2) * Z[:, j]
    return Z


@pytest.mark.parametrize("csr", [False, True], ids=["dense", "csr"])
def test_the_variance_of_eigenvalues_is_that_of_the_correlations(csr):
    for related in (0.0, 0.5, 0.9):
        X = features(4000, 150, related)
        moments = X.T @ X / len(X)
        scale = np.sqrt(moments.diagonal())
        exact = np.linalg.eigvalsh(moments / np.outer(scale, scale)).var()
        found = designs._eigenvalue_variance(sp.csr_array(X) if csr else X)
        assert found == pytest.approx(exact, rel=0.3, abs=0.1)


@pytest.mark.parametrize(("related", "ndim"), [(0.0, 1), (0.9, 2)])
def test_many_features_get_a_matrix_where_they_are_related(related, ndim):
    X = features(6000, 300, related)
    problem = per_class(X, np.arange(6000) % 4, games.zero_one(4), alpha=1e-3)
    metric = problem.design.metric(problem, 1e-3)
    assert metric.ndim == ndim
    if ndim == 2:  # close to the inverse second moments: what they make of it is near the identity
        rows = np.column_stack([X, np.ones(6000)])
        spread = np.linalg.eigvals(metric @ (rows.T @ rows / 6000 + 1e-3 * np.eye(301))).real
        assert 0.2 < spread.min() < spread.max() < 5.0


def test_a_matrix_of_all_rows_is_the_inverse():
    X = features(500, 20, 0.9)
    problem = per_class(X, np.arange(500) % 3, games.zero_one(3), alpha=1e-3)
    rows = np.column_stack([X, np.ones(500)])
    np.testing.assert_allclose(
        problem.design.metric(problem, 0.1), np.linalg.inv(rows.T @ rows / 500 + 0.1 * np.eye(21)), atol=1e-6
    )


def test_a_factored_metric_is_the_inverse_of_the_hessian():
    rng = np.random.default_rng(1)
    A = rng.standard_normal((9, 6))
    H, v = A.T @ A + np.eye(6), rng.standard_normal(6)
    curvature = Curvature(np.linalg.cholesky(H), factored=True)
    np.testing.assert_allclose(H @ curvature.scaled(v), v, atol=1e-12)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix, sp.csr_array])
def test_adjacent_rows_are_those_of_the_slice(kind):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((7, 4)) * (rng.random((7, 4)) < 0.5)
    for part in (slice(0, 3), slice(3, 7), slice(0, 7), slice(4, 4)):
        found = adjacent_rows(kind(X), part)
        np.testing.assert_array_equal(found.toarray() if sp.issparse(found) else found, X[part])
        assert type(found) is type(kind(X))
