"""Features of tokens, names in gazetteers, groups of words, and the F1 of phrases."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import nashlearn
from nashlearn import tagging
from nashlearn.tagging.groups import WordGroups, groups_of_text
from nashlearn.tagging.spelling import kind


def sentences(n: int, seed: int = 0) -> list[list[list[str]]]:
    """A small language: 60 nouns, 60 verbs, and a word before each noun."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        subject, verb, thing = rng.integers(60, size=3)
        subject, verb, thing = (chr(97 + i % 26) + chr(97 + i // 26) for i in (subject, verb, thing))
        words = ["the", f"noun{subject}", f"Verb{verb}", "a", f"noun{thing}", "."]
        found.append([[word, "T"] for word in words])
    return found


def test_names_of_a_token():
    sentence = [["The", "DT"], ["Cat", "NN"], ["ran", "VB"]]
    plain = tagging.TokenFeatures(spelling=False).transform([sentence])[0]
    assert set(plain[1]) >= {"w-1=The", "w0=Cat", "w1=ran", "w2=_", "w-1,0=The|Cat", "1:0=NN", "1:-1,0=DT|NN"}
    assert "1:-1..1=DT|NN|VB" in plain[1] and len(plain[1]) == 19
    spelt = tagging.TokenFeatures().transform([sentence])[0]
    assert set(spelt[1]) - set(plain[1]) >= {"lower=cat", "shape=Xx", "s2=at", "b1=c"}
    named = tagging.TokenFeatures(entities=True).transform([sentence])[0]
    wanted = {"w=Cat", "l0=cat", "l-1=the", "shape=Xxx", "k0=title, small", "k1=small", "b3=cat", "-1s3=the", "1:0=NN"}
    assert set(named[1]) >= wanted


def test_kinds_of_words():
    words = {"http://t.co/x": "web", "@": "@", "#news": "#word", "12:30": "number", "!!": "mark", "": "mark"}
    words |= {"B2B": "letters and digits", "cat": "small", "X": "initial", "NASA": "capitals", "Paris": "title, small"}
    words |= {"McKay": "title, mixed", "iPhone": "mixed"}
    assert {word: kind(word) for word in words} == words


@pytest.mark.parametrize("recipe", tagging.RECIPES)
def test_features_do_not_depend_on_other_sentences(recipe, tmp_path):
    text = sentences(300)
    (tmp_path / "things.txt").write_text("nounaa\nthe nounba\n")
    maker = tagging.TokenFeatures(**tagging.RECIPES[recipe], gazetteers=[str(tmp_path / "things.txt")]).fit(text)
    some = [*sentences(8, seed=1), [["", "T"]], [["\N{SNOWMAN}", "T"], ["I", "T"]]]
    assert maker.transform(some) == [maker.transform([one])[0] for one in some]
    assert maker.transform(some[::-1]) == maker.transform(some)[::-1]


def spans_by_force(entries: set[tuple[str, ...]], words: list[str]) -> list[tuple[int, int]]:
    """All stretches of the sentence that are entries; the longest of those that begin first, and so on."""
    lower = tuple(word.lower() for word in words)
    whole = [(i, j) for i in range(len(words)) for j in range(i + 1, len(words) + 1) if lower[i:j] in entries]
    found = []
    while whole:
        first = min(whole, key=lambda span: (span[0], -span[1]))
        found.append(first)
        whole = [span for span in whole if span[0] >= first[1]]
    return found


def test_names_of_gazetteers_against_brute_force():
    rng = np.random.default_rng(3)
    letters = np.array(list("abcABC"))
    for _ in range(200):
        entries = [list(rng.choice(letters, size=rng.integers(1, 5))) for _ in range(rng.integers(1, 12))]
        words = rng.choice(letters, size=rng.integers(0, 15)).tolist()
        gazetteer = tagging.Gazetteer(" ".join(entry) for entry in entries)
        wanted = spans_by_force({tuple(word.lower() for word in entry) for entry in entries}, words)
        assert gazetteer.spans(words) == wanted
        marks = gazetteer.marks(words)
        inside = {i for a, b in wanted for i in range(a, b)}
        assert [i for i, mark in enumerate(marks) if mark] == sorted(inside)
        assert all(marks[a] == ("S" if b == a + 1 else "B") and marks[b - 1] == "SE"[b > a + 1] for a, b in wanted)


def test_gazetteers_are_features_of_words_and_their_neighbours(tmp_path):
    (tmp_path / "places.txt").write_text("# a comment\n\nNew  York\nParis\n")
    maker = tagging.TokenFeatures(gazetteers=[str(tmp_path / "places.txt")])
    with pytest.raises(NotFittedError):
        maker.transform([[["Paris"]]])
    rows = maker.fit([]).transform([[["in"], ["new"], ["york"], ["."]]])[0]
    found = [{name for name in row if name.startswith("places")} for row in rows]
    assert found == [{"places1=B"}, {"places0=B", "places1=E"}, {"places-1=B", "places0=E"}, {"places-1=E"}]


def test_bad_gazetteers(tmp_path):
    (tmp_path / "a.txt").write_text("\n# nothing\n")
    (tmp_path / "a.csv").write_bytes(b"Paris\n\xff\xfe\n")
    for names, message in (("a.txt", "holds no names"), ("a.csv", "line 2: not a text file in UTF-8")):
        with pytest.raises(ValueError, match=message) as error:
            tagging.read_gazetteer(tmp_path / names)
        assert str(tmp_path / names) in str(error.value)
    (tmp_path / "a.txt").write_text("Paris")
    with pytest.raises(ValueError, match="two files are called 'a'"):
        tagging.TokenFeatures(gazetteers=[str(tmp_path / "a.txt")] * 2).fit([])


def test_words_in_the_same_places_are_grouped():
    text = [[token[0] for token in one] for one in sentences(1500)]
    groups = groups_of_text(text, (4, 64))
    words = {word for one in text for word in one}
    nouns, verbs = ({groups.of(word)[0] for word in words if word.startswith(part)} for part in ("noun", "Verb"))
    assert nouns.isdisjoint(verbs) and len(nouns | verbs) <= 4
    assert groups.of("NOUNAA") == groups.of("nounaa") and groups.of("unheard") == []
    np.testing.assert_array_equal(groups.groups, groups_of_text(text, (4, 64)).groups)
    assert groups_of_text(text[:2], (4, 64)).of("the") == []


def test_vectors_are_features(tmp_path):
    words = np.array(["cat", "dog", "sun"])
    np.savez(tmp_path / "v.npz", words=words, vectors=[[1.0, 0.0], [0.999, 0.001], [0.0, 1.0]])
    maker = tagging.TokenFeatures(vectors=str(tmp_path / "v.npz")).fit([])
    rows = maker.transform([[["Cat"], ["unheard"], ["sun"]]])[0]
    levels = [[name for name in row if name.startswith("vector0=")] for row in rows]
    assert [len(level) for level in levels] == [3, 0, 3] and levels[0] != levels[2]
    assert WordGroups(["a"], np.array([[3]])).of("A") == [3]


def chunks_as_conlleval(tags: list[str]) -> set[tuple[int, int, str]]:
    """The rules of conlleval, as seqeval has them: where a chunk ends and where one starts, by pairs of tags."""

    def parts(tag: str) -> tuple[str, str]:
        return (tag, "") if tag == "O" else (tag[0], tag[2:])

    found, begin, before = set(), 0, ("O", "")
    for i, tag in enumerate([*tags, "O"]):
        now = parts(tag)
        ends = before[0] in "BI" and (now[0] in "BO" or now[1] != before[1])
        starts = now[0] == "B" or (now[0] == "I" and (before[0] == "O" or now[1] != before[1]))
        if ends:
            found.add((begin, i, before[1]))
        if starts:
            begin = i
        before = now
    return found


def test_phrases_against_the_rules_of_conlleval():
    rng = np.random.default_rng(5)
    tags = np.array(["O", "B-A", "I-A", "B-B-C", "I-B-C"])
    truth, answers = ([rng.choice(tags, size=9).tolist() for _ in range(300)] for _ in range(2))
    for one in truth:
        assert tagging.phrases(one) == chunks_as_conlleval(one)
    ours, theirs = (
        {(i, *chunk) for i, one in enumerate(many) for chunk in chunks_as_conlleval(one)} for many in (answers, truth)
    )
    precision, recall = len(ours & theirs) / len(ours), len(ours & theirs) / len(theirs)
    found = tagging.phrase_scores(answers, truth)
    assert found == pytest.approx((2 * precision * recall / (precision + recall), precision, recall))
    assert tagging.phrase_f1(answers, truth) == found.f1


def test_phrases():
    """An I- of another kind, or after O, begins a phrase of its own."""
    assert tagging.phrases(["B-NP", "I-NP", "I-VP", "O", "I-NP", "B-NP"]) == {
        (0, 2, "NP"),
        (2, 3, "VP"),
        (4, 5, "NP"),
        (5, 6, "NP"),
    }


def test_f1():
    truth = [["B-NP", "I-NP", "O", "B-VP"]]
    assert tagging.phrase_f1(truth, truth) == 1.0
    assert tagging.phrase_f1([["B-NP", "O", "O", "B-VP"]], truth) == pytest.approx(0.5)
    assert tagging.phrase_f1([["O"]], [["O"]]) == 1.0


def test_features_that_version_0_1_has_saved(tmp_path, monkeypatch):
    """They know nothing but spelling, and call their class nashlearn.tagging.TokenFeatures."""
    pytest.importorskip("skops")
    from sklearn.pipeline import Pipeline

    text = sentences(4)
    old = tagging.TokenFeatures.__new__(tagging.TokenFeatures)
    old.__dict__["spelling"] = True
    tagger = nashlearn.NashTagger(tol=0.1).fit(old.transform(text), [["A", "B", "B", "A", "A", "B"]] * 4)
    monkeypatch.setattr(tagging.TokenFeatures, "__module__", "nashlearn.tagging")
    nashlearn.save(Pipeline([("features", old), ("model", tagger)]), tmp_path / "old.model")
    monkeypatch.undo()
    loaded = nashlearn.load(tmp_path / "old.model")
    assert vars(loaded[0]) == {"spelling": True}
    assert loaded[0].transform(text) == tagging.TokenFeatures().transform(text)
    assert [list(one) for one in loaded.predict(text)] == [list(one) for one in tagger.predict(old.transform(text))]
