"""Dask arrays and dataframes: the same optimum, the same answers, and refusals that say why."""

from __future__ import annotations

import subprocess
import sys
import threading
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from nashlearn import NashAbstainer, NashClassifier, NashOrdinalClassifier

# That words have no order is said, and tested elsewhere.
pytestmark = pytest.mark.filterwarnings("ignore:y holds words and no order")

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
pd = pytest.importorskip("pandas")

COSTS = [[0.0, 1.0, 4.0], [2.0, 0.0, 1.0], [3.0, 1.0, 0.0], [0.7, 0.7, 0.7]]
ESTIMATORS = [
    NashClassifier(tol=1e-4),
    NashClassifier(tol=1e-4, smoothing=0),
    NashClassifier(COSTS, tol=1e-4, smoothing=0.1),
    NashClassifier(COSTS, tol=1e-4, smoothing=0),
    NashClassifier("absolute", fit_intercept=False, class_weight="balanced", tol=1e-4),
    NashClassifier("absolute", fit_intercept=False, class_weight="balanced", tol=1e-4, smoothing=0),
    NashAbstainer(0.3, class_weight={"b": 3.0}, tol=1e-4),
    NashAbstainer(0.3, class_weight={"b": 3.0}, tol=1e-4, smoothing=0),
    NashOrdinalClassifier(order=["c", "a", "b", "never"], tol=1e-4),
    NashOrdinalClassifier(order=["c", "a", "b"], tol=1e-4, smoothing=0),
]


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def rows(n=900, d=6, seed=0):
    """Features of very different sizes, three labels, weights with zeros among them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.array(["a", "b", "c"])[(X @ rng.standard_normal((d, 3)) + rng.gumbel(size=(n, 3))).argmax(axis=1)]
    return X * np.logspace(-1, 1, d), y, rng.integers(0, 4, n).astype(float)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_certified_optimum_is_that_of_one_machine(estimator):
    X, y, weight = rows()
    here = clone(estimator).fit(X, y, weight)
    parts = da.from_array(X, chunks=(200, 4)), da.from_array(y, chunks=333), da.from_array(weight, chunks=100)
    there = clone(estimator).fit(*parts)
    assert there.dual_gap_ <= there.tol
    assert here.objective_ * (1 - 1e-9) <= there.objective_ <= here.objective_ * (1 + 2 * there.tol)
    assert np.array_equal(here.classes_, there.classes_) and here.coef_.shape == there.coef_.shape
    assert there.history_[-1].gap == there.dual_gap_
    # The certificate and the bound on the risk are those of the weights that were returned.
    assert there.moment_radius() == pytest.approx(here.moment_radius(), rel=1e-10)
    for radius in (0.0, 0.1):
        assert there.worst_case_risk(radius) == pytest.approx(here.worst_case_risk(radius), rel=0.05)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_answers_are_lazy_and_those_of_arrays(estimator):
    X, y, weight = rows()
    model = clone(estimator).fit(X, y)
    blocks = da.from_array(X, chunks=(250, 3))
    names = ["predict", "predict_proba", "strategy", "decision_function"]
    names += ["predict_or_abstain", "abstain_proba"] * hasattr(model, "abstain_proba")
    for name in names:
        lazy, eager = getattr(model, name)(blocks), getattr(model, name)(X)
        assert isinstance(lazy, da.Array) and lazy.chunks[0] == blocks.chunks[0]
        assert lazy.dtype == eager.dtype and lazy.shape == eager.shape
        assert np.allclose(lazy.compute(), eager, atol=1e-12) if eager.dtype.kind == "f" else (lazy == eager).all()
    assert model.task_loss(blocks, y, weight) == pytest.approx(model.task_loss(X, y, weight), rel=1e-12)
    if not (isinstance(model, NashClassifier) and model._game.n_options == 4):
        assert model.score(blocks, da.from_array(y, chunks=90)) == pytest.approx(model.score(X, y), rel=1e-12)


def test_dataframes_keep_their_names_and_need_no_lengths():
    dd = pytest.importorskip("dask.dataframe")
    X, y, _ = rows()
    frame = pd.DataFrame(X, columns=list("uvwxyz"))
    blocks, labels = dd.from_pandas(frame, npartitions=4), dd.from_pandas(pd.Series(y), npartitions=4)
    here, there = NashClassifier(tol=1e-4).fit(frame, y), NashClassifier(tol=1e-4).fit(blocks, labels)
    assert there.objective_ == pytest.approx(here.objective_, rel=2e-4)
    assert list(there.feature_names_in_) == list("uvwxyz")
    proba = there.predict_proba(blocks)
    assert proba.shape[1] == 3 and np.allclose(proba.compute(), there.predict_proba(frame))
    assert (there.predict(blocks).compute() == there.predict(frame)).all()
    assert there.score(blocks, labels) == pytest.approx(there.score(frame, y))
    with pytest.raises(ValueError, match="feature names"):
        there.predict(blocks.rename(columns={"u": "other"}))


def test_partitions_may_be_sparse_empty_single_precision_or_lack_a_class():
    X, y, _ = rows()
    X[np.abs(X) < 0.3] = 0.0
    order = np.argsort(y)  # each partition sees one label or two
    X, y = X[order].astype(np.float32), y[order]
    cuts = [0, 0, 300, 500, 900]
    meta = sp.csr_matrix((0, X.shape[1]), dtype=np.float32)
    pieces = [
        da.from_delayed(dask.delayed(sp.csr_matrix)(X[a:b]), (b - a, X.shape[1]), meta=meta) for a, b in pairwise(cuts)
    ]
    blocks = da.concatenate(pieces)
    here, there = NashClassifier(tol=1e-4).fit(X, y), NashClassifier(tol=1e-4).fit(blocks, y)
    assert there.objective_ == pytest.approx(here.objective_, rel=2e-4)
    assert (there.predict(blocks).compute() == there.predict(X)).all()


def test_result_does_not_depend_on_the_scheduler_and_is_resumed_from_its_own_weights():
    X, y, _ = rows()
    blocks = da.from_array(X, chunks=(50, 6))
    weights = []
    for scheduler in ("synchronous", "threads"):
        with dask.config.set(scheduler=scheduler):
            model = NashClassifier(tol=1e-3, warm_start=True).fit(blocks, y)
            weights.append(model.coef_)
    assert np.array_equal(*weights)
    first = model.n_iter_
    assert model.fit(blocks, y).n_iter_ < first


def test_checkpoints_go_on_and_belong_to_their_data(tmp_path):
    X, y, _ = rows()
    blocks = da.from_array(X, chunks=(200, 6))
    options = {"alpha": 1e-4, "tol": 1e-5, "checkpoint": tmp_path / "run"}
    whole = NashClassifier(alpha=1e-4, tol=1e-5).fit(blocks, y)
    with pytest.warns(ConvergenceWarning):
        NashClassifier(max_iter=4, **options).fit(blocks, y)
    went_on = NashClassifier(**options).fit(da.from_array(X, chunks=(200, 6)), y)
    assert went_on.n_iter_ == whole.n_iter_ and np.array_equal(went_on.coef_, whole.coef_)
    with pytest.raises(ValueError, match="belongs to other data"):
        NashClassifier(**options).fit(2.0 * blocks, y)


def test_a_partition_is_held_only_while_it_is_read():
    alive, most, lock = 0, 0, threading.Lock()

    class Counted(np.ndarray):
        def __del__(self):
            nonlocal alive
            with lock:
                alive -= self.base is None

    def load(seed):
        nonlocal alive, most
        X = np.ndarray.__new__(Counted, (100, 4))
        X[:] = np.random.default_rng(seed).standard_normal((100, 4))
        with lock:
            alive += 1
            most = max(most, alive)
        return X

    parts = [da.from_delayed(dask.delayed(load)(i), (100, 4), dtype=float) for i in range(30)]
    X = da.concatenate(parts)
    NashClassifier(tol=1e-2).fit(X, (X[:, 0] > 0.3).astype(int))
    assert 0 < most <= 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X, y[:-1]), "same number of rows; got 900 and 899"),
        (lambda X, y: (X[:, 0], y), "X must be a Dask array of shape"),
        (lambda X, y: (X, X), "y must hold one value for each row"),
        (lambda X, y: (X, None), "y must hold a label"),
        (lambda X, y: (da.where(X > 9, np.nan, X), y), "X contains NaN"),
        (lambda X, y: (X, da.ones(900, chunks=200)), "one class only"),
        (lambda X, y: (X, X[:, 0]), "continuous"),
        (lambda X, y: (X[X[:, 0] > 0], y), "y has 3 partitions and X has 5, of numbers of rows that are not known"),
        (lambda X, y: (X[X[:, 0] > 0], y.rechunk(200)), "cut them alike"),
        (lambda X, y: (X[X[:, 0] > 0], y.compute()), "y must be a Dask collection with the partitions of X"),
        (lambda X, y: (X, y, -da.ones(900)), "sample_weight must hold one number"),
        (lambda X, y: (X, y, da.zeros(900)), "all rows have weight 0"),
        (lambda X, y: (X * 1e200, y), "overflow"),
    ],
)
def test_refusals_name_what_was_wrong(change, message):
    X, y, _ = rows()
    data = change(da.from_array(X, chunks=(200, 6)), da.from_array(y, chunks=300))
    with np.errstate(over="ignore"), pytest.raises((ValueError, TypeError), match=message):
        NashClassifier().fit(*data)


def test_weights_may_be_a_column():
    X, y, *_ = rows(120)
    weight = np.random.default_rng(0).random((120, 1))
    data = da.from_array(X, chunks=(40, -1)), da.from_array(y, chunks=40)
    column, flat = (
        NashClassifier(alpha=1e-2).fit(*data, sample_weight=da.from_array(one, chunks=(40, 1)[: one.ndim]))
        for one in (weight, weight.ravel())
    )
    assert column.objective_ == flat.objective_


def test_kernels_are_refused():
    X, y, _ = rows()
    with pytest.raises(ValueError, match="kernel must be None for Dask"):
        NashClassifier(kernel="rbf").fit(da.from_array(X), y)


def test_unknown_lengths_are_paired_by_partition():
    X, y, _ = rows()
    blocks, labels = da.from_array(X, chunks=(200, 6)), da.from_array(y, chunks=200)
    chosen = blocks[:, 0] > 0
    model = NashClassifier(tol=1e-4).fit(blocks[chosen], labels[chosen])
    assert model.objective_ == pytest.approx(
        NashClassifier(tol=1e-4).fit(X[X[:, 0] > 0], y[X[:, 0] > 0]).objective_, rel=2e-4
    )


def test_dask_is_loaded_by_collections_alone():
    code = """
import sys
import numpy as np
from nashlearn import NashClassifier
NashClassifier().fit(np.eye(3), [0, 1, 0]).predict(np.eye(3))
assert "dask" not in sys.modules and "distributed" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
