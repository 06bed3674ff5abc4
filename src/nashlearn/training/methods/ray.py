"""Weights made longer or shorter: the primal along ``s w``, where a dual point's own weights fall short.

Where the labels can be told apart and ``alpha`` is small, nearly all of the objective is ``alpha/2 |w|^2``, and weights
that miss many margins by a little cost much; a little longer, they miss none. Along the ray

    P(s w) = s^2 alpha/2 |w|^2 + sum_i omega_i (F(s theta_i) - s <theta_i, y_i>)

is convex in ``s``, with slope ``s alpha |w|^2 + sum_i omega_i <theta_i, q_i - y_i>``, so a few evaluations find the
best. Cost: one pass over the scores for each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["Ray"]

_FIRST = 0.01  # relative length of the first trial step
_LONGEST = 4.0  # ratio of two trials at most
_CLOSE = 1e-4  # relative length of an interval that is not worth halving


class Ray:
    """``P(s w)`` for scores ``theta`` (n, k) at ``s = 1``, where ``half`` is ``alpha/2 |w|^2``.

    ``fixed`` are scores that do not grow along, those of weights that are not in question; ``smoothing`` is the game's.
    """

    def __init__(
        self,
        game: Any,
        scores: np.ndarray,
        truth: np.ndarray,
        omega: np.ndarray,
        half: float,
        fixed: np.ndarray | float = 0.0,
        smoothing: float = 0.0,
    ):
        self.game, self.omega, self.half, self.fixed, self.smoothing = game, omega, half, fixed, smoothing
        self.scores = np.ascontiguousarray(scores)
        self.own, self.fixed_own = np.einsum("ij,ij->i", self.scores, truth), (fixed * truth).sum(axis=1)

    def at(self, s: float) -> tuple[float, float]:
        """Value and slope at ``s``."""
        found = self.game.equilibria(self.fixed + s * self.scores, self.smoothing)
        loss = float(
            self.omega @ (found.value + (found.gap if self.smoothing else 0.0) - s * self.own - self.fixed_own)
        )
        slope = float(self.omega @ (np.einsum("ij,ij->i", self.scores, found.q) - self.own))
        return loss + s * s * self.half, slope + 2.0 * s * self.half

    def best(self, s: float, tries: int, enough: Callable[[float], bool] = lambda value: False) -> tuple[float, float]:
        """The smallest value of so many tries that begin at ``s``, and where it is; none after one that is enough."""
        below = above = None
        found, stride = (np.inf, s), 1.0 + _FIRST
        for _ in range(tries):
            value, slope = self.at(s)
            found = min(found, (value, s))
            if enough(found[0]):
                break
            below, above = ((s, slope), above) if slope < 0 else (below, (s, slope))
            if below is None:
                s, stride = s / stride, min(stride**3, _LONGEST)
            elif above is None:
                s, stride = s * stride, min(stride**3, _LONGEST)
            else:
                if above[0] - below[0] < _CLOSE * s:
                    break
                share = below[1] / (below[1] - above[1])
                s = below[0] + min(max(share, 0.1), 0.9) * (above[0] - below[0])
        return found
