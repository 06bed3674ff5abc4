"""Threads: results in order, the same for any number of them, and the first error for the caller."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest

from nashlearn import games
from nashlearn.games.batch import Batch
from nashlearn.solvers.threads import add_in_order, in_threads, threads


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals to threads")
def test_an_interrupt_while_waiting_leaves_no_thread_at_work():
    """Else threads would go on to write into arrays that the caller has taken back."""
    begun, ended = threading.Event(), []
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a shell runs in the background

    def function(i):
        if threading.current_thread() is threading.main_thread():
            begun.wait()
            return
        begun.set()
        time.sleep(0.1)  # until the main thread waits for this one
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        time.sleep(0.2)
        ended.append(i)

    try:
        with pytest.raises(KeyboardInterrupt):
            threads(2)(function, [(0,), (1,)])
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(ended) == 1


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 7])
def test_results_are_in_the_order_of_the_arguments(n_jobs, count):
    assert threads(n_jobs)(lambda a, b: a - b, [(10 * i, i) for i in range(count)]) == [9 * i for i in range(count)]


def test_so_many_threads_work_at_once():
    # A barrier of three lets nobody pass unless three arguments are worked on at the same time.
    barrier = threading.Barrier(3, timeout=20)
    assert len(threads(3)(lambda i: barrier.wait() >= 0, [(i,) for i in range(3)])) == 3


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_an_error_reaches_the_caller_and_ends_the_work(n_jobs):
    seen = []

    def work(i):
        seen.append(i)
        if i == 4:
            raise KeyError("four")

    with pytest.raises(KeyError, match="four"):
        threads(n_jobs)(work, [(i,) for i in range(10_000)])
    assert len(seen) < 10_000


def test_work_inside_of_work_is_done_though_all_threads_are_taken():
    def outer(i):
        return sum(threads(3)(lambda j: 10 * i + j, [(j,) for j in range(4)]))

    assert threads(3)(outer, [(i,) for i in range(6)]) == [40 * i + 6 for i in range(6)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:This process")
def test_a_forked_process_has_threads_of_its_own():
    """Those of the parent, which wait for work, are not there."""
    assert threads(2)(abs, [(-1,), (-2,)]) == [1, 2]
    child = os.fork()
    if not child:
        barrier = threading.Barrier(2, timeout=20)
        met = threads(2)(lambda i: barrier.wait() >= 0, [(0,), (1,)])
        os._exit(0 if met == [True, True] else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_parts_cover_all_once():
    counts = np.zeros(11, int)

    def work(first, last):
        counts[first:last] += 1

    in_threads(work, 11, 4)
    assert (counts == 1).all()


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_terms_are_added_in_their_order_whoever_is_first(n_jobs):
    added = []

    def late(i):
        time.sleep(0.002 * (i % 3 == 0))
        return i

    add_in_order(threads(n_jobs), late, [(i,) for i in range(20)], added.append)
    assert added == list(range(20))


@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_costs_of_rows_in_pieces_are_those_of_one_thread(smoothing):
    """A row may begin with the strategies of the one before it, and so must know which that is."""
    rng = np.random.default_rng(3)
    game, scores = games.cost(rng.random((5, 5)) * (1 - np.eye(5))), rng.normal(size=(10_000, 5))
    one, three = (game.solve(scores, smoothing=smoothing, n_jobs=jobs) for jobs in (1, 3))
    for name in ("value", "q", "p", "gap"):
        assert np.array_equal(getattr(one, name), getattr(three, name))


@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_rows_in_pieces_are_those_of_one_pass(smoothing):
    scores = np.random.default_rng(0).normal(size=(20_000, 3))
    one, three = (games.zero_one(3).solve(scores, smoothing=smoothing, n_jobs=jobs) for jobs in (1, 3))
    assert np.array_equal(one.q, three.q) and np.array_equal(one.value, three.value)
    scores[19_000, 1] = np.inf
    with pytest.raises(ValueError, match="row 19000 holds"):
        games.zero_one(3).solve(scores, n_jobs=3)


def test_a_part_of_a_batch_is_the_batch_of_its_games():
    rng, sizes = np.random.default_rng(1), [2, 3, 2, 4, 3]
    made = {n: games.matching(n) for n in sizes}
    batch, chosen = Batch([made[n] for n in sizes]), np.array([4, 0, 2])
    scores = rng.normal(size=batch.offset[-1])
    part = batch.part(chosen)
    whole, own = (
        batch.solve(scores),
        part.solve(np.concatenate([scores[batch.offset[i] :][: sizes[i] ** 2] for i in chosen])),
    )
    assert own.value == pytest.approx(whole.value[chosen], abs=1e-8)
    labels = [rng.permutation(n) for n in sizes]
    for vertex, label in zip(batch.split(batch.vertices(labels)), labels, strict=True):
        assert np.array_equal(vertex, np.eye(len(label))[label])
