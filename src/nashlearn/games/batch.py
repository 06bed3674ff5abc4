"""Games of several sizes, one for each example of a data set, played together.

Scores of all examples lie one after another in one array; so do both players' strategies. Examples with the same game
are solved in one call of its ``solve``, whatever the game is, in pieces that do not depend on the number of threads.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

import joblib
import numpy as np

from nashlearn.game import Equilibrium, Game
from nashlearn.solvers.threads import threads

__all__ = ["Batch"]

_PIECE = 16  # examples that one thread solves at a time


class Batch:
    """The games of examples, in their order.

    Parameters
    ----------
    games : sequence of Game
        One for each example; examples of a kind should share theirs.

    Attributes
    ----------
    offset, option_offset : ndarray (n + 1,)
        Where the scores and the predictor's strategy of each example begin.
    """

    def __init__(self, games: Sequence[Game]):
        self.games = list(games)
        self.offset = _offsets([math.prod(game.shape) for game in self.games])
        self.option_offset = _offsets([math.prod(game.option_shape) for game in self.games])
        self._pieces = self._cut()

    def _cut(self) -> list[np.ndarray]:
        """Examples that are solved together, those of many entries first: what threads end with should be short."""
        members: dict[int, list[int]] = {}
        for i, game in enumerate(self.games):
            members.setdefault(id(game), []).append(i)
        pieces = [np.array(same[at : at + _PIECE]) for same in members.values() for at in range(0, len(same), _PIECE)]
        sizes = np.diff(self.offset)
        return sorted(pieces, key=lambda piece: -len(piece) * int(sizes[piece[0]]))

    def part(self, examples: np.ndarray) -> Batch:
        """The games of some examples, in the order of their numbers."""
        found = copy.copy(self)
        found.games = [self.games[i] for i in examples.tolist()]
        found.offset = _offsets(np.diff(self.offset)[examples])
        found.option_offset = _offsets(np.diff(self.option_offset)[examples])
        found._pieces = found._cut()
        return found

    def __len__(self) -> int:
        return len(self.games)

    def solve(
        self,
        scores: np.ndarray,
        *,
        smoothing: float = 0.0,
        tol: float = 1e-9,
        n_jobs: int | None = None,
        start: Equilibrium | None = None,
    ) -> Equilibrium:
        """Equilibria of all examples; ``q`` lies as the scores do, ``p`` from ``option_offset`` on."""
        n = len(self.games)
        value, gap, entropy, risk = np.empty((4, n))
        q, p = np.empty(self.offset[-1]), np.empty(self.option_offset[-1])
        alike = np.array_equal(self.offset, self.option_offset)

        def play(i: int) -> Equilibrium:
            piece = self._pieces[i]
            game = self.games[piece[0]]
            places = _places(self.offset, piece)
            own = scores[places].reshape(len(piece), *game.shape)
            before = None if start is None else start.state[i]
            found = game.solve(own, smoothing=smoothing, tol=tol, n_jobs=1, start=before)
            value[piece], gap[piece], entropy[piece], risk[piece] = found.value, found.gap, found.entropy, found.risk
            q[places] = found.q.reshape(len(piece), -1)
            p[places if alike else _places(self.option_offset, piece)] = found.p.reshape(len(piece), -1)
            return found

        state = threads(joblib.effective_n_jobs(n_jobs))(play, [(i,) for i in range(len(self._pieces))])
        return Equilibrium(value, q, p, gap, entropy, risk, state=state)

    def argmax(self, scores: np.ndarray) -> list[Any]:
        """The label of the best vertex of each example."""
        found: list[Any] = [None] * len(self.games)
        for piece in self._pieces:
            game = self.games[piece[0]]
            own = scores[_places(self.offset, piece)].reshape(piece.size, *game.shape)
            for i, label in zip(piece.tolist(), game.argmax(own), strict=True):
                found[i] = label
        return found

    def vertices(self, labels: Sequence[Any]) -> np.ndarray:
        """The vertices that ``labels`` name, one for each example, as the scores lie."""
        found = np.empty(self.offset[-1])
        for piece in self._pieces:
            own = np.array([labels[i] for i in piece.tolist()])
            found[_places(self.offset, piece)] = self.games[piece[0]].vertex(own).reshape(len(piece), -1)
        return found

    def split(self, entries: np.ndarray) -> list[np.ndarray]:
        """Entries that lie as the scores do, as one array for each example."""
        parts = np.split(entries, self.offset[1:-1])
        return [part.reshape(game.shape) for part, game in zip(parts, self.games, strict=True)]

    def split_options(self, entries: np.ndarray) -> list[np.ndarray]:
        """Entries of strategies of the predictor, as one array for each example."""
        parts = np.split(entries, self.option_offset[1:-1])
        return [part.reshape(game.option_shape) for part, game in zip(parts, self.games, strict=True)]


def _offsets(sizes: Sequence[int] | np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _places(offset: np.ndarray, piece: np.ndarray) -> np.ndarray:
    """Where the entries of examples of one size are, a row for each."""
    return offset[piece, None] + np.arange(offset[piece[0] + 1] - offset[piece[0]])
