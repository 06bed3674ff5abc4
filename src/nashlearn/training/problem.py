"""The training problem and its certificate: both players' values of the whole data set.

    P(w) = alpha/2 |w|^2 + sum_i omega_i (F(scores_i) - <scores_i, y_i>)      omega_i >= 0, sum omega = 1
    D(q) = sum_i omega_i risk(q_i) - alpha/2 |w(q)|^2,     w(q) = -(1/alpha) sum_i omega_i Phi(x_i)'(q_i - y_i)

For any weights ``w`` and any label distributions ``q``, ``P(w) >= D(q)``, equal at the optimum only.
Data are read in blocks, so that nothing of the size of ``X`` is ever made. Threads share the blocks; what these give
is added in their order, so that results do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from nashlearn.kernels.newton import Steps, proximal_rows, tempered_rows
from nashlearn.kernels.passes import proximal_pass, tempered_pass
from nashlearn.solvers.threads import Run, add_in_order, threads
from nashlearn.training.designs.row_products import adjacent_rows, rows_of, squared_norms
from nashlearn.training.objective import Evaluation, evaluation, summed
from nashlearn.training.rounding import EXTRA, UNIT, rounding

__all__ = ["Problem"]

_SMALL = 20_000
_BLOCK = 1 << 20  # bytes of scores in a block: stays in the second-level cache
_DATA = 1 << 23  # bytes of data in a block: sparse rows, single precision and weighted rows are copied
_WORK = 1 << 22  # products in a block, a millisecond or two: enough blocks for threads to share
_OVERHEAD = 25.0  # what a game costs for each label, in products
_LEARNERS = 4  # of proximal steps, each for as many rows
_FEWEST = 512  # rows in a block, unless data are too large: fewer leave matrix products slow


def _square(w: np.ndarray) -> float:
    """``|w|^2``, summed in pairs: its error does not grow with the number of weights."""
    return float(np.square(w).sum())


class Problem:
    """Data, a game, a design, the examples' shares ``omega`` of the mean loss, and ``alpha``.

    Attributes
    ----------
    run : Run
        By which threads blocks are read: one, unless somebody sets more.
    products : float
        What a row costs: products with the weights, and a game in units of them.
    """

    complete = True  # every row has a label
    curvature = None

    def __init__(self, X: Any, y: np.ndarray, omega: np.ndarray, alpha: float, game: Any, design: Any):
        self.X, self.y, self.omega, self.alpha = X, y, omega, alpha
        self.game, self.loss = game, game.params.compiled()  # of all rows
        self.design = design
        self._learners: list[Steps] = []
        self.n, self.d = X.shape
        self.k, self.n_options = game.n_labels, game.n_options
        self.shape, self.n_weights = design.shape, design.size
        self.small = self.n * self.k + design.size**2 <= _SMALL  # the limit of the arithmetic costs next to nothing
        self.shared = not self.small  # among threads, each with one thread of linear algebra
        self.run: Run = threads(1)
        entries = (X.nnz if sp.issparse(X) else X.size) / max(self.n, 1)
        self.products = self.k * (entries + _OVERHEAD)
        widest = min(_BLOCK // (8 * self.k), int(_DATA / (8 * max(entries, 1))))
        self._step = max(16, min(widest, max(_FEWEST, int(_WORK / self.products))))  # rows in a block

    def blocks(self) -> Iterator[tuple[slice, Any]]:
        """Slices of the rows with their data in float64."""
        for part in self._parts():
            yield part, self._block(part)

    def _parts(self) -> Iterator[slice]:
        return (slice(start, min(start + self._step, self.n)) for start in range(0, self.n, self._step))

    def _block(self, part: slice) -> Any:
        block = adjacent_rows(self.X, part)
        return block if block.dtype == np.float64 else block.astype(np.float64)

    def sum_blocks(self, term: Callable[[slice, Any], Any], add: Callable[[Any], object]) -> None:
        """Call ``add`` with ``term(part, block)`` of each block, in their order; terms are made in threads."""
        add_in_order(self.run, lambda part: term(part, self._block(part)), ((part,) for part in self._parts()), add)

    def sum_scores(self, w: np.ndarray, term: Callable[[slice, np.ndarray], Any], add: Callable[[Any], object]) -> None:
        """:meth:`sum_blocks` of the scores at ``w``."""
        self.sum_blocks(lambda part, block: term(part, self.design.scores(block, w)), add)

    def some(self, rows: np.ndarray) -> Problem:
        """The problem of some rows, by their indices, with a copy of their data."""
        X, y, omega, game = self.X[rows], self.y[rows], self.omega[rows], self.game.part(rows)
        problem = Problem(X, y, omega / omega.sum(), self.alpha, game, self.design)
        problem.run = self.run
        return problem

    def norm(self, w: np.ndarray) -> float:
        """``|w|``."""
        return float(np.linalg.norm(w))

    def truth(self, part: slice = slice(None)) -> np.ndarray:
        """The labels of some rows as vertices."""
        return self.game.labels.vertex(self.y[part])

    def moments(self, Q: np.ndarray) -> np.ndarray:
        """``sum_i omega_i Phi(x_i)'(q_i - y_i)``."""
        G = np.zeros(self.shape)
        self.sum_blocks(lambda part, block: self._moments(block, self._residual(part, Q[part])), G.__iadd__)
        return G

    def _residual(self, part: slice, q: np.ndarray) -> np.ndarray:
        return self.omega[part, None] * (q - self.truth(part))

    def _moments(self, block: Any, residual: np.ndarray) -> np.ndarray:
        G = np.zeros(self.shape)
        self.design.add_moments(block, residual, G)
        return G

    @cached_property
    def rows(self) -> Any:
        """The rows with the constant feature, one at a time for compiled code."""
        return rows_of(self.X, self.design.bias)

    @cached_property
    def sqnorms(self) -> np.ndarray:
        """``|x_i|^2`` with the constant feature."""
        return squared_norms(self.X) + self.design.bias**2

    def squared_diameters(self) -> np.ndarray:
        """``max |Phi(x_i)'(y - y')|^2`` over two labels, for each example."""
        return self.design.squared_diameters(squared_norms(self.X))

    def mean_loss(self, w: np.ndarray) -> float:
        """The weighted mean of the surrogate loss, without the regulariser."""
        losses: list[float] = []
        self.sum_scores(w, lambda part, f: self._losses(part, f, self.truth(part)) @ self.omega[part], losses.append)
        return sum(losses)

    def _losses(self, part: slice, scores: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """``F(scores_i) - <scores_i, y_i>`` of a block."""
        return self.game.part(part).equilibria(scores).value - np.einsum("ij,ij->i", scores, Y)

    def evaluate(self, w: np.ndarray, smoothing: float) -> Evaluation:
        """Loss, gradient and plane at flat weights ``w``. Cost: the data twice, and a game for each row."""
        if smoothing:
            return self.tempered(w, smoothing)
        seen: list[Evaluation] = []
        self.sum_blocks(
            lambda part, block: self._seen(part, block, w),
            lambda one: seen.append(summed(seen.pop(), one) if seen else one),
        )
        return seen[0]

    @cached_property
    def _vertices(self) -> np.ndarray:
        """The labels that occur, and those below them, as vertices."""
        return np.ascontiguousarray(self.game.labels.vertex(np.arange(int(self.y.max(initial=-1)) + 1)))

    def tempered(
        self, w: np.ndarray, smoothing: float, Q: np.ndarray | None = None, P: np.ndarray | None = None
    ) -> Evaluation:
        """What :meth:`evaluate` returns for a positive smoothing; a block is read once for both products.

        Strategies of all rows are written into ``Q`` (n, k) and ``P`` (n, options) where these are given; games are
        sought from what ``P`` holds, strategies or NaN.
        """
        W, G, totals = np.ascontiguousarray(w.reshape(self.shape)), np.zeros(self.shape), np.zeros(3)
        codes, vertices = self.y.astype(np.intp, copy=False), self._vertices

        def term(part: slice) -> tuple[Any, np.ndarray]:
            loss, moments = self.game.part(part).params.compiled(), np.zeros(self.shape)
            given = codes[part], vertices, self.omega[part], None if Q is None else Q[part]
            p = None if P is None else P[part]
            if (rows := self.design.passable(adjacent_rows(self.X, part))) is not None:
                return tempered_pass(loss, smoothing, rows, W, *given, p, moments), moments
            block = self._block(part)
            scores = np.ascontiguousarray(self.design.scores(block, W))
            p = np.full((len(scores), self.n_options), np.nan) if p is None else p
            sums = tempered_rows(loss, smoothing, scores, *given, p)
            self.design.add_moments(block, scores, moments)
            return sums, moments

        def add(found: tuple[Any, np.ndarray]) -> None:
            nonlocal totals, G
            totals += found[0]
            G += found[1]

        add_in_order(self.run, term, ((part,) for part in self._parts()), add)
        loss, risk, entropy = totals.tolist()
        return Evaluation(loss, G.ravel(), risk, risk - entropy)

    def _seen(self, part: slice, block: Any, w: np.ndarray) -> Evaluation:
        scores, Y, omega = self.design.scores(block, w.reshape(self.shape)), self.truth(part), self.omega[part]
        agreed = float(omega @ np.einsum("ij,ij->i", scores, Y))
        return evaluation(
            self.game.part(part).equilibria(scores),
            omega,
            agreed,
            lambda q: self._moments(block, self._residual(part, q)).ravel(),
        )

    def costly(self) -> bool:
        """Whether any example has a loss without weights: where options are free, the objective there is 0."""
        parts = self._parts()
        losses = (self._losses(p, np.zeros((p.stop - p.start, self.k)), self.truth(p)) @ self.omega[p] for p in parts)
        return any(loss != 0.0 for loss in losses)

    def primal(self, w: np.ndarray) -> float:
        """``P(w)``."""
        return float(0.5 * self.alpha * _square(w) + self.mean_loss(w))

    def dual(self, Q: np.ndarray, w: np.ndarray) -> float:
        """``D(Q)``, where ``w`` is ``w(Q)``."""
        risks = sum(self.omega[part] @ self.game.part(part).risk(Q[part]) for part in self._parts())
        return float(risks - 0.5 * self.alpha * _square(w))

    @cached_property
    def _sizes(self) -> tuple[np.ndarray, float]:
        """Weighted means of the absolute features, and of the examples' diameters."""
        found: list[tuple[np.ndarray, float]] = []

        def term(part: slice, block: Any) -> tuple[np.ndarray, float]:
            omega, diameters = self.omega[part], self.design.squared_diameters(squared_norms(block))
            return np.asarray(abs(block).T @ omega).ravel(), float(omega @ np.sqrt(diameters))

        self.sum_blocks(term, found.append)
        return sum((sizes for sizes, _ in found), np.zeros(self.d)), sum(spread for _, spread in found)

    def error(self, w: np.ndarray, Q: np.ndarray | None = None, smoothing: float = 0.0) -> float:
        """How wrong rounding may make ``P(w)``, or ``D(Q)`` where ``w`` is ``w(Q)``."""
        if Q is not None:
            return self.dual_error(w, self.game.labels.outside(Q), smoothing)
        return rounding(self._terms, self._unit(smoothing), self.design.reach(self._sizes[0], w))

    def dual_error(self, w: np.ndarray, outside: float = 0.0, smoothing: float = 0.0) -> float:
        """How wrong rounding may make the dual at strategies that miss the simplex by ``outside``, with weights ``w``.

        Replies to the tempered game are normalised, and miss it by less than the terms count.
        """
        sizes, spread = self._sizes
        unit, reach = self._unit(smoothing), self.design.reach(sizes, w)
        return rounding(self._terms, unit, reach, outside=outside, spread=spread, alpha=self.alpha)

    @property
    def moment_error(self) -> float:
        """How wrong rounding may make a moment of normalised labels, ``sum_i omega_i Phi(x_i)'(q_i - y_i)``."""
        return self._terms * UNIT * self._sizes[1]

    @property
    def _terms(self) -> float:
        """Terms of the sums that an objective is made of."""
        longest = np.diff(self.X.indptr).max(initial=0) if sp.issparse(self.X) else self.d
        return min(self.n, self._step) + -(-self.n // self._step) + longest + self.k + EXTRA

    def _unit(self, smoothing: float) -> float:
        """The size of the values of games: of costs, and of entropies and their logarithms."""
        return self.game.unit + smoothing * (1.0 + float(np.log(self.k + 1.0)))

    def tidied(self, w: np.ndarray) -> np.ndarray:
        """``w`` itself, or weights that are no worse and that the design prefers."""
        return self.design.tidied(w)

    def _stepping(self, mu: float) -> Iterator[tuple[Steps | None, list[slice]]]:
        """Blocks by who takes their proximal steps: a quarter of them one that learns, where the loss does, else none.

        So what is learnt does not depend on the number of threads.
        """
        parts = list(self._parts())
        if not self._learners or self._learners[0].mu != mu:
            self._learners = [Steps(self.loss, mu) for _ in range(min(_LEARNERS, len(parts)))]
        if not self._learners[0].learns or self.game.part(parts[0]) is not self.game:
            return ((None, [part]) for part in parts)
        size = -(-len(parts) // len(self._learners))
        return ((steps, parts[size * i : size * (i + 1)]) for i, steps in enumerate(self._learners))

    def smoothed(
        self, w: np.ndarray, mu: float, centre: np.ndarray, Q: np.ndarray, tight: np.ndarray
    ) -> tuple[float, float, float, np.ndarray]:
        """The smoothed objective and a bound of ``P`` at ``w``, and ``D(Q)`` with the moments of the new ``Q``.

        Writes each row's proximal step from ``centre`` into ``Q`` and the predictor's support into ``tight``. The bound
        is what the predictors of these steps secure: no game is solved for it. A block is read once for both products.
        """
        W, G, totals = np.ascontiguousarray(w), np.zeros(self.shape), np.zeros(3)
        codes, vertices = self.y.astype(np.intp, copy=False), self._vertices

        def term(steps: Steps | None, parts: list[slice]) -> tuple[np.ndarray, np.ndarray]:
            sums, moments = np.zeros(3), np.zeros(self.shape)
            for part in parts:
                own = steps or Steps(self.game.part(part).params.compiled(), mu)
                given = codes[part], vertices, self.omega[part], centre[part], Q[part], tight[part]
                if (rows := self.design.passable(adjacent_rows(self.X, part))) is not None:
                    sums += proximal_pass(own, rows, W, *given, moments)
                    continue
                block = self._block(part)
                scores = np.ascontiguousarray(self.design.scores(block, W))
                sums += proximal_rows(own, scores, *given)
                self.design.add_moments(block, scores, moments)
            return sums, moments

        def add(found: tuple[np.ndarray, np.ndarray]) -> None:
            nonlocal totals, G
            totals += found[0]
            G += found[1]

        add_in_order(self.run, term, self._stepping(mu), add)
        smooth, upper, risk = totals.tolist()
        penalty = 0.5 * self.alpha * _square(w)
        return penalty + smooth, penalty + upper, risk - 0.5 * _square(G) / self.alpha, G
