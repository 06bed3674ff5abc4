"""Vectors of words that somebody else has trained: word2vec's and GloVe's text files, and ``.npz``.

>>> import numpy as np
>>> from nashlearn.vectors import WordVectors
>>> vectors = WordVectors(["cat", "dog"], np.eye(2))
>>> vectors.places(["dog", "Cat", "bird"]).tolist()
[1, 0, -1]
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from nashlearn.datasets.home import text_lines

__all__ = ["WordVectors", "read_vectors"]

_FORMATS = "a word and its numbers a line, as word2vec and GloVe write text (.gz too), or an .npz of words and vectors"


class WordVectors:
    """Words and a vector for each of them.

    Parameters
    ----------
    words : sequence of str
        Where a word comes twice, the first one counts.
    table : array-like (n_words, d)
        Kept as float32.

    Attributes
    ----------
    words : list of str
    table : ndarray (n_words, d)
    """

    def __init__(self, words: Sequence[str], table: Any):
        self.words = [str(word) for word in words]
        self.table = np.ascontiguousarray(table, dtype=np.float32)
        if self.table.ndim != 2 or len(self.table) != len(self.words) or self.table.size == 0:
            raise ValueError(
                f"table must have a row for each of the {len(self.words)} words, of one number at least; got shape "
                f"{self.table.shape}."
            )
        if not np.isfinite(self.table).all():
            bad = int(np.flatnonzero(~np.isfinite(self.table).all(axis=1))[0])
            raise ValueError(f"table holds NaN or infinite values at the word {self.words[bad]!r}.")
        self._place: dict[str, int] = {}
        for i, word in enumerate(self.words):
            self._place.setdefault(word, i)

    def __len__(self) -> int:
        return len(self.words)

    def places(self, words: Iterable[str]) -> np.ndarray:
        """Row of ``table`` for each word, else for the word in small letters; -1 where both are unknown."""
        place = self._place
        found = [place[word] if word in place else place.get(word.lower(), -1) for word in words]
        return np.array(found, dtype=np.intp)

    def rows(self, words: Iterable[str]) -> np.ndarray:
        """Vectors (n, d) of words; zeros where a word is unknown."""
        places = self.places(words)
        found = np.zeros((places.size, self.table.shape[1]), dtype=np.float32)
        found[places >= 0] = self.table[places[places >= 0]]
        return found

    def clusters(self, k: int, seed: int = 0) -> np.ndarray:
        """Group of each word (n_words,), 0 to ``k`` - 1 at most, by k-means of the directions of the vectors.

        Costs a few passes over the table by mini-batches [sculley2010]_; the same for the same seed.
        """
        from sklearn.cluster import MiniBatchKMeans
        from sklearn.preprocessing import normalize

        k = min(int(k), len(self))
        means = MiniBatchKMeans(k, batch_size=4096, n_init=1, max_iter=20, random_state=seed)
        return means.fit_predict(normalize(self.table)).astype(np.int32)


def read_vectors(path: str | PathLike[str]) -> WordVectors:
    """Read vectors of words from a file.

    Parameters
    ----------
    path : path-like
        Ends in ``.npz``: arrays ``words`` (n,) of text and ``vectors`` (n, d). Any other: text in UTF-8, gzipped where
        the name ends in ``.gz``, a word and its numbers a line with spaces between them. A first line of two whole
        numbers, word2vec's count and width, is skipped.

    Raises
    ------
    ValueError
        With the file, and the line where there are lines: no number, a width unlike the first one, no words at all.
    """
    path = Path(path)
    if path.suffix == ".npz":
        return _from_arrays(path)
    words: list[str] = []
    vectors: list[np.ndarray] = []
    for number, line in enumerate(text_lines(path), start=1):
        cells = line.rstrip().replace("\t", " ").split(" ")
        if cells == [""] or (number == 1 and _is_head(cells)):
            continue
        width = vectors[0].size if vectors else len(cells) - 1
        word, vector = _entry(cells, width, f"{path}, line {number}")
        words.append(word)
        vectors.append(vector)
    if not words:
        raise ValueError(f"{path} holds no vectors: {_FORMATS} is needed.")
    return WordVectors(words, np.stack(vectors))


def _is_head(cells: list[str]) -> bool:
    return len(cells) == 2 and all(cell.isdecimal() for cell in cells)


def _entry(cells: list[str], width: int, place: str) -> tuple[str, np.ndarray]:
    """A word, which may hold spaces, and the ``width`` numbers after it."""
    if width < 1 or len(cells) <= width:
        wanted = f"a word and {width} numbers, as in the first line" if width else _FORMATS
        raise ValueError(f"{place}: {wanted} must stand here; got {len(cells)} columns.")
    try:
        vector = np.array(cells[-width:], dtype=np.float32)
    except ValueError:
        wrong = next(cell for cell in cells[-width:] if not _is_number(cell))
        raise ValueError(f"{place}: {wrong!r} is no number; {_FORMATS} is needed.") from None
    if not np.isfinite(vector).all():
        raise ValueError(f"{place}: the vector holds NaN or infinite values.")
    return " ".join(cells[:-width]), vector


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _from_arrays(path: Path) -> WordVectors:
    try:
        with np.load(path, allow_pickle=False) as content:
            found = {name: content[name] for name in content.files}
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} is no .npz file of plain arrays: {error}.") from None
    missing = [name for name in ("words", "vectors") if name not in found]
    if missing:
        raise ValueError(
            f"{path} must hold the arrays 'words' and 'vectors'; it lacks {' and '.join(map(repr, missing))} and has "
            f"{', '.join(map(repr, found)) or 'none'}."
        )
    words, vectors = found["words"], found["vectors"]
    if words.ndim != 1 or words.dtype.kind != "U" or vectors.dtype.kind not in "fiu":
        raise ValueError(f"{path}: 'words' must be a list of text (n,) and 'vectors' numbers (n, d).")
    try:
        return WordVectors(words.tolist(), vectors)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
