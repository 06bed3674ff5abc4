"""Lower bounds on a training objective from the gradients that were seen on the way.

The labels ``q_t`` that answer any weights support the loss from below everywhere,

    loss(w) >= <g_t, w> + e_t,      g_t = mean Phi'(q_t - y),  e_t = mean H(q_t) - smoothing Omega(q_t),

so for every mixture ``x`` of the planes, ``alpha/2 |w|^2 + loss(w) >= <x, e> - |sum x_t g_t|^2 / (2 alpha)``: the dual
objective at a mixture of label distributions, which need not be stored [teo2010]_.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numba import njit

__all__ = ["Planes", "best_mixture"]

_ROUNDS = 4000  # a fraction of a millisecond


class Planes:
    """The last planes and the best mixture of all that went before them, as one more plane.

    Parameters
    ----------
    size : int
        Number of weights.
    capacity : int
        Planes that are kept apart.
    """

    def __init__(self, size: int, capacity: int = 24):
        self._slopes = np.empty((capacity + 1, size))
        self._gram = np.zeros((capacity + 1, capacity + 1))
        self._entropy, self._omega = np.zeros(capacity + 1), np.zeros(capacity + 1)
        self._mixture = np.zeros(capacity + 1)
        self.count = 0

    def add(self, slope: np.ndarray, entropy: float, omega: float) -> None:
        """Keep a plane; ``omega`` is inf where unknown. Where there is no room the lightest two merge."""
        if self.count == self._mixture.size:
            self._merge()
        t = self.count
        self._slopes[t], self._entropy[t], self._omega[t] = slope, entropy, omega
        self._gram[t, : t + 1] = self._gram[: t + 1, t] = self._slopes[: t + 1] @ slope
        self._mixture[t] = float(t == 0)
        self.count += 1

    def bound(self, alpha: float, smoothing: float) -> float:
        """The best lower bound on the objective at this smoothing that a mixture of the planes gives."""
        m = self.count
        offset = self._entropy[:m] - (smoothing * self._omega[:m] if smoothing else 0.0)
        usable = np.flatnonzero(np.isfinite(offset))
        if not usable.size:
            return -np.inf
        offset, gram = offset[usable], self._gram[np.ix_(usable, usable)] / alpha
        x = self._mixture[usable]
        if not x.any():
            x[-1] = 1.0
        x = x / x.sum()
        # Near the optimum the newest plane alone may be all but tight, and many moves away from the old mixture.
        alone = offset - 0.5 * gram.diagonal()
        if alone.max() > offset @ x - 0.5 * x @ gram @ x:
            x = np.eye(usable.size)[alone.argmax()]
        x = best_mixture(offset, gram, x)
        self._mixture[:m] = 0.0
        self._mixture[usable] = x
        slope = x @ self._slopes[usable]  # not by the Gram matrix: where slopes cancel, it is all rounding
        return float(offset @ x - 0.5 * slope @ slope / alpha)

    def mixed(self, alpha: float, smoothing: float) -> float:
        """The lower bound on the objective at this smoothing that the last best mixture gives, whatever it was for."""
        used = np.flatnonzero(self._mixture[: self.count])
        x = self._mixture[used] / self._mixture[used].sum()
        offset = self._entropy[used] - (smoothing * self._omega[used] if smoothing else 0.0)
        slope = x @ self._slopes[used]
        return float(offset @ x - 0.5 * slope @ slope / alpha) if used.size else -np.inf

    @property
    def state(self) -> dict[str, np.ndarray]:
        """All that the planes are, for :meth:`restore`."""
        m = self.count
        return {
            "slopes": self._slopes[:m],
            "gram": self._gram[:m, :m],
            "offsets": np.array([self._entropy[:m], self._omega[:m], self._mixture[:m]]),
        }

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Become what :attr:`state` was."""
        m = self.count = len(state["slopes"])
        self._slopes[:m], self._gram[:m, :m] = state["slopes"], state["gram"]
        self._entropy[:m], self._omega[:m], self._mixture[:m] = state["offsets"]

    def _merge(self) -> None:
        """Replace the two lightest planes by their mixture, in the proportion that they were used in."""
        m = self.count
        i, j = sorted(np.argsort(self._mixture[:m], kind="stable")[:2])
        total = self._mixture[i] + self._mixture[j]
        for kept in (self._slopes, self._entropy, self._omega):
            if total > 0:
                kept[i] = sum(self._mixture[t] / total * kept[t] for t in (i, j) if self._mixture[t] > 0)
            else:  # of two unused planes the younger stays
                kept[i] = kept[j]
            kept[j : m - 1] = kept[j + 1 : m]
        self._mixture[i] = total
        self._mixture[j : m - 1] = self._mixture[j + 1 : m]
        self.count = m - 1
        alive = self._slopes[: self.count]
        self._gram[: self.count, : self.count] = np.delete(np.delete(self._gram, j, 0), j, 1)[
            : self.count, : self.count
        ]
        self._gram[i, : self.count] = self._gram[: self.count, i] = alive @ self._slopes[i]


@njit(cache=True, nogil=True)
def best_mixture(offset, gram, mixture):
    """``argmax <offset, x> - x' gram x / 2`` over the simplex, near enough, by moves between pairs of planes."""
    x = mixture.copy()
    slope = offset - (gram * x).sum(axis=1)
    for _ in range(_ROUNDS):
        rise, fall, lowest, most = 0, 0, np.inf, -1.0
        for t in range(x.size):
            if slope[t] > slope[rise]:
                rise = t
        # The second of the pair is the one whose move wins most, by its curvature [fan2005]_.
        for t in range(x.size):
            if x[t] > 0.0:
                lowest = min(lowest, slope[t])
                gain = slope[rise] - slope[t]
                won = gain * gain / max(gram[rise, rise] + gram[t, t] - 2.0 * gram[rise, t], 1e-300)
                if gain > 0.0 and won > most:
                    fall, most = t, won
        if not slope[rise] - lowest > 1e-12 * (1.0 + abs(slope[rise])):
            break
        gain = slope[rise] - slope[fall]
        curvature = gram[rise, rise] + gram[fall, fall] - 2.0 * gram[rise, fall]
        step = min(x[fall], gain / curvature) if curvature > 0.0 else x[fall]
        x[rise] += step
        x[fall] = x[fall] - step if step < x[fall] else 0.0
        for t in range(x.size):
            slope[t] -= step * (gram[rise, t] - gram[fall, t])
    return x
