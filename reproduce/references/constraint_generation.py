"""Constraint generation for AL^0-1 ([fathony2016]_, Algorithm 1), with the quadratic programs solved by Clarabel.

    min_W 1/2 |W|^2 + C sum_i xi_i    s.t.  xi_i >= <r_S, W phi_i> + (|S| - 1)/|S|  for all sets S of classes,

where ``r_S`` is uniform on ``S`` less the true label. Each round adds the most violated set of every example and
solves the dual over the sets added so far.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

__all__ = ["Generated", "constraint_generation", "gram_features"]

_ACTIVE = 1e-3  # from which on the authors' code counts a multiplier


@dataclass(frozen=True)
class Generated:
    """Weights ``W`` (k, features), the objective in units of ``alpha/2 |W|^2 + mean loss``, and the counts."""

    W: np.ndarray
    objective: float
    added: int
    active: int
    rounds: int


def gram_features(gram: np.ndarray) -> np.ndarray:
    """Rows whose inner products are a positive semidefinite Gram matrix, by its eigenvectors. Cost O(n^3)."""
    values, vectors = np.linalg.eigh(gram)
    kept = values > 1e-13 * values[-1]
    return vectors[:, kept] * np.sqrt(values[kept])


def constraint_generation(
    features: np.ndarray, y: np.ndarray, n_classes: int, C: float, *, eps: float = 1e-6, max_rounds: int = 200
) -> Generated:
    """Train on rows ``features`` (a constant column is the intercept) and labels 0..k-1, until no set is violated.

    Cost: a quadratic program over all sets added so far, each round.
    """
    n = len(y)
    truth = np.eye(n_classes)[y]
    W = np.zeros((n_classes, features.shape[1]))
    R, b, owner = np.empty((0, n_classes)), np.empty(0), np.empty(0, dtype=int)
    multipliers = np.empty(0)
    for round_ in range(1, max_rounds + 1):  # noqa: B007 (reported)
        scores = features @ W.T
        loss, uniform = _most_violated(scores, y)
        slack = np.zeros(n)
        np.maximum.at(slack, owner, np.einsum("ck,ck->c", R, scores[owner]) + b)
        violated = np.flatnonzero(loss > slack + eps)
        if not violated.size:
            break
        R = np.vstack([R, uniform[violated] - truth[violated]])
        b = np.append(b, 1.0 - uniform[violated].max(axis=1))
        owner = np.append(owner, violated)
        multipliers = _dual(features, R, b, owner, C)
        W = -(multipliers[:, None] * R).T @ features[owner]
    else:
        raise RuntimeError(f"Constraint generation did not end within {max_rounds} rounds.")
    objective = 0.5 * np.vdot(W, W) / (n * C) + loss.mean()
    return Generated(W, float(objective), len(b), int((multipliers > _ACTIVE).sum()), round_)


def _most_violated(scores: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each row the largest ``(sum of the j best scores + j - 1) / j - f_y`` and the uniform law on those j."""
    k = scores.shape[1]
    order = np.argsort(-scores, axis=1)
    sizes = np.arange(1, k + 1)
    values = (np.cumsum(np.take_along_axis(scores, order, axis=1), axis=1) + sizes - 1) / sizes
    best = values.argmax(axis=1)
    uniform = np.zeros_like(scores)
    np.put_along_axis(uniform, order, (np.arange(k) <= best[:, None]) / (best[:, None] + 1.0), axis=1)
    rows = np.arange(len(y))
    return values[rows, best] - scores[rows, y], uniform


def _dual(features: np.ndarray, R: np.ndarray, b: np.ndarray, owner: np.ndarray, C: float) -> np.ndarray:
    """``max b'a - 1/2 |sum_c a_c r_c phi'|^2`` over ``a >= 0`` that sum to at most C for each example.

    Over ``a`` alone where there are fewer multipliers than weights, else over both, which keeps the matrices sparse.
    """
    import clarabel

    m, size = len(b), R.shape[1] * features.shape[1]
    members, position = np.unique(owner, return_inverse=True)
    budget = sp.csc_matrix((np.ones(m), (position, np.arange(m))), shape=(members.size, m))
    limits = sp.vstack([-sp.identity(m), budget])
    right = np.concatenate([np.zeros(m), np.full(members.size, C)])
    if m <= size:
        P = sp.csc_matrix(np.triu((R @ R.T) * (features[owner] @ features[owner].T)))
        A, cones = limits.tocsc(), [clarabel.NonnegativeConeT(right.size)]
        q = -b
    else:
        weights = _row_products(R, features[owner])
        P = sp.block_diag([sp.csc_matrix((m, m)), sp.identity(size)]).tocsc()
        A = sp.bmat([[weights.T, sp.identity(size)], [limits, None]]).tocsc()
        cones = [clarabel.ZeroConeT(size), clarabel.NonnegativeConeT(right.size)]
        right = np.concatenate([np.zeros(size), right])
        q = np.concatenate([-b, np.zeros(size)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-9
    solution = clarabel.DefaultSolver(P, q, A, right, cones, settings).solve()
    return np.maximum(np.asarray(solution.x)[:m], 0.0)


def _row_products(R: np.ndarray, features: np.ndarray) -> sp.csr_matrix:
    """Row ``c`` is ``r_c`` times ``phi_c``, flattened; zeros of ``r_c`` take no room."""
    rows, classes = np.nonzero(R)
    d = features.shape[1]
    entries = R[rows, classes][:, None] * features[rows]
    columns = classes[:, None] * d + np.arange(d)
    shape = (len(R), R.shape[1] * d)
    return sp.csr_matrix((entries.ravel(), (np.repeat(rows, d), columns.ravel())), shape=shape)
