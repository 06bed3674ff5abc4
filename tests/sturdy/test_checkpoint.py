"""Checkpoints: whole or absent, of this problem or refused, and resumed to the result of an uninterrupted run."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sturdy_cases import ROUTES, rows

from nashlearn import NashClassifier, NashTagger
from nashlearn.training import checkpoint as module
from nashlearn.training.checkpoint import Checkpoint
from nashlearn.training.fingerprint import fingerprint

# Rows of a Gram matrix are computed in other blocks after a resumption, and the games of networks start from other
# messages, those of tempered rows from other strategies: there results agree as two optima to a gap do, elsewhere to
# the last bit.
TO_THE_GAP = ("kernel", "chains", "chains exactly", "graphs", "tempered", "tempered grades", "tempered kernel")


class Killed(BaseException):
    """Ends a training as a kill would: nothing catches it."""


@pytest.fixture(autouse=True)
def at_every_round(monkeypatch):
    monkeypatch.setattr(module, "_SECONDS", 0.0)
    monkeypatch.setattr(module, "_SHARE", np.inf)


def killed_at(model, data, rounds):
    """Train and end it after so many rounds; whether it was still at work then."""
    count = 0

    def watch(now):
        nonlocal count
        count += 1
        if count == rounds:
            raise Killed

    try:
        model.set_params(callback=watch).fit(*data)
    except Killed:
        return True
    finally:
        model.set_params(callback=None)
    return False


@pytest.mark.parametrize("name", ROUTES)
def test_a_killed_training_resumes_to_the_same_result(name, tmp_path):
    estimator, data = ROUTES[name]
    whole = clone(estimator).fit(*data())
    path = tmp_path / "state"
    model = clone(estimator).set_params(checkpoint=path)
    kills = sum(killed_at(model, data(), 3) for _ in range(4))
    assert kills, "the training is too short to be interrupted"
    assert path.exists()
    found = model.fit(*data())
    assert found.dual_gap_ <= found.tol
    if name in TO_THE_GAP:
        assert abs(found.objective_ - whole.objective_) <= estimator.tol * whole.objective_
    else:
        assert (found.objective_, found.n_iter_) == (whole.objective_, whole.n_iter_)
        assert [now[2:] for now in found.history_] == [now[2:] for now in whole.history_]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["state"]


def test_a_finished_training_is_not_repeated(tmp_path):
    for name in ("ascent", "newton", "kernel", "chains", "matchings", "hashed trees"):
        estimator, data = ROUTES[name]
        seen = []
        model = clone(estimator).set_params(checkpoint=tmp_path / name, callback=seen.append).fit(*data())
        rounds, objective = len(seen), model.objective_
        assert model.fit(*data()).objective_ == pytest.approx(objective, rel=2e-11), name  # replies lag by so much
        assert len(seen) <= rounds + 2, name


def test_more_iterations_go_on_where_fewer_ended(tmp_path):
    X, y = rows()
    model = NashClassifier("absolute", alpha=1e-4, tol=1e-9, max_iter=3, checkpoint=tmp_path / "state")
    with pytest.warns(match="after 3 iterations"):
        model.fit(X, y)
    short = model.history_
    model.set_params(max_iter=1000).fit(X, y)
    assert model.history_[: len(short)] == short
    assert model.dual_gap_ <= 1e-9


CHANGES = {
    "alpha": lambda X, y: (NashClassifier(alpha=1e-2), X, y, None),
    "loss": lambda X, y: (NashClassifier("squared"), X, y, None),
    "cost matrix": lambda X, y: (NashClassifier(1.0 - np.eye(3)), X, y, None),
    "seed": lambda X, y: (NashClassifier(random_state=1), X, y, None),
    "one value": lambda X, y: (NashClassifier(), X + 1e-12 * (np.arange(X.size).reshape(X.shape) == 7), y, None),
    "fewer rows": lambda X, y: (NashClassifier(), X[1:], y[1:], None),
    "labels": lambda X, y: (NashClassifier(), X, y[::-1], None),
    "weights": lambda X, y: (NashClassifier(), X, y, 1.0 + y),
    "another estimator": lambda X, y: (NashTagger(), [X], [y], None),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_checkpoint_of_another_problem_is_refused(change, tmp_path):
    X, y = rows()
    NashClassifier(checkpoint=tmp_path / "state").fit(X, y)
    before = (tmp_path / "state").read_bytes()
    model, X, y, weight = CHANGES[change](X, y)
    with pytest.raises(ValueError, match="state belongs to other data or parameters"):
        model.set_params(checkpoint=str(tmp_path / "state")).fit(X, y, sample_weight=weight)
    assert (tmp_path / "state").read_bytes() == before


def test_what_is_equal_has_an_equal_fingerprint():
    X, y = rows()
    one = fingerprint({"alpha": 1e-3}, [X, [{"a": 1.0, "b": "x"}]], y)
    again = fingerprint({"alpha": 1e-3}, (np.asfortranarray(X.copy()), ({"a": 1.0, "b": "x"},)), y.copy())
    assert one == again
    assert fingerprint([[1], [2]]) != fingerprint([[1, 2]])
    assert fingerprint("1") != fingerprint(1)
    assert fingerprint(1.0) != fingerprint(np.nextafter(1.0, 2.0))


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    path = tmp_path_factory.mktemp("stored") / "state"
    NashClassifier(checkpoint=path).fit(*rows())
    with np.load(path, allow_pickle=False) as file:  # an ordinary archive
        return path.read_bytes(), str(file["fingerprint"])


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_damage_is_refused_and_named(stored, tmp_path_factory, data):
    content, name = stored
    content = bytearray(content)
    if data.draw(st.booleans(), label="truncated"):
        del content[data.draw(st.integers(0, len(content) - 1), label="length") :]
    else:
        place = data.draw(st.integers(0, len(content) - 1), label="place")
        content[place] ^= data.draw(st.integers(1, 255), label="flip")
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.write_bytes(content)
    try:
        saved = Checkpoint(path, name).load()
    except ValueError as error:
        assert str(path) in str(error)
        return
    # A flip in what the format does not read (dates, attributes) changes nothing.
    (whole := path.with_name("whole")).write_bytes(stored[0])
    intact = Checkpoint(whole, name).load()
    assert saved.keys() == intact.keys()
    assert all(np.array_equal(saved[key], intact[key]) for key in intact)


@pytest.mark.parametrize("content", [b"", b"PK", b"not a checkpoint", b"\x00" * 4096], ids=["empty", "PK", "text", "0"])
def test_foreign_files_are_refused_and_left_alone(content, tmp_path):
    path = tmp_path / "state"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="state is damaged, or no checkpoint"):
        NashClassifier(checkpoint=path).fit(*rows())
    assert path.read_bytes() == content


def archive(path, **arrays):
    with path.open("wb") as file:
        np.savez(file, **arrays)


def test_archives_with_pickles_or_lying_sizes_are_refused(tmp_path):
    path = tmp_path / "state"
    archive(path, format=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ValueError, match="state is damaged"):
        Checkpoint(path, "").load()
    archive(path, a=np.zeros(4))
    path.write_bytes(path.read_bytes().replace(b"(4,)", b"(9,)"))
    with pytest.raises(ValueError, match="state is damaged"):
        Checkpoint(path, "").load()
    archive(path, a=np.zeros(4))
    with pytest.raises(ValueError, match="it has no 'format'"):
        Checkpoint(path, "").load()
    archive(path, format=np.array("nashlearn checkpoint 99"))
    with pytest.raises(ValueError, match="no checkpoint that this version"):
        Checkpoint(path, "").load()


def test_a_disk_that_is_full_costs_the_checkpoint_not_the_training(tmp_path, monkeypatch):
    def full(*arguments, **arrays):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = NashClassifier(checkpoint=tmp_path / "state").fit(*rows())
    assert all("No space left on device" in str(w.message) for w in caught)
    assert caught
    assert model.dual_gap_ <= model.tol
    assert list(tmp_path.iterdir()) == []


def kill_loop(route: str, kills: int, folder: Path) -> dict:
    script = Path(__file__).with_name("kill_loop.py")
    command = [sys.executable, str(script), route, str(kills), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def assert_survived(found: dict, kills: int) -> None:
    assert found["kills"] >= kills
    assert found["unreadable"] == 0
    assert found["resumed"] > 0
    assert found["finished"] > 0
    assert found["largest_difference"] <= found["tol"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")
def test_kills_at_random_times(tmp_path):
    assert_survived(kill_loop("rows", 3, tmp_path), 3)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")
@pytest.mark.parametrize("route", ["rows", "kernel", "chains"])
def test_fifty_kills_at_random_times(route, tmp_path):
    assert_survived(kill_loop(route, 50, tmp_path), 50)
