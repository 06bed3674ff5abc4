"""The corner of a Gram matrix that visits work on: in single precision, and kept from round to round.

Visits wait for memory: half the bytes are half the time, and later rounds mend what rounding spoils. Most examples of a
working set were in the last one too, so that few rows and columns are new.
"""

from __future__ import annotations

import numpy as np

from nashlearn.training.designs.gram import Gram

__all__ = ["Corner"]

_SPARE = 1.15  # room for so many times the examples that a corner is made for,
_IDLE = 1.15  # and so many times those in use may be in it before it is made anew
_STEP = 512  # rows that one thread turns into columns, or adds up, at a time


class Corner:
    """The rows and columns of ``members``, without the bias; others are added as they are asked for."""

    def __init__(self, gram: Gram):
        self.gram, self.members = gram, np.empty(0, np.intp)
        self._place = np.full(gram.n, -1)
        self._room = np.empty((0, 0), np.float32)

    @property
    def K(self) -> np.ndarray:
        """The matrix of the members."""
        return self._room[: self.members.size, : self.members.size]

    def places(self, wanted: np.ndarray) -> np.ndarray:
        """Where these examples are among the members, of which they become some where they were not."""
        new = wanted[self._place[wanted] < 0]
        total = self.members.size + new.size
        if total > self._room.shape[0] or total > _IDLE * wanted.size:
            self._clear(wanted.size)
            new = wanted
        if new.size:
            self._add(new)
        return self._place[wanted]

    def means(self, some: np.ndarray) -> np.ndarray:
        """The mean of these columns, by their places, for each member."""
        weights, found = np.zeros(self.members.size, np.float32), np.empty(self.members.size)
        weights[some] = 1.0 / max(some.size, 1)

        def part(start: int) -> None:
            found[start : start + _STEP] = self.K[start : start + _STEP] @ weights

        self.gram.run(part, ((start,) for start in range(0, self.members.size, _STEP)))
        return found

    def _clear(self, size: int) -> None:
        """Forget all members; make room for more than ``size`` others where there is less."""
        self._place[self.members] = -1
        self.members = self.members[:0]
        if size > self._room.shape[0]:
            del self._room
            most = min(int(_SPARE * size), self.gram.n)
            self._room = np.empty((most, most), np.float32)

    def _add(self, new: np.ndarray) -> None:
        """Members that were none."""
        before, gram, kept = self.members.size, self.gram, self.gram.kept(new)
        self.members = np.concatenate([self.members, new[kept], new[~kept]])
        self._place[self.members] = np.arange(self.members.size)
        middle = self.members.size - np.count_nonzero(~kept)
        gram.pick(self.members[before:middle], self.members, self._room, np.arange(before, middle))
        if middle < self.members.size:
            gram.against(self.members, roughly=True)(self.members[middle:], self.K[middle:])
        gram.run(self._turn, ((start, before) for start in range(0, before, _STEP)))

    def _turn(self, start: int, before: int) -> None:
        """Write new columns of some rows: they are old columns of the new rows."""
        stop = min(start + _STEP, before)
        self.K[start:stop, before:] = self.K[before:, start:stop].T
