"""Steps for tempered games in the span of a kernel: Newton's equation of a part of the curvature, then a search.

With scores ``A c``, ``A`` the Gram matrix as the span has it, the objective over coefficients ``c`` and its gradient in
the space of functions, again by coefficients, are

    P(c) = alpha/2 <c, A c> + sum_i omega_i (F_mu((A c)_i) - <(A c)_i, y_i>),        r = alpha c + omega (q - y),

and a Newton step solves ``H d = -r``, ``H = alpha I + omega J A``, in the functions' own inner product ``<a, A b>``.

The curvature is a sum over directions in the scores of examples, ``omega J = sum_a u_a u_a'``. Some hundreds of them,
drawn by their size and made longer by as much as they are rare, rows of ``U``, have nearly the same sum [rudi2017]_.
Their own equation is solved by Cholesky's factors,

    (alpha I + U' U A) z = r,        z = (r - U' v) / alpha,        (alpha I + U A U') v = U A r.

A step is the best one in the span of ``z``, the last step and ``c``, as in conjugate gradients [notay2000]_. With a
function its scores ``A z`` are known too, and a search among them costs no product: each step takes one, for ``r``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as sl

from nashlearn.game import Equilibrium
from nashlearn.kernels.tangents import combine
from nashlearn.kernels.tempered import turn_directions, turn_rows
from nashlearn.training.methods.factor import shifted_factor
from nashlearn.training.methods.search import first_descent

__all__ = ["ROUNDED", "Known", "Point", "Tempered", "drawing_chances"]

_TURNS = 4  # steps with the same directions
_RATE = 0.1  # by which the first of them lowers the gap, roughly
_PIVOTS = 4  # directions in the scores of one example at most
_DRAWN = 1.5  # directions, over the cube root of the operations of a product: a factor costs about as much
_FEW = 300.0  # whose factor takes no time
_ROUNDS = 3  # in which chances above 1 are spread over the others
_MANY = 500  # examples whose mean is all but constant
_LENGTHS = 8  # of the first coefficients that are tried
_SEARCHES = 3  # Newton steps in a span at most,
_CLOSE = 0.02  # or until one brings less than this part of all
_ALIKE = 1e-12  # ratio of eigenvalues below which functions are the same
_SHORTEST = 1e-8
_LOST = 1e3  # scores, over what rounding may do to them, that are worth to be scaled up
ROUNDED = 1e-13  # relative change of an objective that may be rounding

Pair = tuple[np.ndarray, np.ndarray]  # coefficients ``a`` and ``A a``
Solver = Callable[[Pair], Pair]
Known = list[tuple[np.ndarray, float]]  # scores of coefficients and of those of their labels, and how wrong they are


class Point(NamedTuple):
    """Coefficients, their scores, the objective there and its equilibria."""

    C: np.ndarray
    scores: np.ndarray
    value: float
    found: Equilibrium


@dataclass(frozen=True)
class Tempered:
    """The tempered objective of a kernel problem with smoothing ``mu``."""

    problem: Any
    mu: float

    @cached_property
    def truth(self) -> np.ndarray:
        """The labels as vertices."""
        return self.problem.truth()

    def at(self, C: np.ndarray, scores: np.ndarray, start: Equilibrium | None = None) -> Point:
        """The point at coefficients ``C``, whose scores are these."""
        problem = self.problem
        found = problem.game.equilibria(scores, self.mu, start=start)
        loss = float(problem.omega @ (found.value + found.gap - np.einsum("ij,ij->i", scores, self.truth)))
        return Point(C, scores, 0.5 * problem.alpha * float(np.vdot(C, scores)) + loss, found)

    def begun(self) -> Point:
        """The best multiple of the coefficients ``y - mean y``, whose sum is 0: an intercept plays no part."""
        problem = self.problem
        C = problem.omega[:, None] * (self.truth - problem.omega @ self.truth / problem.omega.sum())
        scores = problem.scores(C)
        size = float(np.abs(scores).max())
        if not size > _LOST * problem.scores_error(C):  # as of rows that are all alike
            return self.at(np.zeros_like(C), np.zeros_like(scores))
        half = 0.5 * problem.alpha * float(np.vdot(C, scores))
        ray = problem.ray(scores, half, self.mu)
        s = (self.mu + problem.game.scale) / size
        s = ray.best(s, _LENGTHS)[1]
        return self.at(s * C, s * scores)

    def own(self, q: np.ndarray) -> np.ndarray:
        """The coefficients of labels ``q``, ``omega (y - q) / alpha``."""
        return (self.problem.omega / self.problem.alpha)[:, None] * (self.truth - q)

    def round(
        self, here: Point, r: Pair, enough: float, rng: np.random.Generator, *, certify: bool = False
    ) -> tuple[Point, Known | None]:
        """A point that is better than one of gradient ``r``, or has a gap of ``enough``; the same where none is found.

        Steps solve one equation of drawn directions each, and are best in the span of that solution, the step before
        and the coefficients themselves. Cost: a product with ``A`` for each. Where that is to ``certify`` the point and
        it was likely to be the last, its scores and those of its labels come with it.
        """
        problem, near, known = self.problem, self._drawn(here.found, rng), None
        last: tuple[Pair, ...] = ()
        gap, rate = float(np.vdot(*r)) / (2.0 * problem.alpha), _RATE
        for turn in range(_TURNS):
            if turn:
                own = self.own(here.found.q)
                known = problem.all_scores(here.C, own) if certify and rate * gap <= enough else None
                spread = known[1][0] if known else problem.scores(own)
                r = problem.alpha * (here.C - own), problem.alpha * (here.scores - spread)
                before, gap = gap, float(np.vdot(*r)) / (2.0 * problem.alpha)
                rate = gap / max(before, np.finfo(np.float64).tiny)
            if gap <= enough:
                return here, known
            there = self.levelled(self._best(here, _stacked((near(r), (here.C, here.scores), *last))))
            if there is here:
                return here, known
            last = ((there.C - here.C, there.scores - here.scores),)
            here = there
        return here, None

    def levelled(self, here: Point) -> Point:
        """Nearly the best point that constants, one for each score, and their kernel's mean can be added for."""
        return self._searched(here, self._constants) or here

    @cached_property
    def _constants(self) -> Pair:
        """Functions that are all but constant, one for each score: the mean of many examples by their weights."""
        problem, span = self.problem, self.problem.span
        u = np.zeros((problem.gram.n, 1))
        some = slice(None, None, max(1, problem.gram.n // _MANY))
        u[some, 0] = problem.omega[some]
        Ku, k = problem.gram.product(u), problem.shape[1]
        return _stacked((u * e, span.scores(Ku * span.reduce(e[None, :]), u * e)) for e in np.eye(k))

    def _best(self, here: Point, pairs: Pair) -> Point:
        """Nearly the best point in the span of a few functions, by Newton's method; no product with ``A`` is made."""
        there = here
        for _ in range(_SEARCHES):
            found = self._searched(there, pairs)
            if found is None:
                break
            there, gained = found, there.value - found.value
            if gained <= _CLOSE * (here.value - found.value):
                break
        return there

    def _searched(self, here: Point, pairs: Pair) -> Point | None:
        """The point after a Newton step in the span of a few functions: no product with ``A`` is made."""
        alpha, found, (a, Aa) = self.problem.alpha, here.found, pairs
        change = self.problem.omega[:, None] * (found.q - self.truth)
        slopes = alpha * (a @ here.scores.ravel()) + Aa @ change.ravel()
        bent = Aa.copy()
        for one in bent:
            self._bend(found, one.reshape(change.shape))
        H = alpha * (a @ Aa.T) + bent @ Aa.T
        size = np.sqrt(np.maximum(np.diagonal(H), np.finfo(np.float64).tiny))  # steps may be tiny beside coefficients
        try:
            t = -np.linalg.lstsq(H / np.outer(size, size), slopes / size, rcond=_ALIKE)[0] / size
        except np.linalg.LinAlgError:  # values of a kernel too far apart for any of it to be known
            return None
        slope = float(slopes @ t)
        if not slope < 0.0:  # all is rounding
            return None
        step, spread = (t @ a).reshape(change.shape), (t @ Aa).reshape(change.shape)
        best = first_descent(
            lambda s: _by_value(self.at(here.C + s * step, here.scores + s * spread, found)),
            here.value,
            slope,
            shortest=_SHORTEST,
            slack=ROUNDED,
        )
        return None if best is None else best[1][1]

    def _bend(self, found: Equilibrium, scores: np.ndarray) -> np.ndarray:
        """``omega J`` times a change of the scores, at these equilibria; overwrites ``scores``."""
        turn_rows(self.problem.game.params.compiled(), self.mu, found.q, found.p, scores)
        scores *= self.problem.omega[:, None]
        return scores

    def _drawn(self, found: Equilibrium, rng: np.random.Generator) -> Solver:
        """The solution of the Newton equation of drawn directions at these equilibria."""
        problem, gram, span, alpha = self.problem, self.problem.gram, self.problem.span, self.problem.alpha
        n, k = found.q.shape
        most = min(_PIVOTS, max(k - 1, 1))
        U = np.empty((n * most, k))
        turn_directions(problem.game.params.compiled(), self.mu, problem.omega, found.q, found.p, U)
        sizes = np.einsum("ac,ac->a", U, U) * np.repeat(np.maximum(gram.diagonal - gram.bias, 0.0), most)
        chances = drawing_chances(sizes, max(_DRAWN * (float(n) * n * k) ** (1.0 / 3.0), _FEW))
        drawn = np.flatnonzero(rng.random(sizes.size) < chances)
        some = np.unique(drawn // most)[: gram.capacity]
        drawn = drawn[drawn // most <= some.max(initial=-1)]
        owner = np.searchsorted(some, drawn // most)
        U = U[drawn] / np.sqrt(chances[drawn])[:, None]
        factor = shifted_factor(lambda: span.covariance(gram.square(some), U, owner).T, alpha)

        def solve(b: Pair) -> Pair:
            r, Ar = b
            v, out = np.einsum("ac,ac->a", U, Ar[some[owner]]), np.empty((some.size, k))
            combine(U, owner, sl.cho_solve((factor, True), v, check_finite=False), out)
            z = r.copy()
            z[some] -= out
            z /= alpha
            Az = Ar - span.scores(gram.columns(some, span.reduce(out)), out)
            Az /= alpha
            return z, Az

        return solve


def drawing_chances(sizes: np.ndarray, wanted: float, sure: np.ndarray | bool = False) -> np.ndarray:
    """Chances in proportion to sizes, as far as they are no more than 1, whose sum is what is wanted.

    Those that are ``sure`` have a chance of 1.
    """
    chances = np.where(sure, 1.0, np.zeros_like(sizes))
    for _ in range(_ROUNDS):
        free = chances < 1.0
        total, left = float(sizes[free].sum()), wanted - np.count_nonzero(~free)
        if not (total > 0.0 and left > 0.0):
            break
        chances[free] = np.minimum(sizes[free] / total * left, 1.0)
    return chances


def _stacked(pairs: Iterable[Pair]) -> Pair:
    """Functions as rows."""
    a, Aa = zip(*pairs, strict=True)
    return np.stack(a).reshape(len(a), -1), np.stack(Aa).reshape(len(a), -1)


def _by_value(point: Point) -> tuple[float, Point]:
    return point.value, point
