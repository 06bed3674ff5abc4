"""Structures that are solved loosely: the gap reported is that of the strategies returned, by enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from cases import Case, omega
from shipped_games import SHIPPED

INTERIOR = [case for case in SHIPPED if "compiled" in case.smoothed]  # solved by the interior point method
PIVOTED = ["arborescence-single"]  # but these by pivots without smoothing, to the last digits whatever the tolerance


def outside(case: Case, x: np.ndarray) -> np.ndarray:
    """How far arrays are from the sums of rows and columns, over labels of arcs, that all vertices have in common."""
    V, x = (one.reshape(-1, *case.game.shape[:2], case.dim // np.prod(case.game.shape[:2])) for one in (case.labels, x))
    far = np.zeros(len(x))
    for axis in ((1, 3), (2, 3)):
        own, wanted = x.sum(axis=axis), V.sum(axis=axis)
        far = np.maximum(far, np.abs(own - wanted[0])[:, (wanted == wanted[0]).all(axis=0)].max(axis=1, initial=0.0))
    return far


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("smoothing", [0.0, 0.4])
@pytest.mark.parametrize("case", INTERIOR, ids=lambda case: case.id)
def test_loose_solutions_know_their_gap(case, smoothing):
    theta = np.random.default_rng(1).normal(size=(40, case.dim)) * np.logspace(-1, 0.7, 40)[:, None]
    theta[:, ~case.labels.any(axis=0)] = 0.0
    widest, told = 0.0, []
    for tol in (0.3, 1e-2, 1e-4):
        found = case.game.solve(theta.reshape(-1, *case.game.shape), tol=tol, smoothing=smoothing)
        p, q = found.p.reshape(theta.shape), found.q.reshape(theta.shape)
        lower = np.array([t @ y + case.risk(y) for t, y in zip(theta, q, strict=True)]) - smoothing * omega(case, q)
        slope = theta - smoothing * (q - 0.5)
        upper = np.array([case.upper(t, x) for t, x in zip(slope, p, strict=True)]) + smoothing / 2 * (q * q).sum(
            axis=1
        )
        # Loose strategies miss the polytope by a little: their scores are known to no more than that.
        away = np.maximum(outside(case, p), outside(case, q))
        slack = 1e-9 + away * (np.abs(case.L).max() * case.dim + np.abs(theta).sum(axis=1))
        assert (np.abs(found.value - lower) <= slack).all()
        # Smoothing is bounded linearly at strategies of trees before they are moved into the polytope.
        slack += 0.1 * found.gap if smoothing else 0.0
        assert (np.abs(found.gap - (upper - lower)) <= slack).all()
        widest, told = max(widest, found.gap.max()), [*told, *(slack <= 0.3 * found.gap + 1e-6)]
    if case.id in PIVOTED and smoothing == 0.0:
        assert widest <= 1e-13 * (1.0 + np.abs(theta).sum(axis=1).max())
        return
    assert widest > 1e-3
    assert np.mean(told) > 0.5 or "partial" in case.id  # else this would say nothing
