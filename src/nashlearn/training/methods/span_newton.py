"""Newton steps for tempered games in the span of a kernel, by conjugate gradients.

With scores ``A c``, ``A`` the Gram matrix as the span has it, the objective over coefficients ``c`` and its gradient in
the space of functions, again by coefficients, are

    P(c) = alpha/2 <c, A c> + sum_i omega_i (F_mu((A c)_i) - <(A c)_i, y_i>),        r = alpha c + omega (q - y),

and a Newton step solves ``H d = -r``, ``H = alpha I + omega J A``, in the functions' own inner product ``<a, A b>``. That
takes one product with ``A`` for each step of conjugate gradients, as ``A d`` is a sum of products that were made.

A random part of the examples has nearly the same curvature: its own equation, ``H_s z = r`` with

    z = (r - v) / alpha,        (alpha I + omega_s J A_ss) v = omega_s J (A r)_s,       v on the part alone,

is solved for a small share of the cost, and leaves few steps for the whole [rudi2017]_.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from nashlearn.game import Equilibrium
from nashlearn.kernels.tempered import turn_rows
from nashlearn.training.methods.search import first_descent

__all__ = ["ROUNDED", "Part", "Point", "Tempered"]

_STEPS = 200
_PART_STEPS = 60
_SHARP = 1e-3  # squared residual that a part's equation may leave, times alpha over the largest curvature
_SHORTEST = 1e-8
ROUNDED = 1e-13  # relative change of an objective that may be rounding

Pair = tuple[np.ndarray, np.ndarray]  # coefficients ``a`` and ``A a``


class Point(NamedTuple):
    """Coefficients, their scores, the objective there and its equilibria."""

    C: np.ndarray
    scores: np.ndarray
    value: float
    found: Equilibrium


@dataclass(frozen=True)
class Tempered:
    """The tempered objective of some examples. ``spread`` maps coefficients (n, k) to scores."""

    game: Any
    mu: float
    alpha: float
    omega: np.ndarray
    truth: np.ndarray
    spread: Callable[[np.ndarray], np.ndarray]

    def at(self, C: np.ndarray, scores: np.ndarray, start: Equilibrium | None = None) -> Point:
        """The point at coefficients ``C``, whose scores are these."""
        found = self.game.equilibria(scores, self.mu, start=start)
        loss = float(self.omega @ (found.value + found.gap - np.einsum("ij,ij->i", scores, self.truth)))
        return Point(C, scores, 0.5 * self.alpha * float(np.vdot(C, scores)) + loss, found)

    def own(self, q: np.ndarray) -> np.ndarray:
        """The coefficients of labels ``q``, ``omega (y - q) / alpha``."""
        return (self.omega / self.alpha)[:, None] * (self.truth - q)

    def stepped(
        self, here: Point, r: np.ndarray, Ar: np.ndarray, left: float, part: Part | None = None
    ) -> Point | None:
        """The point after a Newton step from one of gradient ``r``; None where no step helps.

        Conjugate gradients leave at most the share ``left`` of ``<r, A r>``.
        """
        solve = None if part is None else part.solver(here.found)
        step, spread = self.solved(here.found, (-r, -Ar), left, _STEPS, solve)
        found = first_descent(
            lambda t: _by_value(self.at(here.C + t * step, here.scores + t * spread, here.found)),
            here.value,
            float(np.vdot(r, spread)),
            shortest=_SHORTEST,
            slack=ROUNDED,
        )
        return None if found is None else found[1][1]

    def bend(self, found: Equilibrium, scores: np.ndarray) -> np.ndarray:
        """``omega J`` times a change of the scores, at these equilibria; overwrites ``scores``."""
        turn_rows(self.game.params.compiled(), self.mu, found.q, found.p, scores)
        scores *= self.omega[:, None]
        return scores

    def solved(
        self, found: Equilibrium, b: Pair, left: float, steps: int, near: Callable[[Pair], Pair] | None = None
    ) -> Pair:
        """``d`` with ``H d = b``, but for a residual whose square is at most the share ``left`` of that of ``b``.

        ``near`` solves an equation much like it. As that is inexact, directions are made conjugate to the last one
        explicitly [notay2000]_.
        """
        r, Ar = b[0].copy(), b[1].copy()
        x, Ax = np.zeros_like(r), np.zeros_like(r)
        d, Ad = (r.copy(), Ar.copy()) if near is None else near((r, Ar))
        first = float(np.vdot(r, Ar))
        for _ in range(steps):
            bent = self.bend(found, Ad.copy())
            Ah = self.spread(bent)
            Ah += self.alpha * Ad
            bent += self.alpha * d
            curvature = float(np.vdot(Ad, bent))
            if not curvature > 0.0:  # all is rounding
                break
            length = float(np.vdot(r, Ad)) / curvature
            x += length * d
            Ax += length * Ad
            r -= length * bent
            Ar -= length * Ah
            if not np.vdot(r, Ar) > left * first:
                break
            z, Az = (r, Ar) if near is None else near((r, Ar))
            along = float(np.vdot(bent, Az)) / curvature
            d *= -along
            d += z
            Ad *= -along
            Ad += Az
        return x, Ax


def _by_value(point: Point) -> tuple[float, Point]:
    return point.value, point


@dataclass(frozen=True)
class Part:
    """Some examples, their own objective, and ``everywhere``: scores of all examples from coefficients of these."""

    some: np.ndarray
    own: Tempered
    everywhere: Callable[[np.ndarray], np.ndarray]
    curvature: float

    def solver(self, found: Equilibrium) -> Callable[[Pair], Pair]:
        """The solution of the part's Newton equation at the equilibria of all examples."""
        some, own, alpha = self.some, self.own, self.own.alpha
        here = Equilibrium(
            *(one[some] for one in (found.value, found.q, found.p, found.gap, found.entropy, found.risk))
        )
        left = _SHARP * alpha / (alpha + self.curvature)

        def solve(b: Pair) -> Pair:
            r, Ar = b
            bent = own.bend(here, Ar[some])
            v, _ = own.solved(here, (bent, own.spread(bent)), left, _PART_STEPS)
            z = r.copy()
            z[some] -= v
            Az = Ar - self.everywhere(v)
            z /= alpha
            Az /= alpha
            return z, Az

        return solve
