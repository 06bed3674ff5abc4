"""CoNLL-U: what is read is written back unchanged; what is malformed is refused with its line."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from nashlearn import datasets

TEXT = """\
# sent_id = 1
# text = vámonos al mar
1-2\tvámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tvamos\tir\tVERB\t_\tNumber=Plur\t0\troot\t0:root\t_
2\tnos\tnosotros\tPRON\t_\t_\t1\tobj\t1:obj\t_
3-4\tal\t_\t_\t_\t_\t_\t_\t_\t_
3\ta\ta\tADP\t_\t_\t5\tcase\t5:case\t_
4\tel\tel\tDET\t_\t_\t5\tdet\t5:det\t_
5\tmar\tmar\tNOUN\t_\t_\t1\tobl\t1:obl\t_

# sent_id = 2
1\tSue\tSue\tPROPN\tNNP\t_\t2\tnsubj\t_\t_
2\tlikes\tlike\tVERB\tVBZ\t_\t0\troot\t_\t_
2.1\tlikes\tlike\tVERB\tVBZ\t_\t_\t_\t2:conj\tCopyOf=2

"""


def line(*changes: tuple[int, str]) -> str:
    row = ["1", "a", "a", "X", "X", "_", "0", "root", "_", "_"]
    for column, entry in changes:
        row[column] = entry
    return "\t".join(row)


@pytest.mark.parametrize("suffix", [".conllu", ".conllu.gz"])
def test_round_trip(tmp_path, suffix):
    path, copy = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    path.write_bytes(gzip.compress(TEXT.encode()) if suffix.endswith("gz") else TEXT.encode())
    sentences = datasets.read_conllu(path)
    datasets.write_conllu(sentences, copy)
    written = copy.read_bytes()
    assert (gzip.decompress(written) if suffix.endswith("gz") else written).decode() == TEXT


def test_columns():
    first, second = datasets.parse_conllu(TEXT.splitlines())
    assert len(first) == 5 and len(second) == 2
    assert first.forms == ["vamos", "nos", "a", "el", "mar"]
    assert first.lemmas[0] == "ir" and first.upos[-1] == "NOUN" and first.feats[0] == "Number=Plur"
    assert first.heads.tolist() == [0, 1, 5, 5, 1] and first.deprels[1] == "obj"
    assert second.xpos == ["NNP", "VBZ"]


def test_a_parse_keeps_everything_else():
    first, second = datasets.parse_conllu(TEXT.splitlines())
    parsed = str(first.with_parse(np.array([2, 0, 2, 2, 2]), ["a", "root", "b", "c", "d"]))
    assert "1-2\tvámonos" in parsed and "# text = vámonos al mar" in parsed
    again = next(datasets.parse_conllu(parsed.splitlines()))
    assert again.heads.tolist() == [2, 0, 2, 2, 2] and again.deprels[3] == "c"
    assert "2.1\tlikes" in str(second.with_parse([0, 1]))
    assert first.heads[0] == 0
    with pytest.raises(ValueError, match="5 words; got 2 heads"):
        first.with_parse([0, 1])


def test_missing_heads():
    (sentence,) = datasets.parse_conllu([line((6, "_"), (7, "_"))])
    assert sentence.heads.tolist() == [-1]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([line(), "", line() + "\tmore"], "line 3: 11 columns"),
        (["1 a a X X _ 0 root _ _"], "line 1: 1 columns"),
        ([line((0, "x"))], "line 1: 'x' is no identifier"),
        ([line((0, "2"))], "line 1: the identifier 2 does not follow word 0"),
        ([line(), line()], "line 2: the identifier 1 does not follow word 1"),
        ([line(), line((0, "3.1"))], "line 2: the identifier 3.1"),
        ([line((6, "2"))], "line 1: the head '2' is no number from 0 to 1"),
        ([line((6, "-1"))], "line 1: the head '-1'"),
        ([line((6, "1"))], "line 1: word 1 is its own head"),
        ([line((3, ""))], "line 1: the column UPOS is empty"),
        ([line((0, "1-3"), (6, "_")), line()], "line 1: the range 1-3 goes beyond"),
        (["# alone", "", line()], "line 2: comments without a sentence"),
        ([line((0, "0.1"), (6, "_"))], "line 1: a sentence without words"),
    ],
)
def test_malformed(lines, message):
    with pytest.raises(ValueError, match="file.conllu, " + message):
        list(datasets.parse_conllu(lines, "file.conllu"))


def test_unknown_treebanks():
    with pytest.raises(ValueError, match="No treebank is called 'xx'"):
        datasets.load_treebank("xx")
    with pytest.raises(ValueError, match="split must be one of dev, test"):
        datasets.load_treebank("nl_lassysmall-r2.3", "train")


@pytest.mark.data
def test_the_treebanks_are_as_published():
    sentences = datasets.load_treebank("tr_imst-r2.3", "test")
    assert len(sentences) == 975 and sum(map(len, sentences)) == 9970
    path = datasets.data_home() / "treebanks" / "tr_imst-r2.3-test.conllu.gz"
    assert "".join(map(str, sentences)) == gzip.decompress(path.read_bytes()).decode()
