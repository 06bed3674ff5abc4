"""The game of any two polytopes, by growing a matrix game from the players' best replies.

Among the vertices found so far, ``v_j`` of the labels and ``u_i`` of the options, the game is that of the
matrix ``A_ij = <u_i, L v_j>`` with scores ``<theta, v_j>``, which :mod:`nashlearn.solvers.matrix_game` solves.
Each player's best reply to the other's mixture then either enters, or proves that nothing better exists: the
replies' values bound the game's from both sides [mcmahan2003]_.
The polytopes are finite, so this ends; how many vertices it needs is known from experience only.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nashlearn.equilibrium import Equilibrium, best_vertices, flat, inner, lifted
from nashlearn.solvers import matrix_game

if TYPE_CHECKING:
    from nashlearn.game import Game

__all__ = ["solve"]

_SLIP = 1e-6  # of the size of rewards: how far an oracle may fall behind vertices it has found before
_SPARE = 4  # vertices without weight, the last that were found, which the next solve begins with too


def solve(
    game: Game, scores: np.ndarray, tol: float = 1e-9, max_iter: int = 1000, start: Equilibrium | None = None
) -> Equilibrium:
    """Equilibrium of every instance of ``scores`` (n, \\*shape), in their precision.

    An instance ends at a gap of ``tol max(1, |value|)``, or where rounding hides every better reply; one that
    ``max_iter`` iterations leave above it is returned with its gap and a ``ConvergenceWarning``. The state of the
    result holds the vertices that matter: given as ``start``, they spare most iterations at scores nearby.
    """
    scores = np.asarray(scores)
    if scores.shape[1:] != game.shape or scores.ndim < 2:
        wanted = ", ".join(map(str, ("n", *game.shape)))
        own = hasattr(game.labels, "shape")
        hint = "" if own else "; the loss has as many columns, and the polytope of labels has no shape of its own"
        raise ValueError(f"scores must have shape ({wanted}); got {scores.shape}{hint}")
    if not tol >= 0:
        raise ValueError(f"tol must be a number, not negative; got {tol!r}")
    if (scores == np.inf).any():
        first = np.argwhere(scores == np.inf)[0, 0]
        raise ValueError(f"scores must be finite, or -inf for a forbidden part; scores[{first}] holds +inf")
    dtype = np.float32 if scores.dtype == np.float32 else np.float64
    before = [None] * len(scores) if start is None or start.state is None else start.state
    n, state = len(scores), []
    (value, gap, risk), q, p = np.empty((3, n)), np.empty((n, *game.shape)), np.empty((n, *game.option_shape))
    for i, one in enumerate(scores.astype(np.float64)):
        value[i], q[i], p[i], gap[i], risk[i], found = _solve_one(game, one[None], tol, max_iter, before[i])
        state.append(found)
    missed = gap > tol * np.maximum(1.0, np.abs(value))
    if missed.any():
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(
            f"{missed.sum()} of {n} games stopped at a gap of up to {gap[missed].max():.1e}, "
            f"above tol={tol:g}; raise max_iter or tol",
            ConvergenceWarning,
            stacklevel=3,
        )
    arrays = (x.astype(dtype) for x in (value, q, p, gap, risk))
    return replace(Equilibrium(*arrays), state=tuple(state))


class _Instance:
    """One instance of a game on flat points, with the last coordinate 1 that an affine loss asks for."""

    def __init__(self, game: Game, scores: np.ndarray):
        self.game, self.scores, self.loss = game, scores, game.loss
        self.rows, self.columns = game.loss.shape
        self.theta = np.zeros(self.columns)
        self.theta[: scores.size] = scores.ravel()

    def label(self, reward: np.ndarray) -> np.ndarray:
        """The label's vertex (1, columns) with the largest reward."""
        own = reward[: self.scores.size].reshape(self.scores.shape)
        return lifted(best_vertices(self.game.labels, own), self.columns)

    def option(self, reward: np.ndarray) -> np.ndarray:
        """The option's vertex (1, rows) with the largest reward, among those that the scores allow."""
        return lifted(best_vertices(self.game.options, self.allowed(reward)), self.rows)

    def allowed(self, reward: np.ndarray) -> np.ndarray:
        """Rewards of the options' parts as an array, ``-inf`` where the scores forbid the part to the predictor."""
        shape = self.game.option_shape
        return self.game._forbidden(reward[: math.prod(shape)].reshape(1, *shape), self.scores)

    def begin(self, known: tuple[np.ndarray, np.ndarray] | None) -> tuple[np.ndarray, np.ndarray]:
        """Vertices of both players to begin with: the best label and the reply to it, and those known and possible."""
        V = self.label(self.theta)
        if np.isneginf(inner(self.theta, V)[0]):
            raise ValueError("scores must leave a label possible; those of an instance forbid every one by -inf")
        U = self.option(-np.asarray(self.loss @ V[0]))
        if known is None:
            return V, U
        forbidden = np.zeros(self.rows)
        closed = flat(self.allowed(forbidden))[0]
        forbidden[: closed.size] = closed
        V = np.vstack([V, known[0][~np.isneginf(inner(self.theta, known[0]))]])
        return V, np.vstack([U, known[1][~np.isneginf(inner(forbidden, known[1]))]])


def _solve_one(game: Game, scores: np.ndarray, tol: float, max_iter: int, known: Any) -> tuple[Any, ...]:
    """One instance of ``scores`` (1, \\*shape), from the vertices that are ``known``.

    What ``q`` secures, both strategies, the gap, the risk, and the vertices worth keeping.
    """
    if np.isnan(scores).any():
        return np.nan, np.nan, np.nan, np.nan, np.nan, None
    one = _Instance(game, scores)
    theta, loss = one.theta, one.loss
    V, U = one.begin(known)
    A = U @ np.asarray(loss @ V.T)
    for _ in range(max_iter):
        worth = inner(theta, V)
        restricted, mu, nu = matrix_game.solve(A, worth)
        q, p = mu @ V, nu @ U
        reward, cost = theta + loss.T @ p, np.asarray(loss @ q)
        v, u = one.label(reward), one.option(-cost)
        _check_best(game.labels, reward, v, V)
        _check_best(game.options, -cost, u, U)
        risk = float((u @ cost)[0])
        upper, lower = inner(reward, v)[0], inner(theta, q[None])[0] + risk
        gap = max(upper - lower, 0.0)
        if gap <= tol * max(1.0, abs(lower)):
            break
        rounding = 1e-15 * (np.abs(A).max() + np.abs(worth).max())
        new_label, new_option = upper > restricted + rounding, lower < restricted - rounding
        if not (new_label or new_option):
            break
        if new_label:
            A = np.hstack([A, U @ np.asarray(loss @ v.T)])
            V = np.vstack([V, v])
        if new_option:
            A = np.vstack([A, u @ np.asarray(loss @ V.T)])
            U = np.vstack([U, u])
    found = _kept(V, mu), _kept(U, nu)
    size, options = math.prod(game.shape), math.prod(game.option_shape)
    return lower, q[:size].reshape(game.shape), p[:options].reshape(game.option_shape), gap, risk, found


def _check_best(polytope: Any, reward: np.ndarray, found: np.ndarray, known: np.ndarray) -> None:
    """Refuse an oracle that returns less than the best: the gap is only as true as its replies."""
    earlier, now = inner(reward, known).max(), inner(reward, found)[0]
    if now < earlier - _SLIP * max(1.0, abs(earlier)):
        raise ValueError(
            f"argmax of {type(polytope).__name__} must return the best vertex; it returned one of score {now:.6g}, "
            f"where another that it had returned before has {earlier:.6g}"
        )


def _kept(vertices: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The vertices with weight, and the last that entered."""
    used = np.arange(len(vertices)) >= len(vertices) - _SPARE
    used[: weights.size] |= weights > 0.0
    return vertices[used]
