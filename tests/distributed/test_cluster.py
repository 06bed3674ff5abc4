"""On a real cluster of processes: workers that die, data larger than memory, joblib's backends."""

from __future__ import annotations

import os
import signal

import joblib
import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_score

from nashlearn import NashClassifier, NashTagger

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
db = pytest.importorskip("dask.bag")
distributed = pytest.importorskip("distributed")

# Whatever the event loops of a cluster that was shot at leave behind is not ours to judge.
pytestmark = pytest.mark.filterwarnings("ignore")


def _part(seed, rows, d):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, d))
    return X, (X[:, :3] + rng.gumbel(size=(rows, 3))).argmax(axis=1)


def generated(parts, rows, d):
    """Rows and labels that are made partition by partition, wherever they are needed."""
    make = dask.delayed(_part, nout=2, pure=True)
    pairs = [make(seed, rows, d) for seed in range(parts)]
    X = da.concatenate([da.from_delayed(X, (rows, d), dtype=float) for X, _ in pairs])
    return X, da.concatenate([da.from_delayed(y, (rows,), dtype=np.int64) for _, y in pairs])


@pytest.fixture
def client(tmp_path):
    """Two worker processes of one thread each, connected to."""
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "60s"}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit="1GB", dashboard_address=None, local_directory=str(tmp_path)
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


class Assassin:
    """A callback that kills a worker, with no chance to say good-bye, in the given round."""

    def __init__(self, client, n_iter):
        self.client, self.n_iter, self.victim = client, n_iter, None

    def __call__(self, now):
        if now.n_iter >= self.n_iter and self.victim is None:
            self.victim = next(iter(self.client.run(os.getpid).values()))
            os.kill(self.victim, signal.SIGKILL)


def _survives(client, parts, rows):
    X, y = generated(parts, rows, 8)
    with dask.config.set(scheduler="synchronous"):
        expected = NashClassifier(tol=1e-3).fit(X, y)
    assassin = Assassin(client, 2)
    model = NashClassifier(tol=1e-3, callback=assassin).fit(X, y)
    assert assassin.victim is not None and assassin.victim not in client.run(os.getpid).values()
    assert model.dual_gap_ <= 1e-3
    # Sums are taken in the same order whoever takes them: the very same weights, though half of the cluster died.
    assert np.array_equal(model.coef_, expected.coef_) and model.objective_ == expected.objective_


def test_a_killed_worker_changes_nothing(client):
    _survives(client, parts=11, rows=200)


@pytest.mark.slow
def test_a_killed_worker_changes_nothing_in_the_middle_of_long_passes(client):
    _survives(client, parts=40, rows=10_000)


@pytest.mark.slow
def test_persisted_partitions_are_spilled_and_survive_a_worker(client):
    X, y = generated(parts=48, rows=80_000, d=50)  # 1.5 GB for workers that keep 0.6 GB each in memory
    X, y = client.persist([X, y])
    distributed.wait([X, y])
    spilled = client.run(lambda dask_worker: len(dask_worker.data.disk))
    assert sum(spilled.values()) > 0
    assassin = Assassin(client, 2)
    model = NashClassifier(tol=1e-2, callback=assassin).fit(X, y)
    assert assassin.victim is not None and model.dual_gap_ <= 1e-2
    parts = [_part(seed, 80_000, 50) for seed in range(4)]
    few = NashClassifier(tol=1e-3).fit(np.concatenate([X for X, _ in parts]), np.concatenate([y for _, y in parts]))
    assert model.objective_ == pytest.approx(few.objective_, rel=2e-2)


@pytest.mark.slow
def test_bags_survive_a_killed_worker(client):
    rng = np.random.default_rng(0)
    X = [rng.standard_normal((size, 3)) for size in rng.integers(2, 9, 300)]
    y = [(x + rng.gumbel(size=x.shape)).argmax(axis=1) for x in X]
    assassin = Assassin(client, 2)
    there = NashTagger(tol=1e-4, alpha=1e-2, callback=assassin)
    there.fit(db.from_sequence(X, npartitions=10), db.from_sequence(y, npartitions=10))
    here = NashTagger(tol=1e-4, alpha=1e-2).fit(X, y)
    assert assassin.victim is not None and there.dual_gap_ <= 1e-4
    assert there.objective_ == pytest.approx(here.objective_, rel=2e-4)


def _folds(backend):
    X, y = load_iris(return_X_y=True)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        return cross_val_score(NashClassifier(random_state=0), X, y, cv=4)


def test_joblib_backends_agree():
    assert np.array_equal(_folds("sequential"), _folds("threading"))
    assert np.array_equal(_folds("sequential"), _folds("loky"))


@pytest.mark.slow
def test_the_dask_backend_of_joblib_agrees(client):
    assert np.array_equal(_folds("sequential"), _folds("dask"))
