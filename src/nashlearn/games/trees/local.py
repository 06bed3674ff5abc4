"""The local polytope of trees with parts: arcs in the arborescence polytope, parts consistent with their arcs alone,

    0 <= x_s <= x_a (a in s),     x_s >= sum_{a in s} x_a - |s| + 1                              ([li2022]_, sec. 5.3),

which holds every tree and more. Cuts ``x(arcs into S) >= 1`` join a linear programme where its solution violates them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from nashlearn.games._check import refuse_nan, structured_scores
from nashlearn.games.trees.arborescence import Arborescences, check_heads
from nashlearn.kernels.tree_cuts import violated_cuts

__all__ = ["LocalTrees", "Programme"]

_VIOLATED = 1e-9


class Programme(NamedTuple):
    """Arcs that may be used, and the constraints of arcs and parts that are there from the start."""

    token: np.ndarray
    head: np.ndarray
    rows: Any  # one head for each token, and one root arc where asked
    least: Any  # x_s <= x_a, and sum x_a - x_s <= |s| - 1
    bound: np.ndarray


class LocalTrees:
    """Arcs and parts of trees, relaxed; points are packed, (n (n + 1) + k,): arcs token by token, then parts.

    Some vertices are fractional. So the label of a vertex is either that of a tree, its heads (n,), integers, or the
    packed vertex itself, floating-point numbers; ``argmax`` returns the latter, ``best_trees`` the former.

    Parameters
    ----------
    trees : Arborescences
        Trees, without labels of arcs.
    parts : sequence of tuples of arcs
        Each a set of arcs ``(d, h)``, token ``d`` = 0..n-1 with head ``h`` = 0..n.
    """

    def __init__(self, trees: Arborescences, parts: Sequence[Sequence[Sequence[int]]]):
        self.trees, self.n = trees, trees.n
        self.parts = [tuple((int(d), int(h)) for d, h in part) for part in parts]
        self.split = self.n * (self.n + 1)
        self.shape = (self.split + len(self.parts),)
        for i, part in enumerate(self.parts):
            for d, h in part:
                if not (0 <= d < self.n and 0 <= h <= self.n) or h == d + 1:
                    raise ValueError(f"parts[{i}] holds {(d, h)}, which is no arc of {self.n} tokens")
            if len(set(part)) != len(part) or not part:
                raise ValueError(f"parts[{i}] must hold different arcs, at least one; got {part}")

    def argmax(self, scores: np.ndarray) -> np.ndarray:
        """A best vertex (b, dim) for each row of packed ``scores``. Cost: some linear programmes a row."""
        return self._best_rows(scores, whole=False)

    def vertex(self, labels: np.ndarray) -> np.ndarray:
        """Packed vertices of trees, heads (b, n) of integers, or of vertices (b, dim): these themselves."""
        labels = np.asarray(labels)
        if labels.dtype.kind == "f":
            return labels
        arcs = self.trees.vertex(labels)
        parts = np.array([[min(x[a] for a in part) for part in self.parts] for x in arcs])
        return self.packed(arcs, parts.reshape(len(arcs), -1))

    def packed(self, arcs: np.ndarray, parts: np.ndarray) -> np.ndarray:
        """Arcs (b, n, n + 1) and parts (b, k) in one array (b, dim)."""
        return np.hstack([arcs.reshape(len(arcs), -1), parts])

    def views(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Arcs (b, n, n + 1) and parts (b, k) of packed ``points``, sharing their memory."""
        return points[:, : self.split].reshape(len(points), self.n, self.n + 1), points[:, self.split :]

    def checked(self, scores: np.ndarray) -> np.ndarray:
        """Packed scores as C-ordered float32 or float64; those of a token as its own head are made ``-inf``."""
        own = np.arange(self.n) * (self.n + 2) + 1
        scores = structured_scores(scores, self.shape, (own,), -np.inf, "sentence", "arc or part")
        refuse_nan(scores, "the best tree")
        return scores

    def programme(self, scores: np.ndarray) -> Programme:
        """The polytope of the arcs and parts of which ``scores`` (dim,) forbid none."""
        finite, k = np.isfinite(scores), len(self.parts)
        token, head = np.nonzero(finite[: self.split].reshape(self.n, -1))
        m, number = token.size, {arc: i for i, arc in enumerate(zip(token.tolist(), head.tolist(), strict=True))}
        rows = [(token == d).astype(float) for d in range(self.n)]
        rows += [(head == 0).astype(float)] if self.trees.single_root else []
        least = sparse.lil_array((sum(len(part) + 1 for part in self.parts), m + k))
        bound, at = np.zeros(least.shape[0]), 0
        for s, part in enumerate(self.parts):
            last = at + len(part)
            least[last, m + s], bound[last] = -1.0, len(part) - 1.0
            for row, arc in enumerate(part, at):
                least[row, m + s] = 1.0  # not above 0 where the part or the arc is forbidden
                if arc in number:
                    least[last, number[arc]] = 1.0
                    least[row, number[arc]] = -1.0 if finite[self.split + s] else 0.0
            at = last + 1
        wide = sparse.hstack([sparse.csr_array(np.array(rows)), sparse.csr_array((len(rows), k))], format="csr")
        return Programme(token, head, wide, sparse.csr_array(least), bound)

    def crossed(self, made: Programme, sets: list[np.ndarray]) -> np.ndarray:
        """Whether each arc enters each set of tokens from outside."""
        inside = np.array(sets, dtype=bool).reshape(len(sets), self.n)
        with_root = np.hstack([np.zeros((len(sets), 1), dtype=bool), inside])
        return (inside[:, made.token] & ~with_root[:, made.head]).astype(float)

    def violated(self, made: Programme, x: np.ndarray, sets: list[np.ndarray]) -> list[np.ndarray]:
        """Cuts that arcs ``x`` violate and that are not known yet."""
        full, members = np.zeros((self.n, self.n + 1)), np.zeros((3 * self.n + 8, self.n), np.bool_)
        full[made.token, made.head] = np.maximum(x, 0.0)
        count = violated_cuts(full, members, _VIOLATED)
        return [one.copy() for one in members[:count] if not any((one == other).all() for other in sets)]

    def filled(self, made: Programme, x: np.ndarray) -> np.ndarray:
        """A solution of the programme, arcs and parts, as a packed point."""
        point, m = np.zeros(self.shape), made.token.size
        point[made.token * (self.n + 1) + made.head] = np.maximum(x[:m], 0.0)
        point[self.split :] = np.maximum(x[m:], 0.0)
        return point

    def goal(self, scores: np.ndarray, made: Programme) -> np.ndarray:
        """Scores (dim,) of the programme's arcs and parts; a part that is forbidden is 0 whatever its score."""
        arcs, parts = scores[made.token * (self.n + 1) + made.head], scores[self.split :]
        return np.concatenate([arcs, np.where(np.isneginf(parts), 0.0, parts)])

    def best(self, scores: np.ndarray, made: Programme, sets: list[np.ndarray], whole: bool = False) -> np.ndarray:
        """A best vertex (dim,), or the best that is a tree where ``whole``; its cuts begin with those of ``sets``."""
        k, m, goal = len(self.parts), made.token.size, self.goal(scores, made)
        goal /= min(float(np.abs(goal).max(initial=0.0)), 1.0) or 1.0  # the solver does not see differences of 1e-7
        while True:
            cuts = sparse.hstack([-sparse.csr_array(self.crossed(made, sets)), sparse.csr_array((len(sets), k))])
            found = linprog(
                -goal,
                sparse.vstack([made.least, cuts]),
                np.concatenate([made.bound, -np.ones(len(sets))]),
                made.rows,
                np.ones(made.rows.shape[0]),
                method="highs",
                integrality=np.repeat([int(whole), 0], [m, k]),
                options={"mip_rel_gap": 0.0},
            )
            if found.status != 0:
                raise ValueError(f"scores must leave a tree possible; the programme's solver says: {found.message}")
            new = self.violated(made, found.x[:m].round() if whole else found.x[:m], sets)
            if not new:
                return self.filled(made, found.x)
            sets = sets + new

    def _best_rows(self, scores: np.ndarray, whole: bool) -> np.ndarray:
        scores = self.checked(scores).astype(np.float64)
        found = [self.best(row, self.programme(row), [], whole) for row in scores]
        return np.array(found).reshape(-1, *self.shape)

    def best_trees(self, scores: np.ndarray) -> np.ndarray:
        """Heads (b, n) of the best trees, exactly, by branch and bound: exponential in the worst case."""
        heads = self.views(self._best_rows(scores, whole=True))[0].argmax(axis=2)
        for tree in heads:
            check_heads(tree, self.trees.single_root, "the best tree")
        return heads
