"""Certificates of kernels where differences of rows are small beside the rows themselves."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning

from nashlearn import NashClassifier
from nashlearn.training.designs.gram import Kernel
from nashlearn.training.progress import Progress

RNG = np.random.default_rng(7)
X = np.round(1024.0 * RNG.normal(size=(120, 3))) / 1024.0  # so that moving them by whole numbers loses nothing
Y = np.argmax(X + RNG.gumbel(size=X.shape), axis=1)
WIDTH = 0.4


def fitted(rows, tol=1e-3, alpha=1e-4, smoothing=0.0, **options):
    model = NashClassifier(alpha=alpha, smoothing=smoothing, tol=tol, max_time=5.0, random_state=0, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(rows, Y)


def certifies_nothing_false(model, optimum):
    """The objective is no less than the optimum and the bound no more, as far as that is known itself."""
    assert model.objective_ >= optimum.objective_ * (1.0 - optimum.dual_gap_)
    return model.objective_ * (1.0 - model.dual_gap_) <= optimum.objective_


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("offset", [1e5, 1e8, 1e11])
def test_rows_far_from_the_origin_have_the_optimum_of_those_near_it(offset, smoothing):
    near = fitted(X, tol=1e-6, smoothing=smoothing, kernel="rbf", gamma=WIDTH)
    far = fitted(X + offset, smoothing=smoothing, kernel="rbf", gamma=WIDTH)
    assert near.dual_gap_ <= 1e-6
    assert far.dual_gap_ <= 1e-3
    assert certifies_nothing_false(far, near)
    assert np.allclose(far.decision_function(X + offset), fitted(X, kernel="rbf", gamma=WIDTH, smoothing=smoothing)
                       .decision_function(X), atol=0.2)  # fmt: skip


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("offset", [1e4, 1e6, 1e8])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_rows_far_from_each_other_certify_no_more_than_rounding_leaves(form, offset, smoothing):
    """No centre brings two such clusters near; nor can sparse rows be moved."""
    rows = X.copy()
    rows[::2] += offset
    exact = np.exp(-WIDTH * cdist(rows, rows, "sqeuclidean"))
    optimum = fitted(exact, tol=1e-6, smoothing=smoothing, kernel="precomputed")
    assert certifies_nothing_false(fitted(form(rows), smoothing=smoothing, kernel="rbf", gamma=WIDTH), optimum)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
def test_values_are_as_wrong_as_kernels_say(kernel, form, offset):
    rows = (X + offset).astype(np.longdouble)
    gamma = WIDTH / (1.0 + offset**2) if kernel == "poly" else WIDTH
    apart = rows[:, None] - rows
    right = {
        "rbf": lambda: np.exp(-gamma * np.square(apart).sum(axis=2)),
        "laplacian": lambda: np.exp(-gamma * np.abs(apart).sum(axis=2)),
        "poly": lambda: (gamma * (rows @ rows.T) + 1.0) ** 3,
    }[kernel]()
    own = Kernel(kernel, gamma, 3, 1.0, form(X + offset))
    found, wrong = own(form(X + offset), form(X + offset)), own.untrue(form(X + offset), np.diagonal(right))
    assert (np.abs(found - right) <= wrong[:, None] + wrong).all()
    assert wrong.max() <= (1e-12 if not offset or form is np.asarray else 1e-2)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_gamma_scale_is_that_of_svc(form, kind, offset):
    rows = (X + offset).astype(kind)
    right = 1.0 / (X.shape[1] * rows.astype(np.float64).var())
    assert Kernel("rbf", "scale", 3, 0.0, form(rows))._pairs.keywords["gamma"] == pytest.approx(right, rel=1e-9)


def test_a_bound_above_the_objective_certifies_nothing():
    """As of kernels that are not positive semidefinite: one of the two is false, and nobody knows which."""
    progress = Progress(1e-3, 10)
    progress.keep(np.ones(1), 1.0, 1.0 + 1e-9)  # rounding
    assert progress.gap == 0.0
    progress.keep(np.ones(1), 1.0, 1.5, 0.1, 0.1)
    assert progress.gap == np.inf
    with pytest.warns(
        ConvergenceWarning, match=r"certifies nothing: its lower bound, 1\.5, lies above the objective, 1"
    ):
        progress.warn_unless(1e-3, lambda: "")


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("value", [0.0, 1e9])
def test_rows_that_are_all_alike_are_trained_on(value, smoothing):
    """Their scores at coefficients that sum to 0 are nothing but rounding."""
    model = fitted(np.full_like(X, value), smoothing=smoothing, kernel="rbf")
    assert model.dual_gap_ <= 1e-3


def test_a_variance_that_overflows_is_refused():
    with (
        pytest.raises(ValueError, match="gamma='scale' needs the variance of X, which overflows"),
        np.errstate(all="ignore"),
    ):
        fitted(1e200 * X, kernel="rbf")
