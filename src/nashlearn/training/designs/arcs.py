"""Sentences of many lengths as one training problem: linear scores of arcs, one game over trees for each sentence.

Arcs come with features, ``theta_dh = <w, phi_dh>``, or tokens with vectors, scored bilinearly,

    theta_dh = [t_d, 1]' W [t_h, 1, 0],     theta_d,root = [t_d, 1]' W [0, 0, 1].

The best ``W`` lies in the span of the training tokens, so that with fewer tokens than features both sides are first
reduced to an orthonormal basis of that span, by a QR decomposition: the same problem, smaller. Smoothing subtracts
``mu Omega(q)`` with ``Omega(q) = (|q|^2 - <1, q>) / 2``, which is 0 at every tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from nashlearn.games.trees.best import best_trees, workspace
from nashlearn.games.trees.entries import tree_scratch
from nashlearn.games.trees.equilibrium import solve_each
from nashlearn.solvers.threads import in_threads
from nashlearn.training.objective import Evaluation
from nashlearn.training.played import warn_unsettled

__all__ = [
    "ArcDesign",
    "ArcFeatures",
    "TokenVectors",
    "TreeProblem",
    "best_heads",
    "equilibria",
    "full_matrix",
    "split",
    "strategies",
    "token_basis",
]

_ACCURACY = 1e-10  # of the games; gaps end within some ten times of it for each token


class ArcDesign(Protocol):
    """How the scores of all arcs, one sentence after another, depend on the weights."""

    sizes: np.ndarray
    n_weights: int

    def scores(self, w: np.ndarray) -> np.ndarray:
        """``Phi w``."""
        ...

    def moments(self, x: np.ndarray) -> np.ndarray:
        """``Phi' x``."""
        ...


class ArcFeatures:
    """Features of every arc: arrays (n, n + 1, d), or sparse matrices (n (n + 1), d) with token by token its heads."""

    def __init__(self, X: Sequence[Any], sizes: np.ndarray):
        self.sizes = sizes
        if sparse.issparse(X[0]):
            self._features: Any = sparse.csr_array(sparse.vstack(X, format="csr"))
        else:
            self._features = np.concatenate([features.reshape(-1, features.shape[-1]) for features in X])
        self.n_weights = self._features.shape[1]

    def scores(self, w: np.ndarray) -> np.ndarray:
        return self._features @ w

    def moments(self, x: np.ndarray) -> np.ndarray:
        return self._features.T @ x


def token_basis(X: Sequence[np.ndarray]) -> np.ndarray | None:
    """An orthonormal basis (d, k) of the span of all tokens, None where that need not be smaller than their width."""
    tokens = np.concatenate(X)
    return np.linalg.qr(tokens.T)[0] if len(tokens) < tokens.shape[1] else None


class TokenVectors:
    """Vectors (n, d) of the tokens, scored bilinearly, in a ``basis`` (d, k) where one is given."""

    def __init__(self, X: Sequence[np.ndarray], sizes: np.ndarray, basis: np.ndarray | None = None):
        self.sizes = sizes
        tokens = np.concatenate(X)
        reduced = tokens if basis is None else tokens @ basis
        k = reduced.shape[1]
        bounds = np.cumsum(sizes)[:-1]
        self._tokens = [np.hstack([part, np.ones((len(part), 1))]) for part in np.split(reduced, bounds)]
        root = np.eye(1, k + 2, k + 1)
        self._heads = [np.vstack([root, np.hstack([part, np.zeros((len(part), 1))])]) for part in self._tokens]
        self.n_weights = (k + 1) * (k + 2)
        self._shape = (k + 1, k + 2)

    def scores(self, w: np.ndarray) -> np.ndarray:
        W = w.reshape(self._shape)
        return np.concatenate([(a @ W @ b.T).ravel() for a, b in zip(self._tokens, self._heads, strict=True)])

    def moments(self, x: np.ndarray) -> np.ndarray:
        total = np.zeros(self._shape)
        start = 0
        for a, b in zip(self._tokens, self._heads, strict=True):
            stop = start + len(a) * len(b)
            total += a.T @ x[start:stop].reshape(len(a), len(b)) @ b
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


def split(entries: np.ndarray, sizes: np.ndarray) -> list[np.ndarray]:
    """Entries of all arcs as one matrix (n, n + 1) for each sentence."""
    bounds = np.cumsum(sizes * (sizes + 1))[:-1]
    return [part.reshape(n, n + 1) for part, n in zip(np.split(entries, bounds), sizes, strict=True)]


def best_heads(scores: Sequence[np.ndarray], single_root: bool) -> list[np.ndarray]:
    """Heads of the best tree for the scores (n, n + 1) of each sentence."""
    work = workspace(max((len(theta) for theta in scores), default=1))
    found = []
    for i, theta in enumerate(scores):
        heads, feasible = np.empty((1, len(theta)), np.int64), np.empty(1, np.bool_)
        best_trees(theta[None], single_root, heads, feasible, work)
        if not feasible[0]:
            raise ValueError(f"The scores of sentence {i} forbid every tree.")
        found.append(heads[0])
    return found


def equilibria(
    theta: np.ndarray, sizes: np.ndarray, smoothing: float, single_root: bool, n_jobs: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Value, ``p``, ``q``, gap and entropy of all games; the result does not depend on the number of threads."""
    offset = np.concatenate([[0], np.cumsum(sizes * (sizes + 1))])
    value, gap, entropy = np.empty((3, sizes.size))
    p, q = np.empty((2, theta.size))
    scores = theta + 0.5 * smoothing
    longest = int(sizes.max())

    def work(start: int, stop: int) -> None:
        arrays = value, p, q, gap, entropy, tree_scratch(longest)
        solve_each(scores, sizes, offset, smoothing, single_root, _ACCURACY, start, stop, *arrays)

    in_threads(work, sizes.size, n_jobs)
    return value, p, q, gap, entropy


def strategies(scores: Sequence[np.ndarray], smoothing: float, single_root: bool, n_jobs: int = 1) -> list[np.ndarray]:
    """The predictor's strategy for the arc scores (n, n + 1) of each sentence, or a warning."""
    sizes = np.array([len(theta) for theta in scores], dtype=np.int64)
    flat = np.concatenate([theta.ravel() for theta in scores])
    _, p, _, gap, _ = equilibria(flat, sizes, smoothing, single_root, n_jobs)
    warn_unsettled(gap, sizes)
    return split(p, sizes)


class TreeProblem:
    """Sentences with their true heads, each weighted by its share of the mean.

    Parameters
    ----------
    design : ArcDesign
    heads : sequence of int arrays
        -1 where missing, see :mod:`nashlearn.training.missing_heads`.
    omega : ndarray (n_sentences,)
        Weight of a token of each sentence; over all tokens they sum to 1.
    single_root : bool
    n_jobs : int
        Threads.
    known : float
        Share of heads that are known in the whole data set.
    """

    def __init__(
        self,
        design: ArcDesign,
        heads: Sequence[np.ndarray],
        omega: np.ndarray,
        single_root: bool,
        n_jobs: int = 1,
        known: float = 1.0,
    ):
        self.design, self.n_weights = design, design.n_weights
        self._omega, self._single_root, self._n_jobs = omega, single_root, n_jobs
        self.complete = all((y >= 0).all() for y in heads)
        self._share = np.repeat(omega, design.sizes * (design.sizes + 1))
        arcs = [np.vstack([np.eye(len(y) + 1), np.zeros(len(y) + 1)])[y].ravel() for y in heads]  # row -1 is none
        self._truth = self._share * np.concatenate(arcs) / known

    def curvature(self) -> None:
        """No guess: features of pairs are of one kind."""

    def evaluate(self, w: np.ndarray, smoothing: float) -> Evaluation:
        """Loss, gradient and plane at ``w``. Cost: the features twice, and a game for each sentence."""
        theta = self.design.scores(w)
        value, _, q, gap, entropy = equilibria(theta, self.design.sizes, smoothing, self._single_root, self._n_jobs)
        weighted = self._share * q
        penalty = 0.5 * smoothing * float(weighted @ q - weighted.sum())
        return Evaluation(
            loss=float(self._omega @ (value + gap)) - float(self._truth @ theta),
            gradient=self.design.moments(weighted - self._truth),
            entropy=float(self._omega @ entropy),
            penalty=penalty,
        )
