"""What the compiled functions of matchings refuse."""

from __future__ import annotations

import numpy as np
import pytest

from nashlearn.kernels.assignment import argmax_each
from nashlearn.kernels.birkhoff import project_each
from nashlearn.kernels.matchings import certify_matchings, solve_matchings

_fine, _read_only = np.zeros((2, 3, 3)), np.zeros((2, 3, 3))
_read_only.flags.writeable = False


def solved(scores, weights=_fine[0], partial=False, smoothing=0.0, start=0, stop=2, q=None):
    q = np.empty((2, 3, 3)) if q is None else q
    found = np.empty(2), q, np.empty((2, 3, 3)), np.empty(2), np.empty(2), np.empty(2)
    solve_matchings(scores, weights, partial, smoothing, 1e-9, start, stop, *found)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: solved(np.zeros((2, 3, 4))), "scores must be square"),
        (lambda: solved(np.zeros((2, 0, 3)), partial=True), "scores must have a last row"),
        (lambda: solved(_fine.astype(np.float32)), "scores must be a C-contiguous array of float64"),
        (lambda: solved(np.zeros((2, 3, 6))[:, :, ::2]), "scores .* not contiguous"),
        (lambda: solved(_fine, weights=np.ones((2, 2))), "weights must be"),
        (lambda: solved(_fine, smoothing=-1.0), "smoothing must not be negative"),
        (lambda: solved(_fine, start=-1), "start and stop"),
        (lambda: solved(_fine, stop=3), "start and stop"),
        (lambda: solved(_fine, q=_read_only), "q must be .* read-only"),
        (lambda: argmax_each(_fine, False, np.empty((2, 2), np.intp)), "column must be"),
        (lambda: argmax_each(_fine, True, np.empty((2, 2))), "column must be"),
        (lambda: project_each(_fine, False, 1e-12, np.empty((2, 3, 3)), np.empty(3)), "residual must be"),
        (lambda: certify_matchings(_fine, _fine[0], False, 0.0, _fine[:1], _fine, np.empty(2)), "p must be"),
    ],
)
def test_compiled_entries_refuse_what_is_no_game(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_what_allows_no_matching_has_no_certificate():
    gap, anything = np.zeros(1), np.full((1, 2, 2), 0.5)
    certify_matchings(np.full((1, 2, 2), -np.inf), np.ones((2, 2)), False, 0.0, anything, anything, gap)
    assert np.isnan(gap).all()
