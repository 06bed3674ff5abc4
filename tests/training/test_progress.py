"""What a run says of its best weights and its best bound."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from nashlearn.training.progress import Progress, relative_gap

TINY = float(np.finfo(float).tiny)
finite = st.floats(-1e6, 1e6).map(lambda x: round(x, 3))


@given(finite, st.floats(0, 1e6).filter(lambda x: not 1 < x < 4))
def test_the_gap_is_relative_to_the_size_of_the_objective(primal, apart):
    """Corrected losses of hidden labels make objectives negative."""
    found = relative_gap(primal, primal - apart)
    if primal:
        # The exact difference of the two numbers, which rounding may move by a unit of the larger.
        assert found == pytest.approx((primal - (primal - apart)) / abs(primal), rel=1e-12)
    else:
        assert found == (np.inf if apart > 1 else pytest.approx(apart / TINY))


def test_gaps_of_negative_objectives():
    assert relative_gap(-2.0, -3.0) == 0.5
    assert relative_gap(2.0, -1.0) == 1.5
    assert relative_gap(-2.0, -1.0) == 0.0  # a bound above the objective is rounding
    assert relative_gap(np.inf, 0.0) == np.inf
    assert relative_gap(1.0, -np.inf) == np.inf


@given(st.lists(st.tuples(finite, finite), min_size=1, max_size=8))
def test_the_best_of_each_side_is_kept(offers):
    heard = []
    progress = Progress(1e-3, 100, callback=heard.append)
    for t, (primal, dual) in enumerate(offers):
        progress.n_iter = t
        progress.offer(np.array([float(t)]), primal, dual)
        primals, duals = zip(*offers[: t + 1], strict=True)
        assert progress.primal == min(primals) and progress.dual == max(duals)
        assert progress.w[0] == primals.index(min(primals))  # the weights that attain it
        assert progress.gap == relative_gap(min(primals), max(duals))
        assert heard[-1] == progress.rounds[-1]
        assert heard[-1][:1] + heard[-1][2:] == (t, progress.primal, progress.dual, progress.gap)
    assert progress.done == (progress.gap <= 1e-3)


def test_rounding_counts_against_the_gap():
    progress = Progress(1e-3, 100)
    progress.keep(np.ones(1), 2.0, 1.5, 0.1, 0.2)
    assert progress.gap == pytest.approx(0.4) and progress.apparent_gap == 0.25
    progress.keep(np.zeros(1), 1.95, 1.6, 0.2, 0.4)  # less is sure of either
    assert progress.primal == 2.0 and progress.dual == 1.5 and progress.w[0] == 1.0
    progress.keep(np.zeros(1), 1.95, 1.6, 0.1, 0.2)
    assert progress.gap == pytest.approx(0.65 / 1.95) and progress.w[0] == 0.0


def test_weights_are_copied():
    progress, w = Progress(1e-3, 100), np.ones(2)
    progress.keep(w, 1.0, 0.0)
    w[:] = 7.0
    assert progress.w.tolist() == [1.0, 1.0]


def test_what_ends_a_run():
    progress = Progress(0.1, 3, max_time=0.0)
    assert progress.late and not progress.out_of_time and not progress.done  # no weights yet
    progress.n_iter = 2
    assert not progress.exhausted
    progress.n_iter = 3
    assert progress.exhausted and progress.done
    progress.n_iter = 0
    progress.keep(np.ones(1), 1.0, 0.5)
    assert progress.out_of_time and progress.done
    patient = Progress(0.1, 3)
    patient.keep(np.ones(1), 1.0, 0.85)
    assert not patient.done
    patient.keep(np.ones(1), 1.0, 0.95)
    assert patient.done and not patient.exhausted


def test_a_gap_above_tol_is_told():
    progress = Progress(1e-3, 3)
    progress.keep(np.ones(1), -1.0, -1.2)
    with pytest.warns(ConvergenceWarning, match=r"gap of 2\.00e-01, above tol=1\.00e-01"):
        progress.warn_unless(0.1, lambda: "Advice.")
    progress.warn_unless(0.2 + 1e-12, lambda: "Advice.")  # warnings are errors here
