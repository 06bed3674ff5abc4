"""The idea: learning as a zero-sum game between a predictor and an adversary.

Every task of this library is one formula,

.. math:: F(\\theta) = \\max_{q \\in M} \\langle\\theta, q\\rangle + \\min_{p \\in P} \\langle p, L q\\rangle,

where ``M`` is the polytope of the labels, ``P`` the polytope of the predictor's options and ``L`` the
loss that the user is judged by. The surrogate loss is ``F(theta) - <theta, y>``: convex, aligned with
``L``, with gradient ``q - y``, and the predictor's ``p`` is the probabilistic prediction [fathony2016]_.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

__all__ = ["Equilibrium", "Game", "Polytope", "inner"]


class Polytope(Protocol):
    """A set of vertices known through its linear maximisation oracle.

    ``labels`` are the caller's compact names of vertices (a class, a list of heads, a permutation);
    ``vertex`` turns them into points of the space in which scores live.
    """

    def argmax(self, scores: np.ndarray) -> np.ndarray:
        """Labels of the best vertices for each row of ``scores`` (n, dim)."""
        ...

    def vertex(self, labels: np.ndarray) -> np.ndarray:
        """Vertices (n, dim) that ``labels`` name."""
        ...


@dataclass(frozen=True)
class Equilibrium:
    """Both players' strategies for a batch of games, with their certificate.

    Attributes
    ----------
    value : ndarray (n,)
        ``F(scores)``.
    q : ndarray (n, dim of labels)
        The adversary's strategy: a subgradient of ``F``.
    p : ndarray (n, dim of options)
        The predictor's strategy: the probabilistic prediction.
    gap : ndarray (n,)
        What the predictor may lose at ``p`` minus what the adversary can secure with ``q``; never
        negative, and zero exactly at an equilibrium.
    """

    value: np.ndarray
    q: np.ndarray
    p: np.ndarray
    gap: np.ndarray


class Game:
    """The game of two polytopes and a loss, solved by the double oracle unless a subclass knows better.

    Parameters
    ----------
    labels, options : Polytope
        The adversary's and the predictor's polytope.
    loss : array, sparse matrix or LinearOperator of shape (dim of options, dim of labels)
        Anything with ``loss @ q`` and ``loss.T @ p``.
    """

    def __init__(self, labels: Polytope, options: Polytope, loss: Any):
        self.labels = labels
        self.options = options
        self.loss = loss

    def solve(self, scores: np.ndarray, *, tol: float = 1e-9, max_iter: int = 1000) -> Equilibrium:
        """Equilibrium of every row of ``scores`` (n, dim), to an absolute gap of ``tol`` where reached.

        Cost: one call of each oracle and one small matrix game per iteration and row.
        """
        from nashlearn.solvers.double_oracle import solve

        return solve(self, scores, tol=tol, max_iter=max_iter)

    def upper(self, scores: np.ndarray, p: np.ndarray) -> np.ndarray:
        """What the best adversary gets against ``p``: ``max_q <scores, q> + <p, L q>``."""
        reward = scores + np.asarray(self.loss.T @ p.T).T
        return inner(reward, self.labels.vertex(self.labels.argmax(reward)))

    def lower(self, scores: np.ndarray, q: np.ndarray) -> np.ndarray:
        """What ``q`` secures against every predictor: ``<scores, q> + min_p <p, L q>``."""
        cost = np.asarray(self.loss @ q.T).T
        best = self.options.vertex(self.options.argmax(-cost))
        return inner(scores, q) + inner(cost, best)

    def loss_value(self, scores: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The surrogate loss ``F(scores) - <scores, y>`` of each row, for labels ``y``."""
        scores = np.asarray(scores)
        return self.solve(scores).value - inner(scores, self.labels.vertex(y))


def inner(scores: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Inner products of rows; a score of ``-inf``, which rules a part out, counts 0 where ``x`` is 0."""
    return np.einsum("nd,nd->n", np.where(x == 0, 0, scores), x)
