"""Interruptions, full disks, places that cannot be written to: what was there stays, and what is written is whole."""

from __future__ import annotations

import errno
import os
import signal

import pytest
from commands import answer, call, complaint, flowers, video

from nashlearn import persistence


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    here = tmp_path_factory.mktemp("errors")
    flowers().to_csv(here / "flowers.csv", index=False)
    call("train", here / "flowers.csv", "-t", "kind", "-o", here / "flowers.model")
    return here


def interrupt_after(monkeypatch, rounds: int):
    """Ctrl-C at the given round of training."""
    from nashlearn.cli import talk

    seen = []

    def share(self, now):
        seen.append(now)
        if len(seen) == rounds:
            raise KeyboardInterrupt
        return 0.0, ""

    monkeypatch.setattr(talk._Way, "share", share)
    return seen


def test_interrupted_training_keeps_the_best_model(folder, tmp_path, monkeypatch):
    seen = interrupt_after(monkeypatch, 3)
    arguments = (
        "train",
        folder / "flowers.csv",
        "-t",
        "kind",
        "-o",
        tmp_path / "m",
        "--tol",
        "1e-12",
        "--kernel",
        "rbf",
    )
    result = call(*arguments, "--json", code=130)
    assert len(seen) == 3 and "interrupted: the best model so far is kept" in result.stderr
    monkeypatch.undo()
    summary = persistence.read_info(tmp_path / "m")["summary"]
    assert summary["interrupted"] and not summary["converged"]
    assert answer("evaluate", tmp_path / "m", folder / "flowers.csv")["accuracy"] > 0.5


def test_interrupted_while_saving(folder, tmp_path, monkeypatch):
    """Ctrl-C waits until the model is in its file."""
    save = persistence.save

    def interrupted(*arguments, **options):
        signal.raise_signal(signal.SIGINT)
        save(*arguments, **options)

    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(persistence, "save", interrupted)
    result = call("train", folder / "flowers.csv", "-t", "kind", "-o", tmp_path / "m", code=130)
    assert "m is complete" in result.stderr and signal.getsignal(signal.SIGINT) is before
    assert persistence.read_info(tmp_path / "m")["summary"]["rows"] == 120


def test_interrupted_before_there_is_a_model(folder, tmp_path, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("nashlearn.datasets.read_table", stop)
    result = call("train", folder / "flowers.csv", "-t", "kind", "-o", tmp_path / "m", code=130)
    assert "interrupted" in result.stderr and not list(tmp_path.iterdir())


def test_interrupted_tuning_takes_the_best_so_far(folder, tmp_path, monkeypatch):
    from nashlearn.cli import tune

    tried = []

    def loss(loss, choice, fold):
        tried.append(choice)
        if len(tried) == 4:
            raise KeyboardInterrupt
        return 1.0 / len(tried)

    monkeypatch.setattr(tune, "_quietly", loss)
    found = answer("train", folder / "flowers.csv", "-t", "kind", "-o", tmp_path / "m", "--tune", "--folds", "2")
    assert found["alpha"] == tried[0]["alpha"] and (tmp_path / "m").exists()


def test_a_full_disk(folder, monkeypatch, tmp_path):
    """Nothing half-written, and an older file stays."""
    (tmp_path / "m").write_text("older")
    (tmp_path / "answers.csv").write_text("older")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    assert "the disk is full" in complaint("train", folder / "flowers.csv", "-t", "kind", "-o", tmp_path / "m")
    assert "the disk is full" in complaint(
        "predict", folder / "flowers.model", folder / "flowers.csv", "-o", tmp_path / "answers.csv"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answers.csv", "m"]
    assert {path.read_text() for path in tmp_path.iterdir()} == {"older"}


def test_places_that_cannot_be_written_are_refused_before_the_work(folder, monkeypatch):
    def never(*_, **__):
        raise AssertionError("the data were read")

    monkeypatch.setattr("nashlearn.datasets.read_table", never)
    arguments = ("train", folder / "flowers.csv", "-t", "kind")
    assert "there is no folder" in complaint(*arguments, "-o", folder / "none" / "m")
    assert "it is a folder" in complaint(*arguments, "-o", folder)
    assert "there is no folder" in complaint(*arguments, "-o", folder / "m", "--report", folder / "none" / "r.html")

    def refused(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("tempfile.mkstemp", refused)
    assert "permission denied. Choose another place" in complaint(*arguments, "-o", folder / "m")


def test_outputs_do_not_take_the_place_of_other_files(folder, tmp_path):
    data, model = folder / "flowers.csv", folder / "flowers.model"
    kept = data.read_bytes(), model.read_bytes()
    train = ("train", data, "-t", "kind")
    assert "the command reads it" in complaint(*train, "-o", data)
    assert "the command reads it" in complaint(*train, "-o", tmp_path / "m", "--report", tmp_path / ".." / data)
    for option in ("--report", "--checkpoint"):
        assert "is the same file" in complaint(*train, "-o", tmp_path / "m", option, tmp_path / "m")
    assert "no name of a file" in complaint(*train, "-o", "-")
    assert "the command reads it" in complaint("evaluate", model, data, "--report", model)
    assert "the command reads it" in complaint("predict", model, data, "--out", data)
    assert "the command reads it" in complaint("export-onnx", model, "--out", model)
    assert "device or a pipe" in complaint(*train, "-o", os.devnull)
    video(tmp_path, "walk")
    truth = tmp_path / "walk" / "gt" / "gt.txt"
    assert "the command reads it" in complaint("track", "train", tmp_path, "-o", truth)
    assert (data.read_bytes(), model.read_bytes()) == kept


def test_links_are_followed(folder, tmp_path):
    (tmp_path / "link.csv").symlink_to(tmp_path / "answers.csv")
    call("predict", folder / "flowers.model", folder / "flowers.csv", "--out", tmp_path / "link.csv")
    assert (tmp_path / "link.csv").is_symlink() and (tmp_path / "answers.csv").is_file()
