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

from nashlearn.kernels.ascent import inner_sweeps, sweep
from nashlearn.training.driver import Offer, Run
from nashlearn.training.methods.rows import RowMethod
from nashlearn.training.problem import Problem

__all__ = ["Ascent", "AscentState", "certified", "laid", "listed", "work_left"]

_TRIFLE = 0.1  # share of the last sweep's mean gain below which a move is put off: it may cost more than it brings
_CHECKS = 0.05  # share of the work that certificates may take before one is likely to do
_ENOUGH = 0.3  # share of the full sweep's gain below which an inner sweep is not worth another


def listed(near: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the contenders of each active example begin and end, and the contenders, one list after the other."""
    k = near.shape[1]
    chosen = np.flatnonzero(near[active])  # several times as fast as pairs of indices
    return np.searchsorted(chosen, k * np.arange(active.size + 1)), chosen % k


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
    rate : float
        The gap over the root of ``gain`` at the last certificate.
    works, gaps : list of float
        The work and the gap at each certificate.
    certified : bool
        Whether the last round ended with a certificate.
    settled : bool
        Whether it moved nothing.
    solved : bool
        Whether the strategies of those that have weight were solved for since.
    """

    phase: ClassVar[str] = "ascent"
    Q: np.ndarray
    W: np.ndarray
    work: float = 0.0
    checked: float = 0.0
    gain: float = 0.0
    rate: float = 0.0
    works: list[float] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    certified: bool = False
    settled: bool = False
    solved: bool = False
    over: bool = False


class Ascent(RowMethod):
    """Dual ascent until another method would be faster.

    Parameters
    ----------
    alternative : float
        What that other method would cost, in visits: ascent leaves once it has spent ten times as much, or once its
        rate says that it will need more.

    The gap of a dual point falls with its distance from the optimum, and what a sweep gains with the square of that. So
    the root of the gain tells, from the last certificate on, when the next one will do; others are taken as often as
    5 % of the work pays for.
    """

    needs = ("rows", "sqnorms", "loss", "omega", "moments", "primal", "dual", "error")
    states = (AscentState,)

    def __init__(self, alternative: float = np.inf):
        self.alternative = alternative

    def init(self, run: Run) -> tuple[AscentState, Offer | None]:
        """The dual point to start from."""
        Q = self.starting_point(run)
        return AscentState(Q, laid(run.problem, run.problem.moments(Q) / -run.alpha)), None

    def update(self, run: Run, state: AscentState) -> tuple[AscentState, Offer | None]:
        """A round: a sweep over all examples, then sweeps over what moved, and a certificate where one is due."""
        if state.certified:
            state.works.append(state.work)
            state.gaps.append(run.progress.apparent_gap)
            state.rate = state.gaps[-1] / math.sqrt(state.gain) if state.gain > 0.0 else 0.0
            left = work_left(state.works, state.gaps, run.progress.tol)
            state.over = state.settled or left > self.alternative
        state.over = state.over or state.work >= 10.0 * self.alternative
        if state.over:
            return state, None
        self._sweep(run, state)
        state.solved = False
        run.progress.n_iter += 1
        expected = state.rate * math.sqrt(state.gain)
        due = state.checked <= _CHECKS * state.work or expected <= run.progress.tol
        state.certified = state.settled or due or run.progress.exhausted
        if not state.certified:
            return state, None
        return state, certified(run, state)

    def _sweep(self, run: Run, state: AscentState) -> None:
        problem = run.problem
        moved, near = np.empty(problem.n, np.bool_), np.empty((problem.n, problem.k), np.bool_)
        order = run.rng.permutation(problem.n)
        arrays = problem.rows, state.W, state.Q, problem.omega / run.alpha, problem.sqnorms
        least = _TRIFLE * state.gain / problem.n
        gain = sweep(problem.loss, *arrays, order, moved, near, least)
        state.gain, state.settled = gain, gain == 0.0 and least == 0.0
        active = order[moved[order]]
        first, classes = listed(near, active)
        state.work += problem.n + inner_sweeps(
            problem.loss, *arrays, active, first, classes,
            _ENOUGH * gain, 0.0, 200.0 * active.size, _TRIFLE * gain / problem.n,
        )  # fmt: skip


def certified(run: Run, state: AscentState) -> Offer:
    """The weights of the dual point, afresh, so that no rounding of many steps is certified."""
    problem, Q = run.problem, state.Q
    w = problem.moments(Q) / -run.alpha
    state.W[:] = laid(problem, w)
    state.checked += problem.n
    return Offer(w, problem.primal(w), problem.dual(Q, w), problem.error(w), problem.error(w, Q))


def laid(problem: Problem, w: np.ndarray) -> np.ndarray:
    """Weights as visits read them, and back."""
    return np.ascontiguousarray(w.T) if sp.issparse(problem.X) else w


def work_left(works: list[float], gaps: list[float], tol: float) -> float:
    """Work that ascent still needs at the rate of its last factor of 3 in the gap; 0 while that is unknown."""
    gap = gaps[-1] if gaps else 1.0
    earlier = [i for i, before in enumerate(gaps) if before >= 3.0 * gap]
    if gap > 0.1 or gap <= tol or not earlier:  # far from the solution the rate says nothing
        return 0.0
    then = earlier[-1]
    return (works[-1] - works[then]) / math.log(gaps[then] / gap) * math.log(gap / tol)
