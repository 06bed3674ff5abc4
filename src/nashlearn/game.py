"""The idea: learning as a zero-sum game between a predictor and an adversary.

Every task of this library is one formula,

.. math:: F(\\theta) = \\max_{q \\in M} \\langle\\theta, q\\rangle + \\min_{p \\in P} \\langle p, L q\\rangle,

where ``M`` is the polytope of the labels, ``P`` the polytope of the predictor's options and ``L`` the
loss that the user is judged by. The surrogate loss is ``F(theta) - <theta, y>``: convex, aligned with
``L``, with gradient ``q - y``, and the predictor's ``p`` is the probabilistic prediction [fathony2016]_.

A game is whatever has the methods of :class:`Game`. Estimators, PyTorch losses and training call ``solve`` and read
the :class:`Equilibrium` that it returns, and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

__all__ = ["Equilibrium", "Game", "Polytope", "flat", "inner"]


class Polytope(Protocol):
    """A set of vertices known through its linear maximisation oracle.

    ``labels`` are the caller's compact names of vertices (a class, a list of heads, a permutation);
    ``vertex`` turns them into points of the space in which scores live.
    """

    def argmax(self, scores: np.ndarray) -> np.ndarray:
        """Labels of the best vertices for each of ``scores`` (n, \\*shape)."""
        ...

    def vertex(self, labels: np.ndarray) -> np.ndarray:
        """Vertices (n, \\*shape) that ``labels`` name."""
        ...


@dataclass(frozen=True)
class Equilibrium:
    """Both players' strategies for a batch of games, with their certificate.

    Attributes
    ----------
    value : ndarray (n,)
        What ``q`` secures: ``F(scores)`` up to ``gap``.
    q : ndarray (n, \\*shape of labels)
        The adversary's strategy: a subgradient of ``F``.
    p : ndarray (n, \\*shape of options)
        The predictor's strategy: the probabilistic prediction.
    gap : ndarray (n,)
        What the predictor may lose at ``p`` minus what the adversary can secure with ``q``; never
        negative, and zero exactly at an equilibrium.
    entropy : ndarray (n,)
        ``value - <scores, q>``, computed without that difference: ``min_p <p, L q>`` and what smoothing adds.
    risk : ndarray (n,)
        ``min_p <p, L q>`` alone; the same as ``entropy`` without smoothing, and where it is not given.
    reply : ndarray, optional
        The adversary's best reply to ``p``, where a relaxed game attains ``value + gap`` at another point than ``q``.
    state : optional
        What the same solver can begin with at scores nearby, where the equilibrium is given to it as ``start``.
    """

    value: np.ndarray
    q: np.ndarray
    p: np.ndarray
    gap: np.ndarray
    entropy: np.ndarray = None  # type: ignore[assignment]  # required once every game gives it
    risk: np.ndarray = None  # type: ignore[assignment]
    reply: Any = None
    state: Any = None

    def __post_init__(self) -> None:
        if self.risk is None:
            object.__setattr__(self, "risk", self.entropy)


class Game:
    """The game of two polytopes and a loss, solved by the double oracle unless a subclass knows better.

    Parameters
    ----------
    labels, options : Polytope
        The adversary's and the predictor's polytope.
    loss : array, sparse matrix or other operator of shape (dim of options, dim of labels)
        Anything with ``loss @ q`` and ``loss.T @ p`` for columns of flat points.
    """

    smooths = False  # whether ``solve`` takes a positive smoothing

    def __init__(self, labels: Polytope, options: Polytope, loss: Any):
        self.labels = labels
        self.options = options
        self.loss = loss

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the scores of one instance, and of ``q``."""
        return getattr(self.labels, "shape", (self.loss.shape[1],))

    @property
    def option_shape(self) -> tuple[int, ...]:
        """Shape of the predictor's strategy ``p`` for one instance."""
        return getattr(self.options, "shape", (self.loss.shape[0],))

    def solve(
        self,
        scores: np.ndarray,
        *,
        smoothing: float = 0.0,
        tol: float = 1e-9,
        n_jobs: int | None = None,
        start: Equilibrium | None = None,
    ) -> Equilibrium:
        """Equilibrium of every instance of ``scores`` (n, \\*shape), to an absolute gap of ``tol`` where reached.

        Cost: one call of each oracle and one small matrix game per iteration and instance.

        Parameters
        ----------
        scores : array (n, \\*shape)
            ``-inf`` rules a part out.
        smoothing : float
            Weight of a convex function that is taken off the adversary's reward, 0 at every vertex, so that ``F``
            becomes differentiable and no smaller; which function, the game says. 0 is the game itself, and all that
            the double oracle can play.
        tol : float
            Gap to aim at. What misses it is returned with its gap and a ``ConvergenceWarning``.
        n_jobs : int, optional
            Threads, where the solver is compiled.
        start : Equilibrium, optional
            That of the same game at scores nearby, from which a solver that iterates begins.
        """
        from nashlearn.solvers.double_oracle import solve

        if smoothing:
            raise ValueError(
                f"smoothing must be 0 for {type(self).__name__}: its polytopes are known by their best vertices alone; "
                f"got {smoothing!r}"
            )
        return solve(self, scores, tol=tol, start=start)

    def argmax(self, scores: np.ndarray) -> np.ndarray:
        """Labels of the best vertices for each of ``scores`` (n, \\*shape)."""
        return self.labels.argmax(scores)

    def vertex(self, labels: np.ndarray) -> np.ndarray:
        """Vertices (n, \\*shape) that ``labels`` name."""
        return self.labels.vertex(labels)

    def risk(self, q: np.ndarray, scores: np.ndarray | None = None) -> np.ndarray:
        """``min_p <p, L q>``: what the labels' distributions ``q`` cost the best predictor.

        ``scores`` count where a part that they rule out is forbidden to the predictor too.
        """
        cost = np.asarray(self.loss @ flat(q).T).T
        reward = self._forbidden(-cost.reshape(len(cost), *self.option_shape), scores)
        return inner(cost, flat(self.options.vertex(self.options.argmax(reward))))

    def _forbidden(self, reward: np.ndarray, scores: np.ndarray | None) -> np.ndarray:
        """Rewards of the predictor's options, ``-inf`` for those that ``scores`` forbid to it: none, as a rule."""
        return reward

    def upper(self, scores: np.ndarray, p: np.ndarray) -> np.ndarray:
        """What the best adversary gets against ``p``: ``max_q <scores, q> + <p, L q>``."""
        scores = np.asarray(scores)
        reward = scores + np.asarray(self.loss.T @ flat(p).T).T.reshape(scores.shape)
        return inner(flat(reward), flat(self.labels.vertex(self.labels.argmax(reward))))

    def lower(self, scores: np.ndarray, q: np.ndarray) -> np.ndarray:
        """What ``q`` secures against every predictor: ``<scores, q> + min_p <p, L q>``."""
        return inner(flat(np.asarray(scores)), flat(q)) + self.risk(q, scores)

    def loss_value(self, scores: np.ndarray, y: np.ndarray, smoothing: float = 0.0) -> np.ndarray:
        """The surrogate loss ``F(scores) - <scores, y>`` of each instance, for labels ``y``."""
        scores = np.asarray(scores)
        return self.solve(scores, smoothing=smoothing).value - inner(flat(scores), flat(self.labels.vertex(y)))


def flat(x: np.ndarray) -> np.ndarray:
    """Points (n, \\*shape) as rows (n, dim)."""
    return x.reshape(len(x), -1)


def inner(scores: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Inner products of rows; a score of ``-inf``, which rules a part out, counts 0 where ``x`` is 0."""
    return np.einsum("nd,nd->n", np.where(x == 0, 0, scores), x)
