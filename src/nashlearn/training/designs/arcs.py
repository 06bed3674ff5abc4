"""Sentences of many lengths as one design: bilinear scores of arcs from vectors of their tokens.

    theta_dh = [t_d, 1]' W [t_h, 1, 0],     theta_d,root = [t_d, 1]' W [0, 0, 1].

The best ``W`` lies in the span of the training tokens, so that with fewer tokens than features both sides are first
reduced to an orthonormal basis of that span, by a QR decomposition: the same problem, smaller. Features of the arcs
themselves are :class:`nashlearn.training.designs.entries.EntryFeatures`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from nashlearn.games import arborescence
from nashlearn.games.batch import Batch
from nashlearn.training.missing_heads import known_arcs
from nashlearn.training.objective import Design, GameProblem

__all__ = ["TokenVectors", "full_matrix", "token_basis", "tree_games", "tree_problem"]


def token_basis(spans: Sequence[np.ndarray]) -> np.ndarray | None:
    """An orthonormal basis (d, k) of what columns (d, n) span together, None where that need not be smaller than d."""
    columns = np.hstack(spans)
    return np.linalg.qr(columns)[0] if columns.shape[1] < len(columns) else None


class TokenVectors:
    """Vectors (n, d) of the tokens, scored bilinearly, in a ``basis`` (d, k) where one is given."""

    by_blocks = False  # a gradient is some small products

    def __init__(self, X: Sequence[np.ndarray], basis: np.ndarray | None = None):
        tokens = np.concatenate(X)
        reduced = tokens if basis is None else tokens @ basis
        k = reduced.shape[1]
        bounds = np.cumsum([len(x) for x in X])[:-1]
        self._tokens = [np.hstack([part, np.ones((len(part), 1))]) for part in np.split(reduced, bounds)]
        root = np.eye(1, k + 2, k + 1)
        self._heads = [np.vstack([root, np.hstack([part, np.zeros((len(part), 1))])]) for part in self._tokens]
        self.n_weights = (k + 1) * (k + 2)
        self._shape = (k + 1, k + 2)

    def scores(self, w: np.ndarray) -> np.ndarray:
        """``Phi w``, one sentence after another."""
        W = w.reshape(self._shape)
        return np.concatenate([(a @ W @ b.T).ravel() for a, b in zip(self._tokens, self._heads, strict=True)])

    def moments(self, q: np.ndarray, omega: np.ndarray) -> np.ndarray:
        """``sum_i omega_i Phi_i' q_i`` for entries that lie as the scores do."""
        total = np.zeros(self._shape)
        start = 0
        for a, b, share in zip(self._tokens, self._heads, omega, strict=True):
            stop = start + len(a) * len(b)
            total += (share * a).T @ q[start:stop].reshape(len(a), len(b)) @ b
            start = stop
        return total.ravel()


def full_matrix(w: np.ndarray, width: int, basis: np.ndarray | None) -> np.ndarray:
    """Weights of :class:`TokenVectors` as the matrix ``W`` (width + 1, width + 2) for vectors of the full width."""
    k = width if basis is None else basis.shape[1]
    W = w.reshape(k + 1, k + 2)
    if basis is None:
        return W
    left, right = np.zeros((width + 1, k + 1)), np.zeros((width + 2, k + 2))
    left[:width, :k], left[width, k] = basis, 1.0
    right[:width, :k], right[width, k], right[width + 1, k + 1] = basis, 1.0, 1.0
    return left @ W @ right.T


def tree_games(sizes: Sequence[int] | np.ndarray, single_root: bool) -> Batch:
    """The game over the trees of each sentence; those of a length share theirs."""
    return Batch(list(map(cache(lambda n: arborescence(n, single_root)), np.asarray(sizes).tolist())))


def tree_problem(
    design: Design,
    heads: Sequence[np.ndarray],
    omega: np.ndarray,
    single_root: bool,
    *,
    known: float = 1.0,
    tol: float = 1e-10,
    n_jobs: int | None = None,
) -> GameProblem:
    """The training problem of sentences with true heads, each weighted by its share of the mean.

    Parameters
    ----------
    design : Design
    heads : sequence of int arrays
        -1 where missing, see :mod:`nashlearn.training.missing_heads`.
    omega : ndarray (n_sentences,)
        Weight of a token of each sentence; over all tokens of all data they sum to 1.
    single_root : bool
    known : float
        Share of heads that are known in the whole data set.
    tol, n_jobs
        See :class:`nashlearn.training.objective.GameProblem`.
    """
    moments = design.moments(known_arcs(heads) / known, omega)
    games, complete = tree_games([len(y) for y in heads], single_root), all((y >= 0).all() for y in heads)
    return GameProblem(design, games, moments, omega, tol=tol, n_jobs=n_jobs, complete=complete)
