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

import math
from typing import Any, Protocol

import numpy as np

from nashlearn.equilibrium import Equilibrium, best_vertices, flat, inner, lifted
from nashlearn.solvers import double_oracle

__all__ = ["Equilibrium", "Game", "Polytope", "flat", "inner"]


class Polytope(Protocol):
    """A set of vertices known through its linear maximisation oracle.

    ``labels`` are the caller's compact names of vertices (a class, a list of heads, a permutation);
    ``vertex`` turns them into points of the space in which scores live.
    """

    def argmax(self, scores: np.ndarray) -> np.ndarray:
        """Labels of the best vertices for each of ``scores`` (n, \\*shape), any of several equally good ones.

        A score of ``-inf`` rules a part out.
        """
        ...

    def vertex(self, labels: np.ndarray) -> np.ndarray:
        """Vertices (n, \\*shape) that ``labels`` name."""
        ...


class Game:
    """The game of two polytopes and a loss, solved by the double oracle unless a subclass knows better.

    Parameters
    ----------
    labels, options : Polytope
        The adversary's and the predictor's polytope.
    loss : array, sparse matrix or other operator of shape (dim of options, dim of labels)
        Anything with ``loss @ q`` and ``loss.T @ p`` for columns of flat points. One row or column more than a polytope
        has coordinates (then the polytope says its ``shape``) meets a last coordinate 1: terms of an affine loss.
    """

    smooths = False  # whether ``solve`` takes a positive smoothing

    def __init__(self, labels: Polytope, options: Polytope, loss: Any):
        for name, polytope in (("labels", labels), ("options", options)):
            if not (hasattr(polytope, "argmax") and hasattr(polytope, "vertex")):
                raise TypeError(f"{name} must have the methods argmax and vertex; got {polytope!r:.100}")
        if len(getattr(loss, "shape", ())) != 2 or not hasattr(loss, "T"):
            raise TypeError(f"loss must be a matrix, or an operator with shape, @ and .T; got {loss!r:.100}")
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
        if smoothing:
            raise ValueError(
                f"smoothing must be 0 for {type(self).__name__}: its polytopes are known by their best vertices alone; "
                f"got {smoothing!r}"
            )
        return double_oracle.solve(self, scores, tol=tol, start=start)

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
        cost = np.asarray(self.loss @ lifted(q, self.loss.shape[1]).T).T
        own = -cost[:, : math.prod(self.option_shape)].reshape(len(cost), *self.option_shape)
        best = best_vertices(self.options, self._forbidden(own, scores))
        return inner(cost, lifted(best, self.loss.shape[0]))

    def _forbidden(self, reward: np.ndarray, scores: np.ndarray | None) -> np.ndarray:
        """Rewards of the predictor's options, ``-inf`` for those that ``scores`` forbid to it: none, as a rule."""
        return reward

    def upper(self, scores: np.ndarray, p: np.ndarray) -> np.ndarray:
        """What the best adversary gets against ``p``: ``max_q <scores, q> + <p, L q>``."""
        scores = np.asarray(scores)
        gain = np.asarray(self.loss.T @ lifted(p, self.loss.shape[0]).T).T
        reward = scores + gain[:, : math.prod(self.shape)].reshape(scores.shape)
        best = inner(flat(reward), flat(best_vertices(self.labels, reward)))
        return best + gain[:, math.prod(self.shape) :].sum(axis=1)

    def lower(self, scores: np.ndarray, q: np.ndarray) -> np.ndarray:
        """What ``q`` secures against every predictor: ``<scores, q> + min_p <p, L q>``."""
        return inner(flat(np.asarray(scores)), flat(q)) + self.risk(q, scores)

    def task_loss(self, p: np.ndarray, q: np.ndarray) -> np.ndarray:
        """``<p, L q>``: what predictions ``p`` cost where the labels are ``q``, vertices or mixtures of them."""
        return inner(np.asarray(self.loss @ lifted(q, self.loss.shape[1]).T).T, lifted(p, self.loss.shape[0]))

    def loss_bounds(self) -> tuple[float, float] | None:
        """What a prediction can cost at least and at most, if the loss says it by ``bounds(labels)``; else None."""
        bounds = getattr(self.loss, "bounds", None)
        return None if bounds is None else bounds(self.labels)

    def loss_value(self, scores: np.ndarray, y: np.ndarray, smoothing: float = 0.0) -> np.ndarray:
        """The surrogate loss ``F(scores) - <scores, y>`` of each instance, for labels ``y``."""
        scores, y = np.asarray(scores), np.asarray(y)
        if y.ndim == 0 or len(y) != len(scores):
            raise ValueError(f"y must hold one label for each of the {len(scores)} instances; got shape {y.shape}")
        truth = flat(np.asarray(self.vertex(y)))
        if truth.shape != flat(scores).shape:
            raise ValueError(f"y must name vertices of shape {self.shape}; those of its labels are {truth.shape[1:]}")
        value = self.solve(scores, smoothing=smoothing).value
        return (value - inner(flat(scores), truth)).astype(value.dtype)
