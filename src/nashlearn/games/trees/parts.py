"""Trees with scores of parts, pairs of arcs such as siblings and grandparents, through the local polytope.

Best trees with such scores are NP-hard to find. The adversary chooses in the local polytope
(:mod:`nashlearn.games.trees.local`), which holds every tree and more, the predictor among trees; the loss counts wrong
heads:

    F(theta, w) = max_{(q, z) local} min_p <theta, q> + <w, z> + n - <p, q>.

So the value is an **upper bound** of that over trees, tight without parts; as a surrogate loss it still bounds the
prediction's own loss from above. It is one linear programme: the predictor's reply enters by its dual, and cuts
``x(arcs into S) >= 1`` join for both players where they are violated. For sentences of up to some twenty tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from nashlearn.game import Equilibrium, Game
from nashlearn.games._check import warn_missed
from nashlearn.games.trees.arborescence import Arborescences
from nashlearn.games.trees.local import LocalTrees, Programme
from nashlearn.kernels.tree_shift import shifted

__all__ = ["TreePartsGame", "all_grandparents", "all_siblings"]

_ROUNDS = 200
_ENOUGH = 1e-6  # gap for each token up to which nothing is said; the programmes are solved to 1e-7

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


class TreePartsGame(Game):
    """The Hamming loss of heads between trees that are scored by arcs and by parts.

    Scores are one packed array (b, n (n + 1) + k), each row the arcs token by token and then the parts; ``solve`` and
    ``argmax`` take a pair (b, n, n + 1) and (b, k) as well. A score of ``-inf`` forbids its arc to both players, its
    part to the adversary. The labels' polytope is relaxed, see ``nashlearn.games.trees.local.LocalTrees``.

    Parameters
    ----------
    polytope : Arborescences
        Trees, without labels of arcs.
    parts : sequence of tuples of arcs
        Each a set of arcs ``(d, h)``, token ``d`` = 0..n-1 with head ``h`` = 0..n.
    """

    labels: LocalTrees
    options: Arborescences

    def __init__(self, polytope: Arborescences, parts: Sequence[Sequence[Sequence[int]]]):
        n = polytope.n
        wrong = sparse.kron(sparse.identity(n), 1.0 - np.eye(n + 1))
        none = sparse.csr_array((n * (n + 1), len(parts)))
        super().__init__(LocalTrees(polytope, parts), polytope, sparse.csr_array(sparse.hstack([wrong, none])))

    @property
    def is_exact(self) -> bool:
        """Whether the value is that of the game over trees, and no more than a bound; only without parts."""
        return not self.labels.parts

    def argmax(self, scores: Any) -> np.ndarray:
        """Heads (b, n) of the best trees; unlike the best vertices of ``labels`` they are never fractional."""
        return self.labels.best_trees(self._packed(scores))

    def solve(
        self,
        scores: Any,
        *,
        smoothing: float = 0.0,
        tol: float = 1e-9,
        n_jobs: int | None = None,
        start: Equilibrium | None = None,
    ) -> Equilibrium:
        """Equilibrium of every sentence of packed ``scores``, or of a pair; ``q`` is packed or a pair as they are.

        ``value`` is what ``q`` secures in the relaxed game and ``value + gap`` what ``p`` may lose there at most; with
        parts both may lie above the value over trees, never below. ``tol``, ``n_jobs`` and ``start`` are not used: all
        is solved to the limit of the arithmetic, and without smoothing.
        """
        if smoothing:
            raise ValueError(f"smoothing must be 0 for trees with parts; got {smoothing!r}")
        rows = self.labels.checked(self._packed(scores))
        near, b = rows.astype(np.float64), len(rows)
        arcs = self.labels.views(near)[0]
        self.options.argmax(arcs)  # refuses arcs that leave no tree
        p, q, upper, offset = np.empty((b, *self.option_shape)), np.empty_like(near), np.empty(b), np.empty(b)
        for i in range(b):
            own = arcs[i][:, :, None].copy()
            offset[i] = shifted(own, self.options.single_root, arcs[i][:, :, None])
            upper[i] = self._solve_one(near[i], p[i], q[i])
        risk, lower = self.risk(q, near), self.lower(near, q)
        gap = np.maximum(upper - lower, 0.0)
        warn_missed(gap > _ENOUGH * (1.0 + self.options.n), gap, "games", _ENOUGH)
        strategy: Any = q.astype(rows.dtype, copy=False)
        if isinstance(scores, tuple):
            strategy = self.labels.views(strategy)
        value, reply, gap, risk = (x.astype(rows.dtype, copy=False) for x in (lower + offset, p, gap, risk))
        return Equilibrium(value, strategy, reply, gap, risk)

    def _packed(self, scores: Any) -> np.ndarray:
        if not isinstance(scores, tuple):
            return scores
        arcs, parts = self.options.checked(scores[0]), np.asarray(scores[1])
        if parts.shape != (len(arcs), len(self.labels.parts)):
            wanted = len(arcs), len(self.labels.parts)
            raise ValueError(f"the scores of parts must have shape {wanted}; got {parts.shape}")
        return self.labels.packed(arcs, parts)

    def _forbidden(self, reward: np.ndarray, scores: np.ndarray | None) -> np.ndarray:
        return reward if scores is None else np.where(np.isneginf(self.labels.views(scores)[0]), -np.inf, reward)

    def _solve_one(self, scores: np.ndarray, p: np.ndarray, q: np.ndarray) -> float:
        """Strategies for packed scores (dim,) into ``p`` and ``q``, and what ``p`` may lose at most."""
        labels = self.labels
        made, sets = labels.programme(scores), list[np.ndarray]()
        m, width = made.token.size, made.rows.shape[1]
        for _ in range(_ROUNDS):
            found = self._programme(labels.goal(scores, made), made, sets)
            x, reply = found.x[:m], -found.ineqlin.marginals[:m]
            new = labels.violated(made, x, sets)
            new += labels.violated(made, reply, [*sets, *new])
            if not new:
                break
            sets += new
        q[:], p[:] = labels.filled(made, found.x[:width]), 0.0
        p[made.token, made.head] = np.maximum(reply, 0.0)
        gain = scores + self.loss.T @ p.ravel()
        best = labels.best(gain, made, sets)
        return float(np.where(best == 0.0, 0.0, gain) @ best)

    def _programme(self, goal: np.ndarray, made: Programme, sets: list[np.ndarray]) -> Any:
        """The game with cuts ``sets``; columns: arcs, parts, then prices of the predictor's rows (free) and cuts."""
        m, equal, width = made.token.size, made.rows.shape[0], made.rows.shape[1]
        cross, k = self.labels.crossed(made, sets), width - m
        price = sparse.hstack([-made.rows[:, :m].T, cross.T])
        reply = sparse.hstack([sparse.csr_array(sparse.identity(m)), sparse.csr_array((m, k)), price])
        local = sparse.hstack([made.least, sparse.csr_array((made.least.shape[0], equal + len(sets)))])
        own = sparse.hstack([-sparse.csr_array(cross), sparse.csr_array((len(sets), k + equal + len(sets)))])
        found = linprog(
            np.concatenate([-goal, np.ones(equal), -np.ones(len(sets))]),
            sparse.vstack([reply, local, own]),
            np.concatenate([np.zeros(m), made.bound, -np.ones(len(sets))]),
            sparse.hstack([made.rows, sparse.csr_array((equal, equal + len(sets)))]),
            np.ones(equal),
            bounds=[(0, None)] * width + [(None, None)] * equal + [(0, None)] * len(sets),
            method="highs",
        )
        if found.status != 0:
            raise RuntimeError(f"the linear programme of the game was not solved: {found.message}")
        return found
