"""Primal stochastic subgradient descent for any adversarial loss ([fathony2019]_, sec. 2.7.1, eq. 2.91 to 2.93)."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["stochastic_subgradient"]


def stochastic_subgradient(
    game: Any, X: np.ndarray, y: np.ndarray, alpha: float, steps: int, seed: int = 0
) -> np.ndarray:
    """Weights (k, d) that nearly minimise ``alpha/2 |W|^2 + mean loss(W x)``; a constant column is the intercept.

    Steps ``2/(alpha (t + 1))``, and the average of the iterates with weights ``t``, whose error falls as 1/t where
    that of the last iterate has a logarithm more. Cost O(k d) a step.
    """
    rng = np.random.default_rng(seed)
    truth = np.eye(game.n_labels)[y]
    W = np.zeros((game.n_labels, X.shape[1]))
    mean = np.zeros_like(W)
    for t in range(1, steps + 1):
        i = rng.integers(len(y))
        q = game.solve((W @ X[i])[None, :]).q[0]
        W -= 2.0 / (alpha * (t + 1.0)) * (alpha * W + np.outer(q - truth[i], X[i]))
        mean += 2.0 / (t + 1.0) * (W - mean)
    return mean
