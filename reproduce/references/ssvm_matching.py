"""A structured SVM for matchings: margin rescaling with the Hamming loss, by one-slack cutting planes [joachims2009]_.

    min_w alpha/2 |w|^2 + mean max_y' <theta_i, y' - y_i> + Hamming(y', y_i),      theta_i = Phi_i w.

Each round adds the mean of the most violated matchings, found by the same assignment oracle as our predictions, and
solves the dual over all planes with Clarabel: the gap of the two objectives is the certificate.

``doubled`` counts the loss as [fathony2019]_ does, over matchings of twice as many nodes, half of them invisible.
Invisible nodes are alike, so a left element that leaves can always be paired with a wrong one: leaving then costs 1
whether it is true or not, and the other invisible nodes add a constant. No node has to be doubled for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from nashlearn.games.batch import Batch
from nashlearn.training.designs.pairs import Example, PairFeatures, matching_games

__all__ = ["StructuredSvm", "structured_svm"]


@dataclass(frozen=True)
class StructuredSvm:
    """Weights, the objective at them, its relative duality gap, and the rounds taken."""

    w: np.ndarray
    objective: float
    dual_gap: float
    rounds: int


def structured_svm(
    examples: Sequence[Example],
    y: Sequence[np.ndarray],
    alpha: float,
    *,
    doubled: bool = False,
    tol: float = 1e-3,
    max_rounds: int = 500,
) -> StructuredSvm:
    """Train on examples with true matchings ``y`` to a relative gap of ``tol``, or to ``max_rounds``."""
    count = sum(map(len, y))
    games = matching_games(examples)
    design, share = PairFeatures(examples, games), np.full(len(games), 1.0 / count)
    truth = games.vertices(y)
    costs = np.concatenate([game.weights.ravel() for game in games.games]) * (1.0 - truth)
    if doubled:
        costs[_leaving(games)] = 1.0
    slopes, offsets = np.empty((0, design.n_weights)), np.empty(0)
    w, best, objective, dual = np.zeros(design.n_weights), np.zeros(design.n_weights), np.inf, -np.inf
    for round_ in range(1, max_rounds + 1):  # noqa: B007 (reported)
        worst = games.vertices(games.argmax(design.scores(w) + costs))
        slope, offset = design.moments(worst - truth, share), float(costs @ worst) / count
        value = 0.5 * alpha * float(w @ w) + float(slope @ w) + offset
        if value < objective:
            objective, best = value, w
        slopes, offsets = np.vstack([slopes, slope]), np.append(offsets, offset)
        mixture = _dual(slopes @ slopes.T / alpha, offsets)
        w = -(mixture @ slopes) / alpha
        dual = max(dual, float(offsets @ mixture) - 0.5 * alpha * float(w @ w))
        if objective - dual <= tol * objective:
            break
    return StructuredSvm(best, objective, (objective - dual) / objective, round_)


def _leaving(games: Batch) -> np.ndarray:
    """Positions of the scores of leaving."""
    places = games.split(np.arange(games.offset[-1]))
    return np.concatenate([matrix[:-1, -1] for matrix in places])


def _dual(gram: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """``argmax <offsets, x> - x' gram x / 2`` over the simplex."""
    import clarabel

    m = offsets.size
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-9
    A = sp.vstack([np.ones((1, m)), -sp.identity(m)]).tocsc()
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(m)]
    P = sp.csc_matrix(np.triu(gram))
    solution = clarabel.DefaultSolver(P, -offsets, A, np.r_[1.0, np.zeros(m)], cones, settings).solve()
    x = np.maximum(np.asarray(solution.x), 0.0)
    return x / x.sum()
