"""Projection onto the doubly stochastic matrices by alternating directions ([fathony2019]_, eq. 4.16-4.23), compiled.

    P <- rows((R + rho (S - W)) / (1 + rho)),  S <- columns((R + rho (P + W)) / (1 + rho)),  W <- W + P - S,

where ``rows`` and ``columns`` project each row, or column, onto the simplex. It ends on the primal and dual residuals.
"""

from __future__ import annotations

import numpy as np

from reproduce.compiled import load

__all__ = ["admm", "admm_each"]


def admm(R: np.ndarray, rho: float, tol: float, max_iter: int, P: np.ndarray) -> int:
    """Write the projection of ``R`` (n, n) into ``P``; answer the iterations taken.

    Ends where the root mean squares of ``P - S`` and of the change of ``rho S`` are below ``tol``.
    """
    taken: int = load("doubly_stochastic_loops").admm(R, rho, tol, max_iter, P)
    return taken


def admm_each(R: np.ndarray, rho: float, tol: float, max_iter: int, P: np.ndarray) -> None:
    """The projections of all matrices of ``R`` (b, n, n)."""
    load("doubly_stochastic_loops").admm_each(R, rho, tol, max_iter, P)
