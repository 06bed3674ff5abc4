"""Programmes ``min <c, y> + <b y, y> / 2`` subject to ``G y >= h``, by a primal-dual interior point method.

Mehrotra's predictor and corrector [mehrotra1992]_ from a strictly feasible point; ``b`` is a diagonal, 0 for a linear
programme. Each iteration factorises the sparse normal matrix ``diag(b) + G' D G``; on clique trees of bounded width its
factors fill in little, so that an iteration costs about as much as a constant number of passes over the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.linalg import splu

__all__ = ["Builder", "Solution", "central_path", "interior_point"]

_MAX_ITER = 100
_STEP = 0.995


class Solution(NamedTuple):
    """Variables, multipliers of the constraints, and how far they are from optimal: ``<s, z>`` and the residual."""

    y: np.ndarray
    z: np.ndarray
    gap: float


def interior_point(
    G: sparse.csr_matrix, h: np.ndarray, c: np.ndarray, y: np.ndarray, z: np.ndarray, tol: float
) -> Solution:
    """Follow the central path of a linear programme to a complementarity of ``tol``.

    The best point is returned where rounding ends the path before.
    """
    best = Solution(y, z, np.inf)
    for point in central_path(G, h, c, np.zeros_like(c), y, z):
        if point.gap < best.gap:
            best = point
        if point.gap <= tol:
            break
    return best


def central_path(
    G: sparse.csr_matrix, h: np.ndarray, c: np.ndarray, b: np.ndarray, y: np.ndarray, z: np.ndarray, shared: int = 0
) -> Iterator[Solution]:
    """Points on the way from ``y`` with ``G y > h`` and ``z > 0`` to the optimum, until rounding ends the path.

    Every ``y`` is strictly feasible, so that its objective bounds the optimum from above. The first ``shared``
    variables occur in most constraints: they are eliminated last, as a dense matrix.
    """
    s = G @ y - h
    Gt = G.T.tocsr()
    for _ in range(_MAX_ITER):
        mu = float(s @ z) / s.size
        residual = c + b * y - Gt @ z
        yield Solution(y, z, mu * s.size + float(np.abs(residual).sum()))
        d = z / s
        N = (Gt @ G.multiply(d[:, None]).tocsr()).tocsc()
        N.setdiag(N.diagonal() * (1.0 + 1e-13) + b + 1e-300)
        try:
            solve = _factorised(N, shared)
        except (RuntimeError, np.linalg.LinAlgError):  # singular to rounding: the path ends here
            return

        def direction(rc: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            rhs = Gt @ (rc / s) - residual  # noqa: B023
            dy = solve(rhs)  # noqa: B023
            dy += solve(rhs - N @ dy)  # noqa: B023
            ds = G @ dy
            return dy, ds, (rc - z * ds) / s  # noqa: B023

        _, ds, dz = direction(-s * z)
        ahead, aside = _room(s, ds), _room(z, dz)
        sigma = (float((s + ahead * ds) @ (z + aside * dz)) / s.size / mu) ** 3
        dy, ds, dz = direction(sigma * mu - s * z - ds * dz)
        if not (np.isfinite(dy).all() and np.isfinite(dz).all()):
            return
        ahead, aside = min(1.0, _STEP * _room(s, ds)), min(1.0, _STEP * _room(z, dz))
        if b.any():  # the multipliers' equation has y in it: both must go equally far
            ahead = aside = min(ahead, aside)
        y, z = y + ahead * dy, z + aside * dz
        s = G @ y - h
        if not (s > 0).all():
            return


def _factorised(N: sparse.csc_matrix, shared: int) -> Callable[[np.ndarray], np.ndarray]:
    """How to solve with the positive definite ``N``, whose first ``shared`` rows are dense."""
    own = N[shared:, shared:] if shared else N
    factor = splu(own, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    if not shared:
        return factor.solve
    between = N[shared:, :shared].tocsr()
    reduced = N[:shared, :shared].toarray() - between.T @ factor.solve(between.toarray())
    schur = cho_factor(0.5 * (reduced + reduced.T))

    def solve(rhs: np.ndarray) -> np.ndarray:
        first = cho_solve(schur, rhs[:shared] - between.T @ factor.solve(rhs[shared:]))
        return np.concatenate([first, factor.solve(rhs[shared:] - between @ first)])

    return solve


def _room(x: np.ndarray, dx: np.ndarray) -> float:
    """The longest step up to 1 / 0.995 that keeps ``x`` not negative."""
    falling = dx < 0
    return min(1.0 / _STEP, float((-x[falling] / dx[falling]).min(initial=np.inf)))


class Builder:
    """Rows of ``G y >= h``, entry by entry."""

    def __init__(self) -> None:
        self.row: list[np.ndarray] = []
        self.column: list[np.ndarray] = []
        self.value: list[np.ndarray] = []
        self.h: list[np.ndarray] = []
        self.rows = 0

    def add(self, rows: np.ndarray, columns: np.ndarray, values: np.ndarray) -> None:
        """Coefficients ``values`` at (first new row + ``rows``, ``columns``)."""
        self.row.append(rows + self.rows)
        self.column.append(columns)
        self.value.append(values)

    def close(self, h: np.ndarray) -> None:
        """End a block of rows with right-hand sides ``h``."""
        self.h.append(h)
        self.rows += h.size

    def replies(self, rows: np.ndarray, labels: np.ndarray, L: np.ndarray, first: int) -> None:
        """``-(L' p)`` at the labels of new ``rows`` but for ``L[-1]``; the replies start at variable ``first``."""
        steps = L[:-1] - L[-1]  # the last option takes what the others leave
        option, label = np.nonzero(steps)
        for a in np.unique(label):
            of, where = option[label == a], rows[labels == a]
            self.add(np.repeat(where, of.size), np.tile(first + of, where.size), np.tile(-steps[of, a], where.size))

    def simplex(self, first: int, options: int) -> None:
        """The replies from ``first`` on, one fewer than options, are not negative and leave something."""
        ids = np.arange(options - 1)
        self.add(ids, first + ids, np.ones(ids.size))
        self.add(np.full(ids.size, ids.size), first + ids, np.full(ids.size, -1.0))
        self.close(np.append(np.zeros(ids.size), -1.0))

    def matrix(self, n: int) -> tuple[sparse.csr_matrix, np.ndarray]:
        """``G`` and ``h`` for ``n`` variables."""
        parts = [np.concatenate(x) for x in (self.value, self.row, self.column)]
        G = sparse.csr_matrix((parts[0], (parts[1], parts[2])), shape=(self.rows, n))
        return G, np.concatenate(self.h)
