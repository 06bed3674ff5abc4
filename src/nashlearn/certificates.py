"""Bounds of a true mean from a sample: how much answers will cost on new data, proven from data held out.

Rows are independent draws of one distribution, and what is bounded is its mean ``mu``; nothing else is assumed but that
losses lie between two numbers. Two bounds serve:

- **Losses of two values** (errors): the exact binomial interval [clopper1934]_.
- **Other bounded losses**: betting [waudby2024]_. Scale losses ``x`` to [0, 1] and bet against ``mu >= g``: a capital
  of ``delta`` is multiplied, row by row, by ``1 + b (g - x)``, where the bet ``0 <= b < 1 / (1 - g)`` depends on
  earlier rows alone. If ``mu >= g``, no factor has an expectation above 1, and the capital reaches 1 with probability
  ``delta`` at most (Ville's inequality). Means at which it does are refuted.

**Which bet.** Capital that shall be 1 after the last row or nothing is a digital option, and the bet that replicates it
for normal losses of variance ``v`` when ``r`` rows are left and the capital is ``c`` is

    ``b = phi(z) / (c sqrt(v r))``,        ``Phi(z) = c``,

which, with many rows, makes bounds about as wide as those of the central limit theorem; ``v`` is estimated from earlier
rows. The bet is renewed after each 32nd part of the rows that are left.

**Which means.** Those of a grid. A capital against ``mu >= g`` serves all means from ``g`` on, so the least ``g`` above
which all of the grid is refuted is an upper bound. The grid is laid, once, around the mean of the first 16th of rows.
Over these the bet depends on ``g`` alone, in such a way that ``g b`` grows with ``g`` and ``(1 - g) b`` falls: then the
capital grows with ``g``, and at the largest ``g <= mu`` of the grid, wherever that lies, it is no larger than at ``mu``
itself, so that its expectation stays below ``delta``; from then on ``g`` and the bets on later rows depend on earlier
rows alone. The lower bound is one minus the upper bound of ``1 - x``, and each of the two has half the doubt.

Rows are bet on in an order drawn with a fixed seed, whatever their losses: data may come sorted. Rounding works against
refutations: capital must exceed 1 by more than ``n`` rounded factors can be wrong, and capital that is too small for
exact arithmetic is given up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betainc, betaincinv, ndtri

__all__ = [
    "Certified",
    "Losses",
    "betting_order",
    "checked_confidence",
    "error_p_value",
    "mean_bounds",
    "means_to_refute",
    "passed_in_turn",
    "price_range",
    "refuted",
]

_LARGEST_BET = 0.99  # of what may be bet: a row must not cost all
_OPENING = 16  # the share of rows before the grid is laid
_RENEWED = 32  # the share of the rows left for which a bet stands
_GRID = 320  # points around the mean
_TAILS = 33  # points elsewhere
_TARGET = 1.1  # capital to aim at: the last bit is the slowest to come by
_PIECE = 64  # rows whose factors are multiplied at once, without overflow
_ROUNDING = 1e-13  # of capital, for each row: factors are 0.01 at least, and computed to 4 units in the 16th digit
_LOST = 1e-200  # capital that is given up


class Certified(NamedTuple):
    """A mean loss on held-out data, and bounds between which the true mean lies with the confidence asked for.

    Attributes
    ----------
    loss : float
        The mean of the sample.
    upper, lower : float
        Both hold together with that confidence; each alone with half the doubt.
    n : int
        Number of examples.
    """

    loss: float
    upper: float
    lower: float
    n: int

    def __repr__(self) -> str:
        return f"Certified(loss={self.loss:.4g}, upper={self.upper:.4g}, lower={self.lower:.4g}, n={self.n})"


class Losses(NamedTuple):
    """What examples cost, and what they could have.

    Attributes
    ----------
    values : ndarray (n,)
    low, high : float
        The least and the largest loss of any example.
    binary : bool
        Whether no example can lose anything between the two.
    """

    values: np.ndarray
    low: float
    high: float
    binary: bool = False


def price_range(costs: np.ndarray) -> tuple[float, float, bool]:
    """The least and the largest cost, and whether there is no other."""
    low, high = float(costs.min()), float(costs.max())
    return low, high, bool(np.isin(costs, (low, high)).all())


def checked_confidence(confidence: Any) -> float:
    """A confidence between 0 and 1, or an error."""
    try:
        value = float(confidence)
    except (TypeError, ValueError):
        raise TypeError(f"confidence must be a number between 0 and 1; got {confidence!r}.") from None
    if not 0 < value < 1:
        raise ValueError(f"confidence must lie between 0 and 1, both excluded; got {confidence!r}.")
    return value


def mean_bounds(losses: Any, low: float, high: float, confidence: float = 0.95, *, binary: bool = False) -> Certified:
    """Bounds of the true mean of losses between ``low`` and ``high``, from independent draws.

    Exact binomial bounds [clopper1934]_ where ``binary``, betting [waudby2024]_ otherwise; the proof is in
    :mod:`nashlearn.certificates`. Cost: O(n) for the former, about 700 n multiplications for the latter, 0.1 s for
    100,000 losses.

    Parameters
    ----------
    losses : array-like of shape (n,)
        Of examples that are drawn independently and like those to come. Their order should have nothing to do with
        their values.
    low, high : float
        What a loss can be at least and at most, known beforehand: not read off the losses.
    confidence : float, default=0.95
        That the true mean lies between the bounds, whatever the distribution.
    binary : bool, default=False
        Whether a loss can be ``low`` or ``high`` only. This, too, must be known beforehand.

    Examples
    --------
    >>> from nashlearn.metrics import mean_bounds
    >>> mean_bounds([0, 0, 1, 0, 0, 0, 0, 1, 0, 0], 0, 1, binary=True)
    Certified(loss=0.2, upper=0.5561, lower=0.02521, n=10)
    """
    doubt = 0.5 * (1.0 - checked_confidence(confidence))
    values, low, high = _checked_losses(losses), float(low), float(high)
    if not -np.inf < low <= high < np.inf:
        raise ValueError(f"low and high must be finite numbers, low <= high; got {low!r} and {high!r}.")
    slack = 1e-9 * max(abs(low), abs(high))
    if values.min() < low - slack or values.max() > high + slack:
        raise ValueError(f"losses must lie between {low:g} and {high:g}; got {values.min():g} to {values.max():g}.")
    mean = float(np.clip(values.mean(), low, high))
    if low == high:
        return Certified(low, low, low, values.size)
    x = np.clip((values - low) / (high - low), 0.0, 1.0)
    if binary:
        above, below = _binomial(x, doubt)
    else:
        x = x[betting_order(x.size)]
        above, below = _upper(x, doubt), 1.0 - _upper(1.0 - x, doubt)
    upper, lower = low + (high - low) * above, low + (high - low) * below
    return Certified(mean, min(max(upper, mean), high), max(min(lower, mean), low), values.size)


def error_p_value(errors: int, n: int, rate: float) -> float:
    """The probability of so few errors, or fewer, in ``n`` draws with an error rate of ``rate``."""
    return 1.0 if errors >= n else float(betainc(n - errors, errors + 1, 1.0 - rate))


def passed_in_turn(p_values: Sequence[float], doubt: float) -> list[bool]:
    """Which tests pass by the fallback procedure [wiens2003]_: a wrong one with probability ``doubt`` at most.

    Test ``i`` of ``m``, in an order that is fixed beforehand, has the level ``doubt / m`` plus the level of the test
    before it, if that one passed. Proof: let ``i`` be the first test that passes and should not, and ``j`` the last one
    before it that should not pass either. That one failed, so the level of ``i`` is at most ``(i - j) doubt / m``, and
    these sum to ``doubt`` at most over all tests that should not pass, however p-values depend on each other.
    """
    passed, level = [], 0.0
    for value in p_values:
        level += doubt / len(p_values)
        passed.append(bool(value <= level))
        level = level if passed[-1] else 0.0
    return passed


def _checked_losses(losses: Any) -> np.ndarray:
    try:
        values = np.asarray(losses, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("losses must be numbers, one for each example.") from None
    if values.ndim != 1:
        raise ValueError(f"losses must hold one number for each example; got shape {values.shape}.")
    if values.size == 0:
        raise ValueError("losses must hold at least one number: nothing can be said without examples.")
    if not np.isfinite(values).all():
        raise ValueError("losses must be finite.")
    return values


def _binomial(x: np.ndarray, doubt: float) -> tuple[float, float]:
    """The interval of Clopper and Pearson for losses of 0 and 1: upper, lower."""
    if not np.isin(x, (0.0, 1.0)).all():
        raise ValueError("losses must be low or high, and nothing between them, where binary is True.")
    n, k = x.size, int(x.sum())
    upper = 1.0 if k == n else float(betaincinv(k + 1, n - k, 1.0 - doubt))
    return upper, 0.0 if k == 0 else float(betaincinv(k, n - k + 1, doubt))


def betting_order(n: int) -> np.ndarray:
    """The order in which ``n`` rows are bet on, always the same."""
    return np.random.default_rng(0).permutation(n)


def means_to_refute(x: np.ndarray) -> np.ndarray:
    """Means to bet against, between 0 and 1: close to each other around those that the first 16th makes likely."""
    n, first = x.size, x[: x.size // _OPENING]
    rows = first.size + 1
    mean = (0.5 + first.sum()) / rows
    spread = np.sqrt((0.25 + ((first - mean) ** 2).sum()) / rows)
    reach = 4.0 * spread * (1.0 / np.sqrt(rows) + 1.0 / np.sqrt(n)) + 4.0 / n
    near = np.linspace(max(mean - reach, 0.0), min(mean + reach, 1.0), _GRID)
    g = np.unique(np.r_[near, np.linspace(0.0, 1.0, _TAILS)])
    return g[(g > 0.0) & (g < 1.0)]


def _bet(capital: np.ndarray, variance: np.ndarray, left: int, most: np.ndarray) -> np.ndarray:
    """What replicates a digital option, up to what may be bet."""
    share = capital / _TARGET
    z = ndtri(share)
    with np.errstate(all="ignore"):
        bet = np.exp(-0.5 * z * z) / (share * np.sqrt(2.0 * np.pi * left * variance))
    return np.where(share > _LOST, np.minimum(bet, most), 0.0)


def _paid_out(capital: np.ndarray, bet: np.ndarray, g: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The capital after bets on rows ``x``, (rows, 1) or (rows, means)."""
    with np.errstate(over="ignore", invalid="ignore"):  # beyond all numbers it is refuted; 0 times that is NaN, not so
        for start in range(0, len(x), _PIECE):
            capital = np.where(capital < _LOST, 0.0, capital)
            capital = capital * np.prod(1.0 + bet * (g - x[start : start + _PIECE]), axis=0)
    return capital


def refuted(x: np.ndarray, g: np.ndarray, doubt: float) -> np.ndarray:
    """Whether losses in [0, 1] refute that their mean is ``g`` or more, for each of the means ``g`` (m,).

    ``x`` is one sample (n,), or one for each mean (n, m), in the order of betting.
    """
    n, x = len(x), x.reshape(len(x), -1)
    alike = x.shape[1] == 1
    t, enough = n // _OPENING, 1.0 + n * _ROUNDING
    largest = g * (1.0 - g)  # variance of losses with this mean
    most, prior = _LARGEST_BET / (1.0 - g), 1.0 / largest  # the variance begins as if so many rows had the largest
    capital = np.full(g.size, doubt)
    capital = _paid_out(capital, _bet(capital, largest, n, most), g, x[:t])
    done = capital >= enough
    total, squares = x[:t].sum(axis=0), (x[:t] ** 2).sum(axis=0)
    while t < n and not done.all():
        rows = x[t : t + max(1, (n - t) // _RENEWED)]
        live = np.flatnonzero(~done)
        column = 0 if alike else live
        own = g[live]
        around = squares[column] - 2.0 * own * total[column] + t * own**2
        variance = np.minimum((1.0 + around) / (prior[live] + t), largest[live])
        bet = _bet(capital[live], variance, n - t, most[live])
        capital[live] = _paid_out(capital[live], bet, own, rows if alike else rows[:, live])
        done[live] = capital[live] >= enough
        total, squares, t = total + rows.sum(axis=0), squares + (rows**2).sum(axis=0), t + len(rows)
    return done


def _upper(x: np.ndarray, doubt: float) -> float:
    """An upper bound of the mean of losses in [0, 1] that fails with probability ``doubt`` at most."""
    g = means_to_refute(x)
    standing = np.flatnonzero(~refuted(x, g, doubt))
    above = int(standing[-1]) + 1 if standing.size else 0
    return float(g[above]) if above < g.size else 1.0
