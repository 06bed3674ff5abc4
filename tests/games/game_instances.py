"""The games that every law is tested on, each with its polytopes' vertices and a dense loss matrix."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations, product

import numpy as np
from enumeration import tree_heads

from nashlearn import games
from nashlearn.game import Game


@dataclass(frozen=True)
class Instance:
    """A game, the vertices of both its polytopes, and the symmetries that it is known to have."""

    id: str
    game: Game
    L: np.ndarray
    labels: np.ndarray
    options: np.ndarray
    level: np.ndarray  # <level, v> = 1 for every label's vertex v
    symmetry: np.ndarray | None = None  # permutation of coordinates that leaves the game unchanged

    @property
    def dim(self) -> int:
        return self.labels.shape[1]

    def scaled(self, c: float) -> Game:
        """The game of ``c L``."""
        if self.is_simplex:
            return games.cost(c * self.L)
        return Game(self.game.labels, self.game.options, c * self.L)

    @property
    def is_simplex(self) -> bool:
        return hasattr(self.game, "params")


def simplex(id: str, game, L, symmetry=None) -> Instance:
    L = np.asarray(L, dtype=float)
    options, k = L.shape
    return Instance(id, game, L, np.eye(k), np.eye(options), np.ones(k), symmetry)


def by_blocks(id: str, labels, options, blocks: int, width: int, symmetry=None) -> Instance:
    """Hamming loss between blocks of one-hot vectors; labels may have further coordinates."""
    L = np.zeros((blocks * width, labels.shape[1]))
    L[:, : blocks * width] = np.kron(np.eye(blocks), 1.0 - np.eye(width))
    level = np.zeros(labels.shape[1])
    level[:width] = 1.0
    game = Game(games.Enumerated(labels), games.Enumerated(options), L)
    return Instance(id, game, L, labels, options, level, symmetry)


def one_hot(assignments, width: int) -> np.ndarray:
    return np.array([np.eye(width)[list(a)].ravel() for a in assignments])


def chain() -> Instance:
    """Three nodes, three states: node marginals, then those of both edges; the options are the nodes'."""
    states = list(product(range(3), repeat=3))
    nodes = one_hot(states, 3)
    edges = np.array(
        [np.r_[np.outer(*np.eye(3)[[a, b]]).ravel(), np.outer(*np.eye(3)[[b, c]]).ravel()] for a, b, c in states]
    )
    turn = np.array([1, 2, 0])
    pairs = (3 * turn[:, None] + turn).ravel()
    symmetry = np.r_[turn, 3 + turn, 6 + turn, 9 + pairs, 18 + pairs]
    return by_blocks("chain", np.hstack([nodes, edges]), nodes, 3, 3, symmetry)


def matching() -> Instance:
    vertices = one_hot(permutations(range(4)), 4)
    symmetry = np.roll(np.arange(16).reshape(4, 4), 1, axis=0).ravel()
    return by_blocks("matching", vertices, vertices, 4, 4, symmetry)


def arborescence(single_root: bool) -> Instance:
    vertices = one_hot(tree_heads(3, single_root), 4)
    turn = np.array([0, 2, 3, 1])  # tokens 1 -> 2 -> 3 -> 1
    symmetry = np.concatenate([4 * d + turn for d in (1, 2, 0)])
    roots = "single" if single_root else "many"
    return by_blocks(f"arborescence-{roots}", vertices, vertices, 3, 4, symmetry)


def zero_one_matrix(k: int) -> np.ndarray:
    return 1.0 - np.eye(k)


def all_instances() -> list[Instance]:
    rng = np.random.default_rng(5)
    found = []
    for k in (1, 2, 5):
        turn = np.roll(np.arange(k), 1)
        found.append(simplex(f"zero_one-{k}", games.zero_one(k), zero_one_matrix(k), turn))
    w = np.array([0.3, 1.0, 2.5, 1.0])
    found.append(simplex("zero_one-weighted", games.zero_one(4, weights=w), zero_one_matrix(4) * w))
    t = np.array([-2.0, -1.7, 0.4, 0.5, 3.0])
    distance = np.abs(t[:, None] - t)
    steps = np.abs(np.arange(4.0)[:, None] - np.arange(4.0))
    back = np.arange(4)[::-1]
    w = np.array([1.0, 0.5, 2.0, 1.0, 0.1])
    for k in (1, 2):
        found.append(simplex(f"absolute-{k}", games.absolute(k), steps[:k, :k]))
        found.append(simplex(f"squared-{k}", games.squared(k), steps[:k, :k] ** 2))
    found += [
        simplex("absolute", games.absolute(4), steps, back),
        simplex("absolute-uneven", games.absolute(5, values=t), distance),
        simplex("absolute-weighted", games.absolute(5, values=t, weights=w), distance * w),
        simplex("squared", games.squared(4), steps**2, back),
        simplex("squared-uneven", games.squared(5, values=t), distance**2),
        simplex("squared-weighted", games.squared(5, values=t, weights=w), distance**2 * w),
    ]
    for c in (0.0, 0.2, 0.5, 0.7, 1.0, 1.5):
        L = np.vstack([zero_one_matrix(4), np.full(4, c)])
        found.append(simplex(f"abstain-{c}", games.abstain(4, c), L, np.roll(np.arange(4), 1)))
    found.append(simplex("abstain-1", games.abstain(1, 0.3), [[0.0], [0.3]]))
    c = [0.1, 0.6, 0.4, 0.0]
    found.append(simplex("abstain-per-label", games.abstain(4, c), np.vstack([zero_one_matrix(4), c])))
    for id, L in {
        "cost-square": rng.random((6, 6)),
        "cost-tall": rng.random((7, 3)),
        "cost-wide": rng.random((3, 6)),
        "cost-ties": rng.integers(0, 3, (5, 5)),
        "cost-twins": np.repeat(rng.integers(0, 2, (4, 4)), 2, axis=0),
        "cost-zero": np.zeros((2, 3)),
        "cost-one-option": rng.random((1, 4)),
        "cost-one-label": rng.random((4, 1)),
    }.items():
        found.append(simplex(id, games.cost(L), L))
    return [*found, chain(), matching(), arborescence(True), arborescence(False)]


INSTANCES = all_instances()
