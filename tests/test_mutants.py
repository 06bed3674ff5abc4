"""The list of mutants can be run, and so can what runs it; `make test-mutants` makes them all."""

from __future__ import annotations

import pytest
from mutants import __main__ as runner
from mutants.listing import Mutant, complaints, mutants

MUTANT = Mutant("zero", "games/_check.py", "old", "new", "everything", ["tests/test_mutants.py::test_the_list"])


def test_the_list():
    """Each text to be changed occurs once, what comes out is still Python or Cython, and the tests exist."""
    listed = mutants()
    assert list(complaints(listed)) == []
    assert len(listed) >= 60
    rooms = {mutant.file.partition("/")[0] for mutant in listed}
    assert {"games", "training", "estimators", "torch", "kernels"} <= rooms


@pytest.mark.parametrize(
    ("text", "change", "words"),
    [
        ("x = 1\n", {}, "it occurs 0 times"),
        ("old = old\n", {}, "it occurs 2 times"),
        ("old = 1\n", {"new": "old"}, "it changes nothing"),
        ("old = 1\n", {"new": "="}, "invalid syntax"),
        ("cdef int old = 1\n", {"new": "=", "file": "kernels/loss.pyx"}, "invalid syntax"),
        ("cdef int old\n", {"new": "(", "file": "kernels/loss.pxd"}, "invalid syntax"),
        ("old = 1\n", {"tests": []}, "must be named"),
        ("old = 1\n", {"tests": ["tests/nowhere.py::test_it"]}, "there is no tests/nowhere.py"),
        ("old = 1\n", {"tests": ["tests/test_mutants.py::test_it"]}, "has no test 'test_it'"),
    ],
)
def test_a_list_that_rots_is_noticed(text, change, words, tmp_path):
    mutant = Mutant(**{**vars(MUTANT), **change})
    mutant.source(tmp_path).parent.mkdir(parents=True)
    mutant.source(tmp_path).write_text(text)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_mutants.py").write_text("def test_the_list():\n    pass\n")
    (found,) = complaints([mutant], tmp_path)
    assert found.startswith("zero: ") and words in found


def test_what_compiles_in_cython_is_accepted(tmp_path):
    mutant = Mutant(**{**vars(MUTANT), "file": "kernels/loss.pyx", "tests": ["tests/test_mutants.py::test_the_list"]})
    mutant.source(tmp_path).parent.mkdir(parents=True)
    mutant.source(tmp_path).write_text("cdef double old(const double* x) noexcept nogil:\n    return x[0]\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_mutants.py").write_text("def test_the_list():\n    pass\n")
    assert mutant.compiled and list(complaints([mutant], tmp_path)) == []


@pytest.mark.parametrize(("in_place", "outcome"), [(False, "survived"), (True, "error")])
def test_a_mutant_that_writes_into_shared_files_is_no_verdict(in_place, outcome, tmp_path, monkeypatch):
    """Copies are made of links: what is written in place is changed for all mutants."""
    pristine = tmp_path / "pristine"
    MUTANT.source(pristine).parent.mkdir(parents=True)
    MUTANT.source(pristine).write_text("old = 1\n")
    (pristine / "header.h").write_text("1")

    def run_tests(copy, tests, limit):
        assert MUTANT.source(copy).read_text() == "new = 1\n"
        if not in_place:
            (copy / "header.h").unlink()
        (copy / "header.h").write_text("22")
        return 0, ""

    monkeypatch.setattr(runner, "run_tests", run_tests)
    verdict = runner.judged(MUTANT, pristine, 1.0)
    assert verdict.outcome == outcome and ("header.h" in verdict.by) == in_place
