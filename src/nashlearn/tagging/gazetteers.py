"""Lists of names that a user has, and where they stand in a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike

from nashlearn.datasets.home import text_lines
from nashlearn.estimators._network_input import NamedFeatures

__all__ = ["Gazetteer", "read_gazetteer"]


class Gazetteer:
    """A list of names, whatever the case of their letters.

    Parameters
    ----------
    entries : iterable of str
        Words of a name with spaces between them, cut as the sentences are: "St . Louis" where these set the dot apart.
    """

    def __init__(self, entries: Iterable[str]):
        names = dict.fromkeys(" ".join(entry.lower().split()) for entry in entries)
        names.pop("", None)
        self.entries = NamedFeatures(names)  # kept in files as two arrays
        self.longest = max((name.count(" ") + 1 for name in names), default=0)

    def __len__(self) -> int:
        return len(self.entries.columns)

    def spans(self, words: Sequence[str]) -> list[tuple[int, int]]:
        """First position and end of the names in a sentence: from the left, the longest that begins at each word."""
        known, lower = self.entries.columns, [word.lower() for word in words]
        found, i = [], 0
        while i < len(lower):
            ends = range(min(i + self.longest, len(lower)), i, -1)
            end = next((j for j in ends if " ".join(lower[i:j]) in known), 0)
            if end:
                found.append((i, end))
            i = end or i + 1
        return found

    def marks(self, words: Sequence[str]) -> list[str]:
        """Where each word stands in a name: ``B``, ``I``, ``E`` of longer ones, ``S`` alone; empty outside."""
        marks = [""] * len(words)
        for i, j in self.spans(words):
            marks[i:j] = ["S"] if j == i + 1 else ["B", *"I" * (j - i - 2), "E"]
        return marks


def read_gazetteer(path: str | PathLike[str]) -> Gazetteer:
    """Read a list of names: one a line, in UTF-8, gzipped where the name of the file ends in ``.gz``.

    Lines that are empty or begin with ``#`` and a space are left out.
    """
    found = Gazetteer(line for line in text_lines(path) if not line.startswith("# "))
    if not len(found):
        raise ValueError(f"{path} holds no names: a name a line is needed.")
    return found
