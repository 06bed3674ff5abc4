"""Tagging, parsing and tracking from the command line: small made-up files, and the real ones."""

from __future__ import annotations

import gzip
from itertools import islice

import numpy as np
import pytest
from commands import answer, call, columns, complaint, treebank, video

import nashlearn
from nashlearn.datasets import data_home, parse_columns, read_columns, read_conllu, read_mot


def page(path) -> str:
    text = path.read_text()
    assert len(text) < 2_000_000 and 'http-equiv="refresh"' not in text
    return text


def test_tagging(tmp_path):
    path = columns(tmp_path)
    made = answer("tag", "train", path, "-o", tmp_path / "m", "--report", tmp_path / "r.html")
    assert made["converged"] and made["held_out"]["phrase_f1"] == 1.0
    assert "most frequent tag" in page(tmp_path / "r.html")
    assert answer("tag", "evaluate", tmp_path / "m", path)["accuracy"] == 1.0
    call("tag", "predict", tmp_path / "m", path, "-o", tmp_path / "out.txt")
    tokens = [token for one in read_columns(tmp_path / "out.txt") for token in one]
    assert all(len(token) == 4 and token[2] == token[3] for token in tokens)
    untagged = "\n".join(" ".join(line.split()[:2]) for line in path.read_text().splitlines())
    text = call("tag", "predict", tmp_path / "m", "-", stdin=untagged).stdout
    assert [token[-1] for one in parse_columns(text.splitlines()) for token in one] == [token[2] for token in tokens]


def test_tagging_by_costs_and_tuned(tmp_path):
    path = columns(tmp_path)
    (tmp_path / "costs.csv").write_text(",O,B-NP,I-NP\nO,0,2,2\nB-NP,1,0,1\nI-NP,1,1,0\n")
    made = answer(
        "tag", "train", path, "-o", tmp_path / "m", "--tune", "full", "--folds", "2", "--loss", tmp_path / "costs.csv"
    )
    model = nashlearn.load(tmp_path / "m")[-1]
    assert model.loss.tolist() == [[0, 1, 1], [1, 0, 1], [2, 2, 0]]  # B-NP, I-NP, O
    assert model.alpha == made["alpha"] and model.smoothing == made["smoothing"]


def test_tuning_with_tags_that_one_sentence_has_alone(tmp_path):
    (tmp_path / "costs.csv").write_text(",A,B,C\nA,0,1,3\nB,1,0,3\nC,1,1,0\n")
    tuned = ("--tune", "full", "--folds", "2", "--smoothing", "0.1")
    arguments = ("tag", "train", tmp_path / "t", "-o", tmp_path / "m", *tuned)
    (tmp_path / "t").write_text("a A\nb B\n\n" * 4 + "c C\na A\n")
    made = answer(*arguments, "--loss", tmp_path / "costs.csv")
    assert made["tags"] == ["A", "B", "C"] and made["cross_validated_loss"] < 1
    (tmp_path / "t").write_text("".join(f"word T{i}\n\n" for i in range(4)))
    assert "--folds 2 finds no sentence to judge by" in complaint(*arguments)
    (tmp_path / "t").write_text("a A\nb B\n\n" * 2 + "c C\n")
    assert "judged on 2 of 3 folds" in call(*arguments, "--folds", "3").stderr


def test_a_tagger_keeps_its_recipe(tmp_path):
    """What it was told and has learnt is in the model: the files of names and of vectors may go."""
    path = columns(tmp_path)
    animals, vectors = tmp_path / "animals.txt", tmp_path / "vectors.npz"
    animals.write_text("cat\nthe dog\n")
    np.savez(vectors, words=np.array(["cat", "the"]), vectors=np.eye(2))
    options = ("--gazetteer", animals, "--vectors", vectors, "--features", "clusters", "--tune", "off")
    made = answer("tag", "train", path, "-o", tmp_path / "m", *options)
    assert made["alpha"] == 1e-5 and "validated" not in made
    animals.unlink()
    vectors.unlink()
    assert answer("tag", "evaluate", tmp_path / "m", path)["phrase_f1"] == 1.0
    names = nashlearn.load(tmp_path / "m")[0].transform([[["The", "DT"], ["dog", "NN"]]])[0]
    assert {"w=The", "animals0=B", "animals1=E"} <= set(names[0]) and any(
        name.startswith("vector0=") for name in names[0]
    )
    assert "not-there.txt" in complaint("tag", "train", path, "-o", tmp_path / "m", "--gazetteer", "not-there.txt")


def test_tags_of_words_between_tabs(tmp_path):
    """Words may hold spaces, or be empty, as those of tweets are; what is written can be read again."""
    path = tmp_path / "tags.tsv"
    path.write_text("New York\tB-LOC\n\tO\n\nwalks\tO\nNew York\tB-LOC\n\n" * 12)
    call("tag", "train", path, "-o", tmp_path / "m", "-q")
    call("tag", "predict", tmp_path / "m", path, "-o", tmp_path / "out.tsv")
    tagged = [[token[1:] for token in one] for one in read_columns(tmp_path / "out.tsv")]
    assert tagged == [[["B-LOC", "B-LOC"], ["O", "O"]], [["O", "O"], ["B-LOC", "B-LOC"]]] * 12


def test_parsing(tmp_path):
    path = treebank(tmp_path)
    options = ("--bits", "14", "--alpha", "1e-2", "--tol", "0.05", "--max-iter", "50")
    made = answer("parse", "train", path, "-o", tmp_path / "m", "--report", tmp_path / "r.html", *options)
    assert made["converged"] and made["held_out"]["las"] == 1.0
    page(tmp_path / "r.html")
    judged = answer("parse", "evaluate", tmp_path / "m", path)
    assert judged["uas"] == judged["complete_trees"] == 1.0
    call("parse", "predict", tmp_path / "m", path, "-o", tmp_path / "out.conllu.gz")
    assert (tmp_path / "out.conllu.gz").read_bytes()[:2] == b"\x1f\x8b"
    for ours, theirs in zip(read_conllu(tmp_path / "out.conllu.gz"), read_conllu(path), strict=True):
        assert ours.heads.tolist() == theirs.heads.tolist() and ours.deprels == theirs.deprels
    assert call("parse", "predict", tmp_path / "m", "-", stdin=path.read_text()).stdout == path.read_text()


def test_a_treebank_with_one_relation(tmp_path):
    import re

    path = treebank(tmp_path)
    path.write_text(re.sub(r"\t(det|nsubj|root|obj|punct)\t", "\tdep\t", path.read_text()))
    result = call("parse", "train", path, "-o", tmp_path / "m", "--bits", "12", "--alpha", "1e-3", "--tune", "full")
    assert "the only relation is 'dep'" in result.stderr
    assert answer("info", tmp_path / "m")["summary"]["alpha"] == 1e-3
    assert "las" not in answer("parse", "evaluate", tmp_path / "m", path)


def test_parsing_without_labels(tmp_path):
    path = treebank(tmp_path)
    options = ("--bits", "12", "--alpha", "1e-3", "--tune", "off", "-q")
    call("parse", "train", path, "-o", tmp_path / "m", "--no-labels", *options)
    assert "las" not in answer("parse", "evaluate", tmp_path / "m", path)
    assert "\t0\t_\t" in call("parse", "predict", tmp_path / "m", path).stdout


@pytest.mark.parametrize("on", ["detections", "truth"])
def test_tracking(tmp_path, on):
    for seed, name in enumerate(("walk", "run", "stand")):
        video(tmp_path / "videos", name, seed=seed)
    arguments = ("track", "train", tmp_path / "videos", "-o", tmp_path / "m", "--on", on, "--test", "walk", "--tune")
    made = answer(*arguments, "--report", tmp_path / "r.html")
    assert made["videos"] == ["run", "stand"] and made["held_out"]["wrong_links"] == 0.0
    assert made["held_out"]["mota"] > 0.9 and made["held_out"]["idf1"] > 0.9
    page(tmp_path / "r.html")
    assert len(answer("track", "evaluate", tmp_path / "m", tmp_path / "videos")["videos"]) == 3
    call("track", "predict", tmp_path / "m", tmp_path / "videos" / "walk", "-o", tmp_path / "tracks.txt")
    tracks = read_mot(tmp_path / "tracks.txt")
    assert sorted(set(tracks.id.tolist())) == [1, 2, 3]
    boxes = (tmp_path / "videos" / "walk" / "det" / "det.txt").read_text()
    text = call("track", "predict", tmp_path / "m", "-", stdin=boxes).stdout
    assert len(text.splitlines()) == 36 and text.startswith("1,1,")


def some_of(path, sentences: int) -> str:
    """The first sentences of a real file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        blocks = islice("".join(file).split("\n\n"), sentences)
        return "\n\n".join(blocks) + "\n\n"


@pytest.mark.data
def test_a_real_chunking_file(tmp_path):
    """Four hundred sentences of CoNLL-2000 teach most of it."""
    home = data_home() / "sequences"
    (tmp_path / "train.txt").write_text(some_of(home / "conll2000-train.txt.gz", 400))
    (tmp_path / "test.txt").write_text(some_of(home / "conll2000-test.txt.gz", 100))
    call("tag", "train", tmp_path / "train.txt", "-o", tmp_path / "m", "--max-iter", "30", "-q")
    judged = answer("tag", "evaluate", tmp_path / "m", tmp_path / "test.txt", "--report", tmp_path / "r.html")
    assert judged["phrase_f1"] > 0.8 and judged["accuracy"] > 0.85
    call("tag", "predict", tmp_path / "m", tmp_path / "test.txt", "-o", tmp_path / "out.txt")
    page(tmp_path / "r.html")


@pytest.mark.data
def test_a_real_treebank(tmp_path):
    """Three hundred sentences of the English Web Treebank, gzipped as they come."""
    home = data_home() / "treebanks"
    (tmp_path / "train.conllu").write_text(some_of(home / "en_ewt-r2.3-dev.conllu.gz", 300))
    (tmp_path / "test.conllu").write_text(some_of(home / "en_ewt-r2.3-test.conllu.gz", 100))
    options = ("--bits", "18", "--alpha", "1e-4", "--max-iter", "5", "-q")
    call("parse", "train", tmp_path / "train.conllu", "-o", tmp_path / "m", *options)
    judged = answer("parse", "evaluate", tmp_path / "m", tmp_path / "test.conllu", "--report", tmp_path / "r.html")
    assert judged["uas_without_punctuation"] > 0.6 and 0.4 < judged["las"] < judged["uas"]
    call("parse", "predict", tmp_path / "m", tmp_path / "test.conllu", "-o", tmp_path / "out.conllu")
    page(tmp_path / "r.html")


@pytest.mark.data
def test_a_real_folder_of_videos(tmp_path):
    """The detections of a street: trained on one video, judged on another."""
    home = data_home() / "tracking"
    call("track", "train", home, "-v", "TUD-Stadtmitte", "-o", tmp_path / "m", "-q")
    report = ("--report", tmp_path / "r.html")
    [judged] = answer("track", "evaluate", tmp_path / "m", home, "-v", "TUD-Campus", *report)["videos"]
    assert judged["mota"] > 0.28 and judged["wrong_links"] < 0.1  # half the objects are not detected
    call("track", "predict", tmp_path / "m", home / "TUD-Campus.det.txt.gz", "-o", tmp_path / "tracks.txt")
    tracks = read_mot(tmp_path / "tracks.txt")
    assert len(tracks) == 322 and np.unique(tracks.id).size < 60
    page(tmp_path / "r.html")
