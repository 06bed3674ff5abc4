"""The game behind F-scores: expected counts of positives, turned into costs of a row.

Let ``p`` and ``q`` be the probabilities with which a predictor and an adversary call the rows positive. The F-score of
the expected counts is

    F_beta(p, q) = (1 + beta^2) <p, q> / (sum p + beta^2 sum q),

and ``F_beta >= t`` where ``(1 + beta^2) <p, q> - t (sum p + beta^2 sum q) >= 0``: a sum over rows, affine in ``p`` and
in ``q``. So ``max_p min_q F_beta`` is the ``t`` at which the game of these costs has the value 0,

    L_t = 2 / (1 + beta^2)  [   0          t beta^2         ]   negative predicted
                            [   t    (1 + beta^2) (t - 1)   ]   positive predicted
                             negative       positive

The factor makes the two mistakes, a false alarm and a miss, cost 2 together whatever ``beta`` and ``t`` are, as they
do for the zero-one loss: that is the unit of smoothing and regularisation, and it stays where it is as ``t`` moves. A
positive answer pays where ``q >= t / (1 + beta^2)``; for F1 that is the well-known threshold at half the optimum
[lipton2014]_.
"""

from __future__ import annotations

import numpy as np

from nashlearn.games.rows.cost import CostGame, cost_params

__all__ = ["fscore_costs", "fscore_game"]


def fscore_costs(t: float, beta: float, positive: int = 1) -> np.ndarray:
    """``L_t`` (options, labels), of two labels of which ``positive`` is the index of the one that counts."""
    square = beta * beta
    costs = np.array([[0.0, t * square], [t, (1.0 + square) * (t - 1.0)]]) * (2.0 / (1.0 + square))
    return costs if positive == 1 else costs[::-1, ::-1]


def fscore_game(t: float, beta: float, positive: int = 1, shift: float = 0.0) -> CostGame:
    """The game of ``L_t`` with ``shift`` added to all costs, which changes its value by as much and no strategy."""
    return CostGame(cost_params(np.ascontiguousarray(fscore_costs(t, beta, positive) + shift)), 2, 2)
