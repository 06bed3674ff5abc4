"""What the predictor of a tempered game may pay for other labels at the same inputs.

Let ``p_i`` be the predictor's strategy at the scores ``theta_i`` of example ``i``. For every ``sigma >= 0`` and every
distribution of labels, given the inputs, whose moments lie within ``radius`` of those of the data,

    E <p, L_y>  <=  mean_i (max_y (sigma theta_i + L'p_i)_y - sigma theta_{i, y_i})  +  sigma radius |w|,

since the mean of ``sigma theta_y`` changes by no more than the last term. The means at some values of ``sigma`` are all
that a model must keep to bound its risk for every radius. At smoothing 0 the first term at ``sigma = 1`` is the mean
loss itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nashlearn.kernels.loss import gain_rows

__all__ = ["gains", "problem_risk", "risk_means", "sigmas"]


_ROOM = 4.0  # a largest cost so many times that of a game without scores is nothing unusual


def sigmas(smoothing: float, typical: float = 1.0) -> np.ndarray:
    """Values of ``sigma``, 1 and 0 among them; ``smoothing`` is relative to the largest cost.

    The larger the smoothing, the larger are scores beside costs: the best values lie around ``1 / (1 + smoothing)`` or
    below where labels may be any, and above 1 where regularisation has made the scores small. Where most costs are much
    smaller than the largest, ``typical`` is their size relative to that, and values go down as far.
    """
    return np.concatenate([[0.0], np.geomspace(0.1 * typical / (1.0 + smoothing), 1.0, 12), [2.0, 4.0]])


def gains(game: Any, p: np.ndarray) -> np.ndarray:
    """``L'p`` of each row (n, options): what it pays for each label (n, k). Cost: O(k) a row, more for a matrix."""
    found = np.empty((len(p), game.n_labels))
    gain_rows(game.params.compiled(), np.require(p, np.float64, ("C", "A")), found)
    return found


def risk_means(
    game: Any, scores: np.ndarray, y: np.ndarray, omega: np.ndarray, mu: float, sigma: np.ndarray
) -> np.ndarray:
    """The mean above for each of ``sigma``, over examples with shares ``omega``; those of parts of the data add up.

    Cost: a game for each row.
    """
    gain = gains(game, game.equilibria(scores, mu).p)
    own = np.take_along_axis(scores, y[:, None], axis=1)[:, 0]
    scores, gain = np.ascontiguousarray(scores.T), np.ascontiguousarray(gain.T)  # maxima over labels, many rows at once
    return np.array([omega @ ((one * scores + gain).max(axis=0) - one * own) for one in sigma])


def problem_risk(problem: Any, w: np.ndarray, mu: float, smoothing: float) -> tuple[np.ndarray, np.ndarray]:
    """Values of ``sigma`` and the means there, with what rounding may have taken off them: one pass over the data."""
    game = problem.game
    sigma = sigmas(smoothing, min(1.0, _ROOM * game.scale / game.largest))
    means = np.zeros(sigma.size)

    def term(part: slice, scores: np.ndarray) -> np.ndarray:
        return risk_means(game.part(part), scores, problem.y[part], problem.omega[part], mu, sigma)

    problem.sum_scores(w, term, means.__iadd__)
    return sigma, means + np.maximum(sigma, 1.0) * problem.error(w)
