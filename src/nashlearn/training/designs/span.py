"""The training problem in the span of a kernel.

With coefficients ``c_i = -omega_i/alpha (q_i - y_i)`` the scores of example ``j`` are ``sum_i K_ij c_i`` and
``|w|^2 = sum_i <c_i, scores_i>``, so primal, dual and gap need the scores of the training data only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from nashlearn.kernels.gram import largest_sizes, magnitudes
from nashlearn.kernels.rows import SharedSquare, Square
from nashlearn.training.designs.gram import Gram
from nashlearn.training.methods.ascent import listed
from nashlearn.training.methods.ray import Ray
from nashlearn.training.rounding import EXTRA, UNIT, largest, rounding

if TYPE_CHECKING:
    from nashlearn.training.designs.corner import Corner

__all__ = ["KernelProblem", "SpanCumulative", "SpanPerClass", "SpanShared"]

_BLOCK = 512  # rows of a matrix that are multiplied at once


class SpanPerClass:
    """One function per class."""

    def __init__(self, k: int):
        self.k = self.functions = k
        self.offset = 0.0  # the constant feature, where there is one, is part of the kernel
        self.copies = 1  # how often a function's value counts in a loss
        self.apart = True  # whether the kernel's constant moves each score by the sum of its own coefficients

    def above(self, C: np.ndarray) -> np.ndarray:
        """The coefficients of what an offset could be added to, (n, k)."""
        return C

    def reduce(self, C: np.ndarray) -> np.ndarray:
        """The coefficients that multiply the Gram matrix, (n, functions)."""
        return C

    def scores(self, KC: np.ndarray, C: np.ndarray) -> np.ndarray:
        """Scores from the Gram matrix times the reduced coefficients."""
        return KC

    def square(self, K: np.ndarray, KC: np.ndarray, C: np.ndarray, *, light: bool = False) -> tuple[Any, np.ndarray]:
        """Rows and "weights" of a working set for the sweeps."""
        return Square(K), np.ascontiguousarray(KC, dtype=np.float32 if light else np.float64)

    def covariance(self, K: np.ndarray, U: np.ndarray, owner: np.ndarray) -> np.ndarray:
        """``U A U'`` for directions ``U`` in the scores of their owners."""
        M = U @ U.T
        for start in range(0, owner.size, _BLOCK):  # as large a matrix again would double the memory
            part = slice(start, start + _BLOCK)
            M[part] *= K[np.ix_(owner[part], owner)]
        return M

    def covariance_diagonal(self, K: np.ndarray, U: np.ndarray, owner: np.ndarray) -> np.ndarray:
        """The diagonal of :meth:`covariance`."""
        return np.einsum("ac,ac->a", U, U) * np.diagonal(K)[owner]

    def squared_diameters(self, diagonal: np.ndarray) -> np.ndarray:
        """Squared distance between the moments of two labels, for examples with this diagonal."""
        return 2.0 * diagonal

    def reach(self, scores: np.ndarray) -> np.ndarray:
        """How large the scores (n, k) of an example are in its loss, up to a factor."""
        sizes = np.empty(len(scores))
        largest_sizes(np.ascontiguousarray(scores), sizes)
        return sizes

    def tidied(self, C: np.ndarray) -> np.ndarray:
        """``C``."""
        return C

    def lists(self, near: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Examples to visit and the classes of each visit."""
        order = np.arange(near.shape[0])
        return order, *listed(near, order)


class _OneFunction:
    """What one function with offsets has, whichever coefficients :meth:`above` says that they are for."""

    offset: float

    def above(self, C: np.ndarray) -> np.ndarray:
        """The coefficients of thresholds."""
        raise NotImplementedError

    def reduce(self, C: np.ndarray) -> np.ndarray:
        """The coefficients that multiply the Gram matrix, (n, 1)."""
        return self.above(C).sum(axis=1, keepdims=True)

    def offsets(self, C: np.ndarray) -> np.ndarray:
        """What each threshold adds to the function."""
        return self.offset * self.above(C).sum(axis=0)

    def covariance(self, K: np.ndarray, U: np.ndarray, owner: np.ndarray) -> np.ndarray:
        """``U A U'`` for directions ``U`` in the scores of their owners."""
        V = self.above(U)
        total = V.sum(axis=1)
        M = K[np.ix_(owner, owner)] * total * total[:, None]
        M += self.offset * (V @ V.T)
        return M


class SpanShared(_OneFunction):
    """One function with ``m`` offsets, for losses that are a sum over scores: each is visited on its own.

    ``constant`` is the feature that each offset sees.
    """

    def __init__(self, m: int, constant: float = 1.0):
        self.k, self.functions = m, 1
        self.offset = constant**2  # what an offset adds to the diagonal of a score
        self.copies = m
        self.apart = False

    def above(self, C: np.ndarray) -> np.ndarray:
        """The coefficients of thresholds, (n, m)."""
        return C

    def scores(self, KC: np.ndarray, C: np.ndarray) -> np.ndarray:
        """Scores from the Gram matrix times the reduced coefficients."""
        return KC + self.offsets(C)

    def square(self, K: np.ndarray, KC: np.ndarray, C: np.ndarray, *, light: bool = False) -> tuple[Any, np.ndarray]:
        """Rows and "weights" of a working set for the sweeps."""
        return SharedSquare(K, self.offset), np.concatenate([KC[0], self.offsets(C)])[None, :]

    def covariance_diagonal(self, K: np.ndarray, U: np.ndarray, owner: np.ndarray) -> np.ndarray:
        """The diagonal of :meth:`covariance`."""
        return U.sum(axis=1) ** 2 * np.diagonal(K)[owner] + self.offset * np.einsum("ac,ac->a", U, U)

    def squared_diameters(self, diagonal: np.ndarray) -> np.ndarray:
        """Squared distance between the moments of the lowest and the highest label."""
        return self.k**2 * diagonal + self.k * self.offset

    def reach(self, scores: np.ndarray) -> np.ndarray:
        """How large the scores (n, m) of an example are in its loss, up to a factor."""
        return np.abs(scores).sum(axis=1)

    def tidied(self, C: np.ndarray) -> np.ndarray:
        """Coefficients of the same function with sorted thresholds, as ``Shared.tidied`` sorts those of linear models.

        Offsets are sums over examples and the function's coefficients sums over thresholds, so these change places.
        """
        offsets = self.offsets(C)
        return C if (np.diff(offsets) <= 0.0).all() else C[:, np.argsort(-offsets, kind="stable")]

    def lists(self, near: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Examples to visit and the class of each visit."""
        n = near.shape[0]
        return np.repeat(np.arange(n), self.k), np.arange(n * self.k + 1), np.tile(np.arange(self.k), n)


class SpanCumulative(_OneFunction):
    """One function ``g`` with ``k - 1`` offsets for ``k`` ordered labels: score ``j`` is ``sum_{l < j} g(x) + b_l``.

    Coefficients (n, k) are those of label scores; their sums over the labels above each threshold multiply ``K``.
    ``constant`` is the feature that each offset sees.
    """

    def __init__(self, k: int, constant: float = 1.0):
        self.k, self.functions = k, 1
        self.offset = constant**2
        self.copies = k - 1

    def above(self, C: np.ndarray) -> np.ndarray:
        """The coefficients (n, k - 1) of thresholds: those of all labels above each."""
        return np.cumsum(C[:, :0:-1], axis=1)[:, ::-1]

    def scores(self, KC: np.ndarray, C: np.ndarray) -> np.ndarray:
        """Scores from the Gram matrix times the reduced coefficients."""
        scores = np.zeros((len(KC), self.k))
        np.cumsum(KC + self.offsets(C), axis=1, out=scores[:, 1:])
        return scores

    def squared_diameters(self, diagonal: np.ndarray) -> np.ndarray:
        """Squared distance between the moments of the lowest and the highest label."""
        return self.copies**2 * diagonal + self.copies * self.offset

    def reach(self, scores: np.ndarray) -> np.ndarray:
        """How large the scores (n, k) of an example are in its loss, up to a factor."""
        return np.abs(np.diff(scores, axis=1)).sum(axis=1)

    def tidied(self, C: np.ndarray) -> np.ndarray:
        """``C``."""
        return C


@dataclass
class KernelProblem:
    """Gram rows, labels, shares of the mean loss, ``alpha``, the game and how scores span the kernel."""

    gram: Gram
    y: np.ndarray
    omega: np.ndarray
    alpha: float
    game: Any
    span: Any
    complete = True  # every row has a label
    small = False  # a Gram matrix has no size at which its limits are cheap
    shared = True  # among threads, each with one thread of linear algebra
    narrow = False
    _seen: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the coefficients."""
        return self.gram.n, self.span.k

    @cached_property
    def corner(self) -> Corner:
        """The part of the Gram matrix that visits work on."""
        from nashlearn.training.designs.corner import Corner  # linear models do without

        return Corner(self.gram)

    def truth(self) -> np.ndarray:
        """The labels as vertices."""
        return self._truth

    @cached_property
    def _truth(self) -> np.ndarray:
        truth = self.game.labels.vertex(self.y)
        truth.flags.writeable = False
        return truth

    def products(self, C: np.ndarray) -> tuple[np.ndarray, float]:
        """The Gram matrix times the reduced coefficients, transposed, and how wrong rounding may have made it."""
        gram, reduced = self.gram, self.span.reduce(C)
        support = np.flatnonzero(reduced.any(axis=1))
        KC, lost = np.zeros((2, self.span.functions, gram.n))
        for start in range(0, support.size, gram.capacity):
            part = support[start : start + gram.capacity]
            gram.push(gram.rows(part), reduced[part], KC, lost)
        KC += lost
        return KC, 3.0 * UNIT * self._way(support, reduced[support])  # of the products, of a bias, and of the result

    def push(self, chosen: np.ndarray, change: np.ndarray, KC: np.ndarray) -> float:
        """Add rows of the Gram matrix times the changes of their coefficients to ``KC``; how wrong that may be."""
        self.gram.push(self.gram.rows(chosen), change, KC)
        return UNIT * (chosen.size + 4) * (largest(KC) + self._way(chosen, change))

    def _way(self, chosen: np.ndarray, change: np.ndarray) -> float:
        """A bound of ``sum_j |K_ij| |change_j|`` for all ``i``."""
        sizes = np.sqrt(np.maximum(self.gram.diagonal, 0.0))
        return float((sizes[chosen] @ np.abs(change)).max(initial=0.0) * sizes.max())

    def _untrue(self, C: np.ndarray) -> float:
        """How wrong functions may be since the kernel's values are: in the mean by shares, and by coefficients."""
        sizes, e = np.abs(self.span.reduce(C)), self.gram.untrue
        total, own = float(sizes.sum(axis=0).max()), float((e @ sizes).max())
        return max(total * float(self.omega @ e) / float(self.omega.sum()), own) + own

    def part(self, some: np.ndarray, omega: np.ndarray) -> KernelProblem:
        """The problem of some examples, with shares of their own."""
        return KernelProblem(self.gram.part(some), self.y[some], omega, self.alpha, self.game.part(some), self.span)

    def scores(self, C: np.ndarray) -> np.ndarray:
        """Scores of the training data at coefficients ``C``: one matrix product, less exact than :meth:`products`.

        Read-only where they were kept (:meth:`keep`), as the last ones that were certified are.
        """
        if self._seen is not None and np.array_equal(C, self._seen[0]):
            return self._seen[1]
        return self.span.scores(self.gram.product(self.span.reduce(C)), C)

    def sum_scores(self, C: np.ndarray, term: Callable[[slice, np.ndarray], Any], add: Callable[[Any], object]) -> None:
        """Call ``add`` with what ``term`` makes of the scores at ``C``, all at once."""
        add(term(slice(None), self.scores(C)))

    def all_scores(self, *several: np.ndarray) -> list[tuple[np.ndarray, float]]:
        """:meth:`scores` and :meth:`scores_error` of several coefficients, by one pass; the first ones are kept."""
        m = self.span.functions
        KC = self.gram.product(np.hstack([self.span.reduce(C) for C in several]))
        found = [
            (self.span.scores(np.ascontiguousarray(KC[:, m * i : m * i + m]), C), self.scores_error(C))
            for i, C in enumerate(several)
        ]
        self.keep(several[0], found[0][0])
        return found

    def keep(self, C: np.ndarray, scores: np.ndarray) -> None:
        """Keep the scores of coefficients that are likely to be asked for again; read-only from now on."""
        scores.flags.writeable = False
        self._seen = C.copy(), scores

    def exact_scores(self, *several: np.ndarray) -> list[tuple[np.ndarray, float]]:
        """The same by :meth:`products`."""
        found = [self.products(C) for C in several]
        return [(self.span.scores(KC.T, C), wrong) for C, (KC, wrong) in zip(several, found, strict=True)]

    def scores_error(self, C: np.ndarray) -> float:
        """How wrong rounding may have made the product behind :meth:`scores`."""
        return UNIT * (self.gram.n + 1) * self._way(np.arange(self.gram.n), self.span.reduce(C))

    def norm(self, C: np.ndarray) -> float:
        """``|w|`` of the function with coefficients ``C``."""
        return float(np.sqrt(max(np.vdot(C, self.scores(C)), 0.0)))

    def primal(self, C: np.ndarray, smoothing: float = 0.0) -> float:
        """The objective at coefficients ``C``."""
        scores = self.scores(C)
        half = 0.5 * self.alpha * float(np.vdot(C, scores))
        return self.ray(scores, half, smoothing).at(1.0)[0]

    def ray(self, scores: np.ndarray, half: float, smoothing: float = 0.0) -> Ray:
        """The objective along these scores, where ``half`` is ``alpha/2 |w|^2``."""
        return Ray(self.game, scores, self.truth(), self.omega, half, smoothing=smoothing, run=self.gram.run)

    def error(self, C: np.ndarray) -> float:
        """How wrong rounding may make the objective at coefficients ``C``."""
        return self.error_at(C, self.scores(C), self.scores_error(C))

    def error_at(
        self, C: np.ndarray, scores: np.ndarray, wrong: float, Q: np.ndarray | None = None, smoothing: float = 0.0
    ) -> float:
        """How wrong rounding may make the objective at ``C``, or the dual at ``Q``, if functions are by ``wrong``."""
        total, products = magnitudes(np.ascontiguousarray(C), np.ascontiguousarray(scores))
        untrue = self._untrue(C)
        if self.span.offset:
            most = float(np.abs(self.span.above(C)).sum(axis=0).max())
            wrong += UNIT * (self.gram.n + self.span.k) * self.span.offset * most
        terms = self.gram.n + self.span.k + EXTRA
        unit = self.game.unit + smoothing * (1.0 + float(np.log(self.span.k + 1.0)))  # of costs and of entropies
        reach = float(self.omega @ self.span.reach(scores))
        # Coefficients of a dual point are omega / alpha at most; those of other candidates may have any size.
        norm = 0.5 * self.alpha * (total * (wrong + untrue) + terms * UNIT * products)
        by_scores = self.span.copies * (4.0 * wrong + 2.0 * untrue) + norm  # labels are apart by 2 at most
        if Q is None:
            return rounding(terms, unit, reach) + by_scores
        outside = self.game.labels.outside(Q)
        spread = float(self.omega @ np.sqrt(np.maximum(self.squared_diameters(), 0.0)))
        return rounding(terms, unit, reach, outside=outside, spread=spread, alpha=self.alpha) + by_scores

    def dual(self, Q: np.ndarray, C: np.ndarray, scores: np.ndarray) -> float:
        """The dual at ``Q``, whose coefficients are ``C`` and whose scores are these."""
        return float(self.omega @ self.game.risk(Q) - 0.5 * self.alpha * np.vdot(C, scores))

    def tidied(self, C: np.ndarray) -> np.ndarray:
        """``C`` itself, or coefficients that are no worse and that the span prefers."""
        return self.span.tidied(C)

    def squared_diameters(self) -> np.ndarray:
        """``max |Phi(x_i)'(y - y')|^2`` over two labels, for each example."""
        return self.span.squared_diameters(self.gram.diagonal)
