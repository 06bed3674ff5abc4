"""What a run says of its best weights and its best bound."""

from __future__ import annotations

import threading
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from nashlearn.training import train
from nashlearn.training.driver import Method, Offer
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
        contradicted = max(duals) - min(primals) > 1e-6 * abs(min(primals))  # nothing is proven by either then
        assert progress.gap == (np.inf if contradicted else relative_gap(min(primals), max(duals)))
        assert heard[-1] == progress.rounds[-1]
        assert heard[-1][:1] + heard[-1][2:] == (t, progress.primal, progress.dual, progress.gap)
    assert progress.done == (progress.apparent_gap <= 1e-3)


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


class Clock:
    """A clock that is set by hand, in place of the module ``time``."""

    def __init__(self):
        self.now = 100.0

    def perf_counter(self):
        return self.now

    monotonic = perf_counter


def test_silence_is_broken_after_a_second_and_later_after_a_tenth_of_the_run(monkeypatch, capsys):
    clock = Clock()
    monkeypatch.setattr("nashlearn.training.progress.time", clock)
    progress, spoke = Progress(1e-3, 100, verbose=1), []
    for i in range(1, 601):
        clock.now = 100.0 + 0.2 * i
        if i == 300:
            progress.n_iter = 7
            progress.offer(np.ones(1), 1.0, 0.5)
        else:
            progress.pulse()
        if said := capsys.readouterr().out:
            spoke.append(0.2 * i)
            assert f"{0.2 * i:8.2f} s" in said
            assert ("no certificate yet" in said) == (i < 300) and ("gap 5.00e-01 so far" in said) == (i > 300)
    assert spoke[0] <= 1.0 and spoke[1] <= 2.0
    assert all(later - sooner <= 0.1 * later + 0.4 for sooner, later in pairwise(spoke[9:]))
    assert len(spoke) < 60  # it does not babble


class Waits(Method):
    """A method whose only update lasts until somebody has spoken."""

    needs, states = (), ()

    def __init__(self, spoken):
        self.spoken = spoken

    def init(self, run):
        assert self.spoken.wait(60)
        return SimpleNamespace(over=True), Offer(np.zeros(1), 1.0, 1.0)

    def shape(self, problem):
        return (1,)


@pytest.mark.parametrize("verbose", [0, 1])
def test_a_method_that_says_nothing_is_spoken_for(verbose, monkeypatch):
    """From another thread, while the method is at work; and nobody speaks unasked."""
    spoken, clock = threading.Event(), Clock()
    monkeypatch.setattr("nashlearn.training.progress.time", clock)

    def pulse(self):
        clock.now += 1.0
        before(self)
        spoken.set()

    before = Progress.pulse
    monkeypatch.setattr(Progress, "pulse", pulse)
    if not verbose:
        spoken.set()
    lines = []
    monkeypatch.setattr("builtins.print", lambda text, flush: lines.append(text))
    train(SimpleNamespace(complete=True, alpha=1.0), Waits(spoken), tol=0.1, max_iter=3, verbose=verbose)
    assert bool(lines) == bool(verbose)
    assert not verbose or ("no certificate yet" in lines[0] and any("objective 1" in line for line in lines))
    assert not [thread for thread in threading.enumerate() if thread.name == "nashlearn-heartbeat"]
