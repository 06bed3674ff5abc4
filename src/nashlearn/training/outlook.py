"""How much longer a run would take to reach its gap, drawn from the way that the gap has come."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["Outlook", "Seen", "in_words", "outlook", "roughly"]

_FALLS = 0.95  # to which share a gap must fall over half of a run for a line to be drawn through it
_FAR = 100.0  # times the run so far: what lies beyond is not foretold


class Seen(NamedTuple):
    """A gap after so many iterations and seconds."""

    n_iter: int
    seconds: float
    gap: float


class Outlook(NamedTuple):
    """Iterations and seconds that are missing, estimated."""

    n_iter: float
    seconds: float


def outlook(seen: Iterable[Seen], tol: float) -> Outlook | None:
    """How much is missing to a gap of ``tol``; None where what was seen does not tell.

    With gaps ``g0`` and ``g1`` half a run apart, after ``n0`` and ``n1`` iterations, what is missing is

        (n1 - n0) r / f                   if gaps fall by a factor with each iteration,
        n1 ((n1 / n0)^(r / f) - 1)        if they fall as a power of the iterations,

    ``f = log(g0 / g1)``, ``r = log(g1 / tol)``. Methods lie between the two, and so does the estimate: their geometric
    mean.
    """
    known = [one for one in seen if 0.0 < one.gap < math.inf]
    if len(known) < 2 or not tol > 0.0:
        return None
    last = known[-1]
    first = next((one for one in reversed(known) if one.n_iter <= 0.5 * last.n_iter), known[0])
    if first.n_iter >= last.n_iter or last.gap > _FALLS * first.gap:
        return None
    steps, ratio = last.n_iter - first.n_iter, math.log(max(last.gap / tol, 1.0)) / math.log(first.gap / last.gap)
    growth = ratio * math.log(last.n_iter / max(first.n_iter, 1))
    if growth > math.log(_FAR):
        return None
    straight = steps * ratio
    bent = max(last.n_iter * math.expm1(growth), straight)
    missing = max(math.sqrt(straight * bent), 1.0)
    return Outlook(missing, missing * (last.seconds - first.seconds) / steps)


def roughly(value: float) -> float:
    """The next number of two figures from above."""
    if not 0.0 < value < math.inf:
        return value
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return float(f"{math.ceil(value / unit * (1.0 - 1e-12)) * unit:.2g}")


def in_words(seconds: float) -> str:
    """A time as people say it."""
    if seconds < 1.0:
        return "less than a second"
    if seconds < 90.0:
        return f"about {roughly(seconds):.0f} s"
    return f"about {roughly(seconds / 60.0):.0f} min" if seconds < 5400.0 else f"about {roughly(seconds / 3600.0):g} h"
