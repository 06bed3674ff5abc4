"""The optimum of training as a quadratic program over weights, predictor strategies and epigraph variables.

It uses ``F(f) = min_p max_j f_j + (L' p)_j`` and nothing of the library but the cost matrix.
"""

from __future__ import annotations

import clarabel
import numpy as np
import scipy.sparse as sp


def _minimum(P, c, A_eq, b_eq, A_in, b_in) -> tuple[float, np.ndarray]:
    """``min x'Px/2 + c'x`` where ``A_eq x = b_eq`` and ``A_in x <= b_in``; the dual value and the minimiser."""
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    cones = [clarabel.ZeroConeT(b_eq.size), clarabel.NonnegativeConeT(b_in.size)]
    A = sp.vstack([A_eq, A_in]).tocsc()
    solution = clarabel.DefaultSolver(sp.csc_matrix(P), c, A, np.r_[b_eq, b_in], cones, settings).solve()
    assert str(solution.status) in ("Solved", "AlmostSolved"), solution.status
    x = np.asarray(solution.x)
    return float(0.5 * x @ (P @ x) + c @ x), x


def _dense(X) -> np.ndarray:
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


def per_class_optimum(X, y, omega, alpha, L, bias=1.0) -> float:
    """``min_W alpha/2 |W|^2 + sum_i omega_i (F(W x_i) - (W x_i)_{y_i})`` for the cost matrix ``L``."""
    X = np.column_stack([_dense(X), np.full(X.shape[0], bias)])
    n, d = X.shape
    options, k = L.shape
    # x = (W by classes, p by rows, epigraphs): xi_i >= (w_j - w_y) x_i + (L' p_i)_j
    labels = np.arange(k)
    scores = sp.vstack([sp.kron(sp.csr_matrix(np.eye(k) - np.eye(k)[y[i]]), X[i : i + 1]) for i in range(n)])
    epigraph = sp.hstack([scores, sp.kron(sp.eye(n), L.T), -sp.kron(sp.eye(n), np.ones((k, 1)))], format="csr")
    assert epigraph.shape == (n * labels.size, k * d + n * options + n)
    positive = sp.hstack([sp.csr_matrix((n * options, k * d)), -sp.eye(n * options), sp.csr_matrix((n * options, n))])
    simplex = sp.hstack([sp.csr_matrix((n, k * d)), sp.kron(sp.eye(n), np.ones((1, options))), sp.csr_matrix((n, n))])
    P = sp.diags(np.r_[np.full(k * d, alpha), np.zeros(n * options + n)])
    c = np.r_[np.zeros(k * d + n * options), omega]
    A_in = sp.vstack([epigraph, positive])
    return _minimum(P, c, simplex, np.ones(n), A_in, np.zeros(A_in.shape[0]))[0]


def threshold_optimum(X, y, omega, alpha, k) -> tuple[float, np.ndarray]:
    """The thesis's thresholded ordinal loss (eq. 2.34), thresholds regularised: the optimum and the thresholds.

    With ``f_j = j w x - sum_{l < j} eta_l`` the loss is ``max_i (f_i - i)/2 + max_j (f_j + j)/2 - f_y``.
    """
    X = _dense(X)
    n, d = X.shape
    below = np.tril(np.ones((k, k - 1)), -1)  # row j: the thresholds under grade j
    f = [np.column_stack([np.outer(np.arange(k), X[i]), -below]) for i in range(n)]
    grades = np.arange(k, dtype=float)
    lower = sp.hstack([np.vstack(f), -sp.kron(sp.eye(n), np.ones((k, 1))), sp.csr_matrix((n * k, n))])
    upper = sp.hstack([np.vstack(f), sp.csr_matrix((n * k, n)), -sp.kron(sp.eye(n), np.ones((k, 1)))])
    P = sp.diags(np.r_[np.full(d + k - 1, alpha), np.zeros(2 * n)])
    truth = sum(omega[i] * f[i][y[i]] for i in range(n))
    c = np.r_[-truth, 0.5 * omega, 0.5 * omega]
    none = sp.csr_matrix((0, c.size))
    b = np.r_[np.tile(grades, n), np.tile(-grades, n)]
    value, x = _minimum(P, c, none, np.zeros(0), sp.vstack([lower, upper]), b)
    return value, x[d : d + k - 1]


def vertex_optimum(features, vertices, truth, omega, alpha, loss) -> float:
    """``min_w alpha/2 |w|^2 + sum_i omega_i (F_i(Phi_i w) - <Phi_i w, y_i>)`` over listed vertices.

    Example ``i`` has ``features[i]`` (dim, d), ``vertices[i]`` (count, dim), the position ``truth[i]`` of the true one,
    and ``loss(i)[a, b]``, what option ``a`` costs when vertex ``b`` is true; the predictor mixes options.
    """
    n, d = len(features), features[0].shape[1]
    counts, options = [len(v) for v in vertices], [len(loss(i)) for i in range(n)]
    mixed = sum(options)
    # x = (w, mixtures by examples, epigraphs): xi_i >= <Phi_i w, v_b - y_i> + (L' nu_i)_b
    scores = [(v - v[t]) @ phi for phi, v, t in zip(features, vertices, truth, strict=True)]
    epigraph = sp.hstack(
        [
            np.vstack(scores),
            sp.block_diag([loss(i).T for i in range(n)]),
            -sp.block_diag([np.ones((count, 1)) for count in counts]),
        ],
        format="csr",
    )
    positive = sp.hstack([sp.csr_matrix((mixed, d)), -sp.eye(mixed), sp.csr_matrix((mixed, n))])
    simplex = sp.hstack(
        [sp.csr_matrix((n, d)), sp.block_diag([np.ones((1, count)) for count in options]), sp.csr_matrix((n, n))]
    )
    P = sp.diags(np.r_[np.full(d, alpha), np.zeros(mixed + n)])
    c = np.r_[np.zeros(d + mixed), omega]
    A_in = sp.vstack([epigraph, positive])
    return _minimum(P, c, simplex, np.ones(n), A_in, np.zeros(A_in.shape[0]))[0]
