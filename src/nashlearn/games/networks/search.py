"""Exact search for the best labelling, by how much labellings fall short of a bound.

A reparametrised problem splits the bound over nodes and edges; what a label or a pair lacks of its node's or edge's
share is its *deficit*, never negative, and a labelling's score is the bound less the sum of its deficits. So the best
labelling has the least sum, labellings within a limit consist of labels and pairs within it, and the lower the limit
the more of them go. The search goes through the limits upwards: either it finds the best labelling within it, or it
proves that there is none and the bound falls. Each step assigns a label to the node with the fewest left, charges it
to the neighbours, and removes labels, then labels without a partner at some neighbour, until nothing changes
[larrosa2004]_. Cost of a step: a few passes over the tables of the edges that are open.
"""

from __future__ import annotations

import numpy as np

from nashlearn.games.networks.stars import Incidence
from nashlearn.kernels.labelling_search import Path

__all__ = ["Search", "deficits", "reparametrised"]

_GROWTH = 3.0  # of limits
_FIRST = 1e-3  # limit, in units of the scores


def reparametrised(g: Incidence, f: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Scores of labels (n, k) with the multipliers of their edges, -inf where forbidden."""
    node = np.where(f > -np.inf, f, np.inf)
    for side in (0, 1):
        np.add.at(node, g.ends[:, side], alpha[:, side])
    node[np.isposinf(node)] = -np.inf  # a multiplier of inf: a neighbour has ruled the label out
    return node


def deficits(g: Incidence, f: np.ndarray, T: np.ndarray, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Deficits of labels (n, k) and of pairs (m, k, k), inf where forbidden, and the bound that they fall short of."""
    node = reparametrised(g, f, alpha)
    left, right = g.ends.T
    alive = node > -np.inf
    allowed = alive[left, :, None] & alive[right, None, :] & (T[g.table] > -np.inf)
    first, second = (np.where(np.isfinite(alpha[:, side]), alpha[:, side], 0.0) for side in (0, 1))
    pair = np.where(allowed, T[g.table] - first[:, :, None] - second[:, None, :], -np.inf)
    tops, peaks = node.max(axis=1), pair.max(axis=(1, 2)) if len(pair) else np.zeros(0)
    if np.isneginf(tops).any() or np.isneginf(peaks).any():
        return np.full_like(node, np.inf), np.full_like(pair, np.inf), -np.inf
    return tops[:, None] - node, peaks[:, None, None] - pair, float(tops.sum() + peaks.sum())


class Search:
    """The search among labellings with these deficits.

    Parameters
    ----------
    g : Incidence
    node, pair : ndarray (n, k), (m, k, k)
        Deficits, see :func:`deficits`.
    unit : float
        Size of the scores, which rounding and the first limit are relative to.
    rounding : float
        Sums that differ by less count as equal.
    """

    def __init__(self, g: Incidence, node: np.ndarray, pair: np.ndarray, unit: float, rounding: float):
        self.g, self.unit, self.rounding = g, unit, rounding
        self.node, self.pair = np.ascontiguousarray(node), np.ascontiguousarray(pair)
        self.labels = np.full(node.shape[0], -1)
        self.limit = _FIRST * unit
        self.proved = 0.0  # no labelling has less than this
        self._path: Path | None = None

    def run(self, most: float, steps: int) -> bool:
        """Search for labellings whose deficits add up to at most ``most``, for about ``steps`` steps in all.

        True once :attr:`labels` are the best of them, or -1 where there are none. Called again it goes on.
        """
        while steps > 0:
            if self._path is None:
                self.limit = min(self.limit, most)
                self._path = Path(self.g, self.node, self.pair, self.limit)
            some = min(steps, 64)
            self.limit, over = self._path.walk(self.limit, self.rounding, self.labels, some)
            steps -= some
            if not over:
                continue
            self._path = None
            if self.labels[0] >= 0 or self.limit >= most:
                self.proved = self.limit + (self.rounding if self.labels[0] >= 0 else 0.0)
                return True
            self.proved = self.limit
            self.limit *= _GROWTH
        return False
