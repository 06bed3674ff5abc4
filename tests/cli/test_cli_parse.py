"""`nashlearn parse` at its defaults: what it chooses, vectors of words, and models of version 0.1."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from commands import answer, call, complaint, treebank

import nashlearn
from nashlearn import NashParser, parsing
from nashlearn.cli.parse_search import quick_fold, trials
from nashlearn.datasets import parse_conllu, read_conllu
from nashlearn.persistence import read_info

STORED = Path(__file__).parents[1] / "stored"
QUICK = ("--bits", "12", "--no-labels")


def test_defaults_are_chosen_and_end_without_a_warning(tmp_path):
    path = treebank(tmp_path)
    result = call("parse", "train", path, "-o", tmp_path / "m", *QUICK)
    assert result.stderr.startswith("reading ")
    assert "choosing by heads right (UAS): 20 sentences to train on, 10 to judge by" in result.stderr
    assert "warning" not in result.stderr
    info, model = read_info(tmp_path / "m"), nashlearn.load(tmp_path / "m")["parser"]
    assert info["schema"]["recipe"] == info["summary"]["features"] == "context"
    assert any(model.alpha == pytest.approx(share / 180) for share in (0.25, 0.5, 1.0))
    assert info["summary"]["converged"] and info["summary"]["validated"] == 1.0
    assert answer("parse", "evaluate", tmp_path / "m", path)["uas"] == 1.0


def test_what_is_given_is_not_chosen(tmp_path):
    path = treebank(tmp_path)
    result = call("parse", "train", path, "-o", tmp_path / "m", *QUICK, "--alpha", "1e-3", "--features", "plain")
    assert result.stderr.count("UAS") == 3  # what it chooses by, its only trial, and the choice
    assert read_info(tmp_path / "m")["summary"]["alpha"] == 1e-3
    assert read_info(tmp_path / "m")["schema"]["recipe"] == "plain"


def test_no_choice(tmp_path):
    """--tune off, or a handful of sentences: plain features, and an alpha that goes with the number of words."""
    for n, options, said in ((30, ("--tune", "off"), ""), (10, (), "too few sentences to choose parameters by")):
        path = treebank(tmp_path, n=n)
        result = call("parse", "train", path, "-o", tmp_path / "m", *QUICK, *options)
        assert said in result.stderr and "choosing" not in result.stderr
        info = read_info(tmp_path / "m")
        assert info["schema"]["recipe"] == "plain" and info["summary"]["alpha"] == pytest.approx(0.5 / (6 * n))


def test_models_of_the_first_version():
    judged = answer("parse", "evaluate", STORED / "parse-0.1.model", STORED / "parse-0.1.conllu")
    assert judged["uas"] == judged["las"] == 1.0


def invented(words: list[str], rng: np.random.Generator, n: int = 30) -> str:
    """Sentences of two nonsense words without tags: those of the second half of the list are the roots."""
    half, text = len(words) // 2, ""
    for _ in range(n):
        pair = [words[rng.integers(half)], words[half + rng.integers(half)]]
        order = [0, 1] if rng.random() < 0.5 else [1, 0]
        root = order.index(1)
        for i, which in enumerate(order):
            head = 0 if i == root else root + 1
            text += "\t".join([str(i + 1), pair[which], "_", "X", "_", "_", str(head), "dep", "_", "_"]) + "\n"
        text += "\n"
    return text


def test_vectors_tell_of_words_that_training_has_not_seen(tmp_path):
    rng = np.random.default_rng(0)
    seen, unseen = ([f"{kind}{i}" for i in range(200)] for kind in ("a", "b"))
    sides = np.concatenate([np.repeat([[1.0, 0.0], [0.0, 1.0]], 100, axis=0)] * 2)
    np.savez(tmp_path / "v.npz", words=np.array(seen + unseen), vectors=sides + 0.01 * rng.normal(size=(400, 2)))
    (tmp_path / "train.conllu").write_text(invented(seen, rng, 300))
    (tmp_path / "test.conllu").write_text(invented(unseen, rng))
    for options, least, most in (((), 0.0, 0.7), (("--vectors", tmp_path / "v.npz"), 0.9, 1.0)):
        call("parse", "train", tmp_path / "train.conllu", "-o", tmp_path / "m", *QUICK, "--tune", "off", *options)
        (tmp_path / "v.npz").rename(tmp_path / "away.npz")  # the model needs no file
        assert least <= answer("parse", "evaluate", tmp_path / "m", tmp_path / "test.conllu")["uas"] <= most
        (tmp_path / "away.npz").rename(tmp_path / "v.npz")


def test_vectors_that_are_none_are_refused_before_the_work(tmp_path):
    (tmp_path / "v.txt").write_text("cat 1.0 x\n")
    said = complaint("parse", "train", treebank(tmp_path), "-o", tmp_path / "m", "--vectors", tmp_path / "v.txt")
    assert "v.txt, line 1" in said and "'x' is no number" in said


@pytest.mark.parametrize("n", [20, 100, 5000])
def test_sentences_to_choose_by_are_others_than_those_trained_on(n):
    sizes = np.random.default_rng(n).integers(1, 30, size=n)
    kept, held = quick_fold(sizes, 0)
    assert kept.size and held.size and np.intersect1d(kept, held).size == 0
    assert sizes[kept].sum() <= 15_000 + 30 and sizes[held].sum() <= 25_000 + 30
    assert n == 5000 or kept.size + held.size == n
    assert quick_fold(sizes[:19], 0) is None


def test_trials_weigh_as_the_training_does(tmp_path, monkeypatch):
    """The alpha of a trial times its words is that of the training times all words."""
    given = list(read_conllu(treebank(tmp_path)))
    heads, tried = [one.heads for one in given], []
    monkeypatch.setattr(NashParser, "fit", lambda self, X, y: tried.append(self.alpha * X.sizes.sum()))
    monkeypatch.setattr(NashParser, "task_loss", lambda self, X, y: 0.25)
    attempt = trials(NashParser(max_time=1e-9), (given, heads), (np.arange(10), np.arange(10, 30)), 12)
    assert attempt({"features": "plain", "alpha": 2e-3}).loss == 0.25
    assert tried == [pytest.approx(2e-3 * 180)]


def test_features_of_other_kinds_are_refused(tmp_path):
    given = list(read_conllu(treebank(tmp_path)))
    X = parsing.HashedSentences(given, 12, features="context")
    parser = NashParser(alpha=0.1, tol=0.1).fit(X, [one.heads for one in given])
    with pytest.raises(ValueError, match="kind and width"):
        parser.predict(parsing.HashedSentences(given, 12))
    with pytest.raises(ValueError, match=r"features must be one of \['context', 'plain'\]; got 'contexts'"):
        parsing.HashedSentences(given, 12, features="contexts")


def test_a_word_knows_what_introduces_it():
    """Heads of "saw" and "with" depend on the preposition, which is no end of their arc."""
    rows = ["saw VERB", "the DET", "man NOUN", "with ADP", "a DET", "telescope NOUN", "and CCONJ", "left VERB"]
    lines = [f"{i}\t{row.split()[0]}\t{row.split()[0]}\t{row.split()[1]}" + "\t_" * 6 for i, row in enumerate(rows, 1)]
    sentence = next(parse_conllu([line + "\n" for line in lines]))
    from nashlearn.surroundings import after, before, marker

    assert marker(sentence) == ["start", "|VERB", "|VERB", "|VERB", "with", "with", "with", "and"]
    assert before(sentence)[2] == "VERB DET" and after(sentence)[6] == "VERB >"
