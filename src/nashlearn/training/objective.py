"""The training objective, and the one place where its values come from.

    P(w) = alpha/2 |w|^2 + mean F_mu(Phi_i w) - <Phi_i w, y_i>,
    F_mu(theta) = max_q <theta, q> + min_p <p, L q> - mu Omega(q).

A *design* says how scores depend on the weights (``Phi`` and its adjoint), the *games* of the examples are solved at
these scores, and their equilibria give the loss, its gradient and a lower bound of the objective. Whatever the output
is, a method of training sees no more than :class:`Evaluation`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from nashlearn.game import Equilibrium

__all__ = ["Design", "Evaluation", "GameProblem", "Games", "evaluation", "summed"]


class Evaluation(NamedTuple):
    """What a pass over the data says at weights ``w``; means are over predicted variables.

    Attributes
    ----------
    loss : float
        Mean smoothed loss, or an upper bound on it where the predictor's reply is not exact.
    gradient : ndarray
        ``mean Phi'(q - y)``, without the regulariser.
    entropy : float
        ``mean min_p <p, L q>``: what the adversary's labels secure, without smoothing.
    penalty : float
        ``mean mu Omega(q)``, never positive; 0 without smoothing.
    drift : ndarray or float
        What ``gradient`` lacks to be that of ``loss``, where the labels ``q`` are not those that attain it.
    """

    loss: float
    gradient: np.ndarray
    entropy: float
    penalty: float
    drift: np.ndarray | float = 0.0


class Design(Protocol):
    """How the scores of all examples depend on the weights."""

    n_weights: int

    def scores(self, w: np.ndarray) -> Any:
        """``Phi w``, as the games take it."""
        ...

    def moments(self, q: Any, omega: np.ndarray) -> np.ndarray:
        """``sum_i omega_i Phi_i' q_i`` for strategies as the games return them."""
        ...


class Games(Protocol):
    """The games of all examples, played together: a game of rows, a :class:`nashlearn.games.batch.Batch`, networks."""

    def solve(
        self, scores: Any, *, smoothing: float, tol: float, n_jobs: int | None, start: Equilibrium | None
    ) -> Equilibrium:
        """One equilibrium for each example; see :meth:`nashlearn.game.Game.solve`."""
        ...


class GameProblem:
    """A labelled data set with a game for each example.

    Parameters
    ----------
    design : Design
    games : Games
    moments : ndarray (n_weights,)
        ``sum_i omega_i Phi_i' y_i``: what the labels say.
    omega : ndarray (n_examples,)
        The examples' shares of the mean loss.
    tol : float
        Gap to which games are solved in training.
    n_jobs : int, optional
        Threads.
    complete : bool
        Whether no label is missing, so that no loss can be negative.
    curvature : ndarray (n_weights,), optional
        A guess of the diagonal of the Hessian, where features of different kinds meet.
    exact : bool
        Whether no game is relaxed.
    """

    def __init__(
        self,
        design: Design,
        games: Games,
        moments: np.ndarray,
        omega: np.ndarray,
        *,
        tol: float = 1e-10,
        n_jobs: int | None = None,
        complete: bool = True,
        curvature: np.ndarray | None = None,
        exact: bool = True,
    ):
        self.design, self.games, self.moments, self.omega = design, games, moments, omega
        self.tol, self.n_jobs, self.complete, self.curvature, self.exact = tol, n_jobs, complete, curvature, exact
        self.n_weights = moments.size
        self._last: Equilibrium | None = None

    def scores(self, w: np.ndarray) -> Any:
        """Those of all examples at ``w``."""
        return self.design.scores(w)

    def play(self, w: np.ndarray, smoothing: float) -> Equilibrium:
        """The equilibria at ``w``, sought from the last ones."""
        scores = self.scores(w)
        found = self.games.solve(scores, smoothing=smoothing, tol=self.tol, n_jobs=self.n_jobs, start=self._last)
        self._last = found
        return found

    def evaluate(self, w: np.ndarray, smoothing: float) -> Evaluation:
        """Loss, gradient and plane at ``w``. Cost: the features twice, and a game for each example."""
        return evaluation(
            self.play(w, smoothing),
            self.omega,
            float(w @ self.moments),
            lambda q: self.design.moments(q, self.omega) - self.moments,
        )


def evaluation(found: Equilibrium, omega: np.ndarray, agreed: float, slope: Callable[[Any], np.ndarray]) -> Evaluation:
    """What the equilibria of examples say of their mean loss.

    ``agreed`` is ``sum_i omega_i <scores_i, y_i>``, and ``slope(q)`` is ``sum_i omega_i Phi_i'(q_i - y_i)``.
    """
    gradient = slope(found.q)
    return Evaluation(
        loss=float(omega @ (found.value + found.gap)) - agreed,
        gradient=gradient,
        entropy=float(omega @ found.risk),
        penalty=float(omega @ (found.risk - found.entropy)),
        drift=0.0 if found.reply is None else slope(found.reply) - gradient,
    )


def summed(one: Evaluation, other: Evaluation) -> Evaluation:
    """What two parts of the data say together."""
    return Evaluation(
        one.loss + other.loss,
        one.gradient + other.gradient,
        one.entropy + other.entropy,
        one.penalty + other.penalty,
        one.drift + other.drift,
    )
