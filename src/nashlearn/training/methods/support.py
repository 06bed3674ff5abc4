"""Newton's method among the examples that have weight in a linear model, where dual ascent crawls.

Where labels can all but be told apart, few examples keep a strategy other than their label, and once sweeps no longer
change which, what is left is a linear system with one unknown for each direction in which one of them can move: far
smaller than one in the weights. It is that of :mod:`nashlearn.training.methods.working_set`, whose Gram matrix is that
of the examples' features. A sweep over all examples then tells whether others join.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from nashlearn.training.designs.span import SpanPerClass
from nashlearn.training.driver import Offer, Run
from nashlearn.training.methods.ascent import AscentState, certified, laid
from nashlearn.training.methods.working_set import WorkingSet, newton_on_set
from nashlearn.training.problem import Problem

__all__ = ["support_cost", "support_step"]

_STEPS = 10  # of Newton's method on the support, roughly
_BESIDES = 1.6e7  # what each costs beside its factors, in operations of a matrix product
_NATURAL = 0.01  # smoothing to begin with, in units of the mean curvature of an example
_LEAST = 1e-3  # the same at least, in units of the game's scale
_ENOUGH, _REST = 0.3, 0.03  # gap to solve to, relative to the one wanted and to the one at hand


def support_cost(problem: Problem, state: AscentState) -> float:
    """Cost of a step on the support, in visits of an example by dual ascent."""
    free = np.count_nonzero(state.Q) - problem.n
    return _STEPS * (free**3 / 3.0 + _BESIDES) / (8.0 * problem.design.size)


def support_step(run: Run, state: AscentState) -> tuple[AscentState, Offer]:
    """Solve for the strategies of those examples that play other labels than their own, the others' being fixed."""
    problem, progress = run.problem, run.progress
    state.work += support_cost(problem, state)
    some = np.flatnonzero(np.count_nonzero(state.Q, axis=1) > 1)
    if some.size:
        part, Q = _working_set(run, state, some), state.Q[some]
        enough = max(_ENOUGH * progress.tol, _REST * progress.apparent_gap) * progress.primal
        curvature = float(part.omega @ np.diagonal(part.K)) / (run.alpha * some.size)
        mu = max(_NATURAL * curvature, _LEAST * problem.game.scale)
        state.Q[some] = newton_on_set(part, Q, np.zeros(problem.k), enough, mu).Q
    progress.n_iter += 1
    state.certified, state.rate, state.solved = False, 0.0, True
    return state, certified(run, state)


def _working_set(run: Run, state: AscentState, some: np.ndarray) -> WorkingSet:
    """The problem of some examples by their Gram matrix."""
    problem = run.problem
    X = problem.X[some].astype(np.float64, copy=False)
    K = np.asarray((X @ X.T).todense()) if sp.issparse(X) else X @ X.T
    K += problem.design.bias**2
    omega, truth = problem.omega[some], problem.game.labels.vertex(problem.y[some])
    C = omega[:, None] * (truth - state.Q[some]) / run.alpha
    outside = np.ascontiguousarray(problem.design.scores(X, laid(problem, state.W)) - K @ C)
    return WorkingSet(problem.game.part(some), SpanPerClass(problem.k), run.alpha, K, truth, omega, outside)
