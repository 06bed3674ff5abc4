"""Loaders of sequences and puzzles."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from nashlearn import datasets

COLUMNS = "He PRP B-NP\nsees VBZ B-VP\n\n\nIt PRP B-NP\n"


def test_columns(tmp_path):
    sentences = datasets.parse_columns(COLUMNS.splitlines())
    assert [len(s) for s in sentences] == [2, 1] and sentences[0][1] == ["sees", "VBZ", "B-VP"]
    plain, packed = tmp_path / "a.txt", tmp_path / "a.txt.gz"
    plain.write_text(COLUMNS)
    packed.write_bytes(gzip.compress(COLUMNS.encode()))
    assert datasets.read_columns(plain) == datasets.read_columns(packed) == sentences
    plain.write_text("a b\nc\n")
    with pytest.raises(ValueError, match="line 2: 1 columns"):
        datasets.read_columns(plain)
    tabs = "New York\tB\n\tO\n \tO\n\nIt\tO\r\n"
    assert datasets.parse_columns(tabs.split("\n")) == [[["New York", "B"], ["", "O"], [" ", "O"]], [["It", "O"]]]


@pytest.mark.data
def test_chunking():
    """The published numbers of sentences and tokens."""
    train, test = datasets.load_chunking("train"), datasets.load_chunking("test")
    assert (len(train.data), sum(map(len, train.target))) == (8936, 211727)
    assert (len(test.data), sum(map(len, test.target))) == (2012, 47377)
    with pytest.raises(ValueError, match="part"):
        datasets.load_chunking("dev")


@pytest.mark.data
def test_ocr_letters():
    letters = datasets.load_ocr_letters()
    assert len(letters.data) == len(letters.target) == len(letters.folds) == 6877
    assert sum(map(len, letters.target)) == 52152 and letters.data[0].shape[1] == 128
    assert all(len(x) == len(y) for x, y in zip(letters.data, letters.target, strict=True))


@pytest.mark.data
def test_sudoku():
    puzzles = datasets.load_sudoku("top1465")
    assert puzzles.data.shape == puzzles.target.shape == (1465, 81)
    given = puzzles.data > 0
    assert (puzzles.data[given] == puzzles.target[given]).all()
    assert (np.sort(puzzles.target.reshape(-1, 9, 9), axis=2) == np.arange(1, 10)).all()
    with pytest.raises(ValueError, match="name"):
        datasets.load_sudoku("easy")
