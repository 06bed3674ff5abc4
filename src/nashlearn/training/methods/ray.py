"""Weights made longer or shorter: the primal along ``s w``, where a dual point's own weights fall short.

Where the labels can be told apart and ``alpha`` is small, nearly all of the objective is ``alpha/2 |w|^2``, and weights
that miss many margins by a little cost much; a little longer, they miss none. Along the ray

    P(s w) = s^2 alpha/2 |w|^2 + sum_i omega_i (F(s theta_i) - s <theta_i, y_i>)

is convex in ``s``, with slope ``s alpha |w|^2 + sum_i omega_i <theta_i, q_i - y_i>``, so a few evaluations find the
best. Cost: one pass over the scores for each.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from nashlearn.solvers.threads import Run, threads

__all__ = ["Ray"]

_ROWS = 1 << 11  # that one thread plays at a time
_FIRST = 0.01  # relative length of the first trial step
_LONGEST = 4.0  # ratio of two trials at most
_TINY = 1e-300
_CLOSE = 1e-4  # relative length of an interval that is not worth halving


class Ray:
    """``P(s w)`` for scores ``theta`` (n, k) at ``s = 1``, where ``half`` is ``alpha/2 |w|^2``.

    ``fixed`` are scores that do not grow along, those of weights that are not in question; ``smoothing`` is the game's.
    Threads of ``run`` share the rows in parts whose size does not depend on their number.
    """

    def __init__(
        self,
        game: Any,
        scores: np.ndarray,
        truth: np.ndarray,
        omega: np.ndarray,
        half: float,
        fixed: np.ndarray | None = None,
        smoothing: float = 0.0,
        run: Run | None = None,
    ):
        self.game, self.omega, self.half, self.fixed, self.smoothing = game, omega, half, fixed, smoothing
        self.scores, self.run = np.ascontiguousarray(scores), run or threads(1)
        self.own = np.einsum("ij,ij->i", self.scores, truth)
        self.fixed_own = np.zeros(len(omega)) if fixed is None else np.einsum("ij,ij->i", fixed, truth)

    def at(self, s: float) -> tuple[float, float]:
        """Value and slope at ``s``."""

        def part(start: int) -> tuple[float, float]:
            some = slice(start, start + _ROWS)
            theta, own, omega = self.scores[some], self.own[some], self.omega[some]
            f = s * theta
            if self.fixed is not None:
                f += self.fixed[some]
            found = self.game.part(some).equilibria(f, self.smoothing)
            value = found.value + found.gap if self.smoothing else found.value
            loss = float(omega @ (value - s * own - self.fixed_own[some]))
            return loss, float(omega @ (np.einsum("ij,ij->i", theta, found.q) - own))

        found = self.run(part, ((start,) for start in range(0, len(self.scores), _ROWS)))
        loss, slope = (math.fsum(one) for one in zip(*found, strict=True))
        return loss + s * s * self.half, slope + 2.0 * s * self.half

    def best(
        self, s: float, tries: int, enough: Callable[[float, float], bool] = lambda value, least: False
    ) -> tuple[float, float]:
        """The smallest value of so many tries that begin at ``s``, and where it is.

        None is made once ``enough`` holds of the smallest value and of what no length gets below: losses are convex,
        and so ``P(t w) >= P(s w) + slope (t - s) + half (t - s)^2``.
        """
        below = above = None
        found, least, stride = (np.inf, s), -np.inf, 1.0 + _FIRST
        for _ in range(tries):
            value, slope = self.at(s)
            found, least = min(found, (value, s)), max(least, value - slope**2 / max(4.0 * self.half, _TINY))
            if enough(found[0], least):
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
