"""Kernel PEGASOS for any adversarial loss ([fathony2019]_, sec. 2.7.2, Algorithm 1)."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["kernel_pegasos"]


def kernel_pegasos(game: Any, gram: np.ndarray, y: np.ndarray, alpha: float, steps: int, seed: int = 0) -> np.ndarray:
    """Coefficients (n, k) of the scores ``gram @ coefficients`` after ``steps`` steps of size ``1/(alpha t)``.

    An example that is drawn adds ``q* - y`` to its own row; all rows are then divided by ``-alpha steps``.
    Cost O(n k) a step.
    """
    rng = np.random.default_rng(seed)
    truth = np.eye(game.n_labels)[y]
    drawn = np.zeros_like(truth)
    for t in range(1, steps + 1):
        i = rng.integers(len(y))
        scores = -(gram[i] @ drawn) / (alpha * max(t - 1, 1))
        drawn[i] += game.solve(scores[None, :]).q[0] - truth[i]
    return -drawn / (alpha * steps)
