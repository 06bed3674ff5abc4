"""Threads, processes and nested parallelism: the same answers as one thread, and an end to every wait."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sturdy_cases import ROUTES, arcs, chains, pairs, rows, squares

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
    X, y = rows(400, 30)
    one, again, other = (NashClassifier(alpha=1e-5, tol=1e-2, random_state=seed).fit(X, y) for seed in (3, 3, 4))
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
