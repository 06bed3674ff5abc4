"""The quick search of parameters: its best is the best of its table, it is deterministic, and its time is limited."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from commands import answer, call, columns

import nashlearn
from nashlearn.cli.tag_search import lowest, measure_of, quick_fold
from nashlearn.cli.talk import Talk
from nashlearn.cli.tune import Trial, searched

VALUES = {"a": (1, 2, 3), "b": ("x", "y"), "c": (0.5,)}


def search(losses, seconds: float = 60.0):
    def attempt(choice):
        return Trial({**choice, "found": 7}, losses[choice["a"], choice["b"]])

    return searched(Talk(quiet=True), VALUES, attempt, seconds, str)


def test_the_best_of_the_table():
    rng = np.random.default_rng(0)
    for _ in range(50):
        losses = dict(zip(itertools.product(VALUES["a"], VALUES["b"]), rng.random(6), strict=True))
        best, tried = search(losses)
        assert best.loss == min(trial.loss for trial in tried) == losses[best.choice["a"], best.choice["b"]]
        assert len(tried) == 4 and search(losses) == (best, tried)
        assert [trial.choice["a"] for trial in tried[:3]] == [1, 2, 3] and best.choice["found"] == 7
        kept = min(VALUES["a"], key=lambda a: losses[a, "x"])
        assert tried[3].choice["a"] == kept and tried[3].choice["b"] == "y"


def test_of_equals_the_first_wins():
    best, _ = search(dict.fromkeys(itertools.product(VALUES["a"], VALUES["b"]), 0.5))
    assert best.choice == {"a": 1, "b": "x", "c": 0.5, "found": 7}


def test_time_is_limited(capsys):
    _, tried = search(dict.fromkeys(itertools.product(VALUES["a"], VALUES["b"]), 0.5), seconds=0.0)
    assert len(tried) == 1 and "after 1 of 4 trials" in capsys.readouterr().err


def test_an_interrupted_search_keeps_what_it_has(capsys):
    def attempt(choice):
        if choice["a"] == 3:
            raise KeyboardInterrupt
        return Trial(choice, -choice["a"])

    best, tried = searched(Talk(quiet=True), VALUES, attempt, 60.0, str)
    assert best.choice["a"] == 2 and len(tried) == 2 and "interrupted after 2 of 4" in capsys.readouterr().err


@pytest.mark.parametrize("least", [-0.7, -0.1, 0.0, 0.4])
def test_offsets_of_a_convex_loss(least):
    assert lowest(lambda x: (x - least) ** 2) == (least, 0.0)
    assert lowest(lambda x: 1e-3 * (x - least) ** 2)[0] == 0.0  # gains that chance makes too


def test_the_sentences_of_the_search():
    """No sentence on both sides, every tag to learn from, a fifth to judge by, as many tokens as are allowed."""
    rng = np.random.default_rng(1)
    y = [rng.choice(["O", "B-A"], size=rng.integers(1, 60)).tolist() for _ in range(5000)] + [["B-RARE"]]
    kept, held = quick_fold(y, 0)
    assert not set(kept) & set(held) and {tag for i in kept for tag in y[i]} == {"O", "B-A", "B-RARE"}
    assert 60_000 <= sum(len(y[i]) for i in (*kept, *held)) < 60_200
    assert abs(len(held) / (len(kept) + len(held)) - 0.2) < 0.01
    np.testing.assert_array_equal(kept, quick_fold(y, 0)[0])
    assert quick_fold(y[:10], 0) is None


def test_what_taggers_are_chosen_by():
    assert measure_of("zero_one", ["B-A", "I-A", "O"]).name == "phrase F1"
    assert measure_of("zero_one", ["NN", "VB"]).name == measure_of("zero_one", ["B-A", "X"]).name == "wrong tags"
    assert measure_of("costs.csv", ["B-A", "I-A", "O"]).name == "mean cost"


def test_tag_says_what_it_tries_and_takes_the_best(tmp_path):
    rng = np.random.default_rng(2)
    path = columns(tmp_path)
    lines = [line.split() for line in path.read_text().splitlines()]
    for line in lines:
        if line and rng.random() < 0.15:  # tags that words do not tell: no candidate is perfect
            line[2] = "O"
    path.write_text("\n".join(" ".join(line) for line in lines))
    result = call("tag", "train", path, "-o", tmp_path / "m")
    table = re.findall(
        r"^  features (\w+), alpha (\S+), smoothing (\S+), offset (\S+): phrase F1 (\S+)$", result.stderr, re.M
    )
    assert len(table) == 9 and {row[0] for row in table} == {"entities", "spelling", "wide", "clusters"}
    best = max(table, key=lambda row: float(row[4]))
    found = answer("tag", "train", path, "-o", tmp_path / "again")
    assert (found["features"], found["alpha"], found["smoothing"], found["offset"]) == (best[0], *map(float, best[1:4]))
    assert f"{found['validated']:.4f}" == best[4]
    models = [nashlearn.load(tmp_path / name)[-1] for name in ("m", "again")]
    assert models[0].offsets == models[1].offsets == ({"O": found["offset"]} if found["offset"] else None)
    np.testing.assert_array_equal(models[0].coef_.data, models[1].coef_.data)
    few = call(
        "tag", "train", path, "-o", tmp_path / "m", "--alpha", "1e-3", "--features", "window", "--smoothing", "1"
    )
    assert len(re.findall("^  features window, alpha 0.001, smoothing 1", few.stderr, re.M)) == 1


def test_tags_that_mark_no_phrases_are_chosen_by_wrong_tags(tmp_path):
    path = tmp_path / "tags.txt"
    path.write_text("the DET\ncat NOUN\nruns VERB\n\na DET\ndog NOUN\n\n" * 15)
    result = call("tag", "train", path, "-o", tmp_path / "m")
    assert "choosing by wrong tags" in result.stderr and "offset" not in result.stdout
    path.write_text("the DET\ncat NOUN\n\n" * 5)
    assert "too few sentences" in call("tag", "train", path, "-o", tmp_path / "m").stderr
