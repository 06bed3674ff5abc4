"""Block dual ascent: one example at a time, its whole label distribution at once, exactly.

With ``omega`` the examples' shares of the mean loss, the dual of training is

    D(q) = sum_i omega_i risk(q_i) - alpha/2 |W(q)|^2,    W(q) = -sum_i omega_i/alpha (q_i - y_i) x_i'.

Maximising over one ``q_i`` is the proximal step of the game at ``g = W x_i + a q_i`` with
``a = omega_i/alpha |x_i|^2``, so every visit is optimal and the dual never falls.

A round is a shuffled sweep over all examples and labels, then sweeps over what moved: the examples that changed
their strategy and, for losses that allow it, the labels that could enter it.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numba import njit

from nashlearn.games.rows.kernels import contenders, equilibrium, prox
from nashlearn.training.checkpoint import pack_generator, unpack_generator
from nashlearn.training.designs.row_products import row_scores, row_step, rows_of, squared_norms
from nashlearn.training.problem import Problem
from nashlearn.training.progress import Progress

__all__ = ["ascend", "inner_sweeps", "listed"]

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


def ascend(problem: Problem, Q: np.ndarray, progress: Progress, rng: np.random.Generator, alternative: float) -> None:
    """Raise the dual from ``Q``, in place, until ``progress`` is done or another method would be faster.

    ``alternative`` is what that other method would cost, in visits: ascent returns once it has spent ten times
    as much, or once its rate says that it will need more. The certificate is taken as often as 15 % of the
    work pays for.
    """
    rows = rows_of(problem.X, problem.design.bias)
    sqnorms = squared_norms(problem.X) + problem.design.bias**2
    shares = problem.omega / problem.alpha
    work, checked, gain = 0.0, 0.0, 0.0
    history: list[tuple[float, float]] = []
    if (saved := progress.resume("ascent")) is not None:
        Q[:] = saved["Q"]
        work, checked, gain = saved["counts"].tolist()
        history = [(done, gap) for done, gap in saved["history"].tolist()]
        unpack_generator(rng, saved["rng"])
    w = problem.moments(Q) / -problem.alpha
    W = np.ascontiguousarray(w.T) if sp.issparse(problem.X) else w
    moved, near = np.empty(problem.n, np.bool_), np.ones((problem.n, problem.k), np.bool_)
    while not progress.done and work < 10.0 * alternative:
        order = rng.permutation(problem.n)
        least = _TRIFLE * gain / problem.n
        gain = _sweep(problem.loss, rows, W, Q, shares, sqnorms, order, problem.n_options, moved, near, least)
        settled = gain == 0.0 and least == 0.0
        active = order[moved[order]]
        least = _TRIFLE * gain / problem.n
        first, classes = listed(near, active)
        work += problem.n + inner_sweeps(
            problem.loss, rows, W, Q, shares, sqnorms, active, first, classes, problem.n_options,
            _ENOUGH * gain, 0.0, 200.0 * active.size, least,
        )  # fmt: skip
        progress.n_iter += 1
        if settled or checked <= 0.15 * work or progress.exhausted:
            w = problem.moments(Q) / -problem.alpha  # afresh, so that no rounding of many steps is certified
            progress.offer(w, problem.primal(w), problem.dual(Q, w), problem.error(w), problem.error(w, Q))
            W[:] = w.T if sp.issparse(problem.X) else w
            checked += problem.n
            history.append((work, progress.apparent_gap))
            leaving = settled or _remaining(history, progress.tol) > alternative
            if progress.saves(leaving):
                counts = work, checked, gain
                progress.save("ascent", Q=Q, counts=counts, history=history, rng=pack_generator(rng))
            if leaving:
                return


def _remaining(history: list[tuple[float, float]], tol: float) -> float:
    """Work that ascent still needs at the rate of its last factor of 3 in the gap; 0 while that is unknown."""
    work, gap = history[-1]
    earlier = [(w, g) for w, g in history if g >= 3.0 * gap]
    if gap > 0.1 or gap <= tol or not earlier:  # far from the solution the rate says nothing
        return 0.0
    then, before = earlier[-1]
    return (work - then) / np.log(before / gap) * np.log(gap / tol)
