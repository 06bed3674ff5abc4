"""Reference optimum of the Crammer-Singer objective, with a certificate.

LIBLINEAR reports neither its objective nor a bound, so its ``-e`` cannot be matched to an accuracy without
an independent answer. This is block dual ascent (Keerthi et al., 2008) with the exact block step, a
projection onto the simplex, for

    P(W) = 1/2 |W|^2 + C sum_i max_j (w_j x_i + [j != y_i]) - w_{y_i} x_i .
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from reproduce.compiled import load

__all__ = ["Reference", "primal", "solve", "with_bias"]


@dataclass(frozen=True)
class Reference:
    """Best objective found and the dual bound below every objective."""

    primal: float
    dual: float


def with_bias(X: Any) -> sp.csr_matrix:
    """``X`` with one more, constant feature, as CSR."""
    return sp.csr_matrix(sp.hstack([sp.csr_matrix(X), np.ones((X.shape[0], 1))]))


def primal(X: sp.csr_matrix, y: np.ndarray, W: np.ndarray, C: float) -> float:
    """``P(W)`` for ``W`` (features, classes) and labels ``0..k-1``. Cost O(nnz k)."""
    scores = X @ W
    truth = scores[np.arange(len(y)), y].copy()
    scores += 1.0
    scores[np.arange(len(y)), y] -= 1.0
    return 0.5 * float(np.vdot(W, W)) + C * float(np.sum(scores.max(axis=1) - truth))


def solve(X: sp.csr_matrix, y: np.ndarray, C: float, *, tol: float = 1e-8, seconds: float = 60.0) -> Reference:
    """Bounds on the optimum for ``X`` (bias included), until ``tol`` relative or ``seconds`` of CPU time."""
    n, k = X.shape[0], int(y.max()) + 1
    sweep = load("crammer_singer_loops", "benchmarks").sweep
    y = y.astype(np.intp)
    rows = (X.data, X.indices.astype(np.intp), X.indptr.astype(np.intp), y)
    Q = np.zeros((n, k))
    Q[np.arange(n), y] = 1.0
    W = np.zeros((X.shape[1], k))
    norms = np.asarray(X.multiply(X).sum(axis=1)).ravel()
    moved = np.zeros(n, dtype=np.bool_)
    rng = np.random.default_rng(0)
    # Zero weights cost C n, and on noisy labels nothing beats them.
    best, bound, stop = C * n, -np.inf, time.process_time() + seconds
    while time.process_time() < stop:
        sweep(*rows, norms, C, Q, W, rng.permutation(n), moved)
        for _ in range(30):
            active = np.flatnonzero(moved)
            if active.size == 0 or time.process_time() > stop:
                break
            sweep(*rows, norms, C, Q, W, rng.permutation(active), moved)
        best = min(best, primal(X, y, W, C))
        bound = max(bound, C * (n - Q[np.arange(n), y].sum()) - 0.5 * float(np.vdot(W, W)))
        if best - bound <= tol * best:
            break
    return Reference(float(best), float(bound))
