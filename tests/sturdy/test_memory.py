"""What training keeps besides the data, as docs/long-training.md says it."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from nashlearn import NashClassifier, NashTagger

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
_SLACK = 2e6  # bytes of what does not grow with the data


def peak(fit):
    """Bytes that a fit allocates at most, once all code is loaded."""
    fit()
    tracemalloc.start()
    try:
        fit()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def rows(n, d, k):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, (X @ rng.standard_normal((d, k)) + rng.standard_normal((n, k))).argmax(axis=1)


def test_linear_estimators_keep_five_numbers_for_each_row_and_class():
    n, k = 20_000, 20
    X, y = rows(n, 10, k)
    assert peak(lambda: NashClassifier(max_iter=10).fit(X, y)) <= 5 * 8 * n * k + _SLACK


def test_the_exact_game_keeps_three_numbers_for_each_row_and_class():
    n, k = 100_000, 20
    X, y = rows(n, 10, k)
    model = NashClassifier(smoothing=0.0, max_iter=3, random_state=0)
    assert peak(lambda: model.fit(X, y)) <= 3 * 8 * n * k + 8 * (11 * k) ** 2 + 2 * _SLACK


@pytest.mark.parametrize("smoothing", [0.0, "auto"])
def test_mapped_files_are_read_in_place(tmp_path, smoothing):
    """Beside a tenth of the file, what is kept are numbers for each row and class."""
    n, d, k = 40_000, 200, 3
    X, y = rows(n, d, k)
    mapped = np.memmap(tmp_path / "X", np.float32, "w+", shape=X.shape)
    mapped[:] = X
    model = NashClassifier(smoothing=smoothing, tol=0.1, random_state=0)
    assert peak(lambda: model.fit(mapped, y)) <= 0.1 * mapped.nbytes + 3 * 8 * n * k + 16e6  # blocks of 8 MB


@pytest.mark.parametrize("cache_size", [5, 15, 100])
def test_kernels_keep_two_and_a_half_caches(cache_size):
    n = 1500
    X, y = rows(n, 10, 3)
    most = 2.5 * min(cache_size * 2**20, 8 * n * n)
    assert (
        peak(lambda: NashClassifier(alpha=1e-3, kernel="rbf", cache_size=cache_size, max_iter=5).fit(X, y))
        <= most + _SLACK
    )


def test_structured_estimators_keep_a_hundred_numbers_for_each_weight():
    rng = np.random.default_rng(0)
    X = [sparse.random(6, 10_000, density=1e-3, format="csr", random_state=i) for i in range(200)]
    y = [rng.integers(0, 5, 6) for _ in X]
    model = NashTagger(alpha=1e-3, tol=1e-6, max_iter=40, unseen_pairs=True)
    assert peak(lambda: model.fit(X, y)) <= 8 * 105 * model.coef_.size + _SLACK
