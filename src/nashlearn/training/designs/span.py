"""Exact training in the span of a kernel: the same block dual ascent, on working sets of Gram rows.

With coefficients ``c_i = -omega_i/alpha (q_i - y_i)`` the scores of example ``j`` are ``sum_i K_ij c_i`` and
``|w|^2 = sum_i <c_i, scores_i>``, so primal, dual and gap need the scores of the training data only. Each round
ranks all examples by ``a/2 |change of q|^2``, a lower bound of what a visit would gain (the gain itself cancels
near the solution), and sweeps over the best of them together with the support vectors, on their square part of
the Gram matrix; what changed is then pushed to the scores of all. Only rows that were once in a working set are
ever computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from nashlearn.games.rows.kernels import contenders, prox
from nashlearn.training.designs.gram import Gram
from nashlearn.training.designs.row_products import SharedSquare, Square
from nashlearn.training.methods.ascent import inner_sweeps, listed
from nashlearn.training.methods.climb import WorkingSet, newton_on_set
from nashlearn.training.methods.ray import Ray
from nashlearn.training.problem import risk_rows
from nashlearn.training.progress import Progress
from nashlearn.training.rounding import EXTRA, UNIT, rounding

__all__ = ["KernelProblem", "SpanPerClass", "SpanShared", "climb"]

_FRESH = 600  # examples that may enter a working set in a round
_FIRST = 8  # the first working set is a random part of the data: one in so many
_ENOUGH = 0.01  # part of a working set's first gain below which a sweep is not worth another
_SWEEPS = 30  # sweeps over a working set before Newton's method takes over
_SCALE = 3.0  # first smoothing of Newton's method, in units of the game's scale
_NATURAL = 0.3  # and in units of the mean curvature of an example's own term in the dual, where that is more
_RAY = 6  # lengths of the weights that are tried in a certificate
_NEWTON_LIMIT = 6000  # examples in a working set up to which it may


class SpanPerClass:
    """One function per class."""

    def __init__(self, k: int):
        self.k = self.functions = k
        self.offset = 0.0  # the constant feature, where there is one, is part of the kernel

    def reduce(self, C: np.ndarray) -> np.ndarray:
        """The coefficients that multiply the Gram matrix, (n, functions)."""
        return C

    def scores(self, KC: np.ndarray, C: np.ndarray) -> np.ndarray:
        """Scores from the Gram matrix times the reduced coefficients."""
        return KC

    def square(self, K: np.ndarray, KC: np.ndarray, C: np.ndarray) -> tuple[Any, np.ndarray]:
        """Rows and "weights" of a working set for the sweeps."""
        return Square(K), np.ascontiguousarray(KC)

    def covariance(self, K: np.ndarray, U: np.ndarray, owner: np.ndarray) -> np.ndarray:
        """``U A U'`` for directions ``U`` in the scores of their owners."""
        M = U @ U.T
        M *= K[np.ix_(owner, owner)]
        return M

    def covariance_diagonal(self, K: np.ndarray, U: np.ndarray, owner: np.ndarray) -> np.ndarray:
        """The diagonal of :meth:`covariance`."""
        return np.einsum("ac,ac->a", U, U) * np.diagonal(K)[owner]

    def squared_diameters(self, diagonal: np.ndarray) -> np.ndarray:
        """Squared distance between the moments of two labels, for examples with this diagonal."""
        return 2.0 * diagonal

    def reach(self, scores: np.ndarray) -> np.ndarray:
        """What the sizes of scores (n, k) may change of each loss, up to a factor."""
        return np.abs(scores).max(axis=1)

    def tidied(self, C: np.ndarray) -> np.ndarray:
        """``C``."""
        return C

    def lists(self, near: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Examples to visit and the classes of each visit."""
        order = np.arange(near.shape[0])
        return order, *listed(near, order)


class SpanShared:
    """One function with ``m`` offsets, for losses that are a sum over scores: each is visited on its own."""

    def __init__(self, m: int):
        self.k, self.functions = m, 1
        self.offset = 1.0  # what an offset adds to the diagonal of a score

    def reduce(self, C: np.ndarray) -> np.ndarray:
        """The coefficients that multiply the Gram matrix, (n, 1)."""
        return C.sum(axis=1, keepdims=True)

    def scores(self, KC: np.ndarray, C: np.ndarray) -> np.ndarray:
        """Scores from the Gram matrix times the reduced coefficients."""
        return KC + C.sum(axis=0)

    def square(self, K: np.ndarray, KC: np.ndarray, C: np.ndarray) -> tuple[Any, np.ndarray]:
        """Rows and "weights" of a working set for the sweeps."""
        return SharedSquare(K), np.concatenate([KC[0], C.sum(axis=0)])[None, :]

    def covariance(self, K: np.ndarray, U: np.ndarray, owner: np.ndarray) -> np.ndarray:
        """``U A U'`` for directions ``U`` in the scores of their owners."""
        total = U.sum(axis=1)
        M = K[np.ix_(owner, owner)] * total * total[:, None]
        M += U @ U.T
        return M

    def covariance_diagonal(self, K: np.ndarray, U: np.ndarray, owner: np.ndarray) -> np.ndarray:
        """The diagonal of :meth:`covariance`."""
        return U.sum(axis=1) ** 2 * np.diagonal(K)[owner] + np.einsum("ac,ac->a", U, U)

    def squared_diameters(self, diagonal: np.ndarray) -> np.ndarray:
        """Squared distance between the moments of the lowest and the highest label."""
        return self.k**2 * diagonal + self.k

    def reach(self, scores: np.ndarray) -> np.ndarray:
        """What the sizes of scores (n, m) may change of each loss, up to a factor."""
        return np.abs(scores).sum(axis=1)

    def tidied(self, C: np.ndarray) -> np.ndarray:
        """Coefficients of the same function with sorted thresholds, as ``Shared.tidied`` sorts those of linear models.

        Offsets are sums over examples and the function's coefficients sums over thresholds, so these change places.
        """
        offsets = C.sum(axis=0)
        return C if (np.diff(offsets) <= 0.0).all() else C[:, np.argsort(-offsets, kind="stable")]

    def lists(self, near: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Examples to visit and the class of each visit."""
        n = near.shape[0]
        return np.repeat(np.arange(n), self.k), np.arange(n * self.k + 1), np.tile(np.arange(self.k), n)


@njit(cache=True, nogil=True)
def _rank(loss, scores, Q, shares, diagonal, n_options, near, promise):
    """Proximal step of every example: who contends, and a lower bound of the gain times alpha, into ``promise``."""
    k = Q.shape[1]
    g, q, p = np.empty(k), np.empty(k), np.empty(n_options)
    for i in range(Q.shape[0]):
        a = shares[i] * diagonal[i]
        promise[i] = 0.0
        if a > 0.0:
            for c in range(k):
                q[c] = Q[i, c]
                g[c] = scores[i, c] + a * q[c]
            prox(loss, k, g, a, q, p)
            for c in range(k):
                promise[i] += 0.5 * a * shares[i] * (q[c] - Q[i, c]) ** 2
            contenders(loss, g, a, q, near[i])
            for c in range(k):
                near[i, c] |= Q[i, c] > 0.0


@dataclass
class KernelProblem:
    """Gram rows, labels, shares of the mean loss, ``alpha``, the game and how scores span the kernel."""

    gram: Gram
    y: np.ndarray
    omega: np.ndarray
    alpha: float
    game: Any
    span: Any
    small = False  # a Gram matrix has no size at which its limits are cheap
    narrow = False

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the coefficients."""
        return self.gram.n, self.span.k

    def truth(self) -> np.ndarray:
        """The labels as vertices."""
        return self.game.labels.vertex(self.y)

    def scores(self, C: np.ndarray) -> np.ndarray:
        """Scores of the training data at coefficients ``C``."""
        return self.span.scores(self._afresh(C).KC.T, C)

    def _afresh(self, C: np.ndarray) -> _State:
        state = _State(C, C, np.zeros((self.span.functions, self.gram.n)))
        _refresh(self, state)
        return state

    def norm(self, C: np.ndarray) -> float:
        """``|w|`` of the function with coefficients ``C``."""
        return float(np.sqrt(max(np.vdot(C, self.scores(C)), 0.0)))

    def primal(self, C: np.ndarray) -> float:
        """The objective at coefficients ``C``."""
        scores = self.scores(C)
        half = 0.5 * self.alpha * float(np.vdot(C, scores))
        return Ray(self.game, scores, self.truth(), self.omega, half).at(1.0)[0]

    def error(self, C: np.ndarray) -> float:
        """How wrong rounding may make the objective at coefficients ``C``."""
        state = self._afresh(C)
        return self.error_at(C, self.span.scores(state.KC.T, C), state.error)

    def error_at(self, C: np.ndarray, scores: np.ndarray, wrong: float, Q: np.ndarray | None = None) -> float:
        """How wrong rounding may make the objective at ``C``, or the dual at ``Q``, if scores may be by ``wrong``."""
        wrong += UNIT * self.gram.n * float(np.abs(C).sum(axis=0).max()) * self.span.offset
        terms, unit = self.gram.n + self.span.k + EXTRA, self.game.unit
        reach = float(self.omega @ self.span.reach(scores))
        by_scores = 4.0 * float(self.span.reach(np.full((1, self.span.k), wrong))[0])
        if Q is None:
            return rounding(terms, unit, reach) + by_scores
        outside = self.game.labels.outside(Q)
        spread = float(self.omega @ np.sqrt(np.maximum(self.squared_diameters(), 0.0)))
        return rounding(terms, unit, reach, outside=outside, spread=spread, alpha=self.alpha) + by_scores

    def dual(self, Q: np.ndarray, C: np.ndarray, scores: np.ndarray) -> float:
        """The dual at ``Q``, whose coefficients are ``C`` and whose scores are these."""
        return float(risk_rows(self.game.params, Q, self.omega) - 0.5 * self.alpha * np.vdot(C, scores))

    def tidied(self, C: np.ndarray) -> np.ndarray:
        """``C`` itself, or coefficients that are no worse and that the span prefers."""
        return self.span.tidied(C)

    def squared_diameters(self) -> np.ndarray:
        """``max |Phi(x_i)'(y - y')|^2`` over two labels, for each example."""
        return self.span.squared_diameters(self.gram.diagonal)


@dataclass
class _State:
    """A dual point, its coefficients and what they give: the Gram matrix times the coefficients, transposed."""

    Q: np.ndarray
    C: np.ndarray
    KC: np.ndarray
    mu: float = 0.0  # smoothing at which Newton's method takes good steps
    other: tuple[np.ndarray, np.ndarray, float] | None = None  # coefficients that Newton's method left, see _with
    error: float = 0.0  # how wrong rounding may have made ``KC``


def climb(problem: KernelProblem, Q: np.ndarray, progress: Progress, rng: np.random.Generator, start: Any) -> None:
    """Raise the dual from ``Q``, in place, until ``progress`` is done; ``progress.w`` holds coefficients (n, k)."""
    gram, n, k = problem.gram, problem.gram.n, problem.span.k
    shares = problem.omega / problem.alpha
    diagonal = gram.diagonal + problem.span.offset
    truth = problem.truth()
    Q[diagonal <= 0.0] = problem.game.uncertain  # no weights move their scores, so the game at 0 is theirs
    state = _State(Q, shares[:, None] * (truth - Q), np.zeros((problem.span.functions, n)))
    state.mu = _SCALE * problem.game.scale
    near, promise = np.ones((n, k), np.bool_), np.empty(n)
    saved = progress.resume("climb")
    if saved is None:
        _refresh(problem, state)
        some = np.sort(rng.choice(n, min(max(min(n, 2 * k), n // _FIRST), gram.capacity), replace=False))
        _sweep_set(problem, state, some, near, shares, diagonal, truth, np.inf)
    else:
        Q[:], state.KC[:] = saved["Q"], saved["KC"]
        state.mu, state.error = saved["counts"].tolist()
        state.C = shares[:, None] * (truth - Q)
    while True:
        scores = np.ascontiguousarray(problem.span.scores(state.KC.T, state.C))
        _rank(problem.game.params, scores, Q, shares, diagonal, problem.game.n_options, near, promise)
        if saved is None:
            _certify(problem, state, scores, truth, progress)
            if progress.apparent_gap <= progress.tol < progress.gap:  # what rounding adds up to may be to blame
                _refresh(problem, state)
                scores = np.ascontiguousarray(problem.span.scores(state.KC.T, state.C))
                _certify(problem, state, scores, truth, progress)
            if progress.saves():
                progress.save("climb", Q=Q, KC=state.KC, counts=(state.mu, state.error))
        saved = None
        if progress.done:
            return
        progress.n_iter += 1
        chosen = _working_set(state, promise, gram.capacity)
        if not chosen.size:  # no visit would move anything: rounding has the last word
            return
        enough = max(0.3 * progress.tol, 0.03 * progress.apparent_gap) * progress.primal
        _sweep_set(problem, state, chosen, near, shares, diagonal, truth, enough)


def _refresh(problem: KernelProblem, state: _State) -> None:
    """Compute the scores anew from the coefficients, without the rounding of sums."""
    gram = problem.gram
    reduced = problem.span.reduce(state.C)
    support = np.flatnonzero(reduced.any(axis=1))
    state.KC[:], lost = 0.0, np.zeros_like(state.KC)
    for start in range(0, support.size, gram.capacity):
        part = support[start : start + gram.capacity]
        gram.push(gram.rows(part), reduced[part], state.KC, lost)
    state.KC += lost
    state.error = 2.0 * UNIT * _way(problem, support, reduced[support])  # of the products, and of the result


def _way(problem: KernelProblem, chosen: np.ndarray, change: np.ndarray) -> float:
    """A bound of ``sum_j |K_ij| |change_j|`` for all ``i``."""
    sizes = np.sqrt(np.maximum(problem.gram.diagonal, 0.0))
    return float((sizes[chosen] @ np.abs(change)).max(initial=0.0) * sizes.max())


def _push(problem: KernelProblem, chosen: np.ndarray, slots: np.ndarray, change: np.ndarray, KC: np.ndarray) -> float:
    """Add kept rows of the Gram matrix times the changes of their coefficients to ``KC``; how wrong that may be."""
    problem.gram.push(slots, change, KC)
    return UNIT * (chosen.size + 1) * (float(np.abs(KC).max()) + _way(problem, chosen, change))


def _certify(problem: KernelProblem, state: _State, scores: np.ndarray, truth: np.ndarray, progress: Progress) -> None:
    """Offer the better of the dual's own weights and those that Newton's method left, each at its best length."""
    best, best_C, error = np.inf, state.C, 0.0
    for C, theta, wrong in ((state.C, scores, state.error), *([state.other] if state.other else [])):
        half = 0.5 * problem.alpha * float(np.vdot(C, theta))
        value, s = Ray(problem.game, theta, truth, problem.omega, half).best(1.0, _RAY)
        if value < best:
            best, best_C = value, s * C
            error = problem.error_at(best_C, s * theta, s * wrong)
    state.other = None
    dual_error = problem.error_at(state.C, scores, state.error, state.Q)
    progress.offer(best_C, best, problem.dual(state.Q, state.C, scores), error, dual_error)


def _working_set(state: _State, promise: np.ndarray, capacity: int) -> np.ndarray:
    """The examples that promise most, and the support vectors, as far as their rows can be kept."""
    fresh = np.argpartition(-promise, min(_FRESH, promise.size) - 1)[:_FRESH]
    fresh = fresh[promise[fresh] > 0.0]
    chosen = np.union1d(fresh, np.flatnonzero(state.C.any(axis=1)))
    if chosen.size > capacity:
        chosen = chosen[np.argsort(-promise[chosen], kind="stable")[:capacity]]
    return chosen


def _with(
    problem: KernelProblem, state: _State, chosen: np.ndarray, slots: np.ndarray, new: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """The state's coefficients with others for the chosen examples, their scores, and how wrong those may be."""
    C, KC = state.C.copy(), state.KC.copy()
    C[chosen] = new
    error = _push(problem, chosen, slots, problem.span.reduce(new - state.C[chosen]), KC)
    return C, problem.span.scores(KC.T, C), state.error + error


def _sweep_set(
    problem: KernelProblem,
    state: _State,
    chosen: np.ndarray,
    near: np.ndarray,
    shares: np.ndarray,
    diagonal: np.ndarray,
    truth: np.ndarray,
    enough: float,
) -> None:
    """Dual ascent over the chosen examples, to a gap of their own of ``enough``; push what changed to all scores."""
    slots = problem.gram.rows(chosen)
    span = problem.span
    K, C, Q = problem.gram.square(chosen, slots), state.C[chosen], state.Q[chosen]
    exact = chosen.size > _NEWTON_LIMIT or not np.isfinite(enough)
    # Sweeps wait for memory: half the bytes are half the time, and Newton's method mends what rounding spoils.
    rows, W = span.square(K if exact else K.astype(np.float32), state.KC[:, chosen], state.C)
    active, first, classes = span.lists(near[chosen])
    budget = float(_SWEEPS * active.size)
    work = inner_sweeps(
        problem.game.params, rows, W, Q, shares[chosen], diagonal[chosen], active, first, classes,
        problem.game.n_options, 0.0, _ENOUGH, budget, 0.0,
    )  # fmt: skip
    if chosen.size and work >= budget and not exact:
        outside = span.scores(state.KC[:, chosen].T - K @ span.reduce(C), state.C) - span.scores(0.0, C)
        part = WorkingSet(
            problem.game, span, problem.alpha, K, truth[chosen], problem.omega[chosen], np.ascontiguousarray(outside)
        )
        curvature = float(shares[chosen] @ np.diagonal(K)) / chosen.size
        found = newton_on_set(part, Q, enough, max(state.mu, _NATURAL * curvature))
        Q, state.mu = found.Q, max(state.mu, found.mu)
        state.other = _with(problem, state, chosen, slots, found.C)
    state.Q[chosen] = Q
    state.C[chosen] = shares[chosen, None] * (truth[chosen] - Q)
    change = span.reduce(state.C[chosen] - C)
    moved = np.flatnonzero(change.any(axis=1))
    if moved.size:
        state.error += _push(problem, chosen[moved], slots[moved], change[moved], state.KC)
