"""Matchings of many sizes as one training problem: linear scores of pairs, one game for each example.

    theta_ij = <w, phi_ij>,   theta_i,leave = <w_leave, phi_i>,   theta_enter,j = <w_enter, phi_j>.

All matrices of scores lie one after another in one array, so that a pass over the data is two products with the
features and one call of the compiled games. Smoothing subtracts ``mu Omega(q)`` with
``Omega(q) = (|q|^2 - <1, q>) / 2``, which is 0 at every matching, complete or partial.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from nashlearn.games import matching, partial_matching
from nashlearn.games.matchings.kernels import solve_each
from nashlearn.games.matchings.matching import MatchingGame
from nashlearn.solvers.threads import in_threads
from nashlearn.training.objective import Evaluation
from nashlearn.training.played import warn_unsettled

__all__ = ["Example", "MatchingDesign", "MatchingProblem"]

_ACCURACY = 1e-9  # of each game, for each of its elements: far below any gap of training that is worth asking for


class Example(NamedTuple):
    """Features of two sets of elements: of pairs (n1, n2, d), of leaving (n1, d_leave), of entering (n2, d_enter).

    ``allowed`` (n1, n2) marks the pairs that may be matched. ``leave`` and ``enter`` are None together, where all
    elements must be matched.
    """

    pairs: np.ndarray
    leave: np.ndarray | None = None
    enter: np.ndarray | None = None
    allowed: np.ndarray | None = None

    @property
    def partial(self) -> bool:
        """Whether elements may stay alone."""
        return self.leave is not None


class Solved(NamedTuple):
    """Games of all examples: ``value``, ``entropy`` and ``gap`` of each, ``q`` and ``p`` as the scores lie.

    ``entropy`` is ``min_p <p, L q>``. The difference of ``value`` and ``<theta, q>`` is the same, but loses all digits
    where scores are large.
    """

    value: np.ndarray
    entropy: np.ndarray
    q: np.ndarray
    p: np.ndarray
    gap: np.ndarray


def _game(shape: tuple[int, ...], partial: bool) -> MatchingGame:
    """The game whose scores are matrices of this shape."""
    return partial_matching(shape[0] - 1, shape[1] - 1) if partial else matching(shape[0])


class MatchingDesign:
    """Where each example's scores lie, and how they depend on the weights.

    Parameters
    ----------
    examples : sequence of Example
        All complete or all partial, with equal numbers of features.
    """

    def __init__(self, examples: Sequence[Example]):
        self.partial = examples[0].partial
        n1, n2 = np.array([example.pairs.shape[:2] for example in examples]).T
        self.sizes = np.column_stack([n1, n2]) + self.partial
        self.offset = np.concatenate([[0], np.cumsum(self.sizes.prod(axis=1))])
        grids = [
            np.arange(start, stop).reshape(shape)
            for start, stop, shape in zip(self.offset, self.offset[1:], self.sizes, strict=False)
        ]
        d = examples[0].pairs.shape[2]
        blocks: list[list[Any]] = [[example.pairs.reshape(-1, d) for example in examples]]
        places = [[grid[:a, :b].ravel() for grid, a, b in zip(grids, n1, n2, strict=True)]]
        if self.partial:
            blocks += [[example.leave for example in examples], [example.enter for example in examples]]
            places += [[grid[:-1, -1] for grid in grids], [grid[-1, :-1] for grid in grids]]
        self._features = [np.concatenate(block) for block in blocks]
        self._places = [np.concatenate(place) for place in places]
        self.split = np.cumsum([block.shape[1] for block in self._features])
        self.n_weights = int(self.split[-1])
        self.costs = np.concatenate([game.weights.ravel() for game in self.games()])
        self.forbidden = np.zeros(self.offset[-1], dtype=bool)
        for example, grid, a, b in zip(examples, grids, n1, n2, strict=True):
            if example.allowed is not None:
                self.forbidden[grid[:a, :b][~example.allowed]] = True

    def games(self) -> list[MatchingGame]:
        """The game of each example."""
        return [_game(shape, self.partial) for shape in self.sizes.tolist()]

    def scores(self, w: np.ndarray) -> np.ndarray:
        """All scores one after another; 0 where a pair is forbidden and in the corners of partial matchings."""
        theta = np.zeros(self.offset[-1])
        for features, places, part in zip(self._features, self._places, np.split(w, self.split[:-1]), strict=True):
            theta[places] = features @ part
        theta[self.forbidden] = 0.0
        return theta

    def moments(self, x: np.ndarray) -> np.ndarray:
        """``Phi' x``: features of all examples, weighted by entries that lie as the scores do."""
        return np.concatenate(
            [x[places] @ features for features, places in zip(self._features, self._places, strict=True)]
        )

    def matrices(self, entries: np.ndarray) -> list[np.ndarray]:
        """Entries that lie as the scores do, as one matrix for each example."""
        return [
            entries[start:stop].reshape(shape)
            for start, stop, shape in zip(self.offset, self.offset[1:], self.sizes, strict=False)
        ]

    def vertices(self, y: Sequence[np.ndarray]) -> np.ndarray:
        """The matchings ``y`` as entries 0 and 1 that lie as the scores do."""
        pairs = zip(self.games(), y, strict=True)
        return np.concatenate([game.vertex(partners[None]).ravel() for game, partners in pairs])

    def best(self, theta: np.ndarray) -> list[np.ndarray]:
        """Partners of the left elements in the best matching of each example by scores ``theta``, -1 for none."""
        matrices = self.matrices(np.where(self.forbidden, -np.inf, theta))
        groups: dict[tuple[int, ...], list[int]] = {}
        for i, matrix in enumerate(matrices):
            groups.setdefault(matrix.shape, []).append(i)
        answers: list[Any] = [None] * len(matrices)
        for shape, members in groups.items():
            stack = np.stack([matrices[i] for i in members])
            for i, answer in zip(members, _game(shape, self.partial).argmax(stack), strict=True):
                answers[i] = answer
        return answers

    def solve(self, theta: np.ndarray, smoothing: float, n_jobs: int = 1) -> Solved:
        """The games of all examples; ``q`` and ``p`` lie as the scores ``theta`` do, whatever the number of threads."""
        b = len(self.sizes)
        found = Solved(np.empty(b), np.empty(b), np.empty(theta.size), np.empty(theta.size), np.empty(b))
        scores = np.where(self.forbidden, -np.inf, theta + 0.5 * smoothing)
        arguments = (scores, self.costs, self.sizes, self.offset, self.partial, smoothing, _ACCURACY)
        in_threads(lambda start, stop: solve_each(*arguments, start, stop, *found), b, n_jobs)
        return found

    def strategies(self, theta: np.ndarray, smoothing: float, n_jobs: int = 1) -> list[np.ndarray]:
        """The predictor's strategy of each example, a matrix as its scores are, or a warning."""
        found = self.solve(theta, smoothing, n_jobs)
        warn_unsettled(found.gap, self.sizes[:, 0] - self.partial)
        return self.matrices(found.p)


class MatchingProblem:
    """Examples with their true matchings, each weighted by its share of the mean.

    Parameters
    ----------
    design : MatchingDesign
    y : sequence of int arrays
        Partners of the left elements, -1 for none.
    omega : ndarray (n_examples,)
        Weight of a left element of each example; over all elements they sum to 1.
    n_jobs : int
        Threads.
    """

    def __init__(self, design: MatchingDesign, y: Sequence[np.ndarray], omega: np.ndarray, n_jobs: int = 1):
        self.design, self.n_weights, self.complete = design, design.n_weights, True
        self._omega, self._n_jobs = omega, n_jobs
        self._share = np.repeat(omega, np.diff(design.offset))
        self._truth = self._share * design.vertices(y)

    def curvature(self) -> None:
        """No guess: features of pairs are of one kind."""

    def evaluate(self, w: np.ndarray, smoothing: float) -> Evaluation:
        """Loss, gradient and plane at ``w``. Cost: the features twice, and a game for each example."""
        theta = self.design.scores(w)
        found = self.design.solve(theta, smoothing, self._n_jobs)
        q = self._share * found.q
        penalty = 0.5 * smoothing * float(q @ found.q - q.sum())
        return Evaluation(
            loss=float(self._omega @ (found.value + found.gap)) - float(self._truth @ theta),
            gradient=self.design.moments(q - self._truth),
            entropy=float(self._omega @ found.entropy),
            penalty=penalty,
        )
