"""How much longer a run would take: laws of the estimate, and what the warnings make of it."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from nashlearn import NashClassifier
from nashlearn.training.outlook import Seen, in_words, outlook, roughly
from nashlearn.training.progress import Progress


def _run(gap, n, pace=0.5):
    return [Seen(i, pace * i, gap(i)) for i in range(1, n + 1)]


@pytest.mark.parametrize(
    ("gap", "wanted"), [(lambda i: 0.8**i, 42), (lambda i: 2.0 / i, 200), (lambda i: i**-2.0, 100)]
)
def test_an_estimate_lies_within_a_factor_of_the_truth(gap, wanted):
    """Geometric decay and powers of the iterations: from 20 iterations to the iteration where the gap is small."""
    tol = gap(wanted)
    found = outlook(_run(gap, 20), tol)
    missing = wanted - 20
    assert missing / 4 < found.n_iter < 4 * missing
    assert found.seconds == pytest.approx(0.5 * found.n_iter)


def test_a_smaller_tol_takes_longer():
    seen = _run(lambda i: 1.0 / i, 16)
    missing = [outlook(seen, tol).n_iter for tol in (0.05, 0.02, 0.01)]
    assert missing == sorted(missing) and missing[0] >= 1.0


@pytest.mark.parametrize(
    "seen",
    [
        [],
        [Seen(5, 1.0, 0.3)],
        [Seen(1, 1.0, np.inf), Seen(2, 2.0, 0.3)],
        [Seen(3, 1.0, 0.5), Seen(3, 1.0, 0.3)],
        _run(lambda i: 0.5, 20),
        _run(lambda i: 0.5 - 1e-3 * i, 20),
    ],
)
def test_no_estimate_without_a_way(seen):
    """Nothing seen, one gap, one moment, a gap that stands still or would take more than a hundred times as long."""
    assert outlook(seen, 1e-6) is None


def test_numbers_as_people_say_them():
    assert [roughly(x) for x in (0.0, 0.0123, 1.01, 9.99, 101.0, 110.0, 1234.0)] == [0, 0.013, 1.1, 10, 110, 110, 1300]
    assert [in_words(x) for x in (0.2, 12.3, 100.0, 7000.0)] == [
        "less than a second", "about 13 s", "about 2 min", "about 2 h",
    ]  # fmt: skip


def test_only_limits_that_ended_a_run_are_to_be_raised(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("nashlearn.training.progress.time.perf_counter", lambda: now[0])
    for max_iter, max_time, named, unnamed in ((10, None, "max_iter", "max_time"), (99, 10.0, "max_time", "max_iter")):
        now[0] = 0.0
        progress = Progress(0.05, max_iter, max_time=max_time)
        for i in range(1, 11):
            now[0] = progress.n_iter = i
            progress.keep(np.ones(1), 1.0, 1.0 - 0.7**i - 0.05)
            assert progress.longer(0.05) == "" or i == 10
        words = progress.longer(0.05)
        assert unnamed not in words and 10 < float(re.search(rf"{named} to about ([\d.]+)", words)[1]) < 100
    assert progress.longer(1e-9) == "max_time"  # out of sight


def test_expected_gaps_count_where_certificates_are_dear():
    progress = Progress(0.1, 8)
    for i in range(1, 9):
        progress.n_iter = i
        progress.expect(0.8**i)
    progress.keep(np.ones(1), 1.0, 1.0 - 0.8**8)
    assert re.match(r"max_iter to about 1\d \(an estimate: ", progress.longer(0.1))


def test_a_fit_that_takes_the_advice_ends_without_a_warning():
    """Twice as many iterations as it says at most."""
    X, y = make_classification(300, 20, n_informative=8, n_classes=3, random_state=0)
    model = NashClassifier(smoothing=0, alpha=1e-4, tol=1e-3, max_iter=20, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_iter to about") as caught:
        model.fit(X, y)
    wanted = float(re.search(r"max_iter to about ([\d.e+]+)", str(caught[0].message))[1])
    assert wanted > 20
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(max_iter=int(2 * wanted)).fit(X, y)
