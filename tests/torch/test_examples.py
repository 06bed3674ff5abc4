"""The examples on toy data: they run, and learn what is there to learn."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra [torch]")

from example import example  # noqa: E402
from sklearn.utils import Bunch  # noqa: E402


def phrases(count, seed):
    """Sentences of noun phrases and verbs whose words tell the part of speech."""
    rng = np.random.default_rng(seed)
    words = {"DT": ["the", "a"], "NN": ["dog", "tree", "house"], "VB": ["sees", "likes"]}
    data, target = [], []
    for _ in range(count):
        tags, marks = [], []
        for _ in range(rng.integers(1, 4)):
            long = rng.random() < 0.5
            tags += ["DT", "NN", "VB"] if long else ["NN", "VB"]
            marks += ["B-NP", "I-NP", "B-VP"] if long else ["B-NP", "B-VP"]
        data.append([(str(rng.choice(words[tag])), tag) for tag in tags])
        target.append(marks)
    return Bunch(data=data, target=target)


@pytest.mark.filterwarnings("ignore:where received a uint8:UserWarning")  # pytorch-crf's own
def test_the_tagger_finds_phrases():
    tagger = example("tagger")
    found = tagger.compare(phrases(160, 0), phrases(40, 1), epochs=6)
    assert {"chain game", "cross-entropy"} <= set(found)
    assert all(f1 > 0.95 for f1, _ in found.values())


def test_chunks_are_counted_as_the_shared_task_counts_them():
    tagger = example("tagger")
    tags = ["B-NP", "I-NP", "O", "I-VP", "B-NP", "I-PP"]
    assert list(tagger.chunks(tags)) == [(0, 2, "NP"), (3, 4, "VP"), (4, 5, "NP"), (5, 6, "PP")]
    assert tagger.chunk_f1([tags], [["B-NP", "I-NP", "O", "B-VP", "B-NP", "O"]]) == pytest.approx(6 / 7)


def test_the_matching_game_learns_which_measures_tell_objects_apart():
    sets = example("set_matching")
    share, _ = sets.train("matching game", 60, batch=16)
    plain, _ = sets.train("L1 of true pairs", 60, batch=16)
    assert share > plain + 0.05
    assert 0 <= sets.train("Hungarian + L1", 3, batch=4)[0] <= 1
