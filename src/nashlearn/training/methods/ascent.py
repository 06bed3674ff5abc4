"""Block dual ascent: one example at a time, its whole label distribution at once, exactly.

With ``omega`` the examples' shares of the mean loss, the dual of training is

    D(q) = sum_i omega_i risk(q_i) - alpha/2 |W(q)|^2,    W(q) = -sum_i omega_i/alpha (q_i - y_i) x_i'.

Maximising over one ``q_i`` is the proximal step of the game at ``g = W x_i + a q_i`` with
``a = omega_i/alpha |x_i|^2``, so every visit is optimal and the dual never falls.

A round is a shuffled sweep over all examples and labels, then sweeps over what moved: the examples that changed
their strategy and, for losses that allow it, the labels that could enter it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from numba import njit

from nashlearn.games.rows.kernels import contenders, equilibrium, prox
from nashlearn.training.designs.row_products import row_scores, row_step
from nashlearn.training.driver import Offer, Run
from nashlearn.training.methods.rows import RowMethod
from nashlearn.training.problem import Problem

__all__ = ["Ascent", "AscentState", "inner_sweeps", "listed"]

_STILL = 1e-12  # a strategy that moves less than this has not moved
_TRIFLE = 0.1  # share of the last sweep's mean gain below which a move is put off: it may cost more than it brings
_PATIENCE = 3  # visits without a move after which an example leaves the inner sweeps
_ENOUGH = 0.3  # share of the full sweep's gain below which an inner sweep is not worth another


@njit(cache=True, nogil=True)
def _visit(loss, rows, i, W, Q, share, sqnorm, classes, first, m, g, q, p, step, moving, least):
    """Maximise the dual over example ``i`` and the ``m`` classes from ``classes[first]`` on.

    Returns a lower bound of the gain, times alpha; ``g[:m]`` is left as the argument of the proximal step.
    """
    a = share * sqnorm
    if a == 0.0:  # no feature: the scores are 0 whatever the weights, so the game is solved once
        g[:] = 0.0
        equilibrium(loss, g, Q[i], p)
        return 0.0
    row_scores(rows, i, W, classes, first, m, g)
    for c in range(m):
        q[c] = Q[i, classes[first + c]]
        g[c] += a * q[c]
    prox(loss, m, g, a, q, p)
    total, largest, n_moving = 0.0, 0.0, 0
    for c in range(m):
        change = Q[i, classes[first + c]] - q[c]
        if change != 0.0:
            total += change * change
            largest = max(largest, abs(change))
            step[n_moving] = share * change
            moving[n_moving] = classes[first + c]
            n_moving += 1
    won = 0.5 * a * share * total
    if largest <= _STILL or won < least:
        return 0.0
    for c in range(m):
        Q[i, classes[first + c]] = q[c]
    row_step(rows, i, W, moving, n_moving, step)
    return won


@njit(cache=True, nogil=True)
def _sweep(loss, rows, W, Q, shares, sqnorms, order, n_options, moved, near, least):
    """Visit the examples of ``order`` once, all labels; mark what moved and who contends. Returns the gain."""
    k = Q.shape[1]
    g, q, p, step = np.empty(k), np.empty(k), np.empty(n_options), np.empty(k)
    everyone, moving = np.arange(k), np.empty(k, np.int64)
    gain = 0.0
    for i in order:
        won = _visit(loss, rows, i, W, Q, shares[i], sqnorms[i], everyone, 0, k, g, q, p, step, moving, least)
        moved[i] = won > 0.0
        gain += won
        if moved[i]:
            contenders(loss, g, shares[i] * sqnorms[i], q, near[i])
    return gain


@njit(cache=True, nogil=True)
def listed(near, active):
    """The contenders of each active example, one list after the other, and where each list begins."""
    first = np.zeros(active.size + 1, np.int64)
    for e in range(active.size):
        first[e + 1] = first[e]
        for c in range(near.shape[1]):
            first[e + 1] += near[active[e], c]
    classes = np.empty(first[-1], np.int64)
    end = 0
    for e in range(active.size):
        for c in range(near.shape[1]):
            if near[active[e], c]:
                classes[end] = c
                end += 1
    return first, classes


@njit(cache=True, nogil=True)
def inner_sweeps(loss, rows, W, Q, shares, sqnorms, active, first, classes, n_options, enough, part, budget, least):
    """Sweep over ``active``, each with its list of classes, and return the work.

    Ends when a pass gains less than ``enough``, or less than the given part of the first pass.

    Work is counted in visits of an example with all its labels; a good part of a visit does not depend on them.
    """
    k = Q.shape[1]
    g, q, p, step = np.empty(k), np.empty(k), np.empty(n_options), np.empty(k)
    moving = np.empty(k, np.int64)
    entries, idle = np.arange(active.size), np.zeros(active.size, np.int64)
    size, work = active.size, 0.0
    while size > 0 and work < budget:
        gain, kept = 0.0, 0
        for s in range(size):
            e = entries[s]
            i, m = active[e], first[e + 1] - first[e]
            won = _visit(loss, rows, i, W, Q, shares[i], sqnorms[i], classes, first[e], m, g, q, p, step, moving, least)
            gain += won
            work += 0.4 + 0.6 * m / k
            idle[e] = 0 if won > 0.0 else idle[e] + 1
            if idle[e] < _PATIENCE:
                entries[kept] = e
                kept += 1
        size = kept
        if gain < enough:
            break
        enough = max(enough, part * gain)
    return work


@dataclass
class AscentState:
    """A dual point and what it took to reach it.

    Attributes
    ----------
    Q : ndarray (n, k)
        The dual point.
    W : ndarray
        Its weights, transposed for sparse data.
    work, checked : float
        Visits paid for steps, and those that certificates were worth.
    gain : float
        What the last full sweep gained, times alpha.
    works, gaps : list of float
        The work and the gap at each certificate.
    certified : bool
        Whether the last round ended with a certificate.
    settled : bool
        Whether it moved nothing.
    """

    phase: ClassVar[str] = "ascent"
    Q: np.ndarray
    W: np.ndarray
    work: float = 0.0
    checked: float = 0.0
    gain: float = 0.0
    works: list[float] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    certified: bool = False
    settled: bool = False
    over: bool = False


class Ascent(RowMethod):
    """Dual ascent until another method would be faster.

    Parameters
    ----------
    alternative : float
        What that other method would cost, in visits: ascent leaves once it has spent ten times as much, or once its
        rate says that it will need more. The certificate is taken as often as 15 % of the work pays for.
    """

    needs = ("rows", "sqnorms", "loss", "omega", "moments", "primal", "dual", "error")
    states = (AscentState,)

    def __init__(self, alternative: float = np.inf):
        self.alternative = alternative

    def init(self, run: Run) -> tuple[AscentState, Offer | None]:
        """The dual point to start from."""
        Q = self.starting_point(run)
        return AscentState(Q, _laid(run.problem, run.problem.moments(Q) / -run.alpha)), None

    def update(self, run: Run, state: AscentState) -> tuple[AscentState, Offer | None]:
        """A round: a sweep over all examples, then sweeps over what moved, and a certificate where one is due."""
        if state.certified:
            state.works.append(state.work)
            state.gaps.append(run.progress.apparent_gap)
            remaining = _remaining(state.works, state.gaps, run.progress.tol)
            state.over = state.settled or remaining > self.alternative
        state.over = state.over or state.work >= 10.0 * self.alternative
        if state.over:
            return state, None
        self._sweep(run, state)
        run.progress.n_iter += 1
        state.certified = state.settled or state.checked <= 0.15 * state.work or run.progress.exhausted
        if not state.certified:
            return state, None
        problem, Q = run.problem, state.Q
        w = problem.moments(Q) / -run.alpha  # afresh, so that no rounding of many steps is certified
        state.W[:] = _laid(problem, w)
        state.checked += problem.n
        return state, Offer(w, problem.primal(w), problem.dual(Q, w), problem.error(w), problem.error(w, Q))

    def _sweep(self, run: Run, state: AscentState) -> None:
        problem = run.problem
        moved, near = np.empty(problem.n, np.bool_), np.empty((problem.n, problem.k), np.bool_)
        order = run.rng.permutation(problem.n)
        arrays = problem.rows, state.W, state.Q, problem.omega / run.alpha, problem.sqnorms
        least = _TRIFLE * state.gain / problem.n
        gain = _sweep(problem.loss, *arrays, order, problem.n_options, moved, near, least)
        state.gain, state.settled = gain, gain == 0.0 and least == 0.0
        active = order[moved[order]]
        first, classes = listed(near, active)
        state.work += problem.n + inner_sweeps(
            problem.loss, *arrays, active, first, classes, problem.n_options,
            _ENOUGH * gain, 0.0, 200.0 * active.size, _TRIFLE * gain / problem.n,
        )  # fmt: skip


def _laid(problem: Problem, w: np.ndarray) -> np.ndarray:
    """Weights as visits read them."""
    return np.ascontiguousarray(w.T) if sp.issparse(problem.X) else w


def _remaining(works: list[float], gaps: list[float], tol: float) -> float:
    """Work that ascent still needs at the rate of its last factor of 3 in the gap; 0 while that is unknown."""
    gap = gaps[-1]
    earlier = [i for i, before in enumerate(gaps) if before >= 3.0 * gap]
    if gap > 0.1 or gap <= tol or not earlier:  # far from the solution the rate says nothing
        return 0.0
    then = earlier[-1]
    return (works[-1] - works[then]) / math.log(gaps[then] / gap) * math.log(gap / tol)
