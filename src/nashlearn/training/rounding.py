"""What rounding may do to a certificate: a bound for the error of an objective, and of its dual, as computed.

A sum of ``N`` products has an error of at most ``N u sum |a b|``, ``u = 2^-53`` [higham2002]_. Losses are differences
of scores whose size is ``reach``, the mean over examples of ``|Phi(x_i)| |w|``, and values of games of size ``unit``,
so each side of the certificate is known to

    share (unit + 4 reach) + (share spread)^2 / (2 alpha),        share = N u + outside,

where ``outside`` is how far the adversary's strategies miss the simplex, and ``spread`` the mean size of an example's
moments: an error of theirs is one of the dual's weights, divided by ``alpha``. As a rule that is far below any ``tol``;
it matters where an objective is tiny beside the scores that it is computed from.
"""

from __future__ import annotations

import numpy as np

__all__ = ["EXTRA", "UNIT", "largest", "rounding"]

UNIT = 0.5 * float(np.finfo(np.float64).eps)
EXTRA = 8  # roundings beside these sums: in the solution of a game, in shares and products


def rounding(
    terms: float, unit: float, reach: float, *, outside: float = 0.0, spread: float = 0.0, alpha: float = np.inf
) -> float:
    """How wrong either side of a certificate may be, in its own units."""
    share = terms * UNIT + outside
    return share * (unit + 4.0 * reach) + (share * spread) ** 2 / (2.0 * alpha)


def largest(x: np.ndarray) -> float:
    """The largest size of an entry, without a copy of all."""
    return max(float(x.max()), -float(x.min()))
