"""Sums that do not depend on who takes them, and partitions that are made where they are read."""

from __future__ import annotations

import operator
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from small_models import KINDS

from nashlearn import NashClassifier
from nashlearn.arrays import aligned
from nashlearn.dask.answers import _answered
from nashlearn.dask.reduction import Partitions, pairwise

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

from nashlearn.dask.collections import row_partitions  # noqa: E402
from nashlearn.dask.recipes import joined, recipes, threads, walked  # noqa: E402


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=70), st.integers(0, 5))
def test_sums_of_bundles_are_those_of_partitions_to_the_last_bit(values, power):
    size = 2**power
    bundles = [pairwise(values[i : i + size], operator.add) for i in range(0, len(values), size)]
    eights = [pairwise(bundles[i : i + 8], operator.add) for i in range(0, len(bundles), 8)]
    assert pairwise(values, operator.add) == pairwise(bundles, operator.add) == pairwise(eights, operator.add)
    assert pairwise(values, operator.add) == pytest.approx(sum(values), abs=1e-6)


def _made(parts, rows=50):
    make = dask.delayed(lambda seed: np.random.default_rng(seed).standard_normal((rows, 3)), pure=True)
    return da.concatenate([da.from_delayed(make(seed), (rows, 3), dtype=float) for seed in range(parts)])


@pytest.mark.parametrize("parts", [1, 7, 100])
def test_recipes_make_what_dask_makes(parts):
    X = _made(parts) * 2.0
    found = recipes(row_partitions(X, y=X[:, 0] > 0, sample_weight=None))
    made = list(walked(joined(found)))
    assert len(made) == parts and all(weight is None for _, _, weight in made)
    assert np.array_equal(np.concatenate([x for x, _, _ in made]), X.compute())
    assert np.array_equal(np.concatenate([y for _, y, _ in made]), (X[:, 0] > 0).compute())


def test_a_pass_takes_as_many_tasks_for_few_partitions_as_for_many():
    with dask.config.set(scheduler="synchronous"):
        for parts in (30, 300):
            bundles = Partitions([(x,) for (x,) in row_partitions(_made(parts, 2))], bundled=True)._bundles
            assert len(bundles) <= 8 * threads() + 1
        assert len(joined(recipes(row_partitions(_made(300, 2))))) < 300 * 200  # bytes


def test_data_in_memory_and_what_partitions_share_is_left_to_dask():
    assert recipes(row_partitions(da.from_array(np.ones((30_000, 4)), chunks=(10_000, 4)))) is None
    X = _made(4)
    assert recipes(row_partitions(X - X.mean(axis=0))) is None


def _not_aligned(x: np.ndarray) -> np.ndarray:
    return np.frombuffer(b"\0" + x.tobytes(), dtype=np.uint8)[1:].view(x.dtype).reshape(x.shape)


def test_arrays_that_a_message_holds_anywhere_are_moved():
    x = np.arange(6.0).reshape(2, 3)
    moved = aligned([(_not_aligned(x), 1), [x], "text"])
    assert moved[0][0].flags.aligned and np.array_equal(moved[0][0], x)
    assert moved[0][1] == 1 and moved[1][0] is x and moved[2] == "text"
    matrix = sp.csr_array(x)
    matrix.data = _not_aligned(matrix.data)
    assert aligned(matrix).data.flags.aligned and np.array_equal(matrix.toarray(), x)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 2
    here, there = (NashClassifier(random_state=0).fit(own, y) for own in (X, _not_aligned(X)))
    assert here.objective_ == there.objective_


def _sent(value):
    """What arrives of a value where all arrays of its message lie at odd addresses."""
    found: list[pickle.PickleBuffer] = []
    message = pickle.dumps(value, protocol=5, buffer_callback=found.append)
    return pickle.loads(message, buffers=[memoryview(bytearray(b"\0" + one.raw().tobytes()))[1:] for one in found])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # small models need not end
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_models_that_were_sent_answer_alike(kind):
    trial = KINDS[kind](np.random.default_rng(0))
    model = trial.model.fit(trial.X, trial.y, **trial.fit)
    right, found = model.strategy(trial.X), _answered(type(model).strategy, _sent(model), _sent(trial.X))
    assert all(np.array_equal(one, other) for one, other in zip(right, found, strict=True))
