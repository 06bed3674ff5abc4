"""Robust F-scores of small samples by conic programmes, without anything of the library.

Labels ``Y`` (n, K) have moments ``sum_i omega_i x_i y_il``; the adversary's ``q`` lies in [0, 1] and its moments, of
all labels together, within ``radius`` of those. Moments of two classes are those of one, with both signs: radii of the
library are ``sqrt(2)`` times these.
"""

from __future__ import annotations

import clarabel
import numpy as np
import scipy.sparse as sp
from scipy.optimize import brentq


def _solved(c, rows, sides, cones) -> float:
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    A = sp.csc_matrix(sp.vstack(rows))
    P = sp.csc_matrix((c.size, c.size))
    found = clarabel.DefaultSolver(P, c, A, np.concatenate(sides), cones, settings).solve()
    assert str(found.status) in ("Solved", "AlmostSolved"), found.status
    return float(found.obj_val)


def _moments(X, omega, K):
    """The matrix (d K, n K) that takes ``q``, label after label, to its moments."""
    return sp.kron(sp.eye(K), sp.csr_matrix((X * omega[:, None]).T))


def worst_score(X, Y, omega, p, radius, beta) -> float:
    """``min_q F_beta(p, q)`` for strategies ``p`` (n, K): a linear-fractional programme over a ball, made conic."""
    K = Y.shape[1]
    M, y, p, weight = _moments(X, omega, K), Y.T.ravel().astype(float), p.T.ravel(), np.tile(omega, K)
    m = y.size
    # x = (kappa q, kappa) with kappa (mean p + beta^2 mean q) = 1
    c = np.r_[(1 + beta**2) * weight * p, 0.0]
    total = sp.csr_matrix(np.r_[beta**2 * weight, weight @ p])
    below = sp.hstack([-sp.eye(m), sp.csr_matrix((m, 1))])
    above = sp.hstack([sp.eye(m), -np.ones((m, 1))])
    ball = sp.vstack([sp.csr_matrix(np.r_[np.zeros(m), -radius]), sp.hstack([-M, sp.csr_matrix(M @ y).T])])
    sides = [np.ones(1), np.zeros(2 * m), np.zeros(ball.shape[0])]
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(2 * m), clarabel.SecondOrderConeT(ball.shape[0])]
    return _solved(c, [total, below, above, ball], sides, cones)


def robust_score(X, Y, omega, radius, beta) -> float:
    """``max_p min_q F_beta(p, q)``.

    ``F_beta >= t`` for all ``q`` where, by duality, some ``p`` and ``w`` make

        sum_l mean_i [t p + max(0, t beta^2 - (1 + beta^2) p + x w) - y x w] + radius |w|  <=  0;

    the least value of that, a conic programme, rises with ``t`` and is 0 at the score.
    """
    n, K = Y.shape
    M, weight, m, size = _moments(X, omega, K), np.tile(omega, K), n * K, X.shape[1] * K
    design, y = sp.kron(sp.eye(K), sp.csr_matrix(X)), Y.T.ravel().astype(float)

    def least(t: float) -> float:
        # x = (p, epigraph, w, its length)
        c = np.r_[t * weight, weight, -(M @ y), radius]
        cut = sp.hstack([-(1 + beta**2) * sp.eye(m), -sp.eye(m), design, sp.csr_matrix((m, 1))])
        box = sp.hstack([sp.vstack([-sp.eye(m), sp.eye(m)]), sp.csr_matrix((2 * m, m + size + 1))])
        positive = sp.hstack([sp.csr_matrix((m, m)), -sp.eye(m), sp.csr_matrix((m, size + 1))])
        length = sp.csr_matrix(np.r_[np.zeros(2 * m + size), -1.0])
        weights = sp.hstack([sp.csr_matrix((size, 2 * m)), -sp.eye(size), sp.csr_matrix((size, 1))])
        sides = [np.full(m, -t * beta**2), np.zeros(m), np.ones(m), np.zeros(m), np.zeros(size + 1)]
        cones = [clarabel.NonnegativeConeT(4 * m), clarabel.SecondOrderConeT(size + 1)]
        return _solved(c, [cut, box, positive, length, weights], sides, cones)

    return float(brentq(least, 1e-6, 1.0, xtol=1e-8))
