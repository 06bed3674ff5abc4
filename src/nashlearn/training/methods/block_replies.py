"""The adversary's past replies to a sentence, and the best mixture of them.

The dual point of sentence ``i`` is a mixture ``q_i = sum_j x_j r_j`` of replies with entropies ``h_j <= H(r_j)``. As
``H`` is concave, ``sum_j x_j h_j`` bounds ``H(q_i)`` from below. A visit adds a reply and maximises over the mixtures,
with all other sentences as they are:

    max_x  sum_j x_j (h_j + <theta, r_j>) - omega/(2 alpha) |sum_j (x_j - x0_j) Phi' r_j|^2 .

With one reply kept this is the line search of Frank-Wolfe, which creeps where the optimum lies on a face; mixtures of
more shift weight between replies and converge as active-set methods do ([lacostejulien2015]_). Replies beyond the room
are merged, the two of the least weight into one, which keeps ``q_i``, and with it the bound.
"""

from __future__ import annotations

from threading import get_ident
from typing import NamedTuple

import joblib
import numpy as np

from nashlearn.kernels.block_replies import visit
from nashlearn.kernels.hashed_arcs import Sentences
from nashlearn.kernels.reply_drafts import Drafts
from nashlearn.solvers.threads import in_threads, threads

__all__ = ["Replies", "Visits", "no_replies"]

_ROOM = 1 << 24  # numbers that replies may take: 128 MiB
_MOST = 32  # replies of a sentence
_DRAFTED = 8  # visits that a thread drafts at a time


class Replies(NamedTuple):
    """Of all sentences, whose arcs lie one after another; those of positive weight are in the first slots."""

    arcs: np.ndarray  # (slots, all arcs) the replies,
    entropy: np.ndarray  # (sentences, slots) what each secures at least,
    weight: np.ndarray  # (sentences, slots) its weight in the mixture,
    gram: np.ndarray  # (sentences, slots, slots) and its products with the others, <Phi' r_j, Phi' r_k>

    def mixture(self, offset: np.ndarray, n_jobs: int | None = 1) -> np.ndarray:
        """The dual point ``q``, all arcs one after another."""
        sizes, q = np.diff(offset), np.zeros(offset[-1])

        def add(first: int, last: int) -> None:
            own = slice(offset[first], offset[last])
            for weight, arcs in zip(self.weight[first:last].T, self.arcs, strict=True):
                q[own] += np.repeat(weight, sizes[first:last]) * arcs[own]

        in_threads(add, sizes.size, n_jobs)
        return q

    def secured(self) -> np.ndarray:
        """What the mixture of each sentence secures at least."""
        return (self.weight * self.entropy).sum(axis=1)


def no_replies(offset: np.ndarray) -> Replies:
    """Room for as many replies to each sentence as memory allows, at least one."""
    count, total = offset.size - 1, int(offset[-1])
    slots = _MOST
    while slots > 1 and slots * total + count * slots * (slots + 2) > _ROOM:
        slots -= 1
    return Replies(
        np.zeros((slots, total)), np.zeros((count, slots)), np.zeros((count, slots)), np.zeros((count, slots, slots))
    )


class Visits:
    """Visits to sentences, one after another; what depends on no weights is done in threads, some visits ahead.

    The thread that asks for visits takes them all: by whichever thread is free they took longer, perhaps since weights
    then go from cache to cache. Objects are to be kept for a whole training: fresh memory costs page faults.
    """

    def __init__(self, data: Sentences, n_jobs: int | None = 1):
        self._data, self._run = data, threads(joblib.effective_n_jobs(n_jobs))
        self._idle: list[Drafts] = []  # their memory is kept

    def take(
        self,
        w: np.ndarray,
        part: np.ndarray,
        offset: np.ndarray,
        omega: np.ndarray,
        alpha: float,
        reply: np.ndarray,
        reply_entropy: np.ndarray,
        kept: Replies,
    ) -> float:
        """Add the replies of the sentences ``part``, none of which may occur twice, and go to the best mixtures.

        Returns the sum of the gaps. ``w`` follows, but for a first reply. Cost: four times the features of the arcs in
        use.
        """
        caller, gaps, due, waiting = get_ident(), 0.0, 0, dict[int, Drafts]()

        def draft(at: int) -> None:
            try:
                drafts = self._idle.pop()
            except IndexError:
                drafts = Drafts(self._data)
            drafts.prepare(part[at * _DRAFTED : (at + 1) * _DRAFTED], offset, reply, *kept)
            waiting[at] = drafts
            if get_ident() == caller:
                take_due()

        def take_due() -> None:
            nonlocal gaps, due
            while due in waiting:
                drafts = waiting.pop(due)
                gaps += visit(drafts, w, omega, alpha, reply_entropy)
                self._idle.append(drafts)
                due += 1

        self._run(draft, ((at,) for at in range(-(-part.size // _DRAFTED))))
        take_due()
        return gaps
