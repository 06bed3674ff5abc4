"""Vectors of words: one table whatever the file, and errors that name the file and the line."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from nashlearn.vectors import WordVectors, read_vectors

WORDS = ["the", "New York", "cat", "\N{NO-BREAK SPACE}"]


def lines(table: np.ndarray) -> str:
    return "".join(f"{word} {' '.join(map(str, row))}\n" for word, row in zip(WORDS, table.tolist(), strict=True))


def test_every_format_gives_the_same_table(tmp_path):
    table = np.random.default_rng(0).standard_normal((4, 5)).astype(np.float32)
    text = lines(table)
    (tmp_path / "glove.txt").write_text(text)
    (tmp_path / "word2vec.txt").write_text("4 5\n" + text.replace("\n", " \n"))  # it ends lines in a space
    (tmp_path / "glove.txt.gz").write_bytes(gzip.compress(text.encode()))
    np.savez(tmp_path / "vectors.npz", words=np.array(WORDS), vectors=table)
    for name in ("glove.txt", "word2vec.txt", "glove.txt.gz", "vectors.npz"):
        found = read_vectors(tmp_path / name)
        assert found.words == WORDS, name
        np.testing.assert_array_equal(found.table, table)


def test_looking_words_up():
    vectors = WordVectors(["a", "B", "a"], [[1, 0], [0, 1], [9, 9]])
    assert vectors.places(["A", "B", "b", "a"]).tolist() == [0, 1, -1, 0]
    np.testing.assert_array_equal(vectors.rows(["B", "c"]), [[0, 1], [0, 0]])


def test_clusters_are_of_directions():
    rng = np.random.default_rng(1)
    groups = np.repeat([0, 1, 2], 20)
    table = np.eye(3)[groups] * rng.uniform(0.1, 50, (60, 1)) + 1e-3 * rng.standard_normal((60, 3))
    vectors = WordVectors([str(i) for i in range(60)], table)
    found = vectors.clusters(3, seed=0)
    assert {(int(a), int(b)) for a, b in zip(groups, found, strict=True)} == set(enumerate(found[[0, 20, 40]].tolist()))
    assert len(set(found.tolist())) == 3
    np.testing.assert_array_equal(found, vectors.clusters(3, seed=0))
    assert WordVectors(["a"], [[1.0]]).clusters(100).tolist() == [0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no vectors"),
        ("the\n", "line 1: a word and its numbers"),
        ("the 1 2\ncat 1\n", "line 2: a word and 2 numbers, as in the first line"),
        ("the 1 2\ncat 1 x\n", "line 2: 'x' is no number"),
        ("the 1 2\ncat 1 nan\n", "line 2: the vector holds NaN"),
    ],
)
def test_bad_text_files(tmp_path, text, message):
    path = tmp_path / "bad.txt"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as error:
        read_vectors(path)
    assert str(path) in str(error.value)


def test_bad_archives(tmp_path):
    path = tmp_path / "bad.npz"
    arrays = {"words": np.array(["a", "b"]), "vectors": np.ones((2, 2))}
    for wrong, message in (
        ({"words": arrays["words"]}, "lacks 'vectors' and has 'words'"),
        (arrays | {"words": np.array(["a"])}, "row for each of the 1 words"),
        (arrays | {"words": np.arange(2)}, "'words' must be a list of text"),
        (arrays | {"words": np.array(["a", None])}, "no .npz file of plain arrays"),
        (arrays | {"vectors": np.full((2, 2), np.inf)}, "NaN or infinite values at the word 'a'"),
    ):
        np.savez(path, **wrong)
        with pytest.raises(ValueError, match=message) as error:
            read_vectors(path)
        assert str(path) in str(error.value)
    path.write_bytes(b"PK but not an archive")
    with pytest.raises(ValueError, match="file of plain arrays"):
        read_vectors(path)
