"""Lower bounds on a training objective from the gradients that were seen on the way.

The labels ``q_t`` that answer any weights support the loss from below everywhere,

    loss(w) >= <g_t, w> + e_t,      g_t = mean Phi'(q_t - y),  e_t = mean H(q_t) - smoothing Omega(q_t),

so for every mixture ``x`` of the planes, ``alpha/2 |w|^2 + loss(w) >= <x, e> - |sum x_t g_t|^2 / (2 alpha)``: the dual
objective at a mixture of label distributions, which need not be stored [teo2010]_.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nashlearn.kernels.planes import best_mixture

__all__ = ["Planes"]


@dataclass
class Planes:
    """The last planes and the best mixture of all that went before them, as one more plane.

    Attributes
    ----------
    slopes : ndarray (capacity, n_weights)
        Of the planes, in the first ``count`` rows, as all others.
    gram : ndarray (capacity, capacity)
        Their products.
    entropy, omega : ndarray (capacity,)
        The two parts of their offsets; ``omega`` is inf where unknown.
    mixture : ndarray (capacity,)
        The best mixture so far.
    count : int
        Planes that are kept.
    """

    slopes: np.ndarray
    gram: np.ndarray
    entropy: np.ndarray
    omega: np.ndarray
    mixture: np.ndarray
    count: int = 0

    @classmethod
    def none(cls, size: int, capacity: int = 25) -> Planes:
        """Room for ``capacity`` planes over ``size`` weights."""
        return cls(np.zeros((capacity, size)), np.zeros((capacity, capacity)), *np.zeros((3, capacity)))

    def add(self, slope: np.ndarray, entropy: float, omega: float) -> None:
        """Keep a plane; ``omega`` is inf where unknown. Where there is no room the lightest two merge."""
        if self.count == self.mixture.size:
            self._merge()
        t = self.count
        self.slopes[t], self.entropy[t], self.omega[t] = slope, entropy, omega
        self.gram[t, : t + 1] = self.gram[: t + 1, t] = self.slopes[: t + 1] @ slope
        self.mixture[t] = float(t == 0)
        self.count += 1

    def bound(self, alpha: float, smoothing: float) -> float:
        """The best lower bound on the objective at this smoothing that a mixture of the planes gives."""
        m = self.count
        offset = self.entropy[:m] - (smoothing * self.omega[:m] if smoothing else 0.0)
        usable = np.flatnonzero(np.isfinite(offset))
        if not usable.size:
            return -np.inf
        offset, gram = offset[usable], self.gram[np.ix_(usable, usable)] / alpha
        x = self.mixture[usable]
        if not x.any():
            x[-1] = 1.0
        x = x / x.sum()
        # Near the optimum the newest plane alone may be all but tight, and many moves away from the old mixture.
        alone = offset - 0.5 * gram.diagonal()
        if alone.max() > offset @ x - 0.5 * x @ gram @ x:
            x = np.eye(usable.size)[alone.argmax()]
        best_mixture(offset, gram, x)
        self.mixture[:m] = 0.0
        self.mixture[usable] = x
        slope = self.mixture[:m] @ self.slopes[:m]  # not by the Gram matrix: where slopes cancel, it is all rounding
        return float(offset @ x - 0.5 * slope @ slope / alpha)

    def weights(self, alpha: float) -> np.ndarray:
        """Where the last best mixture, as a model of the loss, has its regularised minimum."""
        return self.mixture[: self.count] @ self.slopes[: self.count] / -alpha

    def mixed(self, alpha: float, smoothing: float) -> float:
        """The lower bound on the objective at this smoothing that the last best mixture gives, whatever it was for."""
        used = np.flatnonzero(self.mixture[: self.count])
        x = self.mixture[used] / self.mixture[used].sum()
        offset = self.entropy[used] - (smoothing * self.omega[used] if smoothing else 0.0)
        slope = x @ self.slopes[used]
        return float(offset @ x - 0.5 * slope @ slope / alpha) if used.size else -np.inf

    def _merge(self) -> None:
        """Replace the two lightest planes by their mixture, in the proportion that they were used in."""
        m = self.count
        i, j = sorted(np.argsort(self.mixture[:m], kind="stable")[:2])
        total = self.mixture[i] + self.mixture[j]
        used = [t for t in (i, j) if self.mixture[t] > 0] or [j]  # of two unused planes the younger stays
        left = np.delete(np.arange(m), j)
        left[i] = used[0]
        for kept in (self.slopes, self.entropy, self.omega):
            if len(used) == 2:
                kept[i] = sum(self.mixture[t] / total * kept[t] for t in used)
            for t in np.flatnonzero(left != np.arange(m - 1)):  # one by one: rows that overlap would be copied twice
                kept[t] = kept[left[t]]
        self.mixture[i] = total
        self.mixture[j : m - 1] = self.mixture[j + 1 : m]
        self.count = m - 1
        self.gram[: self.count, : self.count] = self.gram[np.ix_(left, left)]
        if len(used) == 2:
            alive = self.slopes[: self.count]
            self.gram[i, : self.count] = self.gram[: self.count, i] = alive @ self.slopes[i]
