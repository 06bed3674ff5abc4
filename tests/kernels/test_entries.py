"""Compiled functions refuse what they cannot take, by name, and never crash: real calls with one thing spoilt.

Each batch runs in a process of its own, so that a crash is a failure with a seed and a number; `make fuzz` runs more.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from entry_abuse import Batch, Laid, WrongCallError, judge, trouble
from entry_calls import ROOM, Entry, entries, heard

from nashlearn import games
from nashlearn.kernels.newton import tempered_rows

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    path = tmp_path_factory.mktemp("entries") / "calls"
    subprocess.run([sys.executable, HERE / "entry_calls.py", path], check=True)
    return path


def test_every_function_of_every_module_is_found():
    """By the text of the modules, which says what Python can call."""
    for path in ROOM.glob("*.pyx"):
        text = path.read_text(encoding="utf-8")
        for name in re.findall(r"^def ([a-z]\w*)", text, re.MULTILINE):
            assert f"{path.stem}.{name}" in entries()
        for name in re.findall(r"^cdef class (\w+)", text, re.MULTILINE):
            assert f"{path.stem}.{name}" in entries()
    assert entries()["loss.solve_rows"].parameters[:2] == ("loss", "scores")
    assert entries()["abstain.Abstain"].parameters == ("cost", "s", "L")


def test_all_functions_are_heard(calls):
    """Else they would be called with arguments that fit by accident only."""
    known = {call.entry for call in heard(calls)}
    functions = {name for name, entry in entries().items() if entry.parameters and not isinstance(entry.function, type)}
    assert functions <= known


@pytest.mark.parametrize("seed", [0, 1])
def test_spoilt_calls(calls, seed):
    assert trouble(calls, seed, 3000) == ""


def test_a_crash_is_told_with_its_number(calls, tmp_path, monkeypatch):
    """By a copy of the harness in which the eighth spoilt call ends the process."""
    for name in ("entry_abuse.py", "entry_calls.py"):
        text = (HERE / name).read_text(encoding="utf-8")
        text = text.replace("Path(__file__).resolve().parents[2]", f"Path({str(ROOM.parents[2])!r})")
        text = text.replace("outcomes[name][judge", "number == 7 and os.abort()\n            outcomes[name][judge")
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr("entry_abuse.__file__", str(tmp_path / "entry_abuse.py"))
    assert "status -6, seed 3, last call 7" in trouble(calls, 3, 10)


def _past_the_end(x):
    np.lib.stride_tricks.as_strided(x, (x.size + 1,))[-1] = 1.0


def _from_the_end(x):
    return float(np.lib.stride_tricks.as_strided(x, (x.size + 1,))[-1])


def _unnamed(x):
    raise ValueError("no")


@pytest.mark.parametrize(
    ("function", "argument", "words"),
    [
        (_past_the_end, np.zeros(3), "wrote outside"),
        (_from_the_end, np.zeros(3), "depends on what lies around"),
        (_unnamed, np.zeros(3), "names no parameter"),
    ],
)
def test_the_judge_can_tell(function, argument, words, monkeypatch):
    monkeypatch.setitem(entries(), "made.up", Entry("made.up", function, ("x",)))
    with pytest.raises(WrongCallError, match=words):
        judge("made.up", (argument,), None)


def test_the_judge_compares_layouts(monkeypatch):
    monkeypatch.setitem(entries(), "made.up", Entry("made.up", lambda x: x.strides[0], ("x",)))
    with pytest.raises(WrongCallError, match="layout"):
        judge("made.up", (Laid(np.ones(3), "strided"),), (np.ones(3),))
    assert judge("made.up", (Laid(np.ones(3), "read-only"),), (np.ones(3),)) == "answer"


def test_calls_are_those_of_their_number(calls):
    one, other = (Batch(heard(calls), 5).call(17) for _ in range(2))
    assert repr(one) == repr(other)


@pytest.mark.parametrize("mu", [np.inf, 1e-320])
def test_tempered_rows_overwrite_what_they_are_given(mu):
    """Also where such a smoothing leaves nothing that is a number."""
    scores, codes = np.array([[0.0, -1e308, 1e308], [1.0, -np.inf, 0.0]]), np.zeros(2, dtype=np.intp)
    for game in (games.zero_one(3), games.cost([[0, 1, 4], [2, 0, 1], [3, 1, 0]]), games.absolute(3), games.squared(3)):
        results = []
        for fill in (7.0, -3.0):
            Q, P, rows = np.full((2, 3), fill), np.full((2, 3), fill), scores.copy()
            tempered_rows(game.params.compiled(), mu, rows, codes, np.eye(3), np.full(2, 0.5), Q, P)
            results.append((Q, rows))
        for one, other in zip(*results, strict=True):
            np.testing.assert_array_equal(one, other)
