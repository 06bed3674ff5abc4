"""Arc features of sentences by hashing, computed where they are needed and never stored.

The features of an arc from head ``h`` to token ``d`` are conjunctions of attributes of both and of their neighbours
(word, lemma, coarse and fine tag, morphology), of the tags between them, of direction and of distance: the templates
of [mcdonald2005]_, with lemmas and morphology. Each is hashed to one of ``2^bits`` weights. A pass over a treebank
reads some seventy weights for each arc; storing the features would take gigabytes.
"""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import joblib
import numpy as np

from nashlearn.kernels.hashed_arcs import Sentences
from nashlearn.solvers.threads import threads

if TYPE_CHECKING:
    from nashlearn.kernels.arc_sums import Terms

__all__ = ["Attributes", "HashedArcs"]

_SCORED = 1 << 11  # arcs that one thread scores at a time
_SUMMED = 16  # sentences whose moments one thread lists at a time,
_TOGETHER = 32  # and so many lists before they are added: they take some megabytes


class Attributes(NamedTuple):
    """Tokens of all sentences: each has a root before it and a pad at either end.

    ``code`` (rows, 5 to 11) hashes form, lemma, coarse tag, fine tag and morphology, and further attributes; row
    ``first[i] + 1`` is the root of sentence ``i``, whose tokens follow. ``tag`` (rows,) numbers coarse tags 0..62 for
    the sets of tags between tokens.
    """

    code: np.ndarray
    tag: np.ndarray
    first: np.ndarray
    size: np.ndarray  # tokens of each sentence
    bits: int

    def compiled(self) -> Sentences:
        """The same, for kernels."""
        code = np.ascontiguousarray(self.code, dtype=np.uint64).view(np.int64)
        tag, first, size = (np.ascontiguousarray(x, dtype=np.intp) for x in (self.tag, self.first, self.size))
        return Sentences(code, tag, first, size, self.bits)


class HashedArcs:
    """Sentences whose arc features are computed when needed."""

    by_blocks = True  # features of a sentence cost too much to read all for a gradient

    def __init__(self, attributes: Attributes):
        self.attributes = attributes
        self.sentences = attributes.compiled()
        self.n_weights = 1 << attributes.bits

    def scores(self, w: np.ndarray, part: np.ndarray | None = None, n_jobs: int | None = 1) -> np.ndarray:
        """``Phi w`` of the sentences ``part``, or of all, one after another."""
        size = self.attributes.size
        part = np.arange(size.size) if part is None else np.ascontiguousarray(part, dtype=np.intp)
        bounds = np.concatenate([[0], np.cumsum(size[part] * (size[part] + 1))])
        theta = np.empty(bounds[-1])
        w = np.ascontiguousarray(w, dtype=np.float64)

        def score(i: int, j: int) -> None:
            self.sentences.scores(w, part[i:j], theta[bounds[i] : bounds[j]])

        pieces = -(-int(bounds[-1]) // _SCORED)
        cuts = np.searchsorted(bounds, bounds[-1] * np.arange(1, pieces) // pieces).tolist()  # equally many arcs
        threads(joblib.effective_n_jobs(n_jobs))(score, itertools.pairwise([0, *cuts, part.size]))
        return theta

    def moments(self, q: np.ndarray, omega: np.ndarray, n_jobs: int | None = 1) -> np.ndarray:
        """``sum_i omega_i Phi_i' q_i`` for entries that lie as the scores do."""
        from nashlearn.kernels.arc_sums import PARTS, Terms  # models of other inputs do without

        found, run, size = np.zeros(self.n_weights), threads(joblib.effective_n_jobs(n_jobs)), self.attributes.size
        omega, q = (np.ascontiguousarray(x, dtype=np.float64) for x in (omega, q))
        bounds = np.concatenate([[0], np.cumsum(size * (size + 1))])

        def terms(i: int) -> Terms:
            j = min(i + _SUMMED, size.size)
            return Terms(self.sentences, i, j, omega, q[bounds[i] : bounds[j]])

        starts = [(i,) for i in range(0, size.size, _SUMMED)]
        for at in range(0, len(starts), _TOGETHER):
            made = run(terms, starts[at : at + _TOGETHER])
            run(partial(_add, made, found), [(part,) for part in range(PARTS)])
        return found


def _add(terms: list[Terms], w: np.ndarray, part: int) -> None:
    """Add lists of terms to one part of the weights, in their order."""
    for own in terms:
        own.add(w, part)
