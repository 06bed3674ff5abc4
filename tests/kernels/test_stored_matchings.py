"""Games of matchings and the interior point method give the numbers that 0.1 gave, whose kernels Numba compiled.

``tests/stored/matchings-0.1.npz`` holds what 0.1 was asked and what it answered, an array for each case: scores with
ties, -inf, NaN, 1e8 in common, and without any matching. Sums may be taken in another order, which the last steps of
an interior point method make much of: they move what is not unique, and a unique strategy as far as the gap admits.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nashlearn.kernels.assignment import argmax_each
from nashlearn.kernels.birkhoff import project_each
from nashlearn.kernels.interior import solve_saddle
from nashlearn.kernels.matchings import solve_matchings

STORED = np.load(Path(__file__).parents[1] / "stored" / "matchings-0.1.npz")
SMOOTHING = (0.0, 0.05, 1.0)


def parts(stored, *shapes):
    """Consecutive arrays of the given shapes."""
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes[:-1]])
    return [part.reshape(shape) for part, shape in zip(np.split(stored, ends), shapes, strict=True)]


def assert_close(found, stored, bound):
    assert (np.isnan(found) == np.isnan(stored)).all()
    assert (np.abs(np.where(np.isnan(stored), 0.0, found - stored)) <= bound).all()


@pytest.mark.parametrize("name", [name for name in STORED if not name.startswith("saddle")])
def test_matchings(name):
    n1, n2, kind, scores, _ = name.split()
    partial = kind == "partial"
    rows, shape = int(n1), (int(n1) + partial, int(n2) + partial)
    f, weights, values, q, infeasible, column, x = parts(
        STORED[name], (3, *shape), shape, (3, 3), (3, *shape), (1,), (3, rows), (3, *shape)
    )
    size = 1.0 + np.abs(f[np.isfinite(f)]).max(initial=0.0)
    value, gap, entropy, risk, residual = np.empty((5, 3))
    own_q, own_p = np.zeros((2, 3, *shape))
    for smoothing, stored in zip(SMOOTHING, values, strict=True):
        solve_matchings(f, weights, partial, smoothing, 1e-9, 0, 3, value, own_q, own_p, gap, entropy, risk)
        assert_close(value, stored, 1e-13 * np.fmax(1.0, np.abs(stored)))
    assert_close(own_q, q, 1e-7 * size)
    if scores != "nan":
        own, nearest = np.full((3, rows), -7), np.zeros((3, *shape))  # as 0.1 found them
        assert argmax_each(f, partial, own) == infeasible[0]
        assert (own == column).all()
        assert project_each(f, partial, 1e-12, nearest, residual) == infeasible[0]
        assert_close(nearest, x, 1e-15 * size)


@pytest.mark.parametrize("name", [name for name in STORED if name.startswith("saddle")])
def test_the_first_steps_of_interior_points(name):
    m, R, K, mu_p, mu_q, steps = STORED[name][:6]
    m, R, K = int(m), int(R), int(K)
    _, reward, cost, weight, row, first, equality, residual, x, y, lam, member = parts(
        STORED[name], (6,), (m,), (m,), (m,), (m,), (m + 1,), (K,), (1,), (2, m), (2, R), (2, K), (-1,)
    )
    found = np.zeros((2, m)), np.zeros((2, R)), np.zeros((2, K))
    indices = row.astype(np.intp), R, first.astype(np.intp), member.astype(np.intp), equality > 0
    game = reward, cost, weight, mu_p, mu_q, *indices
    assert solve_saddle(*game, 1e-10, int(steps), False, *found) == pytest.approx(residual[0], rel=1e-12)
    for own, stored in zip(found, (x, y, lam), strict=True):
        assert_close(own, stored, 1e-12)
