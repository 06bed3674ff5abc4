"""Dependency treebanks in the CoNLL-U format of Universal Dependencies: read, written, found.

A sentence keeps every line of its file: comments, multiword ranges (``3-4``), empty nodes (``8.1``) and all ten
columns, so that writing what was read gives the same text. Its *words* are the lines with a plain number; heads and
relations are theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from nashlearn.datasets.home import check_name, encoded, find, text_lines

__all__ = ["Sentence", "load_treebank", "parse_conllu", "read_conllu", "treebank_names", "write_conllu"]

_COLUMNS = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
_ID = re.compile(r"([1-9][0-9]{0,8})(?:-([1-9][0-9]{0,8}))?|(0|[1-9][0-9]{0,8})\.([1-9][0-9]{0,8})")
_HEAD = re.compile(r"0|[1-9][0-9]{0,8}")
_TREEBANKS = {
    "tr_imst-r2.3": ("train", "dev", "test"),
    "en_ewt-r2.3": ("train", "dev", "test"),
    "nl_lassysmall-r2.3": ("dev", "test"),
    "nl_lassysmall-r2.1": ("trainpart",),
    "nl_lassysmall-r1.4": ("train", "dev", "test"),
}


def _column(j: int) -> Any:
    """What the words have in a column."""
    return property(lambda sentence: [sentence.rows[i][j] for i in sentence._words])


@dataclass
class Sentence:
    """One sentence of a treebank.

    Attributes
    ----------
    rows : list of list of str
        The ten columns of each line.
    comments : list of str
        Lines above them, with their ``#``.
    forms, lemmas, upos, xpos, feats, deprels : lists of str
        Columns of the words; the last are the relations to their heads.
    """

    rows: list[list[str]]
    comments: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._words = [i for i, row in enumerate(self.rows) if row[0].isdigit()]

    def __len__(self) -> int:
        return len(self._words)

    forms, lemmas, upos, xpos, feats, _heads, deprels = map(_column, range(1, 8))

    @property
    def heads(self) -> np.ndarray:
        """Heads of the words, 0 for the root, -1 where the file has none."""
        return np.array([-1 if head == "_" else int(head) for head in self._heads], dtype=np.int64)

    def with_parse(self, heads: Sequence[int] | np.ndarray, deprels: Sequence[str] | None = None) -> Sentence:
        """The same sentence with other heads, and relations where given (else ``_``); enhanced ones are dropped."""
        relations = ["_"] * len(self) if deprels is None else list(deprels)
        if len(heads) != len(self) or len(relations) != len(self):
            raise ValueError(
                f"The sentence has {len(self)} words; got {len(heads)} heads and {len(relations)} relations."
            )
        rows = [list(row) for row in self.rows]
        for i, head, relation in zip(self._words, heads, relations, strict=True):
            rows[i][6], rows[i][7], rows[i][8] = str(int(head)), relation, "_"
        return Sentence(rows, list(self.comments))

    def __str__(self) -> str:
        return "\n".join([*self.comments, *("\t".join(row) for row in self.rows)]) + "\n\n"


def parse_conllu(lines: Iterable[str], name: str = "conllu") -> Iterator[Sentence]:
    """Sentences of the lines of a file, one at a time.

    Raises
    ------
    ValueError
        With ``name`` and the number of the line: columns, identifiers or heads that the format does not allow.
    """
    comments: list[str] = []
    rows: list[list[str]] = []
    numbers: list[int] = []
    words = 0
    for number, line in enumerate(chain(lines, [None]), 1):  # the end is an end of a sentence too
        if line is None or not line.strip():
            if rows:
                yield _sentence(rows, comments, numbers, words, name)
            elif comments:
                place = f"{name}, line {number - (line is None)}"
                raise ValueError(f"{place}: comments without a sentence below them.")
            comments, rows, numbers, words = [], [], [], 0
        elif line.startswith("#") and not rows:
            comments.append(line.rstrip("\r\n"))
        else:
            rows.append(_row(line.rstrip("\r\n"), words, f"{name}, line {number}"))
            numbers.append(number)
            words += rows[-1][0].isdigit()


def _row(line: str, words: int, place: str) -> list[str]:
    """The columns of a line, whose identifier must follow those of the words above."""
    row = line.split("\t")
    if len(row) != len(_COLUMNS):
        raise ValueError(f"{place}: {len(row)} columns separated by tabs; CoNLL-U has {len(_COLUMNS)}.")
    for column, entry in zip(_COLUMNS, row, strict=True):
        if entry == "":
            raise ValueError(f"{place}: the column {column} is empty; write _ for no value.")
    parts = _ID.fullmatch(row[0])
    if parts is None:
        raise ValueError(f"{place}: {row[0]!r} is no identifier: a number, a range like 3-4 or an empty node like 8.1.")
    first, last, before, _ = parts.groups()
    if before is not None:
        wrong = int(before) != words
    else:
        wrong = int(first) != words + 1 or (last is not None and int(last) < int(first))
    if wrong:
        raise ValueError(f"{place}: the identifier {row[0]} does not follow word {words}.")
    return row


def _sentence(rows: list[list[str]], comments: list[str], numbers: list[int], words: int, name: str) -> Sentence:
    for row, number in zip(rows, numbers, strict=True):
        place = f"{name}, line {number}"
        if row[0].isdigit():
            if row[6] != "_" and not (_HEAD.fullmatch(row[6]) and int(row[6]) <= words):
                raise ValueError(f"{place}: the head {row[6]!r} is no number from 0 to {words}.")
            if row[6] == row[0]:
                raise ValueError(f"{place}: word {row[0]} is its own head.")
        elif "-" in row[0] and int(row[0].split("-")[1]) > words:
            raise ValueError(f"{place}: the range {row[0]} goes beyond the last word, {words}.")
    if words == 0:
        raise ValueError(f"{name}, line {numbers[0]}: a sentence without words.")
    return Sentence(rows, comments)


def read_conllu(path: str | PathLike[str]) -> list[Sentence]:
    """All sentences of a file, gzipped where its name ends in ``.gz``."""
    return list(parse_conllu(text_lines(path), str(path)))


def write_conllu(sentences: Iterable[Sentence], path: str | PathLike[str]) -> None:
    """Write sentences to a file, gzipped where its name ends in ``.gz``."""
    Path(path).write_bytes(encoded(path, "".join(map(str, sentences))))


def treebank_names() -> dict[str, tuple[str, ...]]:
    """The treebanks that :func:`load_treebank` knows, with their splits."""
    return dict(_TREEBANKS)


def load_treebank(name: str, split: str = "train") -> list[Sentence]:
    """A split of one of :func:`treebank_names`, from ``treebanks/NAME-SPLIT.conllu.gz`` in the data folder."""
    check_name("treebank", name, _TREEBANKS)
    if split not in _TREEBANKS[name]:
        raise ValueError(f"split must be one of {', '.join(_TREEBANKS[name])} for {name!r}; got {split!r}.")
    return read_conllu(find("treebanks", f"{name}-{split}.conllu.gz"))
