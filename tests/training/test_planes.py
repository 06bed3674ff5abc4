"""Lower bounds from planes, against the quadratic programme over all their mixtures."""

from __future__ import annotations

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from nashlearn.training.methods.planes import Planes
from nashlearn.training.state import packed, unpacked

SIZE = 4


def best_bound(slopes, offset, alpha) -> float:
    """``max_x <offset, x> - |x slopes|^2 / (2 alpha)`` over mixtures: the least ``alpha/2 |w|^2 + t`` above all."""
    count, size = slopes.shape
    P = sp.diags(np.r_[np.full(size, alpha), 0.0]).tocsc()
    A = sp.csc_matrix(np.column_stack([slopes, -np.ones(count)]))
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = 1e-11
    c = np.r_[np.zeros(size), 1.0]
    return clarabel.DefaultSolver(P, c, A, -offset, [clarabel.NonnegativeConeT(count)], options).solve().obj_val


def drawn(seed: int, count: int, size: int = SIZE):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(count, size)), rng.random(count), -rng.random(count)


@given(st.integers(0, 2**32 - 1), st.integers(1, 8), st.sampled_from([0.0, 0.7]), st.sampled_from([0.3, 2.0]))
def test_the_bound_is_the_optimum_of_the_planes_that_are_kept(seed, count, smoothing, alpha):
    slopes, entropy, omega = drawn(seed, count)
    planes = Planes.none(SIZE, 9)
    for plane in zip(slopes, entropy, omega, strict=True):
        planes.add(*plane)
    assert planes.bound(alpha, smoothing) == pytest.approx(
        best_bound(slopes, entropy - smoothing * omega, alpha), abs=1e-7
    )


@given(
    st.integers(0, 2**32 - 1),
    st.integers(10, 40),
    st.sampled_from([0.0, 0.7]),
    st.sampled_from([SIZE, 30]),
    st.integers(1, 4),
)
@settings(max_examples=20)
def test_merged_planes_bound_from_below(seed, count, smoothing, size, stride):
    """Of the larger size the best mixture takes all planes, so that planes in use have to merge.

    As in a line search, some planes come between two bounds.
    """
    slopes, entropy, omega = drawn(seed, count, size)
    planes, last = Planes.none(size, 7), -np.inf
    for t in range(count):
        planes.add(slopes[t], entropy[t], omega[t])
        if t % stride and t < count - 1:
            continue
        bound = planes.bound(0.5, smoothing)
        best = best_bound(slopes[: t + 1], entropy[: t + 1] - smoothing * omega[: t + 1], 0.5)
        assert last - 1e-7 <= bound <= best + 1e-7  # the best mixture so far is never thrown away
        last = bound


@pytest.mark.parametrize(("size", "little"), [(SIZE, 0.001), (30, 0.3)])
def test_merging_loses_little(size, little):
    """Of bounds between -0.7 and 1, in the median of 40 draws."""
    lost = []
    for seed in range(40):
        slopes, entropy, _ = drawn(seed, 25, size)
        planes = Planes.none(size, 7)
        for slope, own in zip(slopes, entropy, strict=True):
            planes.add(slope, own, 0.0)
            bound = planes.bound(0.5, 0.0)
        lost.append(best_bound(slopes, entropy, 0.5) - bound)
    assert np.median(lost) <= little


@given(st.integers(0, 2**32 - 1), st.integers(1, 30))
@settings(max_examples=15)
def test_a_mixture_bounds_every_smoothing(seed, count):
    slopes, entropy, omega = drawn(seed, count)
    planes = Planes.none(SIZE, 7)
    for t in range(count):
        planes.add(slopes[t], entropy[t], omega[t])
        found = planes.bound(0.5, 0.7)
    assert planes.mixed(0.5, 0.7) == pytest.approx(found, abs=1e-12)
    assert planes.mixed(0.5, 0.0) <= best_bound(slopes, entropy, 0.5) + 1e-7
    assert planes.mixed(0.5, 2.0) <= best_bound(slopes, entropy - 2.0 * omega, 0.5) + 1e-7
    again = unpacked(Planes, {name: array.copy() for name, array in packed(planes).items()})
    assert again.mixed(0.5, 2.0) == planes.mixed(0.5, 2.0)
    assert again.bound(0.3, 0.1) == planes.bound(0.3, 0.1)


def test_one_plane():
    planes = Planes.none(SIZE)
    assert planes.bound(1.0, 0.0) == planes.mixed(1.0, 0.0) == -np.inf
    planes.add(np.array([1.0, 2.0, 0.0, 2.0]), 0.75, -0.5)
    for alpha, smoothing in ((2.0, 0.0), (0.5, 0.0), (2.0, 1.5)):
        expected = 0.75 + 0.5 * smoothing - 9.0 / (2.0 * alpha)
        assert planes.bound(alpha, smoothing) == pytest.approx(expected, rel=1e-15)
        assert planes.mixed(alpha, smoothing) == pytest.approx(expected, rel=1e-15)


def test_a_plane_of_unknown_smoothing_bounds_the_game_alone():
    planes = Planes.none(SIZE)
    planes.add(np.zeros(SIZE), 0.75, np.inf)
    assert planes.bound(1.0, 0.3) == -np.inf
    assert planes.bound(1.0, 0.0) == 0.75
    assert planes.mixed(1.0, 0.3) == -np.inf
    planes.add(np.zeros(SIZE), 0.25, -1.0)
    assert planes.bound(1.0, 0.3) == pytest.approx(0.55)
