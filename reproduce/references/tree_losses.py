"""Other losses of trees on the same hashed features, trained by the same block steps as the game.

The structured hinge (``H(q) = <1 - y, q>``: loss-augmented best trees), the conditional random field (``H`` the entropy
of the Gibbs distribution over trees, by the matrix-tree theorem), and the averaged perceptron.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numba import njit

from nashlearn.game import Equilibrium, Game, flat, inner
from nashlearn.games import arborescence
from nashlearn.games.trees.best import best_tree
from nashlearn.training.designs.hashed_arcs import WIDTH, Attributes, arc_indices, scale_of, score_sentence

__all__ = ["averaged_perceptron", "gibbs_games", "hinge_games"]


class Hinge(Game):
    """The structured hinge of one sentence as a game with one option: ``H(q) = <1 - y, q>``."""

    def __init__(self, heads: np.ndarray, single_root: bool):
        polytope = arborescence(len(heads), single_root).labels
        self.cost = 1.0 - polytope.vertex(heads[None])[0]
        super().__init__(polytope, polytope, self.cost.reshape(1, -1))

    def solve(self, scores: np.ndarray, **options: Any) -> Equilibrium:
        """Loss-augmented best trees as replies; their loss in the place of an entropy."""
        q = self.labels.vertex(self.labels.argmax(scores + self.cost))
        entropy = (q * self.cost).sum(axis=(1, 2))
        return Equilibrium(inner(flat(scores), flat(q)) + entropy, q, q, np.zeros(len(q)), entropy)


class Gibbs(Game):
    """The conditional random field of sentences of one length: ``H`` is the entropy of distributions over trees."""

    def __init__(self, n: int, single_root: bool):
        polytope = arborescence(n, single_root).labels
        super().__init__(polytope, polytope, np.zeros((1, n * (n + 1))))

    def solve(self, scores: np.ndarray, **options: Any) -> Equilibrium:
        """Gibbs marginals as replies, with the distribution's entropy."""
        value, q = self.labels.log_partition(scores), self.labels.marginals(scores)
        return Equilibrium(value, q, q, np.zeros(len(q)), value - inner(flat(scores), flat(q)))


def hinge_games(heads: Sequence[np.ndarray], single_root: bool) -> list[Game]:
    """One for each sentence."""
    return [Hinge(y, single_root) for y in heads]


def gibbs_games(heads: Sequence[np.ndarray], single_root: bool) -> list[Game]:
    """One for each sentence; those of a length share theirs."""
    shared = cache(lambda n: Gibbs(n, single_root))
    return [shared(len(y)) for y in heads]


@njit(cache=True, nogil=True)
def _perceptron(w, total, data, order, heads, first, single_root, age, s):
    index = np.empty(WIDTH, np.uint32)
    for i in order:
        n = data.size[i]
        score_sentence(w, data.code, data.tag, data.first[i], n, data.bits, s.arc, index)
        best_tree(s.arc, n, single_root, s.heads, s.work)
        for d in range(n):
            y = heads[first[i] + d]
            if s.heads[d] != y:
                for h, sign in ((y, 1.0), (s.heads[d], -1.0)):
                    m = arc_indices(data.code, data.tag, data.first[i], d + 1, h, data.bits, index)
                    for j in range(m):
                        w[index[j]] += sign * scale_of()
                        total[index[j]] += sign * scale_of() * age
        age += 1.0
    return age


def averaged_perceptron(
    data: Attributes, heads: list[np.ndarray], passes: int, single_root: bool, rng: np.random.Generator
) -> np.ndarray:
    """The mean of the weights over all steps of the structured perceptron."""
    from nashlearn.games.trees.entries import tree_scratch

    w, total = np.zeros(1 << data.bits), np.zeros(1 << data.bits)
    flat, first = np.concatenate(heads), np.concatenate([[0], np.cumsum(data.size)])
    scratch, age = tree_scratch(int(data.size.max())), 1.0
    for _ in range(passes):
        order = rng.permutation(data.size.size)
        age = _perceptron(w, total, data, order, flat, first, single_root, age, scratch)
    return w - total / age
