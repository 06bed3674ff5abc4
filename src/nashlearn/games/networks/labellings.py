"""Best labellings of graphs with cycles: a fast search with a bound, and an integer programme for what it leaves.

Dual block ascent (:mod:`nashlearn.games.networks.stars`, without a loss) lowers an upper bound on every labelling's
score; its beliefs are decoded into labellings, which are improved node by node. A label whose score falls so far short
in the reparametrised problem that the bound with it lies below the best labelling found can be in no better one. What
remains is decided by max-product as soon as its clique tree is small. Else it is searched
(:mod:`nashlearn.games.networks.search`), which ends soon where pairs are ruled out by large scores, or given to HiGHS
as an integer programme, with a limit on its time [huangfu2018]_. Networks of two states begin with a minimum cut
(:mod:`nashlearn.games.networks.cuts`), which decides most of them.
"""

from __future__ import annotations

import numbers
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from nashlearn.games.networks import stars
from nashlearn.games.networks.cliques import TooWideError, clique_tree
from nashlearn.games.networks.cuts import cut
from nashlearn.games.networks.junction import CliqueSolver
from nashlearn.games.networks.outcome import Labeling
from nashlearn.games.networks.programme import Builder
from nashlearn.games.networks.replies import Hamming
from nashlearn.games.networks.search import Search, deficits, reparametrised
from nashlearn.games.networks.stars import Incidence
from nashlearn.kernels.labellings import decode, improve

__all__ = ["METHODS", "check_options"]

_COOLING = 0.3 ** np.arange(9)  # temperatures, in units of the scores' spread
_SWEEPS = 30
_DECIMATION = np.array([0.03, 0.1, 0.01])  # temperatures at which nodes are settled, in the same units
_SETTLING = 3  # sweeps after each
_ROUNDING = 1e-9
_NARROW = 1 << 18  # entries of the tables by which what is still open is decided
_SEARCH = 0.5  # share of the time limit that is searched at first, and at most this many seconds
_SEARCH_SECONDS = 10.0
_STEPS = 64  # of the search between looks at the clock, where tables hold no more than this many pairs
_SMALL = 100_000
_MIP_GAP = 1e-3  # unit of the programme, in those of the scores: HiGHS allows itself an absolute gap of 1e-6
_PACE = 200_000  # pairs a second that HiGHS is given, which minds its clock only once it has read them


def _score(g: Incidence, f: np.ndarray, T: np.ndarray, labels: np.ndarray) -> float:
    u, v = labels[g.ends.T]
    return float(f[np.arange(len(f)), labels].sum() + T[g.table, u, v].sum())


class _Ascent:
    """The state of a search: the best bound, the best multipliers with theirs, and the best labeling."""

    def __init__(self, g: Incidence, f: np.ndarray, T: np.ndarray):
        self.g, self.f, self.T = g, f, T
        self.possible_f = f  # with -inf for labels that were ruled out
        self.alpha = np.zeros((g.ends.shape[0], 2, f.shape[1]))
        self.best_alpha, self.alpha_bound, self.bound = self.alpha.copy(), np.inf, np.inf
        self.labels, self.score = np.zeros(f.shape[0], dtype=np.int64), -np.inf
        self.least_tried = len(f) + 1  # open nodes from which on what they leave is not tried again
        finite = [x[x > -np.inf] for x in (f, T)]
        self.unit = max((float(np.ptp(x)) for x in finite if x.size), default=0.0) or 1.0

    @property
    def proved(self) -> bool:
        if self.score == -np.inf:  # no labelling was found: only a bound that allows none settles the matter
            return bool(self.bound == -np.inf)
        return bool(self.bound - self.score <= _ROUNDING * max(abs(self.score), self.unit))

    def cut(self, until: float) -> bool:
        """Take over what a minimum cut knows, where there is one; whether the labelling is proved best."""
        found = cut(self.g, self.f, self.T, _ROUNDING * self.unit, until)
        if found is None:
            return False
        known = found.labels >= 0
        if known.all():
            before, self.bound = self.bound, found.bound
            self.offer(found.labels)
            if not self.proved:
                self.bound = before
        elif found.certain:
            self.bound = min(self.bound, found.bound)
            other = known[:, None] & (np.arange(2) != found.labels[:, None])
            self.possible_f = np.where(other, -np.inf, self.possible_f)
            self.resolve()
        return self.proved

    def resolve(self) -> None:
        """Find the best labelling of the labels still possible, by max-product where what is open is narrow."""
        possible = self.possible_f > -np.inf
        if not possible.any(axis=1).all():
            return
        labels, rest = possible.argmax(axis=1), possible.sum(axis=1) > 1
        if rest.sum() >= self.least_tried:
            return
        self.least_tried = rest.sum() // 2
        if rest.any() and not self._max_product(labels, rest):
            return
        self.offer(labels)
        self.bound = self.score  # any better one is among the labels that were left

    def _max_product(self, labels: np.ndarray, rest: np.ndarray) -> bool:
        """Write the best labels of the nodes ``rest`` beside the others'; False where their clique tree is large."""
        (u, v), tables, f = self.g.ends.T, self.T[self.g.table], self.possible_f.copy()
        for here, there, pairs in ((u, v, tables), (v, u, tables.swapaxes(1, 2))):
            beside = rest[here] & ~rest[there]
            np.add.at(f, here[beside], pairs[beside, :, labels[there[beside]]])
        inner, number = rest[u] & rest[v], np.cumsum(rest) - 1
        edges, k = number[self.g.ends[inner]], np.full(rest.sum(), f.shape[1])
        try:
            tree = clique_tree(k.size, edges, k, _NARROW)
        except TooWideError:
            return False
        labels[rest] = CliqueSolver(tree, edges, k, None, []).maximise(f[rest], tables[inner]).labels
        return True

    def run(self, until: float) -> None:
        """Cool down, decoding on the way, until the labelling is proved best or the clock says ``until``."""
        n, k = self.f.shape
        free = Hamming(np.zeros(n))
        p, q = np.zeros((n, k)), np.zeros((n, k))
        cold = stars.heated(self.T, 0.0)
        for smoothing in _COOLING * self.unit:
            tables = stars.heated(self.T, 0.1 * smoothing)
            for _ in range(_SWEEPS):
                stars.sweep(free, self.g, self.possible_f, tables, smoothing, p, self.alpha, q)
                if time.monotonic() > until:
                    break
            bound = stars.bound(free, self.g, self.possible_f, cold, 0.0, p, self.alpha)
            if bound < self.alpha_bound:
                self.alpha_bound, self.best_alpha = bound, self.alpha.copy()
                self.bound = min(self.bound, bound)
            tables = self.T[self.g.table]
            told = (tables - self.alpha[:, 1, None, :]).max(axis=2), (tables - self.alpha[:, 0, :, None]).max(axis=1)
            order = np.argsort(-np.partition(q, -1, axis=1)[:, -1], kind="stable")
            labels = np.zeros(n, dtype=np.int64)
            decode(self.g, self.possible_f, stars.own(self.T), np.stack(told, axis=1), order, labels)
            self.offer(labels)
            if not self.proved and self.score > -np.inf:
                self.restrict()
                self.resolve()
            if self.proved or time.monotonic() > until:
                break

    def decimate(self, smoothing: float, until: float) -> None:
        """Settle the surest nodes, tell their neighbours, and go on until all are settled."""
        n, k = self.f.shape
        free = Hamming(np.zeros(n))
        f, alpha = self.possible_f.copy(), self.best_alpha.copy()
        p, q = np.zeros((n, k)), np.zeros((n, k))
        open_nodes, tables = np.ones(n, dtype=np.bool_), stars.heated(self.T, 0.1 * smoothing)
        while open_nodes.any() and time.monotonic() < until:
            for _ in range(_SETTLING):
                stars.sweep(free, self.g, f, tables, smoothing, p, alpha, q)
            if np.isnan(q).any():  # the labels settled so far rule out all of some node's
                return
            best, sure = q.argmax(axis=1), np.where(open_nodes, q.max(axis=1), -1.0)
            now = np.argsort(-sure, kind="stable")[: max(1, int(open_nodes.sum()) // 8)]
            kept = np.zeros_like(q, dtype=np.bool_)
            kept[now, best[now]] = True
            f[now] = np.where(kept[now], f[now], -np.inf)
            open_nodes[now] = False
        self.offer(q.argmax(axis=1).astype(np.int64))

    def restrict(self) -> int:
        """Rule out labels that can be in no better labelling; how many there were."""
        possible = self.possible()
        possible[np.arange(len(possible)), self.labels] |= self.score > -np.inf
        before = int((self.possible_f > -np.inf).sum())
        self.possible_f = np.where(possible, self.f, -np.inf)
        return before - int(possible.sum())

    def exhaust(self, until: float) -> None:
        """Search until the best labelling is proved or the clock says ``until``; the bound falls in either case."""
        node, pair, bound = deficits(self.g, self.possible_f, self.T, self.best_alpha)
        rounding = _ROUNDING * max(abs(bound), self.unit)
        worst = sum(float(np.where(np.isfinite(d), d, 0.0).reshape(len(d), -1).max(axis=1).sum()) for d in (node, pair))
        hunt = Search(self.g, node, pair, self.unit, rounding)
        most = min(bound - self.score, worst)
        over = bound == -np.inf
        steps = max(1, _STEPS * _SMALL // max(pair.size, _SMALL))
        while not over and time.monotonic() < until:
            over = hunt.run(most, steps)
        if hunt.labels[0] >= 0:
            self.offer(hunt.labels.copy())
        self.bound = self.score if over else min(self.bound, bound - hunt.proved)

    def offer(self, labels: np.ndarray) -> None:
        """Keep ``labels``, improved, where they are the best so far."""
        improve(self.g, self.f, stars.own(self.T), labels)
        score = _score(self.g, self.f, self.T, labels)
        if score > self.score:
            self.labels, self.score = labels, score

    def ended(self, otherwise: str) -> Labeling:
        """What was found, with the status ``otherwise`` where nothing is proved."""
        if self.bound == -np.inf:
            return Labeling(self.labels, -np.inf, -np.inf, "infeasible")
        return Labeling(self.labels, self.score, max(self.bound, self.score), "optimal" if self.proved else otherwise)

    def possible(self) -> np.ndarray:
        """Labels (n, k) that may be in a labelling better than the best found."""
        reduced = reparametrised(self.g, self.possible_f, self.best_alpha)
        short = reduced.max(axis=1, keepdims=True) - reduced
        slack = _ROUNDING * max(abs(self.alpha_bound), self.unit)
        return (self.alpha_bound - short >= self.score - slack) & (reduced > -np.inf)


def _begun(g: Incidence, f: np.ndarray, T: np.ndarray, until: float) -> _Ascent:
    search = _Ascent(g, f, T)
    if not search.cut(until):
        search.run(until)
    return search


def _ascent(g: Incidence, f: np.ndarray, T: np.ndarray, time_limit: float) -> Labeling:
    return _begun(g, f, T, time.monotonic() + time_limit).ended("heuristic")


def _exact(g: Incidence, f: np.ndarray, T: np.ndarray, time_limit: float) -> Labeling:
    until = time.monotonic() + time_limit
    search = _begun(g, f, T, until)
    if not search.proved and time.monotonic() < until:
        search.exhaust(min(until, time.monotonic() + min(_SEARCH * time_limit, _SEARCH_SECONDS)))
    for smoothing in _DECIMATION * search.unit:
        if search.proved or time.monotonic() > until:
            break
        search.decimate(smoothing, until)
        if search.restrict():
            search.alpha = search.best_alpha.copy()
            search.run(until)
    if not search.proved and time.monotonic() < until:
        search.restrict()
        left = (search.possible_f > -np.inf).sum(axis=1)
        if np.prod(left[g.ends], axis=1).sum() <= _PACE * (until - time.monotonic()):
            _integer_programme(search, until)
        else:
            search.exhaust(until)
    return search.ended("time limit")


def _integer_programme(search: _Ascent, until: float) -> None:
    """Choose among the labels still possible: one for each node, and the edges' pairs that follow."""
    g, f, T = search.g, search.f, search.T
    possible = search.possible_f > -np.inf
    node = np.full(f.shape, -1)
    node[possible] = np.arange(possible.sum())
    used = int(possible.sum())
    gains, build = [f[possible]], Builder()
    v, a = np.nonzero(possible)
    build.add(v, node[v, a], np.ones(v.size))
    build.close(np.ones(f.shape[0]))
    for e, (u, v) in enumerate(g.ends):
        a, b = np.flatnonzero(possible[u]), np.flatnonzero(possible[v])
        table = T[g.table[e]][np.ix_(a, b)]
        if a.size == 1 or b.size == 1:  # one end is settled: the pair's score belongs to the other's label
            number = node[v, b] if a.size == 1 else node[u, a]
            gains[0][number] += table.ravel()
            continue
        i, j = np.nonzero(table > -np.inf)
        pair = used + np.arange(i.size)
        used += i.size
        gains.append(table[i, j])
        build.add(i, pair, np.ones(i.size))
        build.add(np.arange(a.size), node[u, a], -np.ones(a.size))
        build.add(a.size + j, pair, np.ones(i.size))
        build.add(a.size + np.arange(b.size), node[v, b], -np.ones(b.size))
        build.close(np.zeros(a.size + b.size))
    gain = np.concatenate(gains)
    forbidden = np.isneginf(gain)
    A, right = build.matrix(used)
    unit = search.unit * _MIP_GAP
    answer = milp(
        -np.where(forbidden, 0.0, gain) / unit,
        constraints=LinearConstraint(A, right, right),
        integrality=np.arange(used) < possible.sum(),
        bounds=Bounds(0.0, np.where(forbidden, 0.0, 1.0)),
        options={"time_limit": max(until - time.monotonic(), 0.01), "mip_rel_gap": 0.0},
    )
    if answer.x is not None:
        chosen = np.where(possible, np.where(node >= 0, answer.x[node], 0.0), -1.0)
        search.offer(chosen.argmax(axis=1).astype(np.int64))
    dual = getattr(answer, "mip_dual_bound", None)
    if answer.status in (0, 2):  # solved, or nothing among the labels left beats the labelling at hand
        search.bound = search.score
    elif dual is not None and np.isfinite(dual):
        search.bound = min(search.bound, -float(dual) * unit)


def check_options(method: Any = "exact", time_limit: Any = 60.0) -> None:
    """Refuse options of ``maximise`` that no graph can use."""
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(f"method must be one of {tuple(METHODS)}; got {method!r}")
    if not isinstance(time_limit, numbers.Real) or not float(time_limit) > 0:
        raise ValueError(f"time_limit must be a positive number of seconds; got {time_limit!r}")


METHODS: dict[str, Callable[[Incidence, np.ndarray, np.ndarray, float], Labeling]] = {
    "exact": _exact,
    "ascent": _ascent,
}
