"""The corner of a Gram matrix that visits work on: in single precision, and kept from round to round.

Visits wait for memory: half the bytes are half the time, and later rounds mend what rounding spoils. Most examples of a
working set were in the last one too, so that few rows and columns are new.
"""

from __future__ import annotations

import numpy as np

from nashlearn.kernels.gram import mirror
from nashlearn.training.designs.gram import Gram

__all__ = ["Corner"]

_SPARE = 1.15  # room for so many times the examples that a corner is made for,
_IDLE = 1.15  # and so many times those in use may be in it before others take their places
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
        before = self.members.size
        total = before + new.size
        if total > min(_IDLE * wanted.size, self._room.shape[0]):
            self._exchange(wanted)
        elif new.size:
            self.members = np.concatenate([self.members, new])
            self._enter(np.arange(before, total))
        return self._place[wanted]

    def means(self, some: np.ndarray) -> np.ndarray:
        """The mean of these columns, by their places, for each member."""
        weights, found = np.zeros(self.members.size, np.float32), np.empty(self.members.size)
        weights[some] = 1.0 / max(some.size, 1)

        def part(start: int) -> None:
            found[start : start + _STEP] = self.K[start : start + _STEP] @ weights

        self.gram.run(part, ((start,) for start in range(0, self.members.size, _STEP)))
        return found

    def _exchange(self, wanted: np.ndarray) -> None:
        """Have these examples alone as members; who was one stays in its place, others take those that are free."""
        size, asked = wanted.size, np.zeros(self.gram.n, np.bool_)
        if size > self._room.shape[0]:
            self._widen(size)
        asked[wanted] = True
        stay = np.flatnonzero(asked[self.members[:size]])
        members = np.full(size, -1)
        members[stay] = self.members[stay]
        asked[members[stay]] = False
        free = np.flatnonzero(members < 0)
        members[free] = wanted[asked[wanted]]
        self._place[self.members] = -1
        self.members = members
        self._place[members[stay]] = stay
        self._enter(free)

    def _widen(self, size: int) -> None:
        """Make room for more than ``size`` members."""
        old, most = self.K, min(int(_SPARE * size), self.gram.n)
        self._room = room = np.empty((most, most), np.float32)

        def part(start: int) -> None:
            room[start : min(start + _STEP, len(old)), : len(old)] = old[start : start + _STEP]

        self.gram.run(part, ((start,) for start in range(0, len(old), _STEP)))

    def _enter(self, at: np.ndarray) -> None:
        """Write rows and columns of the members in these places, who are new."""
        gram, new = self.gram, self.members[at]
        self._place[new] = at
        kept = gram.kept(new)
        gram.pick(new[kept], self.members, self._room, at[kept])
        missing = at[~kept]
        if missing.size:
            gram.write(self.members[missing], self.members, self.K, missing, roughly=True)
        others = np.ones(self.members.size, np.bool_)
        others[at] = False
        rest = np.flatnonzero(others)
        gram.run(self._turn, ((at, rest[start : start + _STEP]) for start in range(0, rest.size, _STEP)))

    def _turn(self, at: np.ndarray, others: np.ndarray) -> None:
        """Write new columns of some rows: they are old columns of the new rows."""
        mirror(self._room, at, others)
