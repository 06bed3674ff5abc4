"""Labelled sequences: handwritten words, columns of tokens as in the CoNLL shared tasks, and Sudoku puzzles."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from nashlearn.datasets.home import bunch, find, text_lines

__all__ = ["load_chunking", "load_ocr_letters", "load_sudoku", "parse_columns", "read_columns"]


def parse_columns(lines: Iterable[str], name: str = "columns") -> list[list[list[str]]]:
    """Sentences of tokens of columns: a token a line, columns between spaces, an empty line after each sentence.

    Where the first line holds a tab, columns are between tabs: words may then hold spaces, or be empty.

    Raises
    ------
    ValueError
        With ``name`` and the number of the line, where a line has more or fewer columns than the first.
    """
    sentences: list[list[list[str]]] = []
    current: list[list[str]] = []
    width, separator = None, None
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            current = []
            continue
        if width is None and "\t" in line:
            separator = "\t"
        columns = line.rstrip("\r\n").split(separator)
        width = width or len(columns)
        if len(columns) != width:
            raise ValueError(f"{name}, line {number}: {len(columns)} columns; the first line has {width}.")
        if not current:
            sentences.append(current)
        current.append(columns)
    return sentences


def read_columns(path: str | Path) -> list[list[list[str]]]:
    """Sentences of a file, gzipped or not, see :func:`parse_columns`."""
    return parse_columns(text_lines(path), str(path))


def load_chunking(part: str = "train") -> Any:
    """Base phrases of the CoNLL-2000 shared task.

    Parameters
    ----------
    part : {"train", "test"}

    Returns
    -------
    sklearn.utils.Bunch
        ``data``: for each sentence its (word, part of speech) pairs; ``target``: its tags, as "B-NP", "I-NP" or "O".
    """
    if part not in ("train", "test"):
        raise ValueError(f"part must be 'train' or 'test'; got {part!r}.")
    sentences = read_columns(find("sequences", f"conll2000-{part}.txt.gz"))
    data = [[(word, tag) for word, tag, _ in sentence] for sentence in sentences]
    return bunch(name="conll2000", data=data, target=[[token[2] for token in sentence] for sentence in sentences])


def load_ocr_letters() -> Any:
    """Handwritten words, letter by letter: 16 x 8 pixels each, as [taskar2003]_ used them.

    Returns
    -------
    sklearn.utils.Bunch
        ``data``: for each word an array (length, 128) of zeros and ones; ``target``: its letters, 0 to 25;
        ``folds`` (words,), 0 to 9.
    """
    with np.load(find("sequences", "ocr_letters.npz")) as content:
        pixels = np.unpackbits(content["pixels_packed"], axis=1).astype(np.float64)
        cuts = content["word_offsets"][1:-1]
        labels = content["labels"].astype(np.int64)
        folds = content["folds"].astype(np.int64)
    return bunch(name="ocr_letters", data=np.split(pixels, cuts), target=np.split(labels, cuts), folds=folds)


def load_sudoku(name: str = "manet") -> Any:
    """Sudoku puzzles with their solutions.

    Parameters
    ----------
    name : {"manet", "17clue", "top1465"}
        The puzzles of [franc2022]_, minimal ones, or hard ones.

    Returns
    -------
    sklearn.utils.Bunch
        ``data`` and ``target`` (n, 81), row by row: digits 1 to 9, 0 for an empty cell.
    """
    if name not in ("manet", "17clue", "top1465"):
        raise ValueError(f"name must be 'manet', '17clue' or 'top1465'; got {name!r}.")
    with gzip.open(find("sudoku", f"sudoku_{name}.csv.gz"), "rt") as lines:
        rows = list(csv.reader(lines))[1:]
    digits = np.array([[list(cells) for cells in row] for row in rows]).astype(np.int64)
    return bunch(name=name, data=digits[:, 0], target=digits[:, 1])
