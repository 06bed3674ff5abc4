"""What the F-score of a strategy is at least, for all labels at the same inputs with moments near those of the data.

Let ``p_i`` be the probability with which row ``i`` is called positive, ``f_i`` its lead, the score of the positive
label over that of the other by some weights ``w``, and ``y_i`` in {0, 1} its label. For every ``sigma >= 0`` and every
``q`` whose moments lie within ``radius`` of those of the data, as in :mod:`nashlearn.training.risk`,

    t (mean p + beta^2 mean q) - (1 + beta^2) mean pq
        <=  mean_i [t p_i + max(0, t beta^2 - (1 + beta^2) p_i + sigma f_i) - sigma f_i y_i] + sigma radius |w|,

and where the right-hand side is at most 0 the F-score of the expected counts is at least ``t``. Any weights will do.
Those of training are the best ones without smoothing. With smoothing the adversary's labels have an intercept of their
own, ``mu log(tau / (1 - tau))`` at the probability ``tau`` where the predictor is indifferent; without it, the rows on
which ``p`` is mixed are again those on which the adversary is indifferent. Both are tried.

Divided by ``sigma``, in ``u = 1 / sigma`` and ``v = t / sigma``, the right-hand side is

    C(u, v) + radius |w|,    C(u, v) = mean_i [v p_i + max(0, v beta^2 - (1 + beta^2) p_i u + f_i) - f_i y_i],

convex in both. So the values of ``C`` at some points are all that a model must keep: a mixture of points is no worse
than the mixture of their values, and certifies the score ``v / u`` for the radii at which that is at most
``-radius |w|``. The points kept are the best ones for some radii, 0 and that of training among them. Their dual is a
linear programme over ``q`` with one constraint, ``mean f q >= mean f y - radius |w|``, filled in the order of prices.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["Rows", "ScoreBound", "score_bound"]

_CHOSEN_ON = 4096  # rows at most on which points are chosen; they hold for all
_RADII = np.concatenate([[0.0], np.geomspace(1e-3, 0.99, 12)])  # relative to that at which nothing is certain
_STEPS = 50  # of Dinkelbach's, which are few


class Rows(NamedTuple):
    """Strategies, leads, labels in {0, 1} and shares of rows, (n,) each; of several labels one after the other."""

    p: np.ndarray
    lead: np.ndarray
    y: np.ndarray
    omega: np.ndarray

    def some(self, most: int) -> Rows:
        """Every so many rows, their shares as much larger."""
        step = -(-len(self.p) // most)
        if step == 1:
            return self
        share = self.omega[::step]
        return Rows(self.p[::step], self.lead[::step], self.y[::step], share * (self.omega.sum() / share.sum()))


class ScoreBound(NamedTuple):
    """Points ``(u, v)`` with the values of ``C``, and the norm of the weights."""

    u: np.ndarray
    v: np.ndarray
    value: np.ndarray
    norm: float

    def at(self, radius: float) -> float:
        """The largest score that a point, or a mixture of two, certifies for this radius; 0 where none does."""
        level = -radius * self.norm
        below, above = np.flatnonzero(self.value <= level), np.flatnonzero(self.value > level)
        if not below.size:
            return 0.0
        best = float((self.v[below] / self.u[below]).max())
        if above.size:
            i, j = below[:, None], above[None, :]
            share = (level - self.value[i]) / (self.value[j] - self.value[i])
            mixed = ((1.0 - share) * self.v[i] + share * self.v[j]) / ((1.0 - share) * self.u[i] + share * self.u[j])
            best = max(best, float(mixed.max()))
        return best


def score_bound(rows: Rows, beta: float, norm: float, radius: float, error: float = 0.0) -> ScoreBound:
    """Points for all radii, the best for ``radius`` among them, with values that are too large by ``error``.

    Cost: O(n) a point, and sorting some thousands of rows a few times for each.
    """
    square, some = beta * beta, rows.some(_CHOSEN_ON)
    own = some.omega @ (some.lead * some.y)
    # Beyond this the adversary may have no positive but where none is predicted.
    most = float(own - some.omega @ np.where(some.p > 0.0, 0.0, np.maximum(some.lead, 0.0)))
    points, t = [], 1.0
    if most > 0.0:
        for slack in np.sort(np.append(_RADII * most, min(radius * norm, most))):
            t, price = _best(some, square, own - slack, t)
            if not (t > 0.0 and price > 0.0):
                break
            points.append((1.0 / price, t / price))
    u, v = np.array(points).reshape(-1, 2).T
    value = np.array([_value(rows, square, *point) for point in points]) + error
    return ScoreBound(u, v, value, norm)


def _value(rows: Rows, square: float, u: float, v: float) -> float:
    """``C(u, v)``."""
    p, lead, y, omega = rows
    return float(omega @ (v * p + np.maximum(v * square - (1.0 + square) * u * p + lead, 0.0) - lead * y))


def _best(rows: Rows, square: float, level: float, t: float) -> tuple[float, float]:
    """The least score of any ``q`` with ``mean f q >= level``, which is at most ``t``, and the price of that."""
    p, omega = rows.p, rows.omega
    mass, price = float(omega @ p), 0.0
    for _ in range(_STEPS):
        q, price = _worst(rows, (1.0 + square) * p - t * square, level)
        below = mass + square * float(omega @ q)
        lower = (1.0 + square) * float(omega @ (p * q)) / below if below else 0.0
        if not lower < t:
            break
        t = lower
    return t, price


def _worst(rows: Rows, gain: np.ndarray, level: float) -> tuple[np.ndarray, float]:
    """The ``q`` in [0, 1] of least ``mean gain q`` with ``mean f q >= level``, and the price of that constraint."""
    lead, omega = rows.lead, rows.omega
    q = np.where(gain < 0.0, 1.0, 0.0)
    lacking = level - float(omega @ (lead * q))
    if lacking <= 0.0:
        return q, 0.0
    useful = np.flatnonzero((lead != 0.0) & (omega > 0.0) & ((lead > 0.0) == (gain >= 0.0)))
    prices = gain[useful] / lead[useful]
    order = np.argsort(prices, kind="stable")
    useful, size = useful[order], omega[useful[order]] * np.abs(lead[useful[order]])
    last = min(int(np.searchsorted(np.cumsum(size), lacking)), useful.size - 1)
    if last < 0:
        return q, 0.0
    q[useful[:last]] = 1.0 - q[useful[:last]]
    part = min((lacking - float(size[:last].sum())) / size[last], 1.0)
    q[useful[last]] += part if lead[useful[last]] > 0.0 else -part
    return q, float(prices[order[last]])
