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

from typing import NamedTuple

import numpy as np
from numba import njit

from nashlearn.training.designs.hashed_arcs import WIDTH, Attributes, arc_indices, scale_of

__all__ = ["Replies", "no_replies", "visit"]

_ROOM = 1 << 24  # numbers that replies may take: 128 MiB
_MOST = 32  # replies of a sentence


class Replies(NamedTuple):
    """Of all sentences, whose arcs lie one after another; those of positive weight are in the first slots."""

    arcs: np.ndarray  # (slots, all arcs) the replies,
    entropy: np.ndarray  # (sentences, slots) what each secures at least,
    weight: np.ndarray  # (sentences, slots) its weight in the mixture,
    gram: np.ndarray  # (sentences, slots, slots) and its products with the others, <Phi' r_j, Phi' r_k>

    def mixture(self, offset: np.ndarray) -> np.ndarray:
        """The dual point ``q``, all arcs one after another."""
        sizes, q = np.diff(offset), np.zeros(offset[-1])
        for weight, arcs in zip(self.weight.T, self.arcs, strict=True):
            q += np.repeat(weight, sizes) * arcs
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


@njit(cache=True, nogil=True)
def _best_mixture(offset, gram, mixture):
    """``argmax <offset, x> - x' gram x / 2`` over the simplex, near enough, by moves between pairs of planes."""
    x = mixture.copy()
    slope = offset - (gram * x).sum(axis=1)
    for _ in range(4000):
        rise, fall, lowest, most = 0, 0, np.inf, -1.0
        for t in range(x.size):
            if slope[t] > slope[rise]:
                rise = t
        # The second of the pair is the one whose move wins most, by its curvature [fan2005]_.
        for t in range(x.size):
            if x[t] > 0.0:
                lowest = min(lowest, slope[t])
                gain = slope[rise] - slope[t]
                won = gain * gain / max(gram[rise, rise] + gram[t, t] - 2.0 * gram[rise, t], 1e-300)
                if gain > 0.0 and won > most:
                    fall, most = t, won
        if not slope[rise] - lowest > 1e-12 * (1.0 + abs(slope[rise])):
            break
        gain = slope[rise] - slope[fall]
        curvature = gram[rise, rise] + gram[fall, fall] - 2.0 * gram[rise, fall]
        step = min(x[fall], gain / curvature) if curvature > 0.0 else x[fall]
        x[rise] += step
        x[fall] = x[fall] - step if step < x[fall] else 0.0
        for t in range(x.size):
            slope[t] -= step * (gram[rise, t] - gram[fall, t])
    return x


@njit(cache=True, nogil=True)
def _features_in_use(data, i, rows, index, length, place):
    """Features of the arcs that some of ``rows`` (replies, arcs) holds, and where these lie; their number."""
    n, count = data.size[i], 0
    for a in range(n * (n + 1)):
        used = False
        for j in range(rows.shape[0]):
            used = used or rows[j, a] != 0.0
        if used:
            d, h = a // (n + 1), a % (n + 1)
            length[count] = arc_indices(data.code, data.tag, data.first[i], d + 1, h, data.bits, index[count])
            place[count] = a
            count += 1
    return count


@njit(cache=True, nogil=True)
def _times(rows, w, count, index, length, place):
    """``<r_j, Phi w>`` for each of ``rows``."""
    products = np.zeros(rows.shape[0])
    for t in range(count):
        score = 0.0
        for f in range(length[t]):
            score += w[index[t, f]]
        score *= scale_of()
        for j in range(rows.shape[0]):
            products[j] += score * rows[j, place[t]]
    return products


@njit(cache=True, nogil=True)
def _add(w, x, factor, count, index, length, place):
    """``w += factor Phi' x``."""
    for t in range(count):
        if x[place[t]] != 0.0:
            for f in range(length[t]):
                w[index[t, f]] += factor * scale_of() * x[place[t]]


@njit(cache=True, nogil=True)
def _clear(w, count, index, length):
    for t in range(count):
        for f in range(length[t]):
            w[index[t, f]] = 0.0


@njit(cache=True, nogil=True)
def _merge_lightest(rows, x, h, g):
    """Replace the two replies of the least weight by their mixture; the second of them gets weight 0."""
    order = np.argsort(x)
    a, b = min(order[0], order[1]), max(order[0], order[1])
    total = x[a] + x[b]
    of_a, of_b = x[a] / total, x[b] / total
    rows[a] = of_a * rows[a] + of_b * rows[b]
    x[a], x[b] = total, 0.0
    h[a] = of_a * h[a] + of_b * h[b]
    g[a] = of_a * g[a] + of_b * g[b]
    g[:, a] = of_a * g[:, a] + of_b * g[:, b]


@njit(cache=True, nogil=True)
def _store(kept, i, start, stop, rows, x, h, g):
    """Write the replies of positive weight into the slots of sentence ``i``."""
    kept.weight[i] = 0.0
    slot = 0
    place = np.empty(x.size, np.int64)
    for j in range(x.size):
        if x[j] > 0.0:
            kept.arcs[slot, start:stop] = rows[j]
            kept.weight[i, slot], kept.entropy[i, slot] = x[j], h[j]
            place[slot] = j
            slot += 1
    for a in range(slot):
        for b in range(slot):
            kept.gram[i, a, b] = g[place[a], place[b]]


@njit(cache=True, nogil=True)
def visit(
    w: np.ndarray,
    data: Attributes,
    part: np.ndarray,
    offset: np.ndarray,
    omega: np.ndarray,
    alpha: float,
    reply: np.ndarray,
    reply_entropy: np.ndarray,
    kept: Replies,
    change: np.ndarray,
) -> float:
    """Add the replies of the sentences ``part``, one after another, and go to the best mixtures; the sum of gaps seen.

    ``w`` follows, but for a first reply. ``change`` (weights,) is 0 before and after. Cost: four times the features of
    the arcs in use.
    """
    slots, most = kept.weight.shape[1], 0
    for i in part:
        most = max(most, offset[i + 1] - offset[i])
    index, length, place = np.empty((most, WIDTH), np.uint32), np.empty(most, np.int64), np.empty(most, np.int64)
    gaps = 0.0
    for i in part:
        start, stop = offset[i], offset[i + 1]
        m = 0
        while m < slots and kept.weight[i, m] > 0.0:
            m += 1
        rows, x, h, g = np.empty((m + 1, stop - start)), np.zeros(m + 1), np.empty(m + 1), np.empty((m + 1, m + 1))
        rows[:m], rows[m] = kept.arcs[:m, start:stop], reply[start:stop]
        x[:m], h[:m], h[m] = kept.weight[i, :m], kept.entropy[i, :m], reply_entropy[i]
        count = _features_in_use(data, i, rows, index, length, place)
        _add(change, rows[m], 1.0, count, index, length, place)
        g[:m, :m] = kept.gram[i, :m, :m]
        g[m] = _times(rows, change, count, index, length, place)
        g[:, m] = g[m]
        _clear(change, count, index, length)
        if m == 0:
            x[0] = 1.0
        else:
            worth = h + _times(rows, w, count, index, length, place)
            slope = worth[m] - (x * worth).sum()
            if not slope > 0.0:
                continue
            gaps += omega[i] * slope
            rate = omega[i] / alpha
            new = _best_mixture(worth + rate * (g * x).sum(axis=1), rate * g, x)
            move = np.zeros(stop - start)
            for j in range(m + 1):
                if new[j] != x[j]:
                    move += (new[j] - x[j]) * rows[j]
            _add(w, move, -rate, count, index, length, place)
            x = new / new.sum()
            if m == slots and x.min() > 0.0:
                _merge_lightest(rows, x, h, g)
        _store(kept, i, start, stop, rows, x, h, g)
    return gaps
