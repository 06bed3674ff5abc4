"""The thesis's training of matchings ([fathony2019]_, sec. 4.3.2): the adversary's marginals, all examples at once.

    max_Q  -|g(Q)|^2 / (2 lam) + 1/m sum_i min_P [-<P_i, Q_i> + mu/2 |P_i|^2] - mu/2 |Q_i|^2,
    g(Q) = 1/m sum_i X_i'(Q_i - Y_i),   theta = -g(Q) / lam,   P_i = projection of Q_i / mu     (eq. 4.11-4.14)

by a projected quasi-Newton method whose projections are those of ADMM. Also its way of letting objects enter and leave,
which doubles the nodes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reproduce.references.doubly_stochastic import admm_each
from reproduce.references.projected_quasi_newton import projected_quasi_newton

__all__ = ["doubled", "marginal_training"]

_RHO = 1.0


def marginal_training(
    X: np.ndarray,
    y: np.ndarray,
    lam: float,
    *,
    mu: float,
    tol: float = 1e-6,
    max_iter: int = 500,
    watch: Callable[[np.ndarray, np.ndarray], bool] = lambda theta, q: False,
) -> np.ndarray:
    """Weights ``theta`` (d,) from pair features ``X`` (m, n, n, d) and permutations ``y`` (m, n).

    ``tol`` is that of ADMM. ``watch`` sees the weights and the adversary's marginals (m, n, n) of every
    iterate and ends the run by answering True.
    """
    m, n, d = X.shape[0], X.shape[1], X.shape[3]
    features = X.reshape(m * n * n, d)
    truth = np.eye(n)[y].ravel()

    def project(q: np.ndarray) -> np.ndarray:
        answer = np.empty((m, n, n))
        admm_each(np.ascontiguousarray(q).reshape(m, n, n), _RHO, tol, 10_000, answer)
        return answer.ravel()

    def weights(q: np.ndarray) -> np.ndarray:
        return -((q - truth) @ features) / (lam * m)

    def objective(q: np.ndarray) -> tuple[float, np.ndarray]:
        theta = weights(q)
        p = project(q / mu)
        dual = -0.5 * lam * float(theta @ theta) + (0.5 * mu * float(p @ p - q @ q) - float(p @ q)) / m
        return -dual, -(features @ theta - p - mu * q) / m

    def seen(q: np.ndarray) -> bool:
        return watch(weights(q), q.reshape(m, n, n))

    start = np.full(m * n * n, 1.0 / n)
    return weights(projected_quasi_newton(objective, project, start, max_iter=max_iter, watch=seen))


def doubled(pairs: list[np.ndarray], y: list[np.ndarray], largest: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Partial matchings as complete ones between twice as many nodes ([fathony2019]_, sec. 4.4).

    With ``k`` the largest number of elements, or ``largest`` where given, each side gets ``2 k`` nodes, those beyond
    its elements invisible. A pair of elements keeps its features; three indicators follow for entering, leaving and
    staying invisible. Elements that enter or leave, and invisible nodes, are matched with invisible nodes in their
    order.

    Returns
    -------
    X : ndarray (m, 2k, 2k, d + 3)
    y : ndarray (m, 2k)
    """
    k, d = largest or max(max(x.shape[:2]) for x in pairs), pairs[0].shape[2]
    X, answers = np.zeros((len(pairs), 2 * k, 2 * k, d + 3)), np.full((len(pairs), 2 * k), -1)
    for x, partners, out, answer in zip(pairs, y, X, answers, strict=True):
        n1, n2 = x.shape[:2]
        out[:n1, :n2, :d] = x
        out[n1:, :n2, d] = 1.0
        out[:n1, n2:, d + 1] = 1.0
        out[n1:, n2:, d + 2] = 1.0
        stays = partners >= 0
        answer[:n1][stays] = partners[stays]
        entering = np.setdiff1d(np.arange(n2), partners)
        invisible = np.arange(n2, 2 * k)
        answer[n1 : n1 + entering.size] = entering
        answer[answer < 0] = invisible[: (answer < 0).sum()]
    return X, answers
