"""Trees with scores of parts, pairs of arcs such as siblings and grandparents, through the local polytope.

Best trees with such scores are NP-hard to find. The local polytope keeps arcs in the arborescence polytope and asks
each part ``s`` to be consistent with its arcs alone,

    0 <= x_s <= x_a (a in s),     x_s >= sum_{a in s} x_a - |s| + 1                              ([li2022]_, sec. 5.3),

which holds every tree and more. The adversary chooses there, the predictor among trees; the loss counts wrong heads:

    F(theta, w) = max_{(q, z) local} min_p <theta, q> + <w, z> + n - <p, q>.

So the value is an **upper bound** of that over trees, tight without parts; as a surrogate loss it still bounds the
prediction's own loss from above. It is one linear programme: the predictor's reply enters by its dual, and cuts
``x(arcs into S) >= 1`` join for both players where they are violated. For sentences of up to some twenty tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from nashlearn.game import Equilibrium
from nashlearn.games.trees.arborescence import Arborescences, check_heads
from nashlearn.games.trees.cuts import flow_scratch, separate
from nashlearn.games.trees.shift import shifted

__all__ = ["TreePartsGame", "all_grandparents", "all_siblings"]

_ROUNDS = 200
_VIOLATED = 1e-9

Arc = tuple[int, int]
Part = tuple[Arc, ...]


def all_siblings(n: int) -> list[Part]:
    """Pairs of arcs ``(d, h), (e, h)`` of two tokens with the same head, the root or a token."""
    return [
        ((d, h), (e, h)) for h in range(n + 1) for d in range(n) for e in range(d + 1, n) if h not in (d + 1, e + 1)
    ]


def all_grandparents(n: int) -> list[Part]:
    """Pairs of arcs ``(d, h), (h - 1, g)``: a token, its head and the head of that."""
    return [
        ((d, h), (h - 1, g))
        for d in range(n)
        for h in range(1, n + 1)
        for g in range(n + 1)
        if h != d + 1 and g not in (h, d + 1)
    ]


class _Programme(NamedTuple):
    """Arcs that may be used, and the constraints of arcs and parts that are there from the start."""

    token: np.ndarray
    head: np.ndarray
    rows: Any  # one head for each token, and one root arc where asked
    least: Any  # x_s <= x_a, and sum x_a - x_s <= |s| - 1
    bound: np.ndarray


class TreePartsGame:
    """The Hamming loss of heads between trees that are scored by arcs and by parts.

    Parameters
    ----------
    polytope : Arborescences
        Trees, without labels of arcs.
    parts : sequence of tuples of arcs
        Each a set of arcs ``(d, h)``, token ``d`` = 0..n-1 with head ``h`` = 0..n.
    """

    def __init__(self, polytope: Arborescences, parts: Sequence[Sequence[Sequence[int]]]):
        self.options, self.n = polytope, polytope.n
        self.parts = [tuple((int(d), int(h)) for d, h in part) for part in parts]
        for i, part in enumerate(self.parts):
            for d, h in part:
                if not (0 <= d < self.n and 0 <= h <= self.n) or h == d + 1:
                    raise ValueError(f"parts[{i}] holds {(d, h)}, which is no arc of {self.n} tokens")
            if len(set(part)) != len(part) or not part:
                raise ValueError(f"parts[{i}] must hold different arcs, at least one; got {part}")

    @property
    def is_exact(self) -> bool:
        """Whether the value is that of the game over trees, and no more than a bound; only without parts."""
        return not self.parts

    def vertex(self, heads: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Arcs (b, n, n + 1) and parts (b, k) of trees."""
        arcs = self.options.vertex(heads)
        return arcs, np.array([[min(x[a] for a in part) for part in self.parts] for x in arcs]).reshape(len(arcs), -1)

    def _checked(self, scores: Any, part_scores: Any) -> tuple[np.ndarray, np.ndarray]:
        arcs = self.options.checked(scores).astype(np.float64)
        w = np.asarray(part_scores, dtype=np.float64)
        if w.shape != (len(arcs), len(self.parts)):
            raise ValueError(f"part_scores must have shape {(len(arcs), len(self.parts))}; got {w.shape}")
        if np.isnan(arcs).any() or not np.isfinite(w).all():
            raise ValueError("scores must not be NaN, and part_scores must be finite")
        self.options.argmax(arcs)  # refuses arcs that leave no tree
        return arcs, w

    def _programme(self, theta: np.ndarray) -> _Programme:
        token, head = np.nonzero(np.isfinite(theta))
        m, k = token.size, len(self.parts)
        number = {arc: i for i, arc in enumerate(zip(token.tolist(), head.tolist(), strict=True))}
        rows = [(token == d).astype(float) for d in range(self.n)]
        rows += [(head == 0).astype(float)] if self.options.single_root else []
        least = sparse.lil_array((sum(len(part) + 1 for part in self.parts), m + k))
        bound, at = np.zeros(least.shape[0]), 0
        for s, part in enumerate(self.parts):
            for arc in part:
                least[at, m + s] = 1.0
                if arc in number:
                    least[at, number[arc]] = -1.0
                    least[at + len(part) - part.index(arc), number[arc]] = 1.0
                at += 1
            least[at, m + s], bound[at] = -1.0, len(part) - 1.0
            at += 1
        wide = sparse.hstack([sparse.csr_array(np.array(rows)), sparse.csr_array((len(rows), k))], format="csr")
        return _Programme(token, head, wide, sparse.csr_array(least), bound)

    def _crossed(self, made: _Programme, sets: list[np.ndarray]) -> np.ndarray:
        """Whether each arc enters each set of tokens from outside."""
        inside = np.array(sets, dtype=bool).reshape(len(sets), self.n)
        with_root = np.hstack([np.zeros((len(sets), 1), dtype=bool), inside])
        return (inside[:, made.token] & ~with_root[:, made.head]).astype(float)

    def _violated(self, made: _Programme, x: np.ndarray, sets: list[np.ndarray]) -> list[np.ndarray]:
        """Cuts that ``x`` violates and that are not known yet."""
        full, members = np.zeros((self.n, self.n + 1)), np.zeros((3 * self.n + 8, self.n), np.bool_)
        full[made.token, made.head] = np.maximum(x, 0.0)
        count = separate(full, self.n, members, _VIOLATED, flow_scratch(self.n))
        return [one.copy() for one in members[:count] if not any((one == other).all() for other in sets)]

    def solve(self, scores: np.ndarray, part_scores: np.ndarray) -> Equilibrium:
        """Equilibria for scores (b, n, n + 1) of arcs and (b, k) of parts; ``q`` is a pair of arcs and parts.

        ``value`` is what ``q`` secures in the relaxed game and ``value + gap`` what ``p`` may lose there at most; with
        parts both may lie above the value over trees, never below.
        """
        arcs, w = self._checked(scores, part_scores)
        b = len(arcs)
        value, gap, p, q, z = np.empty(b), np.empty(b), np.zeros_like(arcs), np.zeros_like(arcs), np.zeros_like(w)
        near = np.empty((self.n, self.n + 1, 1))
        for i in range(b):
            offset = shifted(arcs[i][:, :, None], self.n, self.options.single_root, near)
            value[i], gap[i] = self._solve_one(near[:, :, 0], w[i], p[i], q[i], z[i])
            value[i] += offset
        return Equilibrium(value, (q, z), p, gap)  # type: ignore[arg-type]

    def _solve_one(
        self, theta: np.ndarray, w: np.ndarray, p: np.ndarray, q: np.ndarray, z: np.ndarray
    ) -> tuple[float, float]:
        made, k = self._programme(theta), len(self.parts)
        m, equal = made.token.size, made.rows.shape[0]
        sets: list[np.ndarray] = []
        reward = theta[made.token, made.head]
        for _ in range(_ROUNDS):
            cross = self._crossed(made, sets)
            # Columns: arcs, parts, then the prices of the predictor's rows (free) and cuts (not negative).
            goal = np.concatenate([-reward, -w, np.ones(equal), -np.ones(len(sets))])
            price = sparse.hstack([-made.rows[:, :m].T, cross.T])
            reply = sparse.hstack([sparse.csr_array(sparse.identity(m)), sparse.csr_array((m, k)), price])
            local = sparse.hstack([made.least, sparse.csr_array((made.least.shape[0], equal + len(sets)))])
            own = sparse.hstack([-sparse.csr_array(cross), sparse.csr_array((len(sets), k + equal + len(sets)))])
            found = linprog(
                goal,
                sparse.vstack([reply, local, own]),
                np.concatenate([np.zeros(m), made.bound, -np.ones(len(sets))]),
                sparse.hstack([made.rows, sparse.csr_array((equal, equal + len(sets)))]),
                np.ones(equal),
                bounds=[(0, None)] * (m + k) + [(None, None)] * equal + [(0, None)] * len(sets),
                method="highs",
            )
            if found.status != 0:
                raise RuntimeError(f"the linear programme of the game was not solved: {found.message}")
            x, reply_p = found.x[:m], -found.ineqlin.marginals[:m]
            new = self._violated(made, x, sets)
            new += self._violated(made, reply_p, [*sets, *new])
            if not new:
                break
            sets += new
        q[made.token, made.head], p[made.token, made.head], z[:] = x, np.maximum(reply_p, 0.0), found.x[m : m + k]
        secured = self._secured(theta, w, q, z)
        return secured, max(self._reached(made, theta, w, p, sets) - secured, 0.0)

    def upper(self, scores: np.ndarray, part_scores: np.ndarray, p: np.ndarray) -> np.ndarray:
        """What the best adversary of the local polytope gets against ``p`` (b, n, n + 1): a linear programme each."""
        arcs, w = self._checked(scores, part_scores)
        rows = zip(arcs, w, p, strict=True)
        return np.array([self._reached(self._programme(theta), theta, one, own, []) for theta, one, own in rows])

    def lower(self, scores: np.ndarray, part_scores: np.ndarray, q: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """What arcs (b, n, n + 1) and parts (b, k) of the adversary secure against every tree."""
        arcs, w = self._checked(scores, part_scores)
        return np.array([self._secured(*row) for row in zip(arcs, w, *q, strict=True)])

    def _secured(self, theta: np.ndarray, w: np.ndarray, q: np.ndarray, z: np.ndarray) -> float:
        """``<theta, q> + <w, z> + n - max_y <q, y>`` over trees of arcs that are allowed."""
        hits = np.where(np.isfinite(theta), q, -np.inf)
        best = self.options.argmax(hits[None])[0]
        earned = float(np.where(np.isfinite(theta), theta, 0.0).ravel() @ q.ravel()) + float(w @ z)
        return earned + self.n - float(hits[np.arange(self.n), best].sum())

    def _reached(
        self, made: _Programme, theta: np.ndarray, w: np.ndarray, p: np.ndarray, sets: list[np.ndarray]
    ) -> float:
        """``max <theta - p, x> + <w, z> + n`` over the local polytope, whose cuts begin with those of ``sets``."""
        goal = -np.concatenate([(theta - p)[made.token, made.head], w])
        m, k = made.token.size, len(self.parts)
        while True:
            cuts = sparse.hstack([-sparse.csr_array(self._crossed(made, sets)), sparse.csr_array((len(sets), k))])
            found = linprog(
                goal,
                sparse.vstack([made.least, cuts]),
                np.concatenate([made.bound, -np.ones(len(sets))]),
                made.rows,
                np.ones(made.rows.shape[0]),
                method="highs",
            )
            if found.status != 0:
                raise RuntimeError(f"the adversary's linear programme was not solved: {found.message}")
            new = self._violated(made, found.x[:m], sets)
            if not new:
                return self.n - float(found.fun)
            sets = sets + new

    def argmax(self, scores: np.ndarray, part_scores: np.ndarray) -> np.ndarray:
        """Heads (b, n) of the best trees, exactly, by branch and bound: exponential in the worst case."""
        arcs, w = self._checked(scores, part_scores)
        return np.array([self._best(theta, one) for theta, one in zip(arcs, w, strict=True)])

    def _best(self, theta: np.ndarray, w: np.ndarray) -> np.ndarray:
        made, k = self._programme(theta), len(self.parts)
        m = made.token.size
        sets: list[np.ndarray] = []
        integral = np.concatenate([np.ones(m), np.zeros(k)])
        while True:
            rules = [LinearConstraint(made.rows, 1.0, 1.0), LinearConstraint(made.least, -np.inf, made.bound)]
            if sets:
                cuts = sparse.hstack([sparse.csr_array(self._crossed(made, sets)), sparse.csr_array((len(sets), k))])
                rules.append(LinearConstraint(cuts, 1.0, np.inf))
            goal = -np.concatenate([theta[made.token, made.head], w])
            found = milp(goal, constraints=rules, integrality=integral, bounds=Bounds(0.0, 1.0))
            if found.x is None:
                raise RuntimeError(f"the best tree was not found: {found.message}")
            x = found.x[:m].round()
            new = self._violated(made, x, sets)
            if not new:
                heads = np.empty(self.n, np.int64)
                heads[made.token[x > 0.5]] = made.head[x > 0.5]
                check_heads(heads, self.options.single_root, "the best tree")
                return heads
            sets += new

    def loss_value(self, scores: np.ndarray, part_scores: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The surrogate loss ``F - <scores, y>`` of each sentence, from above, for heads ``y`` (b, n)."""
        arcs, w = self._checked(scores, part_scores)
        found, (vertices, parts) = self.solve(scores, part_scores), self.vertex(y)
        earned = np.where(vertices > 0, arcs, 0.0).sum(axis=(1, 2)) + np.sum(w * parts, axis=1)
        return found.value + found.gap - earned
