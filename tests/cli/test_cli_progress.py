"""Progress: how far, and how long still."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from nashlearn.cli.talk import Talk, _Lines, _Way
from nashlearn.training.progress import Round


def test_the_gap_tells_how_far():
    """Halfway on a logarithmic scale after ten seconds at an even pace: about ten more."""
    way = _Way(tol=1e-4, max_iter=1000)
    assert way.share(Round(1, 5.0, 1.0, 0.0, 1.0))[1] == "time left not known yet"
    share, left = way.share(Round(2, 15.0, 1.0, 0.99, 1e-2))
    assert share == pytest.approx(0.5) and 10 <= int(left.split()[1]) <= 30
    assert way.share(Round(9, 25.0, 1.0, 1.0, 1e-5)) == (1.0, "about 0 s left")


def test_without_a_gap_iterations_do():
    """What comes before the first round does not count: a minute of reading is no pace."""
    way = _Way(tol=0.1, max_iter=10)
    assert way.share(Round(1, 60.0, math.inf, 0.0, math.inf)) == (0.1, "time left not known yet")
    share, left = way.share(Round(2, 65.0, 1.0, -math.inf, math.inf))
    assert share == pytest.approx(0.2) and left == "at most about 40 s left"


def test_the_time_left_is_never_more_than_iterations_allow():
    way = _Way(tol=1e-6, max_iter=10)
    for i in range(1, 9):
        _, left = way.share(Round(i, float(i), 1.0, 0.0, 1.0 / i))
    assert left == "at most about 2 s left"


def test_no_certificate_is_said_in_words(capsys, monkeypatch):
    monkeypatch.setattr("nashlearn.cli.talk.PATIENCE", 0.0)
    with Talk().training("training", 0.1, 30) as (callback, _):
        callback(Round(2, 300.0, math.inf, -math.inf, math.inf))
    heard = capsys.readouterr().err
    assert "iteration 2 of at most 30, no certificate yet, 7 %, time left not known yet" in heard


def test_a_way_that_goes_back():
    way = _Way(tol=0.1, max_iter=100)
    way.share(Round(0, 0.0, 1.0, 0.0, 0.5))
    assert way.share(Round(1, 1.0, 1.0, 0.0, 0.9))[0] == pytest.approx(0.01)
    assert way.share(Round(2, 1.0, 1.0, 1.0, 0.0))[0] == 1.0


def test_lines_where_there_is_no_terminal(capsys, monkeypatch):
    monkeypatch.setattr("nashlearn.cli.talk._EVERY", 0.0)
    monkeypatch.setattr("nashlearn.cli.talk.PATIENCE", 0.0)
    with Talk().training("training", 1e-3, 100) as (callback, trained):
        callback(Round(7, 1.0, 1.0, 0.5, 0.5))
    assert "training: iteration 7 of at most 100, gap 5.0e-01" in capsys.readouterr().err and not trained.interrupted
    with Talk().counting("choosing", 4) as advance:
        advance()
    assert "choosing: 1 of 4" in capsys.readouterr().err
    with Talk(quiet=True).counting("choosing", 4) as advance:
        advance()
    assert capsys.readouterr().err == ""


def test_a_line_after_a_second_and_then_every_five(monkeypatch):
    """Also where nothing is heard; then a line says how old its state is, since its time left is as old."""
    now, lines = [50.0], []
    monkeypatch.setattr("nashlearn.cli.talk.time", SimpleNamespace(monotonic=lambda: now[0]))
    voice = _Lines("training", "starting", lambda text: lines.append((now[0] - 50.0, text)))
    for eighth in range(1, 130):
        now[0] = 50.0 + eighth / 8
        if eighth == 60:
            voice.hear(0.5, "halfway")
        else:
            voice.pulse()
    assert lines == [
        (0.75, "training: starting (1 s ago)"),
        (5.75, "training: starting (6 s ago)"),
        (10.75, "training: halfway (3 s ago)"),
        (15.75, "training: halfway (8 s ago)"),
    ]


def test_a_tolerance_of_nothing_is_no_way_to_measure():
    way = _Way(tol=0.0, max_iter=10)
    way.share(Round(0, 0.0, 1.0, 0.5, 0.5))
    assert way.share(Round(5, 10.0, 1.0, 0.5, 0.5)) == (0.5, "at most about 10 s left")
