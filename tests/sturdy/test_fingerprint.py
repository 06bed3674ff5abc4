"""Fingerprints: other for other functions and objects, the same in another process, refused where nothing can tell."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sturdy_cases import rows

from nashlearn import NashClassifier, NashTagger
from nashlearn.training.fingerprint import fingerprint

FACTOR = 1.0


def scaled(gamma):
    return lambda A, B: rbf_kernel(A, B, gamma=gamma)


def by_default(A, B, gamma):
    def kernel(A, B, gamma=gamma):
        return rbf_kernel(A, B, gamma=gamma)

    return kernel


class Slots:
    __slots__ = ("gamma",)

    def __init__(self, gamma):
        self.gamma = gamma

    def __call__(self, A, B):
        return rbf_kernel(A, B, gamma=self.gamma)


@dataclass
class Record:
    gamma: float

    def kernel(self, A, B):
        return rbf_kernel(A, B, gamma=self.gamma)


def local(power):
    class Kernel:
        degree = power

        def __call__(self, A, B):
            return polynomial_kernel(A, B, degree=self.degree)

    return Kernel()


PAIRS = {
    "functions": lambda: (rbf_kernel, polynomial_kernel),
    "arguments of partial": lambda: (partial(rbf_kernel, gamma=0.1), partial(rbf_kernel, gamma=9.0)),
    "function of partial": lambda: (partial(rbf_kernel, gamma=1), partial(polynomial_kernel, gamma=1)),
    "callable objects": lambda: (RBF(1.0), RBF(0.1)),
    "nested objects": lambda: (RBF(1.0) + RBF(2.0), RBF(1.0) + RBF(3.0)),
    "constants": lambda: (lambda A, B: rbf_kernel(A, B, 1.0), lambda A, B: rbf_kernel(A, B, 2.0)),
    "code": lambda: (lambda A, B: A @ B.T, lambda A, B: -A @ B.T),
    "called names": lambda: (lambda A, B: rbf_kernel(A, B), lambda A, B: polynomial_kernel(A, B)),
    "closures": lambda: (scaled(1.0), scaled(2.0)),
    "defaults": lambda: (by_default(0, 0, 1.0), by_default(0, 0, 2.0)),
    "slots": lambda: (Slots(1.0), Slots(2.0)),
    "bound methods": lambda: (Record(1.0).kernel, Record(2.0).kernel),
    "attributes of a class": lambda: (local(2), local(3)),
    "methods of a builtin": lambda: ([1].index, [2].index),
    "ufuncs": lambda: (np.add, np.multiply),
    "sets": lambda: ({"a", "b"}, {"a", "c"}),
    "classes": lambda: (Slots, Record),
    "dates": lambda: (datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_others_differ_and_equals_agree(name):
    (one, other), (again, _) = PAIRS[name](), PAIRS[name]()
    assert fingerprint(one) == fingerprint(again)
    assert fingerprint(one) != fingerprint(other)


def test_globals_of_a_function_count(monkeypatch):
    def kernel(A, B):
        return FACTOR * A @ B.T

    before = fingerprint(kernel)
    monkeypatch.setitem(globals(), "FACTOR", 2.0)
    assert fingerprint(kernel) != before


def test_values_that_hold_themselves_end():
    def factorial(n):
        return n * factorial(n - 1) if n else 1

    ring = [1]
    ring.append(ring)
    assert fingerprint(factorial) != fingerprint(ring)


SCRIPT = """
import functools
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics.pairwise import rbf_kernel
from nashlearn.training.fingerprint import fingerprint
class Kernel:
    def __init__(self, gamma): self.gamma = gamma
    def __call__(self, A, B): return rbf_kernel(A, B, gamma=self.gamma)
print(fingerprint(
    {"kernel": functools.partial(rbf_kernel, gamma=0.5)}, RBF([1.0, 2.0]),
    lambda A, B: A @ B.T if A in {"x", "y"} else B,
    {"a", "b", "c", ("d", 1)}, Kernel(2.0), Kernel(2.0).__call__,
))
"""


def test_another_process_finds_the_same():
    found = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


def test_the_checkpoint_of_another_kernel_is_refused(tmp_path):
    X, y = rows()
    model = NashClassifier(kernel=RBF(1.0), checkpoint=tmp_path / "state", random_state=0).fit(X, y)
    objective = model.objective_
    assert model.fit(X, y).objective_ == pytest.approx(objective, rel=1e-9)
    with pytest.raises(ValueError, match="belongs to other data or parameters"):
        model.set_params(kernel=RBF(0.1)).fit(X, y)


def test_what_cannot_be_described_is_refused(tmp_path):
    X, y = rows()
    lock = threading.Lock()

    def kernel(A, B):
        with lock:
            return A @ B.T

    with pytest.raises(ValueError, match=r"checkpoint must be None here.*lock"):
        NashClassifier(kernel=kernel, checkpoint=tmp_path / "state").fit(X, y)
    assert NashClassifier(kernel=kernel).fit(X, y).dual_gap_ <= 1e-3


def test_sets_of_names_get_columns_in_one_order():
    X = [[{"b", "a"}, {"c", "a"}], [{"d", "b", "e"}, {"f"}]]
    assert NashTagger(alpha=0.1).fit(X, [[0, 1], [1, 0]]).feature_names_ == ["a", "b", "c", "d", "e", "f"]
