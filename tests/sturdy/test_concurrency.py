"""Threads, processes and nested parallelism: the same answers as one thread, and an end to every wait."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sturdy_cases import ROUTES, arcs, chains, pairs, rows, squares
from threadpoolctl import ThreadpoolController, threadpool_limits

from nashlearn import NashClassifier, NashMarkovNetwork, NashMatcher, NashParser, NashTagger


def flat(answers):
    """The numbers in nested lists and tuples of arrays, in order."""
    if isinstance(answers, list | tuple):
        return np.concatenate([flat(part) for part in answers])
    return np.ravel(answers)


@pytest.mark.parametrize("name", ["newton", "thresholds", "abstain", "kernel", "chains", "graphs", "matchings"])
def test_eight_threads_predict_as_one(name):
    estimator, data = ROUTES[name]
    X, y = data()
    model = clone(estimator).set_params(tol=0.1).fit(X, y)
    calls = [model.predict, model.decision_function, model.predict_proba] * 8
    alone = [flat(call(X)) for call in calls[:3]] * 8
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda call: flat(call(X)), calls))
    assert all(np.array_equal(a, b) for a, b in zip(alone, together, strict=True))


def test_eight_threads_fit_as_one():
    X, y = rows()
    alone = NashClassifier(alpha=1e-3, random_state=0).fit(X, y)
    with ThreadPoolExecutor(8) as pool:
        models = list(pool.map(lambda _: NashClassifier(alpha=1e-3, random_state=0).fit(X, y), range(8)))
    assert all(np.array_equal(model.coef_, alone.coef_) for model in models)


@pytest.mark.parametrize(
    ("make", "data"),
    [(NashTagger, chains), (NashMarkovNetwork, squares), (NashMatcher, pairs), (NashParser, arcs)],
    ids=["chains", "graphs", "matchings", "trees"],
)
def test_the_number_of_jobs_changes_nothing(make, data):
    X, y = data()
    one, three = (make(alpha=1e-2, tol=1e-2, n_jobs=jobs).fit(X, y) for jobs in (1, 3))
    assert one.objective_ == three.objective_
    assert np.array_equal(flat(one.predict_proba(X)), flat(three.predict_proba(X)))


def test_a_seed_decides_everything():
    estimator, data = ROUTES["ascent"]  # the method that draws the order of its visits
    X, y = data()
    one, again, other = (clone(estimator).set_params(tol=1e-2, random_state=seed).fit(X, y) for seed in (3, 3, 4))
    assert np.array_equal(one.coef_, again.coef_)
    assert [now[2:] for now in one.history_] == [now[2:] for now in again.history_]
    assert not np.array_equal(one.coef_, other.coef_), "the seed is not used: this test shows nothing"


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_backends_of_joblib_fit_alike(backend):
    X, y = rows()
    models = [NashClassifier(alpha=alpha, random_state=0) for alpha in (1e-2, 1e-3)]
    alone = [clone(model).fit(X, y).coef_ for model in models]
    with joblib.parallel_config(backend=backend, n_jobs=2):
        found = joblib.Parallel()(joblib.delayed(clone(model).fit)(X, y) for model in models)
    assert all(np.array_equal(a, model.coef_) for a, model in zip(alone, found, strict=True))


# Large enough that training limits the threads of linear algebra, and that it takes some rounds.
WORK_FOR_ONE_THREAD = rows(6000, 8, 4)


def pools():
    return ThreadpoolController().select(user_api="blas").lib_controllers


def blas_threads() -> list[int]:
    return [pool.num_threads for pool in pools()]


def set_threads(numbers: list[int]) -> None:
    """From now on, whichever thread asks: newer versions of threadpoolctl give the right to set to one at a time."""
    for pool, number in zip(pools(), numbers, strict=True):
        pool.set_num_threads(number)
        getattr(pool, "clear_controlling_thread", lambda: None)()


@pytest.fixture(params=[1, 2], ids=["one thread found", "two threads found"])
def found(request):
    """Numbers of threads that the process has, whatever the environment says."""
    before = blas_threads()
    set_threads([request.param] * len(before))
    yield blas_threads()
    set_threads(before)


def small_fit(callback=None):
    return NashClassifier(alpha=1e-4, tol=1e-3, callback=callback, random_state=0).fit(*WORK_FOR_ONE_THREAD)


def test_a_fit_limits_linear_algebra_and_gives_it_back(found):
    seen = []
    small_fit(lambda now: seen.append(blas_threads()))
    assert seen and all(now == [1] * len(found) for now in seen), "no limit: the tests below show nothing"
    assert blas_threads() == found


def test_fits_that_overlap_leave_linear_algebra_as_it_was(found):
    """The first to begin is the first to end: if each restored what it found, the last would restore the limit."""
    first_trains, second_trains, first_is_over = (threading.Event() for _ in range(3))

    def lead(now):
        first_trains.set()
        assert second_trains.wait(60)

    def follow(now):
        second_trains.set()
        assert first_is_over.wait(60)
        assert blas_threads() == [1] * len(found)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(small_fit, lead)
        assert first_trains.wait(60)
        second = pool.submit(small_fit, follow)
        first.result()
        first_is_over.set()
        second.result()
    assert blas_threads() == found


@pytest.mark.parametrize("backend", ["executor", "joblib"])
def test_many_threads_leave_linear_algebra_as_it_was(backend, found):
    if backend == "joblib":
        joblib.Parallel(n_jobs=8, backend="threading")(joblib.delayed(small_fit)() for _ in range(16))
    else:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: small_fit(), range(16)))
    assert blas_threads() == found


@pytest.mark.filterwarnings("ignore:Training")
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_fit_that_ends_early_leaves_linear_algebra_as_it_was(error, found):
    def stop(now):
        raise error

    def fit(i):
        try:
            small_fit(stop if i % 2 else None)
        except RuntimeError:
            assert error is RuntimeError

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(fit, range(16)))
    assert blas_threads() == found
    fit(1)
    assert blas_threads() == found


def test_a_fit_inside_a_fit_leaves_linear_algebra_as_it_was(found):
    depth = []

    def inner(now):
        if not depth:
            depth.append(1)
            small_fit()
        assert blas_threads() == [1] * len(found)

    small_fit(inner)
    assert depth and blas_threads() == found


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_a_limit_set_around_fits_is_kept(limit, found):
    with threadpool_limits(limit, user_api="blas"):
        chosen = blas_threads()
        small_fit()
        assert blas_threads() == chosen == [limit] * len(found)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: small_fit(), range(8)))
        assert blas_threads() == chosen
    assert blas_threads() == found


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
def test_kernel_machines_are_the_same_for_any_number_of_threads(smoothing):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(700, 20)), rng.integers(4, size=700)  # rows and products are shared out in several parts
    found = []
    for limit in (1, 2, 3):
        with threadpool_limits(limit, user_api="blas"):
            model = NashClassifier(kernel="rbf", smoothing=smoothing, alpha=1e-2, random_state=0).fit(X, y)
        found.append((model.dual_coef_, model.intercept_, model.dual_gap_))
    for other in found[1:]:
        assert all(np.array_equal(ours, theirs) for ours, theirs in zip(found[0], other, strict=True))


def test_a_number_of_threads_set_during_a_fit_stays(found):
    small_fit(lambda now: set_threads([3] * len(found)))
    assert blas_threads() == [3] * len(found)


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_a_forked_process_is_not_limited_by_its_parent(found):
    """Fork during a fit, in a thread that does not exist in the child; the child's own fit must not wait for it."""
    children = []

    def fork(now):
        if not children:
            children.append(os.fork())
            if children[0] == 0:
                signal.alarm(60)  # a deadlock ends the child, and the test fails
                kept = blas_threads() == found
                small_fit()
                os._exit(0 if kept and blas_threads() == found else 1)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(small_fit, fork).result()
    assert os.waitpid(children[0], 0)[1] == 0
    assert blas_threads() == found


# Each program must end: a deadlock is a timeout. They run apart from pytest, whose process has threads of its own.
PROGRAMS = {
    "fork after threads were used": """
        import os
        model = NashTagger(n_jobs=2, alpha=1e-2).fit(*chains())
        child = os.fork()
        if child == 0:
            again = NashTagger(n_jobs=2, alpha=1e-2).fit(*chains())
            os._exit(0 if again.objective_ == model.objective_ else 1)
        assert os.waitpid(child, 0)[1] == 0
    """,
    "spawned processes that use threads": """
        import multiprocessing
        from work import objective
        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(2) as pool:
                found = pool.map_async(objective, [1, 2]).get(timeout=240)
            assert found == [objective(1)] * 2, found
    """,
    "threads in processes in threads": """
        import joblib
        from concurrent.futures import ThreadPoolExecutor
        from work import objective
        def processes(_):
            return joblib.Parallel(n_jobs=2, backend="loky")(joblib.delayed(objective)(2) for _ in range(2))
        with ThreadPoolExecutor(2) as pool:
            found = [value for part in pool.map(processes, range(2)) for value in part]
        assert found == [objective(1)] * 4, found
    """,
    "a search in processes over estimators with threads": """
        import numpy as np
        from sklearn.model_selection import GridSearchCV
        X, y = chains()
        search = GridSearchCV(NashTagger(n_jobs=2), {"alpha": [1e-2, 1.0]}, cv=2, n_jobs=2, error_score="raise")
        search.fit(np.array(X), y)
        assert np.isfinite(search.best_score_)
    """,
}
HEADER = "from sturdy_cases import chains\nfrom nashlearn import NashTagger\n"
WORK = HEADER + "def objective(jobs):\n    return NashTagger(n_jobs=jobs, alpha=1e-2).fit(*chains()).objective_\n"


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
@pytest.mark.parametrize("name", PROGRAMS)
def test_no_deadlock(name, tmp_path, request):
    (tmp_path / "work.py").write_text(WORK)
    (tmp_path / "program.py").write_text(HEADER + textwrap.dedent(PROGRAMS[name]))
    path = f"import sys; sys.path[:0] = {[str(tmp_path), str(request.path.parent)]!r}\n"
    for file in ("work.py", "program.py"):
        (tmp_path / file).write_text(path + (tmp_path / file).read_text())
    done = subprocess.run([sys.executable, str(tmp_path / "program.py")], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.slow
def test_thousands_of_fits_do_not_grow():
    psutil = pytest.importorskip("psutil")
    process = psutil.Process()
    X, y = rows(200, 10)
    sequences = chains(3)

    def fits(count):
        for i in range(count):
            model = NashClassifier(alpha=1e-2, kernel="rbf" if i % 10 == 0 else None, warm_start=bool(i % 2))
            model.fit(X, y).predict_proba(X)
            if i % 10 == 5:
                NashTagger(alpha=1e-2, n_jobs=2, tol=0.1).fit(*sequences).predict(sequences[0])

    fits(100)  # what is compiled, cached and pooled by then stays
    before = process.memory_info().rss
    fits(2000)
    grown = (process.memory_info().rss - before) / 2**20
    print(f"2000 fits: {grown:.1f} MB")
    assert grown < 20.0


@pytest.mark.filterwarnings("ignore:Training stopped")
def test_fits_agree_to_the_last_bit_whatever_linear_algebra_may_use(monkeypatch):
    monkeypatch.setattr("joblib.cpu_count", lambda: 3)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6000, 130)), rng.integers(20, size=6000)  # of so many classes BLAS makes the scores
    sequences, labels = [X[i : i + 10] for i in range(0, 6000, 10)], [y[i : i + 10] for i in range(0, 6000, 10)]
    before, seen = blas_threads(), []
    for number in (1, 2, 3):
        set_threads([number] * len(before))
        rows = NashClassifier(alpha=1e-3, random_state=0).fit(X, y)
        tagger = NashTagger(max_iter=3, n_jobs=number).fit(sequences, labels)
        seen.append([rows.coef_, rows.objective_, rows.dual_gap_, *tagger.strategy(sequences)])
    set_threads(before)
    for other in seen[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(seen[0], other, strict=True))
