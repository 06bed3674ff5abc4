"""Arc features of sentences by hashing, computed where they are needed and never stored.

The features of an arc from head ``h`` to token ``d`` are conjunctions of attributes of both and of their neighbours
(word, lemma, coarse and fine tag, morphology), of the tags between them, of direction and of distance: the templates
of [mcdonald2005]_, with lemmas and morphology. Each is hashed to one of ``2^bits`` weights. A pass over a treebank
reads some seventy weights for each arc; storing the features would take gigabytes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from nashlearn.solvers.threads import in_threads

__all__ = ["WIDTH", "Attributes", "HashedArcs", "arc_indices", "arc_table", "scale_of"]

WIDTH = 96  # no arc has more features


class Attributes(NamedTuple):
    """Tokens of all sentences: each has a root before it and a pad at either end.

    ``code`` (rows, 5) hashes form, lemma, coarse tag, fine tag and morphology; row ``first[i] + 1`` is the root of
    sentence ``i``, whose tokens follow. ``tag`` (rows,) numbers coarse tags 0..62 for the sets of tags between tokens.
    """

    code: np.ndarray
    tag: np.ndarray
    first: np.ndarray
    size: np.ndarray  # tokens of each sentence
    bits: int


@njit(cache=True, nogil=True, inline="always")
def _mix(x, y):
    x = (x ^ y) * np.uint64(0x9E3779B97F4A7C15)
    return x ^ (x >> np.uint64(29))


@njit(cache=True, nogil=True)
def _distance(d):
    """A distance in seven steps."""
    if d <= 4:
        return d
    if d <= 6:
        return 5
    return 6 if d <= 10 else 7


@njit(cache=True, nogil=True)
def scale_of() -> float:
    """The value of a present feature: arcs have a norm near 1."""
    return 0.125


@njit(cache=True, nogil=True)
def arc_indices(code, tag, at, d, h, bits, out):
    """Indices of the features of the arc ``h -> d`` of the sentence whose pad is row ``at``; their number.

    ``d = 1..n`` is a token, ``h = 0..n`` a token or the root.
    """
    shift = np.uint64(64 - bits)
    a, b = at + 1 + h, at + 1 + d
    right = np.uint64(1 if h < d else 2) if h > 0 else np.uint64(3)
    gap = abs(d - h) if h > 0 else 0
    near = _mix(right, np.uint64(16 + _distance(gap)))
    hf, hm, hu, hx, hg = code[a, 0], code[a, 1], code[a, 2], code[a, 3], code[a, 4]
    df, dm, du, dx, dg = code[b, 0], code[b, 1], code[b, 2], code[b, 3], code[b, 4]
    hl, hr = code[a - 1, 3], code[a + 1, 3]
    dl, dr = code[b - 1, 3], code[b + 1, 3]
    tags, fine = _mix(hu, du + np.uint64(1)), _mix(hx, dx + np.uint64(2))
    words = _mix(hf, df + np.uint64(3))
    m = 0
    templates = (
        _mix(hf, hu), hm, hu, _mix(df, du), dm, du,
        _mix(words, tags), _mix(df, tags), _mix(words, du), _mix(hf, tags), _mix(hm, dm + np.uint64(5)), tags, fine,
        _mix(hm, du), _mix(dm, hu),
        _mix(_mix(fine, hr), dl), _mix(_mix(fine, hl), dl), _mix(_mix(fine, hr), dr), _mix(_mix(fine, hl), dr),
        _mix(fine, hr), _mix(fine, hl), _mix(fine, dl), _mix(fine, dr),
        _mix(_mix(tags, hg), dg), _mix(tags, dg), _mix(tags, hg), _mix(hm, dx), _mix(dm, hx),
        _mix(_mix(_mix(fine, hl), hr), _mix(dl, dr)), _mix(_mix(hx, hl), hr), _mix(_mix(dx, dl), dr),
        _mix(_mix(dm, dl), dr), _mix(_mix(tags, code[b - 1, 1]), code[b + 1, 1]),
    )  # fmt: skip
    for t, x in enumerate(templates):
        x = _mix(x, np.uint64(1000 + t))
        x = _mix(x, right)
        out[m] = x >> shift
        out[m + 1] = _mix(x, near) >> shift
        m += 2
    if h > 0 and gap > 1:
        low, high = min(a, b) + 1, max(a, b)
        seen, verbs, stops = np.uint64(0), 0, 0
        pair = _mix(tags, right)
        for c in range(low, high):
            bit = np.uint64(1) << np.uint64(tag[c])
            verbs += tag[c] == 0
            stops += tag[c] == 1
            if not seen & bit and m < WIDTH - 2:
                seen |= bit
                out[m] = _mix(_mix(pair, code[c, 2]), np.uint64(77)) >> shift
                m += 1
        out[m] = _mix(_mix(pair, np.uint64(16 * min(verbs, 3) + min(stops, 3))), np.uint64(78)) >> shift
        m += 1
    return m


@njit(cache=True, nogil=True)
def arc_table(code, tag, first, size, heads, bits, indices, bounds):
    """Feature indices of one arc a token, to the head that ``heads`` names, as the rows of a compressed matrix."""
    token, filled = 0, 0
    bounds[0] = 0
    for i in range(size.size):
        for d in range(1, size[i] + 1):
            filled += arc_indices(code, tag, first[i], d, heads[token], bits, indices[filled:])
            token += 1
            bounds[token] = filled
    return filled


@njit(cache=True, nogil=True)
def _score(w, data, part, theta):
    """Scores of the sentences ``part``, one after another, into ``theta``."""
    index, at = np.empty(WIDTH, np.uint32), 0
    for i in part:
        for d in range(1, data.size[i] + 1):
            for h in range(data.size[i] + 1):
                total = 0.0 if h != d else -np.inf
                if h != d:
                    for j in range(arc_indices(data.code, data.tag, data.first[i], d, h, data.bits, index)):
                        total += w[index[j]]
                theta[at] = total * scale_of()
                at += 1


@njit(cache=True, nogil=True)
def _add_moments(w, data, omega, q):
    """``w += sum_i omega_i Phi_i' q_i``."""
    index, at = np.empty(WIDTH, np.uint32), 0
    for i in range(data.size.size):
        n = data.size[i]
        for d in range(n):
            for h in range(n + 1):
                if q[at] != 0.0:
                    m = arc_indices(data.code, data.tag, data.first[i], d + 1, h, data.bits, index)
                    for j in range(m):
                        w[index[j]] += omega[i] * q[at] * scale_of()
                at += 1


class HashedArcs:
    """Sentences whose arc features are computed when needed."""

    by_blocks = True  # features of a sentence cost too much to read all for a gradient

    def __init__(self, attributes: Attributes):
        self.attributes = attributes
        self.n_weights = 1 << attributes.bits

    def scores(self, w: np.ndarray, part: np.ndarray | None = None, n_jobs: int | None = 1) -> np.ndarray:
        """``Phi w`` of the sentences ``part``, or of all, one after another."""
        size = self.attributes.size
        part = np.arange(size.size) if part is None else part
        bounds = np.concatenate([[0], np.cumsum(size[part] * (size[part] + 1))])
        theta = np.empty(bounds[-1])
        in_threads(lambda i, j: _score(w, self.attributes, part[i:j], theta[bounds[i] : bounds[j]]), part.size, n_jobs)
        return theta

    def moments(self, q: np.ndarray, omega: np.ndarray) -> np.ndarray:
        """``sum_i omega_i Phi_i' q_i`` for entries that lie as the scores do."""
        found = np.zeros(self.n_weights)
        _add_moments(found, self.attributes, omega, q)
        return found
