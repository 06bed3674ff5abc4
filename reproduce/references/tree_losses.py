"""Other losses of trees on the same hashed features, trained by the same block steps as the game.

The structured hinge (``H(q) = <1 - y, q>``: loss-augmented best trees), the conditional random field (``H`` the entropy
of the Gibbs distribution over trees, by the matrix-tree theorem), and the averaged perceptron.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from nashlearn.game import Equilibrium, Game, flat, inner
from nashlearn.games import arborescence
from nashlearn.kernels.hashed_arcs import ROOM, VALUE
from nashlearn.training.designs.hashed_arcs import Attributes, HashedArcs

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


def averaged_perceptron(
    data: Attributes, heads: list[np.ndarray], passes: int, single_root: bool, rng: np.random.Generator
) -> np.ndarray:
    """The mean of the weights over all steps of the structured perceptron."""
    design, polytope = HashedArcs(data), cache(lambda n: arborescence(n, single_root).labels)
    w, total, age = np.zeros(design.n_weights), np.zeros(design.n_weights), 1.0
    for _ in range(passes):
        for i in rng.permutation(data.size.size):
            n, part = int(data.size[i]), np.array([i])
            found = polytope(n).argmax(design.scores(w, part).reshape(1, n, n + 1))[0]
            wrong = found != heads[i]
            if wrong.any():
                for tree, sign in ((heads[i], VALUE), (found, -VALUE)):
                    features = _features(design, part, tree, wrong)
                    np.add.at(w, features, sign)
                    np.add.at(total, features, sign * age)
            age += 1.0
    return w - total / age


def _features(design: HashedArcs, part: np.ndarray, heads: np.ndarray, of: np.ndarray) -> np.ndarray:
    """Indices of the features of the arcs to some tokens of a sentence."""
    indices, bounds = np.empty(heads.size * ROOM, np.int32), np.empty(heads.size + 1, np.intp)
    heads = np.ascontiguousarray(heads, dtype=np.intp)
    filled = design.sentences.arcs(part, heads, design.attributes.bits, indices, bounds)
    return indices[:filled][np.repeat(of, np.diff(bounds))]
