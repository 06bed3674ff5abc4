"""Points near the arborescence polytope moved into it, so that what they secure is a bound without excuse.

An interior point method leaves strategies that violate cuts ``x(arcs into S) >= 1`` by some 1e-8. A dual bound needs a
point of the polytope: such an excess is multiplied by weights of any size. Rows and the single root are scaled to sum
to 1; then the point is mixed with

    u_dh = 1/n  (single root),      u_d,root = 2/(n + 1),  u_dh = 1/(n + 1)  (many roots),

which exceeds every cut of two tokens or more, other than the set of all under a single root, by ``c = (n - 2)/n`` or
``(n - 1)/(n + 1)`` at least. Where the largest violation is ``eps``, a share ``eps / (eps + c)`` of it is enough.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from nashlearn.games.trees.cuts import Flow, separate

__all__ = ["into_polytope"]

_ROUNDING = 1e-13


@njit(cache=True, nogil=True)
def _one_root(x, n):
    """Scale the arcs from the root to sum to 1, and the others of each row to make up for it; False where all are 0."""
    total = x[:n, 0].sum()
    if not total > 0.0:
        return False
    for d in range(n):
        old, new = x[d, 0], x[d, 0] / total
        x[d, 0] = new
        rest = x[d, 1 : n + 1].sum()
        for h in range(1, n + 1):
            if rest > 0.0:
                x[d, h] *= (1.0 - new) / rest
            elif h != d + 1 and old != new:
                x[d, h] = (1.0 - new) / (n - 1)
    return True


@njit(cache=True, nogil=True)
def _violation(x, n, members, flow):
    """How much the cut that ``x`` violates most lacks to 1, by the cuts of :func:`separate`, one of which it is."""
    worst = 0.0
    for c in range(separate(x, n, members, _ROUNDING, flow)):
        lack = 1.0
        for d in range(n):
            if members[c, d]:
                lack -= x[d, 0]
                for h in range(n):
                    if not members[c, h]:
                        lack -= x[d, h + 1]
        worst = max(worst, lack)
    return worst


@njit(cache=True, nogil=True)
def into_polytope(x: np.ndarray, n: int, single_root: bool, members: np.ndarray, flow: Flow) -> float:
    """Move ``x`` (n, n + 1), arcs of which none is forbidden, into the polytope; how large a share of it was replaced.

    ``members`` (at least n, n) is scratch. Cost: the flows of :func:`separate`.
    """
    share = 0.0
    for d in range(n):
        x[d, d + 1] = 0.0
        total = 0.0
        for h in range(n + 1):
            x[d, h] = max(x[d, h], 0.0)
            total += x[d, h]
        if not total > 0.0:
            share = 1.0
        for h in range(n + 1):
            x[d, h] = x[d, h] / total if total > 0.0 else 0.0
    if single_root and n > 1 and share == 0.0 and not _one_root(x, n):
        share = 1.0
    if share == 0.0:
        worst = _violation(x, n, members, flow)
        excess = (n - 2.0) / n if single_root else (n - 1.0) / (n + 1.0)
        share = worst / (worst + excess) if worst > _ROUNDING else 0.0
    if share > 0.0:
        for d in range(n):
            for h in range(n + 1):
                even = 1.0 / n if single_root else (2.0 if h == 0 else 1.0) / (n + 1.0)
                x[d, h] = (1.0 - share) * x[d, h] + (share * even if h != d + 1 else 0.0)
    return share
