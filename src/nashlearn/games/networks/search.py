"""Exact search for the best labelling, by how much labellings fall short of a bound.

A reparametrised problem splits the bound over nodes and edges; what a label or a pair lacks of its node's or edge's
share is its *deficit*, never negative, and a labelling's score is the bound less the sum of its deficits. So the best
labelling has the least sum, labellings within a limit consist of labels and pairs within it, and the lower the limit
the more of them go. The search goes through the limits upwards: either it finds the best labelling within it, or it
proves that there is none and the bound falls. Each step assigns a label to the node with the fewest left, charges it
to the neighbours, and removes labels, then labels without a partner at some neighbour, until nothing changes
[larrosa2004]_. Cost of a step: a few passes over the tables of the edges that are open.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from nashlearn.games.networks.stars import Incidence

__all__ = ["Search", "deficits", "reparametrised"]

_GROWTH = 3.0  # of limits
_FIRST = 1e-3  # limit, in units of the scores


def reparametrised(g: Incidence, f: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Scores of labels (n, k) with the multipliers of their edges, -inf where forbidden."""
    node = np.where(f > -np.inf, f, np.inf)
    for side in (0, 1):
        np.add.at(node, g.ends[:, side], alpha[:, side])
    node[np.isposinf(node)] = -np.inf  # a multiplier of inf: a neighbour has ruled the label out
    return node


def deficits(g: Incidence, f: np.ndarray, T: np.ndarray, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Deficits of labels (n, k) and of pairs (m, k, k), inf where forbidden, and the bound that they fall short of."""
    node = reparametrised(g, f, alpha)
    left, right = g.ends.T
    alive = node > -np.inf
    allowed = alive[left, :, None] & alive[right, None, :] & (T[g.table] > -np.inf)
    first, second = (np.where(np.isfinite(alpha[:, side]), alpha[:, side], 0.0) for side in (0, 1))
    pair = np.where(allowed, T[g.table] - first[:, :, None] - second[:, None, :], -np.inf)
    tops, peaks = node.max(axis=1), pair.max(axis=(1, 2)) if len(pair) else np.zeros(0)
    if np.isneginf(tops).any() or np.isneginf(peaks).any():
        return np.full_like(node, np.inf), np.full_like(pair, np.inf), -np.inf
    return tops[:, None] - node, peaks[:, None, None] - pair, float(tops.sum() + peaks.sum())


class _State(NamedTuple):
    """A path of the search: what is left of the labels, their charges, and how to go back."""

    cost: np.ndarray  # (n, k) own deficits and those with neighbours that are settled
    left: np.ndarray  # (n, k) bool
    open: np.ndarray  # (n,) bool
    label: np.ndarray  # (n,)
    node: np.ndarray  # (n,) the node of each level
    order: np.ndarray  # (n, k) its labels, the cheapest first
    size: np.ndarray  # (n,) how many they are
    tried: np.ndarray  # (n,) and how many were tried
    total: np.ndarray  # (n + 1,) charges of the levels before
    saved: np.ndarray  # (n, degree, k) the neighbours' costs before
    removed: np.ndarray  # (n * k,) labels removed, in order
    mark: np.ndarray  # (n + 1,) how many were removed before each level
    least: np.ndarray  # (n,)
    at: np.ndarray  # level, labels removed, whether to go deeper


@njit(cache=True, nogil=True)
def _remove(s, v, a):
    s.left[v, a] = False
    s.removed[s.at[1]] = v * s.cost.shape[1] + a
    s.at[1] += 1


@njit(cache=True, nogil=True)
def _partners(s, g, pair, e, side, slack):
    """Remove labels of an edge's end that no label of the other's goes with; whether there were any."""
    u, v = g.ends[e, side], g.ends[e, 1 - side]
    k = s.cost.shape[1]
    changed = False
    for a in range(k):
        if not s.left[u, a]:
            continue
        room = slack - (s.cost[u, a] - s.least[u]) + s.least[v]
        found = False
        for b in range(k):
            d = pair[e, a, b] if side == 0 else pair[e, b, a]
            if s.left[v, b] and d + s.cost[v, b] <= room:
                found = True
                break
        if not found:
            _remove(s, u, a)
            changed = True
    return changed


@njit(cache=True, nogil=True)
def _tighten(s, g, pair, total, limit):
    """Remove what cannot be within ``limit``, until nothing changes; whether something may be."""
    n, k = s.cost.shape
    changed = True
    while changed:
        changed = False
        low = total
        for v in range(n):
            if s.open[v]:
                best = np.inf
                for a in range(k):
                    if s.left[v, a] and s.cost[v, a] < best:
                        best = s.cost[v, a]
                s.least[v] = best
                low += best
        slack = limit - low
        if not slack >= 0.0:
            return False
        for v in range(n):
            if s.open[v]:
                for a in range(k):
                    if s.left[v, a] and s.cost[v, a] - s.least[v] > slack:
                        _remove(s, v, a)
        for e in range(g.ends.shape[0]):
            if s.open[g.ends[e, 0]] and s.open[g.ends[e, 1]]:
                changed |= _partners(s, g, pair, e, 0, slack)
                changed |= _partners(s, g, pair, e, 1, slack)
    return True


@njit(cache=True, nogil=True)
def _deepen(s):
    """Open a level with the node that has the fewest labels left; false where none is open."""
    n, k = s.cost.shape
    chosen, fewest = -1, k + 1
    for v in range(n):
        if s.open[v]:
            size = 0
            for a in range(k):
                size += s.left[v, a]
            if size < fewest:
                chosen, fewest = v, size
    if chosen < 0:
        return False
    level, size = s.at[0], 0
    for a in range(k):
        if s.left[chosen, a]:
            i = size
            while i > 0 and s.cost[chosen, s.order[level, i - 1]] > s.cost[chosen, a]:
                s.order[level, i] = s.order[level, i - 1]
                i -= 1
            s.order[level, i] = a
            size += 1
    s.node[level], s.size[level], s.tried[level] = chosen, size, 0
    return True


@njit(cache=True, nogil=True)
def _back(s, g, level):
    """Undo the choice of a level."""
    k = s.cost.shape[1]
    v = s.node[level]
    for i in range(g.start[v], g.start[v + 1]):
        u = g.ends[g.member[i], 1 - g.side[i]]
        if s.open[u]:
            for a in range(k):
                s.cost[u, a] = s.saved[level, i - g.start[v], a]
    s.open[v] = True
    while s.at[1] > s.mark[level]:
        s.at[1] -= 1
        x = s.removed[s.at[1]]
        s.left[x // k, x % k] = True


@njit(cache=True, nogil=True)
def _choose(s, g, pair, level):
    """Take the next label of a level and charge it to the neighbours."""
    k = s.cost.shape[1]
    v, a = s.node[level], s.order[level, s.tried[level]]
    s.tried[level] += 1
    s.mark[level] = s.at[1]
    s.open[v] = False
    s.label[v] = a
    s.total[level + 1] = s.total[level] + s.cost[v, a]
    for i in range(g.start[v], g.start[v + 1]):
        e, side = g.member[i], g.side[i]
        u = g.ends[e, 1 - side]
        if s.open[u]:
            for b in range(k):
                s.saved[level, i - g.start[v], b] = s.cost[u, b]
                s.cost[u, b] += pair[e, a, b] if side == 0 else pair[e, b, a]


@njit(cache=True, nogil=True)
def _walk(s, g, pair, limit, rounding, best, steps):
    """Take up to ``steps`` steps; the new limit and whether the search has come to its end."""
    for _ in range(steps):
        level, complete = s.at[0], False
        if s.at[2]:
            s.at[2] = 0
            complete = not _deepen(s)
            if complete and s.total[level] <= limit:
                best[:] = s.label
                limit = s.total[level] - rounding
        if complete or s.tried[level] == s.size[level]:
            s.at[0] -= 1
            if s.at[0] < 0:
                return limit, True
            _back(s, g, s.at[0])
            continue
        _choose(s, g, pair, level)
        if _tighten(s, g, pair, s.total[level + 1], limit):
            s.at[0], s.at[2] = level + 1, 1
        else:
            _back(s, g, level)
    return limit, False


class Search:
    """The search among labellings with these deficits.

    Parameters
    ----------
    g : Incidence
    node, pair : ndarray (n, k), (m, k, k)
        Deficits, see :func:`deficits`.
    unit : float
        Size of the scores, which rounding and the first limit are relative to.
    rounding : float
        Sums that differ by less count as equal.
    """

    def __init__(self, g: Incidence, node: np.ndarray, pair: np.ndarray, unit: float, rounding: float):
        self.g, self.node, self.pair, self.unit, self.rounding = g, node, pair, unit, rounding
        self.labels = np.full(node.shape[0], -1)
        self.limit = _FIRST * unit
        self.proved = 0.0  # no labelling has less than this
        self._state: _State | None = None

    def _fresh(self) -> _State:
        n, k = self.node.shape
        degree = int(np.diff(self.g.start).max(initial=1))
        return _State(
            cost=self.node.copy(),
            left=np.isfinite(self.node),
            open=np.ones(n, dtype=np.bool_),
            label=np.zeros(n, dtype=np.int64),
            node=np.zeros(n, dtype=np.int64),
            order=np.zeros((n, k), dtype=np.int64),
            size=np.zeros(n, dtype=np.int64),
            tried=np.zeros(n, dtype=np.int64),
            total=np.zeros(n + 1),
            saved=np.zeros((n, degree, k)),
            removed=np.zeros(n * k, dtype=np.int64),
            mark=np.zeros(n + 1, dtype=np.int64),
            least=np.zeros(n),
            at=np.array([0, 0, 1]),
        )

    def run(self, most: float, steps: int) -> bool:
        """Search for labellings whose deficits add up to at most ``most``, for about ``steps`` steps in all.

        True once :attr:`labels` are the best of them, or -1 where there are none. Called again it goes on.
        """
        while steps > 0:
            if self._state is None:
                self.limit = min(self.limit, most)
                self._state = self._fresh()
                if not _tighten(self._state, self.g, self.pair, 0.0, self.limit):
                    self._state.at[0] = -1
            over = self._state.at[0] < 0
            some = min(steps, 64)
            if not over:
                self.limit, over = _walk(self._state, self.g, self.pair, self.limit, self.rounding, self.labels, some)
            steps -= some
            if not over:
                continue
            self._state = None
            if self.labels[0] >= 0 or self.limit >= most:
                self.proved = self.limit + (self.rounding if self.labels[0] >= 0 else 0.0)
                return True
            self.proved = self.limit
            self.limit *= _GROWTH
        return False
