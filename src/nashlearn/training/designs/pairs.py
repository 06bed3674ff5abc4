"""Matchings of many sizes as one design: linear scores of pairs and of staying alone.

theta_ij = <w, phi_ij>,   theta_i,leave = <w_leave, phi_i>,   theta_enter,j = <w_enter, phi_j>.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from nashlearn.games import matching, partial_matching
from nashlearn.games.batch import Batch
from nashlearn.training.designs.entries import EntryFeatures, stacked
from nashlearn.training.objective import GameProblem

__all__ = ["Example", "PairFeatures", "matching_games", "matching_problem"]


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


def matching_games(examples: Sequence[Example]) -> Batch:
    """The game of each example; those of a size share theirs."""
    game = cache(lambda n1, n2, partial: partial_matching(n1, n2) if partial else matching(n1))
    return Batch([game(*example.pairs.shape[:2], example.partial) for example in examples])


class PairFeatures(EntryFeatures):
    """Features of pairs, of leaving and of entering, and ``-inf`` where a pair is forbidden.

    Parameters
    ----------
    examples : sequence of Example
        All complete or all partial, with equal numbers of features.
    games : Batch
        Their games.
    """

    def __init__(self, examples: Sequence[Example], games: Batch):
        grids = games.split(np.arange(games.offset[-1]))
        inner = [
            grid[: len(example.pairs), : example.pairs.shape[1]] for grid, example in zip(grids, examples, strict=True)
        ]
        blocks: list[Any] = [stacked([example.pairs for example in examples])]
        places = [np.concatenate([pairs.ravel() for pairs in inner])]
        if examples[0].partial:
            blocks += [
                stacked([example.leave for example in examples]),
                stacked([example.enter for example in examples]),
            ]
            places += [
                np.concatenate([grid[:-1, -1] for grid in grids]),
                np.concatenate([grid[-1, :-1] for grid in grids]),
            ]
        masked = [
            pairs[~example.allowed]
            for pairs, example in zip(inner, examples, strict=True)
            if example.allowed is not None
        ]
        super().__init__(blocks, games.offset, places, np.concatenate(masked) if masked else None)


def matching_problem(
    examples: Sequence[Example],
    partners: Sequence[np.ndarray],
    omega: np.ndarray,
    *,
    tol: float = 1e-9,
    n_jobs: int | None = None,
) -> GameProblem:
    """The training problem of examples with the true partners of their left elements, -1 for none.

    ``omega`` (n_examples,) is the weight of a left element of each example; over all elements of all data they sum to
    1. ``tol`` and ``n_jobs`` are those of :class:`nashlearn.training.objective.GameProblem`.
    """
    games = matching_games(examples)
    design = PairFeatures(examples, games)
    moments = design.moments(games.vertices(partners), omega)
    return GameProblem(design, games, moments, omega, tol=tol, n_jobs=n_jobs)
