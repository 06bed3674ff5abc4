"""The paper's own training of chains: Adam on weights and multipliers together ([franc2022]_ eq. 18 and sec. 4).

Each pass takes the sequences one by one; a step moves the weights and that sequence's multipliers against a
subgradient of ``sum_v max_S mean_S (f_v - sum alpha) + K - K / |S| + sum_e max (T + alpha + alpha')`` less the truth's
score, with ``K = 1 / length``, at the rate ``1 / (100 t)`` in pass ``t``, without regularisation.
"""

from __future__ import annotations

import numpy as np

__all__ = ["mana_adam"]

_DECAY = 0.9, 0.999
_SMALL = 1e-8


def _best_sets(F: np.ndarray, K: float) -> tuple[float, np.ndarray]:
    """``sum_v max_S mean_S F_v + K - K / |S|`` over the rows of ``F``, and the sets as weights ``1 / |S|``."""
    order = np.argsort(-F, axis=1)
    size = np.arange(1, F.shape[1] + 1)
    values = np.cumsum(np.take_along_axis(F, order, axis=1), axis=1) / size + K - K / size
    best = values.argmax(axis=1)
    inside = np.arange(F.shape[1]) <= best[:, None]
    weight = np.zeros_like(F)
    np.put_along_axis(weight, order, inside / (best + 1.0)[:, None], axis=1)
    return float(values.max(axis=1).sum()), weight


class _Adam:
    """Adam's moments of one array of variables."""

    def __init__(self, shape: tuple[int, ...]):
        self.x, self.first, self.second, self.steps = np.zeros(shape), np.zeros(shape), np.zeros(shape), 0

    def step(self, gradient: np.ndarray, rate: float) -> None:
        self.steps += 1
        self.first += (1 - _DECAY[0]) * (gradient - self.first)
        self.second += (1 - _DECAY[1]) * (gradient**2 - self.second)
        mean, spread = self.first / (1 - _DECAY[0] ** self.steps), self.second / (1 - _DECAY[1] ** self.steps)
        self.x -= rate * mean / (np.sqrt(spread) + _SMALL)


def mana_adam(x: np.ndarray, y: np.ndarray, states: int, passes: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Emission (symbols, states) and transition weights after some passes, and the mean loss seen in the last.

    ``x`` and ``y`` (m, length) hold symbols and states, as many of one as of the other.
    """
    m, length = x.shape
    emission, transition = _Adam((states, states)), _Adam((states, states))
    alphas = [_Adam((2, length - 1, states)) for _ in range(m)]
    rows, edges, loss = np.arange(length), np.arange(length - 1), 0.0
    for t in range(1, passes + 1):
        loss, rate = 0.0, 0.01 / t
        for i in range(m):
            alpha, f = alphas[i].x, emission.x[x[i]]
            F = f.copy()
            F[:-1] -= alpha[0]
            F[1:] -= alpha[1]
            value, q = _best_sets(F, 1.0 / length)
            pairs = transition.x + alpha[0][:, :, None] + alpha[1][:, None, :]
            flat = pairs.reshape(length - 1, -1)
            best = flat.argmax(axis=1)
            a, b = np.divmod(best, states)
            truth = f[rows, y[i]].sum() + transition.x[y[i][:-1], y[i][1:]].sum()
            loss += value + float(flat[edges, best].sum()) - float(truth)
            for_alpha = np.stack([-q[:-1], -q[1:]])
            for_alpha[0, edges, a] += 1.0
            for_alpha[1, edges, b] += 1.0
            q[rows, y[i]] -= 1.0
            g = np.zeros((states, states))
            np.add.at(g, x[i], q)
            h = np.zeros((states, states))
            np.add.at(h, (a, b), 1.0)
            np.add.at(h, (y[i][:-1], y[i][1:]), -1.0)
            emission.step(g, rate)
            transition.step(h, rate)
            alphas[i].step(for_alpha, rate)
    return emission.x, transition.x, loss / m
